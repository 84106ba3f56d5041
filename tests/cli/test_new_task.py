"""`lgcourse new-task`: the command that it prints runs to the end, from any folder."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

import lgcourse
from lgcourse import cli

ROOT = Path(lgcourse.__file__).resolve().parents[1]


def call(capsys, *arguments):
    code = cli.run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_printed_command_reports_what_theory_says_of_the_example(capsys, tmp_path, monkeypatch):
    home, elsewhere = tmp_path / "my tasks", tmp_path / "else where"
    home.mkdir(), elsewhere.mkdir()
    monkeypatch.chdir(home)
    code, out, err = call(capsys, "new-task", "carry-on")
    assert code == 0 and err == "" and out.startswith("carry-on: change task.py")
    done = subprocess.run(
        shlex.split(out.splitlines()[-1]),
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = (home / "carry-on" / "report.md").read_text(encoding="utf-8")
    # the relation with Scale Hint is right at ten times the training scale and proved so; plain
    # distances are right in training and nowhere else
    assert "| ideal-sh | nothing | generalises |" in report
    assert "| rpe | nothing | fails |" in report
    assert "| 1.000 | generalises | certified, every scale |" in report
    assert "- ideal-sh: generalises, and theory agrees. I wrote no prediction." in report
    assert "- rpe: fails, and theory agrees. I wrote no prediction." in report
    assert list(elsewhere.iterdir()) == []


def test_the_folder_can_be_chosen(capsys, tmp_path):
    place = tmp_path / "a" / "my capstone"
    code, out, _ = call(capsys, "new-task", "carry-on", "--folder", str(place))
    assert code == 0 and shlex.split(out.splitlines()[-1])[1] == str(place.resolve() / "run.py")
    assert (place / "task.py").is_file()


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["MyTask"], "write 'my-task', not 'MyTask'"),
        (["copy"], "call yours 'my-copy'"),
        (["carry-on", "--folder", "."], "exists already"),
        (["carry-on", "--folder", "x" * 300], "cannot make"),
        ([], "Missing argument"),
    ],
    ids=["case", "taken", "there already", "impossible", "no name"],
)
def test_bad_input_is_one_line_and_code_2(capsys, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "new-task", *arguments)
    assert code == 2 and out == ""
    assert err.count("\n") == 1 and err.startswith("error: ") and told in err
    assert list(tmp_path.iterdir()) == []


def test_the_readme_names_the_command():
    assert "\nlgcourse new-task " in (ROOT / "README.md").read_text(encoding="utf-8")
