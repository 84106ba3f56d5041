"""Attention weights: with them, the values of each layer give what the layer put out."""

import math

import pytest
import torch

from lgcourse import InputError, Transformer, embeddings
from lgcourse.model import reading
from lgcourse.model.attention import Attention
from lgcourse.model.reading import attention_weights, operand_share, watch
from lgcourse.tasks import Operator, Step

SCALE = 4
CASES = {
    **{name: (name, {}) for name in embeddings.names()},
    "rpe vectors": ("rpe", {"vectors": True, "clip": 3}),
    "randomized rope": ("randomized", {"around": "rope"}),
    "ideal-sh soft": ("ideal-sh", {"other": "soft"}),
}
ALL = pytest.mark.parametrize("case", CASES)


def settle(model):
    """A learned relation ends with finite cells; bring it there, its strengths stay random."""
    source = torch.Generator().manual_seed(0)
    for position in model.positions:
        for share in (0.0, 0.5, 0.9):
            position.anneal(share, source)


@torch.no_grad()
def outputs(model, tokens):
    """Return what goes into and comes out of each attention layer, in the order of the pass."""
    seen = []
    hooks = [
        layer.register_forward_hook(lambda layer, x, y: seen.append((layer, x[0], y)))
        for layer in model.modules()
        if isinstance(layer, Attention)
    ]
    model.eval()(tokens, SCALE)
    for hook in hooks:
        hook.remove()
    return seen


@torch.no_grad()
def gathered(layer, x, weights):
    """Return out(sum over keys of weight times value), head by head, without the model's code."""
    size = x.shape[2] // layer.heads
    values = x @ layer.project.weight[2 * x.shape[2] :].T  # b k (h d)
    heads = []
    for h in range(layer.heads):
        heads.append(weights[:, h] @ values[:, :, h * size : (h + 1) * size])
    return torch.cat(heads, dim=-1) @ layer.out.weight.T


@pytest.mark.parametrize(
    ("case", "settled"),
    [*((case, False) for case in CASES), ("lbpe", True), ("lbpe-sh", True)],
)
def test_weights_times_values_are_the_output_of_each_layer(case, settled, make_model, make_tokens):
    name, options = CASES[case]
    task, model = make_model(name, options=options)
    if settled:
        settle(model)
    tokens = make_tokens(task, 3, task.length(SCALE))
    weights = attention_weights(model, tokens, SCALE)
    layers = outputs(model, tokens)
    assert weights.shape[:3] == (len(layers), 3, 3)
    for (layer, x, want), found in zip(layers, weights, strict=True):
        torch.testing.assert_close(gathered(layer, x, found), want, atol=1e-5, rtol=1e-5)
    # wrong ones fail: weights of another head, or of another query
    layer, x, want = layers[-1]
    for wrong in (weights[-1].roll(1, dims=1), weights[-1].roll(1, dims=2)):
        assert float((gathered(layer, x, wrong) - want).abs().max()) > 5e-5


@ALL
def test_chosen_queries_have_the_rows_of_the_whole(case, make_model, make_tokens, monkeypatch):
    name, options = CASES[case]
    task, model = make_model(name, options=options)
    tokens = make_tokens(task, 2, task.length(SCALE))
    whole = attention_weights(model, tokens, SCALE)
    torch.testing.assert_close(whole.sum(-1), torch.ones(whole.shape[:-1]))
    later = torch.ones(whole.shape[-2:]).triu(1).bool()
    assert float(whole[..., later].abs().max()) == 0
    monkeypatch.setattr(reading, "TOGETHER", 2 * 3 * tokens.shape[1] * 2)  # two queries at a time
    at = torch.tensor([7, 2, 3, 0, tokens.shape[1] - 1])
    some = attention_weights(model, tokens, SCALE, at)
    torch.testing.assert_close(some, whole[..., at, :], atol=1e-6, rtol=1e-5)


@ALL
def test_the_weights_of_a_long_input_are_those_of_the_whole(
    case, make_model, make_tokens, monkeypatch
):
    name, options = CASES[case]
    task, model = make_model(name, options={**options}, loops=2)
    tokens = make_tokens(task, 2, task.length(SCALE))
    at = torch.tensor([7, 2, 0, tokens.shape[1] - 1])
    whole = attention_weights(model, tokens, SCALE, at)
    monkeypatch.setattr("lgcourse.model.transformer.PIECE", {"cpu": 2 * 5})
    found = attention_weights(model, tokens, SCALE, at)
    torch.testing.assert_close(found, whole, atol=1e-5, rtol=1e-5)


def test_the_equation_in_plain_python():
    torch.manual_seed(3)
    pe = embeddings.build("alibi", width=4, heads=2)
    model = Transformer(5, pe, layers=1, width=4, heads=2).eval()
    tokens = torch.tensor([[0, 3, 1]])
    block = model.blocks[0]
    x = block.attention_norm(model.tokens(tokens))[0]
    rows = block.attention.project(x).tolist()  # l (three h d)
    found = attention_weights(model, tokens, 1)
    for head, slope in enumerate((2**-4, 2**-8)):
        for i in range(3):
            q = rows[i][2 * head : 2 * head + 2]
            powers = []
            for j in range(i + 1):
                k = rows[j][4 + 2 * head : 6 + 2 * head]
                score = sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(2)
                powers.append(math.exp(score - slope * (i - j)))
            want = [p / sum(powers) for p in powers] + [0] * (2 - i)
            assert found[0, 0, head, i].tolist() == pytest.approx(want, abs=1e-6)


def test_blocks_that_are_applied_again_are_layers_of_their_own(make_model, make_tokens):
    task, model = make_model("rope", loops=3)
    tokens = make_tokens(task, 1, 6)
    weights = attention_weights(model, tokens, SCALE)
    assert len(weights) == 6 and not torch.allclose(weights[0], weights[2], atol=1e-3)


def test_the_model_is_left_as_it_was(make_model, make_tokens):
    task, model = make_model("rope", dropout=0.5)
    tokens = make_tokens(task, 1, 6)
    model.train()
    first = attention_weights(model, tokens, SCALE)
    assert model.training and torch.equal(first, attention_weights(model, tokens, SCALE))
    assert not any(module._forward_hooks for module in model.modules())

    def stop(layer, part, weights):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        watch(model, tokens, SCALE, torch.arange(2), stop)
    assert model.training and not any(module._forward_hooks for module in model.modules())
    assert not first.is_inference()


def test_few_weights_are_held_at_once_where_the_sequence_is_long(make_model, make_tokens):
    task, model = make_model("ideal-sh")
    tokens, sizes = make_tokens(task, 2, 40), []
    at = torch.arange(5, 40, 2)
    watch(model, tokens, 9, at, lambda layer, part, weights: sizes.append(weights.shape))
    assert [size[2] for size in sizes] == [18, 18]
    sizes.clear()
    before, reading.TOGETHER = reading.TOGETHER, 4 * 2 * 3 * 40
    try:
        watch(model, tokens, 9, at, lambda layer, part, weights: sizes.append(weights.shape))
    finally:
        reading.TOGETHER = before
    assert [size[2] for size in sizes] == [4, 4, 4, 4, 2] * 2


@pytest.mark.parametrize("at", [[], [6], [-1], [0, 99]])
def test_queries_outside_the_sequence_are_refused(at, make_model, make_tokens):
    task, model = make_model("none")
    tokens = make_tokens(task, 1, 6)
    with pytest.raises(InputError, match=r"positions 0\.\.5"):
        attention_weights(model, tokens, SCALE, torch.tensor(at, dtype=torch.long))


# --- the share of the operands --------------------------------------------------------------------
def share_by_loops(weights, steps, before=1):
    """Return the share, half, first and evenly of each layer, by plain loops."""
    layers, batch, heads = weights.shape[:3]
    on = [[0.0] * heads for _ in range(layers)]
    half, first, evenly = [0.0] * layers, [0.0] * layers, 0.0
    anywhere = {"half": 0.0, "first": 0.0}
    operands = sum(len(step.inputs) for step in steps) * batch
    for step in steps:
        query, reads = step.output - before, set(step.inputs)
        evenly += len(reads) / (query + 1) / len(steps)
        for b in range(batch):
            rows = weights[:, b, :, query, :].tolist()  # layer h k
            for layer in range(layers):
                for h in range(heads):
                    on[layer][h] += sum(rows[layer][h][j] for j in reads) / batch / len(steps)
            for j in step.inputs:
                found = {"half": [], "first": []}
                for layer in range(layers):
                    rest = [max(v for k, v in enumerate(r) if k not in reads) for r in rows[layer]]
                    own = [row[j] for row in rows[layer]]
                    found["half"].append(any(v >= 0.5 for v in own))
                    pairs = zip(own, rest, strict=True)
                    found["first"].append(any(v > most for v, most in pairs))
                    half[layer] += found["half"][-1] / operands
                    first[layer] += found["first"][-1] / operands
                for name, each in found.items():
                    anywhere[name] += any(each) / operands
    return on, half, first, evenly, anywhere


@pytest.mark.parametrize("name", ["none", "rope", "ideal-sh", "cope"])
def test_the_share_is_what_plain_loops_sum(name, make_model, monkeypatch):
    task, model = make_model(name)
    with torch.no_grad():
        model.blocks[0].attention.project.weight *= 2  # clear preferences: no share is 0 or 1
    batch = task.sample(SCALE, 5, torch.Generator().manual_seed(0))
    steps = task.circuit(SCALE)
    monkeypatch.setattr(reading, "TOGETHER", 5 * 3 * batch.tokens.shape[1] * 2)
    share = operand_share(model, batch, steps)
    weights = attention_weights(model, batch.tokens, SCALE)
    on, half, first, evenly, anywhere = share_by_loops(weights, steps)
    for found, want in zip(share.on_operands, on, strict=True):
        assert found == pytest.approx(want, abs=1e-6)
    assert share.half == pytest.approx(half) and share.first == pytest.approx(first)
    assert share.evenly == pytest.approx(evenly)
    assert share.half_anywhere == pytest.approx(anywhere["half"])
    assert share.first_anywhere == pytest.approx(anywhere["first"])
    assert (share.scale, share.samples, share.steps) == (SCALE, 5, len(steps))
    wrong = share_by_loops(weights, steps, before=0)[0]  # the query is not where the output stands
    assert share.on_operands[0] != pytest.approx(wrong[0], abs=1e-3)


def test_a_key_in_two_roles_counts_once():
    model = Transformer(5, embeddings.build("none", width=4, heads=2), 1, 4, 2)
    with torch.no_grad():
        model.blocks[0].attention.project.weight.zero_()
    twice = Step(4, Operator.from_rule("twice", ("x", "y"), lambda x, y: x, range(2)), (1, 1))
    batch = reading.Batch(torch.zeros(3, 5, dtype=torch.long), torch.arange(5) == 4, 1)
    share = operand_share(model, batch, [twice])
    assert share.on_operands == [pytest.approx([0.25, 0.25])] and share.evenly == 0.25


def test_steps_that_read_nothing_have_no_share(make_model, make_tokens):
    task, model = make_model("none")
    batch = task.sample(2, 1, torch.Generator().manual_seed(0))
    nothing = Step(4, Operator.from_rule("one", (), lambda: 1, range(2)), ())
    for steps in ([], [nothing]):
        with pytest.raises(InputError, match="read something"):
            operand_share(model, batch, steps)
