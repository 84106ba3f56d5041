"""Stored results and the tables made from them are in step, and the listed commands made them."""

import json
from pathlib import Path

import faults
import first_slice
import grading
import learned_relations
import linear_cost
import long
import pytest
import scale_hint
import start
import store
import two_layers

ROOT = Path(__file__).resolve().parents[1]


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


@pytest.mark.parametrize(
    "file, name, make",
    [
        ("README.md", "learned_relations", learned_relations.with_table),
        ("benchmarks/RESULTS.md", "learned_relations", learned_relations.with_details),
        ("benchmarks/RESULTS.md", "scale_hint", scale_hint.with_table),
        ("benchmarks/RESULTS.md", "two_layers", two_layers.with_table),
        ("benchmarks/RESULTS.md", "grading", grading.with_table),
        ("benchmarks/RESULTS.md", "faults", faults.with_table),
        ("benchmarks/RESULTS.md", "start", start.with_table),
    ],
)
def test_every_other_table_is_that_of_its_stored_rows(file, name, make):
    text = (ROOT / file).read_text(encoding="utf-8")
    rows = store.stored(name)
    assert text == make(text, rows)
    if rows:  # other scores, another table
        other = json.loads(
            json.dumps(rows).replace("1.0", "0.995").replace('"differ": []', '"differ": ["x"]')
        )
        assert text != make(text, other)


@pytest.mark.parametrize(("made", "what"), [(linear_cost, "tokens"), (long, "exact")])
def test_the_tables_of_cost_and_of_long_sums_are_those_of_their_rows(made, what):
    text = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    rows = store.stored(made.NAME)
    assert [plan for plan in made.wanted(1) if plan not in [r["plan"] for r in rows]] == []
    assert len(rows) == len(made.wanted(1))
    assert text == made.with_table(text, rows)
    rows[0][what] += 1
    assert text != made.with_table(text, rows)


def test_a_run_of_learned_relations_counts_once_and_its_command_is_that_of_its_plan():
    rows = store.stored("learned_relations")
    plans = [json.dumps(row["plan"], sort_keys=True) for row in rows]
    assert len(set(plans)) == len(plans)
    known = [
        plan for part in learned_relations.PARTS for plan in learned_relations.wanted(part, 10)
    ]
    for row in rows:
        assert row["plan"] in known and row["command"] == learned_relations.command(row["plan"])
        assert row["settings"]["seed"] == row["plan"]["seed"]


# --- rows -----------------------------------------------------------------------------------------
def test_runs_are_made_once_and_a_line_that_was_cut_off_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    plans = [{"x": x} for x in range(3)]
    store.run_missing("tried", plans[:2], dict, 1, str)
    path = tmp_path / "tried.jsonl"
    path.write_text(path.read_text()[:-4])  # killed while the second line was written
    store.run_missing("tried", plans, dict, 2, str)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(row["plan"]["x"] for row in rows) == [0, 1, 2]
    assert all(row["x"] == row["plan"]["x"] for row in rows)
    before = path.read_bytes()
    store.run_missing("tried", plans, dict, 2, str)
    assert path.read_bytes() == before


def test_a_table_stands_between_its_marks_and_the_rest_stays():
    text = "a <!-- 1 --> old <!-- 2 --> b"
    assert store.between(text, ("<!-- 1 -->", "<!-- 2 -->"), "new") == (
        "a <!-- 1 -->\nnew\n<!-- 2 --> b"
    )
