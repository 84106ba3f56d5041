"""Which of two numbers is larger? Decided digit by digit, from the lowest one, in the open."""

from __future__ import annotations

from functools import lru_cache

import torch

from lgcourse.relations.affine import N, T
from lgcourse.tasks.base import DIGITS, digits
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.tasks.numerals import Numerals

LESS, GREATER, EQUAL = 12, 13, 14  # the tokens < > ~


def _verdict(a: int, b: int, before: int) -> int:
    return before if a == b else (LESS if a < b else GREATER)


@lru_cache
def compare_operators() -> tuple[Operator, Operator]:
    """The unit operators of a comparison: lowest digits, and later ones with the result before."""
    tokens = [range(10), range(10), (LESS, GREATER, EQUAL)]
    first = Operator.from_rule("first", ("a", "b"), lambda a, b: _verdict(a, b, EQUAL), range(10))
    return first, Operator.from_rule("compare", ("a", "b", "before"), _verdict, tokens)


class CompareCoT(Numerals):
    """a1..an ? b1..bn = c1..cn, least digit first: c_t compares the numbers of the lowest t digits.

    c_t is < or > or, where both are equal so far, ~; the last one is the answer. Arity 3: the
    digits decide if they differ, otherwise the result before stands. SRC 2 from scale 2 on, 1 at
    scale 1. In half of the columns of a sample both digits are equal, or the result before would
    hardly ever count.
    """

    name, example, vocabulary, sign = "compare-cot", "905?128=", "0123456789?=<>~", "?"
    arity, chance, strip = 3, 1 / 3, False

    def segments(self):
        a, b = (Segment(letter, N, DIGITS) for letter in "ab")
        return [a, self.mark("?"), b, self.mark("="), Segment("c", N)]

    def families(self):
        first, compare = compare_operators()
        a, b, c = self.places("a", "b", "c")
        return [
            family(first, c(T), [a(T), b(T)], 1),
            family(compare, c(T), [a(T), b(T), c(T - 1)], 2, N),
        ]

    def prompt(self, scale, batch, generator):
        a, other = digits(10, (2, batch, scale), generator)
        same = digits(2, (batch, scale), generator) == 0
        return self.join(a, torch.where(same, a, other))

    def answer(self, prompt, scale):
        a, b = self.operands(prompt, scale)
        verdict = torch.where(a < b, LESS, torch.where(a > b, GREATER, EQUAL))
        column = torch.arange(scale)
        decides = torch.where(a != b, column, 0).cummax(dim=1).values  # the last that differs
        return torch.gather(verdict, 1, decides)

    def hard(self, scale, batch, generator):
        """Draw numbers that differ in the lowest digit only, by turns nowhere or in all digits."""
        a = digits(10, (batch, scale), generator)
        b, kind = a.clone(), torch.arange(batch) % 3
        other = (a + 1 + digits(9, (batch, scale), generator)) % 10  # never equal
        b[kind == 0, 0] = other[kind == 0, 0]
        b[kind == 2] = other[kind == 2]
        return self.batch(self.join(a, b), scale)

    def parse(self, text):
        return self.equal_length(text)

    def solve(self, text):
        a, b = self.two_numbers(text)
        scale = max(len(a), len(b))
        a, b, verdict, verdicts = a.zfill(scale), b.zfill(scale), "~", ""
        for x, y in zip(reversed(a), reversed(b), strict=True):
            verdict = verdict if x == y else "<" if x < y else ">"
            verdicts += verdict
        return verdicts
