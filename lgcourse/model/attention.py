"""How does a query gather values? Scores q k / sqrt(d) plus a positional bias, softmax, sum."""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.errors import InputError


class Attention(nn.Module):
    """Causal multi-head attention; position enters only through ``position.rotate`` and ``.bias``.

    Args:
        width: width of the vectors, a multiple of ``heads``.
        heads: number of heads.

    >>> from lgcourse.embeddings import PositionEmbedding
    >>> x, at = torch.zeros(2, 5, 16), torch.arange(5)
    >>> Attention(16, 4)(x, at, PositionEmbedding(), None).shape
    torch.Size([2, 5, 16])
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        if width % heads:
            raise InputError(f"width must be a multiple of heads, got width {width}, heads {heads}")
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(
        self, x: Float[Tensor, "b l d"], positions: Int[Tensor, " l"], position, bias: Tensor | None
    ) -> Float[Tensor, "b l d"]:
        """Return the gathered values.

        Args:
            x: the input vectors.
            positions: the position of each vector.
            position: the `PositionEmbedding` whose `rotate` is applied.
            bias: what is added to the scores, causality included.
        """
        q, k, v = rearrange(
            self.project(x), "b l (three h d) -> three b h l d", three=3, h=self.heads
        )
        q, k = position.rotate(q, k, positions, positions)
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5  # b h q k
        scores = scores.float() + (causal(positions) if bias is None else bias)
        gathered = torch.softmax(scores, dim=-1).to(v.dtype) @ v  # b h q d
        return self.out(rearrange(gathered, "b h q d -> b q (h d)"))


def causal(positions: Int[Tensor, " l"]) -> Float[Tensor, "q k"]:
    """Return 0 where a key does not come after its query, else minus infinity.

    >>> causal(torch.arange(2))
    tensor([[0., -inf],
            [0., 0.]])
    """
    later = positions[None, :] > positions[:, None]
    return torch.zeros(later.shape, device=positions.device).masked_fill(later, float("-inf"))
