"""The decoder against a slow version in plain loops, and its causality."""

import math

import pytest
import torch

from lgcourse import InputError, Transformer, embeddings, tasks
from lgcourse.model import generate

NAMES = ["none", "ape-sinusoidal", "ape-learned", "rpe", "rpe-sh", "ideal-sh"]


def model_for(name, layers=2, task=None, **options):
    task = task or tasks.get("copy")
    torch.manual_seed(0)
    pe = embeddings.build(name, task, width=12, heads=3, max_scale=12, **options)
    model = Transformer(len(task.vocabulary), pe, layers, 12, 3)
    with torch.no_grad():
        for parameter in model.positions.parameters():  # tables start at zero: make position count
            parameter.normal_(std=0.5)
    return model.double().eval()


def slow_attention(attention, x, bias):
    """Attention of one sequence with explicit loops over heads, queries and keys."""
    length, width = x.shape
    size = width // attention.heads
    q, k, v = (x @ attention.project.weight.T).split(width, dim=-1)
    rows = torch.zeros(length, width, dtype=x.dtype)
    for h in range(attention.heads):
        part = slice(h * size, (h + 1) * size)
        for i in range(length):
            scores = [
                (q[i, part] @ k[j, part]).item() / math.sqrt(size)
                + (0.0 if bias is None else bias[h, i, j].item())
                for j in range(i + 1)
            ]
            weights = [math.exp(s - max(scores)) for s in scores]
            rows[i, part] = sum(w * v[j, part] for j, w in enumerate(weights)) / sum(weights)
    return rows @ attention.out.weight.T


@pytest.mark.parametrize("name", NAMES)
def test_forward_equals_the_slow_decoder(name):
    model, scale = model_for(name), 4
    tokens = torch.randint(10, (1, 9), generator=torch.Generator().manual_seed(1))
    at = torch.arange(9)
    x = model.embedding.embed(model.tokens(tokens), at)[0]
    for layer, block in enumerate(model.blocks):
        position = model.positions[min(layer, len(model.positions) - 1)]
        bias = position.bias(at, at, scale)
        x = x + slow_attention(block.attention, block.attention_norm(x), bias)
        x = x + block.mlp(block.mlp_norm(x))
    want = model.logits(model.norm(x))
    torch.testing.assert_close(model(tokens, scale)[0], want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_later_tokens_change_nothing_before_them(name):
    model = model_for(name)
    tokens = torch.randint(10, (2, 9), generator=torch.Generator().manual_seed(1))
    changed = tokens.clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % 10
    one, two = model(tokens, 4), model(changed, 4)
    torch.testing.assert_close(one[:, :6], two[:, :6])
    assert not torch.allclose(one[:, 6:], two[:, 6:])


@pytest.mark.parametrize("name", NAMES)
def test_batch_of_one_and_length_one(name):
    model = model_for(name)
    tokens = torch.randint(10, (3, 5), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model(tokens, 2)[:1], model(tokens[:1], 2))
    torch.testing.assert_close(model(tokens, 2)[:, :1], model(tokens[:, :1], 2))


def test_every_layer_of_a_table_has_its_own():
    model = model_for("rpe", layers=3)
    assert len(model.positions) == 3
    assert len({p.table.data_ptr() for p in model.positions}) == 3
    assert len(model_for("ape-learned", layers=3).positions) == 1


def test_the_scale_reaches_the_bias():
    model, tokens = model_for("ideal-sh"), torch.zeros(1, 9, dtype=torch.long)
    tokens[0, 0] = 1
    assert not torch.allclose(model(tokens, 4), model(tokens, 3))
    with pytest.raises(InputError, match="Scale Hint"):
        model(tokens, None)


def test_generation_is_the_greedy_loop():
    model = model_for("rpe")
    prompt = torch.tensor([[1, 2, 3, 10], [4, 4, 4, 10]])
    got = generate(model, prompt, 3, 3)
    for row, start in zip(got.tolist(), prompt.tolist(), strict=True):
        line = start
        for token in row:
            assert token == int(model(torch.tensor([line]), 3)[0, -1].argmax())
            line = [*line, token]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((0, 12, 3), "layers"), ((1, 12, 5), "multiple of heads"), ((1, -4, 2), "width")],
)
def test_bad_sizes_are_named(sizes, message):
    layers, width, heads = sizes
    with pytest.raises(InputError, match=message):
        Transformer(12, embeddings.build("none", width=12, heads=3), layers, width, heads)
