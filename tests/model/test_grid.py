"""Every position embedding on every way that a user can take, against the plain pass."""

import copy

import pytest
import torch
from torch.nn.attention import flex_attention

from lgcourse import InputError, embeddings
from lgcourse.model import Cache, generate, next_tokens
from lgcourse.model.paths import PATHS

NAMES = embeddings.names()
OPTIONS = {  # further versions of an embedding that have code of their own
    "rpe vectors": ("rpe", {"vectors": True, "clip": 3}),
    "rope interleaved": ("rope", {"pairing": "interleaved"}),
    **{f"randomized {a}": ("randomized", {"around": a}) for a in ("relative", "rope", "alibi")},
    "rpe-sh soft": ("rpe-sh", {"other": "soft"}),
    "ideal-sh soft": ("ideal-sh", {"other": "soft"}),
}
CASES = {**{name: (name, {}) for name in NAMES}, **OPTIONS, "fire": ("fire", {"hidden": 4})}
SCALE = 4
ALL = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def setting(case, make_model, make_tokens):
    """A task, a model, tokens, and the logits of the plain pass."""
    name, options = CASES[case]
    task, model = make_model(name, options=options)
    tokens = make_tokens(task, 3, task.length(SCALE))
    return task, model, tokens, plain(model, tokens)


def plain(model, tokens, scale=SCALE):
    model.path = "plain"
    with torch.no_grad():
        logits = model(tokens, scale)
    model.path = "auto"
    return logits


@torch.no_grad()
def in_parts(model, tokens, sizes, scale=SCALE, cache=None):
    cache = Cache() if cache is None else cache
    rest = tokens.shape[1] - sum(sizes)
    parts = tokens.split([*sizes, rest], dim=1)
    return torch.cat([model(part, scale, cache) for part in parts], dim=1)


def same(got, want, atol=1e-5):
    torch.testing.assert_close(got, want, atol=atol, rtol=1e-5)


@ALL
def test_full_pass_is_finite_and_repeats(case, setting):
    task, model, tokens, want = setting
    assert torch.isfinite(want).all()
    same(model(tokens, SCALE), want)


@ALL
@pytest.mark.parametrize("path", PATHS)
def test_paths_agree(case, path, setting, monkeypatch):
    """In small blocks, and with a cache; FlexAttention does not trace its score function here."""
    task, model, tokens, want = setting
    monkeypatch.setattr("lgcourse.model.paths.SCORES", {"cpu": 3 * 3 * tokens.shape[1] * 2})
    monkeypatch.setattr("lgcourse.model.paths.GATHERED", 3 * 12 * 4)
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    at = torch.arange(3)
    position = model.embedding
    named = position.named(at, SCALE) is not None
    paired = not position.reads_content and (
        position.bias_at(at[0], at[0], at[0], SCALE) is not None
        or position.bias(at, at, SCALE, embeddings.Context()) is None
    )
    model.path = path
    if (path == "gathered" and not named) or (path == "flex" and not paired):
        with pytest.raises(InputError, match=f"path '{path}' needs"), torch.no_grad():
            model(tokens, SCALE)
        return
    with torch.no_grad():
        same(model(tokens, SCALE), want)
    same(in_parts(model, tokens, [5, 1, 1]), want)
    monkeypatch.setattr("lgcourse.model.paths.GATHERED", 1)  # one query at a time
    same(in_parts(model, tokens, [5, 1]), want)


@pytest.mark.parametrize("case", ["alibi", "ideal-sh"])
def test_flex_attention_can_trace_the_score_function(case, setting, untyped):
    task, model, tokens, want = setting
    model.path = "flex"
    with torch.no_grad():
        same(model(tokens, SCALE), want)
    with pytest.raises(InputError, match="no gradients on a CPU"):
        model(tokens, SCALE)


@ALL
@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [7], [5, 1, 3]])
def test_cache(case, sizes, setting):
    task, model, tokens, want = setting
    same(in_parts(model, tokens, sizes), want)
    same(in_parts(model, tokens, sizes, cache=Cache(capacity=tokens.shape[1])), want)


@ALL
@pytest.mark.parametrize("size", [1, 4, 5])
def test_pieces_of_a_long_input_are_the_whole(case, size, setting, monkeypatch):
    task, model, tokens, want = setting
    monkeypatch.setattr("lgcourse.model.transformer.PIECE", {"cpu": 3 * size})
    length = tokens.shape[1]
    with torch.no_grad():
        same(model(tokens, SCALE), want)
        for last in (1, size, size + 1, length):
            same(model(tokens, SCALE, last=last), want[:, length - last :])
    same(in_parts(model, tokens, [5, 1]), want)
    same(model(tokens, SCALE), want)  # with gradients, whole
    assert torch.equal(next_tokens(model, tokens, SCALE, last=3), want[:, -3:].argmax(-1))
    prompt = tokens[:, : length - 2]
    written = generate(model, prompt, SCALE, 2)
    assert torch.equal(written, generate(model, prompt, SCALE, 2, cache=False))


class Relative(Cache):
    """A wrong cache: the positions of new tokens start at 0 again."""

    def append(self, tokens, scale):
        query, key, context = super().append(tokens, scale)
        return query - query[0], key, context


@ALL
def test_a_cache_with_relative_query_positions_fails(case, setting):
    task, model, tokens, want = setting
    try:
        wrong = in_parts(model, tokens, [5, 1, 1], cache=Relative())
    except InputError:
        return
    assert not torch.allclose(wrong, want, atol=1e-2)


@ALL
def test_batch_of_one_and_length_one(case, setting):
    task, model, tokens, want = setting
    same(model(tokens[:1], SCALE), want[:1])
    same(model(tokens[:, :1], SCALE), want[:, :1])
    same(model(tokens[1:2, :1], SCALE), want[1:2, :1])


@ALL
def test_beyond_training_is_an_error_or_the_same(case, setting, make_tokens):
    """More than three times the scale that the embedding was built for."""
    task, model, _, _ = setting
    try:
        scale, length = 40, task.length(40)
    except InputError:  # a padded task has one length
        scale, length = SCALE, 2 * task.length(SCALE)
    tokens = make_tokens(task, 2, length)
    try:
        want = plain(model, tokens, scale)
    except InputError as error:
        assert "larger max_scale" in str(error)
        with pytest.raises(InputError, match="larger max_scale"):
            generate(model, tokens[:, :-3], scale, 3)
        return
    assert torch.isfinite(want).all()
    with torch.no_grad():
        same(model(tokens, scale), want, atol=5e-5)  # scores are larger here
    same(in_parts(model, tokens, [30, 1, 1], scale), want, atol=5e-5)
    assert torch.equal(next_tokens(model, tokens, scale), want.argmax(-1))


@ALL
def test_float64(case, setting):
    task, model, tokens, want = setting
    model.double()
    got = model(tokens, SCALE)
    assert got.dtype == torch.float64
    same(got.float(), want, atol=5e-5)
    same(in_parts(model, tokens, [5, 1]), got, atol=1e-10)  # nothing falls back to float32


@ALL
def test_bfloat16(case, setting):
    task, model, tokens, _ = setting
    model.bfloat16()
    got = plain(model, tokens)
    cached = in_parts(model, tokens, [5, 1])
    want = plain(model.float(), tokens)  # with the same, rounded weights
    assert got.dtype == cached.dtype == torch.bfloat16
    for value in (got, cached):
        assert (value.float() - want).norm() < 0.04 * want.norm()


@ALL
def test_state_dict_round_trip_and_deepcopy(case, setting, make_model):
    task, model, tokens, want = setting
    name, options = CASES[case]
    twin = copy.deepcopy(model)
    other = make_model(name, options=options, seed=9)[1]
    assert not torch.allclose(plain(other, tokens), want, atol=1e-2)
    other.load_state_dict(model.state_dict())
    same(other(tokens, SCALE), want)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    same(twin(tokens, SCALE), want)


@pytest.mark.parametrize("case", NAMES)
def test_compiled(case, make_model, make_tokens, untyped):
    task, model = make_model(case, layers=1)
    tokens = make_tokens(task, 3, task.length(SCALE))
    want = plain(model, tokens)  # this also fills what is kept per scale
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        same(compiled(tokens, SCALE), want)


@ALL
def test_no_row_is_masked_whole(case, setting):
    """Also behind the last step of the circuit; softmax over nothing is not a number."""
    task, model, tokens, _ = setting
    at = torch.arange(tokens.shape[1])
    q = k = torch.ones(3, 3, len(at), 4)  # b h l d
    context = embeddings.Context(tokens=tokens, scale=SCALE, q=q, k=k)
    for position in model.positions:
        bias = position.bias(at, at, SCALE, context)
        if bias is not None:
            seen = torch.isfinite(bias) & (at[None, :] <= at[:, None])
            assert seen.any(-1).all()
        few = position.named(at, SCALE)
        if few is not None:
            assert torch.isfinite(few[1]).any(-1).all()
            assert (few[0] <= at[:, None]).all()


def test_a_row_that_is_masked_whole_shows(make_model, make_tokens):
    task, model = make_model("none")

    class Nothing(embeddings.PositionEmbedding):
        def bias(self, query, key, scale, context=None):
            return torch.full((len(query), len(key)), float("-inf"))

    model.positions[0] = Nothing()
    assert model(make_tokens(task, 2, 9), SCALE).isnan().all()


@pytest.mark.gpu
@ALL
def test_the_same_on_a_gpu(case, setting):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    task, model, tokens, want = setting
    model.cuda()
    same(model(tokens.cuda(), SCALE).cpu(), want, atol=5e-5)
    same(in_parts(model, tokens.cuda(), [5, 1, 1]).cpu(), want, atol=5e-5)
