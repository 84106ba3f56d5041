"""What if the bias is corrected by what the scores say? A small MLP over scores and base bias."""

from __future__ import annotations

from einops import rearrange

from lgcourse.embeddings.alibi import ALiBiEmbedding
from lgcourse.embeddings.base import (
    PositionEmbedding,
    content,
    full_precision,
    head_size,
    soft_only,
)
from lgcourse.embeddings.fire import FIREEmbedding
from lgcourse.embeddings.kerple import KerpleEmbedding
from lgcourse.embeddings.mlp import SmallMLP
from lgcourse.errors import unknown_name, whole_number

BASES = {"kerple": KerpleEmbedding, "alibi": ALiBiEmbedding, "fire": FIREEmbedding}


class DAPEEmbedding(PositionEmbedding):
    """DAPE: bias = B + f(A, B), A = q k / sqrt(d) the scores of all heads, B the base bias.

    f is an MLP over the 2 H numbers of one pair (i, j), with a leaky ReLU and H outputs: heads see
    each other's scores. Each layer has its own.

    Source: Zheng et al. (2024), arXiv 2405.14722, section 3; the width of 32 and the leaky ReLU as
    in the authors' code.

    Trap: f is added to B, it does not replace it. f reads the scores before any mask: minus
    infinity inside the MLP would give not-a-number.

    Args:
        base: the embedding that makes B, one without content.
        heads: number of heads H.
        hidden: width of the MLP.

    >>> import torch
    >>> from lgcourse.embeddings.base import Context
    >>> pe, at = DAPEEmbedding(KerpleEmbedding(3), heads=3), torch.arange(5)
    >>> q, k = torch.zeros(2, 3, 5, 4), torch.zeros(2, 3, 5, 4)  # b h l d
    >>> pe.bias(at, at, scale=1, context=Context(q=q, k=k)).shape
    torch.Size([2, 3, 5, 5])
    """

    reads_content = per_layer = True

    def __init__(self, base: PositionEmbedding, heads: int, hidden: int = 32):
        super().__init__()
        self.base = base
        self.mlp = SmallMLP(2 * heads, hidden, heads, slope=0.01)

    def bias(self, query, key, scale, context=None):
        q, k = content("dape", context)
        with full_precision(q):
            scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # b h q k
        base = self.base.bias(query, key, scale, context)  # h q k
        assert base is not None
        base = base.to(q.dtype).expand_as(scores)
        correction = self.mlp(rearrange([scores, base], "two b h q k -> b q k (two h)"))
        return base + rearrange(correction, "b q k h -> b h q k")


def dape(
    name,
    task,
    width,
    heads,
    max_scale=None,
    positions=None,
    other="auto",
    around="kerple",
    hidden=32,
):
    """DAPE ``around`` a base bias (kerple, alibi or fire), with an MLP of ``hidden`` units."""
    soft_only(name, other)
    head_size(name, width, heads)
    if around not in BASES:
        raise unknown_name("base of dape", around, BASES)
    return DAPEEmbedding(BASES[around](heads), heads, whole_number("hidden", hidden, 1))
