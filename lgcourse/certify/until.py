"""When may training stop? When the model, with averaged weights, is certified."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from lgcourse.certify.certificate import LIMIT, certify
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.seeds import generator

SAMPLES = 64  # sequences of the largest training scale that must be right before a proof is tried


def until_certified(task: Any, limit: int = LIMIT) -> Callable[[Any], bool]:
    """Return an ``on_check`` for `lgcourse.fit` that ends training with the first certificate.

    A check first lets the model answer some samples, which is quick; only a model that is right on
    all of them is examined.

    Args:
        task: the task.
        limit: see `certify`.

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
        return right and certify(model, task, limit).certified

    return check
