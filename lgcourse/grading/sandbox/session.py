"""How is a program asked question after question, though it may end its process at any time?

When a process ends or hangs while cells run, a new one leaves that statement out. When it does so
in a call, that question is lost and a new process goes on with the next one.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Sequence
from typing import Any

from lgcourse.grading.answers import CannotGrade, Case, NotAttempted, Raised
from lgcourse.grading.comparison import Misfit
from lgcourse.grading.sandbox import wire
from lgcourse.grading.sandbox.cells import Cell
from lgcourse.grading.sandbox.child import packed
from lgcourse.grading.sandbox.codec import Garbled
from lgcourse.grading.sandbox.parent import Child, Limits, Zygote

RESTARTS = 4  # processes that a program's cells may use up
PATIENCE = 4  # times the limit, once, for what waited most of its time: the machine was busy
QUICK = 1.0  # seconds: cells that take no longer run again after an answer that failed
TOO_SLOW, ENDED = "it took too long", "its process ended"  # kinds of fault
LONGEST = 600  # characters of a text from the other side


class Session:
    """A program in a process, and in another when that ends; a context manager.

    Args:
        zygote: makes the processes.
        cells: the code.
        names: the names of all answers that will be asked for.
        bounds: limits of each process.
        seconds: that the cells may take, beyond the limits' own, for training.
    """

    def __init__(
        self,
        zygote: Zygote,
        cells: Sequence[Cell],
        names: Sequence[str],
        bounds: Limits,
        seconds: float = 0.0,
    ):
        self._zygote, self.cells, self.names, self._bounds = zygote, cells, list(names), bounds
        self._seconds = bounds.seconds + seconds
        self._skip: list[tuple[int, int]] = []
        self._child: Child | None = None
        self._until = self._took = 0.0
        self._dead, self._looked = "", False
        self._patient, self._hope = False, True  # no hope: what was asked with patience waited on
        self.notes: list[str] = []  # what ended a process while cells ran
        self.problems: list[str] = []  # what went wrong in cells
        self.found: list[str] = []
        self.twice: dict[str, list[int]] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self._end()

    def look(self) -> list[str]:
        """Return which of the names are there after the cells ran; they run once for this."""
        if not self._looked:
            self._load()
        return self.found

    def _load(self) -> None:
        """Run the cells, unless a process has them."""
        while self._child is None and not self._dead:
            self._load_once()
        self._looked = True

    def rest(self) -> None:
        """End the process; the next question begins with a new one."""
        self._end()

    def begin(self, seconds: float = 0.0) -> None:
        """Begin a question: its calls together have the limit's time, and some more if needed."""
        self._load()
        self._allowed = self._bounds.seconds + seconds
        self._until = time.monotonic() + self._allowed
        self._patient = False

    def renew(self) -> None:
        """After an answer that failed: let the next one have a fresh process, if that is quick.

        A failed call can leave threads, processes or changed modules behind.
        """
        if self._took <= QUICK:
            self._end()

    def ask(self, name: str, kind: str, case: Case) -> Any:
        """Return what an answer gives in a case.

        Raises:
            Wrong, NotAttempted: what is not right with it.
            CannotGrade: it is no fault of the answer.
        """
        if self._child is None:
            raise _told(self._dead or "its process has ended", ENDED)
        child = self._child
        try:
            reply = child.ask(("ask", name, kind, packed(case)), self._until)
        except wire.Silent:
            self._end()
            if self._worth_patience(child):
                return self._ask_again(name, kind, case)
            raise _told(f"it took longer than {self._allowed:g} s", TOO_SLOW) from None
        except (wire.Lost, Garbled) as error:
            raise _told(self._ended(error), ENDED) from None
        return self._meaning(reply)

    def _ask_again(self, name: str, kind: str, case: Case) -> Any:
        """Ask once more, with patience: on a busy machine nobody shall lose points."""
        self._load()
        self._allowed *= PATIENCE
        self._until = time.monotonic() + self._allowed
        return self.ask(name, kind, case)

    def _worth_patience(self, child: Child) -> bool:
        """Return whether what was too slow shall have more time: once, if it did not compute."""
        self._hope &= not self._patient
        self._patient = child.waited and self._hope
        return self._patient

    def _meaning(self, reply: Any) -> Any:
        match reply:
            case ("value", value):
                return value
            case ("undefined",):
                raise NotAttempted("it is not defined")
            case ("not attempted", str(text)):
                raise NotAttempted(plain(text))
            case ("misfit", str(text)):
                raise Misfit(plain(text))
            case ("raised", str(kind), str(text), str(place)):
                told = Raised(plain(text))
                told.kind, told.place = plain(kind)[:80], plain(place)
                raise told
            case ("missing", str(package), str(place)):
                if _is_here(package):
                    raise Raised(f"your code cannot import {plain(package)}")
                raise CannotGrade(
                    f"it needs the package {plain(package)[:80]}, which is not installed where "
                    "grading runs; install it there and grade again"
                    + ("" if self._imports(package) else " (its own code has no import of it)")
                )
        self._end()
        raise Raised("what came back is no answer")

    def _imports(self, package: str) -> bool:
        """Return whether the code names a package where it imports; a teacher is told if not."""
        named = re.compile(rf"(?m)^.*(\bfrom\b|import).*\b{re.escape(package)}\b")
        return any(named.search(source) for _, source in self.cells)

    def _load_once(self) -> None:
        """Run the cells in a new process."""
        child = self._zygote.start(self._bounds, self._seconds * (2 + len(self.names)))
        began, allowed = time.monotonic(), self._seconds * (PATIENCE if self._patient else 1)
        until = began + allowed
        at = (0, 0)
        try:
            child.say(("load", list(self.cells), self._skip, self.names), until)
            while True:
                match child.hear(until):
                    case ("at", int(cell), int(statement)):
                        at = (cell, statement)
                    case ("loaded", list(found), dict(defined), list(problems)):
                        break
                    case _:
                        raise Garbled
        except wire.Silent:
            child.end()
            if self._worth_patience(child):
                return
            why = f"it took longer than {allowed:g} s"
        except (wire.Lost, Garbled) as error:
            why = child.end() if isinstance(error, wire.Gone) else "what came back is no answer"
            child.end()
        else:
            self._took = time.monotonic() - began
            self._child, self.found = child, [n for n in self.names if n in found]
            self.problems = [plain(p) for p in problems if isinstance(p, str)][:20]
            self.twice = {n: c for n, c in defined.items() if isinstance(c, list) and len(c) > 1}
            return
        self.notes.append(f"cell {at[0]}: {why}; that statement is left out")
        if at == (0, 0) or at in self._skip or len(self._skip) + 1 >= RESTARTS:
            self._dead = self.notes[-1] = f"cell {at[0]}: {why}"
        self._skip.append(at)

    def _ended(self, error: Exception) -> str:
        """End the process after a failure, and say what it was."""
        child, self._child = self._child, None
        assert child is not None
        how = child.end()
        return how if isinstance(error, wire.Gone) else "what came back is no answer"

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


def _told(text: str, kind: str) -> Raised:
    """Return a fault of an answer that is none of its exceptions."""
    told = Raised(text)
    told.kind = kind
    return told


def plain(text: str) -> str:
    """Return text of the other side as it may be shown: bounded, without control characters.

    >>> plain("a\\x1b[31mb")
    'a[31mb'
    """
    return "".join(c for c in text[:LONGEST] if c.isprintable() or c == "\n")


def _is_here(package: str) -> bool:
    try:
        return package.isidentifier() and importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
