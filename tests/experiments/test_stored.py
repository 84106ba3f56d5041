"""The results that are shipped: each number comes from a stored run of the sweep file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from lgcourse import report
from lgcourse.experiments import Store, read_plan
from lgcourse.experiments.plan import cell_key, run_key

SWEEPS = Path(__file__).parents[2] / "sweeps"
FOLDER = SWEEPS / "conjecture"


@pytest.fixture(scope="module")
def plan():
    return read_plan(SWEEPS / "conjecture.toml")


def test_every_stored_line_is_one_of_the_plan(plan):
    store = Store(FOLDER)
    assert store.data() == plan.data
    known = {"run": {run_key(r) for r in plan.runs}, "predict": {cell_key(c) for c in plan.cells}}
    rows = store.rows()
    assert rows and all(row["key"] in known[row["work"]] for row in rows)
    assert len(store.latest("predict")) == len(plan.cells)


def test_every_score_in_the_table_is_that_of_a_stored_run(plan):
    table = pd.read_csv(FOLDER / "results.csv", dtype={"scale": str})
    runs = Store(FOLDER).latest("run")
    rows = iter(table.itertuples())
    for settings in plan.runs:
        run = runs.get(run_key(settings))
        for scale in map(str, settings.test_scales) if run else ():
            row = next(rows)
            assert (row.task, row.pe, row.seed, row.scale) == (
                settings.task, settings.pe, settings.seed, scale
            )  # fmt: skip
            score = run.get("exact_match", {}).get(scale)
            assert row.exact_match == score or (score is None and pd.isna(row.exact_match))
    assert next(rows, None) is None


def test_the_report_is_what_the_rows_say(tmp_path):
    for name in ("runs.jsonl", "sweep.json"):
        shutil.copy(FOLDER / name, tmp_path / name)
    report.write_page(str(tmp_path))
    for name in ("report.md", "results.csv"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text()


def test_at_least_forty_cells_are_predicted_to_generalise():
    said = Store(FOLDER).latest("predict").values()
    assert sum(row.get("verdict") == "generalises" for row in said) >= 40
