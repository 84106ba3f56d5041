"""Which vector does a position get? Fixed sines or learned rows, added to the token vectors."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, fine, soft_only
from lgcourse.relations import build as build_relation
from lgcourse.relations.base import check_range, positions_for


class SinusoidalEmbedding(PositionEmbedding):
    """Fixed sines and cosines: p[2m] = sin(j / 10000^(2m/d)), p[2m+1] = cos(j / 10000^(2m/d)).

    Source: Vaswani et al. (2017), arXiv 1706.03762, section 3.5. It has a vector for every
    position, but the model has met only those of its training lengths.

    Traps: some codes put all sines first and all cosines behind them: the same numbers in another
    order. Angles are made in float64 and cast last; bfloat16 cannot tell position 257 from 256.
    With an odd width the last sine has no cosine.

    Args:
        width: d, the width of the token vectors.

    >>> SinusoidalEmbedding(4).vectors(torch.tensor([0, 1])).round(decimals=3).float()
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8410, 0.5400, 0.0100, 1.0000]])
    """

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def vectors(self, positions: Int[Tensor, " l"]) -> Float[Tensor, "l d"]:
        """Return one vector per position, in float64."""
        at = fine(positions)
        even = torch.arange(0, self.width, 2, device=at.device, dtype=at.dtype)
        angle = at[:, None] * 10_000.0 ** (-even / self.width)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, : self.width]

    def embed(self, x, positions, context=None):
        return x + self.vectors(positions).to(x.dtype)


class LearnedEmbedding(PositionEmbedding):
    """One learned vector per absolute position j, added to the token: x_j + P[j].

    Source: Gehring et al. (2017), arXiv 1705.03122, section 3.1. Rows start at zero here, so a
    position that training never showed adds nothing.

    Trap: a table ends. A later position is an error here, where a clamp or a wrapped index would go
    on with the vector of another position.

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
