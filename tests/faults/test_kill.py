"""Killed at a moment that a seed chooses and resumed, a command leaves what it always leaves.

Real processes, SIGKILL; the process announces its steps and the files it touches and waits there.
`benchmarks/faults.py` does the same 50 times.
"""

import os
import random

import faults
import pytest

from lgcourse import cli

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="SIGKILL is a POSIX signal"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def can_grade():
    from lgcourse.grading.answers import CannotGrade
    from lgcourse.grading.grader import Grader, Settings

    try:
        with Grader(Settings()) as grader:
            grader.zygote()
    except CannotGrade as why:
        pytest.skip(f"no process for student code here: {why}")


def moments(events):
    """One event of the start, one of the middle and one of the end, while the results are written.

    The last file that gets its name is still without it at that event; what follows only tidies.
    """
    source, third = random.Random(11), len(events) // 3
    end = max(n for n, event in enumerate(events, 1) if event.startswith(("os.rename", "os.link")))
    return [source.randint(*of) for of in ((1, 8), (third, end - 8), (end - 7, end))]


@pytest.mark.parametrize("kind", ["train", "sweep", "grade"])
def test_what_is_resumed_is_what_an_undisturbed_run_leaves(kind, tmp_path, request):
    if kind == "grade":
        request.getfixturevalue("can_grade")
    events, whole = faults.undisturbed(kind)
    assert len(events) > 20 and whole
    for at in moments(events):
        folder = tmp_path / f"killed at {at}"
        folder.mkdir()
        assert faults.kill("held", kind, folder, at) == events[at - 1]
        assert faults.finals(folder) != whole, "it was killed after its end"
        assert cli.run([*faults.arguments(kind, folder), "--resume"]) == 0
        assert faults.differences(whole, faults.finals(folder)) == [], events[at - 1]


def test_a_look_out_changes_nothing(tmp_path):
    _, watched = faults.undisturbed("train")
    assert cli.run(faults.arguments("train", tmp_path)) == 0
    assert faults.differences(watched, faults.finals(tmp_path)) == []


def test_files_that_differ_are_seen(tmp_path):
    """The comparison itself: another seed gives other files."""
    _, whole = faults.undisturbed("train")
    other = [a if a != "3" else "4" for a in faults.arguments("train", tmp_path)]
    other[other.index("--train-scale") + 1] = "3"
    assert cli.run(other) == 0
    differ = faults.differences(whole, faults.finals(tmp_path))
    assert {"model.safetensors", "run.json"} <= {*differ}
