"""Does a task's circuit compute the task? Checked by running it on samples."""

from __future__ import annotations

import torch

from lgcourse.errors import InputError
from lgcourse.relations.base import Scale
from lgcourse.tasks.base import Batch, Task
from lgcourse.tasks.circuit import execute, validate


def check_circuit(task: Task, scale: Scale, samples: int = 8, seed: int = 0) -> None:
    """Refuse a task whose circuit does not make the answers of its own samples.

    Args:
        task: the task, one of ours or your own.
        scale: the scale to check at.
        samples: number of random samples, and of hard ones where the task has any.
        seed: seed of the samples.

    Raises:
        InputError: the circuit is none (see `lgcourse.tasks.circuit.validate`), an operator is not
            defined for tokens that occur, the steps do not write exactly the scored positions, or
            an output differs from the answer; the message names scale, position and tokens.

    >>> import lgcourse
    >>> check_circuit(lgcourse.tasks.get("addition"), scale=20)
    """
    generator = torch.Generator().manual_seed(seed)
    steps = task.circuit(scale)
    validate(steps, task.length(scale))
    batches = [task.sample(scale, samples, generator), task.hard(scale, samples, generator)]
    for batch in batches:
        if batch is not None:
            _check_outputs(task, steps, batch)


def _check_outputs(task: Task, steps, batch: Batch) -> None:
    names, start = task.layout(batch.scale), task.prompt_length(batch.scale)
    scored = set(batch.answer.nonzero()[:, 0].tolist())
    unlike = scored ^ {step.output for step in steps}
    if unlike:
        p = min(unlike)
        words = "is scored but no step writes it" if p in scored else "is written but not scored"
        raise InputError(f"task '{task.name}' at scale {batch.scale}: position {names[p]} {words}")
    for line in batch.tokens.tolist():
        made = execute(steps, line[:start], len(line))
        wrong = next((p for p in sorted(scored) if made[p] != line[p]), None)
        if wrong is not None:
            raise InputError(
                f"task '{task.name}' at scale {batch.scale}: the circuit makes {names[wrong]} = "
                f"'{task.vocabulary[made[wrong]]}' where the answer is "
                f"'{task.vocabulary[line[wrong]]}'; prompt '{task.decode(line[:start])}'"
            )
