"""Exercise 7: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import relations, tasks
from lgcourse.grading import questions
from lgcourse.grading.bank.e07 import (
    reference_first_conflict,
    reference_ideal_table,
    reference_parity_relation,
    reference_redundant_ids,
)
from lgcourse.grading.question import FAILED, PASSED, examine

QUESTIONS = {question.name: question for question in questions(7)}
SEEDS = range(6)


# --- parity_relation ------------------------------------------------------------------------------
def parity(q, k, n, back=None, bit=1, result=0, steps=True, first=False, last=False, own=0):
    i, j = q[:, None], k[None, :]
    is_bit = i - j == (n if back is None else back)
    is_result = i - j == own
    if steps:
        is_bit = is_bit & ((j < n) | last)
        is_result = is_result & (i < 2 * n) & ((n < i) | (first & (i == n)))
    return torch.where(is_bit, bit, torch.where(is_result, result, 2))


def one_after_the_other(q, k, n):
    """Take the first query and key, and count on from there."""
    return parity(q[0] + torch.arange(len(q)), k[0] + torch.arange(len(k)), n)


# --- ideal_table ----------------------------------------------------------------------------------
def table(steps, roles, length, other=len, name=None, transposed=False):
    ids = torch.full((length, length), other(roles))
    for query, reads in steps:
        for k, (key, role) in enumerate(reads):
            id = roles.index(role) if name is None else name(k, role)
            ids[(key, query) if transposed else (query, key)] = id
    return ids


def every_row(steps, roles, length):
    ids = torch.full((length, length), len(roles))
    for _, reads in steps:
        for key, role in reads:
            ids[[query for query, _ in steps], key] = roles.index(role)
    return ids


def by_used_roles(steps, roles, length):
    used = [role for role in roles if any(role == r for _, reads in steps for _, r in reads)]
    return table(steps, used, length)


# --- first_conflict -------------------------------------------------------------------------------
def conflict(first, second, queries=None, keys=None, in_order=True, differs=None):
    queries = (queries or (lambda a, b: {*a} & {*b}))(first, second)
    for query in sorted(queries) if in_order else [q for q in first if q in queries]:
        one, two = first.get(query, {}), second.get(query, {})
        joined = (keys or (lambda a, b: sorted({*a, *b})))(one, two)
        for key in joined:
            if (differs or (lambda a, b: a != b))(one.get(key), two.get(key)):
                return query, key
    return -1, -1


def both_read(a, b):
    return a is not None and b is not None and a != b


def one_reads(a, b):
    return (a is None) != (b is None)


# --- role_attention -------------------------------------------------------------------------------
def attention(ids, strengths, other, values, mask=-torch.inf, itself=True, causal=True, dim=1):
    length = len(ids)
    seen = ids != other
    if causal:
        seen = seen & torch.tril(torch.ones(length, length)).bool()
    if itself:
        seen = seen | torch.eye(length).bool()
    return strengths[ids].masked_fill(~seen, mask).softmax(dim) @ values


def by_exp(ids, strengths, other, values):
    length = len(ids)
    causal = torch.tril(torch.ones(length, length)).bool()
    seen = ((ids != other) & causal) | torch.eye(length).bool()
    parts = strengths[ids].exp() * seen
    return parts / parts.sum(1, keepdim=True) @ values


def without_softmax(ids, strengths, other, values):
    seen = (ids != other) | torch.eye(len(ids)).bool()
    return torch.where(seen, strengths[ids], 0) @ values


def causal_only(ids, strengths, other, values):
    causal = torch.tril(torch.ones(len(ids), len(ids))).bool()
    return strengths[ids].masked_fill(~causal, -torch.inf).softmax(1) @ values


def plain_mean(ids, strengths, other, values):
    return attention(ids, torch.zeros_like(strengths), other, values)


def itself_left_out(ids, strengths, other, values):
    found = attention(ids, strengths, other, values, itself=False)
    return torch.where(found.isnan(), values, found)


# --- redundant_ids --------------------------------------------------------------------------------
def redundant(train, seen=lambda row, q: row[: q + 1], joined=True, steps=True, sets=True):
    met, used, count = [], [], 0
    for ids, reads in train:
        for query in reads if steps else range(len(ids)):
            met += seen(ids[query], query)
            used += [ids[query][key] for key in reads.get(query, {})]
            if not joined:
                count += len(set(met) - set(used))
                met, used = [], []
    if not joined:
        return count
    return len(set(met) - set(used)) if sets else len([id for id in met if id not in used])


def keys_not_ids(train):
    return sum(q + 1 - len(row) for _, reads in train for q, row in reads.items())


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "transposed": ("parity_relation", "one-id-per-pair", lambda q, k, n: parity(q, k, n).T),
    "floats": ("parity_relation", "one-id-per-pair", lambda q, k, n: parity(q, k, n).float()),
    "a list": ("parity_relation", "one-id-per-pair", lambda q, k, n: parity(q, k, n).tolist()),
    "one too far": ("parity_relation", "next-bit", lambda q, k, n: parity(q, k, n, back=n + 1)),
    "ids swapped": ("parity_relation", "next-bit", lambda q, k, n: parity(q, k, n, None, 0, 1)),
    "before the query": (
        "parity_relation",
        "result-before",
        lambda q, k, n: parity(q, k, n, own=1),
    ),
    "bits alone": (
        "parity_relation",
        "result-before",
        lambda q, k, n: torch.where(q[:, None] - k == n, 1, 2),
    ),
    "n forgotten": ("parity_relation", "needs-scale", lambda q, k, n: parity(q, k, n, back=4)),
    "arange": ("parity_relation", "given-positions", one_after_the_other),
    "the = is a result": (
        "parity_relation",
        "first-step",
        lambda q, k, n: parity(q, k, n, first=True),
    ),
    "no step there": (
        "parity_relation",
        "first-step",
        lambda q, k, n: torch.where(q[:, None] == n, 2, parity(q, k, n)),
    ),
    "the last position": (
        "parity_relation",
        "no-other-query",
        lambda q, k, n: parity(q, k, n, last=True),
    ),
    "results in the prompt": (
        "parity_relation",
        "no-other-query",
        lambda q, k, n: torch.where(
            (q[:, None] == k) & (q[:, None] != n) & (k > 1), 0, parity(q, k, n)
        ),
    ),
    "nested lists": ("ideal_table", "square-of-ids", lambda s, r, n: table(s, r, n).tolist()),
    "float ids": ("ideal_table", "square-of-ids", lambda s, r, n: table(s, r, n) * 1.0),
    "rows of steps alone": (
        "ideal_table",
        "square-of-ids",
        lambda s, r, n: table(s, r, n)[[q for q, _ in s]],
    ),
    "order of the step": (
        "ideal_table",
        "roles-in-order",
        lambda s, r, n: table(s, r, n, name=lambda k, role: k),
    ),
    "keys as rows": (
        "ideal_table",
        "roles-in-order",
        lambda s, r, n: table(s, r, n, transposed=True),
    ),
    "from 1": (
        "ideal_table",
        "roles-in-order",
        lambda s, r, n: table(s, r, n, name=lambda k, role: r.index(role) + 1),
    ),
    "other is -1": (
        "ideal_table",
        "roles-in-order",
        lambda s, r, n: table(s, r, n, other=lambda roles: -1),
    ),
    "every row": ("ideal_table", "several-steps", every_row),
    "used roles": ("ideal_table", "other-is-fixed", by_used_roles),
    "the query alone": ("first_conflict", "one-pair", lambda a, b: conflict(a, b)[0]),
    "a bool": ("first_conflict", "one-pair", lambda a, b: conflict(a, b) == (-1, -1)),
    "a list of two": ("first_conflict", "one-pair", lambda a, b: list(conflict(a, b))),
    "not equal": (
        "first_conflict",
        "no-conflict",
        lambda a, b: (-1, -1) if a == b else (min({*a, *b}), 0),
    ),
    "every step": (
        "first_conflict",
        "no-conflict",
        lambda a, b: conflict(a, b, lambda x, y: {*x, *y}),
    ),
    "every step of the first": (
        "first_conflict",
        "free-queries",
        lambda a, b: conflict(a, b, lambda x, y: {*x}),
    ),
    "keys alone": (
        "first_conflict",
        "two-roles",
        lambda a, b: conflict(a, b, differs=one_reads),
    ),
    "both must read": (
        "first_conflict",
        "role-against-other",
        lambda a, b: conflict(a, b, differs=both_read),
    ),
    "keys of the first": (
        "first_conflict",
        "role-against-other",
        lambda a, b: conflict(a, b, keys=lambda x, y: sorted(x)),
    ),
    "keys of the first, then of the second": (
        "first_conflict",
        "moving-operands",
        lambda a, b: conflict(a, b, keys=lambda x, y: [*sorted(x), *sorted(set(y) - set(x))]),
    ),
    "as written": ("first_conflict", "least-pair", lambda a, b: conflict(a, b, in_order=False)),
    "the weights": (
        "role_attention",
        "one-row-per-query",
        lambda i, s, o, v: attention(i, s, o, torch.eye(len(v)).double()),
    ),
    "single precision": (
        "role_attention",
        "one-row-per-query",
        lambda i, s, o, v: attention(i, s, o, v).float(),
    ),
    "summed up": (
        "role_attention",
        "one-row-per-query",
        lambda i, s, o, v: attention(i, s, o, v).sum(0),
    ),
    "softmax over queries": (
        "role_attention",
        "mixes-by-role",
        lambda i, s, o, v: attention(i, s, o, v, dim=0),
    ),
    "zero is no weight of zero": (
        "role_attention",
        "mixes-by-role",
        lambda i, s, o, v: attention(i, s, o, v, mask=0.0),
    ),
    "other is seen": ("role_attention", "mixes-by-role", causal_only),
    "no softmax": ("role_attention", "mixes-by-role", without_softmax),
    "no strengths": ("role_attention", "mixes-by-role", plain_mean),
    "without itself": ("role_attention", "sees-itself", itself_left_out),
    "not a number": (
        "role_attention",
        "sees-itself",
        lambda i, s, o, v: attention(i, s, o, v, itself=False),
    ),
    "future roles": (
        "role_attention",
        "no-future",
        lambda i, s, o, v: attention(i, s, o, v, causal=False),
    ),
    "exp by hand": ("role_attention", "large-strengths", by_exp),
    "a mask of -1000": (
        "role_attention",
        "large-strengths",
        lambda i, s, o, v: attention(i, s, o, v, mask=-1e3),
    ),
    "the ids": ("redundant_ids", "one-count", lambda train: {redundant(train)}),
    "a share": ("redundant_ids", "one-count", lambda train: redundant(train) / 2),
    "keys behind the query": (
        "redundant_ids",
        "met-and-not-used",
        lambda train: redundant(train, seen=lambda row, q: row),
    ),
    "query left out": (
        "redundant_ids",
        "met-and-not-used",
        lambda train: redundant(train, seen=lambda row, q: row[:q]),
    ),
    "used ones": (
        "redundant_ids",
        "met-and-not-used",
        lambda train: len(
            {ids[q][k] for ids, reads in train for q, row in reads.items() for k in row}
        ),
    ),
    "every query": ("redundant_ids", "steps-alone", lambda train: redundant(train, steps=False)),
    "scale by scale": (
        "redundant_ids",
        "over-all-scales",
        lambda train: redundant(train, joined=False),
    ),
    "several times": (
        "redundant_ids",
        "over-all-scales",
        lambda train: redundant(train, sets=False),
    ),
    "keys": ("redundant_ids", "shared-ids", keys_not_ids),
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


def parity_by_lookup(query, key, n):
    step = (query >= n) & (query < 2 * n)
    bit = torch.where(step, query - n, -1)
    result = torch.where(step & (query > n), query, -1)
    return 2 - (bit[:, None] == key).long() - 2 * (result[:, None] == key).long()


def attention_by_rows(ids, strengths, other, values):
    rows = []
    for i in range(len(ids)):
        keys = [j for j in range(i + 1) if j == i or int(ids[i, j]) != other]
        weights = torch.softmax(strengths[ids[i, keys]], 0)
        rows.append((weights[:, None] * values[keys]).sum(0))
    return torch.stack(rows)


OTHER_WAYS = {
    "parity_relation": parity_by_lookup,
    "ideal_table": table,
    "first_conflict": conflict,
    "role_attention": attention_by_rows,
    "redundant_ids": redundant,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_references_agree_with_the_librarys_relation(n):
    task = tasks.get("parity-cot")
    at = torch.arange(task.length(n))
    library = relations.build("ideal-sh", task, max_scale=12)
    assert library.size == 4  # take, before, next, other
    ids = library(at, at, n)
    role = {k: library.label(k) for k in range(4)}
    merged = {k: 2 if k == library.other else int("before" not in role[k]) for k in range(4)}
    ours = torch.tensor([[merged[k] for k in row] for row in ids.tolist()])
    assert torch.equal(reference_parity_relation(at, at, n), ours)
    steps = [
        (
            s.query,
            tuple(
                (k, f"{s.operator.name} {r}")
                for k, r in zip(s.inputs, s.operator.roles, strict=True)
            ),
        )
        for s in task.circuit(n)
    ]
    names = [role[k] for k in range(3)]
    assert torch.equal(reference_ideal_table(steps, names, task.length(n)), ids)


def test_the_conflict_is_the_one_that_the_library_names():
    task = tasks.get("copy")

    def reads(n):
        found = {}
        for query, key, role in task.reads(n):
            found.setdefault(query, {})[key] = str(role)
        return found

    assert reference_first_conflict(reads(2), reads(3)) == (3, 0)
    padded = tasks.get("parity-cot-padded", width=6)
    task = padded
    assert reference_first_conflict(reads(3), reads(6)) == (-1, -1)
    relations.build("ideal", padded, max_scale=6)  # exists


def test_ideal_relations_have_one_id_to_spare():
    task = tasks.get("parity-cot")
    phi = relations.build("ideal-sh", task, max_scale=8)
    at = torch.arange(task.length(6))
    reads = {s.query: dict(zip(s.inputs, s.operator.roles, strict=True)) for s in task.circuit(6)}
    assert reference_redundant_ids([(phi(at, at, 6).tolist(), reads)]) == 1
