"""Who is given time once more? What waited for a busy machine, and not what computes or sleeps."""

from __future__ import annotations

import time

import pytest

from lgcourse.grading.answers import Raised
from lgcourse.grading.sandbox import parent, session, wire
from lgcourse.grading.sandbox.parent import Limits
from lgcourse.grading.sandbox.session import TOO_SLOW, Session

SLOW = "too slow"
LOADED = ("loaded", ["f", "g"], {}, [])


class Child(parent.Child):
    """A process that answers as its script says; `waited` is what the kernel would tell."""

    def __init__(self, waited, script):
        self.waited, self.script, self.times = waited, list(script), []

    def say(self, request, until):
        return

    def hear(self, until):
        self.times.append(until - time.monotonic())
        answer = self.script.pop(0)
        if answer == SLOW:
            raise wire.Silent
        return answer

    def ask(self, request, until):
        return self.hear(until)

    def end(self):
        return "the process was ended"


class Zygote(parent.Zygote):
    """Gives children in turn."""

    def __init__(self, *children):
        self.left = list(children)

    def start(self, bounds, seconds):
        return self.left.pop(0)


def asked(*children):
    zygote = Zygote(*children)
    return zygote, Session(zygote, [(1, "f = g = 1")], ["f", "g"], Limits(10.0, 64))


def test_an_answer_that_waited_is_asked_again_with_more_time():
    second = Child(False, [LOADED, ("value", 5)])
    zygote, run = asked(Child(True, [LOADED, SLOW]), second)
    run.begin()
    assert run.ask("f", "function", (1,)) == 5
    assert not zygote.left and not run.notes
    assert second.times[1] == pytest.approx(10 * session.PATIENCE, abs=1)


def test_an_answer_that_computed_all_the_time_is_too_slow():
    zygote, run = asked(Child(False, [LOADED, SLOW]), Child(False, []))
    run.begin()
    with pytest.raises(Raised, match="it took longer than 10 s") as told:
        run.ask("f", "function", (1,))
    assert told.value.kind == TOO_SLOW and len(zygote.left) == 1


def test_what_waits_with_patience_too_is_not_waited_for_in_later_questions():
    children = [Child(True, [LOADED, SLOW]), Child(True, [LOADED, SLOW])]
    zygote, run = asked(*children, Child(True, [LOADED, SLOW]), Child(True, [LOADED, SLOW]))
    run.begin()
    with pytest.raises(Raised, match="it took longer than 40 s"):
        run.ask("f", "function", (1,))
    run.begin()
    with pytest.raises(Raised, match="it took longer than 10 s"):
        run.ask("g", "function", (1,))
    assert len(zygote.left) == 1


def test_cells_that_waited_run_again_and_nothing_is_left_out():
    second = Child(False, [("at", 1, 0), LOADED])
    _, run = asked(Child(True, [("at", 1, 0), SLOW]), second)
    assert run.look() == ["f", "g"] and not run.notes
    assert second.times[0] == pytest.approx(10 * session.PATIENCE, abs=1)


def test_cells_that_wait_again_lose_the_statement():
    slow = [Child(True, [("at", 1, 0), SLOW]) for _ in range(2)]
    _, run = asked(*slow, Child(True, [LOADED]))
    assert run.look() == ["f", "g"]
    assert run.notes == ["cell 1: it took longer than 40 s; that statement is left out"]


def test_cells_that_compute_without_end_lose_the_statement_at_once():
    _, run = asked(Child(False, [("at", 1, 0), SLOW]), Child(False, [LOADED]))
    assert run.look() == ["f", "g"]
    assert run.notes == ["cell 1: it took longer than 10 s; that statement is left out"]
