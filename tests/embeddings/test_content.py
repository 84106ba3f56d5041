"""Biases that read queries and keys (Shaw, CoPE, DAPE), against their equations in plain Python."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import InputError, embeddings
from lgcourse.embeddings import Context

WIDTH, HEADS, SIZE, LENGTH = 12, 3, 4, 7
AT = torch.arange(LENGTH)


def made(name, **options):
    module = embeddings.build(name, width=WIDTH, heads=HEADS, **options).double()
    source = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=source)
    return module


def vectors(seed, batch=2, length=LENGTH):
    source = torch.Generator().manual_seed(seed)
    return torch.randn(batch, HEADS, length, SIZE, generator=source, dtype=torch.float64)


def dot(x, y):
    return sum(a * b for a, b in zip(x.tolist(), y.tolist(), strict=True))


def pairs():
    for b in range(2):
        for h in range(HEADS):
            for i in range(LENGTH):
                for j in range(i + 1):
                    yield b, h, i, j


@pytest.mark.parametrize("clip", [1, 3, 16])
def test_shaw_adds_the_vector_of_the_clipped_distance_to_the_key(clip):
    module = made("rpe", vectors=True, clip=clip)
    q, k = vectors(1), vectors(2)
    bias = module.bias(AT, AT, None, Context(q=q, k=k))
    for b, h, i, j in pairs():
        a = module.vectors[min(i - j, clip)]
        score = dot(q[b, h, i], k[b, h, j] + a) / math.sqrt(SIZE)
        content = dot(q[b, h, i], k[b, h, j]) / math.sqrt(SIZE)
        assert content + bias[b, h, i, j].item() == pytest.approx(score)


def test_shaw_states_its_clipped_relation():
    relation = embeddings.build("rpe", width=8, heads=2, vectors=True, clip=3).relation
    ids = relation(torch.tensor([9]), torch.arange(10))[0].tolist()
    assert ids == [min(9 - j, 3) for j in range(10)] and relation.size == 4


def cope_position(q, k, b, h, i, j, most):
    """The sum of the gates from key j to the query i, in plain Python."""
    gates = (1 / (1 + math.exp(-dot(q[b, h, i], k[b, h, m]) / 2)) for m in range(j, i + 1))
    return min(sum(gates), most)


@pytest.mark.parametrize("most", [2, 64])
def test_cope_interpolates_between_the_vectors_of_whole_positions(most):
    module = made("cope", largest=most)
    q, k = vectors(1), vectors(2)
    bias = module.bias(AT, AT, None, Context(q=q, k=k))
    for b, h, i, j in pairs():
        p = cope_position(q, k, b, h, i, j, most)
        low, high = (dot(q[b, h, i], module.vectors[e]) for e in (math.floor(p), math.ceil(p)))
        want = low + (high - low) * (p - math.floor(p))
        assert bias[b, h, i, j].item() == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_cope_counts_beyond_256_in_half_precision():
    module = embeddings.build("cope", width=WIDTH, heads=HEADS, largest=1000).bfloat16()
    q = torch.full((1, HEADS, 1, SIZE), 20.0).bfloat16()
    k = torch.full((1, HEADS, 600, SIZE), 20.0).bfloat16()  # all gates are 1
    at = module.positions(torch.tensor([599]), torch.arange(600), q.float(), k.float())
    assert at[0, 0, 0].tolist() == [600 - j for j in range(600)]
    with torch.autocast("cpu", torch.bfloat16):
        bias = module.bias(torch.tensor([599]), torch.arange(600), None, Context(q=q, k=k))
    assert bias.dtype == torch.float32


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), change=st.integers(1, LENGTH - 1))
def test_cope_does_not_count_keys_after_the_query(seed, change):
    module, q, k = made("cope"), vectors(seed), vectors(seed + 1)
    before = module.bias(AT, AT, None, Context(q=q, k=k))
    k[:, :, change:] += 5.0
    after = module.bias(AT, AT, None, Context(q=q, k=k))
    assert torch.equal(before[:, :, :change, :change], after[:, :, :change, :change])


@pytest.mark.parametrize("around", ["kerple", "alibi", "fire"])
def test_dape_corrects_the_base_bias_by_an_mlp_over_scores_and_bias(around):
    module = made("dape", around=around, hidden=5)
    q, k = vectors(1), vectors(2)
    bias = module.bias(AT, AT, None, Context(q=q, k=k))
    base = module.base.bias(AT, AT, None)
    inner, outer = module.mlp.inner, module.mlp.outer
    for b, h, i, j in pairs():
        scores = [dot(q[b, g, i], k[b, g, j]) / 2 for g in range(HEADS)]
        x = torch.tensor([*scores, *base[:, i, j].tolist()], dtype=torch.float64)
        on = [dot(inner.weight[u], x) + inner.bias[u].item() for u in range(5)]
        on = [u if u > 0 else 0.01 * u for u in on]
        correction = sum(w * u for w, u in zip(outer.weight[h].tolist(), on, strict=True))
        want = base[h, i, j].item() + correction + outer.bias[h].item()
        assert bias[b, h, i, j].item() == pytest.approx(want)


@pytest.mark.parametrize("name, options", [("rpe", {"vectors": True}), ("cope", {}), ("dape", {})])
def test_content_must_be_given_and_the_width_must_fit(name, options):
    module = embeddings.build(name, width=WIDTH, heads=HEADS, **options)
    assert module.reads_content
    for context in (None, Context(), Context(scale=3)):
        with pytest.raises(InputError, match=f"'{name}' reads queries and keys"):
            module.bias(AT, AT, None, context)
    with pytest.raises(InputError, match="width 13, heads 3"):
        embeddings.build(name, width=13, heads=3, **options)


def test_options_that_do_not_fit():
    with pytest.raises(InputError, match="clip belongs to vectors=True"):
        embeddings.build("rpe", width=8, heads=2, clip=4)
    with pytest.raises(InputError, match="clip must be a whole number of at least 1, got 0"):
        embeddings.build("rpe", width=8, heads=2, vectors=True, clip=0)
    with pytest.raises(InputError, match="largest must be a whole number"):
        embeddings.build("cope", width=8, heads=2, largest=0)
    with pytest.raises(InputError, match="unknown base of dape 'kerpel'; did you mean 'kerple'"):
        embeddings.build("dape", width=8, heads=2, around="kerpel")
    with pytest.raises(InputError, match="has no option 'windw'"):
        embeddings.build("cope", width=8, heads=2, windw=3)
