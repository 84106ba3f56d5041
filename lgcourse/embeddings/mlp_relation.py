"""What if the learned relation is any function of i, j and n? It fits, and goes wrong beyond."""

from __future__ import annotations

import torch
from einops import rearrange

from lgcourse.embeddings.base import PositionEmbedding, soft_only, wide
from lgcourse.embeddings.mlp import SmallMLP
from lgcourse.embeddings.table import STRENGTH
from lgcourse.errors import InputError, whole_number
from lgcourse.relations.base import sizes_of

UNIT = 10.0  # positions and sizes are given in tens, so that training inputs are about 1


class MLPRelation(PositionEmbedding):
    """The contrast to `LearnedRelation`: bias[h, i, j] = 8 log(keys_i + 1) MLP_h(i, j, n).

    It is learned from the task's loss like LBPE and can name any pairs that training showed. But
    nothing in its form says what holds beyond them: a ReLU network is linear far out, so a diagonal
    that it drew on small squares does not go on as a diagonal one key wide.

    Source: this course; the MLP is ours, with the length factor of `RelationTable`.

    Args:
        heads: number of heads.
        sizes: how many sizes a scale has; 0 without a hint.
        hidden: width of the MLP.

    >>> pe = MLPRelation(heads=2, sizes=1)
    >>> pe.bias(torch.arange(4), torch.arange(4), scale=3).shape
    torch.Size([2, 4, 4])
    """

    per_layer = True
    rates = {name: 6e-3 for name in ("weight", "bias")}  # a network, not a table
    recommended = {"layers": 1, "learning_rate": 6e-3, "steps": 1400}

    def __init__(self, heads: int, sizes: int, hidden: int = 64):
        super().__init__()
        self.sizes = sizes
        self.curve = SmallMLP(2 + sizes, hidden, heads)

    def bias(self, query, key, scale, context=None):
        if scale is None and self.sizes:
            raise InputError("a learned relation with Scale Hint needs the scale of the instance")
        i, j = torch.broadcast_tensors(query[:, None], key[None, :])
        sizes = sizes_of(scale) if self.sizes else ()
        given = [i, j, *(torch.full_like(i, size) for size in sizes)]
        like = wide(self.curve.inner.weight)
        curves = self.curve(torch.stack(given, dim=-1).to(like.dtype) / UNIT)  # q k h
        factor = STRENGTH * torch.log((query + 2).to(like.dtype))[:, None]  # keys_i + 1 = i + 2
        return factor * rearrange(curves, "q k h -> h q k")


def mlp_relation(name, task, width, heads, max_scale=None, positions=None, other="auto", hidden=64):
    """A small MLP over i and j (lbpe-mlp), or over i, j and n (lbpe-mlp-sh)."""
    soft_only(name, other)
    sizes = getattr(task, "sizes", 1) if name.endswith("-sh") else 0
    return MLPRelation(heads, sizes, whole_number("hidden", hidden, 1))
