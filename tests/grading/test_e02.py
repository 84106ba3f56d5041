"""Exercise 2: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import math

import pytest
import torch

from lgcourse import embeddings, relations
from lgcourse.grading import questions
from lgcourse.grading.bank import e02
from lgcourse.grading.question import FAILED, PASSED, examine

QUESTIONS = {question.name: question for question in questions(2)}
SEEDS = range(5)


def angles(p, width, power=1.0):
    return p[:, None] / 10000 ** (power * torch.arange(0, width, 2) / width)


def sines(a):
    return torch.stack([a.sin(), a.cos()], -1).flatten(1)


def back(q, k):
    return q[:, None] - k[None, :]


def buckets(d, exact=16, base=8.0, top=31, kind=torch.float64):
    share = (d.clamp(min=exact).to(kind) / exact).log() / math.log(base)
    return torch.where(d < exact, d, (exact + (16 * share).long()).clamp(max=top))


def slopes(h, first=1, eight=8.0):
    return 2.0 ** (-eight * torch.arange(first, h + first) / h)


def turned(x, a, sign=1, half=False):
    one, two = x.chunk(2, 1) if half else (x[:, 0::2], x[:, 1::2])
    pair = [one * a.cos() - sign * two * a.sin(), sign * one * a.sin() + two * a.cos()]
    return torch.cat(pair, 1) if half else torch.stack(pair, -1).flatten(1)


def ar(x):
    return torch.arange(len(x))


SIN, REL, T5, ALI, ROPE = "sinusoidal", "relative_bias", "t5_bucket", "alibi_bias", "rope"
# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "sines only": (SIN, "one-vector-each", lambda p, w: angles(p, w).sin()),
    "float64": (SIN, "one-vector-each", lambda p, w: sines(angles(p, w).double())),
    "sines first": (
        SIN,
        "sines-and-cosines-alternate",
        lambda p, w: torch.cat([angles(p, w).sin(), angles(p, w).cos()], 1),
    ),
    "cosine first": (
        SIN,
        "sines-and-cosines-alternate",
        lambda p, w: torch.stack([angles(p, w).cos(), angles(p, w).sin()], -1).flatten(1),
    ),
    "pairs from 1": (SIN, "first-pair-turns-fastest", lambda p, w: sines(angles(p, w) / 10000)),
    "half the exponent": (SIN, "frequencies", lambda p, w: sines(angles(p, w, 0.5))),
    "twice the exponent": (SIN, "frequencies", lambda p, w: sines(angles(p, w, 2.0))),
    "multiplied": (
        SIN,
        "frequencies",
        lambda p, w: sines(p[:, None] * 10000 ** (torch.arange(0, w, 2) / w)),
    ),
    "sines at arange": (
        SIN,
        "given-positions",
        lambda p, w: (
            sines(angles(torch.arange(1, len(p) + 1), w))
            if 0 < p[0] < 20
            else sines(angles(ar(p), w))
        ),
    ),
    "heads last": (REL, "head-query-key", lambda q, k, t: t.T[back(q, k).clamp(0, len(t.T) - 1)]),
    "first head only": (REL, "head-query-key", lambda q, k, t: t[0][back(q, k).clamp(0, 3)]),
    "j - i": (REL, "looks-back", lambda q, k, t: t[:, (-back(q, k)).clamp(0, t.shape[1] - 1)]),
    "off by one": (
        REL,
        "looks-back",
        lambda q, k, t: t[:, (back(q, k) + 1).clamp(0, t.shape[1] - 1)],
    ),
    "remainder": (REL, "far-keys-share", lambda q, k, t: t[:, back(q, k) % t.shape[1]]),
    "zero beyond": (
        REL,
        "far-keys-share",
        lambda q, k, t: torch.where(
            back(q, k) < t.shape[1], t[:, back(q, k).clamp(0, t.shape[1] - 1)], 0.0
        ),
    ),
    "wraps around": (REL, "later-keys", lambda q, k, t: t[:, back(q, k).clamp(max=t.shape[1] - 1)]),
    "abs": (REL, "later-keys", lambda q, k, t: t[:, back(q, k).abs().clamp(max=t.shape[1] - 1)]),
    "distances from the first query": (
        REL,
        "given-positions",
        lambda q, k, t: t[:, (back(q, k.sort().values)).clamp(0, t.shape[1] - 1)],
    ),
    "floats": (T5, "whole-numbers", lambda d: buckets(d).double()),
    "a list": (T5, "whole-numbers", lambda d: buckets(d).tolist()),
    "encoder": (T5, "near-keys-exact", lambda d: buckets(d, exact=8)),
    "all logarithmic": (T5, "near-keys-exact", lambda d: (5 * (d + 1.0).log()).long()),
    "log2": (T5, "far-keys-logarithmic", lambda d: buckets(d, base=2.0)),
    "up to 256": (T5, "far-keys-logarithmic", lambda d: buckets(d, base=16.0)),
    "clipped distance": (T5, "far-keys-logarithmic", lambda d: d.clamp(max=31)),
    "no end": (T5, "last-bucket", lambda d: buckets(d, top=10**6)),
    "ends at 32": (T5, "last-bucket", lambda d: buckets(d, top=32)),
    "rounded": (
        T5,
        "far-keys-logarithmic",
        lambda d: torch.where(
            d < 16,
            d,
            (16 + (16 * (d.clamp(min=16) / 16).log() / math.log(8)).round().long()).clamp(max=31),
        ),
    ),
    "distances alone": (ALI, "head-query-key", lambda q, k, h: -back(q, k).float()),
    "heads behind": (
        ALI,
        "head-query-key",
        lambda q, k, h: -slopes(h) * back(q, k)[..., None],
    ),
    "reward": (ALI, "far-keys-weigh-less", lambda q, k, h: slopes(h)[:, None, None] * back(q, k)),
    "no slope": (
        ALI,
        "far-keys-weigh-less",
        lambda q, k, h: -back(q, k).float().expand(h, -1, -1).clone(),
    ),
    "from 1": (
        ALI,
        "slopes",
        lambda q, k, h: -(slopes(h, 0) if h > 1 else slopes(h))[:, None, None] * back(q, k),
    ),
    "same slopes for all counts": (
        ALI,
        "slopes",
        lambda q, k, h: -(2.0 ** -(8 - torch.arange(h).flip(0)))[:, None, None] * back(q, k),
    ),
    "sorted keys": (
        ALI,
        "given-positions",
        lambda q, k, h: -slopes(h)[:, None, None] * back(q, k.sort().values),
    ),
    "half of the width": (ROPE, "same-form", lambda x, p: turned(x, angles(p, x.shape[1]))[:, ::2]),
    "angles in float64": (
        ROPE,
        "same-form",
        lambda x, p: turned(x, angles(p.double(), x.shape[1])),
    ),
    "halves joined": (
        ROPE,
        "start-stays",
        lambda x, p: torch.cat([x[:, ::2], x[:, 1::2]], 1),
    ),
    "positions from 1": (ROPE, "start-stays", lambda x, p: turned(x, angles(p + 1, x.shape[1]))),
    "clockwise": (ROPE, "one-pair", lambda x, p: turned(x, angles(p, x.shape[1]), -1)),
    "not turned": (ROPE, "one-pair", lambda x, p: x.clone()),
    "halves paired": (
        ROPE,
        "neighbours-are-pairs",
        lambda x, p: turned(x, angles(p, x.shape[1]), half=True),
    ),
    "one angle": (
        ROPE,
        "neighbours-are-pairs",
        lambda x, p: turned(x, p[:, None].float().expand(-1, x.shape[1] // 2)),
    ),
    "half the exponents": (
        ROPE,
        "neighbours-are-pairs",
        lambda x, p: turned(x, angles(p, x.shape[1], 0.5)),
    ),
    "sorted positions": (
        ROPE,
        "given-positions",
        lambda x, p: (
            turned(x, angles(p.min() + ar(p), x.shape[1]))
            if p.max() > 0
            else turned(x, angles(p, x.shape[1]))
        ),
    ),
}


@pytest.mark.parametrize("thought", MISTAKES)
def test_a_mistake_meets_its_check(thought):
    name, check, answer = MISTAKES[thought]
    for seed in SEEDS:
        end = examine(QUESTIONS[name], answer, seed).stopped_at
        assert end is not None and end.check.id == check, (seed, end)
        assert end.outcome == FAILED, end


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_check_rejects_some_mistake(name):
    met = [check for question, check, _ in MISTAKES.values() if question == name]
    assert set(met) == {check.id for check in QUESTIONS[name].checks} and len(met) >= 4


OTHER_WAYS = {
    SIN: lambda p, w: embeddings.build("ape-sinusoidal", width=w, heads=1).vectors(p).float(),
    REL: lambda q, k, t: torch.stack([row[back(q, k).clamp(0, len(row) - 1)] for row in t]),
    T5: lambda d: relations.build("t5")(d.flatten(), torch.tensor([0]))[:, 0].reshape(d.shape),
    ALI: lambda q, k, h: embeddings.build("alibi", width=h, heads=h).bias(q, k, 1),
    ROPE: lambda x, p: embeddings.build(
        "rope", width=x.shape[1], heads=1, pairing="interleaved"
    ).turn(x[None, None], p)[0, 0],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_library_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


def test_the_bucket_reference_has_the_known_values():
    at = [0, 1, 15, 16, 18, 19, 20, 23, 31, 32, 63, 64, 91, 127, 128, 1000]
    known = [0, 1, 15, 16, 16, 17, 17, 18, 21, 21, 26, 26, 29, 31, 31, 31]
    assert e02.reference_t5_bucket(torch.tensor(at)).tolist() == known
