"""Crystallising a soft relation: the frozen factor, what is read, and the report."""

import copy
import math

import pytest
import torch

from lgcourse import InputError, Transformer, embeddings, tasks
from lgcourse.certify import certify, crystallise
from lgcourse.training import Settings, build_model, fit, generator


@pytest.fixture(scope="module")
def soft():
    settings = Settings("copy", "ideal-sh", width=16, heads=2, steps=300, other="soft")
    settings, task, model = build_model(settings)
    fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    return task, model.eval()


def test_the_crystal_of_a_soft_model_is_certified(soft):
    task, model = soft
    made = crystallise(model, task, range(1, 11))
    assert certify(made.model, task).certified
    assert max(made.changed.values()) == 0 and len(made.lines()) == 11


def test_the_bias_is_the_soft_one_of_the_longest_input(soft):
    task, model = soft
    made = crystallise(model, task, range(1, 11))
    query, key = torch.tensor([19]), torch.arange(20)  # predicts the last of 21 tokens
    before, after = (m.embedding.bias(query, key, 10) for m in (model, made.model))
    kept = torch.isfinite(after)
    assert kept[0, 0].nonzero()[:, 0].tolist() == [9, 19]  # x10, and the query itself
    torch.testing.assert_close(after[kept], before[kept])
    assert made.factor == pytest.approx(8 * math.log(21))


def test_the_report_counts_what_changed(soft):
    task, model = soft
    model = copy.deepcopy(model)
    with torch.no_grad():  # other keys now weigh as much as the operand
        model.embedding.table[:] = 0.0
    made = crystallise(model, task, [4, 6], seed=3)
    for scale in (4, 6):
        batch = task.sample(scale, 64, generator(3, f"crystal at {scale}"))
        at = batch.answer.nonzero()[:, 0] - 1
        with torch.no_grad():
            logits = [m(batch.tokens, scale)[:, at] for m in (model, made.model)]
        first, second = (x.argmax(-1).flatten().tolist() for x in logits)
        share = sum(a != b for a, b in zip(first, second, strict=True)) / len(first)
        assert made.changed[scale] == pytest.approx(share) and share > 0
        assert made.moved[scale] == pytest.approx(float((logits[0] - logits[1]).abs().max()))


def test_a_learned_relation_keeps_its_strong_cells():
    task = tasks.get("copy")
    pe = embeddings.build("lbpe-sh", task, width=16, heads=2)
    with torch.no_grad():
        pe.gates.zero_()
        pe.table[0, 0, 3] = 12.0  # strength 12 / number of forms = 1
        pe.table[1, 1, 2] = 0.5  # weak: 8 times strength is 1/3
    model = Transformer(len(task.vocabulary), pe, 1, 16, 2)
    strength = pe.strength()[0, 0, 3].item()
    made = crystallise(model, task, range(1, 11))
    hard = made.model.embedding
    assert hard.cells(0) == [(pe.forms[0], 3 - pe.window)] and hard.cells(1) == []
    assert 27 * hard.strength()[0, 0, 3].item() == pytest.approx(made.factor * strength)
    assert pe.named_terms() is None and hard.named_terms() is not None


def test_what_cannot_be_crystallised(soft):
    task, model = soft
    hard = crystallise(model, task, [3]).model
    with pytest.raises(InputError, match="no soft relation"):
        crystallise(hard, task, [3])
    with pytest.raises(InputError, match="train_scales"):
        crystallise(model, task, [])
    pe = embeddings.build("rpe-sh", task, width=16, heads=2, other="soft")
    other = Transformer(len(task.vocabulary), pe, 1, 16, 2)
    assert crystallise(other, task, [3]).model.embedding.other == "excluded"
