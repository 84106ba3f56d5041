"""Which vector does a position get? Fixed sines or learned rows, added to the token vectors."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, soft_only
from lgcourse.relations import build as build_relation
from lgcourse.relations.base import check_range, positions_for


class SinusoidalEmbedding(PositionEmbedding):
    """Fixed sines and cosines: p[2m] = sin(j / 10000^(2m/d)), p[2m+1] = cos(j / 10000^(2m/d)).

    Source: Vaswani et al. (2017), arXiv 1706.03762, section 3.5. It has a vector for every
    position, but the model has met only those of its training lengths.

    Args:
        width: d, the width of the token vectors.

    >>> SinusoidalEmbedding(4).vectors(torch.tensor([0, 1])).round(decimals=3)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8410, 0.5400, 0.0100, 1.0000]])
    """

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def vectors(self, positions: Int[Tensor, " l"]) -> Float[Tensor, "l d"]:
        """Return one vector per position."""
        even = torch.arange(0, self.width, 2, device=positions.device)
        # float32 and cast last: bfloat16 cannot tell position 257 from 256
        angle = positions[:, None].float() * torch.exp(even * (-math.log(10_000.0) / self.width))
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, : self.width]

    def embed(self, x, positions, context=None):
        return x + self.vectors(positions).to(x.dtype)


class LearnedEmbedding(PositionEmbedding):
    """One learned vector per absolute position j, added to the token: x_j + P[j].

    Rows start at zero, so a position that training never showed adds nothing.

    Args:
        positions: number of rows; a later position is an `InputError`.
        width: d, the width of the token vectors.

    >>> LearnedEmbedding(8, 4).embed(torch.zeros(1, 2, 4), torch.arange(2)).shape
    torch.Size([1, 2, 4])
    """

    def __init__(self, positions: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(positions, width))
        self.relation = build_relation("ape", positions=positions)

    def embed(self, x, positions, context=None):
        check_range("ape-learned", positions.max(), len(self.table))
        return x + self.table[positions].to(x.dtype)


def sinusoidal(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """Sinusoidal absolute embedding of a model's width."""
    soft_only(name, other)
    return SinusoidalEmbedding(width)


def learned(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """Learned absolute embedding, sized to the longest sequence that will be used."""
    soft_only(name, other)
    return LearnedEmbedding(positions_for(task, max_scale, positions), width)
