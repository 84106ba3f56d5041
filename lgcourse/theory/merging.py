"""How many unit operators does a circuit need? SRC counts them, merging what one table serves.

`src` counts for a circuit; `induced_src` counts what a positional relation makes of it.
Source: the course's formalisation, after Chen, Liang and Lin (2025).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.tasks.circuit import Operator, Step
from lgcourse.theory.circuits import Circuit, scales_up_to, steps_at
from lgcourse.theory.colouring import Colouring, colour


@dataclass(frozen=True)
class Bounds:
    """A number that lies between two bounds, both included.

    Args:
        lower: it is at least this.
        upper: it is at most this.
    """

    lower: int
    upper: int

    @property
    def exact(self) -> bool:
        """Whether the bounds meet, so that the number is known."""
        return self.lower == self.upper


def compatible(first: Operator, second: Operator) -> bool:
    """Return whether one table is consistent with both operators.

    >>> double = Operator.from_rule("double", ("x",), lambda x: 2 * x, range(5))
    >>> square = Operator.from_rule("square", ("x",), lambda x: x * x, (0, 2, 7))
    >>> compatible(double, square)
    True
    """
    if first.arity != second.arity:
        return False
    small, large = sorted((first.table, second.table), key=len)
    return all(large.get(operands, token) == token for operands, token in small.items())


@dataclass
class _OneArity:
    """The operators of one arity, which of them clash, and a colouring that is kept up to date."""

    members: list[Operator] = field(default_factory=list)
    neighbours: list[int] = field(default_factory=list)
    clique: int = 0  # operators that are all incompatible, as bits
    colouring: Colouring = field(default_factory=lambda: Colouring([], 0))

    def add(self, operator: Operator) -> None:
        new = len(self.members)
        clashes = sum(1 << v for v, op in enumerate(self.members) if not compatible(op, operator))
        for v in range(new):
            if clashes >> v & 1:
                self.neighbours[v] |= 1 << new
        self.members.append(operator)
        self.neighbours.append(clashes)
        self._colour_last(clashes)

    def _colour_last(self, clashes: int) -> None:
        """Give the newest operator a colour: an old one, or a new one if no old one will do."""
        colours, lower, upper = (
            self.colouring.colours,
            self.colouring.lower,
            self.colouring.upper,
        )
        taken = {c for v, c in enumerate(colours) if clashes >> v & 1}
        free = next((c for c in range(upper) if c not in taken), upper)
        if self.clique & ~clashes == 0:
            self.clique |= 1 << len(colours)
            lower = max(lower, self.clique.bit_count())
        self.colouring = Colouring([*colours, free], lower)
        if free == upper and lower <= upper:  # perhaps other colours for the old ones make room
            best = colour(self.neighbours)
            if best.upper < self.colouring.upper or best.lower > lower:
                colours = min(best, self.colouring, key=lambda c: c.upper).colours
                self.colouring = Colouring(colours, max(lower, best.lower))


class Merging:
    """The distinct operators of a circuit, by first use, and the fewest tables that serve them.

    Pairwise is enough: partial tables f_1..f_m are served by one table if and only if each two are
    compatible. Proof: if the union of the tables held (x, y) and (x, z) with y != z, these would
    come from two of them, f_a and f_b, and those two would not be compatible; so the union is a
    table. Conversely, what one table serves agrees with it, and so with one another. A set of
    operators can thus be merged exactly if it is independent in the graph that joins incompatible
    operators, and the least number of tables is the chromatic number of that graph. Operators of
    different arity never merge, so the numbers of each arity add up.

    >>> merging = Merging()
    >>> low = Operator("low", ("x",), {(0,): 1})
    >>> high = Operator("high", ("x",), {(1,): 0})
    >>> merging.add(low), merging.add(high), merging.bounds()
    (0, 1, Bounds(lower=1, upper=1))
    """

    def __init__(self, circuits: Iterable[Sequence[Step]] = ()):
        self.index: dict[Operator, int] = {}
        self._places: list[tuple[int, int]] = []  # arity, index among those of this arity
        self._arities: dict[int, _OneArity] = {}
        for steps in circuits:
            self.add_steps(steps)

    @property
    def operators(self) -> list[Operator]:
        """The distinct operators."""
        return list(self.index)

    def add(self, operator: Operator) -> int:
        """Take in an operator; return its index among the distinct ones."""
        if operator not in self.index:
            self.index[operator] = len(self.index)
            same = self._arities.setdefault(operator.arity, _OneArity())
            self._places.append((operator.arity, len(same.members)))
            same.add(operator)
        return self.index[operator]

    def add_steps(self, steps: Sequence[Step]) -> list[int]:
        """Take in the operators of some steps; return the index of each step's operator."""
        return [self.add(step.operator) for step in steps]

    def clashes(self, operator: int, others: set[int]) -> bool:
        """Return whether a distinct operator is incompatible with one of others of its arity."""
        arity, place = self._places[operator]
        neighbours = self._arities[arity].neighbours[place]
        return any(neighbours >> self._places[other][1] & 1 for other in others)

    def bounds(self) -> Bounds:
        """Return the bounds of the least number of tables; they meet unless the graph is large."""
        colourings = [same.colouring for same in self._arities.values()]
        return Bounds(sum(c.lower for c in colourings), sum(c.upper for c in colourings))

    def groups(self) -> list[int]:
        """Return for each distinct operator which table serves it, as a number from 0."""
        start, offsets = 0, {}
        for arity, same in self._arities.items():
            offsets[arity] = start
            start += same.colouring.upper
        return [
            offsets[arity] + self._arities[arity].colouring.colours[place]
            for arity, place in self._places
        ]


def src_bounds(circuit: Circuit, scale: Scale) -> Bounds:
    """Bound the least number of unit operators that serve a circuit on all scales up to one.

    The bounds are equal, so the number exact, whenever no arity has more than
    `lgcourse.theory.colouring.EXACT_VERTICES` (40) distinct operators, and mostly beyond.

    Args:
        circuit: a task, or anything that `steps_at` reads.
        scale: the scale n; for tasks with several sizes a whole number means all sizes up to n.

    Returns:
        `Bounds`. Its ``upper`` is an upper bound on SRC_k too (the least number over all circuits);
        its ``lower`` is about this circuit only.

    Raises:
        InputError: the scale or the circuit is not valid.

    >>> from lgcourse.tasks import get
    >>> src_bounds(get("parity-cot"), 5)
    Bounds(lower=2, upper=2)
    """
    return Merging(steps_at(circuit, n) for _, n in scales_up_to(circuit, scale)).bounds()


def src(circuit: Circuit, scale: Scale) -> int:
    """Count the unit operators of a circuit on all scales up to one, merging what can be merged.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        circuit: a task, or anything that `steps_at` reads.
        scale: the scale n; for tasks with several sizes a whole number means all sizes up to n.

    Returns:
        The least number of tables that serve all steps: an upper bound on SRC_k, the minimum over
        all circuits. Where it is not known, the upper bound of `src_bounds`, with a warning.

    Raises:
        InputError: the scale or the circuit is not valid.

    >>> from lgcourse.tasks import get
    >>> src(get("copy"), 20), src(get("parity-cot"), 1), src(get("parity-cot"), 20)
    (1, 1, 2)
    """
    return _number(src_bounds(circuit, scale))


def src_curve(circuit: Circuit, scale: Scale) -> dict[int, int]:
    """Count the unit operators of a circuit for every scale 1..n in one pass.

    Args:
        circuit: a task, or anything that `steps_at` reads.
        scale: the largest scale n, a whole number. With several sizes, entry m is about all sizes
            up to m.

    Returns:
        scale -> what `src` returns; it never decreases.

    Raises:
        InputError: the scale or the circuit is not valid.

    >>> from lgcourse.tasks import get
    >>> src_curve(get("parity-cot"), 4)
    {1: 1, 2: 2, 3: 2, 4: 2}
    """
    merging, largest = Merging(), _whole(scale)
    bounds: dict[int, Bounds] = {}
    for size, n in scales_up_to(circuit, largest):
        merging.add_steps(steps_at(circuit, n))
        bounds[size] = merging.bounds()
    curve, upper = {}, merging.bounds().upper
    for size in reversed(bounds):  # what serves a larger scale serves a smaller one
        upper = min(upper, bounds[size].upper)
        curve[size] = _number(Bounds(bounds[size].lower, upper))
    return _fill(curve, largest)


def _fill(curve: dict[int, int], largest: int) -> dict[int, int]:
    """Let sizes without a scale of their own take the number of the size before."""
    filled, last = {}, 0
    for size in range(1, largest + 1):
        filled[size] = last = curve.get(size, last)
    return filled


def _number(bounds: Bounds) -> int:
    if not bounds.exact:
        warnings.warn(
            f"the least number of operators lies between {bounds.lower} and {bounds.upper}; "
            f"{bounds.upper} is the upper bound, src_bounds gives both",
            stacklevel=3,
        )
    return bounds.upper


def _whole(scale) -> int:
    sizes = sizes_of(scale)
    if isinstance(scale, (tuple, list)):
        raise InputError(
            f"a curve runs over one whole number, got scale {scale!r}; try {max(sizes)}"
        )
    return sizes[0]


def induced_src(circuit: Circuit, relation: Relation | Sequence[Relation], scale: Scale) -> int:
    """Count the operators that a relation makes of a circuit: pairs of operator and operands' ids.

    A model that knows positions only through the relation has to learn each pair by itself. The
    number stays constant for a relation that aligns the circuit, and grows for absolute positions.
    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        circuit: a task, or anything that `steps_at` reads.
        relation: a `Relation`, or a list of them (then an operand has one id in each).
        scale: the scale n; for tasks with several sizes a whole number means all sizes up to n.

    Returns:
        The number of distinct pairs on all scales up to the given one; at least `src`.

    Raises:
        InputError: the scale or the circuit is not valid, or a position lies beyond the relation.

    >>> from lgcourse.relations import build
    >>> from lgcourse.tasks import get
    >>> copy = get("copy")
    >>> induced_src(copy, build("rpe-sh", copy), 9), induced_src(copy, build("ape", copy), 9)
    (1, 9)
    """
    pairs: set[tuple] = set()
    merging = Merging()
    for _, n in scales_up_to(circuit, scale):
        pairs |= _induced(steps_at(circuit, n), relation, n, merging)
    return len(pairs)


def induced_src_curve(
    circuit: Circuit, relation: Relation | Sequence[Relation], scale: Scale
) -> dict[int, int]:
    """Count the induced operators for every scale 1..n in one pass.

    Args:
        circuit: a task, or anything that `steps_at` reads.
        relation: a `Relation`, or a list of them.
        scale: the largest scale n, a whole number. With several sizes, entry m is about all sizes
            up to m.

    Returns:
        scale -> what `induced_src` returns; it never decreases.

    Raises:
        InputError: the scale or the circuit is not valid, or a position lies beyond the relation.

    >>> from lgcourse.relations import build
    >>> from lgcourse.tasks import get
    >>> induced_src_curve(get("copy"), build("ape"), 4)
    {1: 1, 2: 2, 3: 3, 4: 4}
    """
    pairs: set[tuple] = set()
    merging, largest = Merging(), _whole(scale)
    curve: dict[int, int] = {}
    for size, n in scales_up_to(circuit, largest):
        pairs |= _induced(steps_at(circuit, n), relation, n, merging)
        curve[size] = len(pairs)
    return _fill(curve, largest)


def _induced(steps: list[Step], relation, scale: Scale, merging: Merging) -> set[tuple]:
    relations = list(relation) if isinstance(relation, (list, tuple)) else [relation]
    operators = torch.tensor(merging.add_steps(steps), dtype=torch.long)[:, None]
    columns = [operand_ids(one, steps, scale) for one in relations]
    rows = torch.cat([operators, *columns], dim=1).tolist()
    return {tuple(id for id in row if id >= 0) for row in rows}


def operand_ids(
    relation: Relation, steps: Sequence[Step], scale: Scale, chunk: int = 64
) -> Int[Tensor, "s r"]:
    """Return the id of each operand of each step.

    Args:
        relation: the relation phi.
        steps: the steps of one scale, s of them.
        scale: that scale.
        chunk: how many steps are asked for at once.

    Returns:
        phi(query, operand, n) per step and role; -1 where a step has fewer operands than others.
    """
    query, inputs = positions(steps)
    ids = torch.full_like(inputs, -1)
    for start in range(0, len(steps), chunk):
        part = slice(start, start + chunk)
        keys, place = torch.unique(inputs[part].clamp(min=0), return_inverse=True)
        if keys.numel():
            found = relation(query[part], keys, scale).gather(1, place)
            ids[part] = torch.where(inputs[part] < 0, -1, found)
    return ids


def positions(steps: Sequence[Step]) -> tuple[Int[Tensor, " s"], Int[Tensor, "s r"]]:
    """Return the query and the operands of each step, -1 where a step has fewer than others."""
    arity = max((len(step.inputs) for step in steps), default=0)
    inputs = [(*step.inputs, *[-1] * (arity - len(step.inputs))) for step in steps]
    query = torch.tensor([step.query for step in steps], dtype=torch.long)
    return query, torch.tensor(inputs, dtype=torch.long).reshape(len(steps), arity)
