"""The same embeddings in a published package, with copied weights: equal, or why not.

x-transformers has no KERPLE, FIRE, Shaw keys, DAPE, Abacus, coupled or randomized positions; those
are compared with their equations in plain Python only.
"""

import pytest
import torch

from lgcourse import embeddings
from lgcourse.embeddings import Context

peer = pytest.importorskip("x_transformers.x_transformers", reason="a development dependency")

LENGTH = 300
AT = torch.arange(LENGTH)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 16, 20])
def test_alibi(heads):
    theirs = peer.AlibiPositionalBias(heads)(LENGTH, LENGTH)
    ours = embeddings.build("alibi", width=heads, heads=heads).bias(AT, AT, None)
    causal = torch.ones(LENGTH, LENGTH).tril().bool()  # they take |i - j|, which differs ahead
    torch.testing.assert_close(ours[:, causal], theirs[:, causal])


def test_alibi_of_the_last_query_as_with_a_cache():
    theirs = peer.AlibiPositionalBias(6)(1, LENGTH)
    ours = embeddings.build("alibi", width=6, heads=6).bias(AT[-1:], AT, None)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("buckets, distance", [(32, 128), (16, 64), (8, 200)])
def test_t5(buckets, distance):
    theirs = peer.RelativePositionBias(1.0, True, buckets, distance, heads=3)
    ours = embeddings.build("t5", width=6, heads=3, buckets=buckets, distance=distance)
    ours.table.data = theirs.relative_attention_bias.weight.T.clone()
    causal = torch.ones(LENGTH, LENGTH).tril().bool()
    assert torch.equal(
        ours.bias(AT, AT, None)[:, causal], theirs(LENGTH, LENGTH).detach()[:, causal]
    )


@pytest.mark.parametrize("size, base", [(2, 10_000), (6, 10_000), (64, 10_000), (64, 500_000)])
def test_rope_is_interleaved_there_and_equal_to_ours_of_that_pairing(size, base):
    # they raise the base to the power d / (d - 2) times a factor of 1, which needs d > 2 to divide
    at = torch.arange(64)  # they make angles in float32, which is coarse at long positions
    x = normal(2, 3, 64, size)
    if size == 2:
        freqs = at[None, :, None].float().expand(1, 64, 2)
    else:
        freqs, _ = peer.RotaryEmbedding(size, base=base)(at)
    theirs = peer.apply_rotary_pos_emb(x, freqs)
    built = {
        pairing: embeddings.build("rope", width=size, heads=1, pairing=pairing, base=base)
        for pairing in ("interleaved", "half")
    }
    turned = {pairing: module.rotate(x, x, at, at)[0] for pairing, module in built.items()}
    torch.testing.assert_close(turned["interleaved"], theirs, rtol=1e-5, atol=1e-5)
    if size > 2:
        assert not torch.allclose(turned["half"], theirs, atol=0.1)


def test_cope():
    heads, size, most = 3, 4, 10
    theirs = peer.CoPE(size, heads, max_pos=most + 1)
    ours = embeddings.build("cope", width=heads * size, heads=heads, largest=most)
    theirs.pos_emb.data = normal(most + 1, size)
    ours.vectors.data = theirs.pos_emb.data.clone()
    q, k = normal(2, heads, 40, size, seed=1), normal(2, heads, 40, size, seed=2)
    causal = torch.ones(40, 40).tril().bool()
    scores = (q @ k.transpose(-1, -2) * size**-0.5).masked_fill(~causal, -torch.inf)
    at = torch.arange(40)
    mine = ours.bias(at, at, None, Context(q=q, k=k))
    torch.testing.assert_close(
        mine[..., causal], theirs(q, scores)[..., causal], rtol=1e-5, atol=1e-5
    )


def test_learned_positions_are_scaled_by_the_root_of_the_width_there():
    theirs = peer.AbsolutePositionalEmbedding(8, LENGTH)
    ours = embeddings.build("ape-learned", width=8, heads=1, positions=LENGTH)
    ours.table.data = theirs.emb.weight.detach() * 8**-0.5
    x = normal(2, 50, 8)
    torch.testing.assert_close(ours.embed(x, AT[:50]), x + theirs(x))


def test_sinusoidal_vectors_are_the_same_numbers_in_another_order_and_size_there():
    theirs = peer.ScaledSinusoidalEmbedding(8)  # all sines, then all cosines, times a learned size
    vectors = theirs(torch.zeros(1, 50, 8)) / theirs.scale
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    ours = embeddings.build("ape-sinusoidal", width=8, heads=1).embed(
        torch.zeros(1, 50, 8), AT[:50]
    )
    torch.testing.assert_close(ours[0], vectors[:, order], rtol=1e-5, atol=1e-5)
