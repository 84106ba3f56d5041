"""Which rows does a sweep leave? One per run and scale, in the order of the plan.

Columns: task, pe, seed, train_scale, scale, exact_match, token_accuracy, hard_exact_match;
predicted and measured (of the cell: the same in all its rows); status and error; the settings, of
which those that few runs change stand in ``options``; loss, parameters, device, versions; and
``seconds`` and ``cpu_seconds``, the only columns that depend on the time that a run took: by the
clock, and of the processor.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pandas as pd

from lgcourse.experiments.cells import cells_of
from lgcourse.experiments.plan import Plan, cell_key, run_key
from lgcourse.experiments.store import Store
from lgcourse.training.evaluation import scale_name
from lgcourse.training.folder import write_aside
from lgcourse.training.settings import Settings

TABLE = "results.csv"
TIMES = ("seconds", "cpu_seconds")
SCORES = ("exact_match", "token_accuracy", "hard_exact_match")
SHOWN = ("steps", "batch", "layers", "width", "heads", "learning_rate", "samples")
DEFAULTS = {
    f.name: getattr(Settings("copy", "none"), f.name)
    for f in fields(Settings)
    if f.name not in (*SHOWN, "task", "pe", "seed", "train_scale", "test_scales")
}


def result_table(plan: Plan, store: Store) -> pd.DataFrame:
    """Return the rows of all finished runs of a plan.

    Args:
        plan: the plan.
        store: what is stored; lines about other runs are left out.

    Returns:
        A table with the columns that the first lines of this module name. It depends on the plan
        and on what the runs gave, never on the order in which they ended.
    """
    runs = store.latest("run")
    cells = {cell.key: cell for cell in cells_of(plan, store)}
    rows: list[dict[str, Any]] = []
    for settings in plan.runs:
        row = runs.get(run_key(settings))
        if row is not None:
            rows += _rows(settings, row, cells[cell_key(settings)])
    return pd.DataFrame(rows)


def without_time(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without the columns that depend on the time that runs took."""
    return table.drop(columns=list(TIMES), errors="ignore")


def write_table(table: pd.DataFrame, store: Store) -> None:
    """Write results.csv; floats are written so that they are read back to the last digit."""
    data = table.to_csv(index=False, lineterminator="\n").encode()
    write_aside(store.path / TABLE, data)


def _rows(settings: Settings, row: dict[str, Any], cell) -> list[dict[str, Any]]:
    filled = {**settings.to_json(), **row.get("filled", {})}
    options = {k: filled[k] for k, default in DEFAULTS.items() if filled[k] != default}
    rows = []
    for scale in map(scale_name, settings.test_scales):
        rows.append(
            {
                "task": settings.task,
                "pe": settings.pe,
                "seed": settings.seed,
                "train_scale": settings.train_scale,
                "scale": scale,
                **{name: row.get(name, {}).get(scale) for name in SCORES},
                "predicted": cell.predicted,
                "measured": cell.measured,
                "status": row["status"],
                "error": row["error"],
                **{name: filled[name] for name in SHOWN},
                "options": json.dumps(options, sort_keys=True) if options else "",
                "loss": row.get("loss"),
                "parameters": row.get("parameters"),
                "device": row.get("device"),
                "versions": ", ".join(f"{k} {v}" for k, v in row["versions"].items()),
                **{name: row.get(name) for name in TIMES},
            }
        )
    return rows
