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


def decoder(name="rpe", layers=2, **options):
    """Return a small model with options of the decoder, its tables randomised."""
    torch.manual_seed(0)
    pe = embeddings.build(name, tasks.get("copy"), width=12, heads=3, max_scale=12)
    model = Transformer(11, pe, layers, 12, 3, **options)
    with torch.no_grad():
        for parameter in model.positions.parameters():
            parameter.normal_(std=0.5)
    return model.double().eval()


def attended(model, layer, x, scale):
    """Attention of one layer on one sequence, from its weights."""
    at = torch.arange(len(x))
    position = model.positions[min(layer, len(model.positions) - 1)]
    return slow_attention(model.blocks[layer].attention, x, position.bias(at, at, scale))


def test_post_norm_normalises_the_sums_and_nothing_else():
    model, tokens = decoder(norm="post"), torch.arange(9)[None]
    x = model.tokens(tokens)[0]
    for layer, block in enumerate(model.blocks):
        x = block.attention_norm(x + attended(model, layer, x, 4))
        x = block.mlp_norm(x + block.mlp(x))
    torch.testing.assert_close(model(tokens, 4)[0], model.logits(x))
    assert not torch.allclose(decoder()(tokens, 4), model(tokens, 4), atol=0.1)


def test_loops_apply_the_same_blocks_again_and_share_their_embeddings():
    model, tokens = decoder(loops=3), torch.arange(9)[None]
    assert len(model.blocks) == len(model.positions) == 2
    x = model.tokens(tokens)[0]
    for layer in (0, 1, 0, 1, 0, 1):
        block = model.blocks[layer]
        x = x + attended(model, layer, block.attention_norm(x), 4)
        x = x + block.mlp(block.mlp_norm(x))
    torch.testing.assert_close(model(tokens, 4)[0], model.logits(model.norm(x)))
    count = sum(p.numel() for p in model.parameters())
    assert count == sum(p.numel() for p in decoder().parameters())


def test_tied_logits_are_products_with_the_token_vectors():
    model, tokens = decoder(tied=True), torch.arange(9)[None]
    assert model.logits is None and not any("logits" in name for name in model.state_dict())
    seen = []
    model.norm.register_forward_hook(lambda module, inputs, output: seen.append(output))
    logits = model(tokens, 4)
    for token in range(11):
        want = (seen[0] * model.tokens.weight[token]).sum(-1) / math.sqrt(12)
        torch.testing.assert_close(logits[..., token], want)
    logits.sum().backward()
    assert model.tokens.weight.grad.abs().sum() > 0


def test_dropout_acts_in_training_only_and_keeps_the_mean():
    model, tokens = decoder("none", layers=1, dropout=0.25), torch.arange(9)[None]
    quiet = decoder("none", layers=1)
    torch.testing.assert_close(model(tokens, 4), quiet(tokens, 4))
    model.train()
    assert not torch.allclose(model(tokens, 4), model(tokens, 4))
    drop, ones = model._drop(), torch.ones(100_000)
    kept = drop(ones)
    assert set(kept.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert (kept == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert not torch.equal(kept, drop(ones))


def test_dropout_repeats_resumes_and_depends_on_the_seed():
    tokens = torch.arange(9)[None]
    one, two = (decoder(dropout=0.5).train() for _ in range(2))
    torch.rand(5)  # the global source plays no part
    assert torch.equal(one(tokens, 4), two(tokens, 4))
    two.load_state_dict(one.state_dict())
    after = one(tokens, 4)
    assert torch.equal(after, two(tokens, 4))
    torch.manual_seed(1)
    other = Transformer(11, embeddings.build("none", width=12, heads=3), 1, 12, 3, dropout=0.5)
    assert int(other.draws.count) != int(decoder(dropout=0.5).draws.count)


def test_defaults_leave_weights_and_names_as_they_were():
    """Options that are off must neither draw random numbers nor add parameters or buffers."""
    torch.manual_seed(3)
    model = Transformer(11, embeddings.build("none", width=8, heads=2), 2, 8, 2)
    torch.manual_seed(3)
    tokens = torch.nn.Embedding(11, 8)
    names = {"tokens.weight", "norm.weight", "norm.bias", "logits.weight"}
    for layer in range(2):
        for linear in ((8, 24), (8, 8), (8, 32), (32, 8)):
            torch.nn.Linear(*linear, bias=linear[1] in (32,) or linear[0] == 32)
        for part in ("attention_norm", "mlp_norm", "mlp.0", "mlp.2"):
            names |= {f"blocks.{layer}.{part}.{kind}" for kind in ("weight", "bias")}
        names |= {f"blocks.{layer}.attention.{part}.weight" for part in ("project", "out")}
    torch.nn.Linear(8, 11, bias=False)
    torch.nn.init.normal_(tokens.weight)  # the second draw is the one that counts
    assert torch.equal(model.tokens.weight, tokens.weight)
    assert set(model.state_dict()) == names


def test_embeddings_keep_the_weights_that_they_were_made_with():
    pe = embeddings.build("fire", width=12, heads=3)
    before = [p.clone() for p in pe.parameters()]
    model = Transformer(11, pe, 2, 12, 3)
    for position in model.positions:
        assert all(map(torch.equal, position.parameters(), before))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "prae"}, "unknown norm 'prae'; did you mean 'pre'"),
        ({"loops": 0}, "loops must be a whole number of at least 1"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": -0.1}, "dropout"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        Transformer(12, embeddings.build("none", width=12, heads=3), 1, 12, 3, **options)


@pytest.mark.parametrize("pe", ["rope", "alibi", "ideal-sh", "cope", "randomized", "lbpe-sh"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_last_logits_alone_are_those_of_the_whole_pass(pe, norm):
    task = tasks.get("addition")
    torch.manual_seed(0)
    embedding = embeddings.build(pe, task, width=16, heads=2, max_scale=5)
    model = Transformer(len(task.vocabulary), embedding, 2, 16, 2, norm=norm).eval()
    for parameter in model.positions.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    tokens = task.sample(5, 3, torch.Generator().manual_seed(1)).tokens
    whole = model(tokens, 5)
    for last in (1, 6, tokens.shape[1]):
        torch.testing.assert_close(model(tokens, 5, last=last), whole[:, -last:])
    for wrong in (0, tokens.shape[1] + 1):
        with pytest.raises(InputError, match="last"):
            model(tokens, 5, last=wrong)


def test_a_long_input_goes_through_the_blocks_in_pieces_without_gradients_only(monkeypatch):
    monkeypatch.setattr("lgcourse.model.transformer.PIECE", {"cpu": 12})
    model = Transformer(12, embeddings.build("rope", width=16, heads=2), 2, 16, 2).eval()
    seen = []
    for block in model.blocks:
        block.register_forward_hook(lambda block, inputs, output: seen.append(output.shape[:2]))
    tokens = torch.randint(12, (2, 15), generator=torch.Generator().manual_seed(0))
    whole = model(tokens, None)
    assert seen == [(2, 15)] * 2
    for last, sizes in ((15, [6, 6, 3]), (5, [1, 2, 3])):  # of the last block
        seen.clear()
        with torch.no_grad():
            part = model(tokens, None, last=last)
        torch.testing.assert_close(part, whole[:, 15 - last :])
        blocks = zip((6, 6, 3), sizes, strict=True)
        assert [size for _, size in seen] == [size for both in blocks for size in both]
    seen.clear()
    with torch.no_grad():
        model(tokens[:, :12], None)
    assert len(seen) == 2  # short enough, whatever the batch


def test_positions_that_are_drawn_once_per_pass_serve_all_pieces(monkeypatch):
    """Without a task nothing tells the length of the sequence but the sequence."""
    torch.manual_seed(0)
    embedding = embeddings.build("randomized", width=16, heads=2, positions=40)
    model = Transformer(12, embedding, 2, 16, 2).eval()
    tokens = torch.randint(12, (1, 33))
    whole = model(tokens, None)
    monkeypatch.setattr("lgcourse.model.transformer.PIECE", {"cpu": 8})
    with torch.no_grad():
        torch.testing.assert_close(model(tokens, None), whole)
