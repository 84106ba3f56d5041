"""When may training stop? When the model, with averaged weights, is certified."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from lgcourse.certify.certificate import LIMIT, examine
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.seeds import generator

SAMPLES = 64  # sequences of the largest training scale that must be right before a proof is tried


def until_certified(
    task: Any, limit: int = LIMIT, add_counterexamples: bool = False
) -> Callable[[Any], bool]:
    """Return an ``on_check`` for `lgcourse.fit` that ends training with the first certificate.

    A check first lets the model answer some samples, which is quick; only a model that is right on
    all of them is examined.

    Args:
        task: the task.
        limit: see `certify`.
        add_counterexamples: let an instance of a training scale that the examination finds to be
            answered wrongly join all later batches of its scale, see `Trainer.add`.

    >>> from lgcourse import Transformer, embeddings, fit, tasks
    >>> task = tasks.get("copy")
    >>> pe = embeddings.build("ideal-sh", task, width=16, heads=2)
    >>> model = Transformer(len(task.vocabulary), pe, 1, 16, 2)
    >>> fit(model, task, [1, 2], steps=2, on_check=until_certified(task), check_every=2).stopped
    False
    """

    def check(trainer: Any) -> bool:
        model = copy.deepcopy(trainer.model)
        trainer.average.copy_to(model)
        model = model.cpu().eval()
        scale = max(trainer.scales, key=task.length)
        batch = task.sample(scale, SAMPLES, generator(0, "until certified"))
        right = bool(right_tokens(model, batch).all())
        if not right:
            return False
        whole = examine(model, task, limit)
        if add_counterexamples and whole.wrong is not None:
            trainer.add(whole.wrong.scale, torch.tensor(whole.wrong.prompt))
        return whole.certificate.certified

    return check
