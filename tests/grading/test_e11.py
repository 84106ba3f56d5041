"""Exercise 11: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import tasks
from lgcourse.embeddings.learned_relation import LearnedRelation, candidate_forms
from lgcourse.grading import questions
from lgcourse.grading.bank.e11 import (
    reference_copy_under_hint,
    reference_key_of,
    reference_operand_share,
    reference_read_cells,
)
from lgcourse.grading.question import FAILED, PASSED, RAISED, examine
from lgcourse.model.reading import attention_weights, operand_share
from lgcourse.relations import CellRelation, Form
from tests.untrained import run_of

QUESTIONS = {question.name: question for question in questions(11)}
SEEDS = range(6)


def cells(strength, kept, window=None, sign=-1, absolute=False, swap=False):
    window = (strength.shape[1] - 1) // 2 if window is None else window
    rank = strength.abs() if absolute else strength
    places = sorted(kept.nonzero().tolist(), key=lambda c: sign * float(rank[c[0], c[1]]))
    return [(w - window, f) if swap else (f, w - window) for f, w in places]


def unsorted(strength, kept):
    return [(f, w - (strength.shape[1] - 1) // 2) for f, w in kept.nonzero().tolist()]


def strongest(strength, kept):
    count = max(1, int(kept.sum()))
    best = torch.where(kept, strength, -99.0).flatten().argsort(descending=True)[:count].tolist()
    width = strength.shape[1]
    return [(place // width, place % width - width // 2) for place in best]


def key(cell, i, n, low=0, causal=True, whole=True, value=True, scale=True):
    a, b, c, w = cell
    j, rest = divmod((w if value else 0) - a * i - (c * n if scale else 0), b)
    if (whole and rest) or (low is not None and j < low) or (causal and j > i):
        return -1
    return j


def share(weights, operands, how="mask", empty=True):
    mask = (operands[:, :, None] == torch.arange(weights.shape[2])).any(1)
    sums = (weights * mask).sum(-1)
    if how == "roles":
        known = operands.clamp(min=0).expand(len(weights), -1, -1)
        sums = (weights.gather(2, known) * (operands >= 0)).sum(-1)
    elif how == "last":
        place = torch.where(operands < 0, weights.shape[2] - 1, operands)
        sums = (weights * (place[:, :, None] == torch.arange(weights.shape[2])).any(1)).sum(-1)
    elif how == "mean":
        sums = sums / operands.shape[1]
    elif how == "max":
        sums = (weights * mask).amax(-1)
    return (sums[:, mask.any(1)] if empty else sums).mean(1)


def drop(strength, cost, spare, add=True, stop=False, less=False, order=None, flip=False):
    total, kept = 0.0, torch.ones(len(strength), dtype=torch.bool)
    for cell in (strength if order is None else order).argsort().tolist():
        new = (total if add else 0.0) + float(cost[cell])
        if new < spare or (new == spare and not less):
            total, kept[cell] = new, False
        elif stop:
            break
    return ~kept if flip else kept


def written(x, hint, query=1, wrap=False, first=False, truth=None, equals=10):
    line, n = [*x.tolist(), equals], len(x)
    for t in range(n):
        j = n + 1 + t - query - hint
        if j < 0 and not wrap and not (first and t > 0):
            line.append(-1)
        elif truth is not None and j > n:
            line.append(int(x[j - n - 1]) if truth == "true" else truth)
        else:
            line.append(line[j if j >= 0 or wrap else 0])
    return torch.tensor(line[n + 1 :])


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "a tensor": ("read_cells", "list-of-pairs", lambda s, k: k.nonzero()),
    "lists": ("read_cells", "list-of-pairs", lambda s, k: [list(c) for c in cells(s, k)]),
    "by strength alone": (
        "read_cells",
        "list-of-pairs",
        lambda s, k: cells(s, s > 0.5),
    ),
    "column as value": ("read_cells", "form-and-value", lambda s, k: cells(s, k, window=0)),
    "value first": ("read_cells", "form-and-value", lambda s, k: cells(s, k, swap=True)),
    "row by row": ("read_cells", "strongest-first", unsorted),
    "weakest first": ("read_cells", "strongest-first", lambda s, k: cells(s, k, sign=1)),
    "absolute": (
        "read_cells",
        "strongest-first",
        lambda s, k: cells(s, k, absolute=True),
    ),
    "window of three": ("read_cells", "any-window", lambda s, k: cells(s, k, window=3)),
    "at least one": ("read_cells", "none-kept", strongest),
    "a float": ("key_of", "a-position", lambda c, i, n: (c[3] - c[0] * i - c[2] * n) / c[1]),
    "none": ("key_of", "a-position", lambda c, i, n: str(key(c, i, n))),
    "b forgotten": (
        "key_of",
        "solves-for-the-key",
        lambda c, i, n: c[3] - c[0] * i - c[2] * n,
    ),
    "n forgotten": ("key_of", "solves-for-the-key", lambda c, i, n: key(c, i, n, scale=False)),
    "copy only": ("key_of", "any-form", lambda c, i, n: max(-1, i - n)),
    "value forgotten": ("key_of", "any-form", lambda c, i, n: key(c, i, n, value=False)),
    "one n": ("key_of", "any-form", lambda c, i, n: key((*c[:2], max(-1, c[2]), c[3]), i, n)),
    "negative": ("key_of", "starts-at-zero", lambda c, i, n: key(c, i, n, low=None)),
    "clamped": (
        "key_of",
        "starts-at-zero",
        lambda c, i, n: max(0, key(c, i, n, low=None)),
    ),
    "future": ("key_of", "no-future", lambda c, i, n: key(c, i, n, causal=False)),
    "rounded": ("key_of", "divides", lambda c, i, n: key(c, i, n, whole=False)),
    "per query": (
        "operand_share",
        "one-share-per-head",
        lambda w, o: (w * (o[:, :, None] == torch.arange(w.shape[2])).any(1)).sum(-1),
    ),
    "one number": ("operand_share", "one-share-per-head", lambda w, o: share(w, o).mean()),
    "all rows": (
        "operand_share",
        "right-keys",
        lambda w, o: w[:, :, o.flatten()].sum(-1).mean(1),
    ),
    "share of the largest": (
        "operand_share",
        "right-keys",
        lambda w, o: (w.argmax(-1)[:, :, None] == o).any(-1).float().mean(1),
    ),
    "mean of operands": ("operand_share", "adds-operands", lambda w, o: share(w, o, "mean")),
    "best operand": ("operand_share", "adds-operands", lambda w, o: share(w, o, "max")),
    "last key": ("operand_share", "missing-operand", lambda w, o: share(w, o, "last")),
    "sum over roles": ("operand_share", "counted-once", lambda w, o: share(w, o, "roles")),
    "all queries": ("operand_share", "steps-only", lambda w, o: share(w, o, empty=False)),
    "numbers of cells": (
        "drop_weakest",
        "kept-or-not",
        lambda s, c, p: drop(s, c, p).nonzero()[:, 0],
    ),
    "a list of bools": ("drop_weakest", "kept-or-not", lambda s, c, p: drop(s, c, p).tolist()),
    "dropped ones": ("drop_weakest", "spares-the-free", lambda s, c, p: drop(s, c, p, flip=True)),
    "keeps all": ("drop_weakest", "spares-the-free", lambda s, c, p: s > 0),
    "in sorted order": (
        "drop_weakest",
        "spares-the-free",
        lambda s, c, p: drop(s.sort().values, c[s.argsort()], p),
    ),
    "by strength": (
        "drop_weakest",
        "weak-is-not-useless",
        lambda s, c, p: s >= s.max() - 1,
    ),
    "stops": ("drop_weakest", "weak-is-not-useless", lambda s, c, p: drop(s, c, p, stop=True)),
    "one by one": ("drop_weakest", "costs-add-up", lambda s, c, p: drop(s, c, p, add=False)),
    "cheapest first": (
        "drop_weakest",
        "weakest-first",
        lambda s, c, p: drop(s, c, p, order=c + s / 100),
    ),
    "below the bound": ("drop_weakest", "at-the-bound", lambda s, c, p: drop(s, c, p, less=True)),
    "with the prompt": (
        "copy_under_hint",
        "n-tokens",
        lambda x, h: torch.cat([x, torch.tensor([10]), written(x, h)]),
    ),
    "a list of tokens": ("copy_under_hint", "n-tokens", lambda x, h: written(x, h).tolist()),
    "query on the output": ("copy_under_hint", "true-hint", lambda x, h: written(x, h, query=0)),
    "query before equals": ("copy_under_hint", "true-hint", lambda x, h: written(x, h, query=2)),
    "hint ignored": ("copy_under_hint", "one-too-large", lambda x, h: x.clone()),
    "from the end": ("copy_under_hint", "one-too-large", lambda x, h: written(x, h, wrap=True)),
    "wrong way": (
        "copy_under_hint",
        "one-too-large",
        lambda x, h: written(x, 2 * len(x) - h),
    ),
    "only the first": ("copy_under_hint", "far-too-large", lambda x, h: written(x, h, first=True)),
    "no equals": ("copy_under_hint", "one-too-small", lambda x, h: written(x, h, equals=-1)),
    "stays inside": (
        "copy_under_hint",
        "one-too-small",
        lambda x, h: x.roll(h - len(x)) if h < len(x) else written(x, h),
    ),
    "true answer": (
        "copy_under_hint",
        "reads-itself",
        lambda x, h: written(x, h, truth="true"),
    ),
    "nothing behind": ("copy_under_hint", "reads-itself", lambda x, h: written(x, h, truth=-1)),
}  # fmt: skip


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


def cells_by_ranking(strength, kept):
    order = strength.flatten().argsort(descending=True)
    order = order[kept.flatten()[order]]
    width = strength.shape[1]
    return [(int(p) // width, int(p) % width - (width - 1) // 2) for p in order]


def share_by_scatter(weights, operands):
    room = torch.zeros(len(operands), weights.shape[2] + 1)
    room = room.scatter(1, torch.where(operands < 0, weights.shape[2], operands), 1.0)[:, :-1]
    used = room.sum(1) > 0
    return torch.einsum("hqk,qk->hq", weights, room)[:, used].sum(1) / used.sum()


def drop_by_prefix(strength, cost, spare):
    kept = [True] * len(strength)
    for _, cell in sorted((float(s), c) for c, s in enumerate(strength)):
        kept[cell] = False
        if sum(float(c) for c, stays in zip(cost, kept, strict=True) if not stays) > spare:
            kept[cell] = True
    return torch.tensor(kept)


def copy_by_index(x, hint):
    answer, n = torch.full_like(x, -1), len(x)
    for t in range(n):
        j = n + t - hint
        if j >= 0:
            answer[t] = x[j] if j < n else 10 if j == n else answer[j - n - 1]
    return answer


OTHER_WAYS = {
    "read_cells": cells_by_ranking,
    "key_of": lambda c, i, n: ([j for j in range(i, -1, -1)
                                if j * c[1] == c[3] - c[0] * i - c[2] * n] or [-1])[0],
    "operand_share": share_by_scatter,
    "drop_weakest": drop_by_prefix,
    "copy_under_hint": copy_by_index,
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


def test_the_cells_are_those_that_the_library_reads():
    torch.manual_seed(0)
    made, source = LearnedRelation(candidate_forms(), heads=3), torch.Generator().manual_seed(0)
    with torch.no_grad():
        made.table.normal_(generator=source)
    made.anneal(0.5, source)
    for head, strength in enumerate(made.strength().detach()):
        found = reference_read_cells(strength, made.kept[head])
        assert [(made.forms[f], value) for f, value in found] == made.cells(head) != []


@pytest.mark.parametrize("cell", [(1, -1, -1, 0), (1, 1, -2, -1), (1, -2, 0, 1), (0, 1, -1, 2)])
def test_the_key_is_the_one_that_the_librarys_relation_names(cell):
    a, b, c, value = cell
    query, n = torch.arange(20), 6
    keys, _ = CellRelation([(Form(a, b, c), value)]).named(query, n)
    assert keys[:, 0].tolist() == [reference_key_of(cell, i, n) for i in range(20)]


def test_the_share_is_the_one_that_the_library_measures():
    run = run_of("addition", "rpe")
    batch = run.task.sample(5, 1, torch.Generator().manual_seed(0))
    steps = [s for s in run.task.circuit(5) if s.inputs]
    query = torch.tensor([step.query for step in steps])
    most = max(len(step.inputs) for step in steps)
    operands = torch.tensor([[*s.inputs, *[-1] * (most - len(s.inputs))] for s in steps])
    weights = attention_weights(run.model, batch.tokens, 5, query)[0, 0].detach()
    want = operand_share(run.model, batch, steps).on_operands[0]
    assert reference_operand_share(weights, operands).tolist() == pytest.approx(want, abs=1e-5)


def test_under_the_true_hint_the_answer_is_that_of_the_task():
    task = tasks.get("copy")
    digits = torch.tensor([3, 1, 4, 1, 5])
    assert task.decode(reference_copy_under_hint(digits, 5).tolist()) == task.solve("31415=")
    assert reference_copy_under_hint(digits, 3).tolist() == [4, 1, 5, 10, 4]
    assert reference_copy_under_hint(digits, 6).tolist() == [-1, 3, 1, 4, 1]
