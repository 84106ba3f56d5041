"""Do the ideal relation and the head that lesson 7 builds agree with the library's?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from lgcourse import embeddings, relations, tasks
from lgcourse.embeddings.table import CONSTANT

LESSON = Path(__file__).resolve().parents[2] / "course/lessons/07_ideal_position_embeddings.py"
FUNCTIONS = {"steps_of", "ideal_ids", "attend"}


def built():
    """Return what the lesson defines under these names, without running the rest of it."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    wanted = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in FUNCTIONS]
    for node in tree.body:
        names = [ast.unparse(one) for one in getattr(node, "targets", [])]
        if set(names) & {*("ROLES", "OTHER")}:
            wanted.append(node)
    space: dict = {"torch": torch}
    exec(compile(ast.Module(wanted, []), "lesson", "exec"), space)
    assert set(space) >= FUNCTIONS
    return space


SPACE = built()
TASK = tasks.get("parity-cot")


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_the_ideal_relation_is_the_librarys(n):
    at = torch.arange(2 * n + 1)
    library = relations.build("ideal-sh", TASK, max_scale=9)
    assert torch.equal(SPACE["ideal_ids"](n), library(at, at, n))
    assert library.other == SPACE["OTHER"]
    assert [library.label(k).split()[-1] for k in range(1, 4)] == ["before", "next", "other"]
    assert SPACE["ROLES"][0] in library.label(0)


def test_the_steps_are_those_of_the_task():
    for n in (1, 4, 8):
        mine = [(query, sorted(keys)) for query, keys in SPACE["steps_of"](n)]
        assert mine == [(s.query, sorted(s.inputs)) for s in TASK.circuit(n)]


def test_the_head_attends_as_the_librarys_embedding_does():
    embedding = embeddings.build("ideal-sh", TASK, width=8, heads=2, max_scale=9, other="excluded")
    strengths = [0.7, -0.4, 1.1, 0.2]
    (table,) = [p for p in embedding.parameters() if p.numel() == 2 * len(strengths)]
    with torch.no_grad():
        table.copy_(torch.tensor(strengths).expand(2, 4).reshape(table.shape))
        at = torch.arange(9)
        bias = embedding.bias(at, at, 4)  # h q k
    causal = torch.tril(torch.ones(9, 9)).bool()
    weights = bias.masked_fill(~causal, -torch.inf).softmax(-1)
    ours = SPACE["attend"](SPACE["ideal_ids"](4), [CONSTANT * s for s in strengths])
    for head in weights:
        assert torch.allclose(head, ours, atol=1e-6)
