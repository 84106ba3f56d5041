"""The whole decoder: token vectors, blocks of attention and MLP, logits; pre-norm, GELU."""

from __future__ import annotations

import copy
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding
from lgcourse.errors import whole_number
from lgcourse.model.attention import Attention, causal
from lgcourse.relations.base import Scale


class Block(nn.Module):
    """x + attention(norm(x)), then x + MLP(norm(x)); the MLP is four times as wide."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, positions, position, bias):
        x = x + self.attention(self.attention_norm(x), positions, position, bias)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """A decoder-only Transformer that gets position from one `PositionEmbedding`.

    Args:
        vocabulary_size: number of tokens.
        embedding: the position embedding; layers after the first get copies with parameters of
            their own if it is ``per_layer``.
        layers: number of blocks.
        width: width of the vectors.
        heads: number of attention heads per block.

    Raises:
        InputError: a number is smaller than 1, or width is no multiple of heads.

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
    ):
        super().__init__()
        sizes = {"vocabulary_size": vocabulary_size, "layers": layers, "width": width}
        for name, value in {**sizes, "heads": heads}.items():
            whole_number(name, value, 1)
        self.tokens = nn.Embedding(vocabulary_size, width)
        copies = layers if embedding.per_layer else 1
        self.positions = nn.ModuleList([embedding])
        self.positions.extend(copy.deepcopy(embedding) for _ in range(copies - 1))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, vocabulary_size, bias=False)
        self.apply(_initialise)

    @property
    def embedding(self) -> PositionEmbedding:
        """The position embedding (of the first layer)."""
        return cast(PositionEmbedding, self.positions[0])

    def forward(self, tokens: Int[Tensor, "b l"], scale: Scale | None) -> Float[Tensor, "b l v"]:
        """Return the logits of the next token at every position.

        Args:
            tokens: token ids, all sequences of one scale.
            scale: the scale n, used by embeddings with a Scale Hint.
        """
        at = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embedding.embed(self.tokens(tokens), at)
        own_positions = cast(list[PositionEmbedding], list(self.positions))
        biases = [_with_causality(p.bias(at, at, scale), at) for p in own_positions]
        for layer, block in enumerate(self.blocks):
            own = min(layer, len(biases) - 1)
            x = block(x, at, own_positions[own], biases[own])
        return self.logits(self.norm(x))


def _with_causality(bias: Tensor | None, at: Tensor) -> Tensor:
    return causal(at) if bias is None else bias + causal(at)


def _initialise(module: nn.Module) -> None:
    """Normal weights of size 1/sqrt(inputs), so that activations keep their size."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight)
