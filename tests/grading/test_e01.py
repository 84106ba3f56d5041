"""Exercise 1: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import relations, tasks
from lgcourse.grading import questions
from lgcourse.grading.bank.e01 import reference_addition_step, reference_copy_relation
from lgcourse.grading.question import FAILED, PASSED, examine

QUESTIONS = {question.name: question for question in questions(1)}
SEEDS = range(6)


def ids(query, key, n):
    return query[:, None] - key[None, :]


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "token accuracy": ("exact_match", "one-per-sample", lambda g, t: (g == t).float().mean(1)),
    "one answer for the batch": ("exact_match", "one-per-sample", lambda g, t: (g == t).all()),
    "wrong dimension": ("exact_match", "one-per-sample", lambda g, t: (g == t).all(0)),
    "a list": ("exact_match", "one-per-sample", lambda g, t: (g == t).all(1).tolist()),
    "no reduction": ("exact_match", "one-per-sample", lambda g, t: g == t),
    "kept dimension": ("exact_match", "one-per-sample", lambda g, t: (g == t).all(1, True)),
    "whole numbers": ("exact_match", "one-per-sample", lambda g, t: (g == t).all(1).long()),
    "broadcast": (
        "exact_match",
        "own-target",
        lambda g, t: (g[:, None] == t).all(-1).any(1),
    ),
    "always right": ("exact_match", "own-target", lambda g, t: torch.ones(len(g)).bool()),
    "any": ("exact_match", "one-wrong-token", lambda g, t: (g == t).any(1)),
    "most": ("exact_match", "one-wrong-token", lambda g, t: (g == t).double().mean(1) > 0.5),
    "nine of ten": ("exact_match", "one-wrong-token", lambda g, t: (g == t).double().mean(1) > 0.9),
    "99 of 100": ("exact_match", "one-wrong-token", lambda g, t: (g == t).double().mean(1) > 0.99),
    "last token": ("exact_match", "one-wrong-token", lambda g, t: g[:, -1] == t[:, -1]),
    "first token": ("exact_match", "one-wrong-token", lambda g, t: g[:, 0] == t[:, 0]),
    "sums": ("exact_match", "order-counts", lambda g, t: g.sum(1) == t.sum(1)),
    "sorted": (
        "exact_match",
        "order-counts",
        lambda g, t: (g.sort(1).values == t.sort(1).values).all(1),
    ),
    "squeeze": ("exact_match", "single", lambda g, t: (g == t).all(1).squeeze()),
    "squeeze first": (
        "exact_match",
        "single",
        lambda g, t: (g.squeeze() == t.squeeze()).all(-1),
    ),
    "a list of positions": (
        "addition_step",
        "four-numbers",
        lambda n, t: [2 * n + t, t - 1, n + t, 2 * n + t],
    ),
    "without the query": ("addition_step", "four-numbers", lambda n, t: (t - 1, n + t, 2 * n + t)),
    "floats": (
        "addition_step",
        "four-numbers",
        lambda n, t: (2 * n + t, t - 1, n + t, 4 * n / 2 + t),
    ),
    "counted from 1": (
        "addition_step",
        "digit-of-a",
        lambda n, t: (2 * n + t + 1, t, n + t + 1, 2 * n + t + 1),
    ),
    "greatest digit first": (
        "addition_step",
        "digit-of-a",
        lambda n, t: (2 * n + t, n - t, 2 * n + 1 - t, 2 * n + t),
    ),
    "plus forgotten": (
        "addition_step",
        "digit-of-b",
        lambda n, t: (2 * n + t, t - 1, n + t - 1, 2 * n + t),
    ),
    "b from 1": (
        "addition_step",
        "digit-of-b",
        lambda n, t: (2 * n + t, t - 1, n + t + 1, 2 * n + t),
    ),
    "s of this column": (
        "addition_step",
        "previous-result",
        lambda n, t: (2 * n + t, t - 1, n + t, 2 * n + t + 1),
    ),
    "equals forgotten": (
        "addition_step",
        "previous-result",
        lambda n, t: (2 * n + t - 1, t - 1, n + t, 2 * n + t - 1),
    ),
    "query on the output": (
        "addition_step",
        "query-before-output",
        lambda n, t: (2 * n + t + 1, t - 1, n + t, 2 * n + t),
    ),
    "query on the equals": (
        "addition_step",
        "query-before-output",
        lambda n, t: (2 * n + 1, t - 1, n + t, 2 * n + t),
    ),
    "bool": ("copy_relation", "one-id-per-pair", lambda q, k, n: ids(q, k, n) != n),
    "transposed": (
        "copy_relation",
        "one-id-per-pair",
        lambda q, k, n: torch.where(ids(q, k, n) == n, 0, 1).T,
    ),
    "a list of pairs": (
        "copy_relation",
        "one-id-per-pair",
        lambda q, k, n: [(i, j) for i in q.tolist() for j in k.tolist() if i - j == n],
    ),
    "off by one": (
        "copy_relation",
        "reads-n-back",
        lambda q, k, n: torch.where(ids(q, k, n) == n + 1, 0, 1),
    ),
    "ids swapped": (
        "copy_relation",
        "reads-n-back",
        lambda q, k, n: torch.where((ids(q, k, n) == n) & (k < n), 1, 0),
    ),
    "the distance itself": ("copy_relation", "reads-n-back", lambda q, k, n: ids(q, k, n)),
    "n forgotten": (
        "copy_relation",
        "needs-scale",
        lambda q, k, n: torch.where(ids(q, k, n) == 4, 0, 1),
    ),
    "arange": (
        "copy_relation",
        "given-positions",
        lambda q, k, n: torch.where(ids(torch.arange(len(q)), torch.arange(len(k)), n) == n, 0, 1),
    ),
    "abs": (
        "copy_relation",
        "no-future",
        lambda q, k, n: torch.where((ids(q, k, n).abs() == n), 0, 1),
    ),
    "last query": (
        "copy_relation",
        "last-query",
        lambda q, k, n: torch.where(ids(q, k, n) == n, 0, 1),
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


def exact_match_by_counting(guess, target):
    return (guess - target).count_nonzero(dim=-1).eq(0)


def addition_step_by_counting_back(n, t):
    length = 3 * n + 3
    output = length - (n + 1 - t) - 1
    return output - 1, output - 2 * n - 2, output - n - 1, output - 1


def copy_relation_by_lookup(query, key, n):
    wanted = query - n
    wanted = torch.where((wanted >= 0) & (wanted < n), wanted, torch.full_like(wanted, -1))
    return 1 - torch.eq(wanted.unsqueeze(1), key.unsqueeze(0)).to(torch.int64)


OTHER_WAYS = {
    "exact_match": exact_match_by_counting,
    "addition_step": addition_step_by_counting_back,
    "copy_relation": copy_relation_by_lookup,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_copy_reference_is_the_librarys_relation(n):
    task = tasks.get("copy")
    at = torch.arange(task.length(n))
    library = relations.build("ideal-sh", task, max_scale=n)(at, at, n)
    assert torch.equal(reference_copy_relation(at, at, n), library)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_the_addition_reference_is_the_librarys_circuit(n):
    names = ("a", "b", "s before")
    steps = [s for s in tasks.get("addition").circuit(n) if set(names) <= set(s.operator.roles)]
    for t, step in enumerate(steps[: n - 1], 2):  # the columns from the second to the last digit
        at = dict(zip(step.operator.roles, step.inputs, strict=True))
        assert reference_addition_step(n, t) == (step.query, *(at[name] for name in names))
