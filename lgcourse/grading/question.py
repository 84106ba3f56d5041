"""What is a question? A name, points, hints, a reference, and checks that each isolate one idea.

`examine` runs the checks of a question on an answer. What a learner's code does wrong is told from
what is wrong in a check: only the first can fail an answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lgcourse.grading.comparison import Misfit, Wrong, class_name, compare
from lgcourse.training.seeds import generator

Arguments = tuple[Any, ...]
PASSED, FAILED, RAISED, NOT_RUN = "passed", "failed", "raised an error", "not run"
NOT_ATTEMPTED, NOT_CHECKED = "not attempted", "could not be checked"


class Raised(Wrong):
    """An answer raised an exception; the message says which, and in which line of the learner."""


class NotAttempted(Exception):  # noqa: N818  it is no fault of the program
    """An answer is still the stub."""


@dataclass(frozen=True)
class Check:
    """One mechanism that an answer must have.

    Args:
        id: short name, unique in its question.
        idea: what is right if the check passes.
        message: the likely mistake if it does not.
        draw: random generator -> the arguments of one or more calls.
        parts: which entries of the answer are compared, see `lgcourse.grading.comparison.compare`.
        tolerance: largest difference that counts as equal.
    """

    id: str
    idea: str
    message: str
    draw: Callable[[torch.Generator], Sequence[Arguments]]
    parts: tuple[int, ...] | None = None
    tolerance: float = 0.0

    def run(
        self,
        ask: Callable[..., Any],
        reference: Callable[..., Any],
        cases: Sequence[Arguments],
    ) -> None:
        """Compare an answer with the reference on some cases.

        Args:
            ask: the answer; called with the arguments of a case.
            reference: the true answer.
            cases: the arguments of each call.

        Raises:
            Wrong: the answer differs; the message has the arguments and the difference.
            NotAttempted: the answer is still the stub.
        """
        for arguments in cases:
            expected = reference(*copied(arguments))
            try:
                compare(ask(*copied(arguments)), expected, self.tolerance, self.parts)
            except Wrong as wrong:
                called = show_call(reference, arguments)
                raise type(wrong)(f"called with {called}:\n{wrong}") from None


@dataclass(frozen=True)
class Question:
    """A question of an exercise.

    Args:
        name: name of the function that a learner writes.
        title: what it is about.
        points, minutes: what it gives, and how long it takes.
        difficulty: 1 to 5.
        hints: a ladder: what to look at, which equation, nearly the code.
        checks: in the order in which they run; the first that fails ends the examination.
        reference: the true answer, by another way than the solution that learners see.
    """

    name: str
    title: str
    points: int
    minutes: int
    difficulty: int
    hints: tuple[str, ...]
    checks: tuple[Check, ...]
    reference: Callable[..., Any]

    def cases(self, seed: int) -> dict[str, Sequence[Arguments]]:
        """Return the arguments of every call, by the id of the check; they depend on the seed."""
        return {
            check.id: check.draw(generator(seed, f"cases of {self.name}/{check.id}"))
            for check in self.checks
        }


@dataclass(frozen=True)
class Result:
    """What one check found: an outcome, and in words what was wrong."""

    check: Check
    outcome: str
    text: str = ""
    explained: bool = True  # whether the check's message about the likely mistake applies


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
        answer: what the learner wrote: a function; ``...`` or None if nothing.
        seed: seed of the cases.

    Returns:
        A `Report`. Nothing is raised but KeyboardInterrupt, when a learner gives up waiting.
    """
    report = Report(question)
    for check in question.checks:
        if report.stopped_at is not None:
            report.results.append(Result(check, NOT_RUN))
            continue
        report.results.append(_examined(question, check, answer, seed))
    return report


def _examined(question: Question, check: Check, answer: Any, seed: int) -> Result:
    try:
        cases = check.draw(generator(seed, f"cases of {question.name}/{check.id}"))
        check.run(Asked(answer), question.reference, cases)
    except NotAttempted as why:
        return Result(check, NOT_ATTEMPTED, str(why))
    except Wrong as wrong:
        outcome = RAISED if isinstance(wrong, Raised) else FAILED
        return Result(check, outcome, str(wrong), not isinstance(wrong, Misfit))
    except Exception as error:  # whatever else goes wrong is a fault of the check
        return Result(check, NOT_CHECKED, f"{type(error).__name__}: {error}")
    return Result(check, PASSED)


class Asked:
    """A learner's answer, called so that each of its faults becomes `Wrong` or `NotAttempted`."""

    def __init__(self, answer: Any):
        self.answer = answer

    def __call__(self, *arguments: Any) -> Any:
        if self.answer is ... or self.answer is None:
            raise NotAttempted("there is no answer yet")
        if not callable(self.answer):
            kind = class_name(type(self.answer))
            raise Misfit(f"expected a function, got {kind}; pass the function itself")
        given = copied(arguments)
        try:
            output = self.answer(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: it must not end the notebook
            raise Raised(told(error, self.answer)) from None
        if output is ...:
            raise NotAttempted("the function still returns ...")
        if output is None:
            raise NotAttempted("the function returns None; does a return statement miss?")
        for index, (before, after) in enumerate(zip(given, arguments, strict=True)):
            if isinstance(before, Tensor) and not torch.equal(before, after):
                raise Misfit(
                    f"the function changes its argument {index + 1} in place; work on a copy"
                )
        return output


def told(error: BaseException, answer: Any) -> str:
    """Say what a learner's code raised, and in which of its lines."""
    try:
        words = " ".join(str(error).split())[:300]
    except Exception:  # an exception of the learner's own whose text cannot be made
        words = "(no text)"
    place = _place(error, answer)
    return f"your code raised {class_name(type(error))}: {words}" + (f"\n{place}" if place else "")


def _place(error: BaseException, answer: Any) -> str:
    """Return the innermost line of the learner's own file or cell that was running."""
    if error.__traceback__ is None:
        return ""
    frames = inspect.getinnerframes(error.__traceback__, context=1)[1:]  # the first is ours
    code = getattr(answer, "__code__", None)
    own = [f for f in frames if code is None or f.filename == code.co_filename] or frames
    if not own:
        return ""
    frame = own[-1]
    line = frame.code_context[0].strip() if frame.code_context else ""
    return f"in line {frame.lineno}, {frame.function}: {line}".rstrip(": ")


def copied(arguments: Arguments) -> Arguments:
    """Return arguments that can be changed without harm."""
    return tuple(a.clone() if isinstance(a, Tensor) else a for a in arguments)


def show_call(function: Callable[..., Any], arguments: Arguments) -> str:
    """Return arguments as a learner would write them.

    >>> show_call(lambda guess, n: ..., (torch.tensor([[1, 2]]), 3))
    'guess = tensor([[1, 2]]), n = 3'
    """
    names = list(inspect.signature(function).parameters)
    return ", ".join(f"{n} = {_shown(a)}" for n, a in zip(names, arguments, strict=True))


def _shown(argument: Any) -> str:
    if not isinstance(argument, Tensor):
        return repr(argument)
    if argument.numel() > 60:
        return f"a tensor of shape {tuple(argument.shape)}"
    return f"tensor({argument.tolist()})"
