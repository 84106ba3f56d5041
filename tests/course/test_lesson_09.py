"""Does lesson 9 name operands, lie and measure as the library does?"""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import lgcourse
from lgcourse import embeddings, relations, tasks
from lgcourse.training import seeded

ROOT = Path(__file__).resolve().parents[2]
LESSON = next((ROOT / "course/lessons").glob("09_*.py"))


def defined(*names, **given):
    """Run some definitions of the lesson; return them."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    kept = []
    for node in tree.body:
        targets = [getattr(target, "id", None) for target in getattr(node, "targets", [])]
        if getattr(node, "name", None) in names or set(targets) & set(names):
            kept.append(node)
    space: dict = {"torch": torch, "replace": replace, **given}
    exec(compile(ast.Module(kept, []), LESSON.name, "exec"), space)
    return [space[name] for name in names]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 20])
def test_the_names_by_hand_are_the_librarys_relation(n):
    _, hinted_name = defined("NAMES", "hinted_name")
    task = tasks.get("addition")
    phi = relations.build("ideal-sh", task, max_scale=20)
    at = torch.arange(task.length(n))
    ids = phi(at, at, n).tolist()
    first = 2 * n + 1
    partners: dict[tuple[bool, str], set[int]] = {}
    for i in range(len(at)):
        for j in range(i + 1):
            name = hinted_name(i, j, n)
            assert (name == "other") == (ids[i][j] == phi.other)
            partners.setdefault((i == first, name), set()).add(ids[i][j])
    named = {key: found for key, found in partners.items() if key[1] != "other"}
    assert all(len(found) == 1 for found in named.values())
    assert len(set.union(*named.values())) == len(named)


def test_no_lie_is_the_truth():
    lies, *_ = defined("LIES", "another", "SOURCE")
    for n in (1, 5, 10, 29, 30):
        for _ in range(100):
            other = lies["n of another sample"](n)
            assert 1 <= other <= 30 and other != n
    assert [lie(7) for lie in list(lies.values())[:4]] == [7, 8, 6, 10]


def test_the_liar_changes_the_hint_alone():
    (liar,) = defined("Liar")
    task = tasks.get("addition")
    told = liar(task)
    hints = set()
    for seed in range(20):
        batch = told.sample(6, 4, torch.Generator().manual_seed(seed))
        true = task.sample(6, 4, torch.Generator().manual_seed(seed))
        assert torch.equal(batch.tokens, true.tokens) and torch.equal(batch.answer, true.answer)
        hints.add(batch.scale)
    assert len(hints) > 5 and hints <= set(range(1, 11))
    assert told.length(6) == task.length(6)


def test_told_measures_what_evaluate_measures():
    (told,) = defined("told")
    task = tasks.get("copy")
    embedding = embeddings.build("ideal-sh", task, width=32, heads=2, max_scale=4)
    with seeded(0, "weights"):
        model = lgcourse.Transformer(len(task.vocabulary), embedding, 1, 32, 2)
    lgcourse.fit(model, task, [1, 2], steps=15, seed=0, batch=32, device="cpu")
    batch = task.sample(3, 200, torch.Generator().manual_seed(3))
    fixed = SimpleNamespace(sample=lambda *_: batch)
    share = lgcourse.evaluate(model, fixed, [3], samples=200).exact_match[3]
    assert told(model, task, 3, 3) == pytest.approx(share) and 0 < share < 1
