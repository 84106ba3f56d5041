"""The learned relation without a form: its bias is the equation, and it fits without going on."""

import math

import pytest
import torch

import lgcourse
from lgcourse import embeddings, tasks
from lgcourse.errors import InputError


@pytest.mark.parametrize("name, scale", [("lbpe-mlp", None), ("lbpe-mlp-sh", 4)])
def test_the_bias_is_the_equation(name, scale):
    torch.manual_seed(0)
    made = embeddings.build(name, tasks.get("copy"), width=8, heads=2, hidden=5)
    at = torch.arange(6)
    bias = made.bias(at, at, scale)
    inner, outer = made.curve.inner, made.curve.outer
    for i in range(6):
        for j in range(i + 1):
            given = [i / 10, j / 10] + ([0.4] if scale else [])
            hidden = [
                max(0.0, sum(w * x for w, x in zip(row, given, strict=True)) + b)
                for row, b in zip(inner.weight.tolist(), inner.bias.tolist(), strict=True)
            ]
            for head in range(2):
                row = outer.weight[head].tolist()
                value = sum(w * x for w, x in zip(row, hidden, strict=True)) + outer.bias[head]
                want = 8 * math.log(i + 2) * float(value)
                assert float(bias[head, i, j]) == pytest.approx(want, abs=1e-4)


def test_several_sizes_are_inputs_of_their_own():
    made = embeddings.build("lbpe-mlp-sh", tasks.get("addition-unequal"), width=8, heads=2)
    at = torch.arange(5)
    assert made.curve.inner.in_features == 4
    assert not torch.equal(made.bias(at, at, (3, 4)), made.bias(at, at, (4, 3)))
    with pytest.raises(InputError, match="Scale Hint"):
        made.bias(at, at, None)


def test_it_fits_short_inputs_and_does_not_go_on():
    task = tasks.get("copy")
    torch.manual_seed(0)
    made = embeddings.build("lbpe-mlp-sh", task, width=32, heads=4)
    model = lgcourse.Transformer(len(task.vocabulary), made, 1, 32, 4)
    lgcourse.fit(model, task, range(1, 7), steps=700, seed=0, device="cpu")
    scores = lgcourse.evaluate(model, task, [6, 60], 50, 0).exact_match
    assert scores[6] >= 0.9 and scores[60] <= 0.05
