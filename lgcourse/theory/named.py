"""What does theory say of tasks and embeddings that have names? The entry of the command line."""

from __future__ import annotations

from typing import Any

from lgcourse import relations, tasks
from lgcourse.errors import InputError, unknown_name
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.theory.circuits import covered
from lgcourse.theory.merging import induced_src_curve, src_curve
from lgcourse.theory.prediction import predict

WIDTH, HEADS = 8, 1  # the size of an embedding does not change its relation


def relations_of(name: str, task: Any, largest: Scale) -> Relation | list[Relation] | None:
    """Return the relation of an embedding or relation by its name; None where none is stated.

    Args:
        name: a name in `lgcourse.relations` or `lgcourse.embeddings`.
        task: the task.
        largest: the largest scale that will be asked for.

    Raises:
        InputError: the name is neither.
    """
    from lgcourse import embeddings

    if name in embeddings.names():
        return embeddings.build(name, task, width=WIDTH, heads=HEADS, max_scale=largest).relation
    if name in relations.names():
        return relations.build(name, task, max_scale=largest)
    known = dict.fromkeys([*embeddings.names(), *relations.names()])
    raise unknown_name("embedding or relation", name, known)


def predict_named(
    name: str, pe: str, train_scale: int, test_scales: tuple[Scale, ...]
) -> dict[str, Any]:
    """Predict for a named task and embedding; training shows every scale up to ``train_scale``.

    Returns:
        What `Prediction.to_json` returns.
    """
    sizes_of(train_scale)
    task = tasks.get_for(name, max(max(sizes_of(s)) for s in (train_scale, *test_scales)))
    for scale in test_scales:
        task.check_scale(scale)
    largest = _largest(task, [train_scale, *test_scales])
    if not covered(task):
        return predict(task, None, [train_scale], test_scales).to_json()
    limit = getattr(task, "largest_circuit", None)
    # beyond it no table can be written, whatever the relation
    written = limit is None or max(sizes_of(largest)) <= limit
    relation = relations_of(pe, task, largest) if written else relations.build("none")
    trained = list(task.scales(_largest(task, [train_scale])))
    return predict(task, relation, trained, test_scales).to_json()


def src_named(name: str, scale: int, pe: str | None) -> dict[str, dict[str, int]]:
    """Return the SRC curve of a named task, and the induced one of an embedding if it is named.

    Raises:
        InputError: the task has no circuit, or the embedding no finite relation.
    """
    sizes_of(scale)
    task = tasks.get_for(name, scale)
    largest = _largest(task, [scale])
    result = {"src": _named(src_curve(task, scale))}
    if pe is not None:
        relation = relations_of(pe, task, largest)
        if relation is None:
            raise InputError(f"embedding '{pe}' has no finite relation, so it induces no operators")
        result["induced"] = _named(induced_src_curve(task, relation, scale))
    return result


def _largest(task, scales) -> Scale:
    size = max(max(sizes_of(scale)) for scale in scales)
    return size if task.sizes == 1 else (size,) * task.sizes


def _named(curve: dict[int, int]) -> dict[str, int]:
    return {str(scale): count for scale, count in curve.items()}
