"""What does a learner read in the notebook, and does every call come back?"""

from __future__ import annotations

import pytest
import torch

from lgcourse.errors import InputError
from lgcourse.grading import checks, exercises, questions
from lgcourse.grading.notebook import NotebookCheck
from lgcourse.grading.question import Check, Question


def right(guess, target):
    return (guess == target).all(dim=1)


def test_a_right_answer_reads_so(capsys):
    checks(1).check_exact_match(right)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "exact_match: is the whole answer right?"
    assert [line.split()[0] for line in lines[1:6]] == ["ok"] * 5
    assert lines[-1] == "  visible checks 5 of 5 passed; more run at grading"
    assert "all tests" not in " ".join(lines).lower()


def test_a_wrong_answer_reads_so(capsys):
    checks(1).check_exact_match(lambda guess, target: (guess == target).any(dim=1))
    out = capsys.readouterr().out
    assert "WRONG  one-wrong-token" in out and "likely: every token counts" in out
    assert "called with guess = tensor(" in out and "index (0,)" in out
    assert "visible checks 2 of 5 passed\n" in out and "more run at grading" not in out
    assert "order-counts     (not run)" in out and ".hint(1)" in out
    assert max(map(len, out.splitlines())) <= 96


def test_an_error_reads_so(capsys):
    checks(1).check_exact_match(lambda guess, target: len(guess[0, 0].item()))
    out = capsys.readouterr().out
    assert "ERROR  one-per-sample" in out and "your code raised a TypeError" in out
    assert "likely" not in out, "the likely mistake belongs to a wrong value"


def test_a_stub_reads_so(capsys):
    checks(1).check_exact_match(...)
    assert capsys.readouterr().out == "exact_match: not attempted (there is no answer yet)\n"


def test_a_fault_of_ours_reads_so(capsys):
    def broken(*_):
        raise ZeroDivisionError("ours")

    check = Check("a", "idea", "likely mistake", lambda generator: [(1,)])
    question = Question("f", "title", 1, 1, 1, ("one",), (check,), broken)
    NotebookCheck(question, {})(lambda x: x)
    out = capsys.readouterr().out
    told = " ".join(out.split())
    assert "a fault of the check, not of your answer; please report it: ZeroDivisionError" in told
    assert "likely mistake" not in out and "WRONG" not in out


class Awkward:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError("repr")

    __str__ = __repr__


@pytest.mark.parametrize("name", ["exact_match", "addition_step", "copy_relation"])
def test_no_answer_makes_a_check_raise_or_pass(name, capsys):
    check = getattr(checks(1), f"check_{name}")
    values = [
        3,
        "x",
        torch.zeros(3),
        Awkward(),
        (1, 2),
        (),
        [None] * 4,
        {},
        float("nan"),
        int,
        print,
    ]
    functions = [lambda *_, v=value: v for value in values]
    for answer in [*values, *functions, lambda: 1, torch.nn.Linear(2, 2)]:
        check(answer)
        out = capsys.readouterr().out
        assert "more run at grading" not in out and "fault of the check" not in out, answer


def test_hints_are_a_ladder(capsys):
    check = checks(1).check_exact_match
    texts = []
    for number in (1, 2, 3):
        check.hint(number)
        texts.append(capsys.readouterr().out)
        assert texts[-1].startswith(f"hint {number} of 3: ")
    assert len(set(texts)) == 3
    for unknown in (0, 4, True, "1"):
        check.hint(unknown)
        assert capsys.readouterr().out == f"exact_match has hints 1 to 3, not {unknown!r}\n"


def test_the_summary_counts_points_and_names_what_is_next(capsys):
    ex = checks(1)
    ex.summary()
    first = capsys.readouterr().out
    assert first.count("not attempted") == 3 and "next: exact_match" in first
    assert "for 0 of 8 points" in first
    ex.check_exact_match(right)
    ex.check_copy_relation(lambda query, key, n: torch.ones(len(query), len(key)).long())
    capsys.readouterr()
    ex.summary()
    later = capsys.readouterr().out
    assert "exact_match    2 points  visible checks 5 of 5 passed" in later
    assert "copy_relation  3 points  visible checks 1 of 6 passed" in later
    assert "for 2 of 8 points; more run at grading" in later and "next: addition_step" in later


def test_a_later_wrong_answer_takes_points_back(capsys):
    ex = checks(1)
    ex.check_exact_match(right)
    ex.check_exact_match(lambda guess, target: guess)
    ex.summary()
    assert "for 0 of 8 points" in capsys.readouterr().out


def test_what_does_not_exist_is_told():
    with pytest.raises(InputError, match="there is no exercise 99; exercises with checks: 1"):
        checks(99)
    with pytest.raises(AttributeError, match="check_exact_match, check_addition_step"):
        _ = checks(1).check_exactmatch


def test_every_exercise_is_well_formed():
    for number in exercises():
        asked = questions(number)
        assert len({q.name for q in asked}) == len(asked) > 0
        for question in asked:
            ids = [check.id for check in question.checks]
            assert len(set(ids)) == len(ids) >= 3
            assert len(question.hints) == 3 and question.points > 0 and question.minutes > 0
            assert 1 <= question.difficulty <= 5 and question.name.isidentifier()


@pytest.mark.parametrize(
    "answer",
    [
        lambda g, t: [True] * len(g),
        lambda g, t: (g == t).all(1).numpy(),
        lambda g, t: (g == t).all(1).to_sparse(),
        "all right",
        lambda g, t: (g.zero_() == t).all(1),
    ],
    ids=["list", "numpy", "sparse", "text", "in place"],
)
def test_a_wrong_kind_of_answer_is_not_explained_by_a_mistake_in_the_idea(capsys, answer):
    checks(1).check_exact_match(answer)
    out = capsys.readouterr().out
    assert "WRONG" in out and "likely" not in out
    checks(1).check_exact_match(lambda g, t: (g == t).double().mean(1))
    assert "likely" in capsys.readouterr().out


def test_a_huge_number_is_an_answer_that_is_wrong(capsys):
    checks(1).check_addition_step(lambda n, t: (2 * n + t, 10**5000, n + t, 2 * n + t))
    out = capsys.readouterr().out
    assert "digits or so" in out and "fault of the check" not in out


@pytest.mark.parametrize("number", [1.0, "1", 0, 9, None, True])
def test_a_hint_that_does_not_exist_is_told(capsys, number):
    checks(1).check_exact_match.hint(number)
    assert "has hints 1 to 3" in capsys.readouterr().out
