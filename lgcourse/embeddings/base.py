"""Where can position enter a Transformer? At the input, in queries and keys, in the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.errors import InputError, whole_number
from lgcourse.relations.base import Relation, Scale
from lgcourse.relations.forms import Term


@dataclass
class Context:
    """What one forward pass hands to the hooks; simple embeddings ignore it.

    Args:
        tokens: ids of all tokens up to the last key, also those whose keys are cached; ``[b k]``.
        scale: the scale n.
        q, k: queries ``[b h q d]`` and keys ``[b h k d]`` of the layer at hand, after `rotate`; set
            for `bias` only, and only for embeddings that say ``reads_content``.
        memory: what the embedding keeps during one pass, such as its random draw. It lives as long
            as the key-value cache, so that all tokens of one answer see the same draw.
    """

    tokens: Int[Tensor, "b k"] | None = None
    scale: Scale | None = None
    q: Float[Tensor, "b h q d"] | None = None
    k: Float[Tensor, "b h k d"] | None = None
    memory: dict[str, Any] = field(default_factory=dict)


class PositionEmbedding(nn.Module):
    """A position embedding; the default of each hook is to do nothing (NoPE).

    Source: "none" is NoPE, Kazemnejad et al. (2023), arXiv 2305.19466.

    Attributes:
        relation: the positional relation that it hands to attention, a list of them (one per head
            or form), or None where no finite relation is stated ("no prediction").
        reads_content: whether `bias` depends on the queries and keys of a layer, which it finds in
            its context.
        per_layer: whether every layer learns parameters of its own for `rotate` and `bias`.
        rates: peak learning rates of parameters, by name, where the usual one of tables is wrong.
        recommended: training settings that suit it where the user asks for none.

    >>> import torch
    >>> at = torch.arange(4)
    >>> PositionEmbedding().bias(at, at, scale=3) is None
    True
    """

    relation: Relation | list[Relation] | None = None
    reads_content: bool = False
    per_layer: bool = False
    rates: dict[str, float] = {}
    recommended: dict[str, Any] = {"layers": 2, "learning_rate": 4e-3, "steps": 3000}

    def anneal(
        self, share: float, source: torch.Generator, loss: Callable[[], float] | None = None
    ) -> None:
        """Prepare for the next update of a training, of which ``share`` is done (0 to 1).

        Args:
            share: part of the training that is done.
            source: random generator of the training.
            loss: measures the model as it stands, see `lgcourse.training.trainer.Trainer`.
        """

    def embed(
        self,
        x: Float[Tensor, "b l d"],
        positions: Int[Tensor, " l"],
        context: Context | None = None,
    ) -> Float[Tensor, "b l d"]:
        """Return the token vectors with position added."""
        return x

    def rotate(
        self,
        q: Float[Tensor, "b h q d"],
        k: Float[Tensor, "b h k d"],
        query: Int[Tensor, " q"],
        key: Int[Tensor, " k"],
        context: Context | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return queries and keys, changed by their positions; cached keys are not given again."""
        return q, k

    def bias(
        self,
        query: Int[Tensor, " q"],
        key: Int[Tensor, " k"],
        scale: Scale | None,
        context: Context | None = None,
    ) -> Tensor | None:
        """Return what is added to the scores, ``[h q k]`` or ``[b h q k]``, or None.

        Minus infinity keeps a key out of attention; every query must keep at least one key.
        """
        return None

    def bias_at(
        self, head: Tensor, query: Tensor, key: Tensor, scale: Scale | None
    ) -> Tensor | None:
        """Return `bias` for single triples that broadcast, or None where only whole rows exist.

        FlexAttention calls it with scalars; it looks at no value, so that it can be compiled.
        """
        return None

    def named(
        self, query: Int[Tensor, " q"], scale: Scale | None
    ) -> tuple[Int[Tensor, "h q r"], Float[Tensor, "h q r"]] | None:
        """Return the few keys that attention may read and their bias, or None if it reads all.

        One head may stand for all. An empty slot has key -1 and bias minus infinity.
        """
        return None

    def named_terms(self) -> list[list[Term]] | None:
        """Return, per head, the terms that name the keys it reads at every scale, or None.

        Not None is a promise: a head reads the query itself and the keys for which one of its terms
        holds, nothing else; and the bias of a pair depends only on the head, on which of its terms
        hold, and on whether the key is the query. One head may stand for all.
        """
        return None


def none(name="none", task=None, width=0, heads=0, max_scale=None, positions=None, other="auto"):
    """NoPE: attention sees the causal mask and the tokens only."""
    soft_only(name, other)
    return PositionEmbedding()


def soft_only(name: str, other: str) -> None:
    """Refuse ``other="excluded"`` for an embedding that has no id "other"."""
    if other not in ("soft", "auto"):
        raise InputError(
            f"position embedding '{name}' has no id 'other' to exclude; use other='soft', "
            "or one of ideal, ideal-sh, rpe-sh"
        )


def head_size(name: str, width: int, heads: int) -> int:
    """Return the width of one head; a width that is no multiple of heads is an `InputError`."""
    whole_number("width", width, 1)
    whole_number("heads", heads, 1)
    if width % heads:
        raise InputError(
            f"position embedding '{name}' works inside each head: width must be a multiple of "
            f"heads, got width {width}, heads {heads}"
        )
    return width // heads


def wide(x: Tensor) -> Tensor:
    """Return a tensor in float32, or as it is if it is wider: bfloat16(257) is 256.

    >>> wide(torch.zeros(1, dtype=torch.bfloat16)).dtype, wide(torch.zeros(1).double()).dtype
    (torch.float32, torch.float64)
    """
    return x.to(torch.promote_types(x.dtype, torch.float32))


def fine(positions: Tensor) -> Tensor:
    """Return positions as float64 (float32 on devices without it), for angles of long inputs."""
    return positions.to(torch.float32 if positions.device.type == "mps" else torch.float64)


def look_up(table: Tensor, head: Tensor, ids: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Return table[head, id] for single pairs, for `PositionEmbedding.bias_at`.

    A causal pair that the table does not know (id below 0) gets not-a-number: a traced function can
    raise no error, and the last row would be a wrong answer that nobody sees.
    """
    beyond = (ids < 0) & (key <= query)
    return wide(table[head, ids.clamp(min=0)]).masked_fill(beyond, float("nan"))


def full_precision(x: Tensor) -> torch.autocast:
    """Switch autocast off inside a ``with`` block: positions do not survive bfloat16."""
    return torch.autocast(x.device.type, enabled=False)


def content(name: str, context: Context | None) -> tuple[Tensor, Tensor]:
    """Return the queries and keys of a layer, for embeddings that read them."""
    if context is None or context.q is None or context.k is None:
        raise InputError(
            f"position embedding '{name}' reads queries and keys: give its bias a "
            "Context(q=..., k=...), as Transformer does"
        )
    return wide(context.q), wide(context.k)
