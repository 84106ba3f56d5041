"""What if distance is measured relative to the query's position? A learned curve of that share."""

from __future__ import annotations

import math

import torch
from einops import rearrange
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, soft_only, wide
from lgcourse.embeddings.mlp import SmallMLP
from lgcourse.errors import whole_number


class FIREEmbedding(PositionEmbedding):
    """FIRE: bias[h, i, j] = f_h(psi(i - j) / psi(max(L, i))), psi(x) = log(c x + 1).

    f is a small MLP with one output per head. c > 0 and the threshold L > 0 are learned. Beyond L
    the share i - j of i stays in [0, 1] however long the input is. i counts from 0. Each layer has
    its own f, c and L (the paper's FIRE; sharing them is its variant FIRE-S).

    Source: Li et al. (2024), arXiv 2310.04418, section 3, and the code of its appendix. That code
    keeps c and L positive by absolute values and adds an epsilon to the denominator; here they are
    c0 exp(.) and L0 exp(.), which cannot reach 0, so nothing is added. It starts at 0.1 and 512.

    Trap: the denominator has max(L, i). With min in its place the share leaves [0, 1] for i > L;
    one public implementation has that.

    Args:
        heads: number of heads.
        hidden: width of the MLP.
        c, threshold: the start values of c and L.

    >>> pe = FIREEmbedding(heads=2, c=0.1, threshold=4.0)
    >>> pe.share(torch.tensor([7, 2]), torch.tensor([0, 0])).detach()
    tensor([1.0000, 0.5419])
    """

    per_layer = True

    def __init__(self, heads: int, hidden: int = 32, c: float = 0.1, threshold: float = 512.0):
        super().__init__()
        self.start = (math.log(c), math.log(threshold))
        self.log_c, self.log_threshold = (nn.Parameter(torch.zeros(())) for _ in range(2))
        self.curve = SmallMLP(1, hidden, heads)

    def share(self, query: Tensor, key: Tensor) -> Tensor:
        """Return psi(i - j) / psi(max(L, i)) for positions that broadcast."""
        c = torch.exp(wide(self.log_c) + self.start[0])
        threshold = torch.exp(wide(self.log_threshold) + self.start[1])
        distance = (query - key).clamp(min=0).to(c.dtype)  # keys after the query are masked
        longest = torch.maximum(query.to(c.dtype), threshold)
        return torch.log1p(c * distance) / torch.log1p(c * longest)

    def bias(self, query, key, scale, context=None):
        share = self.share(query[:, None], key[None, :])
        return rearrange(self.curve(share[..., None]), "q k h -> h q k")

    def bias_at(self, head, query, key, scale):
        return self.curve.single(head, self.share(query, key))


def fire(name, task, width, heads, max_scale=None, positions=None, other="auto", hidden=32):
    """FIRE with an MLP of ``hidden`` units."""
    soft_only(name, other)
    return FIREEmbedding(heads, whole_number("hidden", hidden, 1))
