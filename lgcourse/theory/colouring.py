"""How few colours does a graph need so that neighbours differ?

Exactly for small graphs; for large ones there may be a bound from below and one from above.
`theory.merging` uses it: vertices are unit operators, edges join those that cannot share one table.
A graph is a list of integers: bit w of ``neighbours[v]`` is set if v and w are joined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

EXACT_VERTICES = 40  # up to here the search always runs to its end
SEARCH_NODES = 5_000  # beyond, it gives up after this many nodes and leaves two bounds
SEARCH_VERTICES = 500  # beyond, there is no search (its depth is the number of vertices)
CLIQUE_TRIES = 40


@dataclass(frozen=True)
class Colouring:
    """A proper colouring and what is known about the least one.

    Args:
        colours: one colour 0, 1, ... per vertex; ``upper`` colours in all.
        lower: no proper colouring has fewer colours.
    """

    colours: list[int]
    lower: int

    @property
    def upper(self) -> int:
        """Number of colours used."""
        return max(self.colours, default=-1) + 1


def colour(neighbours: list[int]) -> Colouring:
    """Colour a graph with the fewest colours that a bounded search finds.

    A clique bounds their number from below, a greedy colouring from above; search closes the gap.

    Args:
        neighbours: the neighbours of each vertex as bits.

    Returns:
        A `Colouring`; its bounds are equal for every graph of up to ``EXACT_VERTICES`` vertices.

    >>> five_ring = [0b10010, 0b00101, 0b01010, 0b10100, 0b01001]
    >>> colour(five_ring).upper, colour(five_ring).lower
    (3, 3)
    """
    clique = largest_clique_found(neighbours)
    greedy = _greedy(neighbours, clique)
    if max(greedy, default=-1) + 1 == len(clique):
        return Colouring(greedy, len(clique))
    limit = None
    if len(neighbours) > EXACT_VERTICES:
        limit = SEARCH_NODES if len(neighbours) <= SEARCH_VERTICES else 0
    search = _Search(neighbours, greedy, len(clique), limit)
    search.run(clique)
    return Colouring(search.best, search.best_count if search.finished else len(clique))


def largest_clique_found(neighbours: list[int]) -> list[int]:
    """Return a large set of vertices that are all joined: the best of some greedy tries."""
    best: list[int] = []
    by_degree = sorted(range(len(neighbours)), key=lambda v: -neighbours[v].bit_count())
    for start in by_degree[:CLIQUE_TRIES]:
        clique, common = [start], neighbours[start]
        while common:
            vertex = max(bits(common), key=lambda v: (neighbours[v] & common).bit_count())
            clique.append(vertex)
            common &= neighbours[vertex]
        if len(clique) > len(best):
            best = clique
        if len(best) == len(neighbours):
            break
    return best


def bits(mask: int) -> list[int]:
    """Return the positions of the set bits.

    >>> bits(0b1011)
    [0, 1, 3]
    """
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


@dataclass
class _Partial:
    """Colours given so far, and for each vertex the colours that its neighbours have, as bits."""

    neighbours: list[int]
    colours: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    free: int = 0  # vertices without a colour, as bits

    def __post_init__(self):
        self.colours = [-1] * len(self.neighbours)
        self.taken = [0] * len(self.neighbours)
        self.free = (1 << len(self.neighbours)) - 1

    def give(self, vertex: int, colour: int) -> list[int]:
        """Colour a vertex; return the neighbours for which this colour is newly taken."""
        self.colours[vertex], bit = colour, 1 << colour
        self.free &= ~(1 << vertex)
        told = [w for w in bits(self.neighbours[vertex] & self.free) if not self.taken[w] & bit]
        for w in told:
            self.taken[w] |= bit
        return told

    def withdraw(self, vertex: int, told: list[int]) -> None:
        """Undo `give`."""
        bit = 1 << self.colours[vertex]
        for w in told:
            self.taken[w] ^= bit
        self.colours[vertex] = -1
        self.free |= 1 << vertex

    def hardest(self) -> int:
        """Return the free vertex with the fewest colours left; of these, most free neighbours."""
        return max(
            bits(self.free),
            key=lambda v: (
                self.taken[v].bit_count(),
                (self.neighbours[v] & self.free).bit_count(),
                -v,
            ),
        )


def _greedy(neighbours: list[int], clique: list[int]) -> list[int]:
    """Colour the clique, then the hardest vertex each time (DSATUR, Brelaz 1979)."""
    partial = _Partial(neighbours)
    for index, vertex in enumerate(clique):
        partial.give(vertex, index)
    while partial.free:
        vertex = partial.hardest()
        partial.give(vertex, _first_gap(partial.taken[vertex]))
    return partial.colours


def _first_gap(taken: int) -> int:
    return (~taken & (taken + 1)).bit_length() - 1


class _Search:
    """Branch and bound over the hardest vertex, from a clique with fixed colours."""

    def __init__(self, neighbours, greedy: list[int], lower: int, limit: int | None):
        self.partial = _Partial(neighbours)
        self.best, self.best_count = greedy, max(greedy) + 1
        self.lower, self.limit, self.nodes, self.finished = lower, limit, 0, True

    def run(self, clique: list[int]) -> None:
        for index, vertex in enumerate(clique):
            self.partial.give(vertex, index)
        self._branch(len(clique))

    def _branch(self, used: int) -> None:
        if self.best_count == self.lower or not self.finished:
            return
        self.nodes += 1
        if self.limit is not None and self.nodes > self.limit:
            self.finished = False
            return
        if not self.partial.free:
            self.best, self.best_count = list(self.partial.colours), used
            return
        vertex = self.partial.hardest()
        # one colour that is new, at most: new colours are interchangeable
        for colour in range(used + 1):
            if max(used, colour + 1) >= self.best_count:
                break
            if not self.partial.taken[vertex] >> colour & 1:
                told = self.partial.give(vertex, colour)
                self._branch(max(used, colour + 1))
                self.partial.withdraw(vertex, told)
