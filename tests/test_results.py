"""Stored results and the tables made from them are in step, and the issue's commands made them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("first_slice", ROOT / "benchmarks" / "first_slice.py")
assert spec is not None and spec.loader is not None
first_slice = importlib.util.module_from_spec(spec)
spec.loader.exec_module(first_slice)


def test_the_table_of_the_readme_is_the_one_of_the_stored_rows():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == first_slice.with_table(readme, first_slice.stored())


def test_every_plan_has_every_seed_once():
    wanted = [
        "lgcourse " + " ".join(first_slice.arguments(*plan, seed))
        for plan in first_slice.PLANS
        for seed in first_slice.SEEDS
    ]
    assert sorted(row["command"] for row in first_slice.stored()) == sorted(wanted)


@pytest.mark.parametrize("change", ["score", "missing"])
def test_a_changed_row_changes_the_table(change):
    rows = first_slice.stored()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if change == "score":
        rows[0]["exact_match"]["10"] = 0.123
    else:
        task, pe = rows[0]["task"], rows[0]["pe"]
        rows = [row for row in rows if (row["task"], row["pe"]) != (task, pe)]
    assert first_slice.with_table(readme, rows) != readme
