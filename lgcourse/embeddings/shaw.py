"""What if a distance is a vector? Shaw's relative keys, beside the scalar table of distances."""

from __future__ import annotations

import torch
from torch import nn

from lgcourse.embeddings.base import (
    PositionEmbedding,
    content,
    full_precision,
    head_size,
    soft_only,
    wide,
)
from lgcourse.embeddings.table import table
from lgcourse.errors import InputError, whole_number
from lgcourse.relations.forms import Form, FormRelation


class ShawEmbedding(PositionEmbedding):
    """A learned vector per clipped distance, added to the key: score = q_i (k_j + a_ij) / sqrt(d).

    a_ij = w[min(i - j, c)], so the bias is q_i a_ij / sqrt(d): it depends on the query's content.
    In a decoder the distances are 0..c, c + 1 vectors, shared by the heads; each layer has its own.
    As a relation: i - j below c, and "other" for all that lies farther.

    Source: Shaw et al. (2018), arXiv 1803.02155, equation 4. The paper also adds vectors to the
    values, and reports that those of the keys may suffice; here are those of the keys.

    Trap: the vectors are divided by sqrt(d) with the keys. With a key-value cache the distance
    takes the query's absolute position.

    Args:
        size: width d of a head.
        clip: distance c from which on all keys share a vector.

    >>> from lgcourse.embeddings.base import Context
    >>> pe, at = ShawEmbedding(size=4, clip=2), torch.arange(5)
    >>> pe.relation(at[4:], at)
    tensor([[2, 2, 2, 1, 0]])
    >>> q, k = torch.zeros(2, 3, 5, 4), torch.zeros(2, 3, 5, 4)  # b h l d
    >>> pe.bias(at, at, scale=1, context=Context(q=q, k=k)).shape
    torch.Size([2, 3, 5, 5])
    """

    relation: FormRelation
    reads_content = per_layer = True

    def __init__(self, size: int, clip: int = 16):
        super().__init__()
        whole_number("clip", clip, 1)
        self.relation = FormRelation([Form(1, -1)], 0, clip - 1, "rpe-clipped")
        self.vectors = nn.Parameter(torch.zeros(clip + 1, size))

    def bias(self, query, key, scale, context=None):
        q, _ = content("rpe", context)
        with full_precision(q):
            all_distances = q @ wide(self.vectors).to(q.dtype).T * q.shape[-1] ** -0.5  # b h q c
        ids = self.relation(query, key, scale).expand(*q.shape[:3], len(key))
        return all_distances.gather(-1, ids)  # b h q k


def rpe(
    name,
    task,
    width,
    heads,
    max_scale=None,
    positions=None,
    other="auto",
    vectors=False,
    clip=None,
):
    """Relative positions: a scalar per distance, or Shaw's ``vectors``, clipped at ``clip``."""
    if not vectors:
        if clip is not None:
            raise InputError("clip belongs to vectors=True; the scalar table ends at its last row")
        return table(name, task, width, heads, max_scale, positions, other)
    soft_only(name, other)
    return ShawEmbedding(head_size(name, width, heads), 16 if clip is None else clip)
