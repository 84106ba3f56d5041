"""What does the process do in which student code runs? It runs cells, then answers calls.

It is asked for one call at a time and knows neither the other calls nor what would be right.
Nothing that it says is believed: the parent compares the values.
"""

from __future__ import annotations

import os
import random
import socket
import sys
from types import ModuleType
from typing import Any

import numpy as np
import torch

from lgcourse.grading.answers import Asked, NotAttempted, Raised, Use
from lgcourse.grading.comparison import Misfit
from lgcourse.grading.sandbox import limits, wire
from lgcourse.grading.sandbox.absent import Absent, NotHere, Quiet
from lgcourse.grading.sandbox.cells import Run
from lgcourse.grading.sandbox.codec import decode, encode


class Child:
    """The side of the conversation that holds the student's namespace."""

    def __init__(self, channel: socket.socket):
        self.channel = channel
        self.names: dict[str, Any] = {}
        self.asked: dict[str, Asked] = {}

    def serve(self) -> None:
        """Answer requests until the parent has no more."""
        while True:
            name, *arguments = decode(wire.receive(self.channel), build=True)
            wire.send(self.channel, encode(getattr(self, name)(*arguments)))

    def probe(self, secrets: list[str], needed: list[str]) -> dict[str, Any]:
        """Say which limits hold."""
        return limits.read_back(secrets, needed)

    def load(self, cells: list[Any], skip: list[Any], names: list[str]) -> Any:
        """Run the cells; say before each statement where we are, since it may end the process."""
        seed_all()

        def at(cell: int, statement: int) -> None:
            wire.send(self.channel, encode(("at", cell, statement)))

        run = Run(cells, skip, names, at)
        main = ModuleType("__main__")
        run.namespace = main.__dict__
        run.namespace.update(display=Quiet(), get_ipython=Quiet)
        sys.modules["__main__"] = main
        run.run()
        self.names = run.namespace
        found = [name for name in names if name in self.names]
        return ("loaded", found, run.defined, run.problems)

    def ask(self, name: str, kind: str, case: Any) -> Any:
        """Use an answer in one case."""
        if name not in self.names:
            return ("undefined",)
        if name not in self.asked:
            self.asked[name] = Asked(self.names[name], kind)
        seed_all()
        Absent.strict = True
        try:
            value = self.asked[name](unpacked(case))
        except NotAttempted as why:
            return ("not attempted", str(why))
        except Misfit as problem:
            return ("misfit", str(problem))
        except Raised as told:
            return failure(told)
        finally:
            Absent.strict = False
        if isinstance(value, Absent):
            return ("raised", "NotHere", f"it returns {value._name}, which is not there", "")
        return ("value", value)


def failure(told: Raised) -> tuple[str, ...]:
    """Return what an answer raised; missing packages and rooms have words of their own."""
    error = told.__context__
    if isinstance(error, NotHere):
        return ("raised", "NotHere", str(error), told.place)
    if isinstance(error, ModuleNotFoundError) and type(error.name) is str:
        return ("missing", error.name.split(".")[0], told.place)
    return ("raised", told.kind, str(told), told.place)


def packed(case: Any) -> Any:
    """Return a case as plain data."""
    if isinstance(case, Use):
        parts = (dict(case.inputs), dict(case.options), dict(case.weights))
        return ("use", *parts, case.method)
    return ("call", case)


def unpacked(packed: Any) -> Any:
    """Return a case from plain data."""
    return Use(*packed[1:]) if packed[0] == "use" else packed[1]


def seed_all() -> None:
    """Let code that draws at random draw the same each time."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def main(channel: socket.socket) -> None:
    """Answer requests on a channel; ends the process."""
    try:
        wire.send(channel, encode(("ready",)))
        Child(channel).serve()
    except wire.Lost:
        os._exit(0)
    except BaseException:
        os._exit(70)
