"""Which attention path runs, and what it must not store."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from lgcourse import InputError, Transformer, embeddings, tasks
from lgcourse.embeddings import PositionEmbedding
from lgcourse.model import View, next_tokens, paths
from lgcourse.model.paths import choose_path


def chosen(position, length, keys=None, scale=None, path="auto", batch=1):
    key = torch.arange(keys or length)
    q = torch.zeros(batch, 2, length, 4)
    return choose_path(q, View(position, key[-length:], key, scale, path=path))


@pytest.fixture(scope="module")
def ideal():
    return embeddings.build("ideal-sh", tasks.get("multiply-digit"), width=8, heads=2)


def test_short_inputs_go_the_plain_path(ideal):
    assert chosen(ideal, 50, scale=9) == "plain"
    assert chosen(PositionEmbedding(), 300) == "plain"


def test_named_keys_are_gathered_where_they_are_few(ideal):
    assert chosen(ideal, 304, scale=100) == "gathered"
    assert chosen(ideal, 1, keys=304, scale=100) == "gathered"
    window = embeddings.build("rpe-sh", tasks.get("copy"), width=8, heads=2)  # 16 keys per query
    assert chosen(window, 100, scale=49) == "plain"
    assert chosen(window, 200, scale=99) == "gathered"


def test_large_scores_are_chunked_without_gradients_only():
    with torch.no_grad():
        assert chosen(PositionEmbedding(), 2000) == "chunked"
        assert chosen(PositionEmbedding(), 200, batch=100) == "chunked"
        assert chosen(PositionEmbedding(), 1, keys=2000) == "plain"
    assert chosen(PositionEmbedding(), 2000) == "plain"


def test_a_path_can_be_asked_for_and_a_wrong_one_is_named(ideal):
    for name in paths.PATHS:
        assert chosen(ideal, 304, scale=100, path=name) == name
    model = Transformer(12, PositionEmbedding(), 1, 8, 2, path="sdpa")
    assert model.path == "sdpa"
    with pytest.raises(InputError, match="unknown attention path 'spda'; did you mean 'sdpa'"):
        model.path = "spda"
    with pytest.raises(InputError, match="unknown attention path 'fast'"):
        Transformer(12, PositionEmbedding(), 1, 8, 2, path="fast")


def test_a_triangle_from_the_top_left_would_be_wrong_with_a_cache():
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 9, 4), torch.randn(1, 2, 9, 4)
    key = torch.arange(9)
    view = View(PositionEmbedding(), key[6:], key, None)
    want = paths.plain(q, k, v, view)
    torch.testing.assert_close(paths.sdpa(q, k, v, view), want, atol=1e-6, rtol=1e-5)
    wrong = scaled_dot_product_attention(q, k, v, is_causal=True)
    assert not torch.allclose(wrong, want, atol=1e-2)


def test_heads_that_name_keys_of_their_own():
    """Head 0 reads the query and the key before it, head 1 the query and key 0."""

    class Own(PositionEmbedding):
        def named(self, query, scale):
            keys = torch.stack([query, query, query - 1, 0 * query]).view(2, 2, -1)  # slot h q
            keys = keys.permute(1, 2, 0).clone()
            keys[1][query == 0, 1] = -1  # no key twice
            return keys, torch.where(keys < 0, float("-inf"), 0.5 * torch.ones(keys.shape))

        def bias(self, query, key, scale, context=None):
            result = torch.full((2, len(query), len(key)), float("-inf"))
            result[0][(key == query[:, None]) | (key == query[:, None] - 1)] = 0.5
            result[1][(key == query[:, None]) | (key == 0 * query[:, None])] = 0.5
            return result

    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 9, 4).unbind()
    view = View(Own(), torch.arange(9), torch.arange(9), None)
    torch.testing.assert_close(paths.gathered(q, k, v, view), paths.plain(q, k, v, view))


def test_gathered_and_chunked_have_the_gradients_of_plain(ideal):
    torch.manual_seed(0)
    with torch.no_grad():
        ideal.table.normal_()
    model = Transformer(13, ideal, 1, 8, 2)
    tokens, gradients = torch.randint(10, (3, 34)), []
    for name in ("plain", "gathered", "chunked", "sdpa"):
        model.path = name
        model.zero_grad()
        model(tokens, 10).square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    for other in gradients[1:]:
        torch.testing.assert_close(other, gradients[0], atol=2e-4, rtol=1e-4)


class Watched(PositionEmbedding):
    """Hands the hooks on, and notes the largest number of pairs that was asked for at once."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.pairs = inner, 0

    def bias(self, query, key, scale, context=None):
        self.pairs = max(self.pairs, len(query) * len(key))
        return self.inner.bias(query, key, scale, context)

    def bias_at(self, head, query, key, scale):
        return self.inner.bias_at(head, query, key, scale)

    def named(self, query, scale):
        return self.inner.named(query, scale)


def test_long_inputs_never_make_a_table_of_all_pairs(ideal, untyped):
    length = 40_000
    tokens = torch.randint(10, (1, length), generator=torch.Generator().manual_seed(0))
    position = Watched(embeddings.build("rpe-sh", tasks.get("copy"), width=8, heads=2))
    model = Transformer(12, position, 1, 8, 2)
    answer = next_tokens(model, tokens, length // 2 - 1)
    assert position.pairs == 0
    with torch.no_grad():  # the last blocks start behind a cache
        part = model(tokens[:, :17_000], length // 2 - 1)[:, 16_000:].argmax(-1)
    assert torch.equal(answer[:, 16_000:17_000], part)
    position = Watched(embeddings.build("alibi", width=8, heads=2))
    model = Transformer(12, position, 1, 8, 2)
    with torch.no_grad():
        want = model(tokens[:, :1500], None)
    assert 0 < position.pairs <= paths.SCORES["cpu"] / 2 and position.pairs < 1500 * 1500
    position.pairs, model.path = 0, "flex"
    with torch.no_grad():
        got = model(tokens[:, :1500], None)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    assert position.pairs == 0


@pytest.mark.parametrize(("name", "calls"), [("alibi", 1), ("fire", 3), ("cope", 6)])
def test_layers_with_one_embedding_share_its_bias(name, calls, monkeypatch):
    """Three layers, two loops: one bias in all, one per layer, or one per application."""
    model = Transformer(12, embeddings.build(name, width=12, heads=3), 3, 12, 3, loops=2)
    kind, made = type(model.embedding), []
    bias = kind.bias

    def counted(self, *arguments):
        made.append(1)
        return bias(self, *arguments)

    monkeypatch.setattr(kind, "bias", counted)
    model(torch.randint(12, (2, 9)), 4)
    assert len(made) == calls


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["alibi", "ideal-sh"])
def test_paths_agree_on_a_gpu(name, untyped):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    task = tasks.get("multiply-digit")
    model = Transformer(13, embeddings.build(name, task, width=32, heads=2), 1, 32, 2).cuda()
    tokens = torch.randint(10, (2, 304), device="cuda")
    results = {}
    for path in ("plain", "sdpa", "flex", "chunked"):
        model.path = path
        with torch.no_grad():
            results[path] = model(tokens, 100)
        torch.testing.assert_close(results[path], results["plain"], atol=1e-4, rtol=1e-4)
