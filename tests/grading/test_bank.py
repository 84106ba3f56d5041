"""Is each question of the course tried out: wrong answers, another right one, three hints?"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from lgcourse.grading import exercises, questions
from lgcourse.grading.question import FAILED, PASSED, examine

ASKED = [(number, question) for number in exercises() for question in questions(number)]
NAMES = [question.name for _, question in ASKED]
SEED = 23  # the tests of each exercise try others


@cache
def tried(number):
    """What the tests of an exercise hand in."""
    return import_module(f"tests.grading.test_e{number:02d}")


def mutants(number, name):
    """(thought, check, answer) of the wrong answers to a question."""
    found = tried(number).MISTAKES.items()
    return [(thought, check, answer) for thought, (of, check, answer) in found if of == name]


def test_every_exercise_of_the_course_has_questions_of_its_own_names():
    course = Path(__file__).resolve().parents[2] / "course" / "exercises"
    assert exercises() == sorted(int(path.name[:2]) for path in course.glob("[0-9]*.py"))
    assert max(Counter(NAMES).values()) == 1, "an answer is found by its name alone"


@pytest.mark.parametrize(("number", "question"), ASKED, ids=NAMES)
def test_a_question_says_what_it_is_and_has_a_ladder_of_hints(number, question):
    assert question.points >= 1 and question.minutes >= 1 and question.difficulty in range(1, 6)
    assert len(question.hints) == len(set(question.hints)) == 3
    assert all(len(hint) > 30 for hint in question.hints)
    assert re.search(r"[=+(\[]", question.hints[2]), "nearly the code"
    assert len({check.id for check in question.checks}) == len(question.checks) >= 3
    for check in question.checks:
        assert check.idea and len(check.message) > 20, check.id


@pytest.mark.parametrize(("number", "question"), ASKED, ids=NAMES)
def test_wrong_answers_are_rejected_by_the_check_that_they_name_with_its_hint(number, question):
    wrong = mutants(number, question.name)
    assert len(wrong) >= 4 and len({id(answer) for _, _, answer in wrong}) >= 4
    assert {check for _, check, _ in wrong} == {check.id for check in question.checks}
    told = []
    for thought, check, answer in wrong:
        end = examine(question, answer, SEED).stopped_at
        assert end is not None and (end.check.id, end.outcome) == (check, FAILED), (thought, end)
        assert end.text, thought
        assert end.likely in (end.check.message, end.mistake) or not end.explained, thought
        told += [end.likely] if end.likely else []
    assert len(told) >= 4, "what is of another type is told so; four more meet the hint"


@pytest.mark.parametrize(("number", "question"), ASKED, ids=NAMES)
def test_a_right_answer_that_is_written_otherwise_passes(number, question):
    other = tried(number).OTHER_WAYS[question.name]
    assert other is not question.reference
    report = examine(question, other, SEED)
    assert report.outcome == PASSED, report.stopped_at


def test_nothing_is_handed_in_for_a_question_that_is_not_there():
    for number in exercises():
        names = {question.name for question in questions(number)}
        assert {of for of, _, _ in tried(number).MISTAKES.values()} == names
        assert set(tried(number).OTHER_WAYS) == names


@pytest.mark.parametrize(("number", "question"), ASKED, ids=NAMES)
def test_cases_depend_on_the_seed_and_on_nothing_else(number, question):
    one, same, other = (shown(question.cases(seed)) for seed in (SEED, SEED, SEED + 1))
    assert one == same
    assert one != other, "an answer could know them by heart"


def shown(cases):
    """Cases as text, all numbers of their tensors too."""
    return {id: [plain(case) for case in made] for id, made in cases.items()}


def plain(value):
    if hasattr(value, "tolist"):
        return (str(value.dtype), value.tolist())
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return [(plain(key), plain(entry)) for key, entry in value.items()]
    return repr(value)
