"""Greedy generation with and without a cache, and its equality with teacher forcing."""

import pytest
import torch

from lgcourse import InputError, Transformer, embeddings, evaluate, fit
from lgcourse.model import Cache, generate, next_tokens
from lgcourse.training import Settings, build_model


@pytest.mark.parametrize("name", ["rpe", "ideal-sh", "cope", "randomized", "abacus", "coupled"])
@pytest.mark.parametrize("loops", [1, 2])
def test_generation_with_a_cache_writes_the_same_tokens(name, loops, make_model, make_tokens):
    task, model = make_model(name, loops=loops)
    prompt = make_tokens(task, 3, task.prompt_length(6))
    count = task.answer_length(6)
    written = generate(model, prompt, 6, count)
    assert torch.equal(written, generate(model, prompt, 6, count, cache=False))
    assert len(written.unique()) > 2  # not one token for ever
    line = prompt
    for _ in range(count):
        line = torch.cat([line, model(line, 6)[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert torch.equal(written, line[:, prompt.shape[1] :])


def test_nothing_to_write():
    model = Transformer(12, embeddings.build("none", width=8, heads=2), 1, 8, 2)
    assert generate(model, torch.zeros(2, 3, dtype=torch.long), 1, 0).shape == (2, 0)


@pytest.mark.parametrize("name", ["none", "ideal-sh"])
@pytest.mark.parametrize("together", [7, 100, 10_000])
def test_next_tokens_are_the_arg_max_whatever_the_blocks(
    name, together, make_model, make_tokens, monkeypatch
):
    task, model = make_model(name)
    tokens = make_tokens(task, 5, task.length(12))
    monkeypatch.setattr("lgcourse.model.generation.TOGETHER", together)
    assert torch.equal(next_tokens(model, tokens, 12), model(tokens, 12).argmax(-1))


@torch.no_grad()
def test_a_cache_says_what_does_not_fit(make_model):
    _, model = make_model("none")
    cache = Cache()
    model(torch.zeros(2, 3, dtype=torch.long), 4, cache)
    with pytest.raises(InputError, match="holds tokens of scale 4, got scale 5"):
        model(torch.zeros(2, 1, dtype=torch.long), 5, cache)
    with pytest.raises(InputError, match="holds 2 sequences, got 3"):
        model(torch.zeros(3, 1, dtype=torch.long), 4, cache)
    with pytest.raises(InputError, match="no gradients"), torch.enable_grad():
        model(torch.zeros(2, 1, dtype=torch.long), 4, Cache())
    assert cache.length == 3


def test_a_cached_step_reads_the_named_keys_only(make_model, make_tokens, monkeypatch):
    """Spoil all cached keys and values that no later query names: nothing may change."""
    task, model = make_model("ideal-sh", layers=1)
    scale = 40
    tokens = make_tokens(task, 1, task.length(scale))
    monkeypatch.setattr("lgcourse.model.paths.LONG", 0)
    monkeypatch.setattr("lgcourse.model.paths.FEW", 1)
    start = task.prompt_length(scale) + 20
    query = torch.arange(start, tokens.shape[1])
    read = set(model.embedding.named(query, scale)[0].flatten().tolist())
    unread = [p for p in range(1, start) if p not in read]  # empty slots may look at 0
    assert unread and len(read) > len(query)
    with torch.no_grad():
        want = model(tokens, scale)[:, start:]
        cache = Cache(capacity=tokens.shape[1])
        model(tokens[:, :start], scale, cache)
        for room in ("k", "v"):
            cache._rooms[0, room][:, unread] = float("nan")
        got = [model(tokens[:, p : p + 1], scale, cache) for p in query.tolist()]
    torch.testing.assert_close(torch.cat(got, dim=1), want, atol=1e-5, rtol=1e-5)


def test_named_keys_are_asked_for_once_per_many_steps(make_model, make_tokens, monkeypatch):
    task, model = make_model("ideal-sh", layers=1)
    kind, asked = type(model.embedding), []
    named = kind.named

    def counted(self, query, scale):
        asked.append(len(query))
        return named(self, query, scale)

    monkeypatch.setattr(kind, "named", counted)
    monkeypatch.setattr("lgcourse.model.cache.AHEAD", 16)
    monkeypatch.setattr("lgcourse.model.paths.LONG", 0)
    monkeypatch.setattr("lgcourse.model.paths.FEW", 1)
    scale = 40
    prompt = make_tokens(task, 1, task.prompt_length(scale))
    count = task.answer_length(scale)
    written = generate(model, prompt, scale, count)
    assert asked[:2] == [16, 16] and len(asked) == 3  # the prompt has one query, its last
    assert torch.equal(written, generate(model, prompt, scale, count, cache=False))


def test_exact_match_of_teacher_forcing_is_that_of_generation_on_500_samples():
    """A half-trained model, so that some answers are right and some wrong, sample by sample."""
    settings = Settings("modsum-cot", "ideal-sh", train_scale=3, test_scales=(6,), width=32)
    _, task, model = build_model(settings)

    def between(trainer):
        return 0.4 < evaluate(trainer.model, task, [3], samples=100).exact_match[3] < 0.95

    fit(model, task, [1, 2, 3], 400, seed=2, on_check=between, check_every=5, learning_rate=2e-3)
    batch = task.sample(3, 500, torch.Generator().manual_seed(9))
    start, count = task.prompt_length(3), task.answer_length(3)
    true = batch.tokens[:, start : start + count]
    guess = next_tokens(model, batch.tokens, 3)[:, start - 1 : start + count - 1]
    forced = (guess == true).all(dim=1)
    for cache in (True, False):
        written = generate(model, batch.tokens[:, :start], 3, count, cache=cache)
        assert torch.equal((written == true).all(dim=1), forced)
    assert 25 < forced.sum() < 475
    assert not torch.equal(written == true, guess == true)  # tokens differ behind the first error
