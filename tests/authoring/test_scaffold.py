"""A folder for a task of one's own: whole or not there, and its report says what was measured."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lgcourse
from lgcourse import tasks
from lgcourse.authoring import scaffold
from lgcourse.authoring.scaffold import check_name, kebab_case, new_task
from lgcourse.errors import InputError
from lgcourse.training import Settings, build_model

ROOT = Path(lgcourse.__file__).resolve().parents[1]
KEBAB = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
SMALL = '{"steps": 150, "width": 16, "heads": 2, "samples": 50, "seed": 3}'


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def run(folder: Path, cwd: Path) -> subprocess.CompletedProcess:
    """Run the script of a folder as a person would, from some other folder."""
    return subprocess.run(
        [sys.executable, str(folder / "run.py")],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )


def small(folder: Path, *changes: tuple[str, str]) -> None:
    """Let the script train less."""
    text = (folder / "run.py").read_text(encoding="utf-8")
    (line,) = re.findall(r"^SETTINGS.*$", text, flags=re.MULTILINE)
    edit(folder / "run.py", (line, f"SETTINGS: dict[str, Any] = {SMALL}"), *changes)


def rows(report: str, heading: str) -> dict[str, dict[str, str]]:
    """Read the table below a heading: first cell -> column -> cell."""
    part = report.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {line[0]: dict(zip(head, line, strict=True)) for line in body}


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A small run with a prediction and notes, in a folder with spaces in its name."""
    folder = new_task("carry-on", tmp_path_factory.mktemp("some place") / "my own task")
    guess = ('{"ideal-sh": None, "rpe": None}', '{"ideal-sh": True, "rpe": False}')
    small(folder, guess)
    (folder / "notes.md").write_text("It surprised me.\n", encoding="utf-8")
    (folder / "report.md").write_text("an older report, " * 1000, encoding="utf-8")
    done = run(folder, folder.parent)
    assert done.returncode == 0, done.stderr
    return folder, (folder / "report.md").read_text(encoding="utf-8"), done


def test_the_report_states_what_was_measured(reported, monkeypatch):
    """Trained again here, without the script: a run on a CPU repeats bit for bit."""
    folder, report, _ = reported
    my_task = runpy.run_path(str(folder / "task.py"))["MyTask"]
    monkeypatch.setattr(tasks.registry, "_places", {"carry-on": my_task})
    found = rows(report, "Measured")
    assert list(found) == ["ideal-sh", "rpe"]
    numbers = set()
    for pe, row in found.items():
        settings = Settings("carry-on", pe, 5, (5, 10, 50), **eval(SMALL))
        settings, task, model = build_model(settings)
        lgcourse.fit(
            model, task, range(1, 6), 150, 3, learning_rate=settings.learning_rate, device="cpu"
        )
        table = lgcourse.evaluate(model, task, [5, 10, 50], samples=50, seed=3)
        for scale, share in table.exact_match.items():
            assert row[f"exact match at {scale}"] == f"{share:.3f}", (pe, scale)
            numbers.add(share)
        assert (row["layers"], row["updates"]) == (str(settings.layers), "150")
        near, far = table.exact_match[5], table.exact_match[50]
        outcome = "fails" if near >= 0.9 else "not trained"
        assert row["measured"] == ("generalises" if far >= 0.9 else outcome)
    assert len(numbers) > 2, "all scores are alike: this test could not tell them apart"
    assert "with seed 3, tested on 50 new samples" in report


def test_the_report_states_the_predictions_and_whether_they_held(reported):
    _, report, done = reported
    said = rows(report, "Predicted")
    assert {pe: row["theory says"] for pe, row in said.items()} == {
        "ideal-sh": "generalises",
        "rpe": "fails",
    }
    assert {pe: row["I said"] for pe, row in said.items()} == {
        "ideal-sh": "generalises",
        "rpe": "fails",
    }
    assert done.stdout.index("theory says") < done.stdout.index("report: ")
    compared = report.split("\n## Compared\n")[1]
    for pe, row in rows(report, "Measured").items():
        (line,) = re.findall(rf"^- {pe}: (.*)$", compared, flags=re.MULTILINE)
        if row["measured"] == "not trained":
            assert "says nothing about length" in line
        else:
            right = row["measured"] == said[pe]["I said"]
            assert line.endswith("I was right." if right else "I was wrong.")


def test_the_figure_has_its_text_beside_it_and_in_the_file(reported):
    folder, report, _ = reported
    ((alt, file),) = re.findall(r"!\[(.*?)\]\((.*?)\)", report)
    data = (folder / file).read_bytes()
    assert data.startswith(b"\x89PNG") and alt.encode() in data
    assert "trained on scales up to 5" in alt
    for pe, row in rows(report, "Measured").items():
        shares = [float(row[f"exact match at {scale}"]) for scale in (5, 10, 50)]
        assert pe + ": {:.2f} at 5, {:.2f} at 10, {:.2f} at 50.".format(*shares) in alt


def test_the_report_is_one_page_of_this_task_and_ends_with_the_notes(reported):
    folder, report, _ = reported
    assert "\n# carry-on\n" in report and "`3..1.=` gives `33311`" in report
    assert report.endswith("\n## Notes\n\nIt surprised me.\n")
    assert "older report" not in report and len(report.splitlines()) < 70
    made = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert made == {*scaffold.FILES, "report.md", "exact-match.png"}


def test_the_words_of_the_comparison(monkeypatch):
    monkeypatch.setitem(sys.modules, "task", SimpleNamespace(MyTask=None))
    compare = runpy.run_path(str(scaffold.TEMPLATES / "run.py"))["compare"]
    assert compare(True, True, "generalises") == "generalises, and theory agrees. I was right."
    assert compare(True, False, "fails") == "fails, and theory agrees. I was wrong."
    assert compare(None, True, "fails") == (
        "fails, and theory said otherwise. I wrote no prediction."
    )
    assert compare(False, None, "generalises") == (
        "generalises, and theory is silent. I was wrong."
    )
    assert "I was" not in compare(False, False, "not trained")


WRONG = {
    "rule": (("next or before", "before or next"), "the circuit makes y"),
    "operands": (("[y(T - 1), x(T)]", "[x(T), y(T - 1)]"), "the circuit makes y"),
    "answer": (("== 0, y[:, t - 1]", "== 0, y[:, 0]"), "the circuit makes y"),
    "a step too few": (("return [first, family(", "return [family("), "no step writes it"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_circuit_is_caught_before_anything_is_trained(tmp_path, name):
    change, told = WRONG[name]
    folder = new_task("carry-on", tmp_path / "a task")
    edit(folder / "task.py", change)
    done = run(folder, tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("error: task 'carry-on' at sca")
    assert told in done.stderr
    assert not (folder / "report.md").exists()


BY_SCALE = """
from lgcourse.tasks.base import digits, numbered

class MyTask(Task):
    name, example, vocabulary = "carry-on", "3.21.=", ".1234="
    arity, chance = 1, 0.2

    def layout(self, scale):
        return [*numbered("x", scale), "=", *numbered("y", scale)]

    def prompt(self, scale, batch, generator):
        x = digits(5, (batch, scale), generator)
        return torch.cat([x, torch.full((batch, 1), 5)], dim=1)

    def answer(self, prompt, scale):
        return prompt[:, :scale].flip(1)

    def circuit(self, scale):
        take = identity(5)
        rows = [(f"y{t}", take, [f"x{scale + 1 - t}"]) for t in range(1, scale + 1)]
        return self.steps(scale, rows)
"""


def test_a_task_said_scale_by_scale_is_reported_too(tmp_path):
    folder = new_task("carry-on", tmp_path / "a task")
    with (folder / "task.py").open("a", encoding="utf-8") as file:
        file.write(BY_SCALE)
    small(folder, (', "rpe": None}', "}"))
    (folder / "notes.md").unlink()
    done = run(folder, tmp_path)
    assert done.returncode == 0, done.stderr
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "`3.21.=` gives `.12.3`" in report and "## Notes" not in report
    assert rows(report, "Measured")["ideal-sh"]["proof"] != ""


@pytest.mark.parametrize(
    "change, told",
    [
        (('"rpe": None}', '"rpee": None}'), "did you mean 'rpe'"),
        (('"rpe": None}', '"rpe": "no"}'), "must be True, False or None, got 'no'"),
    ],
)
def test_a_slip_in_the_settings_is_one_line(tmp_path, change, told):
    folder = new_task("carry-on", tmp_path / "a task")
    edit(folder / "run.py", change)
    done = run(folder, tmp_path)
    assert done.returncode == 2 and told in done.stderr and done.stderr.count("\n") == 1


def test_a_new_folder_has_its_name_everywhere_and_works_as_the_templates_do(tmp_path):
    folder = new_task("carry-on", tmp_path / "deep" / "er")
    assert {path.name for path in folder.iterdir()} == set(scaffold.FILES)
    named = {file for file in scaffold.FILES if "carry-on" in (folder / file).read_text()}
    assert named == {"README.md", "task.py"}
    for file in scaffold.FILES:
        text = (folder / file).read_text(encoding="utf-8")
        assert scaffold.STANDS_FOR not in text
        template = (scaffold.TEMPLATES / file).read_text(encoding="utf-8")
        assert text.replace("carry-on", scaffold.STANDS_FOR) == template
    assert "\n    python run.py\n" in (folder / "README.md").read_text().replace("```\n", "\n    ")
    assert runpy.run_path(str(folder / "task.py"))["MyTask"]().solve("..41.=") == "..411"


@pytest.mark.parametrize("what", ["folder", "empty folder", "file", "link to nothing"])
def test_nothing_is_overwritten(tmp_path, what):
    place = tmp_path / "mine"
    if what == "file":
        place.write_text("mine")
    elif what == "link to nothing":
        place.symlink_to(tmp_path / "nothing")
    else:
        place.mkdir()
    if what == "folder":
        (place / "task.py").write_text("mine")
    before = sorted((p.name, p.lstat().st_mtime_ns) for p in tmp_path.rglob("*"))
    with pytest.raises(InputError, match="exists already, and nothing in it is overwritten"):
        new_task("carry-on", place)
    assert sorted((p.name, p.lstat().st_mtime_ns) for p in tmp_path.rglob("*")) == before


def test_a_second_call_is_refused_and_keeps_what_was_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_task("carry-on") == Path("carry-on")
    (tmp_path / "carry-on" / "task.py").write_text("changed")
    with pytest.raises(InputError, match="another name, or another --folder"):
        new_task("carry-on")
    assert (tmp_path / "carry-on" / "task.py").read_text() == "changed"


def test_a_folder_is_whole_or_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(scaffold, "FILES", (*scaffold.FILES, "missing.py"))
    with pytest.raises(InputError, match="cannot make '.*mine': No such file"):
        new_task("carry-on", tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


NEAREST = {
    "MyTask": "my-task",
    "my_task": "my-task",
    "carry--on": "carry-on",
    "-carry-on-": "carry-on",
    "Carry On!": "carry-on",
    "2-sums": "task-2-sums",
    "../carry": "carry",
    "a/b": "a-b",
    "Größe": "groe",
    "": "my-task",
    "...": "my-task",
    "x" * 61: "x" * 60,
    "con\ntrol": "con-trol",
}


@pytest.mark.parametrize("name", NEAREST, ids=ascii)
def test_a_name_in_another_case_is_refused_with_the_nearest_one(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"write '{NEAREST[name]}', not"):
        new_task(name)
    assert list(tmp_path.iterdir()) == []


@given(st.text())
def test_what_is_proposed_is_a_name_and_stays_as_it_is(text):
    name = kebab_case(text)
    assert re.fullmatch(KEBAB, name) and len(name) <= scaffold.LONGEST
    assert kebab_case(name) == name
    if name not in tasks.names():
        check_name(name)


@given(st.from_regex(KEBAB, fullmatch=True).filter(lambda name: len(name) <= 60))
def test_every_name_in_kebab_case_is_taken(name):
    assert kebab_case(name) == name


@pytest.mark.parametrize("name", ["copy", "parity-cot"])
def test_the_name_of_a_task_of_the_course_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=f"call yours 'my-{name}'"):
        new_task(name, tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []
