"""Do notebooks run for real, alike in every run, and is a cell that fails named?

Each test starts a kernel, about a second.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lgcourse.errors
from lgcourse.authoring import build, check
from lgcourse.authoring.execute import execute
from lgcourse.authoring.notebook import to_notebook, was_run
from lgcourse.authoring.percent import parse
from lgcourse.authoring.sources import targets
from lgcourse.errors import InputError

LESSON = """# %% [markdown]
# # Settings

# %%
import os
import sys

import beside_the_course
import ipywidgets
import matplotlib.pyplot as plt
from lgcourse.errors import InputError

print(os.environ["OMP_NUM_THREADS"], hash("a"), os.path.basename(os.getcwd()), plt.get_backend())
print("last", file=sys.stderr)
_ = plt.plot([1, 2])

# %%
print({"only text"}, InputError.__name__)
ipywidgets.IntSlider(3)
"""


def write(root: Path, text: str, folder: str = "lessons") -> Path:
    path = root / "course" / folder / "01_first.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return root


def outputs(root: Path, path: str) -> list[list[dict[str, Any]]]:
    notebook = json.loads((root / path).read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code[0]["metadata"]["tags"] == ["setup"] and code[0]["outputs"] == []
    return [cell["outputs"] for cell in code[1:]]


def test_a_lesson_runs_alike_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "beside_the_course.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.path.relpath(tmp_path / "helpers"))
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    write(tmp_path, LESSON)
    lines: list[str] = []
    assert build(tmp_path, execute=True, echo=lines.append) == ["notebooks/01_first.ipynb"]
    assert lines[0] == "notebooks/01_first.ipynb: running, code cells: 3"
    assert ": ran, written, " in lines[1]
    assert check(tmp_path) == []
    path = tmp_path / "notebooks/01_first.ipynb"
    data = path.read_bytes()
    notebook = json.loads(data)

    first, second = outputs(tmp_path, "notebooks/01_first.ipynb")
    assert [output["output_type"] for output in first] == ["stream", "stream", "display_data"]
    threads, hashed, folder, backend = "".join(first[0]["text"]).split()
    assert (threads, folder) == ("1", "notebooks")
    assert "inline" in backend
    truth = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert hashed == truth.stdout.strip()
    assert "image/png" in first[2]["data"]
    assert [cell.get("execution_count") for cell in notebook["cells"]] == [None, 1, 2, 3]
    assert all(
        not cell["metadata"] for cell in notebook["cells"] if cell is not notebook["cells"][1]
    )
    assert "version" not in notebook["metadata"]["language_info"]

    model = second[1]["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
    state = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    assert state[model]["model_name"] == "IntSliderModel"
    assert state[model]["state"]["layout"].removeprefix("IPY_MODEL_") in state

    assert build(tmp_path, execute=True) == []  # not run again
    assert path.read_bytes() == data
    assert build(tmp_path, execute=True, force=True) == []  # run again, with the same result
    assert path.read_bytes() == data


def test_a_student_notebook_runs_to_its_end_and_its_solution_is_stored(course: Path) -> None:
    write(course, "# %%\n1 + 1\n")
    build(course, execute=True)
    assert check(course) == []
    assert outputs(course, "solutions/01_first.ipynb")[0][0]["text"] == ["3\n"]
    assert outputs(course, "exercises/01_first.ipynb") == [[]]
    target = next(t for t in targets(course) if t.path.startswith("exercises/"))
    notebook = to_notebook(target.cells, target.source)
    done = execute(notebook, target.cells, target.source, course / "exercises", course)
    assert was_run(done)
    assert done.cells[2].outputs[0].text == "Ellipsis\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('fine')\n1 / 0", "the cell raised ZeroDivisionError: division by zero"),
        ("import os\nos._exit(3)", "the kernel died in this cell"),
        ("while True: pass", "the cell ran longer than 1 s"),
        ("import os\nprint(os.getcwd())", "the output of this cell holds this machine's path"),
        ("object()", "the output of this cell holds a memory address"),
    ],
)
def test_a_cell_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    monkeypatch.setattr(importlib.import_module(execute.__module__), "CELL_SECONDS", 1)
    write(tmp_path, f"# %% [markdown]\n# Text.\n\n# %%\n\n{code}\n")
    build(tmp_path)
    before = (tmp_path / "notebooks/01_first.ipynb").read_bytes()
    with pytest.raises(InputError) as caught:
        build(tmp_path, execute=True)
    assert str(caught.value).startswith("course/lessons/01_first.py:6: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "notebooks/01_first.ipynb").read_bytes() == before


def test_a_cell_may_show_an_error_on_purpose(tmp_path: Path) -> None:
    write(tmp_path, '# %% tags=["raises-exception"]\n1 / 0\n# %%\nprint("after")\n')
    build(tmp_path, execute=True)
    error, after = outputs(tmp_path, "notebooks/01_first.ipynb")
    assert error[0]["ename"] == "ZeroDivisionError"
    assert after[0]["text"] == ["after\n"]
    assert check(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_stops_the_build_and_the_kernel(tmp_path: Path) -> None:
    """The cell interrupts the build itself, so the test does not depend on time."""
    stop = (
        "import os, pathlib, signal, threading\n"
        "_ = pathlib.Path('kernel').write_text(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "threading.Event().wait()\n"
    )
    write(tmp_path, f"# %%\n{stop}")
    build(tmp_path)
    before = (tmp_path / "notebooks/01_first.ipynb").read_bytes()
    program = f"from lgcourse.authoring import build; build({str(tmp_path)!r}, execute=True)"
    package = str(Path(lgcourse.errors.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == -signal.SIGINT, done.stderr
    assert "KeyboardInterrupt" in done.stderr
    assert "InputError" not in done.stderr
    assert (tmp_path / "notebooks/01_first.ipynb").read_bytes() == before
    assert sorted(os.listdir(tmp_path / "notebooks")) == ["01_first.ipynb", "kernel"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "notebooks/kernel").read_text()), 0)


def test_parse_is_what_a_notebook_is_made_of(tmp_path: Path) -> None:
    """Two cells, run for real, from text to outputs."""
    cells = parse("# %%\nx = 20\n# %%\nx + 1\n")
    done = execute(to_notebook(cells, "a.py"), cells, "a.py", tmp_path, tmp_path)
    assert [cell.execution_count for cell in done.cells] == [1, 2]
    assert [len(cell.outputs) for cell in done.cells] == [0, 1]
    assert done.cells[1].outputs[0].data["text/plain"] == "21"
