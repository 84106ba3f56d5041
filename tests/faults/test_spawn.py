"""Work is sent to processes that start from nothing, as they do on Windows and macOS."""

import json
import multiprocessing
import os
import subprocess
import sys

import pytest

from lgcourse.experiments import Store, result_table, sweep, sweeping
from lgcourse.experiments.plan import plan_of
from lgcourse.experiments.results import without_time

DATA = {
    "tasks": ["copy"],
    "embeddings": ["none", "ideal-sh"],
    "seeds": 1,
    "train_scales": [2],
    "test_scales": [3],
    "settings": {"steps": 2, "width": 8, "heads": 2, "samples": 4, "hard_samples": 0},
}


def timeless(row):
    return {key: value for key, value in row.items() if key not in ("seconds", "cpu_seconds")}


def test_pieces_of_a_sweep_are_done_by_spawned_processes():
    """What is sent and what comes back crosses over, and the numbers are the same."""
    work = sweeping._work(plan_of(DATA))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = dict(pool.map(sweeping._do, work, chunksize=2))
    for piece in work:
        assert timeless(there[piece.kind, piece.key]) == timeless(piece.do())


def test_a_sweep_in_processes_is_the_sweep_in_one(tmp_path):
    plan, tables = plan_of(DATA), []
    for jobs in (1, 2):
        sweep(plan, tmp_path / str(jobs), jobs=jobs, say=str)
        tables.append(without_time(result_table(plan, Store(tmp_path / str(jobs)))))
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_terminals_of_other_encodings_and_names_of_any_letters(tmp_path, encoding):
    """Neither what is printed nor a name needs a letter that the terminal lacks."""
    out = tmp_path / "größe-数"
    small = "--steps 1 --width 8 --heads 2 --samples 2 --train-scale 2 --test-scales 2"
    code = "from lgcourse import cli; import sys; sys.argv[0] = 'lgcourse'; cli.main(sys.argv[1:])"
    environment = {**os.environ, "PYTHONIOENCODING": f"{encoding}:strict", "PYTHONUTF8": "0"}
    train = ["train", "copy", "--pe", "none", *small.split(), "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", code, *train], capture_output=True, env=environment
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr.decode()
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["status"] == "finished"
    assert b"run folder: " in done.stdout
