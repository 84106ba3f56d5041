"""Does a class get the points it earned, in every output, and again after an interruption?"""

from __future__ import annotations

import csv
import html.parser
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lgcourse
from lgcourse.errors import InputError
from lgcourse.grading import Settings, grade, questions
from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.asked import exercises_in
from lgcourse.grading.feedback import page
from lgcourse.grading.gradebook import as_csv, as_gradescope, as_json, lines, read_late
from lgcourse.grading.grader import CANNOT, Grader
from lgcourse.grading.sandbox.parent import Limits, Zygote, protections_off
from lgcourse.grading.submissions import find
from tests.grading.handing_in import COPY, EXACT, RIGHT, STEP, notebook

ROOT = Path(lgcourse.__file__).parents[1]
SETTINGS = Settings(seed=3, limits=Limits(5.0, 1024))
ANY = (
    "import torch\ndef exact_match(guess, target):\n    return (guess == target).any(dim=1)"
    "\n    # <b>&\n"
)
FILES = {
    "anna": notebook(*RIGHT),
    "bert": notebook(ANY, STEP),
    "copied cells": notebook("import torch", EXACT, EXACT, STEP, EXACT),
    "defined twice": notebook("import torch", ANY, STEP, EXACT),
    "defined wrongly last": notebook("import torch", EXACT, STEP, ANY),
    "syntax error elsewhere": notebook("import torch", "def f(:", EXACT, STEP),
    "syntax error in the answer": notebook("import torch", EXACT + "]", STEP),
    "error elsewhere": notebook("import torch\nx = 1 / 0", EXACT, STEP),
    "a large cell": notebook("import torch", f"data = {'x' * 1_500_000!r}", EXACT, STEP),
    "magics": notebook("%matplotlib inline\n!pip install x\nimport torch", EXACT, STEP),
    "missing package": notebook("import nosuch\nimport torch", EXACT, STEP),
    "uses a missing package": notebook(
        "import torch, nosuch", STEP, "def exact_match(g, t):\n    return nosuch.equal(g, t)"
    ),
    "renamed arguments": notebook(
        "import torch", "def exact_match(größe, 数):\n    return (größe == 数).all(1)", STEP
    ),
    "only checks": notebook("from lgcourse.grading import checks\nex = checks(1)"),
    "asks the library": notebook(
        "from lgcourse import tasks\nimport torch\n" + STEP,
        "def exact_match(g, t):\n    return tasks.get('copy').answer(g, t)",
    ),
    "raises": notebook("import torch", "def exact_match(g, t):\n    return g @ t", STEP),
    "returns nothing": notebook("import torch", "def exact_match(g, t):\n    g == t", STEP),
    "empty": "",
    "broken": '{"cells": [',
    "=cmd()": notebook(*RIGHT),
    "<b>": notebook(*RIGHT),
}
POINTS = {
    **dict.fromkeys(FILES, 5),
    **{"anna": 8, "bert": 3, "defined wrongly last": 3, "syntax error in the answer": 3},
    **{"only checks": 0, "asks the library": 3, "raises": 3, "returns nothing": 3, "empty": 0},
    **{"broken": 0, "=cmd()": 8, "<b>": 8, "uses a missing package": None},
}


@pytest.fixture(scope="module")
def ready():
    try:
        with Grader(SETTINGS) as grader:
            grader.zygote()
    except CannotGrade as why:
        pytest.skip(f"no process for student code here: {why}")


@pytest.fixture(scope="module")
def rows(ready, tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for name, text in FILES.items():
        (folder / f"{name}.ipynb").write_text(text)
    return {row["id"]: row for row in grade([str(folder)], SETTINGS, say=str)}


def told(row, name):
    (question,) = [q for q in row["questions"] if q["name"] == name]
    return question


@pytest.mark.parametrize("name", FILES)
def test_points(rows, name):
    assert rows[name]["score"] == POINTS[name], rows[name]
    assert rows[name]["max_score"] == 8


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("anna", "passed", "all 10 checks passed"),
        ("bert", "failed", "one-wrong-token: called with guess = tensor("),
        ("bert", "failed", "likely: every token counts"),
        ("defined twice", "passed", "exact_match is defined more than once (cells 2, 4); the last"),
        ("defined wrongly last", "failed", "(cells 2, 4); the last counts"),
        (
            "syntax error in the answer",
            "failed",
            "is not defined after the cells ran. cell 2",
        ),
        ("uses a missing package", CANNOT, "it needs the package nosuch, which is not installed"),
        ("only checks", "not attempted", "there is no exact_match in it"),
        ("asks the library", "failed", "lgcourse.tasks.get is not there while answers are graded"),
        ("raises", "failed", "in cell 2, line 2, exact_match: return g @ t"),
        ("returns nothing", "not attempted", "the function returns None"),
        ("empty", "not attempted", "nothing of it can be read: empty.ipynb: the file is empty"),
    ],
)
def test_what_is_told(rows, name, outcome, words):
    question = told(rows[name], "exact_match")
    assert question["outcome"] == outcome and words in question["message"]


@pytest.mark.parametrize(
    ("name", "status", "note"),
    [
        ("anna", "graded", None),
        ("missing package", "graded", "cell 1: the package nosuch is not installed here"),
        ("syntax error elsewhere", "graded", "cell 2, line 1: SyntaxError"),
        ("error elsewhere", "graded", "in cell 1, line 2: x = 1 / 0: ZeroDivisionError"),
        ("uses a missing package", CANNOT, "cell 1: the package nosuch is not installed here"),
        ("empty", "unreadable", "empty.ipynb: the file is empty"),
        ("broken", "unreadable", "broken.ipynb: the notebook is broken JSON"),
    ],
)
def test_status_and_notes(rows, name, status, note):
    assert rows[name]["status"] == status
    assert (note is None and not rows[name]["notes"]) or rows[name]["notes"][0].startswith(note)


# --- what is written ------------------------------------------------------------------------------
def test_the_json_has_the_fixed_names(rows):
    made = json.loads(json.dumps(as_json(list(rows.values()))))
    for row in made["submissions"]:
        assert set(row) == {"id", "score", "max_score", "status", "questions", "notes"}
        for question in row["questions"]:
            assert set(question) == {"name", "score", "max_score", "outcome", "message"}
            assert question["outcome"] in ("passed", "failed", "not attempted", CANNOT)


def test_the_gradebook_reads_back(rows):
    made = list(csv.DictReader(as_csv(list(rows.values())).splitlines()))
    by_id = {row["id"]: row for row in made}
    assert by_id["anna"] == {
        **{"id": "anna", "status": "graded", "score": "8", "max_score": "8"},
        **{"exact_match": "2", "addition_step": "3", "copy_relation": "3"},
    }
    assert by_id["uses a missing package"]["score"] == "", "never a zero"
    assert by_id["uses a missing package"]["addition_step"] == "3"
    assert "'=cmd()" in by_id and "=cmd()" not in by_id


def test_gradescope_gets_one_submission(rows):
    made = json.loads(as_gradescope(rows["bert"]))
    assert made["score"] == 3 and [t["score"] for t in made["tests"]] == [0, 3, 0]
    assert [t["max_score"] for t in made["tests"]] == [2, 3, 3]
    assert [t["status"] for t in made["tests"]] == ["failed", "passed", "failed"]
    lost = json.loads(as_gradescope(rows["uses a missing package"]))
    assert "score" not in lost and "needs the package nosuch" in lost["output"]
    assert "exact_match" not in [t["name"] for t in lost["tests"]]
    assert not any("score" in test for test in lost["tests"]), "or their sum would be the score"


def test_people_read_a_line_per_student_and_what_is_missing(rows):
    text = "\n".join(lines(list(rows.values())))
    assert "exact_match: failed: one-wrong-token: 4 of 5 entries differ; the largest" in text
    assert "note: broken.ipynb: the notebook is broken JSON" in text
    assert not any("broken" in line and "exact_match" in line for line in text.splitlines())
    assert "anna" in text and "8 of 8  graded" in text and "exact_match: failed: one-wrong" in text
    assert max(map(len, text.splitlines())) <= 160


class Page(html.parser.HTMLParser):
    """What a page shows, and the tags that it is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.links = set(), "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [v for k, v in attributes if k in ("src", "href") or k.startswith("on")]

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", FILES)
def test_a_page_needs_no_server_and_shows_nothing_of_hidden_cases(rows, name):
    shown = Page(page(rows[name]))
    assert not shown.links and not shown.tags & {"script", "img", "iframe", "b", "object", "form"}
    assert name in shown.text
    for question in questions(1):
        for cases in question.cases(SETTINGS.seed).values():
            for case in cases:
                tensors = [str(a.tolist()) for a in case if hasattr(a, "tolist")]
                assert not any(len(t) > 20 and t in shown.text for t in tensors)


def test_a_page_has_the_learners_line_and_expected_and_actual(rows):
    text = Page(page(rows["bert"])).text
    assert "0 of 2 points, failed" in text and "ok" in text and "not run" in text
    assert "expected [" in text and "got      [" in text and "likely: every token counts" in text
    assert "Your answer: cell 1, line 2: def exact_match(guess, target):" in text
    assert "return g @ t" in Page(page(rows["raises"])).text


def test_what_fails_in_hidden_cases_only_is_told_without_their_data(ready, tmp_path):
    seen = [case for cases in questions(1)[0].cases(0).values() for case in cases]
    known = [(g.tolist(), t.tolist()) for g, t in seen]
    by_heart = (
        f"import torch\nKNOWN = {known!r}\ndef exact_match(g, t):\n"
        "    if (g.tolist(), t.tolist()) in KNOWN: return (g == t).all(1)\n"
    )
    (tmp_path / "a.py").write_text(by_heart + "    return (g == t).any(1)")
    (tmp_path / "b.py").write_text(by_heart + "    raise ValueError(str(g.tolist()))")
    (tmp_path / "c.py").write_text(by_heart + "    class Leak(Exception): pass\n    raise Leak(g)")
    made = grade([str(tmp_path)], Settings(9, SETTINGS.limits, "exact_match"), say=str)
    texts = [row["questions"][0]["message"] for row in made]
    assert [row["score"] for row in made] == [0, 0, 0]
    assert texts[0].startswith("the visible cases pass, but not other cases of one-wrong-token")
    assert texts[1].endswith("ValueError in cell 1, line 5") and "[[" not in texts[1]
    assert texts[2].endswith("an error in cell 1, line 6")
    assert sum(q[2] == "passed" for q in made[0]["questions"][0]["checks"]) == 7
    assert [r["score"] for r in grade([str(tmp_path)], Settings(0), say=str)] == [2, 2, 2]


# --- options --------------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_points(ready, tmp_path):
    (tmp_path / "a.ipynb").write_text(FILES["bert"])
    one, two = (grade([str(tmp_path)], SETTINGS, say=str) for _ in range(2))
    assert one == two


def test_only_one_question(ready, tmp_path):
    (tmp_path / "a.ipynb").write_text(FILES["bert"])
    (row,) = grade([str(tmp_path)], Settings(only="addition_step"), say=str)
    assert (row["score"], row["max_score"]) == (3, 3)
    with pytest.raises(InputError, match="did you mean 'addition_step'"):
        grade([str(tmp_path)], Settings(only="adition_step"), say=str)


def test_lateness_is_taken_off(ready, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.ipynb").write_text(FILES["anna"])
    late = tmp_path / "late.csv"
    late.write_text("id,percent\nb,12.5\n")
    made = grade([str(tmp_path)], SETTINGS, late=read_late(str(late)), say=str)
    assert [(r["score"], r["late_percent"]) for r in made] == [(8, 0.0), (7.0, 12.5)]
    assert "12.5 % off" in lines(made)[1] and "12.5 % off" in page(made[1])
    assert as_csv(made).splitlines()[2].startswith("b,graded,7.0,8,12.5,")
    with pytest.raises(InputError, match="unknown id .* 'c'"):
        grade([str(tmp_path)], SETTINGS, late={"c": 1.0}, say=str)


@pytest.mark.parametrize("text", ["name,days\na,1\n", "id,percent\na,101\n", "id,percent\na,x\n"])
def test_a_list_of_another_form_is_refused(tmp_path, text):
    (tmp_path / "late.csv").write_text(text)
    with pytest.raises(InputError, match="expected the columns id and percent"):
        read_late(str(tmp_path / "late.csv"))


def test_folders_stand_for_all_of_a_students_work(ready, tmp_path):
    for name, files in {
        "anna": {"one.ipynb": notebook(*RIGHT[:3]), "two.py": "import torch\n" + COPY},
        "bert": {"one.ipynb": notebook(*RIGHT), "two.py": "import torch\n" + ANY},
        "cleo": {"notes.py": "x = 1"},
    }.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    made = {row["id"]: row for row in grade([str(tmp_path)], SETTINGS, say=str)}
    assert {k: (r["score"], r["max_score"]) for k, r in made.items()} == {
        **{"anna": (8, 8), "bert": (6, 8), "cleo": (0, 8)},
    }
    words = told(made["bert"], "exact_match")["message"]
    assert "exact_match is in several files (one.ipynb, two.py); the last counts" in words


@pytest.mark.parametrize("end", ["", "and broken"])
def test_an_exercise_is_known_by_what_a_notebook_defines_anywhere_in_a_cell(tmp_path, end):
    text = notebook("import torch\n" + EXACT + "\n\n" + STEP)
    (tmp_path / "a.ipynb").write_text(text[: -len(end) or None])
    (submission,) = find([str(tmp_path)])
    assert exercises_in(submission) == {1}


def test_nothing_of_the_course_is_told(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    with pytest.raises(InputError, match="no exercise of this course is found"):
        grade([str(tmp_path)], SETTINGS, say=str)


def test_gradescope_takes_one(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.ipynb").write_text(FILES["anna"])
    with pytest.raises(InputError, match="one submission at a time, got 2"):
        grade([str(tmp_path)], SETTINGS, gradescope=str(tmp_path / "r.json"), say=str)


# --- when we are at fault -------------------------------------------------------------------------
def test_a_wrong_reference_stops_the_run(ready, tmp_path, monkeypatch):
    from lgcourse.grading import reference

    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "a.ipynb").write_text(FILES["anna"])
    wrong, folder = tmp_path / "01_wrong.ipynb", str(tmp_path / "class")
    wrong.write_text(notebook("import torch", ANY, STEP, COPY))
    monkeypatch.setattr(reference, "_solution", lambda number: wrong)
    with pytest.raises(CannotGrade, match="our own solution of exact_match .*nothing is graded"):
        grade([folder], SETTINGS, say=str)
    monkeypatch.setattr(reference, "_solution", lambda number: None)
    assert grade([folder], SETTINGS, say=str)[0]["score"] == 8, "then the functions do"


def test_without_a_process_nobody_gets_a_zero(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise CannotGrade("the user cannot read Python; make it readable")

    monkeypatch.setattr(Zygote, "__init__", fails)
    (tmp_path / "a.ipynb").write_text(FILES["anna"])
    said = []
    (row,) = grade([str(tmp_path)], SETTINGS, csv=str(tmp_path / "g.csv"), say=said.append)
    assert row["score"] is None and row["status"] == CANNOT and "make it readable" in said[0]
    assert {q["outcome"] for q in row["questions"]} == {CANNOT}
    assert (tmp_path / "g.csv").read_text().splitlines()[1] == "a,could not be graded,,8,,,"
    assert said[-2] == f"written: {tmp_path / 'g.csv'}"
    assert (
        said[-1].startswith("1 of 1 could not be graded, so without a score")
        and "resume" in said[-1]
    )


def test_a_dead_zygote_is_replaced(ready, tmp_path):
    from lgcourse.grading.submissions import program

    programs = [program("a.ipynb", FILES["anna"].encode())]
    with Grader(SETTINGS) as grader:
        assert grader.grade("a", programs, questions(1))["score"] == 8
        grader.zygote().process.kill()
        grader.zygote().process.wait()
        assert grader.grade("a", programs, questions(1))["score"] == 8


# --- interruption ---------------------------------------------------------------------------------
def command(*arguments, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}
    return [sys.executable, "-m", "lgcourse", "grade", *map(str, arguments)], environment


def test_killed_in_the_middle_a_run_is_resumed_to_the_same_gradebook(ready, tmp_path):
    folder, temporary = tmp_path / "class", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    for number in range(12):
        text = list(FILES.values())[number]
        (folder / f"s{number:02d}.ipynb").write_text(text)
    whole = [folder, "--csv", tmp_path / "whole.csv", "--html", tmp_path / "whole"]
    arguments, environment = command(*whole, TMPDIR=str(temporary))
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, "one needs a package"
    half = [folder, "--csv", tmp_path / "half.csv", "--html", tmp_path / "half"]
    arguments, environment = command(*half, TMPDIR=str(temporary))
    journal = tmp_path / "half.csv.results.jsonl"
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and _lines(journal) < 4:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and not (tmp_path / "half.csv").exists()
    kept = _lines(journal) - 1
    assert 3 <= kept < 12
    with open(journal, "a") as file:
        file.write('{"key": "s03/half a li')
    _wait_until(lambda: not _running(str(temporary)))
    arguments, environment = command(*half, "--resume")
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert f"{kept} of 12 are graded already" in done.stderr
    assert (tmp_path / "half.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    pages = sorted(p.name for p in (tmp_path / "whole").glob("*.html"))
    assert len(pages) == 12
    for name in pages:
        assert (tmp_path / "half" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not list(tmp_path.rglob("*.part"))


def _lines(path):
    return path.read_text().count("\n") if path.exists() else 0


def _running(text):
    """Process ids whose command line has a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in entry.read_text():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def _wait_until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_resume_grades_what_changed_and_refuses_another_seed(ready, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "a.ipynb").write_text(FILES["bert"])
    (folder / "b.ipynb").write_text(FILES["anna"])
    book = str(tmp_path / "g.csv")
    grade([str(folder)], SETTINGS, csv=book, say=str)
    (folder / "a.ipynb").write_text(FILES["anna"])
    said = []
    made = grade([str(folder)], SETTINGS, csv=book, resume=True, say=said.append)
    assert [r["score"] for r in made] == [8, 8] and said[0] == "1 of 2 are graded already"
    with pytest.raises(InputError, match="made with another seed"):
        grade([str(folder)], Settings(4, SETTINGS.limits), csv=book, resume=True, say=str)
    with pytest.raises(InputError, match="--resume needs --csv"):
        grade([str(folder)], SETTINGS, resume=True, say=str)


def test_jobs_give_the_same_as_one(ready, rows, tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.ipynb").write_text(text)
    assert grade([str(tmp_path)], SETTINGS, jobs=2, say=str) == list(
        rows[name] for name in sorted(rows, key=lambda n: f"{n}.ipynb")
    )


# --- with less protection -------------------------------------------------------------------------
def graded_elsewhere(*arguments):
    """Rows and what was said, with other rights on Python's folders."""
    command = [sys.executable, str(Path(__file__).with_name("elsewhere.py")), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows, said = json.loads(made.stdout)
    if rows is None:
        pytest.skip(f"the rights of Python's folders cannot be tried out here: {said[0]}")
    return rows, said


@pytest.mark.parametrize("plan", ["network", "bare"])
def test_weaker_protection_grades_the_same_and_is_said(ready, plan, tmp_path):
    for number in range(4):
        (tmp_path / f"s{number}.ipynb").write_text(FILES["bert" if number else "anna"])
    rows, said = graded_elsewhere(str(tmp_path), plan, "2", "755")
    assert [row["score"] for row in rows] == [8, 3, 3, 3], said
    off = [line for line in said if line.startswith("not protected on this system: ")]
    words = ["read files of this machine", "see other processes", "not in all"]
    words += ["use the network"] if plan == "bare" else []
    assert all(any(w in line for line in off) for w in words), off


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can hide it")
def test_a_python_that_the_grading_user_cannot_read_is_no_zero(ready, tmp_path):
    (tmp_path / "a.ipynb").write_text(FILES["bert"])
    (row,), said = graded_elsewhere(str(tmp_path), "bare", "1", "700")
    assert row["status"] == CANNOT and row["score"] is None
    assert "cannot read" in said[0] and "readable for all" in said[0]


def test_every_protection_that_is_off_is_said():
    on = {"readable": [], "interfaces": [], "alone": True, "memory": 1, "cpu": 1, "uid": 1}
    on |= {"processes": 1, "file size": 1, "box": 1 << 20}
    assert protections_off(on) == []
    off = {"readable": ["x"], "interfaces": ["eth0"], "alone": False, "memory": -1, "cpu": -1}
    off |= {"processes": -1, "file size": -1}
    for name, value in off.items():
        assert len(protections_off({**on, name: value})) == 1, name
    assert len(protections_off({**on, "box": 1 << 40})) == 1
