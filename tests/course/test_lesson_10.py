"""Does lesson 10 build what the library ships, and is its task what it says?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from lgcourse import tasks
from lgcourse.embeddings.learned_relation import LearnedRelation, candidate_forms
from lgcourse.relations import Form

ROOT = Path(__file__).resolve().parents[2]
LESSON = next((ROOT / "course/lessons").glob("10_*.py"))


def defined(*names, **given):
    """Run the imports and some definitions of the lesson; return their names."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    kept = [
        node
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom)) or getattr(node, "name", None) in names
    ]
    space: dict = {"__name__": "lesson", **given}
    exec(compile(ast.Module(kept, []), LESSON.name, "exec"), space)
    return [space[name] for name in names]


def test_the_bias_built_by_hand_is_the_librarys():
    (soft_bias,) = defined("soft_bias")
    torch.manual_seed(0)
    made, source = LearnedRelation(candidate_forms(), heads=3), torch.Generator().manual_seed(0)
    with torch.no_grad():
        made.table.normal_(generator=source)
        made.gates.normal_(generator=source)
    made.anneal(0.2, source)
    made.eval()
    at, n = torch.arange(12), 4
    causal = at[None, :] <= at[:, None]
    for head in range(3):
        ours = soft_bias(
            made.gates[head], made.table[head], made.temperature, made.forms, at, at, n
        )
        theirs = made.bias(at, at, n)[head]
        torch.testing.assert_close(ours[causal], theirs[causal], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("n", [1, 3, 10, 20])
def test_mirror_is_a_task_and_its_operands_lie_on_one_line(n):
    (mirror,) = defined("Mirror", W=20, DIGITS=tuple(range(10)))
    task = mirror()
    tasks.check_circuit(task, n)
    assert task.length(n) == 20 + 1 + n
    assert {Form(1, 1)(s.query, s.inputs[0], n) for s in task.circuit(n)} == {39}
    batch = task.sample(n, 4, torch.Generator().manual_seed(n))
    for row in batch.tokens.tolist():
        digits = row[20 - n : 20]
        assert row[21:] == digits[::-1] and row[: 20 - n] == [0] * (20 - n)
