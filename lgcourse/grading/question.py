"""What is a question? A name, points, hints, a reference, and checks that each isolate one idea.

`examine` runs the checks of a question on an answer. What a learner's code does wrong is told from
what is wrong in a check: only the first can fail an answer. How an answer of each kind is written
down as a question, see `lgcourse.grading.bank`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lgcourse.errors import InputError, unknown_name
from lgcourse.grading.answers import (
    Asked,
    CannotGrade,
    Case,
    NotAttempted,
    Raised,
    Use,
    built,
    copied,
    show_call,
    use_module,
)
from lgcourse.grading.comparison import Misfit, Wrong, compare, compare_share, short
from lgcourse.training.seeds import generator

PASSED, FAILED, RAISED, NOT_RUN = "passed", "failed", "raised an error", "not run"
NOT_ATTEMPTED, NOT_CHECKED = "not attempted", "could not be checked"
KINDS = ("function", "module", "number", "choice", "model")
# Rooms that hold answers; show, grading and authoring do nothing while a submission is graded.
ROOMS = (
    *("relations", "tasks", "theory", "embeddings", "model", "training"),
    *("certify", "experiments"),
)


Pairs = Sequence[tuple[Case, Any]]  # cases, each with the true answer


@dataclass(frozen=True)
class Check:
    """One mechanism that an answer must have.

    Args:
        id: short name, unique in its question.
        idea: what is right if the check passes.
        message: the likely mistake if it does not.
        draw: random generator -> the cases: arguments of one or more calls, or `Use`s. Numbers and
            choices have none.
        parts: which entries of the answer are compared, see `lgcourse.grading.comparison.compare`.
        tolerance: largest difference that counts as equal.
        share: if given, this share of the rows must be right, as for a trained model.
        mistakes: wrong numbers or choices that are likely, each with the message that replaces
            `message`.
    """

    id: str
    idea: str
    message: str
    draw: Callable[[torch.Generator], Sequence[Case]] = lambda generator: [()]
    parts: tuple[int, ...] | None = None
    tolerance: float = 0.0
    share: float | None = None
    mistakes: tuple[tuple[Any, str], ...] = ()

    def run(self, question: Question, ask: Callable[[Case], Any], pairs: Pairs) -> None:
        """Compare an answer with the reference on some cases.

        Args:
            question: the question that the check belongs to.
            ask: the answer; called with a case.
            pairs: the cases, each with the true answer.

        Raises:
            Wrong: the answer differs; the message has the arguments and the difference.
            NotAttempted: the answer is still the stub.
        """
        for case, expected in pairs:
            try:
                self._compare(question, ask(copied(case)), expected)
            except Wrong as wrong:
                if question.kind in ("number", "choice"):
                    raise
                again = type(wrong)(f"called with {show_call(question.reference, case)}:\n{wrong}")
                vars(again).update(vars(wrong))
                raise again from None

    def _compare(self, question: Question, answer: Any, expected: Any) -> None:
        if question.kind in ("number", "choice"):
            self._compare_fixed(answer, expected, question.choices)
        elif self.share is not None:
            compare_share(answer, expected, self.share)
        else:
            compare(answer, expected, self.tolerance, self.parts)

    def _compare_fixed(self, answer: Any, expected: Any, choices: tuple[str, ...]) -> None:
        """Compare a number or a choice; what would be right is not said."""
        if isinstance(expected, float) and type(answer) is int and answer.bit_length() < 1000:
            answer = float(answer)
        compare(answer, expected, parts=())
        if choices and answer not in choices:
            raise Misfit(f"expected one of {', '.join(map(repr, choices))}; got {short(answer)}")
        try:
            compare(answer, expected, self.tolerance)
        except Wrong:
            wrong = Wrong(f"{short(answer)} is not right")
            for mistake, message in self.mistakes:
                if is_same(answer, mistake, self.tolerance):
                    wrong.likely = message
            raise wrong from None


def is_same(answer: Any, other: Any, tolerance: float) -> bool:
    """Return whether two numbers or texts are equal up to a tolerance.

    >>> is_same(0.5, 1 / 2, 0.0), is_same(0.5, 0.6, 0.01)
    (True, False)
    """
    try:
        compare(answer, type(answer)(other), tolerance)
    except (Wrong, ValueError, TypeError):
        return False
    return True


@dataclass(frozen=True)
class Question:
    """A question of an exercise.

    Args:
        name: name of what a learner writes: a function, a class, a variable.
        title: what it is about.
        points, minutes: what it gives, and how long it takes.
        difficulty: 1 to 5.
        hints: a ladder: what to look at, which equation, nearly the code.
        checks: in the order in which they run; the first that fails ends the examination.
        reference: the true answer, by another way than the solution that learners see. For a
            function: the same arguments. For a module: a function of a `Use`, or an nn.Module class
            that is used in the same way. For a number or choice: no arguments. For a model:
            (prompt, scale, count) -> the answer tokens.
        kind: what the answer is: function, module, number, choice or model.
        choices: the options of a choice.
        forbids: rooms of lgcourse, or parts such as "embeddings.rotary", that the answer may not
            use. While a submission is graded they are not there.
        seconds: what running the notebook's cells may take beyond the usual, for training.
    """

    name: str
    title: str
    points: int
    minutes: int
    difficulty: int
    hints: tuple[str, ...]
    checks: tuple[Check, ...]
    reference: Callable[..., Any]
    kind: str = "function"
    choices: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ROOMS
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("kind of answer", self.kind, KINDS)
        if (self.kind == "choice") != bool(self.choices):
            raise InputError(f"question {self.name}: choices belong to the kind choice, and only")
        for room in self.forbids:
            if room.split(".")[0] not in ROOMS:
                raise unknown_name("room", room, ROOMS)

    def cases(self, seed: int) -> dict[str, Sequence[Case]]:
        """Return the cases of each check, by its id; they depend on the seed."""
        return {
            check.id: check.draw(generator(seed, f"cases of {self.name}/{check.id}"))
            for check in self.checks
        }

    def expected(self, case: Case) -> Any:
        """Return the true answer of a case."""
        case = built(copied(case))
        if not isinstance(case, Use):
            return self.reference(*case)
        if isinstance(self.reference, type):
            return use_module(self.reference, case)
        return self.reference(case)


@dataclass(frozen=True)
class Result:
    """What one check found: an outcome, and in words what was wrong."""

    check: Check
    outcome: str
    text: str = ""
    explained: bool = True  # whether the check's message about the likely mistake applies
    mistake: str = ""  # a message that fits this very answer better
    got: Tensor | None = None  # the arrays that differ
    expected: Tensor | None = None
    place: str = ""  # the learner's line that raised an error
    error: str = ""  # name of the error's class

    @property
    def likely(self) -> str:
        """What the learner may have thought, or nothing."""
        if self.outcome != FAILED or not self.explained:
            return ""
        return self.mistake or self.check.message


@dataclass(frozen=True)
class Report:
    """What the checks of a question found."""

    question: Question
    results: list[Result] = field(default_factory=list)

    @property
    def passed(self) -> int:
        """Number of checks that passed."""
        return sum(result.outcome == PASSED for result in self.results)

    @property
    def outcome(self) -> str:
        """``passed`` if all checks did, else the outcome that ended the examination."""
        others = [r.outcome for r in self.results if r.outcome not in (PASSED, NOT_RUN)]
        return others[0] if others else PASSED

    @property
    def stopped_at(self) -> Result | None:
        """The result that ended the examination, or None."""
        return next((r for r in self.results if r.outcome not in (PASSED, NOT_RUN)), None)


def examine(question: Question, answer: Any, seed: int = 0) -> Report:
    """Run the checks of a question on an answer, until one does not pass.

    Args:
        question: the question.
        answer: what the learner wrote, of the question's kind; ``...`` or None if nothing.
        seed: seed of the cases.

    Returns:
        A `Report`. Nothing is raised but KeyboardInterrupt, when a learner gives up waiting.
    """
    return examine_by(question, Asked(answer, question.kind), seed)


def drawn(question: Question, check: Check, seed: int) -> Pairs:
    """Return the cases of a check, each with the true answer."""
    cases = check.draw(generator(seed, f"cases of {question.name}/{check.id}"))
    return [(case, question.expected(case)) for case in cases]


def examine_by(
    question: Question,
    ask: Callable[[Case], Any],
    seed: int,
    draw: Callable[[Question, Check, int], Pairs] = drawn,
) -> Report:
    """Run the checks of a question on what stands for an answer: here, or in another process.

    Args:
        question: the question.
        ask: case -> answer; raises `Wrong` or `NotAttempted` for what is not right with it.
        seed: seed of the cases.
        draw: makes the cases and the true answers, or remembers them.
    """
    report = Report(question)
    for check in question.checks:
        if report.stopped_at is not None:
            report.results.append(Result(check, NOT_RUN))
            continue
        report.results.append(_examined(question, check, ask, partial(draw, question, check, seed)))
    return report


def _examined(
    question: Question, check: Check, ask: Callable[[Case], Any], draw: Callable[[], Pairs]
) -> Result:
    try:
        check.run(question, ask, draw())
    except NotAttempted as why:
        return Result(check, NOT_ATTEMPTED, str(why))
    except Wrong as wrong:
        outcome = RAISED if isinstance(wrong, Raised) else FAILED
        explained = not isinstance(wrong, Misfit)
        return Result(
            *(check, outcome, str(wrong), explained, wrong.likely, wrong.got, wrong.expected),
            place=getattr(wrong, "place", ""),
            error=getattr(wrong, "kind", ""),
        )
    except CannotGrade as why:
        return Result(check, NOT_CHECKED, str(why))
    except Exception as error:  # whatever else goes wrong is a fault of the check
        return Result(check, NOT_CHECKED, f"{type(error).__name__}: {error}")
    return Result(check, PASSED)
