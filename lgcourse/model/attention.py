"""How does a query gather values? Scores q k / sqrt(d) plus a positional bias, softmax, sum."""

from __future__ import annotations

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from lgcourse.errors import InputError
from lgcourse.model.paths import attend
from lgcourse.model.view import View


class Attention(nn.Module):
    """Causal multi-head attention; position enters only through the `View`.

    Args:
        width: width of the vectors, a multiple of ``heads``.
        heads: number of heads.

    >>> import torch
    >>> from lgcourse.embeddings import PositionEmbedding
    >>> x, at = torch.zeros(2, 5, 16), torch.arange(5)
    >>> Attention(16, 4)(x, View(PositionEmbedding(), at, at, scale=None)).shape
    torch.Size([2, 5, 16])
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        if width % heads:
            raise InputError(f"width must be a multiple of heads, got width {width}, heads {heads}")
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "b l d"], view: View) -> Float[Tensor, "b q d"]:
        """Return the gathered values.

        Args:
            x: the vectors of the new tokens; the last ones are the queries, mostly all of them.
            view: what the layer knows of position, and of the tokens before.
        """
        length, count = x.shape[1], len(view.query)
        if count == length:
            q, k, v = self._heads(self.project(x), 3)
        else:
            of_query, of_key = self.project.weight.split([x.shape[2], 2 * x.shape[2]])
            (q,) = self._heads(linear(x[:, length - count :], of_query), 1)
            k, v = self._heads(linear(x, of_key), 2)
        new = view.key[len(view.key) - length :]
        q, k = view.position.rotate(q, k, view.query, new, view.context)
        k, v = view.remember(k, v)  # b h k d
        return self.out(rearrange(attend(q, k, v, view), "b h q d -> b q (h d)"))

    def _heads(self, x: Float[Tensor, "b l w"], parts: int) -> Float[Tensor, "n b h l d"]:
        return rearrange(x, "b l (n h d) -> n b h l d", n=parts, h=self.heads)
