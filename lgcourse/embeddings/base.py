"""Where can position enter a Transformer? At the input, in queries and keys, in the scores."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.errors import InputError
from lgcourse.relations.base import Relation, Scale


class PositionEmbedding(nn.Module):
    """A position embedding; the default of each hook is to do nothing (NoPE).

    Source: "none" is NoPE, Kazemnejad et al. (2023), arXiv 2305.19466.

    Attributes:
        relation: the positional relation that it hands to attention, a list of them (one per head
            or form), or None where no finite relation is stated ("no prediction").
        per_layer: whether every layer learns parameters of its own for `rotate` and `bias`.
        recommended: training settings that suit it where the user asks for none.

    >>> import torch
    >>> at = torch.arange(4)
    >>> PositionEmbedding().bias(at, at, scale=3) is None
    True
    """

    relation: Relation | list[Relation] | None = None
    per_layer: bool = False
    recommended: dict[str, Any] = {"layers": 2, "learning_rate": 4e-3, "steps": 3000}

    def embed(
        self, x: Float[Tensor, "b l d"], positions: Int[Tensor, " l"], context: Any = None
    ) -> Float[Tensor, "b l d"]:
        """Return the token vectors with position added."""
        return x

    def rotate(
        self,
        q: Float[Tensor, "b h q d"],
        k: Float[Tensor, "b h k d"],
        query: Int[Tensor, " q"],
        key: Int[Tensor, " k"],
        context: Any = None,
    ) -> tuple[Tensor, Tensor]:
        """Return queries and keys, changed by their positions."""
        return q, k

    def bias(
        self,
        query: Int[Tensor, " q"],
        key: Int[Tensor, " k"],
        scale: Scale | None,
        context: Any = None,
    ) -> Tensor | None:
        """Return what is added to the scores, ``[h q k]`` or ``[b h q k]``, or None.

        Minus infinity keeps a key out of attention; every query must keep at least one key.
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
