"""How can a circuit be said for every scale at once? By families of steps, affine in t and n.

A layout is a row of segments whose lengths depend on the scale; a family is a run of steps
t = first(n) .. last(n) that read and write at positions like 2 n + t. From these follow the circuit
of a scale, the length of a sequence without writing it down, the terms of the ideal relation, and
what a certificate must know about all scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lgcourse.relations.affine import Affine
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.relations.forms import Term
from lgcourse.relations.terms import term_of
from lgcourse.tasks.circuit import Operator, Step


@dataclass(frozen=True)
class Segment:
    """A run of neighbouring positions of a layout.

    Args:
        letter: what the positions are called: x for x1, x2, ..; a mark such as "=" for itself.
        length: how many there are, an expression in the sizes.
        tokens: which tokens stand here, any of them at any place whatever stands elsewhere; one
            token for a mark or for padding; empty for what the circuit writes.
        start: the number of the first one; None for a mark, which has no number.

    >>> from lgcourse.relations.affine import N
    >>> Segment("x", N, tokens=tuple(range(10))).names((3,))
    ['x1', 'x2', 'x3']
    """

    letter: str
    length: Affine
    tokens: tuple[int, ...] = ()
    start: Affine | None = Affine(1)

    @property
    def written(self) -> bool:
        """Whether the circuit writes here."""
        return not self.tokens

    def names(self, sizes: tuple[int, ...]) -> list[str]:
        """Return the names of its positions at a scale."""
        count = self.length(sizes=sizes)
        if self.start is None:
            return [self.letter] * count
        first = self.start(sizes=sizes)
        return [f"{self.letter}{k}" for k in range(first, first + count)]


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
        if not all(bound(sizes=sizes) >= 0 for bound in self.where):
            return []
        each = range(self.first(sizes=sizes), self.last(sizes=sizes) + 1, self.step)
        return [
            Step(self.output(t, sizes), self.operator, tuple(at(t, sizes) for at in self.inputs))
            for t in each
        ]

    def terms(self, sizes: int) -> list[Term]:
        """Return the terms of the ideal relation for these steps, one per role."""
        query = self.output - 1
        guard = (self.first, self.last, self.step, self.where)
        return [
            term_of((self.operator.name, role), query, place, *guard, sizes=sizes)
            for role, place in zip(self.operator.roles, self.inputs, strict=True)
        ]


def starts(segments: Sequence[Segment]) -> list[Affine]:
    """Return the position of the first place of each segment, and the length of the whole.

    >>> from lgcourse.relations.affine import N
    >>> starts([Segment("x", N), Segment("=", Affine(1), start=None), Segment("y", N)])
    [0, n, n + 1, 2n + 1]
    """
    places = [Affine()]
    for segment in segments:
        places.append(places[-1] + segment.length)
    return places


def layout(segments: Sequence[Segment], scale: Scale) -> list[str]:
    """Return the name of each position at a scale."""
    sizes = sizes_of(scale)
    return [name for segment in segments for name in segment.names(sizes)]
