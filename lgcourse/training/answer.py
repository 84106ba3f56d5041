"""What does a trained model answer to a text that a person typed, and is it right?"""

from __future__ import annotations

from typing import Any

import torch

from lgcourse.errors import InputError
from lgcourse.model.generation import generate
from lgcourse.training.evaluation import scale_name


def answer(run, text: str) -> dict[str, Any]:
    """Let the model of a run answer a prompt by greedy generation.

    Args:
        run: a `LoadedRun`.
        text: a prompt of the run's task.

    Returns:
        ``text``, ``scale``, ``answer`` (the model's), ``true``, ``agree``, ``notes``, and the
        largest scale that training showed.

    Raises:
        InputError: the text is not a prompt of the task, or longer than the model's tables.
    """
    prompt = run.task.parse(text)
    count = run.task.answer_length(prompt.scale)
    try:
        tokens = generate(run.model, torch.tensor([prompt.tokens]), prompt.scale, count)[0].tolist()
    except InputError as error:  # a learned table has an end
        raise InputError(
            f"this run was made for scales up to {scale_name(run.settings.largest)}, the text has "
            f"scale {scale_name(prompt.scale)}; train one with it among the --test-scales"
        ) from error
    true, given = run.task.solve(text), run.task.decode(tokens)
    return {
        "text": "".join(text.split()),
        "scale": scale_name(prompt.scale),
        "answer": given,
        "true": true,
        "agree": given == true,
        "notes": prompt.notes,
        "train_scale": run.settings.train_scale,
    }
