"""What is a positional relation? A function phi(query, key, scale) -> id that attention reads.

After Chen, Liang and Lin (2025), who call it a positional relation function (PRF).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.errors import InputError, whole_number

if TYPE_CHECKING:
    from lgcourse.relations.forms import Term

Scale = int | tuple[int, ...]
LARGEST_SIZE = 1_000_000  # a larger one is a slip of the keyboard


def sizes_of(scale: Scale) -> tuple[int, ...]:
    """Return a scale as a tuple of sizes, each a whole number of at least 1.

    >>> sizes_of(10), sizes_of((20, 13))
    ((10,), (20, 13))
    """
    sizes = scale if isinstance(scale, (tuple, list)) else (scale,)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"scale must be a whole number of at least 1, got {scale!r}")
        if size > LARGEST_SIZE:
            shown = str(size) if size < 10**20 else "a larger number"
            raise InputError(f"scale must be at most {LARGEST_SIZE:,}, got {shown}")
    return tuple(sizes)


class Relation:
    """A positional relation phi(i, j, n) -> id in {0, ..., size - 1}.

    Subclasses set ``name``, ``size``, ``uses_scale`` and write `ids`. A relation with an id that
    means "no role" names it in ``other``.

    Attributes:
        name: what tables and figures call it.
        size: number of ids.
        uses_scale: whether the id depends on the scale n (Scale Hint).
        other: the id of pairs without a role, or None.
    """

    name: str = "relation"
    size: int
    uses_scale: bool = False
    other: int | None = None

    def ids(self, query: Int[Tensor, "q 1"], key: Int[Tensor, "1 k"], scale: Scale) -> Tensor:
        """Return the id of each pair; only pairs with key <= query are ever read."""
        raise NotImplementedError

    def __call__(
        self, query: Int[Tensor, " q"], key: Int[Tensor, " k"], scale: Scale | None = None
    ) -> Int[Tensor, "q k"]:
        """Return the ids of all pairs of a query and a key.

        Args:
            query: positions of the queries, 0-based.
            key: positions of the keys, 0-based.
            scale: the scale n of the instance, an int or a tuple of ints; needed if `uses_scale`.

        Returns:
            One id per pair. Keys that lie after their query (never attended) get ``other``, or 0.

        Raises:
            InputError: the scale is missing or is no whole number of at least 1.
        """
        if scale is None and self.uses_scale:
            raise InputError(
                f"relation '{self.name}' uses a Scale Hint: give the scale of the instance"
            )
        scale = 1 if scale is None else scale
        sizes_of(scale)
        query, key = query[:, None].long(), key[None, :].long()
        ids = self.ids(query, key, scale).expand(query.shape[0], key.shape[1])
        future = 0 if self.other is None else self.other
        return torch.where(key > query, future, ids)

    def at(self, query: Tensor, key: Tensor, scale: Scale | None = None) -> Tensor:
        """Return the id of each pair of two tensors that broadcast, without any check.

        For places where no value may be looked at, such as the score function of FlexAttention.
        """
        return self.ids(query, key, 1 if scale is None else scale)

    def named(
        self, query: Int[Tensor, " q"], scale: Scale | None = None
    ) -> tuple[Int[Tensor, "q r"], Int[Tensor, "q r"]]:
        """Return the keys that have an id other than "other", without looking at all pairs.

        Args:
            query: positions of the queries.
            scale: the scale n, if the relation `uses_scale`.

        Returns:
            Keys and their ids, r slots per query in any order; an empty slot has key -1.

        Raises:
            InputError: the relation does not name finitely many keys per query.
        """
        raise InputError(
            f"relation '{self.name}' does not name a few keys per query; "
            "ideal, ideal-sh and rpe-sh do"
        )

    def terms(self) -> list[Term] | None:
        """Return what the relation is made of, or None if it is not made of forms.

        A pair has the id of the term that holds for it, and "other" where none does. No two terms
        hold for one pair.
        """
        return None

    def label(self, id: int) -> str:
        """Return what an id means, in words."""
        return "other" if id == self.other else f"id {id}"

    def __repr__(self) -> str:
        return f"<relation {self.name}: {self.size} ids>"


class Table(Relation):
    """A relation that is written out as one square table of ids per scale, or one for all scales.

    Args:
        table: ids, ``Int["l l"]`` (rows are queries), or a dictionary from scale to such a table.
        name: what tables and figures call it.
        other: the id of pairs without a role, if there is one.

    Raises:
        InputError: a position lies outside the table, or the scale has no table.

    >>> phi = Table([[0, 1], [2, 0]])
    >>> phi(torch.arange(2), torch.arange(2))
    tensor([[0, 0],
            [2, 0]])
    """

    def __init__(self, table, name: str = "table", other: int | None = None):
        self.name, self.other = name, other
        self.uses_scale = isinstance(table, dict)
        pages = table if isinstance(table, dict) else {None: table}
        self.pages = {scale: torch.as_tensor(page).long() for scale, page in pages.items()}
        for page in self.pages.values():
            if page.ndim != 2 or page.shape[0] != page.shape[1] or page.numel() == 0:
                raise InputError(f"a table of ids must be square, got shape {tuple(page.shape)}")
            if page.min() < 0:
                raise InputError(f"ids must be at least 0, got {int(page.min())}")
        largest = max(int(page.max()) for page in self.pages.values())
        self.size = 1 + max(largest, -1 if other is None else other)

    def ids(self, query, key, scale):
        page = self.pages.get(scale if self.uses_scale else None)
        if page is None:
            raise InputError(f"relation '{self.name}' has no table for scale {scale}")
        check_range(self.name, torch.maximum(query.max(), key.max()), page.shape[0])
        return page[query, key]


def check_range(name: str, largest: Tensor | int, positions: int) -> None:
    """Refuse a position that a relation or table of bounded size does not know."""
    if int(largest) >= positions:
        raise InputError(
            f"'{name}' was made for {positions} positions, got position {int(largest)}; "
            f"build it with a larger max_scale (or positions={int(largest) + 1})"
        )


def positions_for(task, max_scale: Scale | None, positions: int | None) -> int:
    """Return how many positions a bounded relation must know: as asked, or the task's length."""
    if positions is not None:
        return whole_number("positions", positions, 1)
    if task is None:
        return 512
    return task.length(max_scale if max_scale is not None else largest_scale(task))


def largest_scale(task) -> Scale:
    """Return the scale at which every size is 100, or the width of a padded task."""
    return task.scale_of(getattr(task, "width", 100))
