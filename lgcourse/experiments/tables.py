"""What do the results of a sweep say? Tables and sentences about its cells, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from lgcourse.experiments.agreement import Interval, Scores, by_kind, by_threshold, compare
from lgcourse.experiments.cells import (
    FAILS,
    GENERALISES,
    NOT_TRAINED,
    Cell,
    untrained_as_failing,
)

Table = tuple[list[str], list[list[str]]]  # head and rows


def agreement_table(cells: Sequence[Cell]) -> Table:
    """Return the scores over all cells, by kind of task, and with all that does not train."""
    head = ["tasks", "cells", "measured positive", "agreement", "balanced accuracy", "Matthews"]
    head += ["always no: agreement", "always no: balanced"]
    groups = {"all": compare(cells), **by_kind(cells)}
    groups["all, not trained counted as failing"] = compare(untrained_as_failing(cells))
    return head, [[name, *_scores(found)] for name, found in groups.items()]


def threshold_table(cells: Sequence[Cell]) -> Table:
    """Return the scores for several exact matches that count as right."""
    head = ["right from", "cells", "measured positive", "agreement", "balanced accuracy"]
    head += ["Matthews", "always no: agreement", "always no: balanced"]
    return head, [[f"{s.threshold:g}", *_scores(s)] for s in by_threshold(cells)]


def apart_table(cells: Sequence[Cell]) -> Table:
    """Return how many cells are not counted, and why."""
    rows = [[why, str(n)] for why, n in compare(cells).apart.items()]
    for verdict in (GENERALISES, FAILS):
        found = [c for c in cells if c.predicted == verdict and c.measured == NOT_TRAINED]
        rows.append([f"of those not trained, predicted: {verdict}", str(len(found))])
    return ["not counted", "cells"], rows


def cell_table(cells: Sequence[Cell]) -> Table:
    """Return one row per cell, with the median over seeds at the two scales that decide."""
    head = ["task", "embedding", "trained on", "predicted", "measured", "differs", "runs"]
    head += ["exact match, trained scale", "exact match, far"]
    rows = []
    for c in cells:
        scores = [f"{median(s):.3f}" if s else "-" for s in (c.near, c.far)]
        shown = [c.task, c.pe + _variant(c), f"1..{c.train_scale}", c.predicted, c.measured]
        rows.append([*shown, "yes" if c.differs else "", f"{len(c.far)} of {c.wanted}", *scores])
    return head, rows


def differences(cells: Sequence[Cell], factor: int) -> list[str]:
    """Return a paragraph about each cell where prediction and outcome differ."""
    return [
        f"{c.task} with {c.pe}{_variant(c)}: predicted {c.predicted}, measured {c.measured}. "
        f"Exact match of the seeds {_list(c.near)} at scale {c.train_scale} and {_list(c.far)} at "
        f"{factor * c.train_scale}. {_suspect(c)} The prediction's reason: {c.reason}."
        for c in cells
        if c.differs
    ]


def _suspect(cell: Cell) -> str:
    """Say what the seeds tell of a difference: training, the circuit, or the conjecture."""
    right = sum(score >= cell.threshold for score in cell.far)
    count = f"{right} of {len(cell.far)} seeds are right at the far scale"
    if cell.predicted == FAILS:
        return (
            f"{count}, so the model computes the task by other steps than the circuit's, or finds "
            "its operands by something that the relation does not name: the circuit, or the "
            'conjecture\'s "only if", is in question, not the training.'
        )
    if right:
        return f"{count}, so the model can do it and training does not always get there."
    best = max(cell.far)
    if best >= cell.threshold / 2:
        return f"{count}, but the best one reaches {best:.2f}: more training may do."
    return (
        f"{count}, and the best one reaches {best:.2f}, although training was fitted: either the "
        "model learned another way to do it that short inputs do not rule out, or the conjecture "
        "fails here; `lgcourse explain RUN TEXT` shows which."
    )


def _scores(s: Scores) -> list[str]:
    found = [
        (s.agreement, s.agreement_interval),
        (s.balanced_accuracy, s.balanced_interval),
        (s.matthews, s.matthews_interval),
    ]
    return [
        *(str(s.cells), str(s.tp + s.fn), *(_with(*one) for one in found)),
        *(_number(value) for value in (s.baseline_agreement, s.baseline_balanced)),
    ]


def _with(value: float, interval: Interval) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3f} ({_number(interval[0])} to {_number(interval[1])})"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _list(scores: Sequence[float]) -> str:
    return ", ".join(f"{score:.2f}" for score in scores)


def _variant(cell: Cell) -> str:
    said = ", ".join(f"{name} {value}" for name, value in cell.variant.items())
    return f" ({said})" if said else ""
