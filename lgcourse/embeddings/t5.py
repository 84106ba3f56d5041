"""How does T5 tell near keys from far ones? One learned number per head and bucket of distance."""

from __future__ import annotations

import torch
from torch import nn

from lgcourse.embeddings.base import PositionEmbedding, look_up, soft_only, wide
from lgcourse.errors import InputError, whole_number
from lgcourse.relations import build as build_relation
from lgcourse.relations.base import Relation


class ScalarBias(PositionEmbedding):
    """One learned number per head and id, as it is: bias[h, i, j] = r[h, phi(i, j)].

    With T5's buckets as phi this is the bias of T5: 32 buckets, exact below distance 16, then
    logarithmic up to distance 128; one table for all layers. No factor for the length: compare
    `RelationTable`, which has one.

    Source: Raffel et al. (2020), arXiv 1910.10683, section 2.1.

    Traps: a decoder looks back only, so all 32 buckets serve keys at or before the query (an
    encoder halves them, one half for each direction). T5 does not divide q k by sqrt(d); we do, as
    in every other model here, so weights of a T5 need q times sqrt(d) to give equal scores.

    Args:
        relation: the positional relation phi.
        heads: number of heads, each with a row of its own.

    >>> bias = ScalarBias(build_relation("t5"), heads=2)
    >>> at = torch.arange(5)
    >>> bias.table.shape, bias.bias(at, at, scale=1).shape
    (torch.Size([2, 32]), torch.Size([2, 5, 5]))
    """

    relation: Relation

    def __init__(self, relation: Relation, heads: int):
        super().__init__()
        self.relation = relation
        self.table = nn.Parameter(torch.zeros(heads, relation.size))

    def bias(self, query, key, scale, context=None):
        return wide(self.table[:, self.relation(query, key, scale)])  # h q k

    def bias_at(self, head, query, key, scale):
        return look_up(self.table, head, self.relation.at(query, key, scale), query, key)


def t5(
    name,
    task,
    width,
    heads,
    max_scale=None,
    positions=None,
    other="auto",
    buckets=32,
    distance=128,
):
    """T5's relative bias; ``buckets`` and the ``distance`` of the last one can be chosen."""
    soft_only(name, other)
    whole_number("buckets", buckets, 2)
    whole_number("distance", distance, 2)
    if buckets % 2 or distance <= buckets // 2:
        raise InputError(
            f"buckets must be even and distance larger than half of it, got {buckets} and "
            f"{distance}; T5 has 32 and 128"
        )
    return ScalarBias(build_relation("t5", buckets=buckets, distance=distance), heads)
