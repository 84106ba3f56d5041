"""Do the fit, the error and the count that lesson 5 builds agree with the library's?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from lgcourse import relations, theory

LESSON = Path(__file__).resolve().parents[2] / "course/lessons/05_limits_of_position_embeddings.py"


def built(*names):
    """Return what the lesson defines under these names, without running the rest of it."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    wanted = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    assert {node.name for node in wanted} == set(names)
    space: dict = {"torch": torch}
    exec(compile(ast.Module(wanted, []), "lesson", "exec"), space)
    return space


SPACE = built(
    "half", "weighted", "band", "decay", "pairs", "operators", "fit", "error", "ideal", "twin"
)  # fmt: skip
TARGETS = ["half", "weighted", "band", "decay", "twin"]


def ours_and_the_librarys(name):
    target = SPACE[name]
    return {
        "none": (lambda i, j, n: 0, relations.build("none", positions=16)),
        "rpe": (lambda i, j, n: i - j, relations.build("rpe", positions=16)),
        "ideal": (SPACE["ideal"](target), theory.ideal_relation_of(target, 16)),
    }


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("relation", ["none", "rpe", "ideal"])
def test_the_fit_is_the_librarys(name, relation):
    target, (mine, library) = SPACE[name], ours_and_the_librarys(name)[relation]
    train, test = range(1, 7), range(1, 13)
    weights = SPACE["fit"](mine, target, train)
    model, _ = theory.POLA(library, 1, 1, dtype=torch.float64).fit(target, train)
    assert SPACE["error"](weights, mine, target, test) == pytest.approx(model.error(target, test))
    made = model.coefficients(12)[:, :, 0, 0]
    for i, j, n in SPACE["pairs"]([12]):
        assert weights.get(mine(i, j, n), 0) == pytest.approx(made[i, j].item())


@pytest.mark.parametrize("name", TARGETS)
def test_the_count_of_operators_is_lrc(name):
    for n in (1, 5, 9):
        counted = len(SPACE["operators"](SPACE[name], range(1, n + 1)) - {0})
        assert counted == theory.lrc(SPACE[name], n)
