"""Tasks that move symbols: one operator, "take the symbol"; all depends on where it stands."""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Int
from torch import Tensor

from lgcourse.relations.affine import N, T
from lgcourse.tasks.base import DIGITS, Prompt, Task, identity
from lgcourse.tasks.families import Segment, family

TAKE = identity(10)


class Rearrange(Task):
    """x1..xn = y1..yn with y_t = x_order(t): one operator, arity 1, so SRC is 1 at every scale.

    Subclasses write `families` and `order`. Layout unpadded: an operand stands n or so positions
    back, which no scale-free relative relation can say.
    """

    vocabulary = "0123456789="
    arity = 1
    chance = 0.1

    def order(self, n: int) -> Int[Tensor, " n"]:
        """Return which x makes y_1, .., y_n; x_1 is number 0."""
        raise NotImplementedError

    def segments(self):
        return [Segment("x", N, DIGITS), self.mark("="), Segment("y", N)]

    def answer(self, prompt, scale):
        return prompt[:, self.order(scale)]

    def solve(self, text):
        self.parse(text)
        x = "".join(text.split())[:-1]
        return "".join(x[k] for k in self.order(len(x)).tolist())


class Copy(Rearrange):
    """Write the input again: x1..xn = x1..xn."""

    name, example = "copy", "31415="

    def families(self):
        x, y = self.places("x", "y")
        return [family(TAKE, y(T), [x(T)], 1, N)]

    def order(self, n):
        return torch.arange(n)


class Reverse(Rearrange):
    """Write the input from its end: x1..xn = xn..x1."""

    name, example = "reverse", "31415="

    def families(self):
        x, y = self.places("x", "y")
        return [family(TAKE, y(T), [x(N + 1 - T)], 1, N)]

    def order(self, n):
        return torch.arange(n).flip(0)


class Shift(Rearrange):
    """Write the input moved by one place: x1..xn = xn x1..x(n-1).

    One operator and two geometries: the first step reads elsewhere than the rest.
    """

    name, example = "shift", "31415="

    def families(self):
        x, y = self.places("x", "y")
        return [family(TAKE, y(T), [x(N)], 1), family(TAKE, y(T), [x(T - 1)], 2, N)]

    def order(self, n):
        return torch.arange(n).roll(1)


class Interleave(Task):
    """a1..an / b1..bn = a1 b1 a2 b2 .. an bn: one operator of arity 1, so SRC is 1 at every scale.

    Two answers share one t, so an operand falls back by one place for every two steps: only a
    relation with forms in 2 j (i - 2j - c n) names it at all scales.
    """

    name, example, vocabulary = "interleave", "123/456=", "0123456789/="
    arity, chance = 1, 0.1

    def segments(self):
        a, b = (Segment(letter, N, DIGITS) for letter in "ab")
        return [a, self.mark("/"), b, self.mark("="), Segment("y", 2 * N)]

    def families(self):
        a, b, y = self.places("a", "b", "y")
        return [family(TAKE, y(2 * T - 1), [a(T)], 1, N), family(TAKE, y(2 * T), [b(T)], 1, N)]

    def answer(self, prompt, scale):
        halves = [prompt[:, :scale], prompt[:, scale + 1 : -1]]
        return rearrange(halves, "two b n -> b (n two)")

    def parse(self, text):
        prompt = super().parse(text)
        slash, scale = self.vocabulary.index("/"), (len(prompt.tokens) - 2) // 2
        middle = [p for p, token in enumerate(prompt.tokens) if token == slash]
        if scale < 1 or middle != [scale] or len(prompt.tokens) != 2 * scale + 2:
            raise self.not_mine(text, "it is not two equally long halves with one '/' between")
        return Prompt(prompt.tokens, scale)

    def solve(self, text):
        self.parse(text)
        a, b = "".join(text.split())[:-1].split("/")
        return "".join(x + y for x, y in zip(a, b, strict=True))
