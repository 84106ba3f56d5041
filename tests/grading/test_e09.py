"""Exercise 9: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import relations, tasks
from lgcourse.grading import questions
from lgcourse.grading.bank.e09 import (
    reference_fit_form,
    reference_misread,
    reference_scale_of,
    reference_shift_relation,
    reference_tokens_saved,
)
from lgcourse.grading.question import FAILED, PASSED, examine

QUESTIONS = {question.name: question for question in questions(9)}
SEEDS = range(6)


def apart(query, key):
    return query[:, None] - key[None, :]


def read(query, key, n, far=1, first=True, guard=True, at=None):
    """Answer question 2 with a choice of mistakes."""
    i, j = query[:, None], key[None, :]
    later = (i - j == n + far) & ((j < n - 1) if guard else (j >= 0))
    one = (i == n if at is None else at(i, n)) & (i - j == 1)
    return torch.where(later | (one & first), 0, 1)


def arange(query, key, n):
    return read(torch.arange(len(query)) + n, torch.arange(len(key)), n)


def fit(query, key, scale, signs=(-1, 1), factors=range(4), change=lambda value: value):
    """Answer question 3 with a choice of mistakes."""
    for b in signs:
        for c in factors:
            value = change(query + b * key - c * scale)
            if bool((value == value[0]).all()):
                return b, c, int(value[0])
    return -1, 0, int(query[0] - key[0])


def fit_plus(query, key, scale):
    b, c, value = fit(query, key, scale)
    return b, -c, value


def names(n):
    a, b = ([f"{letter}{k}" for k in range(1, n + 1)] for letter in "ab")
    return [*a, "+", *b, "=", *(f"s{k}" for k in range(1, n + 2))]


def reads(n, query, *back, wrap=False):
    layout = names(n)
    places = [query - distance for distance in back]
    return tuple(layout[p] if p >= 0 or wrap else "nothing" for p in places)


def columns(n, told, t):
    """The learner moves the column, the same for a and b."""
    back = n - told
    return tuple(f"{x}{t + back}" if t + back >= 1 else "nothing" for x in "ab")


def digits_only(n, told, t):
    """Distances are right, but a name is always a digit of its own number."""
    a, b = t + 2 * (n - told), t + n - told
    return tuple(f"{x}{k}" if k >= 1 else "nothing" for x, k in (("a", a), ("b", b)))


def clamped(n, told, t):
    a, b = 2 * n + t - 2 * told - 1, 2 * n + t - told
    layout = names(n)
    return layout[max(a, 0)], layout[max(b, 0)]


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "one number": ("scale_of", "one-per-row", lambda x: (x == 10).nonzero()[:, 1].min()),
    "a list": ("scale_of", "one-per-row", lambda x: (x == 10).long().argmax(1).tolist()),
    "mask": ("scale_of", "one-per-row", lambda x: x == 10),
    "counted from 1": ("scale_of", "counts", lambda x: (x == 10).long().argmax(1) + 1),
    "the equals": ("scale_of", "counts", lambda x: (x == 11).long().argmax(1)),
    "both operands": ("scale_of", "counts", lambda x: (x == 11).long().argmax(1) - 1),
    "by the length": (
        "scale_of",
        "from-prompt",
        lambda x: torch.full((len(x),), (x.shape[1] - 3) // 3),
    ),
    "by the digits": ("scale_of", "from-prompt", lambda x: ((x < 10).sum(1) - 1) // 3),
    "by the answer": (
        "scale_of",
        "from-prompt",
        lambda x: x.shape[1] - (x == 11).long().argmax(1) - 2,
    ),
    "the first row": (
        "scale_of",
        "each-row",
        lambda x: (x[:1] == 10).long().argmax(1).repeat(len(x)),
    ),
    "bool": ("shift_relation", "one-id-per-pair", lambda q, k, n: apart(q, k) != n + 1),
    "turned": ("shift_relation", "one-id-per-pair", lambda q, k, n: read(q, k, n).T),
    "as in copy": ("shift_relation", "later-steps", lambda q, k, n: read(q, k, n, far=0)),
    "query on the output": ("shift_relation", "later-steps", lambda q, k, n: read(q, k, n, far=2)),
    "ids swapped": ("shift_relation", "later-steps", lambda q, k, n: 1 - read(q, k, n)),
    "n forgotten": ("shift_relation", "needs-scale", lambda q, k, n: read(q, k, 5)),
    "one line": ("shift_relation", "first-step", lambda q, k, n: read(q, k, n, first=False)),
    "first by remainder": (
        "shift_relation",
        "first-step",
        lambda q, k, n: read(q, k, n, at=lambda i, n: i == n + 1),
    ),
    "always the one before": (
        "shift_relation",
        "only-the-first",
        lambda q, k, n: read(q, k, n, at=lambda i, n: i >= n),
    ),
    "in the prompt too": (
        "shift_relation",
        "only-the-first",
        lambda q, k, n: read(q, k, n, at=lambda i, n: i <= n),
    ),
    "arange": (
        "shift_relation",
        "given-positions",
        lambda q, k, n: read(q, torch.arange(len(k)), n),
    ),
    "last query": ("shift_relation", "whole", lambda q, k, n: read(q, k, n, guard=False)),
    "a list of three": ("fit_form", "three-integers", lambda q, k, n: list(fit(q, k, n))),
    "a tensor inside": (
        "fit_form",
        "three-integers",
        lambda q, k, n: (-1, 1, (q - k - n)[0]),
    ),
    "always with hint": (
        "fit_form",
        "no-hint",
        lambda q, k, n: (-1, 1, int((q - k - n)[0])),
    ),
    "distance forgotten": ("fit_form", "no-hint", lambda q, k, n: (*fit(q, k, n)[:2], 0)),
    "no hint tried": ("fit_form", "one-n", lambda q, k, n: fit(q, k, n, factors=(0,))),
    "sign of c": ("fit_form", "one-n", fit_plus),
    "one scale": (
        "fit_form",
        "one-n",
        lambda q, k, n: fit(q[n == n[0]], k[n == n[0]], n[n == n[0]]),
    ),
    "a switch": ("fit_form", "more-n", lambda q, k, n: fit(q, k, n, factors=(0, 1))),
    "up to two": ("fit_form", "more-n", lambda q, k, n: fit(q, k, n, factors=(0, 1, 2))),
    "abs": (
        "fit_form",
        "negative-value",
        lambda q, k, n: fit(q, k, n, change=lambda value: value.abs()),
    ),
    "differences only": ("fit_form", "sum", lambda q, k, n: fit(q, k, n, signs=(-1,))),
    "a list of names": (
        "misread",
        "two-names",
        lambda n, m, t: list(reads(n, 2 * n + t, 2 * m + 1, m)),
    ),
    "positions": ("misread", "two-names", lambda n, m, t: (2 * n + t - 2 * m - 1, 2 * n + t - m)),
    "query where s stands": (
        "misread",
        "true-hint",
        lambda n, m, t: reads(n, 2 * n + t + 1, 2 * m + 1, m),
    ),
    "plus forgotten": ("misread", "true-hint", lambda n, m, t: reads(n, 2 * n + t, 2 * m, m)),
    "b first": ("misread", "true-hint", lambda n, m, t: reads(n, 2 * n + t, m, 2 * m + 1)),
    "hint ignored": ("misread", "one-off", lambda n, m, t: reads(n, 2 * n + t, 2 * n + 1, n)),
    "query told too": (
        "misread",
        "one-off",
        lambda n, m, t: reads(n, 2 * m + t, 2 * m + 1, m),
    ),
    "one column": ("misread", "one-off", columns),
    "the other way": (
        "misread",
        "one-off",
        lambda n, m, t: reads(n, 2 * n + t, 4 * n - 2 * m + 1, 2 * n - m),
    ),
    "digits only": ("misread", "across-signs", digits_only),
    "from the end": (
        "misread",
        "before-start",
        lambda n, m, t: (
            reads(n, 2 * n + t, min(2 * m + 1, 2 * n + t + 1), m, wrap=True)
            if 2 * n + t - m >= 0
            else ("s1", "s1")
        ),
    ),
    "clamped": ("misread", "before-start", clamped),
    "tokens": (
        "tokens_saved",
        "one-number",
        lambda top, w: (3 * w + 5) * top - sum(3 * n + 3 for n in range(1, top + 1)),
    ),
    "a tensor": (
        "tokens_saved",
        "one-number",
        lambda top, w: 1 - torch.tensor(3.0 * (top + 1) / 2 + 3) / (3 * w + 5),
    ),
    "what is left": (
        "tokens_saved",
        "lengths",
        lambda top, w: (3 * (top + 1) / 2 + 3) / (3 * w + 5),
    ),
    "no signs": (
        "tokens_saved",
        "lengths",
        lambda top, w: 1 - (3 * (top + 1) / 2 + 1) / (3 * w + 3),
    ),
    "three numbers of W": (
        "tokens_saved",
        "lengths",
        lambda top, w: 1 - (3 * (top + 1) / 2 + 3) / (3 * w + 3),
    ),
    "the longest": (
        "tokens_saved",
        "mean-over-scales",
        lambda top, w: 1 - (3 * top + 3) / (3 * w + 5),
    ),
    "half of the longest": (
        "tokens_saved",
        "mean-over-scales",
        lambda top, w: 1 - (3 * (top // 2 or 1) + 3) / (3 * w + 5),
    ),
}


@pytest.mark.parametrize("thought", MISTAKES)
def test_a_mistake_meets_its_check(thought):
    name, check, answer = MISTAKES[thought]
    for seed in SEEDS:
        end = examine(QUESTIONS[name], answer, seed).stopped_at
        assert end is not None and (end.check.id, end.outcome) == (check, FAILED), (seed, end)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_check_rejects_some_mistake(name):
    met = [check for question, check, _ in MISTAKES.values() if question == name]
    assert set(met) == {check.id for check in QUESTIONS[name].checks} and len(met) >= 4


def scale_of_by_equals(tokens):
    return ((tokens == 11).nonzero()[:, 1] - 1) // 2


def shift_relation_by_lookup(query, key, n):
    wanted = torch.where(query == n, n - 1, query - n - 1)
    step = (query >= n) & (query < 2 * n)
    return 1 - ((wanted[:, None] == key[None]) & step[:, None]).long()


def fit_form_by_differences(query, key, scale):
    steps = sorted(zip(scale.tolist(), query.tolist(), key.tolist(), strict=True))
    for b in (1, -1):
        sums = {}
        for n, i, j in steps:
            sums.setdefault(n, set()).add(i + b * j)
        if all(len(found) == 1 for found in sums.values()):
            (low, (one,)), *_, (high, (two,)) = sums.items()
            c, rest = divmod(two - one, high - low)
            if rest == 0 and all(found == {one + c * (n - low)} for n, found in sums.items()):
                return b, c, one - c * low
    return None


def misread_by_parts(n, told, t):
    def name(place):
        if place < 0:
            return "nothing"
        number, digit = divmod(place, n + 1)
        if number < 2:
            return "+="[number] if digit == n else f"{'ab'[number]}{digit + 1}"
        return f"s{place - 2 * n - 1}"

    return name(2 * (n - told) + t - 1), name(2 * n - told + t)


def tokens_saved_by_counting(longest, width):
    mean = sum(3 * n + 3 for n in range(1, longest + 1)) / longest
    full = 3 * (width + 1) + 2
    return (full - mean) / full


OTHER_WAYS = {
    "scale_of": scale_of_by_equals,
    "shift_relation": shift_relation_by_lookup,
    "fit_form": fit_form_by_differences,
    "misread": misread_by_parts,
    "tokens_saved": tokens_saved_by_counting,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_references_agree_with_the_library(n):
    shift, plain = tasks.get("shift"), tasks.get("addition")
    at = torch.arange(shift.length(n))
    library = relations.build("ideal-sh", shift, max_scale=9)(at, at, n)
    assert torch.equal(reference_shift_relation(at, at, n), library)
    batch = plain.sample(n, 3, torch.Generator().manual_seed(0))
    assert reference_scale_of(batch.tokens).tolist() == [n] * 3
    padded = tasks.get("addition-padded", width=12)
    mean = sum(plain.length(m) for m in range(1, n + 1)) / n
    assert reference_tokens_saved(n, 12) == pytest.approx(1 - mean / padded.length(n))
    layout = plain.layout(n)
    for t, step in enumerate(plain.circuit(n)[:n], 1):
        roles = dict(zip(step.operator.roles, step.inputs, strict=True))
        named = (layout[roles["a"]], layout[roles["b"]])
        assert reference_misread(n, n, t) == named


@pytest.mark.parametrize(("name", "role"), [("addition", "a"), ("addition", "b"), ("reverse", "x")])
def test_a_fitted_form_is_one_of_the_librarys(name, role):
    task = tasks.get(name)
    steps = [(s, n) for n in (3, 4, 7) for s in task.circuit(n)]
    at = [s.operator.roles.index(role) if role in s.operator.roles else 0 for s, _ in steps]
    query = torch.tensor([s.query for s, _ in steps])
    key = torch.tensor([s.inputs[k] for (s, _), k in zip(steps, at, strict=True)])
    scale = torch.tensor([n for _, n in steps])
    b, c, value = reference_fit_form(query, key, scale)
    terms = relations.build("ideal-sh", task, max_scale=9).terms()
    assert (1, b, (-c,), value) in {(t.form.a, t.form.b, t.form.factors, t.value) for t in terms}
