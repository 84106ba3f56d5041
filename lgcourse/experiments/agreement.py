"""How well does theory predict what training shows? Scores over cells, with their uncertainty.

"Positive" is a cell that generalises. With tp, fp, tn, fn counted over the cells that have both a
prediction and an outcome:

    agreement          (tp + tn) / all
    balanced accuracy  (tp / (tp + fn) + tn / (tn + fp)) / 2
    Matthews           (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn)), 0 for 0/0

Cells that are not trained, have no prediction, are not covered, refused or unfinished are counted
apart, never as right or wrong. Source of the last score: Matthews (1975), Biochimica et Biophysica
Acta 405; balanced accuracy: Brodersen et al. (2010), ICPR.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lgcourse.errors import InputError, whole_number
from lgcourse.experiments.cells import FAILS, GENERALISES, Cell

DRAWS, LEVEL = 2000, 0.95
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
Interval = tuple[float, float]


@dataclass(frozen=True)
class Scores:
    """Agreement of predictions and outcomes over some cells.

    Args:
        tp, fp, tn, fn: predicted and measured to generalise; predicted only; neither;
            measured only.
        agreement, balanced_accuracy, matthews: see the module; nan where not defined.
        agreement_interval, balanced_interval, matthews_interval: 95 % bootstrap intervals.
        baseline_agreement, baseline_balanced: what always saying "fails" reaches.
        apart: cells that are not counted, by why.
        threshold: least exact match that counts as right.
    """

    tp: int
    fp: int
    tn: int
    fn: int
    agreement: float
    balanced_accuracy: float
    matthews: float
    agreement_interval: Interval
    balanced_interval: Interval
    matthews_interval: Interval
    baseline_agreement: float
    baseline_balanced: float
    apart: dict[str, int]
    threshold: float

    @property
    def cells(self) -> int:
        """Number of cells that count."""
        return self.tp + self.fp + self.tn + self.fn

    def to_json(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return asdict(self)


def compare(
    cells: Iterable[Cell], threshold: float | None = None, seed: int = 0, draws: int = DRAWS
) -> Scores:
    """Compare predictions and outcomes.

    Args:
        cells: the cells.
        threshold: least exact match that counts as right; None: that of the sweep.
        seed: seed of the bootstrap, which draws cells with replacement.
        draws: how often.

    Returns:
        The `Scores`.

    >>> def cell(predicted, far):
    ...     return Cell("copy", "rpe", 10, "constant", predicted, (1.0,), (far,), 1)
    >>> said = [cell("generalises", 1.0), cell("fails", 0.0), cell("fails", 1.0)]
    >>> scores = compare([*said, cell("no prediction", 1.0)])
    >>> scores.tp, scores.tn, scores.fn, scores.balanced_accuracy, scores.apart
    (1, 1, 1, 0.75, {'no prediction': 1})
    """
    whole_number("draws", draws, 1)
    cells = list(cells)
    counted, apart = [], Counter[str]()
    for cell in cells:
        outcome = cell.measured if threshold is None else cell.at(threshold)
        if cell.predicted not in (GENERALISES, FAILS):
            apart[cell.predicted] += 1
        elif outcome not in (GENERALISES, FAILS):
            apart[outcome] += 1
        else:
            counted.append((cell.predicted == GENERALISES, outcome == GENERALISES))
    said, shown = (np.array([pair[k] for pair in counted], dtype=bool) for k in (0, 1))
    table = confusion(said, shown)
    drawn = _bootstrap(said, shown, seed, draws)
    agree, balanced, correlated = [
        _interval([score(*one) for one in drawn]) for score in (_agree, *BOTH)
    ]
    tp, fp, tn, fn = table
    always_no = (0, 0, tn + fp, tp + fn)
    if threshold is None:
        threshold = cells[0].threshold if cells else math.nan
    return Scores(
        *table,
        _agree(*table),
        balanced_accuracy(*table),
        matthews(*table),
        agree,
        balanced,
        correlated,
        _agree(*always_no),
        balanced_accuracy(*always_no),
        dict(sorted(apart.items())),
        threshold,
    )


def by_kind(cells: Sequence[Cell], seed: int = 0) -> dict[str, Scores]:
    """Return the scores for each kind of task, in the order in which kinds appear."""
    kinds = dict.fromkeys(cell.kind for cell in cells if cell.kind)
    return {kind: compare([c for c in cells if c.kind == kind], None, seed) for kind in kinds}


def by_threshold(
    cells: Sequence[Cell], thresholds: Sequence[float] = THRESHOLDS, seed: int = 0
) -> list[Scores]:
    """Return the scores for several exact matches that count as right."""
    for threshold in thresholds:
        if not 0 < threshold <= 1:
            raise InputError(f"a threshold is above 0 and at most 1, got {threshold!r}")
    return [compare(cells, threshold, seed) for threshold in thresholds]


def confusion(said: np.ndarray, shown: np.ndarray) -> tuple[int, int, int, int]:
    """Count tp, fp, tn, fn.

    >>> confusion(np.array([True, True, False]), np.array([True, False, False]))
    (1, 1, 1, 0)
    """
    pairs = ((said, shown), (said, ~shown), (~said, ~shown), (~said, shown))
    tp, fp, tn, fn = (int((a & b).sum()) for a, b in pairs)
    return tp, fp, tn, fn


def balanced_accuracy(tp: int, fp: int, tn: int, fn: int) -> float:
    """Return the mean of the shares found among positive and negative cells; nan if one has none.

    >>> round(balanced_accuracy(8, 1, 9, 2), 4)
    0.85
    """
    if tp + fn == 0 or tn + fp == 0:
        return math.nan
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def matthews(tp: int, fp: int, tn: int, fn: int) -> float:
    """Return Matthews' correlation of prediction and outcome; 0 if either is always the same.

    >>> round(matthews(8, 1, 9, 2), 4)
    0.7035
    """
    if tp + fp + tn + fn == 0:
        return math.nan
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / math.sqrt(product) if product else 0.0


def _agree(tp: int, fp: int, tn: int, fn: int) -> float:
    total = tp + fp + tn + fn
    return (tp + tn) / total if total else math.nan


BOTH = (balanced_accuracy, matthews)


def _bootstrap(said, shown, seed: int, draws: int) -> list[tuple[int, int, int, int]]:
    if not len(said):
        return []
    pick = np.random.default_rng(seed).integers(0, len(said), (draws, len(said)))
    return [confusion(said[row], shown[row]) for row in pick]


def _interval(values: list[float]) -> Interval:
    """Return the percentiles that enclose 95 % of the draws in which the score is defined."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan, math.nan
    low, high = np.percentile(known, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)
