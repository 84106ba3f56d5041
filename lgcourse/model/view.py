"""What may a layer ask about position? The bias of its queries, or the few keys that they read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.embeddings.base import Context, PositionEmbedding
from lgcourse.model.cache import Cache
from lgcourse.relations.base import Scale


@dataclass(frozen=True)
class View:
    """What one layer knows of position in one forward pass.

    Args:
        position: the position embedding of the layer.
        query: positions of the queries, the last ones of ``key``.
        key: positions 0, 1, 2, ... of the keys.
        scale: the scale n.
        context: what else the embedding may read.
        path: name of the attention path, see `lgcourse.model.paths`.
        layer: the number of this application of a block; the cache keeps keys and values under it.
        cache: the key-value cache, if there is one.
        shared: biases of whole passes, so that layers with one embedding compute theirs once.

    >>> at = torch.arange(2)
    >>> View(PositionEmbedding(), at, at, scale=1).bias()
    tensor([[0., -inf],
            [0., 0.]])
    """

    position: PositionEmbedding
    query: Int[Tensor, " q"]
    key: Int[Tensor, " k"]
    scale: Scale | None
    context: Context = field(default_factory=Context)
    path: str = "auto"
    layer: int = 0
    cache: Cache | None = None
    shared: dict[PositionEmbedding, Tensor] | None = None

    def remember(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of all tokens ``[b h k d]``: the cached ones and these."""
        if self.cache is None:
            return k, v
        return self.cache.extend(self.layer, len(self.key) - k.shape[2], k, v)

    def rows(self, part: slice) -> View:
        """Return the view of a part of the queries, with the keys up to its last one."""
        start, stop, _ = part.indices(len(self.query))
        if (start, stop) == (0, len(self.query)):
            return self
        seen = len(self.key) - len(self.query) + stop
        tokens, key = self.context.tokens, self.key[:seen]
        if tokens is not None:
            tokens = tokens[:, :seen]
        context = replace(self.context, tokens=tokens)
        return replace(self, query=self.query[start:stop], key=key, context=context, shared=None)

    def bias(self, q: Tensor | None = None, k: Tensor | None = None) -> Float[Tensor, "... q k"]:
        """Return what is added to the scores, ``[(b) (h) q k]``: the bias, and causality.

        Args:
            q, k: queries and keys of the layer, for embeddings that read content.
        """
        if self.shared is not None and self.position in self.shared:
            return self.shared[self.position]
        context = self.context
        if self.position.reads_content:
            context = replace(context, q=q, k=k)
        own = self.position.bias(self.query, self.key, self.scale, context)
        mask = causal(self.query, self.key)
        bias = mask if own is None else own + mask
        if self.shared is not None and not self.position.reads_content:
            self.shared[self.position] = bias
        return bias

    def named(self) -> tuple[Int[Tensor, "#h q r"], Float[Tensor, "h q r"]] | None:
        """Return the few keys of each query and their bias, or None where all keys are read."""
        if self.cache is None:
            few = self.position.named(self.query, self.scale)
        else:
            few = self.cache.named(self.position, self.query, len(self.key) - 1)
        if few is None:
            return None
        keys, bias = few
        return (keys[:1] if keys.stride(0) == 0 else keys), bias  # one head stands for all

    def slots(self) -> int | None:
        """Return how many keys are named per query, or None where all keys are read."""
        few = self.rows(slice(len(self.query) - 1, None)).named()
        return None if few is None else few[0].shape[-1]

    def is_biased(self) -> bool:
        """Return whether the embedding adds anything to the scores."""
        if self.position.reads_content:
            return True
        one = self.query[-1:]
        return self.position.bias(one, one, self.scale, self.context) is not None


def causal(query: Int[Tensor, " q"], key: Int[Tensor, " k"]) -> Float[Tensor, "q k"]:
    """Return 0 where a key does not come after its query, else minus infinity.

    >>> causal(torch.tensor([1]), torch.arange(3))
    tensor([[0., 0., -inf]])
    """
    later = key[None, :] > query[:, None]
    return torch.zeros(later.shape, device=key.device).masked_fill(later, float("-inf"))
