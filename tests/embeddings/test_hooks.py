"""What holds for every embedding: hooks agree with each other, on a cache, in all precisions.

A slow attention over the hooks alone stands for a model here, so that nothing of `lgcourse.model`
can hide a fault or make one.
"""

import copy

import pytest
import torch

from lgcourse import InputError, embeddings, tasks
from lgcourse.embeddings import Context

WIDTH, HEADS, SIZE, SCALE = 24, 3, 8, 4
TASK, PADDED = tasks.get("addition"), tasks.get("addition-padded", width=SCALE)
OPTIONS = {
    "rpe": [{"vectors": True}],
    "rope": [{"pairing": "interleaved"}],
    "randomized": [{"around": a} for a in ("learned", "relative", "rope", "alibi")],
    "dape": [{"around": a} for a in ("alibi", "fire")],
    "ideal-sh": [{"other": "soft"}],
    "rpe-sh": [{"other": "soft"}],
}
CASES = []
for name in embeddings.names():
    CASES += [(name, options) for options in ({}, *OPTIONS.get(name, []))]


def label(case):
    return "-".join(map(str, (case[0], *case[1].values())))


def made(case):
    """Build a case; only a padded task has a scale-free ideal relation."""
    name, options = case
    task, most = (PADDED, SCALE) if name == "ideal" else (TASK, 12)
    return embeddings.build(name, task, width=WIDTH, heads=HEADS, max_scale=most, **options)


def build(case, dtype=torch.float32):
    """Build a case with normal parameters, for evaluation."""
    module = made(case)
    source = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=source)
    return module.to(dtype).eval()


def data(case, dtype=torch.float32, batch=2):
    source = torch.Generator().manual_seed(1)
    tokens = (PADDED if case[0] == "ideal" else TASK).sample(SCALE, batch, source).tokens
    x = torch.randn(*tokens.shape, WIDTH, generator=source, dtype=torch.float64)
    return tokens, x.to(dtype)


def scores(module, x, tokens, at, past, context):
    """Return the scores [b h q k] of some positions against all keys so far, kept in ``past``."""
    context.tokens = tokens[:, : int(at[-1]) + 1]
    x = module.embed(x[:, at], at, context)
    q = x.unflatten(-1, (HEADS, SIZE)).transpose(1, 2)
    q, k = module.rotate(q, q.flip(-1), at, at, context)
    past["k"] = torch.cat([past["k"], k], dim=2) if past else k
    context.q, context.k = q, past["k"]
    key = torch.arange(past["k"].shape[2])
    bias = module.bias(at, key, SCALE, context)
    result = q @ past["k"].transpose(-1, -2) * SIZE**-0.5
    result = result.to(torch.promote_types(result.dtype, torch.float32))
    if bias is not None:
        assert ((bias == -torch.inf) | bias.isfinite()).all()
        result = result + bias
    return result.masked_fill(key > at[:, None], -torch.inf)


def whole(module, x, tokens):
    return scores(module, x, tokens, torch.arange(x.shape[1]), {}, Context(scale=SCALE))


each = pytest.mark.parametrize("case", CASES, ids=label)


@each
def test_token_by_token_gives_what_the_whole_pass_gives(case):
    module, (tokens, x) = build(case), data(case)
    want = whole(module, x, tokens)
    context, past = Context(scale=SCALE), {}
    with torch.no_grad():
        for at in (torch.arange(6), *(torch.tensor([p]) for p in range(6, tokens.shape[1]))):
            got = scores(module, x, tokens, at, past, context)
            torch.testing.assert_close(got, want[:, :, at, : at[-1] + 1], rtol=1e-5, atol=1e-5)


@each
def test_a_batch_of_one_and_a_length_of_one_are_parts_of_the_whole(case):
    module, (tokens, x) = build(case), data(case)
    want = whole(module, x, tokens)
    one = whole(module, x[:1], tokens[:1])
    torch.testing.assert_close(one, want[:1], rtol=1e-5, atol=1e-5)
    first = whole(module, x[:, :1], tokens[:, :1])
    torch.testing.assert_close(first, want[:, :, :1, :1], rtol=1e-5, atol=1e-5)


@each
def test_every_query_keeps_a_key(case):
    module, (tokens, x) = build(case), data(case)
    assert whole(module, x, tokens).isfinite().any(-1).all()


@each
def test_precisions(case):
    tokens, x = data(case, torch.float64)
    double = whole(build(case, torch.float64), x, tokens)
    single = whole(build(case), x.float(), tokens)
    low = whole(build(case, torch.bfloat16), x.bfloat16(), tokens)
    assert (double.dtype, single.dtype, low.dtype) == (torch.float64, torch.float32, torch.float32)
    torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(low, single, rtol=0.1, atol=0.3)


@each
def test_copies_and_saved_weights_give_the_same(case):
    module, (tokens, x) = build(case), data(case)
    want = whole(module, x, tokens)
    assert torch.equal(whole(copy.deepcopy(module), x, tokens), want)
    other = made(case).eval()
    other.load_state_dict(module.state_dict())
    assert torch.equal(whole(other, x, tokens), want)


@each
def test_bias_at_is_bias_and_looks_at_no_value(case):
    module = build(case, torch.float64)
    head, at = torch.arange(HEADS), torch.arange(TASK.length(SCALE))
    single = module.bias_at(head[:, None, None], at[:, None], at[None, :], SCALE)
    if single is None:  # no bias, or one that exists for whole rows only
        rows_only = module.reads_content or case[0] == "randomized" or case[0].startswith("lbpe")
        assert rows_only or module.bias(at, at, SCALE) is None
        return
    bias = module.bias(at, at, SCALE)
    causal = at[None, :] <= at[:, None]
    torch.testing.assert_close(single[:, causal], bias[:, causal], rtol=1e-12, atol=1e-12)

    def pair(h, i, j):  # as FlexAttention calls it; a decision by a value is an error here
        return module.bias_at(h, i, j, SCALE)

    for over in ((None, None, 0), (None, 0, None), (0, None, None)):
        pair = torch.vmap(pair, over)
    torch.testing.assert_close(
        pair(head, at, at)[:, causal], bias[:, causal], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("case", [c for c in CASES if list(made(c).parameters())], ids=label)
def test_parameters_get_gradients_from_the_scores(case):
    module, (tokens, x) = build(case), data(case)
    result = whole(module, x, tokens)
    weight = torch.randn(result.shape, generator=torch.Generator().manual_seed(2))
    (torch.softmax(result, dim=-1) * weight).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_relations_are_stated_by_tables_and_by_nobody_else():
    stated = {}
    for case in CASES:
        relation = build(case).relation
        if relation is not None:
            stated[label(case)] = relation.name
    stated = {k: v for k, v in stated.items() if not k.startswith("lbpe")}
    assert stated == {
        "ape-learned": "ape",
        "rpe": "rpe",
        "rpe-True": "rpe-clipped",
        "t5": "t5",
        "ideal": "ideal",
        "ideal-sh": "ideal-sh",
        "ideal-sh-soft": "ideal-sh",
        "rpe-sh": "rpe-sh",
        "rpe-sh-soft": "rpe-sh",
        "ape-sh": "ape-sh",
    }


# --- bad input ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", [n for n in embeddings.names() if not n.endswith("-sh") and n not in ("ideal", "rpe")]
)
def test_a_hint_without_a_relation_is_refused_with_the_reason(name):
    if f"{name}-sh" in embeddings.names():
        return
    with pytest.raises(InputError, match=f"'{name}' takes no Scale Hint: a hint enters only"):
        embeddings.build(f"{name}-sh", TASK, width=WIDTH, heads=HEADS)


def test_an_unknown_name_that_looks_hinted_is_unknown():
    with pytest.raises(InputError, match="did you mean 'rpe-sh'"):
        embeddings.build("rpee-sh", TASK, width=WIDTH, heads=HEADS)


@pytest.mark.parametrize("name", ["ideal-sh", "rpe-sh", "ape-sh"])
def test_a_hint_needs_the_scale_in_every_hook(name):
    module = embeddings.build(name, TASK, width=WIDTH, heads=HEADS)
    at = torch.arange(3)
    calls = [
        lambda: module.bias(at, at, None),
        lambda: module.bias_at(at[0], at[1], at[0], None),
    ]
    if module.relation.other is not None:
        calls.append(lambda: module.named(at, None))
    for call in calls:
        with pytest.raises(InputError, match=f"'{name}' uses a Scale Hint: give the scale"):
            call()


@pytest.mark.parametrize("name", ["ideal", "ideal-sh", "abacus", "coupled"])
def test_a_task_is_needed(name):
    with pytest.raises(InputError, match="give a task"):
        embeddings.build(name, width=WIDTH, heads=HEADS)


@pytest.mark.parametrize("name, positions", [("rpe", 5), ("ape-learned", 5), ("ape-sh", 5)])
def test_a_table_ends_with_an_error_and_never_wraps(name, positions):
    module = embeddings.build(name, TASK, width=WIDTH, heads=HEADS, positions=positions)
    for parameter in module.parameters():
        torch.nn.init.ones_(parameter)
    at = torch.arange(positions + 2)
    with pytest.raises(InputError, match="build it with a larger max_scale"):
        if name == "ape-learned":
            module.embed(torch.zeros(1, len(at), WIDTH), at)
        else:
            module.bias(at, at, 1)
    if name != "ape-learned":  # what is traced can raise nothing: it must not look like a row
        assert module.bias_at(at[0], at[-1], at[0], 1).isfinite() == (name == "ape-sh")
        assert not module.bias_at(at[0], at[-1], at[-1 if name == "ape-sh" else 0], 1).isfinite()


def test_excluded_is_refused_where_there_is_no_other():
    for name in embeddings.names():
        if name in ("ideal", "ideal-sh", "rpe-sh", "lbpe", "lbpe-sh"):
            continue
        with pytest.raises(InputError, match="no id 'other'"):
            embeddings.build(name, TASK, width=WIDTH, heads=HEADS, other="excluded")
