"""Are the notebooks what the sources say, byte for byte, and are outputs kept only while true?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lgcourse.errors
from lgcourse.authoring import build, check
from lgcourse.authoring.notebook import cell_ids, to_notebook, to_text
from lgcourse.authoring.percent import Cell
from lgcourse.errors import InputError

NOTEBOOK = "notebooks/01_first.ipynb"
SOLUTION = "solutions/01_first.ipynb"
EXERCISE = "exercises/01_first.ipynb"
ALL = [NOTEBOOK, SOLUTION, EXERCISE]
Change = Callable[[Path, Callable[[dict[str, Any]], None]], None]
CELLS = st.lists(
    st.builds(Cell, st.sampled_from(["code", "markdown"]), st.sampled_from(["x", "y", "z\nx"])),
    max_size=6,
)


def load(root: Path, path: str) -> dict[str, Any]:
    return json.loads((root / path).read_text(encoding="utf-8"))


def written(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that stand in the source: all but the set-up cell."""
    return [cell for cell in notebook["cells"] if "setup" not in cell["metadata"].get("tags", [])]


def sources_of(root: Path, path: str) -> list[str]:
    return ["".join(cell["source"]) for cell in written(load(root, path))]


def edit(root: Path, folder: str, old: str, new: str) -> None:
    path = root / "course" / folder / "01_first.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def kinds(root: Path) -> list[tuple[str, str]]:
    return [(problem.path, problem.kind) for problem in check(root)]


def ran(root: Path, path: str) -> bool:
    code = [cell for cell in load(root, path)["cells"] if cell["cell_type"] == "code"]
    return all(cell["execution_count"] for cell in code) and any(cell["outputs"] for cell in code)


@pytest.fixture
def built(course: Path, pretend_run: Callable[[Path], None]) -> Path:
    """Give a course whose notebooks are all in step and look as if they had been run."""
    build(course)
    for path in (NOTEBOOK, SOLUTION):
        pretend_run(course / path)
    assert check(course) == []
    return course


# --- what is written -----------------------------------------------------------------------------


def test_three_notebooks_from_two_sources(course: Path) -> None:
    assert build(course) == ALL
    assert sources_of(course, NOTEBOOK)[0] == "# A lesson\n\nText."
    assert sources_of(course, SOLUTION)[1].count("return number + one") == 1
    assert "return ...  # your code here" in sources_of(course, EXERCISE)[1]
    assert sources_of(course, EXERCISE)[2:] == ["Write your answer above."]
    assert sources_of(course, SOLUTION)[2:] == ["It is the number after this one."]
    tagged = written(load(course, NOTEBOOK))[1]["metadata"]
    assert tagged == {"tags": ["nbval-check-output"], "title": "Add two numbers"}


def test_files_are_valid_and_plain(course: Path) -> None:
    build(course)
    for path in ALL:
        data = (course / path).read_bytes()
        nbformat.validate(nbformat.reads(data.decode(), as_version=4))
        notebook = json.loads(data)
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert b"\r" not in data
        assert data.endswith(b"}\n")
        plain = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
        assert data.decode() == plain + "\n"
        assert notebook["metadata"]["kernelspec"]["name"] == "python3"
        assert "version" not in notebook["metadata"]["language_info"]


def test_a_rebuild_changes_no_byte(built: Path) -> None:
    before = {path: (built / path).read_bytes() for path in ALL}
    assert build(built) == []
    assert {path: (built / path).read_bytes() for path in ALL} == before


def test_the_folder_does_not_matter(course: Path, tmp_path: Path) -> None:
    build(course)
    other = tmp_path / "elsewhere"
    (course / "course").rename(tmp_path / "moved")
    other.mkdir()
    (tmp_path / "moved").rename(other / "course")
    build(other)
    assert all((course / path).read_bytes() == (other / path).read_bytes() for path in ALL)


def test_progress_names_each_notebook(course: Path) -> None:
    lines: list[str] = []
    build(course, echo=lines.append)
    assert [line.partition(":")[0] for line in lines] == ALL
    assert "not run, written" in lines[0]
    assert lines[2].partition(":")[2].startswith(" written, ")


# --- ids -----------------------------------------------------------------------------------------


@given(CELLS, CELLS, st.integers(0, 6))
def test_ids_do_not_change_when_other_cells_are_added(
    cells: list[Cell], new: list[Cell], place: int
) -> None:
    others = [Cell(cell.kind, f"new {cell.source}") for cell in new]
    place = min(place, len(cells))
    mixed = cell_ids([*cells[:place], *others, *cells[place:]], "a.py")
    ids = cell_ids(cells, "a.py")
    assert mixed[:place] + mixed[place + len(others) :] == ids
    assert len(set(mixed)) == len(mixed)
    assert not set(ids) & set(cell_ids(cells, "b.py"))
    nbformat.validate(to_notebook([*cells, *others], "a.py"))


@given(CELLS)
def test_reading_and_writing_gives_the_same_text(cells: list[Cell]) -> None:
    text = to_text(to_notebook(cells, "a.py"))
    assert to_text(nbformat.reads(text, as_version=4)) == text


# --- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Text.", "# Other text.\n\n# %% [markdown]\n# One cell more."),
        (' tags=["nbval-check-output"]', ""),
        ("Add two numbers ", ""),
    ],
)
def test_outputs_are_kept_when_no_code_has_changed(built: Path, old: str, new: str) -> None:
    before = [cell for cell in load(built, NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    edit(built, "lessons", old, new)
    assert kinds(built) == [(NOTEBOOK, "stale")]
    assert build(built) == [NOTEBOOK]
    after = [cell for cell in load(built, NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    for key in ("outputs", "execution_count", "source", "id"):
        assert [cell[key] for cell in after] == [cell[key] for cell in before]
    assert load(built, NOTEBOOK)["metadata"]["widgets"] == {"state": {"a": 1}}
    assert check(built) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total = 1 + 1", "total = 1 + 2"),
        ('print("seen", total)', 'print("seen", total)\n\n# %%\nprint(total)'),
        ('\n# %%\nprint("seen", total)\n', ""),
    ],
)
def test_all_outputs_are_dropped_when_any_code_has_changed(built: Path, old: str, new: str) -> None:
    edit(built, "lessons", old, new)
    build(built)
    notebook = load(built, NOTEBOOK)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "widgets" not in notebook["metadata"]
    assert kinds(built) == [(NOTEBOOK, "not run")]
    assert ran(built, SOLUTION)


def test_outputs_are_dropped_when_cells_change_places(course: Path, pretend_run: Any) -> None:
    path = course / "course/lessons/01_first.py"
    path.write_text("# %%\na = 1\n# %%\na = 2\n", encoding="utf-8")
    build(course)
    pretend_run(course / NOTEBOOK)
    path.write_text("# %%\na = 2\n# %%\na = 1\n", encoding="utf-8")
    build(course)
    assert not ran(course, NOTEBOOK)


def test_outputs_of_a_cell_with_another_id_are_not_kept(built: Path, change: Change) -> None:
    change(built / NOTEBOOK, lambda nb: written(nb)[2].update(id="other"))
    build(built, overwrite=True)
    assert not ran(built, NOTEBOOK)


def test_a_student_notebook_never_keeps_outputs(built: Path, pretend_run: Any) -> None:
    pretend_run(built / EXERCISE)
    assert kinds(built) == [(EXERCISE, "stale")]
    build(built)
    assert not ran(built, EXERCISE)
    assert check(built) == []


# --- check ---------------------------------------------------------------------------------------


def test_missing_never_run_and_extra_notebooks(course: Path) -> None:
    assert kinds(course) == [(path, "missing") for path in ALL]
    build(course)
    assert kinds(course) == [(NOTEBOOK, "not run"), (SOLUTION, "not run")]
    for extra in ("notebooks/02_old.ipynb", "exercises/.ipynb_checkpoints/01_first.ipynb"):
        (course / extra).parent.mkdir(exist_ok=True)
        (course / extra).write_text("{}", encoding="utf-8")
    assert kinds(course)[-1] == ("notebooks/02_old.ipynb", "extra")
    assert len(check(course)) == 3
    assert (course / "notebooks/02_old.ipynb").exists()
    assert str(check(course)[-1]).startswith("notebooks/02_old.ipynb: ")


def test_a_half_run_notebook_is_not_run(built: Path, change: Change) -> None:
    change(built / NOTEBOOK, lambda nb: written(nb)[2].update(execution_count=None, outputs=[]))
    assert kinds(built) == [(NOTEBOOK, "not run")]


@pytest.mark.parametrize("damage", ["", "not json", "[]", '{"cells": 3}', "<<<<<<< HEAD\n{}"])
def test_a_damaged_file_is_stale_and_built_anew(built: Path, damage: str) -> None:
    right = (built / EXERCISE).read_bytes()
    (built / EXERCISE).write_text(damage, encoding="utf-8")
    (built / NOTEBOOK).write_text(damage, encoding="utf-8")
    assert kinds(built) == [(NOTEBOOK, "stale"), (EXERCISE, "stale")]
    assert build(built) == [NOTEBOOK, EXERCISE]
    assert (built / EXERCISE).read_bytes() == right


@pytest.mark.parametrize(
    "how",
    [
        lambda nb: written(nb)[1]["source"].append("# return number + one"),
        lambda nb: written(nb)[1].update(
            outputs=[{"output_type": "stream", "name": "stdout", "text": "return number + one"}]
        ),
        lambda nb: written(nb)[1]["metadata"].update(reference="one = int(True)"),
        lambda nb: nb["metadata"].update(saved={"a": ["It is the number after this one."]}),
    ],
)
def test_a_leaked_solution_is_found(built: Path, change: Change, how: Any) -> None:
    change(built / EXERCISE, how)
    assert kinds(built) == [(EXERCISE, "stale"), (EXERCISE, "leak")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("saved to {home}/model", "path"),
        ("File /home/somebody/lesson.py", "path"),
        ("see file:///tmp/x.html", "path"),
        (r"C:\Users\somebody\model", "path"),
        ("/tmp/ipykernel_123/45.py:1: UserWarning", "path"),
        ("ipykernel_123", "process id"),
        ("worker (pid: 4242) stopped", "process id"),
        ("[fine]\nW1201 07:16:00.123456  4242 file.cpp:1] x", "process id"),
        ("<function f at 0x7f3c5a1b2c10>", "memory address"),
    ],
)
def test_an_output_that_is_true_on_one_machine_is_found(
    built: Path, change: Change, text: str, found: str
) -> None:
    line = text.format(home=Path.home())
    output = {"output_type": "stream", "name": "stdout", "text": [line]}
    change(built / NOTEBOOK, lambda nb: written(nb)[2].update(outputs=[output]))
    problems = [problem for problem in check(built) if problem.kind == "machine"]
    assert problems
    assert found in problems[0].message
    assert "cell 4" in problems[0].message


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/home/page and notes/tmp/file and ../tmp/file",
        "train/validation, and/or, 1/2, 0x1f, rapid 12, f:\\alpha",
        "exact match at 0x10",
    ],
)
def test_ordinary_outputs_pass(built: Path, change: Change, text: str) -> None:
    data = {"text/plain": [text], "image/png": "/tmp/AAAA" * 9}
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    change(built / NOTEBOOK, lambda nb: written(nb)[2].update(outputs=[output]))
    assert check(built) == []


# --- what a build must not destroy ---------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        lambda nb: written(nb)[1]["source"].append("\nprint('mine')"),
        lambda nb: nb["cells"].append(
            {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": ["my note"]}
        ),
    ],
)
def test_answers_are_not_overwritten(built: Path, change: Change, how: Any) -> None:
    right = (built / EXERCISE).read_bytes()
    change(built / EXERCISE, how)
    mine = (built / EXERCISE).read_bytes()
    edit(built, "lessons", "# Text.", "# Other text.")
    lesson = (built / NOTEBOOK).read_bytes()
    with pytest.raises(InputError, match=f"^{EXERCISE}: cell .* by hand"):
        build(built)
    assert (built / EXERCISE).read_bytes() == mine
    assert (built / NOTEBOOK).read_bytes() == lesson
    build(built, overwrite=True)
    assert (built / EXERCISE).read_bytes() == right


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError])
def test_an_interruption_leaves_the_old_file_whole(
    built: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    before = (built / NOTEBOOK).read_bytes()
    edit(built, "lessons", "# Text.", "# Other text.")

    def fails(number: int) -> None:
        os.ftruncate(number, os.fstat(number).st_size // 2)
        raise fault(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises((KeyboardInterrupt, InputError)):
        build(built)
    monkeypatch.undo()
    assert (built / NOTEBOOK).read_bytes() == before
    assert os.listdir(built / "notebooks") == ["01_first.ipynb"]


def test_an_interruption_before_the_last_step_leaves_the_old_file_whole(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (built / NOTEBOOK).read_bytes()
    edit(built, "lessons", "# Text.", "# Other text.")

    def interrupted(source: Path, goal: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(built)
    assert (built / NOTEBOOK).read_bytes() == before
    assert os.listdir(built / "notebooks") == ["01_first.ipynb"]


def test_a_slip_in_any_source_stops_before_the_first_file(course: Path) -> None:
    edit(course, "exercises", "    ### END SOLUTION", "")
    with pytest.raises(InputError, match=r"^course/exercises/01_first.py:7: "):
        build(course)
    assert not (course / "notebooks").exists()


# --- names and settings --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1_a.py", "01-a.py", "01_A.py", "01_.py", "notes.py", "001_a.py"])
def test_a_source_with_another_name_is_refused(course: Path, name: str) -> None:
    (course / "course/lessons" / name).write_text("# %%\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"^course/lessons/{name}: .*NN_name.py"):
        check(course)


def test_other_files_may_stand_beside_the_sources(course: Path) -> None:
    for name in ("README.md", ".#01_first.py"):
        (course / "course/lessons" / name).write_text("x", encoding="utf-8")
    assert build(course) == ALL


def test_two_sources_with_one_number_are_refused(course: Path) -> None:
    (course / "course/exercises/01_other.py").write_text("# %%\n", encoding="utf-8")
    with pytest.raises(InputError, match="number 01 is already that of course/exercises/01_first"):
        build(course)


def test_a_folder_without_course_and_bad_text(course: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the folders course/lessons/"):
        build(tmp_path / "nowhere")
    (course / "course/lessons/02_latin.py").write_bytes("# %%\n# é\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"^course/lessons/02_latin.py: .*UTF-8"):
        build(course)


def test_lessons_alone_are_a_course(course: Path) -> None:
    (course / "course/exercises/01_first.py").unlink()
    (course / "course/exercises").rmdir()
    assert build(course) == [NOTEBOOK]


def test_force_needs_execute(course: Path) -> None:
    with pytest.raises(InputError, match="execute=True"):
        build(course, force=True)


WITHOUT_THE_EXTRA = """
import sys
for name in ("nbformat", "nbclient", "jupyter_client", "ipykernel", "torch"):
    sys.modules[name] = None
from lgcourse.authoring import build, parse
from lgcourse.errors import InputError
print(len(parse("# %%")))
try:
    build(sys.argv[1])
except InputError as error:
    print(error)
"""


def test_without_the_extra_sources_can_be_read_and_the_missing_package_is_named(
    course: Path,
) -> None:
    package = str(Path(lgcourse.errors.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA, str(course)],
        env=os.environ | {"PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=True,
    )
    cells, message = done.stdout.splitlines()
    assert cells == "1"
    assert "needs nbformat" in message
    assert "pip install 'lgcourse[course]'" in message
