"""Exercise 10: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import tasks
from lgcourse.embeddings.learned_relation import LearnedRelation, candidate_forms
from lgcourse.grading import questions
from lgcourse.grading.bank.e10 import (
    reference_exclude,
    reference_form_values,
    reference_gate_shares,
    reference_new_values,
    reference_soft_strength,
)
from lgcourse.grading.question import FAILED, PASSED, RAISED, examine
from lgcourse.relations import Form

QUESTIONS = {question.name: question for question in questions(10)}
SEEDS = range(6)
OUT = float("-inf")


def plain_softmax(gates, temperature):
    powers = torch.exp(gates / temperature)
    return powers / powers.sum(1, keepdim=True)


def values(forms, query, key, n, signs=(1, 1, 1), order=(0, 1, 2)):
    a, b, c = (sign * forms[:, k, None, None] for sign, k in zip(signs, order, strict=True))
    return a * query[:, None] + b * key[None, :] + c * n


def strength(share, table, values, window=None, mask=True, shift=None, weigh=True):
    """The right answer, with parts of it that can be left out."""
    window = (table.shape[1] - 1) // 2 if window is None else window
    shift = window if shift is None else shift
    place = torch.arange(len(table))[:, None, None]
    at = (values.clamp(-window, window) + shift).clamp(max=table.shape[1] - 1)
    picked = table[place, at]
    picked = torch.where(values.abs() <= window, picked, 0.0) if mask else picked
    return (picked * share[:, None, None] if weigh else picked).sum(0)


def excluded(bias, inside, query, key, own=True, causal=True, fill=OUT):
    i, j = query[:, None], key[None, :]
    kept = inside & (j <= i) if causal else inside
    return bias.masked_fill(~(kept | (i == j) if own else kept), fill)


def by_diagonal(bias, inside, query, key):
    own = torch.eye(len(query), len(key), dtype=torch.bool)
    past = key[None, :] <= query[:, None]
    return bias.masked_fill(~((inside & past) | own), OUT)


def new(form, trained, n, last=1, other=False, steps=None, key=lambda m, t: m - t):
    a, b, c = form

    def at(m):
        size = n if other else m
        return [a * (m + t - 1) + b * key(m, t) + c * size for t in range(1, m + 1)]

    known = {value for m in range(1, trained + last) for value in at(m)}
    return sum(value not in known for value in at(n)) / (steps or n)


def any_key(form, trained, n):
    """Count every causal pair of training as known."""
    a, b, c = form
    known = {
        a * i + b * j + c * m
        for m in range(1, trained + 1)
        for i in range(2 * m + 1)
        for j in range(i + 1)
    }
    return sum(a * (n + t - 1) + b * (n - t) + c * n not in known for t in range(1, n + 1)) / n


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "the best form": ("gate_shares", "one-share-per-form", lambda g, t: g.argmax(1)),
    "the best share": (
        "gate_shares",
        "one-share-per-form",
        lambda g, t: torch.softmax(g / t, 1).max(1).values,
    ),
    "over the heads": ("gate_shares", "adds-up-in-a-head", lambda g, t: torch.softmax(g / t, 0)),
    "over both": (
        "gate_shares",
        "adds-up-in-a-head",
        lambda g, t: torch.softmax(g.flatten() / t, 0).view_as(g),
    ),
    "no powers": ("gate_shares", "adds-up-in-a-head", lambda g, t: g / g.sum(1, keepdim=True)),
    "each for itself": ("gate_shares", "adds-up-in-a-head", lambda g, t: torch.sigmoid(g / t)),
    "times": ("gate_shares", "temperature", lambda g, t: torch.softmax(g * t, 1)),
    "no temperature": ("gate_shares", "temperature", lambda g, t: torch.softmax(g, 1)),
    "afterwards": ("gate_shares", "temperature", lambda g, t: torch.softmax(g, 1) / t),
    "overflow": ("gate_shares", "far-apart", plain_softmax),
    "keys before queries": (
        "form_values",
        "form-query-key",
        lambda f, q, k, n: values(f, q, k, n).transpose(1, 2),
    ),
    "forms last": (
        "form_values",
        "form-query-key",
        lambda f, q, k, n: values(f, q, k, n).movedim(0, -1),
    ),
    "floats": ("form_values", "form-query-key", lambda f, q, k, n: values(f, q, k, n).float()),
    "plus j": (
        "form_values",
        "distance",
        lambda f, q, k, n: values(f, q, k, n, signs=(1, -1, 1)),
    ),
    "j - i": (
        "form_values",
        "distance",
        lambda f, q, k, n: values(f, q, k, n, order=(1, 0, 2)),
    ),
    "absolute": ("form_values", "distance", lambda f, q, k, n: values(f, q, k, n).abs()),
    "the first form for all": (
        "form_values",
        "each-form",
        lambda f, q, k, n: values(f[:1].expand_as(f), q, k, n),
    ),
    "n forgotten": (
        "form_values",
        "scale",
        lambda f, q, k, n: values(f, q, k, 0),
    ),
    "n for every form": (
        "form_values",
        "each-form",
        lambda f, q, k, n: values(f, q, k, n) + n * (f[:, 0] == 0).long()[:, None, None],
    ),
    "n with the wrong sign": (
        "form_values",
        "scale",
        lambda f, q, k, n: values(f, q, k, n, signs=(1, 1, -1)),
    ),
    "own positions": (
        "form_values",
        "given-positions",
        lambda f, q, k, n: values(
            f, q[:1] * 0 + q.min() + torch.arange(len(q)), torch.arange(len(k)), n
        ),
    ),
    "forms kept": (
        "soft_strength",
        "one-number-per-pair",
        lambda s, t, v: torch.where(v.abs() <= 3, t[torch.arange(len(t))[:, None, None], v], 0.0),
    ),
    "a number": ("soft_strength", "one-number-per-pair", lambda s, t, v: strength(s, t, v).sum()),
    "doubles": ("soft_strength", "one-number-per-pair", lambda s, t, v: strength(s, t, v).double()),
    "from the end": ("soft_strength", "window-offset", lambda s, t, v: strength(s, t, v, shift=0)),
    "off by one": (
        "soft_strength",
        "window-offset",
        lambda s, t, v: strength(s, t, v, shift=(t.shape[1] + 1) // 2),
    ),
    "backwards": ("soft_strength", "window-offset", lambda s, t, v: strength(s, t.flip(1), v)),
    "no shares": ("soft_strength", "mixes-forms", lambda s, t, v: strength(s, t, v, weigh=False)),
    "mean": ("soft_strength", "mixes-forms", lambda s, t, v: strength(s, t, v) / len(t)),
    "the largest share": (
        "soft_strength",
        "mixes-forms",
        lambda s, t, v: strength(torch.eye(len(s))[s.argmax()], t, v),
    ),
    "one row for all": (
        "soft_strength",
        "mixes-forms",
        lambda s, t, v: strength(s, t[:1].expand_as(t), v),
    ),
    "clamped": (
        "soft_strength",
        "outside-is-nothing",
        lambda s, t, v: strength(s, t, v, mask=False),
    ),
    "all forms or none": (
        "soft_strength",
        "outside-is-nothing",
        lambda s, t, v: torch.where(
            (v.abs() <= (t.shape[1] - 1) // 2).all(0), strength(s, t, v, mask=False), 0.0
        ),
    ),
    "window of three, or one": (
        "soft_strength",
        "any-window",
        lambda s, t, v: strength(s, t, v, window=3 if t.shape[1] > 3 else 1 if len(t) > 2 else 0),
    ),
    "the mask": (
        "exclude",
        "one-bias-per-pair",
        lambda b, m, q, k: m | (q[:, None] == k[None, :]),
    ),
    "only what is left": ("exclude", "one-bias-per-pair", lambda b, m, q, k: b[m]),
    "zero": ("exclude", "others-are-out", lambda b, m, q, k: excluded(b, m, q, k, fill=0.0)),
    "a large number": (
        "exclude",
        "others-are-out",
        lambda b, m, q, k: excluded(b, m, q, k, fill=-9.0),
    ),
    "the wrong half": ("exclude", "others-are-out", lambda b, m, q, k: excluded(b, ~m, q, k)),
    "weights": (
        "exclude",
        "others-are-out",
        lambda b, m, q, k: torch.softmax(excluded(b, m, q, k), 1),
    ),
    "nothing left": (
        "exclude",
        "itself-stays",
        lambda b, m, q, k: excluded(b, m, q, k, own=False),
    ),
    "itself at zero": (
        "exclude",
        "itself-stays",
        lambda b, m, q, k: excluded(b, m, q, k).masked_fill(q[:, None] == k[None, :], 0.0),
    ),
    "the diagonal": ("exclude", "given-positions", by_diagonal),
    "future": ("exclude", "no-future", lambda b, m, q, k: excluded(b, m, q, k, causal=False)),
    "a count": ("new_values", "a-share", lambda f, s, n: int(new(f, s, n) * n)),
    "a tensor": ("new_values", "a-share", lambda f, s, n: torch.tensor(new(f, s, n))),
    "range ends early": (
        "new_values",
        "training-is-known",
        lambda f, s, n: new(f, s - 1, n),
    ),
    "everything is new": ("new_values", "training-is-known", lambda f, s, n: 1.0),
    "only the largest scale": (
        "new_values",
        "training-is-known",
        lambda f, s, n: (
            sum(
                f[0] * (n + t - 1) + f[1] * (n - t) + f[2] * n
                not in {f[0] * (s + u - 1) + f[1] * (s - u) + f[2] * s for u in range(1, s + 1)}
                for t in range(1, n + 1)
            )
            / n
        ),
    ),
    "any key": ("new_values", "positions-run-out", any_key),
    "share of training": (
        "new_values",
        "positions-run-out",
        lambda f, s, n: new(f, s, n, steps=s) if n > s else 0.0,
    ),
    "copy": (
        "new_values",
        "distances-run-out",
        lambda f, s, n: new(f, s, n, key=lambda m, t: t - 1),
    ),
    "n of the test": (
        "new_values",
        "own-scale",
        lambda f, s, n: new(f, s, n, other=True) if n > s else 0.0,
    ),
    "n forgotten in the form": (
        "new_values",
        "own-scale",
        lambda f, s, n: new((*f[:2], 0), s, n),
    ),
}


@pytest.mark.parametrize("thought", MISTAKES)
def test_a_mistake_meets_its_check(thought):
    name, check, answer = MISTAKES[thought]
    for seed in SEEDS:
        end = examine(QUESTIONS[name], answer, seed).stopped_at
        assert end is not None and end.check.id == check, (seed, end)
        assert end.outcome in (FAILED, RAISED), (seed, end)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_check_rejects_some_mistake(name):
    met = [check for question, check, _ in MISTAKES.values() if question == name]
    assert set(met) == {check.id for check in QUESTIONS[name].checks} and len(met) >= 4


def strength_by_cells(share, table, values):
    """Add up cell by cell, with one comparison each."""
    window = table.shape[1] // 2
    total = torch.zeros(values.shape[1:])
    for f in range(len(table)):
        for w in range(-window, window + 1):
            total = total + (values[f] == w) * (share[f] * table[f, w + window])
    return total


def new_by_counting(form, trained, n):
    a, b, c = form

    def at(m):
        return {(t, a * (m + t - 1) + b * (m - t) + c * m) for t in range(1, m + 1)}

    known = set().union(*({value for _, value in at(m)} for m in range(1, trained + 1)))
    return len([1 for _, value in at(n) if value not in known]) / n


OTHER_WAYS = {
    "gate_shares": lambda g, t: (g / t - torch.logsumexp(g / t, dim=-1, keepdim=True)).exp(),
    "form_values": lambda f, q, k, n: torch.einsum("fd,dqk->fqk", f, torch.stack([
        q[:, None].expand(-1, len(k)), k[None].expand(len(q), -1),
        torch.full((len(q), len(k)), n)])),
    "soft_strength": strength_by_cells,
    "exclude": lambda b, m, q, k: b + torch.where(
        (m & (q[:, None] >= k)) | (q[:, None] == k), 0.0, OUT),
    "new_values": new_by_counting,
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


def test_the_references_together_are_the_librarys_embedding():
    torch.manual_seed(0)
    made = LearnedRelation(candidate_forms(), heads=2)
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        made.table.normal_(generator=source)
        made.gates.normal_(generator=source)
    at, n = torch.arange(11), 4
    forms = torch.tensor([[form.a, form.b, form.c] for form in made.forms])
    values = reference_form_values(forms, at, at, n)
    causal = at[None, :] <= at[:, None]
    for share in (0.2, 0.5):
        made.anneal(share, source)
        made.eval()
        shares = reference_gate_shares(made.gates, float(made.temperature))
        factor = 8 * torch.log(at + 2.0)[:, None]
        for head in range(2):
            kept = made.kept[head]
            table = torch.where(kept, made.table[head].detach(), 0.0)
            bias = factor * reference_soft_strength(shares[head], table, values)
            if share == 0.5:
                place = (values + made.window).clamp(0, 2 * made.window)
                rows = torch.arange(len(forms))[:, None, None]
                inside = (kept[rows, place] & (values.abs() <= made.window)).any(0)
                bias = reference_exclude(bias, inside, at, at)
            torch.testing.assert_close(
                bias[causal], made.bias(at, at, n)[head][causal], atol=1e-4, rtol=1e-4
            )


def test_the_new_values_of_reverse_are_those_of_its_circuit():
    task = tasks.get("reverse")
    for a, b, c in ((1, -1, 0), (1, 1, 0), (1, 1, -2), (0, 1, -1)):
        form = Form(a, b, c)
        at = {
            n: [form(s.query, s.inputs[0], n) for s in task.circuit(n)] for n in (*range(1, 8), 12)
        }
        known = {value for n in range(1, 8) for value in at[n]}
        want = sum(value not in known for value in at[12]) / 12
        assert reference_new_values((a, b, c), 7, 12) == pytest.approx(want)
