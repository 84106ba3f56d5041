"""What if position counts only some tokens? Gates of content decide which ones are counted."""

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
from lgcourse.errors import whole_number


class CoPEEmbedding(PositionEmbedding):
    """CoPE: a key's position is the sum of gates between it and the query.

    gate g_ij = sigmoid(q_i k_j / sqrt(d)), position p_ij = g_ij + g_i(j+1) + ... + g_ii, at most P.
    bias = q_i e[p_ij], where e is interpolated between the two whole numbers around p_ij. The
    vectors e[0..P] are shared by the heads; each layer has its own.

    Source: Golovneva et al. (2024), arXiv 2405.18719, section 4, and the code of its appendix,
    which we follow where they differ: gates take the scaled scores, q e is not scaled.

    Traps: keys after the query must not be counted, so gates are masked before they are summed.
    With a key-value cache all keys up to the query are needed, not only the new ones. Positions are
    sums of many gates: in bfloat16 they stop growing at 256.

    Args:
        size: width d of a head.
        largest: P, the largest position.

    >>> from lgcourse.embeddings.base import Context
    >>> pe, at = CoPEEmbedding(size=4, largest=8), torch.arange(3)
    >>> q, k = torch.zeros(1, 1, 3, 4), torch.zeros(1, 1, 3, 4)  # b h l d; all gates are 1/2
    >>> pe.positions(at, at, q, k)[0, 0]
    tensor([[0.5000, 0.0000, 0.0000],
            [1.0000, 0.5000, 0.0000],
            [1.5000, 1.0000, 0.5000]])
    """

    reads_content = per_layer = True

    def __init__(self, size: int, largest: int = 64):
        super().__init__()
        self.vectors = nn.Parameter(torch.zeros(whole_number("largest", largest, 1) + 1, size))

    def positions(self, query, key, q, k):
        """Return the positions p_ij, [b h q k]; keys after the query get 0."""
        gates = torch.sigmoid(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5)
        gates = gates.masked_fill(key[None, :] > query[:, None], 0)
        sums = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=len(self.vectors) - 1)
        return sums.masked_fill(key[None, :] > query[:, None], 0)

    def bias(self, query, key, scale, context=None):
        q, k = content("cope", context)
        with full_precision(q):
            at = self.positions(query, key, q, k)
            whole = q @ wide(self.vectors).to(q.dtype).T  # b h q p: q_i e[p] for whole p
        below = at.floor()
        share = at - below
        low, high = whole.gather(-1, below.long()), whole.gather(-1, at.ceil().long())
        return low * (1 - share) + high * share  # b h q k


def cope(name, task, width, heads, max_scale=None, positions=None, other="auto", largest=64):
    """CoPE with positions up to ``largest``."""
    soft_only(name, other)
    return CoPEEmbedding(head_size(name, width, heads), largest)
