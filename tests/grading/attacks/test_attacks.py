"""Is hostile code graded to its honest points, and is everybody else in the batch unharmed?"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

import lgcourse
from lgcourse.grading import Settings, batch, questions
from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.grader import Grader
from lgcourse.grading.sandbox.parent import UIDS, Limits
from tests.grading.attacks.hostile import ATTACKS, CHANNELS, FOUND, STEP

SETTINGS = Settings(seed=5, limits=Limits(2.0, 1024))
HONEST = (
    "import torch\ndef exact_match(guess, target):\n    return (guess == target).all(dim=1)\n"
    + STEP
)
VISIBLE = [case[0].tolist() for cases in questions(1)[0].cases(0).values() for case in cases]


def in_force(facts):
    """Which protections hold, by the names that attacks use, from what a child has read back."""
    return {
        "files": not facts["readable"],
        "alone": facts["alone"],
        "network": not facts["interfaces"],
        "memory": 0 < facts["memory"] < 8 << 30,
        "file size": 0 < facts["file size"] <= 64 << 20,
        "processes": 0 < facts["processes"] <= 200 and facts["uid"] != 0,
    }


@pytest.fixture(scope="module")
def protections():
    try:
        with Grader(SETTINGS) as grader:
            return in_force(grader.zygote().facts)
    except CannotGrade as why:
        pytest.skip(f"no process for student code here: {why}")


def notebook(cells):
    made = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": []} for c in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture(scope="module")
def results(protections, tmp_path_factory):
    """All attacks in one batch, an honest submission after every tenth."""
    folder = tmp_path_factory.mktemp("class")
    place = f"PLACE = {str(Path(lgcourse.__file__).parents[1])!r}\nVISIBLE = {VISIBLE!r}"
    for number, (name, attack) in enumerate(ATTACKS.items()):
        if all(protections[need] for need in attack.needs):
            (folder / f"{number:03d} {name.replace('/', ' ')}.ipynb").write_text(
                notebook([place, *attack.cells])
            )
        if number % 10 == 0:
            (folder / f"{number:03d} z honest.ipynb").write_text(notebook([HONEST]))
    said = []
    rows = batch.grade([str(folder)], SETTINGS, jobs=2, say=said.append)
    return {row["id"].split(" ", 1)[1]: row for row in rows if "honest" not in row["id"]}, [
        row for row in rows if "honest" in row["id"]
    ]


def test_there_are_many_attacks():
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_earns_what_it_honestly_earns(name, results, protections):
    off = [need for need in ATTACKS[name].needs if not protections[need]]
    if off:
        pytest.skip(f"not tried: not in force here: {', '.join(off)}")
    row = results[0][name.replace("/", " ")]
    found = {q["name"]: (q["score"], q["outcome"], q["message"]) for q in row["questions"]}
    assert row["status"] == "graded", found
    assert found["exact_match"][0] == 0, found
    assert row["score"] == ATTACKS[name].points, (found, row["notes"])


def test_the_honest_ones_among_them_get_their_points(results):
    assert len(results[1]) >= 4
    assert [row["score"] for row in results[1]] == [5] * len(results[1])


def test_a_submission_leaves_no_notes_for_the_next_one(protections, tmp_path):
    if not protections["alone"]:
        pytest.skip("not tried: not in force here: alone")
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.ipynb").write_text(notebook(["import torch", CHANNELS, FOUND, STEP]))
    rows = batch.grade([str(tmp_path)], SETTINGS, say=str)
    texts = [row["questions"][0]["message"] for row in rows]
    assert [row["score"] for row in rows] == [5, 5, 5], texts


def test_nothing_is_left_behind(results):
    assert not [p for p in Path("/proc").glob("[0-9]*") if _uid(p) in UIDS]
    assert not Path("/tmp/lgcourse-was-here").exists()
    assert not (Path(lgcourse.__file__).parents[1] / "stolen.txt").exists()
    assert torch.equal(torch.ones(1), torch.ones(1)) and not torch.equal(
        torch.ones(1), torch.zeros(1)
    )


def _uid(process):
    try:
        return os.stat(process).st_uid
    except OSError:
        return None
