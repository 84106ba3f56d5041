"""Answers without intermediate steps: what does it cost to leave the chain of thought out?

Without results to build on, a step must read operands in a number that grows with the scale. No
bound k on the arity holds, so SRC_k is infinite from some scale on, whatever k is. With unbounded
arity circuits exist; they are given where their tables can be written down.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from lgcourse.errors import InputError
from lgcourse.relations.affine import Affine, N
from lgcourse.tasks.base import DIGITS, Task, numbered
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment
from lgcourse.tasks.multiplication import product_digits
from lgcourse.tasks.numerals import Numerals, exact


class Direct(Task):
    """Base class of tasks without intermediate steps: arity without bound, the operators grow.

    Attributes:
        largest_circuit: the largest scale whose circuit has tables that can be written down.
        entries: how large they are, in words.
    """

    arity, kind = None, "grows"
    largest_circuit: int
    entries: str

    def refuse_larger(self, scale) -> None:
        """Refuse a scale whose operators have tables that are too large."""
        if scale > self.largest_circuit:
            raise InputError(
                f"task '{self.name}' has a circuit at scales 1..{self.largest_circuit} only, got "
                f"{scale}: without intermediate steps {self.entries}"
            )


@lru_cache
def parity_operator(n: int) -> Operator:
    """The operator of arity n that gives the parity of n bits."""
    return Operator.from_rule(
        f"parity of {n}", numbered("bit ", n), lambda *bits: sum(bits) % 2, range(2)
    )


class ParityDirect(Direct):
    """x1..xn = y: the parity of all bits at once.

    Its one step reads all n bits: each of them decides, so arity n and no less. Each scale needs an
    operator of its own, so |U| = n with unbounded arity, and SRC_k is infinite beyond scale k.
    """

    name, example, vocabulary, chance = "parity-direct", "10110=", "01=", 0.5
    largest_circuit, entries = 16, "its one step reads all n bits, a table with 2^n entries"

    def segments(self):
        return [Segment("x", N, (0, 1)), self.mark("="), Segment("y", Affine(1), start=None)]

    def answer(self, prompt, scale):
        return prompt[:, :scale].sum(dim=1, keepdim=True) % 2

    def circuit(self, scale):
        self.refuse_larger(scale)
        return self.steps(scale, [("y", parity_operator(scale), numbered("x", scale))])

    def solve(self, text):
        self.parse(text)
        return str(text.count("1") % 2)


@lru_cache
def digit_operator(n: int, t: int) -> Operator:
    """The operator of arity 2 n that gives digit t of the product of two numbers of n digits."""

    def rule(*operands):
        a, b = (sum(d * 10**k for k, d in enumerate(x)) for x in (operands[:n], operands[n:]))
        return a * b // 10 ** (t - 1) % 10

    roles = [*numbered("a", n), *numbered("b", n)]
    return Operator.from_rule(f"digit {t} of {n} x {n}", roles, rule, range(10))


class MultiplyDirect(Direct, Numerals):
    """a1..an * b1..bn = p1..p(2n), least digit first, without partial products.

    Digit t depends on the lowest min(t, n) digits of both numbers, so the arity is up to 2 n and no
    bound k holds: SRC_k is infinite once 2 n > k. The upper n digits are operators that no smaller
    scale has, so with unbounded arity |U| is 2 at scale 1, 5 up to scale 2, and goes on growing.
    """

    name, example, vocabulary, sign = "multiply-direct", "12*34=", "0123456789*=", "*"
    chance = 0.1
    largest_circuit, entries = 2, "a digit of the product reads 2 n digits, 10^(2 n) entries"

    def segments(self):
        a, b = (Segment(letter, N, DIGITS) for letter in "ab")
        return [a, self.mark("*"), b, self.mark("="), Segment("p", 2 * N)]

    def answer(self, prompt, scale):
        return product_digits(*self.operands(prompt, scale))

    def circuit(self, scale):
        self.refuse_larger(scale)
        rows = []
        for t in range(1, 2 * scale + 1):
            n = min(t, scale)
            reads = [*numbered("a", n), *numbered("b", n)]
            rows.append((f"p{t}", digit_operator(n, t), reads))
        return self.steps(scale, rows)

    def parse(self, text):
        return self.equal_length(text)

    def solve(self, text):
        a, b = self.two_numbers(text)
        return f"{exact(len(a) + len(b)).multiply(Decimal(a), Decimal(b)):f}"
