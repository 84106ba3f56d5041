"""Does the report on a class count what its students got wrong, and keep their secrets?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lgcourse.cli import run
from lgcourse.errors import InputError
from lgcourse.grading import questions
from lgcourse.grading.classreport import Places, of_exercises, read_grades
from lgcourse.grading.grader import _outcome  # what `grade` says of a report
from lgcourse.grading.question import examine
from lgcourse.grading.quiz import read_answers, read_quiz, read_toml

ROOT = Path(__file__).resolve().parents[2]
TEACHERS = ROOT / "course/teachers"
QUIZ = read_quiz(TEACHERS / "quiz.toml")
PLACES = Places(ROOT, read_toml(TEACHERS / "sections.toml"))
EXACT = questions(1)[0]
ANY = "every token counts"
EVIL = "<script>alert(1)</script>"


def graded(answer, name="somebody"):
    """Return a submission as `grade --json` writes it, with one answer."""
    report = examine(EXACT, answer, 0)
    hidden = None if report.stopped_at else examine(EXACT, answer, 1)
    outcome, message = _outcome(report, hidden)
    asked = {"name": EXACT.name, "score": 0, "max_score": 2}
    asked |= {"outcome": outcome, "message": message}
    return {"id": name, "score": 0, "max_score": 2, "status": "graded", "questions": [asked]}


def raises(guess, target):
    raise ValueError(f"{EVIL}\nlikely: {EVIL}")


CLASS = [
    graded(lambda g, t: (g == t).any(1), "Anna Secret"),
    graded(lambda g, t: (g == t).any(1)),
    graded(lambda g, t: (g == t).all(1)),
    graded(...),
    graded(raises),
]


@pytest.fixture
def grades(tmp_path):
    path = tmp_path / "grades.json"
    path.write_text(json.dumps({"submissions": CLASS}), encoding="utf-8")
    return path


def answers(path, *rows):
    head = "id," + ",".join(str(k) for k in range(1, 13))
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_ends_are_read_from_what_grade_writes(grades):
    ends = [row["exact_match"] for row in read_grades(grades)]
    assert ends[:4] == ["one-wrong-token", "one-wrong-token", "passed", "not attempted"]
    assert ends[4].startswith("one-per-sample")


def test_a_misconception_is_counted_among_those_who_tried(grades):
    found = of_exercises(read_grades(grades), PLACES)
    first = found[0]
    assert (first.students, first.of) == (2, 4) and first.thought.startswith(ANY)
    assert first.where == "exact_match, check one-wrong-token"
    assert first.reread == 'lesson 1, section 2, "Whole answers, not tokens"'
    assert sum(f.students for f in found) == 3


@pytest.mark.parametrize("hidden", [True, False])
def test_a_check_that_fails_on_hidden_cases_alone_counts_too(tmp_path, hidden):
    check = EXACT.checks[2]
    said = (
        f"the visible cases pass, but not other cases of {check.id} ({check.idea})"
        if hidden
        else f"{check.id}: something"
    )
    asked = {"name": EXACT.name, "outcome": "failed", "message": f"{said}\nlikely: x"}
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"submissions": [{"questions": [asked]}]}), encoding="utf-8")
    (found,) = of_exercises(read_grades(path), PLACES)
    assert found.thought == check.message


def test_every_message_of_every_wrong_check_is_read_back(tmp_path):
    """The id in a message is found for every check of the course."""
    for n in range(1, 13):
        for q in questions(n):
            for check in q.checks:
                asked = {"name": q.name, "outcome": "failed"}
                asked["message"] = f"{check.id}: f(x):\nwrong\nlikely: {check.message}"
                path = tmp_path / "g.json"
                path.write_text(json.dumps({"submissions": [{"questions": [asked]}]}))
                (found,) = of_exercises(read_grades(path), PLACES)
                assert (found.thought, found.students) == (check.message, 1)


def test_the_page_counts_and_names_nobody(grades, tmp_path, capsys):
    right = ",".join(item.right for item in QUIZ)
    wrong = next(o for o in QUIZ[0].options if o.thinks)
    one = answers(tmp_path / "before.csv", f"Anna Secret,{wrong.letter}" + ",e" * 11, f"x,{right}")
    two = answers(tmp_path / "after.csv", f"Anna Secret,{right}", f"y,{wrong.letter}" + "," * 11)
    command = ["report", "--class", str(grades), "--quiz", str(one), "--quiz", str(two)]
    assert run(command) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "class.md"),
        str(tmp_path / "class.html"),
    ]
    page = (tmp_path / "class.md").read_text(encoding="utf-8")
    assert "- 2 of 4 (exact_match, check one-wrong-token): every token counts" in page
    assert f"- 1 of 2 (quiz 1, answer {wrong.letter}): {wrong.thinks}" in page
    assert "| 1 | exact_match | 1 | 3 | 1 |" in page
    assert "| before | 2 | 0.50 |" in page and "| after | 2 | 0.50 |" in page
    assert "| change, who answered both | 1 | +1.00 |" in page
    for text in (page, (tmp_path / "class.html").read_text(encoding="utf-8")):
        assert "Secret" not in text and "alert" not in text
        assert wrong.thinks in text


def test_the_quiz_alone_gives_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    file = answers(tmp_path / "before.csv", "s1" + ",a" * 12)
    assert run(["report", "--quiz", str(file)]) == 0
    assert "Checks that failed" not in (tmp_path / "class.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"submissions": [{}]}', '{"submissions": [{"questions": [{"name": 1}]}]}'],
)
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "g.json"
    path.write_text(text, encoding="utf-8")
    if "1}" in text:  # an unknown question is skipped: grades of another course do no harm
        assert read_grades(path) == [{}]
        return
    with pytest.raises(InputError, match="grade ... --json"):
        read_grades(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,1\nx,a\n", "column 'id'"),
        ("id,13\nx,a\n", "13"),
        ("id,1\nx,f\n", "line 2"),
        ("id,1\nx,a\nx,b\n", "line 3"),
        ("id,1\n,a\n", "line 2"),
        ("id,1\nx,a,b\n", "line 2"),
    ],
)
def test_other_answers_are_refused(tmp_path, text, said):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_answers(path, QUIZ)


def test_letters_may_be_large_and_columns_may_have_ids(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\ufeffid, whole-answers ,2\ns1, B ,\n", encoding="utf-8")
    assert read_answers(path, QUIZ) == {"s1": {"whole-answers": "b"}}
