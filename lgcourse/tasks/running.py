"""Tasks with a running result: each answer token joins the one before with the next input.

The intermediate results are the chain of thought (CoT).
"""

from __future__ import annotations

from functools import lru_cache

import torch

from lgcourse.relations.affine import N, T
from lgcourse.tasks.base import Prompt, Task, identity
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.tasks.padding import Padded, pad_operand, refuse_wider


@lru_cache
def plus_mod(modulus: int) -> Operator:
    """The operator y, x -> y + x mod m."""
    return Operator.from_rule(
        "add", ("before", "next"), lambda y, x: (y + x) % modulus, range(modulus)
    )


class Running(Task):
    """x1..xn = y1..yn with y_t = y_(t-1) + x_t mod m.

    Arity 2: a step needs the result before and the next input; the first one takes its input only.
    SRC 2 from scale 2 on (take, add), 1 at scale 1.
    """

    modulus: int
    arity = 2

    def segments(self):
        return [Segment("x", N, tuple(range(self.modulus))), self.mark("="), Segment("y", N)]

    def families(self):
        x, y = self.places("x", "y")
        return [
            family(identity(self.modulus), y(T), [x(T)], 1),
            family(plus_mod(self.modulus), y(T), [y(T - 1), x(T)], 2, N),
        ]

    def answer(self, prompt, scale):
        return prompt[:, :scale].cumsum(1) % self.modulus

    def solve(self, text):
        self.parse(text)
        values = [int(c) for c in "".join(text.split())[:-1]]
        totals = [sum(values[: t + 1]) % self.modulus for t in range(len(values))]
        return "".join(map(str, totals))


class ParityCoT(Running):
    """Parity with chain of thought: y_t is the parity of x1..xt, the last one is the answer."""

    name, example, vocabulary, modulus, chance = "parity-cot", "10110=", "01=", 2, 0.5


class ModSumCoT(Running):
    """Sum modulo 10 with chain of thought: y_t is the last digit of x1 + .. + xt."""

    name, example, vocabulary = "modsum-cot", "31415=", "0123456789="
    modulus, chance = 10, 0.1


class ParityCoTPadded(Padded, ParityCoT):
    """Parity with chain of thought, zero-padded: x1..xW = y1..yW, where x and y are 0 after n.

    Operands stand W + 1 and 1 positions back at every scale, so a scale-free relation aligns. Only
    y1..yn are scored.

    Args:
        width: W, the largest scale that fits.
    """

    name, example = "parity-cot-padded", "10110="

    def segments(self):
        x, equals, y = super().segments()
        return [x, self.zeros("x", N), equals, y, self.zeros("y", N)]

    def parse(self, text):
        prompt = super().parse(text)
        scale = len(prompt.tokens) - 1
        refuse_wider(self, scale)
        tokens = pad_operand(torch.tensor([prompt.tokens]), scale, self.width)[0].tolist()
        return Prompt(tokens, scale, [f"padded with zeros to width {self.width}"])
