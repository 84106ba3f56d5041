"""Addition of two numbers, least digit first inside the model; people type the usual way round."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

import torch
from einops import rearrange
from torch import Tensor

from lgcourse.relations.affine import M, N, T
from lgcourse.tasks.base import DIGITS, Prompt, digits, with_corners
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.tasks.numerals import Numerals, exact, row
from lgcourse.tasks.padding import Padded, refuse_wider

PLUS, EQUALS = 10, 11


def carry(a: int, b: int, s: int) -> int | None:
    """Return the carry out of a column with digits a, b and result s, or None if s is impossible.

    The carry into the column is c = s - a - b mod 10, which can be 0 or 1 only.

    >>> carry(9, 5, 5), carry(1, 2, 3), carry(1, 2, 7)
    (1, 0, None)
    """
    into = (s - a - b) % 10
    return None if into > 1 else (a + b + into) // 10


def _middle(a, b, a_before, b_before, s_before):
    into = carry(a_before, b_before, s_before)
    return None if into is None else (a + b + into) % 10


@lru_cache
def column_operators(separators: bool = False) -> tuple[Operator, Operator, Operator]:
    """The unit operators of addition: first column, later columns, and a last carry on its own.

    With ``separators`` the column also takes "+" and "=" where the operands have ended, as zeros.
    """

    def column(a, b, a_before, b_before, s_before):
        if (a == PLUS) != (b == EQUALS):
            return None
        a, b = (0, 0) if a == PLUS else (a, b)
        return _middle(a, b, a_before, b_before, s_before)

    first = Operator.from_rule("first", ("a", "b"), lambda a, b: (a + b) % 10, range(10))
    roles = ("a", "b", "a before", "b before", "s before")
    here = ([*range(10), PLUS], [*range(10), EQUALS]) if separators else (range(10), range(10))
    middle = Operator.from_rule("column", roles, column, [*here, *[range(10)] * 3])
    last = Operator.from_rule("last", roles[2:], carry, range(10))
    return first, middle, last


@lru_cache
def ended_operators() -> tuple[Operator, Operator, Operator]:
    """The unit operators behind the end of an operand: the next column, later ones, the last carry.

    They do not say which of the two operands has ended; the digit x is the other one's.
    """

    def just_ended(x, a_before, b_before, s_before):
        return _middle(x, 0, a_before, b_before, s_before)

    def alone(x, x_before, s_before):
        return _middle(x, 0, x_before, 0, s_before)

    def last(x_before, s_before):
        return carry(x_before, 0, s_before)

    roles = ("x", "a before", "b before", "s before")
    return (
        Operator.from_rule("just ended", roles, just_ended, range(10)),
        Operator.from_rule("alone", ("x", "x before", "s before"), alone, range(10)),
        Operator.from_rule("last alone", ("x before", "s before"), last, range(10)),
    )


class Addition(Numerals):
    """a1..an + b1..bn = s1..s(n+1), least digit first.

    Arity 5: a column needs its two digits and the three of the column before, which tell the carry.
    Where column n + 1 would find its digits stand "+" and "=", which it reads as zeros: so the last
    carry is a column like the others, and SRC is 2 (first column, later columns).

    It could be an operator of the three earlier operands alone. But softmax attention over equal
    values returns that value, however many there are: a model that reads operands only could not
    tell (9, 9, 9) before the end from (9, 9, 9, 9, 9) inside, and must answer 1 and 9.
    """

    name, example, vocabulary, sign = "addition", "905+128=", "0123456789+=", "+"
    arity, chance = 5, 0.1

    def segments(self):
        a, b = (Segment(letter, N, DIGITS) for letter in "ab")
        return [a, self.mark("+"), b, self.mark("="), Segment("s", N + 1)]

    def families(self):
        first, column, _ = column_operators(separators=not self.padded)
        a, b, s = self.places("a", "b", "s")  # a(n + 1) is "+" and b(n + 1) is "="
        reads = [a(T), b(T), a(T - 1), b(T - 1), s(T - 1)]
        return [family(first, s(T), [a(T), b(T)], 1), family(column, s(T), reads, 2, N + 1)]

    def prompt(self, scale, batch, generator):
        a, b = digits(10, (2, batch, scale), generator)
        return self.join(*with_corners(10, (a, b), generator))

    def answer(self, prompt, scale):
        return add_digits(*self.operands(prompt, scale))

    def hard(self, scale, batch, generator):
        """Draw carry chains over at least 0.9 n digits, all nines, and full crossings."""
        return self.batch(self.join(*chains(scale, batch, generator)), scale)

    def parse(self, text):
        return self.equal_length(text)

    def solve(self, text):
        a, b = self.two_numbers(text)
        return f"{exact(max(len(a), len(b)) + 1).add(Decimal(a), Decimal(b)):f}"


class AdditionPadded(Padded, Addition):
    """Addition, zero-padded: operands and result have W + 1 digits at every scale.

    Operands stand at fixed distances at every scale, so a scale-free relation aligns. Only
    s1..s(n+1) are scored. The last carry falls on padding zeros and is an ordinary column, so SRC
    is 2; that is why the operands get one zero more than the largest scale needs. Arity 5.

    Args:
        width: W, the largest scale that fits.
    """

    name = "addition-padded"

    def segments(self):
        a, plus, b, equals, s = super().segments()
        a0, b0 = (self.zeros(letter, N, extra=1) for letter in "ab")
        return [a, a0, plus, b, b0, equals, s, self.zeros("s", N + 1, extra=1)]

    def join(self, a, b):
        rest = (0, self.width + 1 - a.shape[1])
        return super().join(*(torch.nn.functional.pad(x, rest) for x in (a, b)))

    def operands(self, prompt, scale):
        half = rearrange(prompt, "b (two half) -> two b half", two=2)
        return half[0][:, :scale], half[1][:, :scale]

    def parse(self, text):
        refuse_wider(self, max(map(len, self.two_numbers(text))))
        prompt = super().parse(text)
        prompt.notes.append(f"padded with zeros to width {self.width}")
        return prompt


class AdditionUnequal(Addition):
    """a1..an + b1..bm = s1..s(max(n, m)+1), least digit first, scale (n, m).

    Arity 5, as in addition. Behind the end of the shorter operand there is nothing to read, so the
    operators there have fewer operands: 4 in the next column, 3 in later ones, 2 for the last
    carry. SRC 6 from scale (3, 3) on, 5 at (2, 2), 2 at (1, 1).
    """

    name, example, sizes = "addition-unequal", "905+28=", 2

    def segments(self):
        a, b = Segment("a", N, DIGITS), Segment("b", M, DIGITS)
        longer_b = Segment("s", M - N, start=N + 2, where=(M - N - 1,))
        return [a, self.mark("+"), b, self.mark("="), Segment("s", N + 1), longer_b]

    def families(self):
        first, column, last = column_operators()
        just_ended, alone, last_alone = ended_operators()
        a, b, s = self.places("a", "b", "s")
        before = [a(T - 1), b(T - 1), s(T - 1)]
        columns = [  # in the order in which small scales show them
            family(first, s(T), [a(T), b(T)], 1),
            family(last, s(T), before, N + 1, where=[N - M, M - N]),
        ]
        for x, long, short in ((a, N, M), (b, M, N)):
            longer = [long - short - 1]  # n > m, or m > n
            columns += [
                family(just_ended, s(T), [x(T), *before], short + 1, where=longer),
                family(last_alone, s(T), [x(T - 1), s(T - 1)], long + 1, where=longer),
                family(alone, s(T), [x(T), x(T - 1), s(T - 1)], short + 2, long, where=longer),
            ]
        for end, shorter in ((M, N - M), (N, M - N - 1)):  # n >= m, or m > n
            columns += [family(column, s(T), [a(T), b(T), *before], 2, end, where=[shorter])]
        return columns

    def prompt(self, scale, batch, generator):
        parts = [digits(10, (batch, size), generator) for size in scale]
        return self.join(*with_corners(10, parts, generator))

    def answer(self, prompt, scale):
        rest = [(0, max(scale) - size) for size in scale]
        a, b = map(torch.nn.functional.pad, self.operands(prompt, scale), rest)
        return add_digits(a, b)

    def hard(self, scale, batch, generator):
        """Draw carry chains as in addition; they go on behind the end of the shorter operand."""
        n, m = scale
        a, b = chains(max(scale), batch, generator)
        # behind the end the longer operand holds the sum of both: 9 hands a carry on as before
        both = (a + b).clamp(max=9)
        a[:, m:], b[:, n:] = both[:, m:], both[:, n:]
        return self.batch(self.join(a[:, :n], b[:, :m]), scale)

    def parse(self, text):
        a, b = self.two_numbers(text)
        return Prompt(self.join(row(a), row(b))[0].tolist(), (len(a), len(b)))


def add_digits(a: Tensor, b: Tensor) -> Tensor:
    """Add numbers given as digit tensors [b n], least digit first; the sum is [b n+1].

    Carries are found without a loop over digits: a column makes a carry (sum above 9), or hands one
    on (sum 9), or neither; the carry into column t is the decision of the last column before t that
    does not hand on.

    >>> add_digits(torch.tensor([[5, 9]]), torch.tensor([[5, 0]]))
    tensor([[0, 0, 1]])
    """
    total = torch.nn.functional.pad(a + b, (0, 1))
    column = torch.arange(total.shape[1])
    decides = torch.where(total != 9, column, -1).cummax(dim=1).values
    makes = torch.gather(total, 1, decides.clamp(min=0)) > 9
    out = makes & (decides >= 0)
    into = torch.nn.functional.pad(out, (1, -1))
    return (total + into.long()) % 10


def chains(scale: int, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw the hardest operands [b n]: by turns chains over 0.9 n digits and full crossings.

    The second row is all nines. A chain counts the digit that makes the carry, those that hand it
    on, and the one where it lands.
    """
    a = digits(10, (batch, scale), generator)
    b = 9 - a  # every column sums to 9: a carry that enters at the bottom crosses all of them
    b[:, 0] = torch.where(a[:, 0] == 0, 9, 10 - a[:, 0])
    a[:, 0] = a[:, 0].clamp(min=1)
    kind = torch.arange(batch) % 2
    stop = scale - 1 - digits(max(1, scale // 10), (batch,), generator)  # in the last tenth
    rows = torch.arange(batch)[(kind == 0) & (stop > 0)]
    a[rows, stop[rows]] = b[rows, stop[rows]] = digits(5, (len(rows),), generator)
    a[1:2] = b[1:2] = 9
    return a, b
