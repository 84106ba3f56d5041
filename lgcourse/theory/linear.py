"""How many operators does a target need, and how many of them are independent? LRC in two readings.

Linear Representation Complexity of a target A(i, j, n) up to scale n:
    operators:  LRC_op(A, n)   = number of distinct non-zero A(i, j, m), m <= n
    rank:       LRC_rank(A, n) = dim span {A(i, j, m) : m <= n}
One pass over the scales; a table of the operators met so far and a basis of their span are all that
is kept. Whole numbers and fractions are exact, floats have a stated tolerance.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from lgcourse.errors import InputError, unknown_name
from lgcourse.theory.adapters import as_target
from lgcourse.theory.blackbox import SequenceTarget
from lgcourse.theory.target import Array, Target, checked_scale

KINDS = ("operators", "rank")
# A few hundred roundings of each type: values that should be equal are, and of 125,000 random
# float64 numbers two come closer than this by chance about once in 500 draws.
TOLERANCES = {"float64": 1e-13, "float32": 1e-5}
ZERO, UNKNOWN = -1, -2  # what a table answers for the zero operator and for one it has not met


def lrc(target: Any, scale: int, kind: str = "operators", tolerance: float | None = None) -> int:
    """Return the Linear Representation Complexity of a target up to a scale.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        target: a name, an array, a function (i, j, n), a linear map: see
            `lgcourse.theory.adapters.as_target`.
        scale: the scale n; sequences have length n.
        kind: ``"operators"``, the number of distinct non-zero operators: the least number of ids
            (besides "other") with which a POLA can represent the target. ``"rank"``, the dimension
            of their span: the least r with which a coded POLA can.
        tolerance: for floats. An operator is new if some entry differs from every counted operator
            by more than tolerance x the largest magnitude met so far; it adds to the rank if
            its remainder after projection on the span (QR) does so too. Default 1e-13 (1e-5 for
            float32, and for linear maps see `sequence_map`). With 0.0, floats are taken at face
            value, each as the exact fraction that it is. Whole numbers and fractions are always
            exact.

    Returns:
        The LRC, a whole number.

    Raises:
        InputError: the scale, the kind or the target cannot be used.

    >>> lrc("band", 16), lrc("position-weighted", 16), lrc("position-weighted", 16, "rank")
    (3, 16, 1)
    >>> lrc([[1, 0], [Fraction(1, 3), 1]], 2)
    2
    >>> lrc(lambda i, j, n: (i - j) % 4, 16)
    3
    """
    return lrc_curve(target, scale, kind, tolerance)[scale]


def lrc_curve(
    target: Any, scale: int, kind: str = "operators", tolerance: float | None = None
) -> dict[int, int]:
    """Return the LRC at every scale 1..n, from one pass.

    Args:
        target: see `lrc`.
        scale: the largest scale n.
        kind: ``"operators"`` or ``"rank"``.
        tolerance: see `lrc`.

    Returns:
        A dictionary from scale to LRC; it never decreases.

    Raises:
        InputError: the scale, the kind or the target cannot be used.

    >>> lrc_curve("fresh-matrices", 6, "rank")
    {1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 4}
    """
    if kind not in KINDS:
        raise unknown_name("kind of LRC", kind, KINDS)
    seen = scan(target, scale, tolerance, rank=kind == "rank")
    counts = seen.ranks if kind == "rank" else seen.counts
    return dict(enumerate(counts, start=1))


def distinct_operators(
    target: Any, scale: int, tolerance: float | None = None
) -> Shaped[Array, "k p d"]:
    """Return the distinct non-zero operators of a target up to a scale, in order of appearance.

    Args:
        target: see `lrc`.
        scale: the scale n.
        tolerance: see `lrc`.

    Returns:
        The operators, ``[k p d]`` with k = LRC_op; whole numbers and fractions stay exact.

    Raises:
        InputError: the scale or the target cannot be used.

    >>> distinct_operators("band", 8)[:, 0, 0]
    array([ 1. , -0.5,  2. ])
    """
    target = as_target(target)
    seen = scan(target, scale, tolerance, rank=False)
    return seen.table.operators().reshape(-1, *target.shape)


# --- the pass over the scales ---------------------------------------------------------------------


@dataclass
class Scan:
    """What one pass over the scales 1..n has met: the operators, their span, and how both grew."""

    table: Table
    span: Span | None
    counts: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)


class _Needs(Exception):  # noqa: N818 (a signal between two functions of this file)
    """The pass met a kind of number that its table cannot hold exactly."""


def scan(target: Any, scale: int, tolerance: float | None = None, rank: bool = True) -> Scan:
    """Go through the scales 1..n once and keep the distinct operators and a basis of their span.

    Args:
        target: see `lrc`.
        scale: the largest scale n.
        tolerance: see `lrc`.
        rank: whether to follow the span as well.

    Returns:
        A `Scan`.
    """
    target, scale = as_target(target), checked_scale(scale)
    tolerance = target.tolerance if tolerance is None else tolerance
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise InputError(f"tolerance must be a number of at least 0, got {tolerance!r}")
    number = "float64" if isinstance(target, SequenceTarget) else "integer"
    while True:  # begins again when the numbers turn out wider, or a function fails a spot check
        whole = getattr(target.function, "whole", None)
        try:
            seen = _scan(target, scale, tolerance, rank, number)
        except _Needs as wider:
            number = str(wider)
            continue
        if getattr(target.function, "whole", None) == whole:
            return seen


def _number_of(rows: Array) -> str:
    if rows.dtype == object:
        return "fraction"
    return "integer" if rows.dtype == np.int64 else rows.dtype.name


_WIDTH = {"integer": 0, "fraction": 1, "float64": 2, "float32": 2}


def _scan(target: Target, scale: int, tolerance, rank: bool, number: str) -> Scan:
    table = _table_for(number, tolerance)
    span = None
    if rank:
        width = target.shape[0] * target.shape[1]
        span = FloatSpan(width, table) if isinstance(table, TolerantTable) else ExactSpan(width)
    seen = Scan(table, span)
    for _, rows in target.blocks(scale):
        if _WIDTH[_number_of(rows)] > _WIDTH[number]:
            raise _Needs(_number_of(rows))
        if number.startswith("float"):
            rows = rows.astype(np.float64)
        # The span sees new operators only, so the rank never exceeds the number of operators.
        fresh = rows[table.add(rows)]
        seen.counts.append(len(table))
        if span is not None:
            span.add(fresh)
            seen.ranks.append(span.rank)
            if span.rank == span.width and target.scale_free:
                seen.ranks += [span.rank] * (scale - len(seen.ranks))  # full: it cannot grow
                break
    return seen


# --- the distinct operators -----------------------------------------------------------------------


def _table_for(number: str, tolerance: float | None) -> Table:
    if number == "integer":
        return Table()
    if number == "fraction":
        return FractionTable()
    tolerance = TOLERANCES[number] if tolerance is None else tolerance
    return TolerantTable(tolerance) if tolerance > 0 else FloatTable()


class Table:
    """The distinct non-zero operators met so far, in order of appearance; here of whole numbers.

    Each operator has a key, one number; equal operators have keys within ``reach`` of each other.
    Operators are kept in runs sorted by key, so a lookup is a binary search and a comparison with
    the few operators whose keys are near. A new run is merged with runs of its size, as in merge
    sort.
    """

    reach: Any = np.uint64(0)

    def __init__(self) -> None:
        self.runs: list[list[Array]] = []  # of each: keys, codes, ids
        self.values: list[Array] = []
        self.count = 0

    def __len__(self) -> int:
        return self.count

    # What subclasses change: how rows become comparable, and what is near.
    def encode(self, rows: Array) -> Array:
        """Return rows of numbers that are equal exactly if the operators are."""
        return rows

    def keys(self, codes: Array) -> Array:
        """Hash each row to 64 bits; a collision costs a comparison, never a wrong answer."""
        factors = np.random.default_rng(1).integers(1 << 62, size=codes.shape[1], dtype=np.uint64)
        return (codes.view(np.uint64) * (2 * factors + np.uint64(1))).sum(axis=1)

    def same(self, a: Array, b: Array) -> Array:
        """Say for each pair of rows whether the operators count as equal."""
        return (a == b).all(axis=1)

    def zero(self, codes: Array) -> Array:
        """Say for each row whether it counts as the zero operator."""
        return np.logical_not(codes.any(axis=1))

    def operators(self) -> Shaped[Array, "k f"]:
        """Return the operators, one per row, in order of appearance."""
        return np.concatenate(self.values) if self.values else np.zeros((0, 1))

    def find(self, rows: Shaped[Array, "k f"]) -> Int[Array, " k"]:
        """Return the id of each operator (its place in order of appearance), ZERO or UNKNOWN."""
        codes = self.encode(rows)
        ids = self._find(codes)
        ids[self.zero(codes)] = ZERO
        return ids

    def add(self, rows: Shaped[Array, "k f"]) -> Int[Array, " new"]:
        """Take in operators and return the places in ``rows`` of those that are new."""
        codes = self.encode(rows)
        places = np.flatnonzero(~self.zero(codes))
        places = places[self._find(codes[places]) == UNKNOWN]
        places = places[self._first_of_each(codes[places])]
        if len(places):
            self._insert(codes[places])
            self.values.append(rows[places])
        return places

    def _find(self, codes: Array) -> Array:
        keys, none = self.keys(codes), np.iinfo(np.int64).max
        found = np.full(len(codes), none)
        for run_keys, run_codes, run_ids in self.runs:
            low = np.searchsorted(run_keys, keys - self.reach, side="left")
            near = np.searchsorted(run_keys, keys + self.reach, side="right") - low
            asked = np.repeat(np.arange(len(codes)), near)
            place = np.arange(len(asked)) + np.repeat(low - np.cumsum(near) + near, near)
            same = self.same(codes[asked], run_codes[place])
            np.minimum.at(found, asked[same], run_ids[place[same]])
        found[found == none] = UNKNOWN
        return found

    def _first_of_each(self, codes: Array) -> Array:
        """Return the places of the rows that equal no earlier chosen row, ascending."""
        keys = self.keys(codes)
        order = np.argsort(keys, kind="stable")
        group = np.zeros(len(codes), dtype=np.int64)  # equal rows share a group
        group[order[1:]] = np.cumsum(np.diff(keys[order]) > self.reach)
        left = np.lexsort((np.arange(len(codes)), group))
        chosen = []
        while len(left):  # one round per distinct operator in the fullest group: nearly always one
            _, first, member = np.unique(group[left], return_index=True, return_inverse=True)
            leaders = left[first]
            chosen.append(leaders)
            left = left[~self.same(codes[left], codes[leaders[member]])]
        return np.sort(np.concatenate(chosen)) if chosen else left

    def _insert(self, codes: Array) -> None:
        ids = np.arange(self.count, self.count + len(codes))
        self.count += len(codes)
        run: list[Array] = [self.keys(codes), codes, ids]
        while self.runs and len(self.runs[-1][0]) < max(2 * len(run[0]), 4096):
            run = [np.concatenate(pair) for pair in zip(self.runs.pop(), run, strict=True)]
        order = np.argsort(run[0], kind="stable")
        self.runs.append([part[order] for part in run])


class FractionTable(Table):
    """Operators of fractions or of whole numbers of any size: each value is numbered, exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: dict[Hashable, int] = {0: 0}

    def encode(self, rows):
        codes = [self.codes.setdefault(v, len(self.codes)) for v in rows.ravel().tolist()]
        return np.array(codes, dtype=np.int64).reshape(rows.shape)


class FloatTable(Table):
    """Operators of floats taken at face value: equal if they are the same numbers."""

    def encode(self, rows):
        return (np.asarray(rows, dtype=np.float64) + 0.0).view(np.int64)  # + 0.0: -0.0 is 0.0


class TolerantTable(Table):
    """Operators of floats, equal if no entry differs by more than tolerance x largest magnitude.

    The largest magnitude is that of the operators taken in so far: it only grows, and an operator
    that was counted stays counted, so the count never decreases.
    """

    def __init__(self, tolerance: float):
        super().__init__()
        self.tolerance, self.largest = tolerance, 0.0

    @property
    def slack(self) -> float:
        """The largest difference that does not count."""
        return self.tolerance * self.largest

    @property
    def reach(self):  # the weights of a key add up to 1, so keys differ by no more than the entries
        return self.slack + 1e-14 * self.largest

    def encode(self, rows):
        return np.asarray(rows, dtype=np.float64)

    def add(self, rows):
        self.largest = max(self.largest, float(abs(self.encode(rows)).max(initial=0)))
        return super().add(rows)

    def keys(self, codes):
        weights = np.random.default_rng(1).normal(size=codes.shape[1])
        return codes @ (weights / abs(weights).sum())

    def same(self, a, b):
        return abs(a - b).max(axis=1) <= self.slack

    def zero(self, codes):
        return abs(codes).max(axis=1) <= self.slack


# --- their span -----------------------------------------------------------------------------------


class Span:
    """The span of the operators met so far; ``basis`` holds the operators that made it grow."""

    def __init__(self, width: int):
        self.width = width
        self.basis: list[Array] = []

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return len(self.basis)

    def add(self, rows: Shaped[Array, "k f"]) -> None:
        """Take in operators."""
        raise NotImplementedError


class ExactSpan(Span):
    """Exact elimination: whole-number columns Z span the vectors orthogonal to the basis.

    v lies in the span iff v Z = 0. If not, Z' combines the columns of Z so that v Z' = 0 as well
    and loses one column; this happens at most f times, so the rest is one matrix product per scale.
    """

    def __init__(self, width: int):
        super().__init__(width)
        self.orthogonal = np.eye(width, dtype=np.int64).astype(object)

    def add(self, rows):
        whole = _whole_rows(rows)
        while len(rows) and self.orthogonal.shape[1]:
            product = _exact_product(whole, self.orthogonal)
            outside = np.flatnonzero(product.any(axis=1))
            if not len(outside):
                return
            first = outside[0]
            self.basis.append(rows[first])
            self.orthogonal = self._without(product[first].astype(object))
            rows, whole = rows[outside[1:]], whole[outside[1:]]

    def _without(self, product: Array) -> Array:
        Z = self.orthogonal
        pivot = min(np.flatnonzero(product), key=lambda c: abs(product[c]))  # keeps numbers small
        rest = np.arange(Z.shape[1]) != pivot
        Z = Z[:, rest] * product[pivot] - np.outer(Z[:, pivot], product[rest])
        for column in Z.T:
            column //= gcd(*column)
        return Z


def _whole_rows(rows: Array) -> Array:
    """Multiply each row by a number so that all its entries are whole; the span stays the same."""
    if rows.dtype == np.int64:
        return rows
    whole = np.empty(rows.shape, dtype=object)
    for k, row in enumerate(rows.tolist()):
        fractions = [Fraction(v) for v in row]  # a float is an exact fraction as well
        common = lcm(*(v.denominator for v in fractions))
        whole[k] = [int(v * common) for v in fractions]
    return whole


def _exact_product(rows: Array, columns: Array) -> Array:
    """Multiply whole numbers: in int64 where no sum can overflow, otherwise without bound."""
    if rows.dtype == np.int64:
        size = max(abs(int(rows.max())), abs(int(rows.min())))
        if size * max(map(abs, columns.ravel())) * len(columns) < 2**63:
            return rows @ columns.astype(np.int64)
    return rows.astype(object) @ columns


class FloatSpan(Span):
    """QR with a tolerance: rows of Q are orthonormal, the largest remainder v - v Q^T Q is next."""

    def __init__(self, width: int, table: TolerantTable):
        super().__init__(width)
        self.table = table  # knows the tolerance and the largest magnitude so far
        self.Q = np.zeros((0, width))

    def add(self, rows):
        # divided by the largest magnitude, squares of tiny numbers cannot underflow
        left = rows / self.table.largest if len(rows) else rows
        for _ in range(2):  # projecting twice removes what rounding left
            left = left - (left @ self.Q.T) @ self.Q
        while len(left) and self.rank < self.width:
            sizes = abs(left).max(axis=1)
            first = int(sizes.argmax())
            if sizes[first] <= self.table.tolerance:
                return
            q = left[first] - (left[first] @ self.Q.T) @ self.Q
            q = q / np.linalg.norm(q)
            self.basis.append(rows[first])
            self.Q = np.vstack([self.Q, q])
            keep = np.arange(len(left)) != first
            rows, left = rows[keep], left[keep] - np.outer(left[keep] @ q, q)
