"""What may a user hand in as a circuit? A task, a function, a dictionary, or a list of steps.

Everything in this room that takes a circuit reads it through `steps_at` and `scales_up_to`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from lgcourse.errors import InputError
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.tasks.base import Task
from lgcourse.tasks.circuit import Step, validate

Circuit = Task | Callable[[Any], list[Step]] | Mapping[Any, Sequence[Step]] | Sequence[Step]


def covered(circuit: Circuit | None) -> bool:
    """Return whether there is a circuit: not for None, nor for tasks that are "not covered"."""
    if isinstance(circuit, Task):
        return circuit.kind != "not covered" and type(circuit).circuit is not Task.circuit
    return circuit is not None


def steps_at(circuit: Circuit, scale: Scale) -> list[Step]:
    """Return the steps of a circuit at one scale, checked.

    Args:
        circuit: a task; a function scale -> list of steps; a dictionary from scale to such a list;
            or one list of steps, which then serves every scale.
        scale: the scale n.

    Returns:
        The steps, in the order of their outputs.

    Raises:
        InputError: the circuit has no steps for the scale, is none of these things, or is not valid
            (see `lgcourse.tasks.circuit.validate`).

    >>> from lgcourse.tasks import get
    >>> [step.inputs for step in steps_at(get("copy"), 2)]
    [(0,), (1,)]
    """
    steps = sorted(_steps(circuit, scale), key=lambda step: step.output)
    validate(steps)
    return steps


def _steps(circuit: Circuit, scale: Scale) -> Sequence[Step]:
    if isinstance(circuit, Task):
        circuit.check_scale(scale)
        return circuit.circuit(scale)
    if isinstance(circuit, Mapping):
        if scale not in circuit:
            raise InputError(
                f"the circuit has no steps for scale {scale!r}; it has {list(circuit)}"
            )
        return circuit[scale]
    steps = circuit(scale) if callable(circuit) else circuit
    if not isinstance(steps, Sequence) or not all(isinstance(step, Step) for step in steps):
        raise InputError(
            "a circuit is a task, a function scale -> list of Step, a dictionary of such lists, or "
            f"a list of Step; got {steps!r:.80}"
        )
    return steps


def scales_up_to(circuit: Circuit, scale: Scale) -> Iterator[tuple[int, Scale]]:
    """Yield every scale of a circuit up to the given one, smallest first, with its largest size.

    For tasks with several sizes a whole number n stands for all sizes up to n; a tuple bounds each
    size on its own.

    >>> from lgcourse.tasks import get
    >>> list(scales_up_to(get("copy"), 2)), list(scales_up_to(lambda n: [], (1, 2)))
    ([(1, 1), (2, 2)], [(1, (1, 1)), (2, (1, 2))])
    """
    sizes = sizes_of(scale)
    if isinstance(circuit, Task) and len(sizes) == 1:
        sizes *= circuit.sizes
    scales: list[Any]
    if isinstance(circuit, Mapping):
        scales = [n for n in circuit if _within(n, sizes)]
    elif len(sizes) == 1:
        scales = list(range(1, sizes[0] + 1))
    else:
        scales = list(product(*(range(1, size + 1) for size in sizes)))
    for n in sorted(scales, key=lambda n: (max(sizes_of(n)), sizes_of(n))):
        yield max(sizes_of(n)), n


def _within(scale: Scale, largest: tuple[int, ...]) -> bool:
    sizes = sizes_of(scale)
    if len(largest) == 1:
        return max(sizes) <= largest[0]
    return len(sizes) == len(largest) and all(s <= m for s, m in zip(sizes, largest, strict=True))


def show_scale(scale: Scale) -> str:
    """Return a scale as people type it: ``20`` or ``20x13``.

    >>> show_scale(20), show_scale((20, 13))
    ('20', '20x13')
    """
    return "x".join(map(str, sizes_of(scale)))
