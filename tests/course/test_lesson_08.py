"""Does lesson 8 predict by hand what the library predicts?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from lgcourse import relations, tasks, theory

ROOT = Path(__file__).resolve().parents[2]
LESSON = next((ROOT / "course/lessons").glob("08_*.py"))
FUNCTIONS = ("names_at", "observe", "learn", "share_found")


def by_hand():
    """Run the functions of the lesson; return the last of them."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if getattr(node, "name", None) in FUNCTIONS]
    assert len(kept) == len(FUNCTIONS)
    space: dict = {"torch": torch}
    exec(compile(ast.Module(kept, []), LESSON.name, "exec"), space)
    return space["share_found"]


@pytest.mark.parametrize("name", ["copy", "shift", "reverse", "interleave"])
@pytest.mark.parametrize("pe", ["none", "ape", "rpe", "t5", "ape-sh", "rpe-sh", "ideal-sh"])
def test_the_share_by_hand_is_the_librarys(name, pe):
    task, share_found = tasks.get(name), by_hand()
    phi = relations.build(pe, task, max_scale=12)
    for train, test in ((range(1, 6), 8), (range(3, 5), 12), ([2, 6], 4), ([1], 2), ([2], 3)):
        said = theory.predict(task, phi, train, [test])
        assert share_found(task, phi, train, test) == pytest.approx(said.resolvable[test])


def test_some_of_these_shares_lie_between_0_and_1():
    reverse = tasks.get("reverse")
    phi = relations.build("rpe", reverse, max_scale=12)
    assert by_hand()(reverse, phi, [2], 3) == pytest.approx(1 / 3)
