"""What if far keys just weigh less? A fixed slope per head, times the distance."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from lgcourse.embeddings.base import PositionEmbedding, soft_only, wide


def alibi_slopes(head: Tensor, heads: int) -> Tensor:
    """Return the slopes m_h of some heads, in float64 (elementwise, so that it can be traced).

    If the number of heads H is a power of two, m_h = 2^(-8 (h + 1) / H), h = 0..H - 1. Otherwise
    the first P heads get the slopes of P heads, P the power of two below H, and the others every
    second slope of 2 P heads, from the first on.

    Args:
        head: head numbers, 0-based.
        heads: number of heads H.

    Returns:
        The slopes, of the same shape.

    Source: Press et al. (2022), arXiv 2108.12409, section 3, and the code that it points to.

    >>> alibi_slopes(torch.arange(6), heads=6).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    """
    power = 1 << (heads.bit_length() - 1)  # P
    exponent = torch.where(
        head < power, 8 * (head + 1) / power, 4 * (2 * (head - power) + 1) / power
    )
    return torch.exp2(-exponent.to(torch.float64 if head.device.type != "mps" else torch.float32))


class ALiBiEmbedding(PositionEmbedding):
    """A linear penalty of distance: bias[h, i, j] = -m_h (i - j). Nothing is learned.

    Source: Press et al. (2022), arXiv 2108.12409, section 3; slopes as in `alibi_slopes`.

    Traps: 2^(-8 (h + 1) / H) is right for powers of two only. With a key-value cache i is the
    query's absolute position, not its row. Neither slopes nor distances are made in bfloat16.

    Args:
        heads: number of heads H.

    >>> at = torch.arange(3)
    >>> ALiBiEmbedding(heads=8).bias(at, at, scale=1)[0]
    tensor([[-0.0000, 0.5000, 1.0000],
            [-0.5000, -0.0000, 0.5000],
            [-1.0000, -0.5000, -0.0000]])
    """

    like: Tensor

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads
        # says which dtype the model has: a float64 model gets a float64 bias
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def bias(self, query, key, scale, context=None) -> Float[Tensor, "h q k"]:
        head = torch.arange(self.heads, device=query.device)
        return self.bias_at(head[:, None, None], query[:, None], key[None, :], scale)

    def bias_at(self, head, query, key, scale):
        dtype = wide(self.like).dtype
        return -alibi_slopes(head, self.heads).to(dtype) * (query - key).to(dtype)


def alibi(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """ALiBi for a number of heads."""
    soft_only(name, other)
    return ALiBiEmbedding(heads)
