"""How position enters a Transformer: every position embedding is one module with three hooks.

``names()`` lists them; ``build(name, task, width=..., heads=...)`` makes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lgcourse.errors import whole_number
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
        "rpe": "lgcourse.embeddings.table:table",
        "ideal": "lgcourse.embeddings.table:table",
        "ideal-sh": "lgcourse.embeddings.table:table",
        "rpe-sh": "lgcourse.embeddings.table:table",
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
            (instead of ``max_scale``), ``other`` (``"soft"`` or ``"excluded"``, relations only).

    Returns:
        A `PositionEmbedding`.

    Raises:
        InputError: the name is unknown, the task is missing, or an option does not fit.

    >>> build("rpe", width=64, heads=4, positions=16).relation
    <relation rpe: 16 ids>
    """
    make = registry.load(name)
    for size, value in {"width": width, "heads": heads}.items():
        whole_number(size, value, 1)
    refuse_options("position embedding", name, make, options, HANDED_ON)
    return make(name=name, task=task, width=width, heads=heads, **options)


__getattr__ = lazy(
    "lgcourse.embeddings",
    {
        "PositionEmbedding": "base",
        "RelationTable": "table",
        "SinusoidalEmbedding": "absolute",
        "LearnedEmbedding": "absolute",
    },
)
