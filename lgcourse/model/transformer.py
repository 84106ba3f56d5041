"""The whole decoder: token vectors, blocks of attention and MLP, logits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import Context, PositionEmbedding
from lgcourse.embeddings.drawing import Draws
from lgcourse.errors import InputError, unknown_name, whole_number
from lgcourse.model.attention import Attention
from lgcourse.model.cache import Cache
from lgcourse.model.paths import check_path, parts
from lgcourse.model.view import View
from lgcourse.relations.base import Scale

NORMS = ("pre", "post")
PIECE = {"cpu": 2**12, "cuda": 2**18}  # tokens, of all sequences, of one piece of a long input


class Block(nn.Module):
    """Attention, then an MLP that is four times as wide; each is added to what went in.

    norm = "pre":   x + f(norm(x)), the sum itself is never normalised.
    norm = "post":  norm(x + f(x)), as in Vaswani et al. (2017), arXiv 1706.03762.
    """

    def __init__(self, width: int, heads: int, norm: str = "pre"):
        super().__init__()
        self.norm = norm
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(
        self, x: Float[Tensor, "b l d"], view: View, drop: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "b q d"]:
        own = x[:, x.shape[1] - len(view.query) :]  # the queries, mostly all of x
        if self.norm == "post":
            x = self.attention_norm(own + drop(self.attention(x, view)))
            return self.mlp_norm(x + drop(self.mlp(x)))
        x = own + drop(self.attention(self.attention_norm(x), view))
        return x + drop(self.mlp(self.mlp_norm(x)))


class Transformer(nn.Module):
    """A decoder-only Transformer that gets position from one `PositionEmbedding`.

    Args:
        vocabulary_size: number of tokens.
        embedding: the position embedding; layers after the first get copies with parameters of
            their own if it is ``per_layer``.
        layers: number of blocks.
        width: width of the vectors.
        heads: number of attention heads per block.
        norm: ``"pre"`` or ``"post"``, where a block normalises, see `Block`.
        tied: whether the logits use the weights of the token vectors, divided by sqrt(width).
        loops: how often the blocks are applied, one after the other, with the same weights.
        dropout: share of numbers that training drops from what each half of a block adds.
        path: the attention path, ``"auto"`` or a name in `lgcourse.model.paths.PATHS`; can be set
            later.

    Raises:
        InputError: a number is out of bounds, width is no multiple of heads, or a name is unknown.

    >>> from lgcourse import embeddings
    >>> model = Transformer(12, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> model(torch.zeros(3, 7, dtype=torch.long), scale=2).shape
    torch.Size([3, 7, 12])
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: PositionEmbedding,
        layers: int = 1,
        width: int = 64,
        heads: int = 8,
        norm: str = "pre",
        tied: bool = False,
        loops: int = 1,
        dropout: float = 0.0,
        path: str = "auto",
    ):
        super().__init__()
        sizes = {"vocabulary_size": vocabulary_size, "layers": layers, "width": width}
        for name, value in {**sizes, "heads": heads, "loops": loops}.items():
            whole_number(name, value, 1)
        if norm not in NORMS:
            raise unknown_name("norm", norm, NORMS)
        if not 0 <= dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {dropout!r}")
        self.loops, self.dropout, self.path = loops, dropout, path
        self.tokens = nn.Embedding(vocabulary_size, width)
        copies = layers if embedding.per_layer else 1
        self.positions = nn.ModuleList([embedding])
        self.positions.extend(copy.deepcopy(embedding) for _ in range(copies - 1))
        self.blocks = nn.ModuleList(Block(width, heads, norm) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if norm == "pre" else nn.Identity()
        self.logits = None if tied else nn.Linear(width, vocabulary_size, bias=False)
        for part in (self.tokens, self.blocks, self.logits):  # embeddings know their own start
            if part is not None:
                part.apply(_initialise)
        self.draws = Draws() if dropout else None
        if self.draws is not None:  # where to start comes from the seed of the weights
            self.draws.count += torch.randint(2**40, ())

    @property
    def embedding(self) -> PositionEmbedding:
        """The position embedding (of the first layer)."""
        return cast(PositionEmbedding, self.positions[0])

    @property
    def path(self) -> str:
        """The attention path, ``"auto"`` or a name in `lgcourse.model.paths.PATHS`."""
        return self._path

    @path.setter
    def path(self, name: str) -> None:
        self._path = check_path(name)

    def forward(
        self,
        tokens: Int[Tensor, "b l"],
        scale: Scale | None,
        cache: Cache | None = None,
        last: int | None = None,
    ) -> Float[Tensor, "b q v"]:
        """Return the logits of the next token at every position.

        Without gradients, a long input goes through the blocks piece by piece, with a cache for the
        keys and values of the pieces before: what a piece needs in between fits the processor's
        cache, and is used again for the next one.

        Args:
            tokens: token ids, all sequences of one scale; with a cache, the new ones only.
            scale: the scale n, used by embeddings with a Scale Hint.
            cache: a `Cache` that holds what the tokens before left, and takes these in.
            last: return the logits of so many last tokens only, and let the last block compute no
                others: before, it is asked for nothing but keys and values.
        """
        length = tokens.shape[1]
        last = length if last is None else whole_number("last", last, 1, length)
        pieces = _pieces(tokens)
        if cache is None and len(pieces) > 1:
            cache = Cache(capacity=length)
        if cache is None:
            query = key = torch.arange(length, device=tokens.device)
            context = Context(tokens=tokens, scale=scale)
        else:
            query, key, context = cache.append(tokens, scale)
        view = View(self.embedding, query, key, scale, context, self.path, 0, cache, {})
        drop = self._drop()
        x = self.embedding.embed(self.tokens(tokens), query, context)  # b l d
        rows = []
        for piece in pieces:
            wanted = max(1, last - (length - piece.stop))  # of its last tokens; one is no cost
            rows.append(self._logits(x[:, piece], view.rows(piece), wanted, drop))
        return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)[:, -last:]

    def _logits(
        self,
        x: Float[Tensor, "b l d"],
        view: View,
        last: int,
        drop: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "b q v"]:
        """Send the vectors of one piece through all blocks; logits of its last tokens."""
        steps = self.loops * len(self.blocks)
        for step in range(steps):
            layer = step % len(self.blocks)
            position = cast(PositionEmbedding, self.positions[min(layer, len(self.positions) - 1)])
            here = replace(view, position=position, layer=step)
            if step == steps - 1:
                here = here.rows(slice(-last, None))
            x = self.blocks[layer](x, here, drop)
        x = self.norm(x)
        if self.logits is not None:
            return self.logits(x)
        return x @ self.tokens.weight.T * x.shape[-1] ** -0.5  # of size 1, as x and vectors are

    def _drop(self) -> Callable[[Tensor], Tensor]:
        """Return the dropout of one pass; its draws are counted, so that training can resume."""
        if self.draws is None or not self.training:
            return lambda x: x
        source, keep = self.draws.next(), 1 - self.dropout

        def drop(x: Tensor) -> Tensor:
            kept = torch.rand(x.shape, generator=source) < keep
            return torch.where(kept.to(x.device), x / keep, 0)

        return drop


def _pieces(tokens: Int[Tensor, "b l"]) -> list[slice]:
    """Cut the positions of a long input into pieces; gradients need it whole."""
    batch, length = tokens.shape
    size = PIECE["cuda" if tokens.is_cuda else "cpu"]
    if length <= size or torch.is_grad_enabled():
        return [slice(0, length)]
    return list(parts(length, size // max(1, batch)))


def _initialise(module: nn.Module) -> None:
    """Normal weights of size 1/sqrt(inputs), so that activations keep their size."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight)
