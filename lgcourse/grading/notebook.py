"""What does a learner see after writing an answer? A report at once, hints on request, a summary.

Nothing here raises because of an answer, so an unfilled notebook runs to its end.
"""

from __future__ import annotations

import sys
import textwrap
from typing import Any

from lgcourse.errors import InputError
from lgcourse.grading import bank
from lgcourse.grading.delegation import forbidden_uses
from lgcourse.grading.question import (
    FAILED,
    NOT_ATTEMPTED,
    NOT_CHECKED,
    NOT_RUN,
    PASSED,
    RAISED,
    Question,
    Report,
    Result,
    examine,
)

MARKS = {
    PASSED: "ok",
    FAILED: "WRONG",
    RAISED: "ERROR",
    NOT_RUN: "-",
    NOT_CHECKED: "?",
    NOT_ATTEMPTED: "-",
}
WIDTH = 96


class NotebookCheck:
    """The check of one question: call it with the answer; `hint` gives the rungs of the ladder."""

    def __init__(self, question: Question, reports: dict[str, Report]):
        self.question, self._reports = question, reports
        self.__doc__ = f"Check an answer to '{question.title}'; prints a report, never raises."

    def __call__(self, answer: Any) -> None:
        report = examine(self.question, answer)
        self._reports[self.question.name] = report
        print("\n".join([*report_lines(report), *note_lines(self.question, answer)]))
        show_difference(report)

    def hint(self, number: Any = 1) -> None:
        """Print a hint; 1 says least, the last one nearly gives the code."""
        hints = self.question.hints
        if type(number) is not int or number not in range(1, len(hints) + 1):
            print(f"{self.question.name} has hints 1 to {len(hints)}, not {number!r}")
            return
        print(_wrapped(f"hint {number} of {len(hints)}: ", hints[number - 1]))

    def __repr__(self) -> str:
        return f"<check of {self.question.name}: call it with your answer>"


class Checks:
    """The checks of one exercise: ``check_<name>(answer)`` for each question, and `summary`."""

    def __init__(self, exercise: int):
        self.exercise = exercise
        self.questions = bank.questions(exercise)
        self._reports: dict[str, Report] = {}
        for question in self.questions:
            setattr(self, f"check_{question.name}", NotebookCheck(question, self._reports))

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(f"check_{question.name}" for question in self.questions)
        raise AttributeError(f"exercise {self.exercise} has no '{name}'; it has {known}, summary")

    def summary(self) -> None:
        """Print where the learner stands: each question, the points so far, what is next."""
        print("\n".join(summary_lines(self.exercise, self.questions, self._reports)))

    def __repr__(self) -> str:
        return f"<checks of exercise {self.exercise}: {len(self.questions)} questions>"


def checks(exercise: int) -> Checks:
    """Return the checks of an exercise.

    Args:
        exercise: its number.

    Returns:
        An object with ``check_<name>`` for each question, and ``summary``.

    Raises:
        InputError: there is no such exercise.

    >>> ex = checks(1)
    >>> ex.check_exact_match(...)
    exact_match: not attempted (there is no answer yet)
    """
    if exercise not in bank.exercises():
        known = ", ".join(map(str, bank.exercises()))
        raise InputError(f"there is no exercise {exercise!r}; exercises with checks: {known}")
    return Checks(exercise)


def report_lines(report: Report) -> list[str]:
    """Return what a learner reads about one answer."""
    question, end = report.question, report.stopped_at
    if end is not None and end.outcome == NOT_ATTEMPTED and report.passed == 0:
        return [f"{question.name}: not attempted ({end.text})"]
    width = max(len(check.id) for check in question.checks)
    lines = [f"{question.name}: {question.title}"]
    for result in report.results:
        words = result.check.idea if result.outcome != NOT_RUN else "(not run)"
        lines.append(f"  {MARKS[result.outcome]:<5}  {result.check.id:<{width}}  {words}")
        if result is end:
            lines += _explained(result)
    count = f"visible checks {report.passed} of {len(report.results)} passed"
    if end is None:
        return [*lines, f"  {count}; more run at grading"]
    lines.append(f"  {count}")
    if end.outcome != NOT_CHECKED:
        lines.append(f"  stuck? .hint(1) to .hint({len(question.hints)}) of this check")
    return lines


def _explained(result: Result) -> list[str]:
    if result.outcome == NOT_CHECKED:
        words = "this is a fault of the check, not of your answer; please report it"
        return [_wrapped("         ", f"{words}: {result.text}")]
    lines = [_wrapped("         ", line) for line in result.text.splitlines()]
    if result.likely:
        lines.append(_wrapped("         likely: ", result.likely))
    return lines


def note_lines(question: Question, answer: Any) -> list[str]:
    """Return a warning if an answer uses rooms that are not there while it is graded."""
    try:
        found = forbidden_uses(answer, question.forbids)
    except Exception:  # objects that raise when they are looked at
        found = []
    if not found:
        return []
    words = f"it uses {', '.join(found)}, which is not there at grading; write it yourself"
    return [_wrapped("  note: ", words)]


def show_difference(report: Report) -> None:
    """In a notebook, draw the answer beside the target where arrays differ."""
    end = report.stopped_at
    if end is None or end.got is None or end.expected is None or not _in_notebook():
        return
    try:
        from IPython.display import display

        from lgcourse.show.difference import difference_figure
        from lgcourse.show.widgets import figure_html

        got, expected = (a.double().numpy() for a in (end.got, end.expected))
        display(figure_html(difference_figure(got, expected)))
    except Exception as error:  # the report has been printed; a picture must not undo that
        print(f"  (no picture: {type(error).__name__})")


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _wrapped(head: str, text: str) -> str:
    rest = " " * min(len(head), 17)
    return textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=rest)


def summary_lines(
    exercise: int, questions: list[Question], reports: dict[str, Report]
) -> list[str]:
    """Return what a learner reads about a whole exercise."""
    lines, points, following = [f"exercise {exercise}"], 0, ""
    width = max(len(question.name) for question in questions)
    for question in questions:
        report = reports.get(question.name)
        state = "not attempted"
        if report is not None and report.outcome != NOT_ATTEMPTED:
            state = f"visible checks {report.passed} of {len(report.results)} passed"
        if report is not None and report.outcome == PASSED:
            points += question.points
        else:
            following = following or question.name
        lines.append(f"  {question.name:<{width}}  {question.points} points  {state}")
    whole = sum(question.points for question in questions)
    lines.append(f"  all visible checks pass for {points} of {whole} points; more run at grading")
    lines.append(f"  next: {following}" if following else "  nothing left to do here")
    return lines
