"""What if the penalty of distance is learned, and grows ever more slowly? A logarithmic kernel."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import softplus

from lgcourse.embeddings.base import PositionEmbedding, soft_only, wide


class KerpleEmbedding(PositionEmbedding):
    """KERPLE, logarithmic variant: bias[h, i, j] = -r1_h log(1 + r2_h |i - j|), r1, r2 > 0.

    Two learned numbers per head, shared by all layers as in the authors' code. That code keeps them
    positive by cutting at 0.01; here they are softplus of what is learned, which needs no cut. It
    starts r1 uniform in (0, 2) and r2 in (0, 1); here r1 is spread evenly over the heads and r2 is
    0.5, so that nothing is drawn.

    Source: Chi et al. (2022), arXiv 2205.09921, the logarithmic variant.

    Trap: without the absolute value, or a cut at 0, keys after the query give log of a negative
    number, and not-a-number plus a mask of minus infinity stays not-a-number.

    Args:
        heads: number of heads.

    >>> pe = KerpleEmbedding(heads=2)
    >>> pe.r1.detach(), pe.bias(torch.tensor([9]), torch.arange(10), scale=1).shape
    (tensor([0.5000, 1.5000]), torch.Size([2, 1, 10]))
    """

    def __init__(self, heads: int):
        super().__init__()
        start = torch.stack([2 * (torch.arange(heads) + 0.5) / heads, torch.full((heads,), 0.5)])
        self.raw = nn.Parameter(start.expm1().log())  # softplus(raw) = start; [r1 or r2, h]

    @property
    def r1(self):
        """The height of the penalty of each head."""
        return softplus(wide(self.raw[0]))

    @property
    def r2(self):
        """How soon the penalty of each head levels off."""
        return softplus(wide(self.raw[1]))

    def bias(self, query, key, scale, context=None):
        head = torch.arange(self.raw.shape[1], device=query.device)
        return self.bias_at(head[:, None, None], query[:, None], key[None, :], scale)

    def bias_at(self, head, query, key, scale):
        r1, r2 = (softplus(wide(row[head])) for row in self.raw)
        return -r1 * torch.log1p(r2 * (query - key).abs().to(r2.dtype))


def kerple(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """KERPLE with the logarithmic kernel."""
    soft_only(name, other)
    return KerpleEmbedding(heads)
