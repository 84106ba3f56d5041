"""How can a circuit be said for every scale at once? By families of steps, affine in t and n.

A layout is a row of segments whose lengths depend on the scale; a family is a run of steps
t = first(n) .. last(n) that read and write at positions like 2 n + t. From these follow the circuit
of a scale, the length of a sequence without writing it down, the terms of the ideal relation, and
what a certificate must know about all scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.errors import InputError, unknown_name
from lgcourse.relations.affine import Affine
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.relations.forms import Term
from lgcourse.relations.terms import term_of
from lgcourse.tasks.circuit import Operator, Step

Place = Callable[..., Affine]  # index -> position; without an index for a mark


def holds(where: Iterable[Affine], sizes: tuple[int, ...]) -> bool:
    """Return whether all expressions are at least 0 at a scale.

    >>> from lgcourse.relations.affine import M, N
    >>> holds((N - M,), (3, 2)), holds((N - M,), (2, 3))
    (True, False)
    """
    return all(bound(sizes=sizes) >= 0 for bound in where)


@dataclass(frozen=True)
class Segment:
    """A run of neighbouring positions of a layout.

    Args:
        letter: what the positions are called: x for x1, x2, ..; a mark such as "=" for itself.
        length: how many there are, an expression in the sizes.
        tokens: which tokens stand here, any of them at any place whatever stands elsewhere; one
            token for a mark or for padding; empty for what the circuit writes.
        start: the number of the first one; None for a mark, which has no number.
        where: expressions in the sizes; the segment exists at scales where all are at least 0. Only
            the last segment of a layout may have any.

    >>> from lgcourse.relations.affine import N
    >>> Segment("x", N, tokens=tuple(range(10))).names((3,))
    ['x1', 'x2', 'x3']
    """

    letter: str
    length: Affine
    tokens: tuple[int, ...] = ()
    start: Affine | None = Affine(1)
    where: tuple[Affine, ...] = ()

    @property
    def written(self) -> bool:
        """Whether the circuit writes here."""
        return not self.tokens

    def count(self, sizes: tuple[int, ...]) -> int:
        """Return how many positions it has at a scale."""
        return self.length(sizes=sizes) if holds(self.where, sizes) else 0

    def names(self, sizes: tuple[int, ...]) -> list[str]:
        """Return the names of its positions at a scale."""
        if self.start is None:
            return [self.letter] * self.count(sizes)
        first = self.start(sizes=sizes)
        return [f"{self.letter}{k}" for k in range(first, first + self.count(sizes))]


@dataclass(frozen=True)
class Family:
    """The steps t = first, first + step, .., last of one operator, at all scales.

    Args:
        operator: the unit operator.
        output: the position that is written, an expression in t and the sizes.
        inputs: the positions that are read, one per role.
        first, last: the range of t, expressions in the sizes.
        step: how far t goes at once.
        where: expressions in the sizes; the family exists at scales where all are at least 0.

    >>> from lgcourse.relations.affine import N, T
    >>> from lgcourse.tasks.base import identity
    >>> copied = Family(identity(10), output=N + T, inputs=(T - 1,), first=Affine(1), last=N)
    >>> [(step.output, step.inputs) for step in copied.steps((2,))]
    [(3, (0,)), (4, (1,))]
    """

    operator: Operator
    output: Affine
    inputs: tuple[Affine, ...]
    first: Affine
    last: Affine
    step: int = 1
    where: tuple[Affine, ...] = ()

    def steps(self, sizes: tuple[int, ...]) -> list[Step]:
        """Return the steps of one scale."""
        if not holds(self.where, sizes):
            return []
        each = range(self.first(sizes=sizes), self.last(sizes=sizes) + 1, self.step)
        lines = [(at(0, sizes), at.t_factor) for at in (self.output, *self.inputs)]
        rows = (tuple(begin + slope * t for begin, slope in lines) for t in each)
        return [Step(row[0], self.operator, row[1:]) for row in rows]

    def terms(self, sizes: int) -> list[Term]:
        """Return the terms of the ideal relation for these steps, one per role."""
        query = self.output - 1
        guard = (self.first, self.last, self.step, self.where)
        return [
            term_of((self.operator.name, role), query, place, *guard, sizes=sizes)
            for role, place in zip(self.operator.roles, self.inputs, strict=True)
        ]


def family(
    operator: Operator,
    output: Affine,
    inputs: Sequence[Affine],
    first: Affine | int,
    last: Affine | int | None = None,
    step: int = 1,
    where: Sequence[Affine] = (),
) -> Family:
    """Return a `Family`; bounds may be whole numbers, and without ``last`` it is the one step.

    >>> from lgcourse.relations.affine import N, T
    >>> from lgcourse.tasks.base import identity
    >>> family(identity(10), N + T, [T - 1], 1).last
    1
    """
    last = first if last is None else last
    bounds = Affine.of(first), Affine.of(last)
    return Family(operator, output, tuple(inputs), *bounds, step, tuple(where))


def starts(segments: Sequence[Segment]) -> list[Affine]:
    """Return the position of the first place of each segment, and the length of the whole.

    The last entry is the length at scales where every segment exists; see `length_of` for others.

    Raises:
        InputError: a segment that does not exist at all scales is followed by another one.

    >>> from lgcourse.relations.affine import N
    >>> starts([Segment("x", N), Segment("=", Affine(1), start=None), Segment("y", N)])
    [0, n, n + 1, 2n + 1]
    """
    for segment in segments[:-1]:
        if segment.where:
            raise InputError(
                f"segment '{segment.letter}' exists at some scales only (where {segment.where}): "
                "it must be the last of its layout"
            )
    places = [Affine()]
    for segment in segments:
        places.append(places[-1] + segment.length)
    return places


def place(segments: Sequence[Segment], letter: str) -> Place:
    """Return the function that gives the position of x_k for a letter x, or of a mark.

    It counts on from the first x, also behind the last one, where something else stands.

    Args:
        segments: the layout.
        letter: the letter or mark; of several segments the first one counts.

    Raises:
        InputError: no segment has the letter.

    >>> from lgcourse.relations.affine import N, T
    >>> row = [Segment("x", N), Segment("=", Affine(1), start=None), Segment("y", N)]
    >>> x, equals, y = (place(row, letter) for letter in "x=y")
    >>> y(T), equals(), x(N + 1)
    (n + t, n, n)
    """
    places = zip(segments, starts(segments), strict=False)
    found = [(at, segment.start) for segment, at in places if segment.letter == letter]
    if not found:
        letters = dict.fromkeys(segment.letter for segment in segments)
        raise unknown_name("letter of the layout", letter, letters)
    at, start = found[0]
    if start is None:
        return lambda: at
    zero = at - start
    return lambda index: zero + index


def layout(segments: Sequence[Segment], scale: Scale) -> list[str]:
    """Return the name of each position at a scale."""
    sizes = sizes_of(scale)
    return [name for segment in segments for name in segment.names(sizes)]


def length_of(segments: Sequence[Segment], scale: Scale, written: bool = False) -> int:
    """Return the number of positions at a scale; with ``written``, of those the circuit writes.

    >>> from lgcourse.relations.affine import N
    >>> length_of([Segment("x", N, tokens=(0, 1)), Segment("y", N + 1)], 1_000_000)
    2000001
    """
    sizes = sizes_of(scale)
    return sum(s.count(sizes) for s in segments if s.written or not written)


def circuit_of(families: Iterable[Family], scale: Scale) -> list[Step]:
    """Return the steps of all families at a scale, in the order of their outputs."""
    sizes = sizes_of(scale)
    steps = [step for family in families for step in family.steps(sizes)]
    return sorted(steps, key=lambda step: step.output)


def uniform(
    segments: Iterable[Segment], scale: Scale, batch: int, generator: torch.Generator
) -> Int[Tensor, "b p"]:
    """Draw the tokens of segments, each token of a place equally likely.

    >>> from lgcourse.relations.affine import N
    >>> row = [Segment("x", N, tokens=(0, 1)), Segment("=", Affine(1), (2,), start=None)]
    >>> uniform(row, 5, 1, torch.Generator().manual_seed(0))
    tensor([[0, 1, 1, 0, 1, 2]])
    """
    sizes, parts = sizes_of(scale), []
    for segment in segments:
        shape = (batch, segment.count(sizes))
        if len(segment.tokens) == 1:
            parts.append(torch.full(shape, segment.tokens[0]))
        else:
            drawn = torch.randint(len(segment.tokens), shape, generator=generator)
            parts.append(torch.tensor(segment.tokens)[drawn])
    return torch.cat(parts, dim=1)
