"""lgcourse grade on the command line: our own notebooks, outputs, bad input, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lgcourse
from lgcourse import cli
from lgcourse.grading import exercises, questions
from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.grader import Grader, Settings
from tests.grading.handing_in import RIGHT, notebook

ROOT = Path(lgcourse.__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def ready():
    try:
        with Grader(Settings()) as grader:
            grader.zygote()
    except CannotGrade as why:
        pytest.skip(f"no process for student code here: {why}")


def call(capsys, *arguments):
    code = cli.run(["grade", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def points(number):
    return sum(question.points for question in questions(number))


@pytest.mark.parametrize("folder", ["solutions", "exercises"])
def test_the_courses_own_notebooks(capsys, folder):
    code, out, _ = call(capsys, ROOT / folder, "--json")
    made = json.loads(out)["submissions"]
    assert code == 0 and len(made) == len(list((ROOT / folder).glob("*.ipynb"))) > 0
    for row in made:
        number = int(row["id"][:2])
        assert number in exercises() and row["max_score"] == points(number)
        assert row["status"] == "graded"
        assert row["score"] == (points(number) if folder == "solutions" else 0)
        wanted = {"passed"} if folder == "solutions" else {"not attempted"}
        assert {question["outcome"] for question in row["questions"]} == wanted


def test_every_output_at_once(capsys, tmp_path):
    (tmp_path / "anna.ipynb").write_text(notebook(*RIGHT[:3]))
    outputs = ["--csv", tmp_path / "g.csv", "--gradescope", tmp_path / "r.json"]
    code, out, err = call(
        *(capsys, tmp_path / "anna.ipynb", *outputs, "--html", tmp_path / "pages", "--seed", 7)
    )
    assert code == 0 and "anna      5 of 8  graded" in out
    assert "our own solutions get full marks" in err and "1 of 1: anna: 5 of 8" in err
    assert (tmp_path / "g.csv").read_text().splitlines()[1] == "anna,graded,5,8,2,3,0"
    assert json.loads((tmp_path / "r.json").read_text())["score"] == 5
    assert "anna: 5 of 8 points" in (tmp_path / "pages" / "anna.html").read_text()
    code, _, err = call(capsys, tmp_path / "anna.ipynb", *outputs, "--seed", 7, "--resume")
    assert code == 0 and "1 of 1 are graded already" in err and "our own" not in err


def test_what_could_not_be_graded_is_no_zero_and_code_1(capsys, tmp_path):
    answer = "import nosuch\ndef exact_match(g, t):\n    return nosuch.equal(g, t)"
    (tmp_path / "a.py").write_text(answer)
    code, out, _ = call(capsys, tmp_path, "--json")
    (row,) = json.loads(out)["submissions"]
    assert code == 1 and row["score"] is None and row["status"] == "could not be graded"
    assert row["questions"][0]["score"] is None
    assert "nosuch, which is not installed" in row["questions"][0]["message"]


BAD = [
    (["nowhere"], "there is no 'nowhere'"),
    (["."], "holds no notebook"),
    (["a.py", "--seed", "-1"], "seed must be a whole number of at least 0"),
    (["a.py", "--jobs", "0"], "jobs must be a whole number of at least 1"),
    (["a.py", "--timeout", "0"], "timeout must be 0.1 to 86400 seconds"),
    (["a.py", "--timeout", "nan"], "timeout must be 0.1 to 86400 seconds"),
    (["a.py", "--memory", "1"], "memory must be a whole number of at least 64"),
    (["a.py", "--only", "exact"], "unknown question 'exact'; did you mean 'exact_match'"),
    (["a.py", "--late", "nowhere.csv"], "cannot read 'nowhere.csv'"),
    (["a.py", "--csv", "no/where.csv"], "give a file in a folder that exists"),
    (["a.py", "--html", "a.py"], "cannot make the folder 'a.py'"),
    (["a.py", "--resume"], "--resume needs --csv"),
    (["a.py", "--dask", "tcp://127.0.0.1:9"], "pip install joblib distributed"),
    ([], "Missing argument"),
]


@pytest.mark.parametrize(("arguments", "hint"), BAD, ids=lambda v: "_".join(v)[:40])
def test_bad_input_is_one_line_and_code_2(capsys, tmp_path, monkeypatch, arguments, hint):
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(tmp_path)
    if "a.py" in arguments:
        Path("a.py").write_text("def exact_match(g, t): return g")
    code, out, err = call(capsys, *arguments)
    assert code == 2 and out == "" and "Traceback" not in err
    assert err.splitlines()[-1].startswith("error: ") and hint in err
