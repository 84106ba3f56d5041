"""The bound on rounding against measured errors, and its logits against the model."""

import copy

import pytest
import torch

from lgcourse import Transformer, embeddings, tasks
from lgcourse.certify.rounding import StepBound
from lgcourse.certify.signatures import Setting, signatures
from lgcourse.certify.steps import logits_of
from lgcourse.certify.tuples import tuples


def build(norm, tied, size=1.0, seed=0):
    task = tasks.get("addition")
    torch.manual_seed(seed)
    pe = embeddings.build("ideal-sh", task, width=24, heads=3)
    model = Transformer(len(task.vocabulary), pe, 1, 24, 3, norm=norm, tied=tied)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter * size + 0.1 * torch.randn_like(parameter))
    return task, model.eval()


def differences(logits, expected):
    return logits.gather(1, expected[:, None]) - logits


@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(("norm", "tied"), [("pre", False), ("post", True), ("pre", True)])
def test_bound_covers_float32_and_not_bfloat16(norm, tied, size):
    task, model = build(norm, tied, size)
    setting = Setting.of(task, [task.terms()] * 3)
    exact = copy.deepcopy(model).double()
    bound = StepBound(exact)
    kind = signatures(setting)[-1]
    table = tuples(setting, kind.shape, 30_000)
    some = torch.randperm(len(table.tokens))[:500]
    tokens, expected = table.tokens[some], table.expected[some]
    query = torch.tensor([kind.positions[kind.shape.query]])
    bias = exact.embedding.bias(query, torch.arange(int(query) + 1), kind.scale).detach()[:, 0]
    biases = [
        bias[h, [kind.positions[p] for p, _ in reads]] for h, reads in enumerate(kind.shape.reads)
    ]
    logits, errors = bound(kind.shape, tokens, biases, expected)
    real = logits_of(exact, task, kind, tokens)
    torch.testing.assert_close(logits, real, rtol=1e-9, atol=1e-9)

    def off(dtype):
        low = copy.deepcopy(model).to(dtype)
        given = logits_of(low, task, kind, tokens).double()
        return (differences(given, expected) - differences(real, expected)).abs()

    assert bool((off(torch.float32) <= errors).all())
    assert float(off(torch.float32).max()) > 0
    assert not bool((off(torch.bfloat16) <= errors).all()), "a bound that covers this is vacuous"
