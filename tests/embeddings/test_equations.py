"""Biases and vectors without content, against their equations in plain Python."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import InputError, embeddings
from lgcourse.embeddings import alibi_slopes

AT = torch.arange(12)


def seeded(module, seed=0):
    """Give all parameters normal values."""
    source = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=source)
    return module


# --- T5 -------------------------------------------------------------------------------------------
def t5_bucket(distance, buckets=32, most=128):
    """The decoder's bucket in whole numbers: the logarithm's floor by comparing powers."""
    exact = buckets // 2
    if distance < exact:
        return distance
    m = 0  # largest m with (d / exact)^(B - exact) >= (most / exact)^m
    while distance ** (buckets - exact) * exact ** (m + 1) >= most ** (m + 1) * exact ** (
        buckets - exact
    ):
        m += 1
    return min(exact + m, buckets - 1)


def test_t5_buckets_of_all_distances_to_400():
    relation = embeddings.build("t5", width=8, heads=2).relation
    got = relation(torch.tensor([400]), 400 - torch.arange(401), 1)[0].tolist()
    assert got == [t5_bucket(d) for d in range(401)]


def test_t5_reference_values():
    relation = embeddings.build("t5", width=8, heads=2).relation
    distances = [0, 1, 15, 16, 18, 19, 20, 23, 31, 32, 63, 64, 91, 127, 128, 1000]
    want = [0, 1, 15, 16, 16, 17, 17, 18, 21, 21, 26, 26, 29, 31, 31, 31]
    assert relation(torch.tensor([1000]), 1000 - torch.tensor(distances), 1)[0].tolist() == want
    assert [t5_bucket(d) for d in distances] == want


@pytest.mark.parametrize("buckets, distance", [(8, 20), (32, 128), (4, 3)])
def test_t5_bias_is_the_table_at_the_bucket_and_nothing_else(buckets, distance):
    module = embeddings.build("t5", width=8, heads=3, buckets=buckets, distance=distance)
    seeded(module)
    bias = module.bias(AT, AT, 1)
    for h in range(3):
        for i in range(12):
            for j in range(i + 1):
                want = module.table[h, t5_bucket(i - j, buckets, distance)]
                assert bias[h, i, j] == want


# --- ALiBi ----------------------------------------------------------------------------------------
def slopes(heads):
    """The published list, by its recursion."""
    if heads & (heads - 1) == 0:
        return [2 ** (-8 * (h + 1) / heads) for h in range(heads)]
    power = 2 ** math.floor(math.log2(heads))
    return slopes(power) + slopes(2 * power)[0::2][: heads - power]


@pytest.mark.parametrize("heads", [1, 3, 4, 6, 8, 12, 16, 20])
def test_alibi_slopes(heads):
    got = alibi_slopes(torch.arange(heads), heads)
    assert got.tolist() == pytest.approx(slopes(heads), rel=1e-12)


def test_alibi_reference_slopes_and_that_one_formula_for_all_heads_is_wrong():
    first = [2.0**-h for h in range(1, 9)]
    reference = {
        3: [0.0625, 0.003906, 0.25],
        6: [0.25, 0.0625, 0.015625, 0.003906, 0.5, 0.125],
        8: first,
        12: [*first, 0.707107, 0.353553, 0.176777, 0.088388],
    }
    for heads, want in reference.items():
        got = alibi_slopes(torch.arange(heads), heads).tolist()
        assert got == pytest.approx(want, abs=1e-6)
    naive = [2 ** (-8 * (h + 1) / 12) for h in range(12)]
    assert naive[:3] == pytest.approx([0.629961, 0.39685, 0.25], abs=1e-6)
    assert naive != pytest.approx(reference[12], abs=1e-2)


def test_alibi_bias():
    module = embeddings.build("alibi", width=24, heads=12)
    bias = module.bias(AT, AT, 1)
    assert (bias[:, 3, 1] < 0).all()
    for h, slope in enumerate(slopes(12)):
        for i in range(12):
            for j in range(i + 1):
                assert bias[h, i, j].item() == pytest.approx(-slope * (i - j), rel=1e-6)


# --- KERPLE ---------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=30)
@given(raw=st.lists(st.floats(-8, 8), min_size=4, max_size=4), i=st.integers(0, 5000))
def test_kerple_is_its_equation_whatever_is_learned(raw, i):
    module = embeddings.build("kerple", width=8, heads=2).double()
    module.raw.data = torch.tensor(raw, dtype=torch.float64).view(2, 2)
    key = torch.tensor([0, i // 2, i])
    bias = module.bias(torch.tensor([i]), key, 1)
    for h in range(2):
        r1, r2 = math.log1p(math.exp(raw[h])), math.log1p(math.exp(raw[2 + h]))
        assert r1 > 0 and r2 > 0
        for column, j in enumerate(key.tolist()):
            want = -r1 * math.log(1 + r2 * abs(i - j))
            assert bias[h, 0, column].item() == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_kerple_starts_inside_the_published_ranges():
    module = embeddings.build("kerple", width=8, heads=4)
    assert module.r1.tolist() == pytest.approx([0.25, 0.75, 1.25, 1.75])
    assert module.r2.tolist() == pytest.approx([0.5] * 4)


# --- FIRE -----------------------------------------------------------------------------------------
def fire_share(i, j, c, threshold, largest=max):
    """psi(i - j) / psi(max(L, i)) with psi(x) = log(c x + 1)."""
    return math.log(c * (i - j) + 1) / math.log(c * largest(threshold, i) + 1)


def fire(threshold=4.0):
    return seeded(embeddings.FIREEmbedding(2, hidden=5, c=0.1, threshold=threshold))


def test_fire_reference_values():
    module = embeddings.FIREEmbedding(2, c=0.1, threshold=4.0)
    got = module.share(torch.tensor([7, 2]), torch.tensor([0, 0])).tolist()
    assert got == pytest.approx([1.0, 0.541862], abs=1e-6)


def test_fire_bias_is_the_mlp_of_the_share():
    module = fire().double()
    c, threshold = 0.1 * module.log_c.exp().item(), 4 * module.log_threshold.exp().item()
    inner, outer = module.curve.inner, module.curve.outer
    bias = module.bias(AT, AT, 1)
    for i in range(12):
        for j in range(i + 1):
            x = fire_share(i, j, c, threshold)
            on = [
                max(0.0, x * w + b)
                for w, b in zip(inner.weight[:, 0].tolist(), inner.bias.tolist(), strict=True)
            ]
            for h in range(2):
                want = outer.bias[h].item() + sum(
                    w * u for w, u in zip(outer.weight[h].tolist(), on, strict=True)
                )
                assert bias[h, i, j].item() == pytest.approx(want, rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(i=st.integers(0, 20_000), data=st.data())
def test_fire_share_stays_in_0_to_1_beyond_the_threshold(i, data):
    j = data.draw(st.integers(0, i))
    module = embeddings.FIREEmbedding(1, c=0.1, threshold=64.0).double()
    share = module.share(torch.tensor([i]), torch.tensor([j])).item()
    assert 0 <= share <= 1
    assert share == pytest.approx(fire_share(i, j, 0.1, 64), rel=1e-9)


def test_fire_with_min_in_the_denominator_would_be_seen():
    wrong = fire_share(100, 0, 0.1, 4, largest=min)
    module = embeddings.FIREEmbedding(1, c=0.1, threshold=4.0)
    assert wrong > 1 and module.share(torch.tensor([100]), torch.tensor([0])).item() != wrong


# --- vectors --------------------------------------------------------------------------------------
def test_sinusoidal_in_float64_is_exact_at_long_positions():
    module = embeddings.build("ape-sinusoidal", width=7, heads=1)
    j = 1_000_003
    got = module.embed(torch.zeros(1, 1, 7, dtype=torch.float64), torch.tensor([j]))[0, 0]
    for p in range(7):
        angle = j / 10_000 ** (2 * (p // 2) / 7)
        want = (math.cos if p % 2 else math.sin)(angle)
        assert got[p].item() == pytest.approx(want, abs=1e-9)


# --- precision ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["rpe", "t5", "alibi", "kerple", "fire", "ape-sh", "rpe-sh"])
def test_bias_keeps_float64_and_never_falls_below_float32(name):
    def bias(dtype):
        module = embeddings.build(name, width=24, heads=12, positions=300, other="soft")
        module = seeded(module.double()).to(dtype)
        return module.bias(torch.tensor([299]), torch.arange(300), 10)

    double, single, low = (bias(t) for t in (torch.float64, torch.float32, torch.bfloat16))
    assert (double.dtype, single.dtype, low.dtype) == (torch.float64, torch.float32, torch.float32)
    torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-4)
    assert not torch.equal(double, single.double())  # the digits behind float32 are there
    near = torch.unique(low[0, 0, :40])  # distances above 256, which bfloat16 cannot tell apart
    if name in ("alibi", "kerple", "fire"):
        assert len(near) == 40


@pytest.mark.parametrize("options", [{"buckets": 7}, {"buckets": 1}, {"distance": 16}])
def test_t5_refuses_buckets_that_make_no_sense(options):
    with pytest.raises(InputError, match="buckets"):
        embeddings.build("t5", width=8, heads=2, **options)
