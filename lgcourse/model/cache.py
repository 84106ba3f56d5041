"""What need not be computed again for the next token? Keys and values of the tokens so far."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.embeddings.base import Context, PositionEmbedding
from lgcourse.errors import InputError
from lgcourse.relations.base import Scale

AHEAD = 1024  # queries whose named keys are asked for together, when tokens come one by one


class Cache:
    """Keys (after `rotate`) and values of every layer, the tokens so far, and the random draw.

    A model that is given a cache reads the new tokens only. Their queries keep their absolute
    positions. One cache serves one batch of sequences of one scale, without gradients.

    Args:
        capacity: number of tokens to make room for; where it is exceeded, the room is doubled.

    >>> from lgcourse import Transformer, embeddings
    >>> model = Transformer(12, embeddings.build("rope", width=16, heads=2), 1, 16, 2)
    >>> tokens, cache = torch.randint(12, (3, 7)), Cache(capacity=7)
    >>> with torch.no_grad():
    ...     parts = [model(part, scale=2, cache=cache) for part in tokens.split([4, 1, 2], dim=1)]
    ...     torch.allclose(torch.cat(parts, dim=1), model(tokens, scale=2), atol=1e-5)
    True
    """

    def __init__(self, capacity: int = 0):
        self.capacity, self.length = capacity, 0
        self.scale: Scale | None = None
        self.memory: dict[str, Any] = {}  # of the embedding: all tokens see the same draw
        self._at = torch.arange(0)
        self._rooms: dict[Hashable, Tensor] = {}
        self._named: dict[PositionEmbedding, tuple[int, Any]] = {}

    def append(
        self, tokens: Int[Tensor, "b l"], scale: Scale | None
    ) -> tuple[Int[Tensor, " l"], Int[Tensor, " k"], Context]:
        """Take new tokens in; return their positions, those of all tokens, and the context.

        Raises:
            InputError: gradients are on, or the scale or batch is not that of the tokens before.
        """
        if torch.is_grad_enabled():
            raise InputError("a cache has no gradients: use it within torch.no_grad()")
        if self.length and scale != self.scale:
            raise InputError(f"this cache holds tokens of scale {self.scale}, got scale {scale}")
        if self.length and len(tokens) != len(self._rooms["tokens"]):
            held = len(self._rooms["tokens"])
            raise InputError(f"this cache holds {held} sequences, got {len(tokens)}")
        start, self.scale = self.length, scale
        self.length = start + tokens.shape[1]
        self.capacity = max(self.capacity, self.length)
        every = self._write("tokens", start, tokens)
        if len(self._at) < self.length:
            self._at = torch.arange(self.capacity, device=tokens.device)
        at = self._at[: self.length]
        return at[start:], at, Context(tokens=every, scale=scale, memory=self.memory)

    def extend(
        self, layer: int, start: int, k: Float[Tensor, "b h l d"], v: Float[Tensor, "b h l d"]
    ) -> tuple[Float[Tensor, "b h k d"], Float[Tensor, "b h k d"]]:
        """Take in keys and values from position ``start`` on; return those of all tokens so far."""
        k = self._write((layer, "k"), start, k.transpose(1, 2))  # b k h d: a token is one row
        v = self._write((layer, "v"), start, v.transpose(1, 2))
        return k.transpose(1, 2), v.transpose(1, 2)

    def _write(self, name: Hashable, start: int, new: Tensor) -> Tensor:
        """Write behind the first ``start`` tokens (dimension 1) of a room; return all of them."""
        stop = start + new.shape[1]
        room = self._rooms.get(name)
        if room is None or room.shape[1] < stop:
            size = self.capacity if room is None else max(self.capacity, 2 * room.shape[1])
            larger = new.new_empty(new.shape[0], size, *new.shape[2:])
            if room is not None:
                larger[:, :start] = room[:, :start]
            self._rooms[name] = room = larger
        room[:, start:stop] = new
        return room[:, :stop]

    def named(self, position: PositionEmbedding, query: Int[Tensor, " q"], last: int):
        """Return `PositionEmbedding.named` of some queries; of a single one, sliced from many.

        Args:
            position: the embedding that names keys.
            query: positions of the queries.
            last: the last of them.
        """
        if len(query) > 1:
            return position.named(query, self.scale)
        start, rows = self._named.get(position, (0, ()))
        if rows is not None and not (rows and start <= last < start + rows[0].shape[1]):
            stop = max(last + 1, min(last + AHEAD, self.capacity))
            rows = position.named(torch.arange(last, stop, device=query.device), self.scale)
            self._named[position] = start, rows = last, rows
        if rows is None:
            return None
        return tuple(row[:, last - start : last - start + 1] for row in rows)
