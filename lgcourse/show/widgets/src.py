"""How does the number of a circuit's operators grow? Edit a circuit, choose a relation."""

from __future__ import annotations

import ipywidgets
import torch

from lgcourse import relations
from lgcourse.errors import unknown_name, whole_number
from lgcourse.show.growth import circuit_growth, growth_figure
from lgcourse.show.widgets.html import Picture, box, choice, limit, slider
from lgcourse.show.widgets.task import explorable, largest, task_named
from lgcourse.tasks.base import Task, numbered
from lgcourse.tasks.circuit import Operator, Step

LARGEST, SIZES = 30, 12  # largest scale, and largest size k
LONGEST = 100  # tokens of the longest sequence
NOTHING = "(none)"
CLOCK = "clock: k operators in turn"


class Clock(Task):
    """y_t = y_(t-1) + x_t + (t mod k), modulo 10: k operators that take turns.

    Args:
        k: how many operators there are.

    >>> from lgcourse.theory import src
    >>> src(Clock(3), 20)
    4
    """

    name, vocabulary, example = "clock", "0123456789=", "314="
    arity, chance, kind = 2, 0.1, "saturates"

    def __init__(self, k: int):
        digits = range(10)
        self.first = Operator.from_rule("start", ("source",), lambda x: (x + 1 % k) % 10, digits)
        self.turns = [
            Operator.from_rule(
                f"add {c}", ("before", "next"), lambda y, x, c=c: (y + x + c) % 10, digits
            )
            for c in range(k)
        ]

    def layout(self, scale) -> list[str]:
        return [*numbered("x", scale), "=", *numbered("y", scale)]

    def circuit(self, scale) -> list[Step]:
        later = [
            Step(scale + t, self.turns[t % len(self.turns)], (scale + t - 1, t - 1))
            for t in range(2, scale + 1)
        ]
        return [Step(scale + 1, self.first, (0,)), *later]

    def prompt(self, scale, batch, generator):
        x = torch.randint(10, (batch, scale), generator=generator)
        return torch.cat([x, torch.full((batch, 1), 10)], dim=1)

    def answer(self, prompt, scale):
        turn = torch.arange(1, scale + 1) % len(self.turns)
        return (prompt[:, :scale] + turn).cumsum(dim=1) % 10


def src_explorer(
    circuit: str = "parity-cot",
    relation: str = "rpe",
    size: int = 4,
    scale: int = 12,
    train_scale: int = 6,
) -> ipywidgets.VBox:
    """Make a widget: choose a circuit and a relation, see the operators and how SRC grows.

    Args:
        circuit: the circuit shown first: a task, or `CLOCK`, the one whose size can be edited.
        relation: a name in `lgcourse.relations` whose induced operators are counted, or "(none)".
        size: the number k of operators of the clock, 1..12.
        scale: the largest scale shown first, 1..30.
        train_scale: training shows scales up to this one, 1..30.

    Returns:
        A `VBox` with two drop-down lists, three sliders and the picture.

    Raises:
        InputError: the circuit or relation is unknown, or a number lies outside.

    >>> "induced by rpe" in src_explorer().children[-1].value
    True
    """
    names = [CLOCK, *explorable()]
    if circuit not in names:
        raise unknown_name("circuit", circuit, names)
    known = [NOTHING, *relations.names()]
    if relation not in known:
        raise unknown_name("relation", relation, known)
    which, of = choice("circuit", circuit, names), choice("relation", relation, known)
    k = slider("size k", whole_number("size", size, 1, SIZES), 1, SIZES)
    n = slider("scale n", whole_number("scale", scale, 1, LARGEST), 1, LARGEST)
    whole_number("train_scale", train_scale, 1, LARGEST)
    trained = slider("training up to", train_scale, 1, LARGEST)
    picture = Picture()

    def chosen():
        return Clock(k.value) if which.value == CLOCK else task_named(which.value, LARGEST)

    def figure():
        task, name = chosen(), which.value
        phi = None
        if of.value != NOTHING:
            phi = relations.build(of.value, task, max_scale=task.scale_of(n.value))
        name = f"the clock with {k.value} operators" if name == CLOCK else name
        return growth_figure(circuit_growth(task, phi, n.value, trained.value, name))

    def draw(_=None) -> None:
        picture.show(figure)

    def choose(_=None) -> None:
        k.disabled = which.value != CLOCK
        if not limit(n, largest(chosen(), LARGEST, LONGEST)):
            draw()

    limit(n, largest(chosen(), LARGEST, LONGEST))
    k.disabled = circuit != CLOCK
    which.observe(choose, "value")
    for control in (of, k, n, trained):
        control.observe(draw, "value")
    draw()
    return box([which, of, k, n, trained], picture.widget)
