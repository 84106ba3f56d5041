"""Tasks that move symbols: one operator, "take the symbol"; all depends on where it stands."""

from __future__ import annotations

import torch
from einops import rearrange

from lgcourse.tasks.base import Prompt, Task, digits, identity, numbered


class Rearrange(Task):
    """x1..xn = y1..yn with y_t = x_source(t): one operator, arity 1, so SRC is 1 at every scale.

    Subclasses write `source`. Layout unpadded: an operand stands n or so positions back, which no
    scale-free relative relation can say.
    """

    vocabulary = "0123456789="
    arity = 1
    chance = 0.1

    def source(self, t: int, n: int) -> int:
        """Return which x makes y_t; both count from 1."""
        raise NotImplementedError

    def layout(self, scale):
        return numbered("x", scale) + ["="] + numbered("y", scale)

    def prompt(self, scale, batch, generator):
        x = digits(10, (batch, scale), generator)
        return torch.cat([x, torch.full((batch, 1), 10)], dim=1)

    def answer(self, prompt, scale):
        return prompt[:, [self.source(t, scale) - 1 for t in range(1, scale + 1)]]

    def circuit(self, scale):
        take = identity(10)
        rows = [(f"y{t}", take, [f"x{self.source(t, scale)}"]) for t in range(1, scale + 1)]
        return self.steps(scale, rows)

    def solve(self, text):
        self.parse(text)
        x = "".join(text.split())[:-1]
        return "".join(x[self.source(t, len(x)) - 1] for t in range(1, len(x) + 1))


class Copy(Rearrange):
    """Write the input again: x1..xn = x1..xn."""

    name, example = "copy", "31415="

    def source(self, t, n):
        return t


class Reverse(Rearrange):
    """Write the input from its end: x1..xn = xn..x1."""

    name, example = "reverse", "31415="

    def source(self, t, n):
        return n + 1 - t


class Shift(Rearrange):
    """Write the input moved by one place: x1..xn = xn x1..x(n-1).

    One operator and two geometries: the first step reads elsewhere than the rest.
    """

    name, example = "shift", "31415="

    def source(self, t, n):
        return n if t == 1 else t - 1


class Interleave(Task):
    """a1..an / b1..bn = a1 b1 a2 b2 .. an bn: one operator of arity 1, so SRC is 1 at every scale.

    Two answers share one t, so an operand falls back by one place for every two steps: only a
    relation with forms in 2 j (i - 2j - c n) names it at all scales.
    """

    name, example, vocabulary = "interleave", "123/456=", "0123456789/="
    arity, chance = 1, 0.1

    def layout(self, scale):
        answer = numbered("y", 2 * scale)
        return [*numbered("a", scale), "/", *numbered("b", scale), "=", *answer]

    def prompt(self, scale, batch, generator):
        a, b = digits(10, (2, batch, scale), generator)
        slash, equals = (torch.full((batch, 1), self.vocabulary.index(c)) for c in "/=")
        return torch.cat([a, slash, b, equals], dim=1)

    def answer(self, prompt, scale):
        halves = [prompt[:, :scale], prompt[:, scale + 1 : -1]]
        return rearrange(halves, "two b n -> b (n two)")

    def circuit(self, scale):
        rows = []
        for t in range(1, scale + 1):
            rows += [(f"y{2 * t - 1}", identity(10), [f"a{t}"])]
            rows += [(f"y{2 * t}", identity(10), [f"b{t}"])]
        return self.steps(scale, rows)

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
