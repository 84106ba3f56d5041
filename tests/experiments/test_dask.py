"""A sweep on a Dask cluster: a real scheduler and two workers, one of which is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lgcourse import InputError
from lgcourse.experiments import Store, read_plan, sweep
from lgcourse.experiments.plan import plan_of
from lgcourse.experiments.results import without_time

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]
DATA = {
    "tasks": ["copy", "reverse"],
    "embeddings": ["none", "ideal", "ideal-sh"],
    "seeds": 2,
    "train_scales": [2],
    "test_scales": [4],
    "settings": {"steps": 3, "width": 8, "heads": 2, "samples": 8, "hard_samples": 0},
}
WAIT = 120  # seconds until a process that says nothing counts as broken


def start(*words: str) -> subprocess.Popen:
    """Start a program of Dask that finds this package."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dask", *words]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def until(found, what: str):
    """Wait for something to be there."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {WAIT} s")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Yield the address of a scheduler, and its two workers, without helpers that restart them."""
    from distributed import Client

    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    quiet = ["--no-dashboard"]
    at = ["--host", "127.0.0.1"]
    made = [start("scheduler", *at, "--port", "0", "--scheduler-file", str(file), *quiet)]
    try:
        until(file.exists, "the scheduler's file")
        address = until(lambda: json.loads(file.read_text() or "{}").get("address"), "its address")
        one = ["worker", address, *at, "--nthreads", "1", "--no-nanny", *quiet]
        made += [start(*one, "--local-directory", str(folder / str(k))) for k in range(2)]
        with Client(address, timeout=WAIT, set_as_default=False) as client:
            until(lambda: len(client.scheduler_info()["workers"]) == 2, "the workers")
        yield address, made[1:]
    finally:
        for process in reversed(made):
            process.kill()
            process.wait()


def quiet(line):
    pass


def contents(folder):
    import pandas as pd

    return without_time(pd.read_csv(folder / "results.csv")).to_csv()


def test_a_worker_that_is_killed_half_way_costs_nothing(cluster, tmp_path, monkeypatch):
    address, workers = cluster
    plan = plan_of(DATA)
    sweep(plan, tmp_path / "here", say=quiet)
    add, rows = Store.add, []

    def kill_after_half(store, row):
        add(store, row)
        rows.append(row)
        if len(rows) == 9:
            workers[0].kill()
            workers[0].wait()

    monkeypatch.setattr(Store, "add", kill_after_half)
    result = sweep(plan, tmp_path / "there", dask=address, say=quiet)
    assert workers[0].poll() not in (None, 0) and workers[1].poll() is None
    assert (result["done"], result["refused"], result["failed"]) == (8, 4, 0)
    assert len(rows) == 6 + 12 and len({(row["work"], row["key"]) for row in rows}) == len(rows)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_no_scheduler_is_said_before_a_folder_is_made(tmp_path, monkeypatch):
    from lgcourse.experiments import sweeping

    monkeypatch.setattr(sweeping, "WAIT", 1)
    (tmp_path / "s.toml").write_text('tasks = ["copy"]\nembeddings = ["none"]\n')
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        sweep(read_plan(tmp_path / "s.toml"), tmp_path / "s", dask="tcp://127.0.0.1:9", say=quiet)
    assert not (tmp_path / "s").exists()
