"""Positional relations phi(query, key, scale) -> id: the one notion of position in this package.

``names()`` lists the relations; ``build(name, task)`` makes one. Integer maths on positions only:
no neural network and no task is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lgcourse.registry import Registry, lazy, refuse_options

if TYPE_CHECKING:
    from lgcourse.relations.base import Relation

registry = Registry(
    "relation",
    {
        "none": "lgcourse.relations.forms:none",
        "ape": "lgcourse.relations.forms:ape",
        "rpe": "lgcourse.relations.forms:rpe",
        "t5": "lgcourse.relations.buckets:t5",
        "ideal": "lgcourse.relations.ideal:ideal",
        "ape-sh": "lgcourse.relations.forms:ape_sh",
        "rpe-sh": "lgcourse.relations.forms:rpe_sh",
        "ideal-sh": "lgcourse.relations.ideal:ideal_sh",
    },
)
names = registry.names


def build(name: str, task: Any = None, **options: Any) -> Relation:
    """Make a relation by its name.

    Args:
        name: one of ``names()``; the ending ``-sh`` means that it is given the scale (Scale Hint).
        task: the task whose layout or circuit the relation needs (``ideal``), or whose length
            bounds its ids (``ape``, ``rpe``, ``ape-sh``).
        options: ``max_scale`` (largest scale that will be asked for, default 100), ``positions``
            (number of positions, instead of ``max_scale``), ``window`` (``rpe-sh``, default 2).

    Returns:
        A `Relation`.

    Raises:
        InputError: the name is unknown, or the relation does not exist for the task.

    >>> import torch
    >>> phi = build("rpe", positions=8)
    >>> phi(torch.tensor([3, 4]), torch.tensor([0, 1, 2]), scale=2)
    tensor([[3, 2, 1],
            [4, 3, 2]])
    """
    make = registry.load(name)
    refuse_options("relation", name, make, options, ("task",))
    return make(task, **options)


__getattr__ = lazy(
    "lgcourse.relations",
    {
        "Relation": "base",
        "Table": "base",
        "sizes_of": "base",
        "Form": "forms",
        "FormRelation": "forms",
        "Term": "forms",
        "TermRelation": "terms",
        "Affine": "affine",
        "BucketRelation": "buckets",
        "CellRelation": "cells",
        "ChainRelation": "chain",
        "CircuitRelation": "ideal",
    },
)
