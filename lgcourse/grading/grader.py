"""What is one submission worth? Each question is asked in a shut-in process and compared here.

Visible cases come first, those of the notebook; then hidden ones, from the grading seed. What is
written for a student shows data of visible cases only.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from lgcourse.errors import InputError, whole_number
from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.question import (
    FAILED,
    NOT_ATTEMPTED,
    NOT_CHECKED,
    PASSED,
    RAISED,
    ROOMS,
    Check,
    Pairs,
    Question,
    Report,
    drawn,
    examine_by,
)
from lgcourse.grading.sandbox.cells import Cell
from lgcourse.grading.sandbox.parent import Limits, Zygote, protections_off
from lgcourse.grading.sandbox.session import ENDED, TOO_SLOW, Session, plain
from lgcourse.grading.submissions import Program

VISIBLE = 0  # the seed of the notebook
CANNOT = "could not be graded"
GRADED, UNREADABLE = "graded", "unreadable"
ERRORS = {n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, Exception)}


@dataclass(frozen=True)
class Settings:
    """How is graded: what must be the same for the same points.

    Args:
        seed: seed of the hidden cases.
        limits: what a submission may use.
        only: the one question that is graded, or None.
        plan: how the process is shut in; None takes the best that works.
    """

    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    only: str | None = None
    plan: str | None = None


def bounds(seconds: float, megabytes: int) -> Limits:
    """Return limits after a look at the numbers.

    >>> bounds(5.0, 10)
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: memory must be a whole number of at least 64, got 10
    """
    if not 0.1 <= seconds <= 86_400:
        raise InputError(f"timeout must be 0.1 to 86400 seconds, got {seconds:g}")
    return Limits(seconds, whole_number("memory", megabytes, 64, 1 << 20))


class Grader:
    """Grades submissions one after another; a context manager.

    Args:
        settings: how is graded.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self._zygotes: dict[tuple[str, ...], Zygote] = {}

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()

    def zygote(self, forbids: Sequence[str] = ROOMS) -> Zygote:
        """Return a process for questions that forbid the same rooms, a new one if it has died."""
        key = tuple(sorted(forbids))
        zygote = self._zygotes.get(key)
        if zygote is not None and not zygote.alive:
            self._zygotes.pop(key).close()
            zygote = None
        if zygote is None:
            zygote = self._zygotes[key] = Zygote(ROOMS, forbids, self.settings.plan)
        return zygote

    def protections_off(self) -> list[str]:
        """Say which protections do not hold for the processes that were started."""
        said = [line for zygote in self._zygotes.values() for line in protections_off(zygote.facts)]
        return list(dict.fromkeys(said))

    def grade(
        self, id: str, programs: Sequence[Program], questions: Sequence[Question]
    ) -> dict[str, Any]:
        """Grade one submission.

        Args:
            id: its name.
            programs: what was handed in.
            questions: what is asked.

        Returns:
            Plain data: id, score, max_score, status, questions, and notes for people.
        """
        notes = [f"{p.name}: {p.problem}" for p in programs if p.problem]
        readable = [p for p in programs if not p.problem]
        rows: dict[str, dict[str, Any]] = {}
        for forbids in dict.fromkeys(tuple(sorted(q.forbids)) for q in questions):
            group = [q for q in questions if tuple(sorted(q.forbids)) == forbids]
            try:
                for row in self._grade_group(readable, group, notes):
                    rows[row["name"]] = row
                    if programs and not readable:
                        row["message"] = f"nothing of it can be read: {notes[0]}"
            except Exception as error:  # a fault of ours or of the machine: never a zero
                why = str(error) if isinstance(error, CannotGrade) else f"fault: {error!r}"
                for question in group:
                    rows.setdefault(question.name, _row(question, CANNOT, why))
        ordered = [rows[q.name] for q in questions]
        return _summed(id, ordered, list(dict.fromkeys(notes)), bool(programs) and not readable)

    def _grade_group(
        self, programs: Sequence[Program], group: Sequence[Question], notes: list[str]
    ) -> list[dict[str, Any]]:
        """Grade questions that forbid the same rooms; each program runs once."""
        rows = []
        with ExitStack() as stack:
            sessions: dict[str, Session] = {}
            for program in programs:
                names = [q.name for q in group if mentions(program.text, q.name)]
                more = sum((q.seconds for q in group if q.name in names), 0.0)
                if names:
                    zygote = self.zygote(group[0].forbids)
                    session = Session(zygote, program.cells, names, self.settings.limits, more)
                    sessions[program.name] = stack.enter_context(session)
            for question in group:
                rows.append(self._grade_question(question, sessions))
            for name, session in sessions.items():
                told = [*session.notes, *session.problems]
                notes += [f"{name}, {text}" if len(programs) > 1 else text for text in told]
        return rows

    def _grade_question(self, question: Question, sessions: dict[str, Session]) -> dict[str, Any]:
        """Ask the last program that has the answer."""
        named = {p: s for p, s in sessions.items() if question.name in s.names}
        having = [p for p in named if question.name in self._alone(p, sessions).look()]
        if not having:
            told = [text for s in named.values() for text in s.notes + s.problems]
            if told:
                why = f"{question.name} is not defined after the cells ran. " + "; ".join(told[:3])
                return _row(question, FAILED, why)
            return _row(question, NOT_ATTEMPTED, f"there is no {question.name} in it")
        session = self._alone(having[-1], sessions)
        session.begin(question.seconds)
        report = examine_by(
            question,
            lambda case: session.ask(question.name, question.kind, case),
            VISIBLE,
            remembered,
        )
        hidden = None
        if report.outcome == PASSED and self.settings.seed != VISIBLE:
            hidden = examine_by(
                question,
                lambda case: session.ask(question.name, question.kind, case),
                self.settings.seed,
                remembered,
            )
        row = _row(question, *_outcome(report, hidden))
        if row["outcome"] not in (PASSED, NOT_ATTEMPTED):
            session.renew()
        row["checks"] = _checks(report, hidden)
        row["details"] = _details(report)
        row["message"] += _said_twice(question.name, having, session)
        row["where"] = defined_at(question.name, session.cells)
        return row

    def _alone(self, name: str, sessions: dict[str, Session]) -> Session:
        """Return a session while the others rest: a zygote has one child at a time."""
        for other, session in sessions.items():
            if other != name:
                session.rest()
        return sessions[name]


_memory: dict[tuple[str, str, int], Pairs] = {}


def remembered(question: Question, check: Check, seed: int) -> Pairs:
    """Return cases and true answers; they are computed once for all submissions."""
    key = (question.name, check.id, seed)
    if key not in _memory:
        _memory[key] = drawn(question, check, seed)
    return _memory[key]


def mentions(text: str, name: str) -> bool:
    """Return whether code mentions a name.

    >>> mentions("ex.check_f(3)", "f"), mentions("f = 1", "f")
    (False, True)
    """
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def defined_at(name: str, cells: Sequence[Cell]) -> str:
    """Return the line of a learner that defines an answer, the last one; looked up, not run.

    >>> defined_at("f", [(1, "x = 1"), (2, "import torch\\ndef f(a):\\n    return a")])
    'cell 2, line 2: def f(a):'
    """
    start = re.compile(rf"(?:(?:def|class)\s+{re.escape(name)}\b|{re.escape(name)}\s*[:=])")
    for number, source in reversed(cells):
        lines = source.split("\n")
        for index in reversed(range(len(lines))):
            if start.match(lines[index]):
                return plain(f"cell {number}, line {index + 1}: {lines[index][:200].rstrip()}")
    return ""


def _row(question: Question, outcome: str, message: str) -> dict[str, Any]:
    score = {PASSED: question.points, CANNOT: None}.get(outcome, 0)
    return {
        "name": question.name,
        "score": score,
        "max_score": question.points,
        "outcome": outcome,
        "message": message,
        "checks": [],
        "details": "",
        "where": "",
    }


def not_graded(id: str, questions: Sequence[Question], why: str) -> dict[str, Any]:
    """Return the result of a submission that could not be graded at all."""
    return _summed(id, [_row(question, CANNOT, why) for question in questions], [], False)


def _summed(
    id: str, rows: list[dict[str, Any]], notes: list[str], unreadable: bool
) -> dict[str, Any]:
    failed = any(row["outcome"] == CANNOT for row in rows)
    return {
        "id": id,
        "score": None if failed else sum(row["score"] for row in rows),
        "max_score": sum(row["max_score"] for row in rows),
        "status": CANNOT if failed else UNREADABLE if unreadable else GRADED,
        "questions": rows,
        "notes": notes,
    }


def _outcome(visible: Report, hidden: Report | None) -> tuple[str, str]:
    """Return the outcome of a question, and what the student is told."""
    end = visible.stopped_at
    if end is not None:
        if end.outcome == NOT_ATTEMPTED and visible.passed == 0:
            return NOT_ATTEMPTED, end.text
        if end.outcome == NOT_CHECKED:
            return CANNOT, end.text
        likely = f"\nlikely: {end.likely}" if end.likely else ""
        return FAILED, f"{end.check.id}: {end.text}{likely}"
    end = hidden.stopped_at if hidden is not None else None
    if end is None:
        count = len(visible.results) + (len(hidden.results) if hidden is not None else 0)
        return PASSED, f"all {count} checks passed"
    if end.outcome == NOT_CHECKED:
        return CANNOT, end.text
    words = f"the visible cases pass, but not other cases of {end.check.id} ({end.check.idea})"
    if end.outcome == RAISED:  # its text may hold data of the hidden case
        kind = end.error if end.error in (*ERRORS, TOO_SLOW, ENDED) else "an error"
        line = re.match(r"in (?:cell \d+, )?line \d+", end.place)
        return FAILED, f"{words}: {kind}{f' {line.group()}' if line else ''}"
    return FAILED, words + (f"\nlikely: {end.check.message}" if end.explained else "")


def _checks(visible: Report, hidden: Report | None) -> list[list[str]]:
    """Return id, idea and outcome of each check: on visible cases, then on hidden ones."""
    rows = [[r.check.id, r.check.idea, r.outcome] for r in visible.results]
    if hidden is not None:
        rows += [[f"{r.check.id}, hidden", r.check.idea, r.outcome] for r in hidden.results]
    return rows


def _details(visible: Report) -> str:
    """Return expected and actual values of a visible case that went wrong."""
    end = visible.stopped_at
    if end is None or end.got is None or end.expected is None or end.expected.numel() > 100:
        return ""
    return f"expected {end.expected.tolist()}\ngot      {end.got.tolist()}"


def _said_twice(name: str, having: Sequence[str], session: Session) -> str:
    if len(having) > 1:
        return f"\n{name} is in several files ({', '.join(having)}); the last counts"
    cells = session.twice.get(name, [])
    if cells:
        shown = ", ".join(str(int(cell)) for cell in cells[:9] if type(cell) is int)
        return f"\n{name} is defined more than once (cells {shown}); the last counts"
    return ""
