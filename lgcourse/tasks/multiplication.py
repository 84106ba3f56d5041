"""Multiplication with few operands per step: by one digit, or of two numbers row by row."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from lgcourse.relations.affine import Affine, N, T
from lgcourse.tasks.addition import add_digits, column_operators, ended_operators
from lgcourse.tasks.base import DIGITS, Prompt, digits, identity, numbered, with_corners
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.tasks.numerals import Numerals, exact, row

CROSSING_DIGITS = torch.tensor([3, 6, 7, 9])  # 1/d has no finite decimal expansion

TIMES = 10


def carry(a: int, d: int, p: int) -> int | None:
    """Return the carry out of a column with digit a, multiplier d and result p, or None.

    The carry into the column is c = p - a d mod 10. A carry is at most d - 1, since
    (9 d + d - 1) / 10 < d; other results p are impossible.

    >>> carry(9, 9, 1), carry(9, 9, 9), carry(9, 2, 3)
    (8, 8, None)
    """
    into = (p - a * d) % 10
    return None if into > max(d - 1, 0) else (a * d + into) // 10


def _middle(a, a_before, d, p_before):
    into = carry(a_before, d, p_before)
    return None if into is None else ((0 if a == TIMES else a) * d + into) % 10


@lru_cache
def product_operators(separator: bool = False) -> tuple[Operator, Operator, Operator]:
    """The unit operators of a product with one digit: first, later columns, a last carry.

    With ``separator`` the column also takes "*" where the number has ended, as a zero.
    """
    here = [*range(10), TIMES] if separator else range(10)
    first = Operator.from_rule("times", ("a", "d"), lambda a, d: a * d % 10, range(10))
    roles = ("a", "a before", "d", "p before")
    middle = Operator.from_rule("times column", roles, _middle, [here, *[range(10)] * 3])
    last = Operator.from_rule("times last", roles[1:], carry, range(10))
    return first, middle, last


def product_rows(count: int, a: str, d: str, p: str) -> list:
    """Return the rows of p = a d for ``count`` digits; names are made from the prefixes a and p."""
    first, middle, last = product_operators()
    rows: list = [(f"{p}1", first, [f"{a}1", d])]
    rows += [
        (f"{p}{t}", middle, [f"{a}{t}", f"{a}{t - 1}", d, f"{p}{t - 1}"])
        for t in range(2, count + 1)
    ]
    return [*rows, (f"{p}{count + 1}", last, [f"{a}{count}", d, f"{p}{count}"])]


class MultiplyDigit(Numerals):
    """a1..an * d = p1..p(n+1), least digit first.

    Arity 4: a column needs its digit and the multiplier, and the digit and the result before, which
    tell the carry (0..8). Column n + 1 reads "*" in place of its digit, as a zero, as in
    `Addition`; so SRC is 2 (first column, later columns).
    """

    name, example, vocabulary, sign = "multiply-digit", "905*7=", "0123456789*=", "*"
    arity, chance = 4, 0.1

    def segments(self):
        a, d = Segment("a", N, DIGITS), Segment("d", Affine(1), DIGITS, start=None)
        return [a, self.mark("*"), d, self.mark("="), Segment("p", N + 1)]

    def families(self):
        first, column, _ = product_operators(separator=True)
        a, d, p = self.places("a", "d", "p")  # a(n + 1) is "*"
        return [
            family(first, p(T), [a(T), d()], 1),
            family(column, p(T), [a(T), a(T - 1), d(), p(T - 1)], 2, N + 1),
        ]

    def prompt(self, scale, batch, generator):
        parts = [digits(10, (batch, size), generator) for size in (scale, 1)]
        return self.join(*with_corners(10, parts, generator))

    def operands(self, prompt, scale):
        return prompt[:, :scale], prompt[:, scale + 1 : scale + 2]

    def answer(self, prompt, scale):
        return times_digit(*self.operands(prompt, scale))

    def hard(self, scale, batch, generator):
        """Draw products that one unit at the bottom decides, and nines.

        By turns: a = [r 10^n / d], whose product with d is r 10^n less a digit, nearly all nines,
        with any digits in the last tenth; all nines, times any digit; [r 10^n / d] + 1, whose
        product is r 10^n plus a digit, so that the unit has crossed all digits.
        """
        kind = torch.arange(batch) % 3
        d = CROSSING_DIGITS[digits(len(CROSSING_DIGITS), (batch,), generator)]
        a = expansion(d, scale, generator)
        stop = scale - digits(max(1, scale // 10) + 1, (batch,), generator)
        free = (torch.arange(scale) >= stop[:, None]) & (kind == 0)[:, None]
        a = torch.where(free, digits(10, (batch, scale), generator), a)
        a[kind == 1] = 9
        d = torch.where(kind == 1, digits(10, (batch,), generator), d)
        a[kind == 2, 0] += 1  # at most 8 before, since 10 r / d < 9
        return self.batch(self.join(a, d[:, None]), scale)

    def parse(self, text):
        a, d = self._operands(text)
        return Prompt(self.join(row(a), row(d))[0].tolist(), len(a))

    def _operands(self, text: str) -> tuple[str, str]:
        a, d = self.two_numbers(text)
        if len(d) != 1:
            raise self.not_mine(text, f"the multiplier '{d[:20]}' is not one digit")
        return a, d

    def solve(self, text):
        a, d = self._operands(text)
        return f"{exact(len(a) + 1).multiply(Decimal(a), Decimal(d)):f}"


class MultiplyScratchpad(Numerals):
    """a1..an * b1..bm = row 1, row 2 .. row m, product; least digit first, scale (n, m).

    Row j has two numbers of n + 1 digits: the partial product P_j = a b_j and the running sum
    U_j = [U_(j-1) / 10] + P_j; row 1 has P_1 = U_1 once. The lowest digit of U_j is digit j of the
    product, and the digits of U_m are the rest, so the last number, n + m digits, is copied
    together. Written P_1 , P_2 : U_2 , P_3 : U_3 , .. , product.

    Arity 5: a digit of P_j needs what it needs in multiply-digit (4 operands), a digit of U_j what
    a column of an addition needs (5; 4 in its highest column, where U_(j-1) has ended; there is no
    last carry, since U_j < 10^(n+1)). The two marks are made from the mark before. SRC 7 from scale
    (2, 2) on: three operators for P, three for U, and "take" with "mark", which merge; 3 at (1, 1).

    The sequence is m (2 n + 6) + n long. Operands a_t and b_j stand ever farther back with j: a
    relation made from the circuit (ideal-sh) names them, one of linear forms in i, j, n, m does
    not.
    """

    name, example, vocabulary, sign = "multiply-scratchpad", "12*34=", "0123456789*=,:", "*"
    sizes, arity, chance = 2, 5, 0.1

    def layout(self, scale):
        n, m = scale
        names = [*numbered("a", n), "*", *numbered("b", m), "=", *numbered("p1.", n + 1)]
        for j in range(2, m + 1):
            names += [f"mark{2 * j - 3}", *numbered(f"p{j}.", n + 1)]
            names += [f"mark{2 * j - 2}", *numbered(f"u{j}.", n + 1)]
        return [*names, f"mark{2 * m - 1}", *numbered("r", n + m)]

    def prompt(self, scale, batch, generator):
        return self.join(*(digits(10, (batch, size), generator) for size in scale))

    def answer(self, prompt, scale):
        a, b = self.operands(prompt, scale)
        comma, colon = (a.new_full((len(a), 1), self.vocabulary.index(c)) for c in ",:")
        parts: list[Tensor] = []
        for partial, running in schoolbook(a, b):
            parts += [partial, colon, running, comma] if parts else [partial, comma]
        return torch.cat([*parts, product_digits(a, b)], dim=1)

    def circuit(self, scale):
        n, m = scale
        rows = product_rows(n, "a", "b1", "p1.")
        for j in range(2, m + 1):
            rows += product_rows(n, "a", f"b{j}", f"p{j}.")
            rows += running_sum_rows(n, f"p{j}.", f"u{j - 1}." if j > 2 else "p1.", f"u{j}.")
        marks = ["=", *numbered("mark", 2 * m - 1)]
        mark = mark_operator(self.vocabulary)
        rows += [(name, mark, [before]) for before, name in zip(marks, marks[1:], strict=False)]
        low = ["p1.1", *(f"u{j}.1" for j in range(2, m + 1))]
        high = numbered(f"u{m}." if m > 1 else "p1.", n + 1)[1:]
        rows += [(f"r{k}", identity(10), [x]) for k, x in enumerate(low + high, start=1)]
        return self.steps(scale, rows)

    def hard(self, scale, batch, generator):
        """Draw nines times nines, by turns with nines times any number: the largest carries."""
        a, b = (digits(10, (batch, size), generator) for size in scale)
        a[:] = 9
        b[torch.arange(batch) % 2 == 0] = 9
        return self.batch(self.join(a, b), scale)

    def parse(self, text):
        a, b = self.two_numbers(text)
        return Prompt(self.join(row(a), row(b))[0].tolist(), (len(a), len(b)))

    def solve(self, text):
        a, b = self.two_numbers(text)
        context, written, running = exact(len(a) + len(b)), "", ""
        for d in reversed(b):
            partial = context.multiply(Decimal(a), Decimal(d))
            total = context.add(Decimal(running[:-1] or 0), partial)
            running = f"{total:f}"
            written += f"{partial:f}:{running}," if written else f"{partial:f},"
        return written + f"{context.multiply(Decimal(a), Decimal(b)):f}"


def running_sum_rows(count: int, p: str, before: str, u: str) -> list:
    """Return the rows of u = [before / 10] + p: column t adds p_t and digit t + 1 of ``before``."""
    first, column, _ = column_operators()
    ended, _, _ = ended_operators()
    rows: list = [(f"{u}1", first, [f"{before}2", f"{p}1"])]
    for t in range(2, count + 1):
        reads = [f"{before}{t + 1}", f"{p}{t}", f"{before}{t}", f"{p}{t - 1}", f"{u}{t - 1}"]
        rows.append((f"{u}{t}", column, reads))
    top = count + 1
    reads = [f"{p}{top}", f"{before}{top}", f"{p}{count}", f"{u}{count}"]
    return [*rows, (f"{u}{top}", ended, reads)]


@lru_cache
def mark_operator(vocabulary: str) -> Operator:
    """The operator that makes a mark from the mark before: , behind = and behind : and so on."""
    equals, comma, colon = map(vocabulary.index, "=,:")
    return Operator("mark", ("mark before",), {(equals,): comma, (comma,): colon, (colon,): comma})


def times_digit(a: Tensor, d: Tensor) -> Tensor:
    """Multiply numbers a [b n], least digit first, by digits d [b 1]; the product is [b n+1].

    Each a_t d has two digits; adding all lower ones to all upper ones makes carries of at most 1.

    >>> times_digit(torch.tensor([[5, 0, 9]]), torch.tensor([[7]]))
    tensor([[5, 3, 3, 6]])
    """
    low, high = pad(a * d % 10, (0, 1)), pad(a * d // 10, (1, 0))
    return add_digits(low, high)[:, :-1]


def schoolbook(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the partial product P_j and the running sum U_j, each [b n+1], row by row."""
    running = a.new_zeros(len(a), a.shape[1] + 1)
    for d in b.split(1, dim=1):
        partial = times_digit(a, d)
        running = add_digits(pad(running[:, 1:], (0, 1)), partial)[:, :-1]
        yield partial, running


def product_digits(a: Tensor, b: Tensor) -> Tensor:
    """Multiply numbers a [b n] and b [b m], least digit first; the product is [b n+m].

    >>> product_digits(torch.tensor([[2, 1]]), torch.tensor([[4, 3]]))
    tensor([[8, 0, 4, 0]])
    """
    sums = [running for _, running in schoolbook(a, b)]
    return torch.cat([*(running[:, :1] for running in sums), sums[-1][:, 1:]], dim=1)


def expansion(d: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Return the first ``count`` decimal digits of r / d, least digit first, for random r < d.

    Digit t of r / d is [10 (r 10^(t-1) mod d) / d]. r is drawn so that the expansion never ends, as
    only 3 / 6 would for d = 3, 6, 7, 9.
    """
    t = torch.arange(count)
    t = torch.where(t < 3, t, 3 + (t - 3) % 6)  # 10^t mod d comes again after 6, from t = 3 on
    powers = torch.tensor([[pow(10, k, max(d, 1)) for k in range(9)] for d in range(10)])
    r = 1 + digits(72, (len(d),), generator) % (d - 1)  # 72: nearly the same share for each r
    r = torch.where(2 * r == d, 1, r)
    remainder = r[:, None] * powers[d[:, None], t] % d[:, None]
    return (10 * remainder // d[:, None]).flip(1)
