"""What does theory say of tasks and embeddings that have names? The entry of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lgcourse import embeddings, relations, tasks
from lgcourse.embeddings.learned_relation import LearnedRelation
from lgcourse.errors import InputError, unknown_name
from lgcourse.relations import saved
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.tasks.base import Task
from lgcourse.theory.circuits import covered
from lgcourse.theory.family import CellFamily
from lgcourse.theory.merging import induced_src_curve, src_curve
from lgcourse.theory.prediction import Prediction, predict

WIDTH, HEADS = 8, 1  # the size of an embedding does not change its relation
USUAL_HEADS = 8  # but what can be learned depends on the heads
LEARNED = ("lbpe", "lbpe-sh")  # which learn cells


def relations_of(name: str, task: Any, size: int) -> Relation | list[Relation] | None:
    """Return the relation of an embedding or relation by its name; None where none is stated.

    Args:
        name: a name in `lgcourse.relations` or `lgcourse.embeddings`, or a file FILE.json with
            relations that were learned (`lgcourse.relations.saved`).
        task: the task.
        size: the largest size that will be asked for.

    Returns:
        The relation; that of NoPE where the task has no circuit that could be written down, since
        then the answer does not depend on it.

    Raises:
        InputError: the name is neither, or the file holds no relations for this task.
    """
    if name.endswith(".json"):
        return list(saved.load(name))
    known = dict.fromkeys([*embeddings.names(), *relations.names()])
    if name not in known:
        embeddings.refuse_hint(name)
        raise unknown_name("embedding or relation", name, known)
    limit = getattr(task, "largest_circuit", None)
    if not covered(task) or (limit is not None and size > limit):
        return relations.build("none")
    largest = task.scale_of(size)
    if name in embeddings.names():
        return embeddings.build(name, task, width=WIDTH, heads=HEADS, max_scale=largest).relation
    return relations.build(name, task, max_scale=largest)


@dataclass(frozen=True)
class Setting:
    """What a prediction is about: a task, a relation, and the scales of training and test."""

    task: Task
    relation: Relation | list[Relation] | None
    trained: list[Scale]
    tested: tuple[Scale, ...]
    family: CellFamily | None = None  # what an untrained embedding can learn instead

    def predict(self) -> Prediction:
        """Predict length generalisation, see `lgcourse.theory.predict`."""
        return predict(self.task, self.family or self.relation, self.trained, self.tested)


def setting(name: str, pe: str, train_scale: int, test_scales: tuple[Scale, ...]) -> Setting:
    """Make the objects that a prediction needs from names.

    Args:
        name: a name in `lgcourse.tasks`.
        pe: a name in `lgcourse.embeddings` or `lgcourse.relations`, or a file of relations.
        train_scale: training shows every scale up to this size.
        test_scales: the scales to predict.

    Raises:
        InputError: a name is unknown, or a scale is not one of the task's.
    """
    sizes_of(train_scale)
    size = max(max(sizes_of(scale)) for scale in (train_scale, *test_scales))
    task = tasks.get_for(name, size)
    for scale in test_scales:
        task.check_scale(scale)
    trained = list(task.scales(task.scale_of(train_scale)))
    family = None
    if pe in LEARNED and covered(task):
        made = embeddings.build(
            pe, task, width=WIDTH, heads=USUAL_HEADS, max_scale=task.scale_of(size)
        )
        family = family_of(made)
    return Setting(task, relations_of(pe, task, size), trained, test_scales, family)


def family_of(embedding: Any) -> CellFamily | None:
    """Return the relations that an embedding can learn; None where that is not what it does.

    >>> family_of(embeddings.build("lbpe-sh", width=8, heads=4))
    <family of cells: 12 forms, values -3..3, up to 4 heads>
    """
    if not isinstance(embedding, LearnedRelation):
        return None
    parts = embedding.segments is not None
    return CellFamily(embedding.forms, embedding.window, len(embedding.kept), parts)


def src_named(name: str, scale: int, pe: str | None) -> dict[str, dict[str, int]]:
    """Return the SRC curve of a named task, and the induced one of an embedding if it is named.

    Raises:
        InputError: the task has no circuit, or the embedding no finite relation.
    """
    sizes_of(scale)
    task = tasks.get_for(name, scale)
    result = {"src": _named(src_curve(task, scale))}
    if pe is not None:
        relation = relations_of(pe, task, scale)
        if relation is None:
            raise InputError(f"embedding '{pe}' has no finite relation, so it induces no operators")
        result["induced"] = _named(induced_src_curve(task, relation, scale))
    return result


def _named(curve: dict[int, int]) -> dict[str, int]:
    return {str(scale): count for scale, count in curve.items()}
