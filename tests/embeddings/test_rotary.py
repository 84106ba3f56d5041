"""RoPE: scores depend on i - j alone, in both pairings; the converter; what mixing them does."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import InputError, embeddings
from lgcourse.embeddings import RotaryEmbedding, convert_pairing

PAIRINGS = ["half", "interleaved"]
P = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])


def turned(vector, position, pairing, base=10_000.0):
    """RoPE of one vector in plain Python."""
    d = len(vector)
    result = list(vector)
    for m in range(d // 2):
        a, b = (m, m + d // 2) if pairing == "half" else (2 * m, 2 * m + 1)
        angle = position * base ** (-2 * m / d)
        x, y = vector[a], vector[b]
        result[a] = x * math.cos(angle) - y * math.sin(angle)
        result[b] = x * math.sin(angle) + y * math.cos(angle)
    return result


def normal(*shape, seed=0):
    source = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def turn(module, vector, position):
    return module.turn(vector.view(1, 1, 1, -1), torch.tensor([position])).view(-1)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("size, base", [(2, 10_000.0), (6, 10_000.0), (8, 100.0), (64, 500_000)])
def test_rotation_is_the_equation(pairing, size, base):
    module = embeddings.build("rope", width=3 * size, heads=3, pairing=pairing, base=base)
    q, k = normal(2, 3, 5, size), normal(2, 3, 4, size, seed=1)
    i, j = torch.tensor([0, 1, 7, 300, 70_001]), torch.tensor([2, 0, 5, 1])
    for x, at, got in zip((q, k), (i, j), module.rotate(q, k, i, j), strict=True):
        for b in range(2):
            for h in range(3):
                for row, position in enumerate(at.tolist()):
                    want = turned(x[b, h, row].tolist(), position, pairing, base)
                    assert got[b, h, row].tolist() == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("size", [6, 64])
@settings(deadline=None, max_examples=25)
@given(i=st.integers(0, 3000), j=st.integers(0, 3000), shift=st.integers(0, 3000))
def test_scores_depend_on_the_distance_alone(pairing, size, i, j, shift):
    module = RotaryEmbedding(size, pairing)
    q, k = normal(size), normal(size, seed=1)
    here = turn(module, q, i) @ turn(module, k, j)
    there = turn(module, q, i + shift) @ turn(module, k, j + shift)
    assert here.item() == pytest.approx(there.item(), abs=1e-8)
    assert turn(module, q, i).norm().item() == pytest.approx(q.norm().item())


def test_reference_values():
    q, k = normal(8), normal(8, seed=1)
    for pairing in PAIRINGS:
        module = RotaryEmbedding(8, pairing)
        near = turn(module, q, 7) @ turn(module, k, 3)
        far = turn(module, q, 104) @ turn(module, k, 100)
        assert near.item() == pytest.approx(far.item(), abs=1e-10)
        one = turn(RotaryEmbedding(2, pairing), torch.tensor([1.0, 0.0]), 1)
        assert one.tolist() == pytest.approx([0.540302, 0.841471], abs=1e-6)
    half, interleaved = (RotaryEmbedding(8, pairing) for pairing in PAIRINGS)
    torch.testing.assert_close(turn(half, q[P], 5), turn(interleaved, q, 5)[P])


@pytest.mark.parametrize("size", [2, 4, 6, 64])
def test_mixed_pairings_are_seen_from_head_size_4_on(size):
    """The angles of one pairing on the partners of the other: the score then depends on i itself.

    At head size 2 both pairings are the same. At 4 mixing them shows in the vectors.
    """

    def mixed(x, position):
        freq = 10_000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        angle = (position * freq).repeat_interleave(2)  # interleaved angles ...
        first, second = x.chunk(2)
        return x * angle.cos() + torch.cat([-second, first]) * angle.sin()  # ... on halves

    q, k = normal(size), normal(size, seed=1)
    near, far = mixed(q, 7) @ mixed(k, 3), mixed(q, 104) @ mixed(k, 100)
    assert (abs(near - far).item() < 1e-9) == (size == 2)


@pytest.mark.parametrize("to", PAIRINGS)
@pytest.mark.parametrize("heads, size", [(1, 2), (3, 6), (2, 64)])
def test_converted_projections_give_equal_scores(to, heads, size):
    width = heads * size
    source = PAIRINGS[1 - PAIRINGS.index(to)]
    x, at = normal(5, width), torch.arange(5)
    wq, wk = normal(width, width, seed=1), normal(width, width, seed=2)

    def scores(wq, wk, pairing):
        module = RotaryEmbedding(size, pairing)
        q, k = ((x @ w.T).view(1, 5, heads, size).transpose(1, 2) for w in (wq, wk))
        q, k = module.rotate(q, k, at, at)
        return q @ k.transpose(-1, -2)

    want = scores(wq, wk, source)
    converted = [convert_pairing(w, heads, to) for w in (wq, wk)]
    torch.testing.assert_close(scores(*converted, to), want)
    if size > 2:  # without conversion it is another model
        assert not torch.allclose(scores(wq, wk, to), want, atol=1e-3)
    back = convert_pairing(converted[0], heads, source)
    assert torch.equal(back, wq)


def test_converter_takes_the_bias_of_a_projection():
    assert convert_pairing(torch.arange(8), 1, to="half").tolist() == P.tolist()
    assert convert_pairing(torch.arange(4), 2, to="half").tolist() == [0, 1, 2, 3]


def test_angles_survive_bfloat16_and_long_positions():
    module = RotaryEmbedding(16)
    x = normal(1, 1, 2, 16)
    low = module.turn(x[:, :, [0, 0]].bfloat16(), torch.tensor([256, 257]))
    assert low.dtype == torch.bfloat16 and not torch.equal(low[0, 0, 0], low[0, 0, 1])
    at = torch.tensor([1_000_000, 16_384])
    torch.testing.assert_close(
        module.turn(x.float(), at), module.turn(x, at).float(), rtol=1e-5, atol=1e-5
    )


def test_refusals():
    with pytest.raises(InputError, match="head size must be even, got 5"):
        embeddings.build("rope", width=10, heads=2)
    with pytest.raises(InputError, match="multiple of heads, got width 10, heads 3"):
        embeddings.build("rope", width=10, heads=3)
    with pytest.raises(InputError, match="did you mean 'half'"):
        embeddings.build("rope", width=8, heads=2, pairing="halves")
    for base in (1, 0, -3.0, True, "10000", float("nan")):
        with pytest.raises(InputError, match="base must be a number above 1"):
            embeddings.build("rope", width=8, heads=2, base=base)
    with pytest.raises(InputError, match="9 rows do not make 3 heads of an even size"):
        convert_pairing(torch.zeros(9, 4), heads=3, to="half")
    with pytest.raises(InputError, match="unknown pairing"):
        convert_pairing(torch.zeros(8, 4), heads=2, to="other")
