"""What was predicted of each cell, and what was measured? A cell is a set of runs with all seeds.

Measured: a run is *right* at a scale if its exact match there is at least the threshold. A cell
*generalises* if most of its seeds are right at ``factor`` times the training scale. Else it is *not
trained* if most seeds are not right at the largest training scale either: such a cell says nothing
about generalisation. Else it *fails*. A cell with seeds still to run is *unfinished*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lgcourse.experiments.plan import Plan, cell_key, run_key, times
from lgcourse.experiments.single import DONE, REFUSED
from lgcourse.experiments.store import Store
from lgcourse.training.evaluation import scale_name

GENERALISES, FAILS, NOT_TRAINED = "generalises", "fails", "not trained"
NO_PREDICTION, NOT_COVERED, IMPOSSIBLE, UNFINISHED = (
    *("no prediction", "not covered", "refused", "unfinished"),
)


@dataclass(frozen=True)
class Cell:
    """One task with one embedding, trained on one range of scales.

    Args:
        task, pe, train_scale: what was trained.
        kind: how the task's operators grow: constant, saturates, grows, not covered.
        predicted: generalises, fails, no prediction, not covered, refused, or unfinished.
        reason: why, in words.
        near: exact match of each seed at the largest training scale.
        far: exact match of each seed at ``factor`` times it.
        wanted: number of seeds that the plan has.
        threshold: least exact match that counts as right.
        error: why runs of the cell were refused or failed, if any were.
        impossible: whether a run was refused, since there can be no such model.
        key: what tells the cell from others.
        variant: the settings of the grid that it has.
    """

    task: str
    pe: str
    train_scale: int
    kind: str
    predicted: str
    near: tuple[float, ...]
    far: tuple[float, ...]
    wanted: int
    threshold: float = 0.9
    reason: str = ""
    error: str = ""
    impossible: bool = False
    key: str = ""
    variant: dict[str, Any] = field(default_factory=dict)

    @property
    def measured(self) -> str:
        """What the runs showed.

        >>> Cell("copy", "rpe", 10, "constant", "fails", (1.0, 1.0), (1.0, 0.0), 2).measured
        'fails'
        >>> Cell("copy", "rpe", 10, "constant", "fails", (0.3, 0.2), (1.0, 0.0), 2).measured
        'not trained'
        """
        return self.at(self.threshold)

    def at(self, threshold: float) -> str:
        """Return what the runs show if another exact match counts as right."""
        if self.impossible:
            return IMPOSSIBLE
        if len(self.far) < self.wanted:
            return UNFINISHED
        right, fitted = (sum(score >= threshold for score in at) for at in (self.far, self.near))
        if 2 * right > self.wanted:
            return GENERALISES
        return FAILS if 2 * fitted > self.wanted else NOT_TRAINED

    @property
    def differs(self) -> bool:
        """Whether there is a prediction and an outcome, and they are not the same."""
        both = (GENERALISES, FAILS)
        return self.predicted in both and self.measured in both and self.predicted != self.measured


def cells_of(plan: Plan, store: Store) -> list[Cell]:
    """Return the cells of a plan in its order, with what is stored about each.

    Args:
        plan: the plan.
        store: what is stored.
    """
    runs, predictions = store.latest("run"), store.latest("predict")
    seeds: dict[str, list] = {}
    for settings in plan.runs:
        seeds.setdefault(cell_key(settings), []).append(settings)
    grid = tuple(plan.data.get("grid", {}))
    cells = []
    for key, members in seeds.items():
        rows = [runs[k] for k in map(run_key, members) if k in runs]
        done = [row for row in rows if row["status"] == DONE]
        first, said = members[0], predictions.get(key, {})
        near, far = (
            scale_name(times(first.task, first.train_scale, factor)) for factor in (1, plan.factor)
        )
        predicted = _predicted(said, plan.factor)
        cells.append(
            Cell(
                task=first.task,
                pe=first.pe,
                train_scale=first.train_scale,
                kind=said.get("kind", ""),
                predicted=predicted,
                near=tuple(row["exact_match"][near] for row in done),
                far=tuple(row["exact_match"][far] for row in done),
                wanted=len(members),
                threshold=plan.threshold,
                reason=said.get("reason") or said.get("error", ""),
                error=next((row["error"] for row in rows if row["status"] != DONE), ""),
                impossible=any(row["status"] == REFUSED for row in rows),
                key=key,
                variant={name: getattr(first, name) for name in grid},
            )
        )
    return cells


def so_far(cells: Iterable[Cell]) -> list[Cell]:
    """Return cells that are judged by the seeds that are there, for results that are not complete.

    >>> one = Cell("copy", "rpe", 10, "constant", "fails", (1.0,), (0.0,), wanted=5)
    >>> one.measured, so_far([one])[0].measured
    ('unfinished', 'fails')
    """
    return [replace(c, wanted=len(c.far)) if 0 < len(c.far) < c.wanted else c for c in cells]


def untrained_as_failing(cells: Iterable[Cell]) -> list[Cell]:
    """Return cells in which what is not trained counts as failing: it does not generalise either.

    >>> one = Cell("copy", "rpe", 10, "constant", "fails", (0.0,), (0.0,), wanted=1)
    >>> one.measured, untrained_as_failing([one])[0].measured
    ('not trained', 'fails')
    """
    return [replace(c, near=(1.0,) * len(c.near)) for c in cells]


def _predicted(said: dict[str, Any], factor: int) -> str:
    if said.get("status") == REFUSED:
        return IMPOSSIBLE
    if said.get("status") != DONE or said.get("factor") != factor:
        return UNFINISHED
    return said["verdict"]
