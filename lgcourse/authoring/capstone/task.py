"""The task: what is asked, and which step reads what? Change this file, then run run.py.

The example carries the last symbol forward over gaps: 3..1.= gives 33311. A task says three things:
the segments of its layout, its steps, and its answers. N is the scale, T the number of a step.
"""

from __future__ import annotations

import torch

from lgcourse.relations.affine import N, T
from lgcourse.tasks import Operator, Segment, family
from lgcourse.tasks.base import Task, identity

SYMBOLS = tuple(range(5))  # tokens: the places of ".1234" in the vocabulary; 0 is the gap

# A step reads the result before and the next input: the next input, or over a gap the result.
KEEP = Operator.from_rule("keep", ("before", "next"), lambda before, next: next or before, SYMBOLS)


class MyTask(Task):
    """x1..xn = y1..yn where y_t is x_t, or y_(t-1) if x_t is a gap."""

    name, example, vocabulary = "my-task", "3..1.=", ".1234="
    arity, chance = 2, 0.2  # a step reads two tokens; blind guessing is right once in five times

    def segments(self):
        """The layout of all scales: x is given, y is what the steps write."""
        return [Segment("x", N, SYMBOLS), self.mark("="), Segment("y", N)]

    def families(self):
        """The circuit of all scales: operator, output, inputs, first and last T of each family."""
        x, y = self.places("x", "y")
        first = family(identity(5), y(T), [x(T)], 1)  # no result before it: it copies
        return [first, family(KEEP, y(T), [y(T - 1), x(T)], 2, N)]  # t = 2..n

    def answer(self, prompt, scale):
        """The true answers, not computed by the circuit: the check compares the two."""
        y = prompt[:, :scale].clone()
        for t in range(1, scale):
            y[:, t] = torch.where(y[:, t] == 0, y[:, t - 1], y[:, t])
        return y
