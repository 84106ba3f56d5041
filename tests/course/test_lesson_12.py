"""Does the proof that lesson 12 builds by hand find what the library's certificate finds?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import lgcourse
from lgcourse import tasks
from lgcourse.certify import certify
from lgcourse.embeddings.abacus import runs
from lgcourse.tasks.circuit import Step
from lgcourse.training import Settings, build_model

ROOT = Path(__file__).resolve().parents[2]
LESSON = next((ROOT / "course/lessons").glob("12_*.py"))


def defined(*names, **given):
    """Run the imports and some definitions of the lesson; return their names."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    kept = []
    for node in tree.body:
        targets = [t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]
        wanted = getattr(node, "name", None) in names or set(targets) & {"DIGITS", "LESS"}
        if isinstance(node, (ast.Import, ast.ImportFrom)) or wanted:
            kept.append(node)
    space: dict = {"__name__": "lesson", **given}
    exec(compile(ast.Module(kept, []), LESSON.name, "exec"), space)
    return [space[name] for name in names]


@pytest.fixture(scope="module")
def parity():
    settings = Settings("parity-cot", "ideal-sh", width=16, heads=2, steps=400)
    settings, task, model = build_model(settings)
    lgcourse.fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    return task, model.eval()


def test_the_table_by_hand_is_the_certificates(parity):
    task, model = parity
    _, prove = defined("kinds_of_steps", "prove")
    table, made = prove(model, task), certify(model, task)
    assert made.certified and len(table) == made.tuples == 6
    assert min(table.values()) == pytest.approx(made.margin, abs=1e-6)


def test_a_wrong_model_has_a_negative_margin(parity):
    task, model = parity
    _, prove = defined("kinds_of_steps", "prove")
    with torch.no_grad():
        rows = model.logits.weight
        rows[[0, 1]] = rows[[1, 0]].clone()
    try:
        assert min(prove(model, task).values()) < 0 and not certify(model, task).certified
    finally:
        with torch.no_grad():
            rows[[0, 1]] = rows[[1, 0]].clone()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_kinds_of_steps_are_the_circuit(n):
    (kinds_of_steps,) = defined("kinds_of_steps")
    steps: list[Step] = sorted(tasks.get("parity-cot").circuit(n), key=lambda s: s.output)
    told = [(query, set(reads)) for query, reads, _ in kinds_of_steps(n)]
    assert told == [(step.query, set(step.inputs)) for step in steps]


def test_abacus_by_hand_counts_as_the_library_does():
    (abacus,) = defined("abacus")
    for text in ("29+43=621", "1234", "+1++22="):
        assert abacus(text) == runs(torch.tensor([[c.isdigit() for c in text]]))[0].tolist()


def test_the_task_of_the_capstone_is_what_it_says():
    (differences,) = defined("Differences")
    task = differences()
    for n in (1, 2, 12):
        tasks.check_circuit(task, n)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 10]])
    assert task.answer(tokens, 5).tolist() == [[3, 8, 3, 7, 4]]
