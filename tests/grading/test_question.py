"""Is a learner told what is wrong, and is nobody charged for what is not their fault?"""

from __future__ import annotations

import sys

import pytest
import torch

from lgcourse.grading.question import (
    FAILED,
    NOT_ATTEMPTED,
    NOT_CHECKED,
    NOT_RUN,
    PASSED,
    RAISED,
    Check,
    Question,
    examine,
)


def doubled(x, times):
    """The reference of the question below: x times 2, in plain Python."""
    return torch.tensor([2 * int(v) for v in x.tolist()]) * times


def question(reference=doubled, draw=None):
    def numbers(generator):
        return [(torch.randint(1, 9, (4,), generator=generator), 1)]

    def twice(generator):
        return [(torch.randint(1, 9, (3,), generator=generator), 2)]

    return Question(
        name="double",
        title="twice as much",
        points=1,
        minutes=1,
        difficulty=1,
        hints=("look", "equation", "code"),
        checks=(
            Check("form", "whole numbers", "the form is wrong", draw or numbers, parts=()),
            Check("values", "twice each", "multiply by 2", numbers),
            Check("times", "both arguments count", "times is forgotten", twice),
        ),
        reference=reference,
    )


def outcomes(answer, **options):
    report = examine(question(**options), answer)
    return [result.outcome for result in report.results], report


def test_a_right_answer_passes_each_check():
    found, report = outcomes(lambda x, times: x * 2 * times)
    assert found == [PASSED] * 3
    assert report.outcome == PASSED and report.passed == 3 and report.stopped_at is None


def test_the_first_wrong_check_ends_the_examination():
    found, report = outcomes(lambda x, times: 2 * x)
    assert found == [PASSED, PASSED, FAILED] and report.stopped_at.check.id == "times"
    assert "times = 2:\n3 of 3 entries differ" in report.stopped_at.text
    found, _ = outcomes(lambda x, times: x.float())
    assert found == [FAILED, NOT_RUN, NOT_RUN]


@pytest.mark.parametrize("answer", [..., None, lambda x, times: ..., lambda x, times: None])
def test_a_stub_is_not_an_attempt(answer):
    found, report = outcomes(answer)
    assert found == [NOT_ATTEMPTED, NOT_RUN, NOT_RUN] and report.outcome == NOT_ATTEMPTED


def test_an_answer_that_is_no_function_is_told():
    for answer in (3, "x", torch.zeros(4), object()):
        found, report = outcomes(answer)
        assert found[0] == FAILED and "pass the function itself" in report.stopped_at.text


def helper(x):
    return x + undefined  # type: ignore[name-defined]  # noqa: F821


def uses_helper(x, times):
    return helper(x)


def calls_library_wrongly(x, times):
    return torch.cat([x, torch.zeros(2, 2)])


def recursive(x, times):
    return recursive(x, times)


def leaves(x, times):
    sys.exit(0)


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def silent(x, times):
    raise SilentError


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (uses_helper, "NameError: name 'undefined' is not defined"),
        (uses_helper, "helper: return x + undefined"),
        (calls_library_wrongly, "calls_library_wrongly: return torch.cat([x"),
        (recursive, "RecursionError"),
        (leaves, "leaves: sys.exit(0)"),
        (silent, "(no text)"),
        (lambda x: x, "TypeError"),
    ],
)
def test_an_exception_is_reported_with_the_learners_line(answer, words):
    found, report = outcomes(answer)
    text = report.stopped_at.text
    assert found == [RAISED, NOT_RUN, NOT_RUN] and words in text
    assert "Traceback" not in text and "question.py" not in text and "/" not in text


def test_the_line_number_is_the_learners():
    _, report = outcomes(uses_helper)
    line = helper.__code__.co_firstlineno + 1
    assert f"in line {line}, helper: " in report.stopped_at.text


def test_ctrl_c_is_for_the_learner():
    def slow(x, times):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine(question(), slow)


def test_changing_an_argument_is_told_and_harms_nothing():
    def in_place(x, times):
        return x.mul_(2 * times)

    found, report = outcomes(in_place)
    assert found[0] == FAILED and "changes its argument 1 in place" in report.stopped_at.text


def broken(*_):
    raise ZeroDivisionError("ours")


@pytest.mark.parametrize("options", [{"reference": broken}, {"draw": broken}])
def test_a_fault_of_the_check_is_not_charged_to_the_learner(options):
    found, report = outcomes(lambda x, times: x, **options)
    assert found == [NOT_CHECKED, NOT_RUN, NOT_RUN] and report.outcome == NOT_CHECKED
    assert report.stopped_at.text == "ZeroDivisionError: ours"


def test_a_learner_cannot_raise_our_own_exceptions():
    from lgcourse.grading.comparison import Wrong
    from lgcourse.grading.question import NotAttempted

    for kind in (Wrong, NotAttempted):

        def sly(x, times, kind=kind):
            raise kind("all is well")

        assert outcomes(sly)[0][0] == RAISED


def test_cases_come_from_the_seed():
    def drawn(seed):
        return {
            name: [a.tolist() for a, _ in cases] for name, cases in question().cases(seed).items()
        }

    assert drawn(0) == drawn(0) and drawn(0) != drawn(1)
    assert list(drawn(0)) == ["form", "values", "times"]
    assert drawn(0)["form"] != drawn(0)["values"], "each check draws its own"


def test_another_seed_finds_what_was_written_for_the_visible_cases():
    seen = {}

    def learn(x, times):
        seen[tuple(x.tolist()), times] = doubled(x, times)
        return doubled(x, times)

    examine(question(), learn, seed=0)

    def by_heart(x, times):
        return seen.get((tuple(x.tolist()), times), torch.zeros_like(x))

    assert examine(question(), by_heart, seed=0).outcome == PASSED
    assert examine(question(), by_heart, seed=1).outcome == FAILED
