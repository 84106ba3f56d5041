"""Tasks whose operator depends on the place: does a model meet a new one beyond its training?"""

from __future__ import annotations

import random
from functools import cache

import torch

from lgcourse.relations.affine import N
from lgcourse.tasks.base import DIGITS, Task
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment


class Positionwise(Task):
    """x1..xn = y1..yn with y_t = f_t(x_t), one table f_t per place t: arity 1.

    Subclasses write `table` and `label`. The operands stand as in copy; only the operators differ.
    """

    example, vocabulary = "31415=", "0123456789="
    arity, chance = 1, 0.1

    def table(self, t: int) -> tuple[int, ...]:
        """Return f_t as the tuple of its ten values; t counts from 1."""
        raise NotImplementedError

    def label(self, t: int) -> str:
        """Return what people call f_t."""
        raise NotImplementedError

    def operator(self, t: int) -> Operator:
        """Return f_t as a unit operator; places with the same table share it."""
        return _operator(self.label(t), self.table(t))

    def segments(self):
        return [Segment("x", N, DIGITS), self.mark("="), Segment("y", N)]

    def answer(self, prompt, scale):
        tables = torch.tensor([self.table(t) for t in range(1, scale + 1)])  # n 10
        return tables[torch.arange(scale), prompt[:, :scale]]

    def circuit(self, scale):
        rows = [(f"y{t}", self.operator(t), [f"x{t}"]) for t in range(1, scale + 1)]
        return self.steps(scale, rows)


@cache
def _operator(name: str, values: tuple[int, ...]) -> Operator:
    return Operator(name, ("source",), {(x,): y for x, y in enumerate(values)})


class AddIndexMod(Positionwise):
    """x1..xn = y1..yn with y_t = x_t + t mod 10.

    Arity 1: a step reads its digit; the place t is not among the tokens, so each t mod 10 is an
    operator of its own. SRC is min(n, 10): it grows up to scale 10 and stays, so that training up
    to 8 must fail beyond and training up to 12 need not.
    """

    name, kind = "add-index-mod", "saturates"

    def table(self, t):
        return tuple((x + t) % 10 for x in range(10))

    def label(self, t):
        return f"add {t % 10}"

    def solve(self, text):
        self.parse(text)
        x = "".join(text.split())[:-1]
        return "".join(str((int(c) + t) % 10) for t, c in enumerate(x, start=1))


class RandomPermutationPerPosition(Positionwise):
    """x1..xn = y1..yn with y_t = pi_t(x_t), where pi_1, pi_2, .. are distinct random permutations.

    Arity 1, as above. No two permutations are the same, so SRC is n: a new operator at every place,
    which no training on shorter inputs can have shown. This is the "almost all" case.

    Args:
        seed: which sequence of permutations.
    """

    name, kind = "random-permutation-per-position", "grows"

    def __init__(self, seed: int = 0):
        self.seed = seed

    def table(self, t):
        return distinct_permutations(self.seed, 1 << (t - 1).bit_length())[t - 1]

    def label(self, t):
        return f"pi {t}"

    def solve(self, text):
        self.parse(text)
        x = "".join(text.split())[:-1]
        return "".join(str(self.table(t)[int(c)]) for t, c in enumerate(x, start=1))


@cache
def distinct_permutations(seed: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the first ``count`` of a random sequence of distinct permutations of 0..9."""
    source = random.Random(seed)
    drawn: dict[tuple[int, ...], None] = {}  # in the order of drawing
    while len(drawn) < count:
        drawn.setdefault(tuple(source.sample(range(10), 10)))
    return tuple(drawn)
