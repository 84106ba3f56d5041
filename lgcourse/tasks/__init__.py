"""What is computed: one file per family of tasks, each with layout, sampler, text and circuit.

``names()`` lists the tasks; ``get(name)`` makes one; ``register(name, cls)`` adds your own, and
``check_circuit(task, scale)`` tells whether its circuit computes it.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from lgcourse.registry import Registry, lazy, refuse_options

if TYPE_CHECKING:
    from lgcourse.tasks.base import Task

registry = Registry(
    "task",
    {
        "copy": "lgcourse.tasks.rearrange:Copy",
        "reverse": "lgcourse.tasks.rearrange:Reverse",
        "shift": "lgcourse.tasks.rearrange:Shift",
        "interleave": "lgcourse.tasks.rearrange:Interleave",
        "parity-cot": "lgcourse.tasks.running:ParityCoT",
        "parity-cot-padded": "lgcourse.tasks.running:ParityCoTPadded",
        "modsum-cot": "lgcourse.tasks.running:ModSumCoT",
        "permutation-cot": "lgcourse.tasks.permutation:PermutationCoT",
        "permutation-cot-s3": "lgcourse.tasks.permutation:PermutationCoTS3",
        "permutation-cot-s5": "lgcourse.tasks.permutation:PermutationCoTS5",
        "compare-cot": "lgcourse.tasks.compare:CompareCoT",
        "successor": "lgcourse.tasks.successor:Successor",
        "addition": "lgcourse.tasks.addition:Addition",
        "addition-padded": "lgcourse.tasks.addition:AdditionPadded",
        "addition-unequal": "lgcourse.tasks.addition:AdditionUnequal",
        "multiply-digit": "lgcourse.tasks.multiplication:MultiplyDigit",
        "multiply-scratchpad": "lgcourse.tasks.multiplication:MultiplyScratchpad",
        "add-index-mod": "lgcourse.tasks.positionwise:AddIndexMod",
        "random-permutation-per-position": (
            "lgcourse.tasks.positionwise:RandomPermutationPerPosition"
        ),
        "parity-direct": "lgcourse.tasks.direct:ParityDirect",
        "multiply-direct": "lgcourse.tasks.direct:MultiplyDirect",
        "sort": "lgcourse.tasks.contrast:Sort",
        "majority": "lgcourse.tasks.contrast:Majority",
        "copy-unique": "lgcourse.tasks.contrast:CopyUnique",
        "copy-repeat": "lgcourse.tasks.contrast:CopyRepeat",
    },
)
names = registry.names
register = registry.register


def get(name: str, **options: Any) -> Task:
    """Make a task by its name.

    Args:
        name: one of ``names()``.
        options: options of the task. The padded tasks, sort and copy-unique take ``width``, the
            largest scale that fits; permutation-cot takes ``points`` (3, 4 or 5);
            random-permutation-per-position takes ``seed``.

    Returns:
        A `Task`.

    Raises:
        InputError: the name is unknown (the message has the nearest one), or an option is not the
            task's.

    >>> get("addition").solve("905+128=")
    '1033'
    """
    make = registry.load(name)
    refuse_options("task", name, make, options)
    return make(**options)


def get_for(name: str, size: int, **options: Any) -> Task:
    """Make a task by its name that holds scales up to a size.

    Args:
        name: one of ``names()``.
        size: the largest size that will be asked for. Without an option ``width``, a padded task is
            padded to it; a task with ``width`` different symbols gets at least as many.
        options: options of the task, see `get`.

    Returns:
        A `Task`.

    Raises:
        InputError: as `get`.

    >>> get_for("addition-padded", 7).width
    7
    """
    make = registry.load(name)
    width = signature(make).parameters.get("width")
    if width is not None and "width" not in options:
        options["width"] = size if make.padded else max(size, width.default)
    return get(name, **options)


__getattr__ = lazy(
    "lgcourse.tasks",
    {
        "Task": "base",
        "Batch": "base",
        "Prompt": "base",
        "Operator": "circuit",
        "Step": "circuit",
        "Segment": "families",
        "Family": "families",
        "family": "families",
        "check_circuit": "checking",
    },
)
