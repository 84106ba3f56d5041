"""How does a soft relation become one to certify? Freeze its length factor, drop other keys.

A soft table multiplies strengths by 8 log(keys + 1) and gives every other key some attention. Both
depend on the length, so no finite table says what a step does. Crystallising keeps the factor of
the longest training input, excludes the keys without a role, and reports what that changes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from lgcourse.embeddings.base import PositionEmbedding
from lgcourse.embeddings.learned_relation import FIXED, LEAST, LearnedRelation
from lgcourse.embeddings.table import CONSTANT, STRENGTH, RelationTable
from lgcourse.errors import InputError
from lgcourse.relations.base import Scale
from lgcourse.training.seeds import generator

SAMPLES = 64  # sequences per scale that are compared


@dataclass
class Crystal:
    """A crystallised model, and what it answers differently.

    Args:
        model: the new model; the old one is left as it was.
        factor: the length factor that was frozen, 8 log(keys + 1).
        changed: scale -> share of answer tokens whose arg-max changed.
        moved: scale -> largest change of a logit.
    """

    model: Any
    factor: float
    changed: dict[Scale, float] = field(default_factory=dict)
    moved: dict[Scale, float] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return the report as lines for people."""
        lines = [f"length factor frozen at {self.factor:.2f}; other keys excluded"]
        for scale, share in self.changed.items():
            lines.append(
                f"  scale {scale}: {share:.2%} of the answer tokens changed, "
                f"logits by up to {self.moved[scale]:.2f}"
            )
        return lines


def crystallise(model: Any, task: Any, train_scales: Iterable[Scale], seed: int = 0) -> Crystal:
    """Turn a model with a soft relation into one that reads named keys only.

    With f = 8 log(keys + 1) of the longest training input, the new bias is f times the strength of
    a pair, for pairs with a role and the query itself. A learned relation keeps the cells whose
    strength times 8 is above 0.5, as its own training does.

    Args:
        model: a `Transformer`.
        task: its task.
        train_scales: the scales that it was trained on.
        seed: seed of the sequences that are compared.

    Returns:
        A `Crystal`.

    Raises:
        InputError: the embedding has no soft relation, or excludes other keys already.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> task = tasks.get("copy")
    >>> pe = embeddings.build("ideal-sh", task, width=16, heads=2, other="soft")
    >>> crystal = crystallise(Transformer(11, pe, 1, 16, 2), task, [1, 2, 3])
    >>> crystal.model.embedding.other, round(crystal.factor, 3) == round(8 * math.log(7), 3)
    ('excluded', True)
    """
    scales = list(train_scales)
    if not scales:
        raise InputError("train_scales is empty; give the scales that the model was trained on")
    longest = max(task.length(scale) for scale in scales)
    factor = STRENGTH * math.log(longest)  # the last query predicts the last token: keys + 1
    new = copy.deepcopy(model)
    for k, position in enumerate(new.positions):
        new.positions[k] = _hardened(position, factor / CONSTANT)
    made = Crystal(new.eval(), factor)
    was_training = model.training
    model.eval()
    for scale in scales:
        batch = task.sample(scale, SAMPLES, generator(seed, f"crystal at {scale}"))
        at = batch.answer.nonzero()[:, 0] - 1
        with torch.no_grad():
            before, after = (m(batch.tokens, scale)[:, at] for m in (model, new))
        different = before.argmax(-1) != after.argmax(-1)
        made.changed[scale] = different.double().mean().item()
        made.moved[scale] = (before - after).abs().max().item()
    model.train(was_training)
    return made


@torch.no_grad()
def _hardened(position: PositionEmbedding, share: float) -> PositionEmbedding:
    """Return an embedding that reads named keys only; ``share`` multiplies its strengths."""
    if isinstance(position, RelationTable) and position.other == "soft":
        if position.relation.other is None:
            raise InputError(
                f"relation '{position.relation.name}' gives every key a role, so none can be left "
                "out; ideal, ideal-sh and rpe-sh have an id 'other'"
            )
        hard = RelationTable(position.relation, len(position.table), other="excluded")
        hard.to(position.table.device, position.table.dtype)
        hard.table.copy_(position.table * share)
        return hard
    if isinstance(position, LearnedRelation) and int(position.stage) != FIXED:
        position.kept &= STRENGTH * position.strength() > LEAST
        position.table.mul_(share)
        position.stage.fill_(FIXED)
        return position
    name = type(position).__name__
    raise InputError(
        f"'{name}' has no soft relation to crystallise: use ideal or ideal-sh with other='soft', "
        "or a learned relation whose training has not ended"
    )
