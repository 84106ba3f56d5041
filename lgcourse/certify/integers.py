"""Has a system of integer-linear conditions a solution in whole numbers? Exactly: no floats.

A row (c, a1, a2, ...) stands for c + a1 x1 + a2 x2 + ...; rows may have different lengths, what is
missing is 0. A system asks for rows that are at least 0 and rows that are 0. Conditions such as
"divisible by 2" are rows with a variable of their own: a form is even where form - 2 k = 0.

The method is the Omega test. Equalities are used up by unimodular changes of variables. Then one
variable after the other is eliminated: between a lower bound a x >= -p and an upper bound b x <= q
some whole number lies if b p + a q >= (a - 1) (b - 1) ("dark shadow"), none if b p + a q < 0; what
is between the two is decided by trying the few values next to a lower bound.

Source: Pugh (1991), "The Omega test: a fast and practical integer programming algorithm for
dependence analysis", Supercomputing '91.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

Row = tuple[int, ...]


@dataclass(frozen=True)
class System:
    """Conditions on whole numbers x1, x2, ...

    Args:
        positive: rows that are at least 0.
        zero: rows that are 0.

    >>> odd = System(positive=((-1, 1), (3, -1)), zero=((1, 1, -2),))  # 1 <= x <= 3, x + 1 = 2 k
    >>> feasible(odd), least(odd, (0, 1), 0)
    (True, 1)
    """

    positive: tuple[Row, ...] = ()
    zero: tuple[Row, ...] = ()

    def with_rows(self, positive: Iterable[Row] = (), zero: Iterable[Row] = ()) -> System:
        """Return the system with further conditions."""
        return System((*self.positive, *positive), (*self.zero, *zero))


def add(*rows: Sequence[int], by: int = 1) -> Row:
    """Return the sum of rows, the last of them multiplied by a whole number.

    >>> add((1, 2), (0, 1, 5), by=-2)
    (1, 0, -10)
    """
    width = max(map(len, rows), default=0)
    factors = [1] * (len(rows) - 1) + [by]
    wide = [(*row, *(0,) * (width - len(row))) for row in rows]
    return tuple(
        sum(f * c for f, c in zip(factors, column, strict=True))
        for column in zip(*wide, strict=True)
    )


def feasible(system: System) -> bool:
    """Return whether the system has a solution in whole numbers.

    >>> feasible(System(positive=((-3, 2), (4, -2)), zero=()))  # 3 <= 2 x <= 4
    True
    >>> feasible(System(positive=((-3, 4), (3, -4))))  # 4 x = 3
    False
    """
    width = max(map(len, (*system.positive, *system.zero)), default=1)
    zeros = (0,) * width
    return _solvable(
        [add(row, zeros) for row in system.positive], [add(row, zeros) for row in system.zero]
    )


def least(system: System, row: Row, bound: int) -> int:
    """Return the least value of a row over the solutions.

    Args:
        system: a system that has a solution.
        row: what is to be small.
        bound: a value that it does not fall below.

    >>> least(System(positive=((-7, 3),)), (0, 1), 0)  # 3 x >= 7
    3
    """
    low, high = bound - 1, bound  # the least value lies above low
    while not feasible(system.with_rows([add((high,), row, by=-1)])):
        low, high = high, bound + 2 * (high - bound) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if feasible(system.with_rows([add((middle,), row, by=-1)])):
            high = middle
        else:
            low = middle
    return high


def point(system: System, rows: Sequence[tuple[Row, int]]) -> tuple[int, ...]:
    """Return the values of some rows at a solution, each as small as those before it let it be.

    Args:
        system: a system that has a solution.
        rows: rows, each with a value that it does not fall below.

    >>> point(System(positive=((-5, 1, 1), (0, 0, 1))), [((0, 1), 0), ((0, 0, 1), 0)])
    (0, 5)
    """
    values = []
    for row, bound in rows:
        value = least(system, row, bound)
        system = system.with_rows(zero=[add(row, (value,), by=-1)])
        values.append(value)
    return tuple(values)


def _solvable(positive: list[Row], zero: list[Row]) -> bool:
    reduced = _use_equalities(positive, zero)
    best = None if reduced is None else _tighten(reduced)
    if best is None:
        return False
    for factors, constant in best.items():
        if best.get(_minus(factors)) == -constant:  # both bounds meet: an equality
            return _solvable([(c, *f) for f, c in best.items()], [(constant, *factors)])
    rows = [(constant, *factors) for factors, constant in best.items()]
    return not rows or _eliminate(rows)


def _minus(row: Row) -> Row:
    return tuple(-c for c in row)


def _use_equalities(positive: list[Row], zero: list[Row]) -> list[Row] | None:
    """Return the inequalities after all equalities are used up; None where these contradict.

    With a_k the smallest factor of an equality, x_k = x_k' - sum_i floor(a_i / a_k) x_i leaves the
    remainders as factors; in the end one variable is alone, and 0.
    """
    zero = list(zero)
    while zero:
        row = zero.pop()
        common = gcd(*row[1:])
        if common == 0 or row[0] % common:
            if row[0]:
                return None
            continue
        row = tuple(c // common for c in row)
        k = min((k for k in range(1, len(row)) if row[k]), key=lambda k: abs(row[k]))
        quotients = [0 if i == k else c // row[k] for i, c in enumerate(row)]
        positive, zero = (
            [_change(other, k, quotients) for other in rows] for rows in (positive, zero)
        )
        row = _change(row, k, quotients)
        if any(c for i, c in enumerate(row) if i != k):
            zero.append(row)
        else:  # x_k' = 0
            positive, zero = (
                [(*other[:k], 0, *other[k + 1 :]) for other in rows] for rows in (positive, zero)
            )
    return positive


def _change(row: Row, k: int, quotients: list[int]) -> Row:
    return tuple(c - q * row[k] for c, q in zip(row, quotients, strict=True))


def _tighten(rows: Iterable[Row]) -> dict[Row, int] | None:
    """Divide rows by what their factors share, round down; keep the sharpest of each direction.

    Returns:
        factors -> constant, or None where two rows (or one) contradict.
    """
    best: dict[Row, int] = {}
    for row in rows:
        common = gcd(*row[1:])
        if common == 0:
            if row[0] < 0:
                return None
            continue
        factors, constant = tuple(c // common for c in row[1:]), row[0] // common
        best[factors] = min(constant, best.get(factors, constant))
    for factors, constant in best.items():
        if constant + best.get(_minus(factors), -constant) < 0:
            return None
    return best


def _eliminate(rows: list[Row]) -> bool:
    """Decide a system of inequalities by eliminating one variable."""
    x = min((k for k in range(1, len(rows[0])) if any(r[k] for r in rows)), key=_cost(rows))
    rest = [r for r in rows if not r[x]]
    lower, upper = [r for r in rows if r[x] > 0], [r for r in rows if r[x] < 0]
    pairs = [(low, high) for low in lower for high in upper]
    real = [*rest, *(_shadow(low, high, x) for low, high in pairs)]
    if all(r[x] == 1 for r in lower) or all(r[x] == -1 for r in upper):
        return _solvable(real, [])  # exact; also where x has no bound on one side
    if not _solvable(real, []):
        return False
    dark = [_shadow(low, high, x, (low[x] - 1) * (-high[x] - 1)) for low, high in pairs]
    if _solvable([*rest, *dark], []):
        return True
    most = max(-r[x] for r in upper)
    return any(
        _solvable(rows, [(low[0] - above, *low[1:])])
        for low in lower
        for above in range((low[x] * most - low[x] - most) // most + 1)
    )


def _cost(rows: list[Row]):
    """Prefer a variable whose elimination is exact and makes few new rows."""

    def cost(k: int) -> tuple[bool, int]:
        lower, upper = [r[k] for r in rows if r[k] > 0], [r[k] for r in rows if r[k] < 0]
        exact = all(c == 1 for c in lower) or all(c == -1 for c in upper)
        return not exact, len(lower) * len(upper)

    return cost


def _shadow(low: Row, high: Row, x: int, less: int = 0) -> Row:
    """Return -high[x] low + low[x] high, free of x, made smaller by ``less``."""
    a, b = low[x], -high[x]
    row = tuple(b * p + a * q for p, q in zip(low, high, strict=True))
    return (row[0] - less, *row[1:])
