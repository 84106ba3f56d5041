"""Lesson 4: are the counts and targets that the lesson builds those of the library?"""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from lgcourse import theory
from lgcourse.grading.bank.e04 import reference_represents

LESSON = (
    Path(__file__).resolve().parents[2] / "course/lessons/04_linear_representation_complexity.py"
)
NAMES = (
    "prefix", "weighted", "copy", "shift", "half", "band", "decay", "random", "turning", "reverse",
    "weekday", "fresh", "units",
)  # fmt: skip
FUNCTIONS = (*NAMES, "key", "operators", "stack", "rank", "all_relations", "can_represent")


def built():
    """Return what the lesson defines, without running the rest of it."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    functions = [n for n in tree.body if getattr(n, "name", None) in FUNCTIONS]
    assert {node.name for node in functions} == set(FUNCTIONS)
    tables = [
        n
        for n in tree.body
        if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", None) in ("table", "FOUR")
    ]
    assert len(tables) == 2
    space: dict = {"np": np}
    exec(compile(ast.Module(tables + functions, []), LESSON.name, "exec"), space)
    return space


SPACE = built()


@pytest.mark.parametrize("name", NAMES)
def test_both_counts_are_the_librarys(name):
    target = SPACE[name]
    curves = [theory.lrc_curve(target, 9, kind) for kind in ("operators", "rank")]
    for n in range(1, 10):
        assert len(SPACE["operators"](target, n)) == curves[0][n]
        assert SPACE["rank"](target, n) == curves[1][n]


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ("band", "band"),
        ("decay", "decay"),
        ("weighted", "position-weighted"),
        ("half", "half"),
        ("turning", "turning"),
        ("fresh", "fresh-matrices"),
    ],
)
def test_targets_of_the_same_kind_have_the_same_operators(ours, theirs):
    one, other = (theory.as_target(t).dense(9) for t in (SPACE[ours], theirs))
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("pairs, ways", [(1, 2), (2, 5), (3, 15), (4, 52), (6, 877)])
def test_all_ways_to_name_are_there_once(pairs, ways):
    """With "other" as one more member they are the partitions of a set: the Bell numbers."""
    found = [tuple(ids) for ids in SPACE["all_relations"](pairs)]
    assert len(found) == len(set(found)) == ways
    if pairs <= 4:  # every assignment of names is one of these up to the names of the groups
        for ids in product(range(pairs + 1), repeat=pairs):
            known = {0: 0}
            assert tuple(known.setdefault(k, len(known)) for k in ids) in found


@pytest.mark.parametrize("name", ["copy", "half", "band", "weighted", "reverse"])
def test_a_way_to_name_can_represent_a_target_if_the_exercise_says_so(name):
    i, j = torch.tril_indices(3, 3)
    operators = torch.from_numpy(np.array(theory.as_target(SPACE[name]).dense(3)))
    wanted = [SPACE[name](*pair, 3) for pair in zip(i.tolist(), j.tolist(), strict=True)]
    said = set()
    for ids in SPACE["all_relations"](6):
        square = torch.zeros(3, 3, dtype=torch.long)
        square[i, j] = torch.tensor(ids)
        said.add(SPACE["can_represent"](ids, wanted))
        assert SPACE["can_represent"](ids, wanted) == reference_represents(square, operators, 0)
    assert said == {True, False}
