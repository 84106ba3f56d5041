"""How position enters a Transformer: every position embedding is one module with three hooks.

``names()`` lists them; ``build(name, task, width=..., heads=...)`` makes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lgcourse.errors import InputError, whole_number
from lgcourse.registry import Registry, lazy, refuse_options

if TYPE_CHECKING:
    from lgcourse.embeddings.base import PositionEmbedding

HANDED_ON = ("name", "task", "width", "heads")
registry = Registry(
    "position embedding",
    {
        "none": "lgcourse.embeddings.base:none",
        "ape-sinusoidal": "lgcourse.embeddings.absolute:sinusoidal",
        "ape-learned": "lgcourse.embeddings.absolute:learned",
        "rpe": "lgcourse.embeddings.shaw:rpe",
        "t5": "lgcourse.embeddings.t5:t5",
        "alibi": "lgcourse.embeddings.alibi:alibi",
        "kerple": "lgcourse.embeddings.kerple:kerple",
        "fire": "lgcourse.embeddings.fire:fire",
        "rope": "lgcourse.embeddings.rope:rope",
        "randomized": "lgcourse.embeddings.randomized:randomized",
        "abacus": "lgcourse.embeddings.abacus:abacus",
        "coupled": "lgcourse.embeddings.coupled:coupled",
        "cope": "lgcourse.embeddings.cope:cope",
        "dape": "lgcourse.embeddings.dape:dape",
        "ideal": "lgcourse.embeddings.table:table",
        "ideal-sh": "lgcourse.embeddings.table:table",
        "rpe-sh": "lgcourse.embeddings.table:table",
        "ape-sh": "lgcourse.embeddings.table:table",
        "lbpe": "lgcourse.embeddings.learned_relation:learned_relation",
        "lbpe-sh": "lgcourse.embeddings.learned_relation:learned_relation",
        "lbpe-mlp": "lgcourse.embeddings.mlp_relation:mlp_relation",
        "lbpe-mlp-sh": "lgcourse.embeddings.mlp_relation:mlp_relation",
    },
)
names = registry.names


def build(
    name: str, task: Any = None, *, width: int, heads: int, **options: Any
) -> PositionEmbedding:
    """Make a position embedding by its name.

    Args:
        name: one of ``names()``; the ending ``-sh`` means that it is given the scale (Scale Hint).
        task: the task, for embeddings whose relation or size comes from it.
        width: width of the model's vectors.
        heads: number of attention heads.
        options: ``max_scale`` (largest scale that will be used, default 100), ``positions``
            (instead of ``max_scale``), ``other`` (``"soft"`` or ``"excluded"``, only where the
            relation has an id "other"); and of single ones: ``vectors`` and ``clip`` (rpe),
            ``buckets`` and ``distance`` (t5), ``hidden`` (fire, dape, lbpe-mlp), ``pairing`` and
            ``base`` (rope), ``around`` (randomized, dape), ``largest`` (randomized, cope),
            ``offset`` (abacus), ``window`` (rpe-sh).

    Returns:
        A `PositionEmbedding`.

    Raises:
        InputError: the name is unknown, the embedding takes no Scale Hint, the task is missing, or
            an option does not fit.

    >>> build("rpe", width=64, heads=4, positions=16).relation
    <relation rpe: 16 ids>
    """
    refuse_hint(name)
    make = registry.load(name)
    for size, value in {"width": width, "heads": heads}.items():
        whole_number(size, value, 1)
    refuse_options("position embedding", name, make, options, HANDED_ON)
    return make(name=name, task=task, width=width, heads=heads, **options)


def refuse_hint(name: str) -> None:
    """Refuse a Scale Hint, the ending ``-sh``, for an embedding that has no hinted relation.

    >>> refuse_hint("alibi-sh")
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: position embedding 'alibi' takes no Scale Hint: a hint enters only
    through a relation whose ids depend on n, and alibi has none; use one of ideal-sh, ...
    """
    known, plain = names(), name.removesuffix("-sh")
    if name not in known and name != plain and plain in known:
        raise InputError(
            f"position embedding '{plain}' takes no Scale Hint: a hint enters only through a "
            f"relation whose ids depend on n, and {plain} has none; use one of "
            + ", ".join(other for other in known if other.endswith("-sh"))
        )


__getattr__ = lazy(
    "lgcourse.embeddings",
    {
        "PositionEmbedding": "base",
        "Context": "base",
        "RelationTable": "table",
        "SinusoidalEmbedding": "absolute",
        "LearnedEmbedding": "absolute",
        "ScalarBias": "t5",
        "ShawEmbedding": "shaw",
        "ALiBiEmbedding": "alibi",
        "alibi_slopes": "alibi",
        "KerpleEmbedding": "kerple",
        "FIREEmbedding": "fire",
        "RotaryEmbedding": "rope",
        "convert_pairing": "rope",
        "RandomizedEmbedding": "randomized",
        "AbacusEmbedding": "abacus",
        "CoupledEmbedding": "coupled",
        "coupled_ids": "coupled",
        "CoPEEmbedding": "cope",
        "DAPEEmbedding": "dape",
    },
)
