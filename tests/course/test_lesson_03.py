"""Lesson 3: do the layer and the fits that the lesson builds agree with the library's?"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

from lgcourse import relations, theory

LESSON = Path(__file__).resolve().parents[2] / "course/lessons/03_pola.py"


def built(*names):
    """Return what the lesson defines under these names, without running the rest of it."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    wanted = [n for n in tree.body if getattr(n, "name", None) in names]
    assert {node.name for node in wanted} == set(names)
    values = ("TRAIN", "names", "layers")
    wanted += [
        n
        for n in tree.body
        if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", None) in values
    ]
    space: dict = {"torch": torch, "np": np, "relations": relations, "LONGEST": 20}
    exec(compile(ast.Module(wanted, []), LESSON.name, "exec"), space)
    space["TRAIN"], space["LONGEST"] = range(1, 9), 20
    return space


SPACE = built(
    "band", "total", "first", "half", "fading", "numbered", "table", "Layer", "train", "forward",
    "fit", "rows", "descend", "error", "ways_to_name",
)  # fmt: skip
TARGETS = ["band", "total", "first", "half", "fading"]
KINDS = ["none", "ape", "pair", "rpe", "ideal"]
TRAIN, TEST = range(1, 7), range(1, 13)


def both(target, kind):
    """Return the lesson's names and the library's relation for one way to name."""
    name = SPACE["ways_to_name"](SPACE[target])[kind]
    if kind == "pair":
        return name, relations.Table(torch.arange(144).reshape(12, 12))
    if kind == "ideal":
        return name, theory.ideal_relation_of(SPACE[target], 12)
    return name, relations.build(kind, positions=12)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_the_librarys(target, kind):
    name, relation = both(target, kind)
    wanted = SPACE[target]
    weight = SPACE["fit"](name, wanted, TRAIN)
    model, _ = theory.POLA(relation, 1, 1, dtype=torch.float64).fit(wanted, TRAIN)
    made = model.coefficients(12)[:, :, 0, 0]
    for i in range(12):
        for j in range(i + 1):
            assert weight.get(name(i, j), 0) == pytest.approx(made[i, j].item(), abs=1e-12)
    for lengths in (TRAIN, TEST):
        ours = SPACE["error"](weight, name, wanted, lengths)
        assert ours == pytest.approx(model.error(wanted, lengths), abs=1e-12)


@pytest.mark.parametrize("kind", ["none", "ape", "rpe"])
def test_the_forward_pass_is_the_librarys(kind):
    torch.manual_seed(0)
    pola = theory.POLA(relations.build(kind, positions=7), 3, 2)
    torch.nn.init.normal_(pola.weight)
    x = torch.randn(7, 3)
    name = {"none": lambda i, j: 0, "ape": lambda i, j: j, "rpe": lambda i, j: i - j}[kind]
    torch.testing.assert_close(SPACE["forward"](x, pola.weight, name), pola(x[None], 7)[0])


@pytest.mark.parametrize("target", ["band", "half"])
def test_descent_from_zero_is_the_librarys_and_ends_at_the_mean(target):
    C, A = SPACE["rows"](lambda i, j: i - j, SPACE[target], TRAIN, columns=range(12))
    assert C.shape == (sum(n * (n + 1) // 2 for n in TRAIN), 12)
    model = theory.POLA(relations.build("rpe", positions=12), 1, 1, dtype=torch.float64)
    model.fit_gradient(SPACE[target], TRAIN, steps=7)
    ours = SPACE["descend"](C, A, np.zeros(12), steps=7)
    assert ours == pytest.approx(model.weight.detach().flatten().numpy(), abs=1e-12)
    means = SPACE["fit"](lambda i, j: i - j, SPACE[target], TRAIN)
    ended = SPACE["descend"](C, A, np.zeros(12))
    assert ended == pytest.approx(np.array([means.get(k, 0) for k in range(12)]), abs=1e-4)


@pytest.mark.parametrize("kind", ["pair", "rpe"])
def test_training_ends_at_the_fit(kind, capsys):
    SPACE["train"](kind, SPACE["band"])
    layer, name = SPACE["layers"][kind], SPACE["names"][kind]
    weight = SPACE["fit"](name, SPACE["band"], SPACE["TRAIN"])
    made = layer.coefficients(20)[:, :, 0, 0]
    wanted = [[weight.get(name(i, j), 0) if j <= i else 0 for j in range(20)] for i in range(20)]
    torch.testing.assert_close(made.detach(), torch.tensor(wanted).float(), atol=1e-4, rtol=0)
    x = torch.randn(3, 6)
    relation = theory.POLA(layer.relation, 1, 1)
    relation.weight.data.copy_(layer.weight.detach()[:, None, None])
    torch.testing.assert_close(layer(x)[..., None], relation(x[..., None], 6))
