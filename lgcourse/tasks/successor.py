"""The number after a number: the smallest task in which a carry can cross the whole input."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

import torch
from torch import Tensor

from lgcourse.relations.affine import N, T
from lgcourse.tasks.addition import add_digits, carry
from lgcourse.tasks.base import DIGITS, digits
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.tasks.numerals import Numerals, exact

EQUALS = 10


@lru_cache
def successor_operators() -> tuple[Operator, Operator]:
    """The unit operators of the successor: first digit, later digits ("=" at the end is a zero)."""

    def later(x, x_before, y_before):
        into = carry(x_before, 0, y_before)
        return None if into is None else ((0 if x == EQUALS else x) + into) % 10

    roles = ("x", "x before", "y before")
    return (
        Operator.from_rule("first", ("x",), lambda x: (x + 1) % 10, range(10)),
        Operator.from_rule("digit", roles, later, [[*range(10), EQUALS], range(10), range(10)]),
    )


class Successor(Numerals):
    """x1..xn = y1..y(n+1) with y = x + 1, least digit first.

    Arity 3: a digit needs x_t, and the two of the column before, which tell the carry. Digit n + 1
    reads "=" in place of x, as a zero, as in `Addition`; so SRC is 2 (first digit, later digits).
    Half of the samples end in a run of nines, of any length up to n: with uniform digits alone,
    copying all but two digits would nearly always be right.
    """

    name, example, vocabulary = "successor", "1299=", "0123456789="
    arity, chance = 3, 0.1

    def segments(self):
        return [Segment("x", N, DIGITS), self.mark("="), Segment("y", N + 1)]

    def families(self):
        first, later = successor_operators()
        x, y = self.places("x", "y")  # x(n + 1) is "="
        return [
            family(first, y(T), [x(T)], 1),
            family(later, y(T), [x(T), x(T - 1), y(T - 1)], 2, N + 1),
        ]

    def prompt(self, scale, batch, generator):
        x = digits(10, (batch, scale), generator)
        run = digits(scale + 1, (batch,), generator) * digits(2, (batch,), generator)
        return self._close(end_in_nines(x, run))

    def _close(self, x: Tensor) -> Tensor:
        return torch.cat([x, x.new_full((len(x), 1), self.vocabulary.index("="))], dim=1)

    def answer(self, prompt, scale):
        x, one = prompt[:, :scale], torch.zeros_like(prompt[:, :scale])
        one[:, 0] = 1
        return add_digits(x, one)

    def hard(self, scale, batch, generator):
        """Draw runs of nines over at least 0.9 n digits, and in every second sample over all n."""
        x = digits(9, (batch, scale), generator)  # no nine behind the run
        run = scale - digits(max(1, scale // 10) + 1, (batch,), generator)
        run[torch.arange(batch) % 2 == 1] = scale
        return self.batch(self._close(end_in_nines(x, run)), scale)

    def solve(self, text):
        self.parse(text)
        x = "".join(text.split())[:-1]
        return f"{exact(len(x) + 1).add(Decimal(x), 1):f}"


def end_in_nines(x: Tensor, run: Tensor) -> Tensor:
    """Set the lowest ``run`` digits, one number [b] per row of x [b n], to nine.

    >>> end_in_nines(torch.zeros(2, 3, dtype=torch.long), torch.tensor([1, 3]))
    tensor([[9, 0, 0],
            [9, 9, 9]])
    """
    return torch.where(torch.arange(x.shape[1]) < run[:, None], 9, x)
