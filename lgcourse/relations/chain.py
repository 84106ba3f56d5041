"""What does a query get through a token that has read before it? Two relations, one after another.

In a model of several layers a head can read a key j whose vector already holds what a head of an
earlier layer read at j. The way leads from the query i to j and on to k: a relation of i and k.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from lgcourse.relations.base import Relation
from lgcourse.relations.cells import CellRelation


class ChainRelation(Relation):
    """The relation whose ids are pairs of cells: one leads from i to j, the other from j to k.

    id(i, k, n) = r s' + r' if the key j at cell r of ``last`` has k at cell r' of ``first``, where
    s' is the number of cells of ``first``; where two pairs hold, the earlier one gives the id.

    Args:
        last: the relation of the later layer, which the query reads by.
        first: the relation of the earlier layer, by which the token was read to.

    >>> from lgcourse.relations.forms import Form
    >>> back = CellRelation([(Form(1, -1), 2)])  # two places back
    >>> phi = ChainRelation(back, back)
    >>> phi(torch.tensor([6]), torch.arange(7))
    tensor([[1, 1, 0, 1, 1, 1, 1]])
    >>> phi.label(0)
    'i - j = 2, there i - j = 2'
    """

    def __init__(self, last: CellRelation, first: CellRelation):
        self.last, self.first = last, first
        self.name = f"{last.name} through {first.name}"
        self.parts = last.parts or first.parts
        self.uses_scale = last.uses_scale or first.uses_scale
        self.other = len(self)
        self.size = self.other + 1

    def __len__(self) -> int:
        """Return the number of pairs of cells."""
        return len(self.last.cells) * len(self.first.cells)

    def ids(self, query, key, scale):
        return self.at(query, key, scale)

    def at(self, query, key, scale=None):
        query, key = torch.broadcast_tensors(query, key)
        keys, ids = self.named(query.reshape(-1), scale)
        here = (keys == key.reshape(-1, 1)) & (keys >= 0)
        return torch.where(here, ids, len(self)).amin(1).view(query.shape)

    def named(self, query, scale=None):
        through, _ = self.last.named(query, scale)  # q r
        keys, _ = self.first.named(through.clamp(min=0).reshape(-1), scale)
        keys = torch.where(through.reshape(-1, 1) < 0, -1, keys).view(len(query), -1)
        return keys, torch.arange(keys.shape[1], device=query.device).expand_as(keys)

    def label(self, id):
        if id == self.other:
            return "other"
        one, other = divmod(id, len(self.first.cells))
        return f"{self.last.label(one)}, there {self.first.label(other)}"


def chains(heads: Iterable[CellRelation]) -> list[ChainRelation]:
    """Return the ways through one token: each head after each head of an earlier layer, once.

    >>> from lgcourse.relations.forms import Form
    >>> def head(value, layer):
    ...     return CellRelation([(Form(1, -1), value)], f"head {value}", layer=layer)
    >>> [chain.name for chain in chains([head(1, 1), head(2, 1), head(3, 2)])]
    ['head 3 through head 1', 'head 3 through head 2']
    """
    distinct = {(tuple(head.cells), head.layer): head for head in heads}
    found: dict[tuple, ChainRelation] = {}
    for (cells, layer), last in distinct.items():
        for (earlier, before), first in distinct.items():
            if before < layer:
                found.setdefault((cells, earlier), ChainRelation(last, first))
    return list(found.values())
