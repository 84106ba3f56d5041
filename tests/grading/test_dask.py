"""Does a cluster give the gradebook that this machine gives, also when a worker is lost?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import lgcourse
from lgcourse.errors import InputError
from lgcourse.grading import Settings, grade, pool
from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.asked import questions_of
from lgcourse.grading.grader import CANNOT, Grader
from lgcourse.grading.sandbox.parent import Limits
from lgcourse.grading.submissions import find
from tests.grading.handing_in import COPY, EXACT, RIGHT, STEP, notebook

distributed = pytest.importorskip("distributed")
ROOT = Path(lgcourse.__file__).parents[1]
SETTINGS = Settings(seed=3, limits=Limits(10.0, 1024))
ANY = "def exact_match(guess, target):\n    return (guess == target).any(dim=1)"
CLASS = [RIGHT, ("import torch", ANY, STEP), ("import torch", EXACT, COPY), ("x = 1 / 0", STEP)]


@contextmanager
def started(part, *arguments):
    """A scheduler or a worker in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **quiet) as process:
        try:
            yield process
        finally:
            process.kill()


QUIET = ["--host", "127.0.0.1", "--no-dashboard"]


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler on this machine that has no workers."""
    file = tmp_path / "scheduler.json"
    with started("scheduler", *QUIET, "--port", "0", "--scheduler-file", file) as process:
        wait_until(lambda: file.exists() and file.read_text().rstrip().endswith("}"), process)
        yield json.loads(file.read_text())["address"]


@pytest.fixture
def workers(ready, scheduler, tmp_path):
    """Two workers of the scheduler."""
    with ExitStack() as stack:
        place = ["--nthreads", "1", "--no-nanny", "--local-directory", tmp_path]
        both = [stack.enter_context(started("worker", scheduler, *QUIET, *place)) for _ in "12"]
        with distributed.Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield both


@pytest.fixture(scope="module")
def ready():
    try:
        with Grader(SETTINGS) as grader:
            grader.zygote()
    except CannotGrade as why:
        pytest.skip(f"no process for student code here: {why}")


def wait_until(holds, process, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)


def a_class(folder, count):
    folder.mkdir()
    for number in range(count):
        text = notebook(*CLASS[number % len(CLASS)], f"# {number}")
        (folder / f"s{number:02d}.ipynb").write_text(text)
    return [str(folder)]


def test_with_a_worker_killed_half_way_the_gradebook_is_that_of_this_machine(
    scheduler, workers, tmp_path
):
    paths, count = a_class(tmp_path / "class", 16), 16
    here = grade(paths, SETTINGS, csv=str(tmp_path / "here.csv"), say=str)
    said = []

    def say(line):
        said.append(line)
        if line.startswith(f"{count // 2} of"):
            workers[0].kill()

    there = grade(paths, SETTINGS, csv=str(tmp_path / "there.csv"), dask=scheduler, say=say)
    assert workers[0].wait(30) == -9 and workers[1].poll() is None
    assert there == here and {row["score"] for row in here} == {8, 3, 5}
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert sum(f"of {count}:" in line for line in said) == count, "each is graded once"


def test_a_cluster_without_workers_is_told(ready, scheduler, tmp_path):
    with pytest.raises(InputError, match="has no workers; start one with `dask worker tcp:"):
        grade(a_class(tmp_path / "class", 1), SETTINGS, dask=scheduler, say=str)


def test_a_submission_that_ends_its_workers_costs_the_others_nothing(ready, monkeypatch, tmp_path):
    paths = a_class(tmp_path / "class", 4)

    def parallel(settings, work):
        """Stands for a cluster whose workers die with the second submission."""
        for submission, questions in work:
            if submission.id == "s01":
                raise distributed.KilledWorker("s01", None, 3)
            names = [question.name for question in questions]
            yield pool._grade_there(settings, submission.id, submission.programs(), names)

    monkeypatch.setattr(pool, "_parallel", parallel)
    submissions = find(paths)
    work = [(s, questions_of(submissions, None)[s.id]) for s in submissions]
    rows = {row["id"]: row for row in pool._outlive(SETTINGS, work, str)}
    assert {id: row["score"] for id, row in rows.items()} == {
        "s00": 8,
        "s01": None,
        "s02": 5,
        "s03": 3,
    }
    assert rows["s01"]["status"] == CANNOT and "ended" in rows["s01"]["questions"][0]["message"]
