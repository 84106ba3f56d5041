"""How is a trained model asked? With prompts of a task, at scales that training did not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lgcourse import tasks

Case = tuple[Tensor, Any, int]  # prompts Int["b p"], their scale, tokens to write


def prompts(
    task: str, scales: Sequence[Any], samples: int, **options: Any
) -> Callable[[torch.Generator], list[Case]]:
    """Return what draws prompts of a task, for a `Check` of a question of the kind model.

    Args:
        task: name of the task.
        scales: the scales that are asked for.
        samples: prompts per scale.
        options: options of the task.

    >>> [(p.shape, n, count) for p, n, count in prompts("copy", [2, 3], 5)(torch.Generator())]
    [(torch.Size([5, 3]), 2, 2), (torch.Size([5, 4]), 3, 3)]
    """

    def draw(generator: torch.Generator) -> list[Case]:
        made = tasks.get(task, **options)
        return [
            (made.prompt(scale, samples, generator), scale, made.answer_length(scale))
            for scale in scales
        ]

    return draw


def true_answers(task: str, **options: Any) -> Callable[[Tensor, Any, int], Tensor]:
    """Return the reference of a question of the kind model: prompts -> answer tokens.

    >>> true_answers("copy")(torch.tensor([[0, 1, 2]]), 2, 2).tolist()
    [[0, 1]]
    """

    def answers(prompt: Tensor, scale: Any, count: int) -> Tensor:
        return tasks.get(task, **options).answer(prompt, scale)

    return answers
