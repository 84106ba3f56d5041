"""Exercise 12: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import tasks
from lgcourse.embeddings import coupled_ids
from lgcourse.embeddings.abacus import runs
from lgcourse.grading import questions
from lgcourse.grading.bank.e12 import (
    reference_abacus_ids,
    reference_coupled_ids,
    reference_my_task,
    reference_reachable,
)
from lgcourse.grading.question import FAILED, PASSED, RAISED, examine

QUESTIONS = {question.name: question for question in questions(12)}
SEEDS = range(6)
pad = torch.nn.functional.pad


def ids(is_digit, start=-1, zero=True):
    at = torch.arange(is_digit.shape[1])
    last = torch.where(is_digit, start, at).cummax(dim=1).values
    return at - last if zero else at - last - 1


def by_first_row(is_digit):
    return ids(is_digit[:1]).expand_as(is_digit) * is_digit


def one_sign(is_digit):
    """Count the digits, less those before the last sign; a sign repeats what stands before it."""
    total = is_digit.long().cumsum(1)
    before = torch.where(is_digit, 0, total).cummax(1).values
    second = ~is_digit & pad(~is_digit, (1, 0))[:, :-1]
    return total - before + second.long()


def coupled(n, low=2, equals=1, plus=2, extra=1):
    column = torch.arange(low, n + low)
    signs = torch.tensor([n + plus]), torch.tensor([equals])
    return torch.cat([column, signs[0], column, signs[1], torch.arange(low, n + low + extra)])


def search(first, step, rounds=99, start=None, undefined=True):
    found = torch.zeros(len(step), dtype=torch.bool)
    found[(first if start is None else start)[first >= 0] if undefined else first] = True
    for _ in range(rounds):
        new = step[found]
        found[new[new >= 0] if undefined else new] = True
    return found


def by_columns(first, step):
    """Take what leads to a state for what follows it."""
    found = search(first, step, rounds=0)
    for _ in range(9):
        hits = (step[:, :, None] == found.nonzero()[:, 0]).any(-1).any(-1)
        found = found | hits
    return found


def margin(logits, right, fill=float("-inf")):
    own = logits.gather(1, right[:, None])[:, 0]
    return own, logits.scatter(1, right[:, None], fill).amax(1)


def by_value(logits, right):
    own = logits.gather(1, right[:, None])
    return (own[:, 0] - logits.masked_fill(logits == own, float("-inf")).amax(1)).min().item()


def task(x, answers=None, query=1, key=1, values=None):
    n = x.shape[1]
    made = (x - pad(x, (1, 0))[:, :-1]) % 10 if answers is None else answers
    steps = [(n + t - query, t - key, t - key - 1 if t > 1 else -1) for t in range(1, n + 1)]
    found = sorted({i - j - n for i, *read in steps for j in read if j >= 0})
    return made, steps, found if values is None else values


def running(x):
    made = [x[:, 0]]
    for t in range(1, x.shape[1]):
        made.append((x[:, t] - made[-1]) % 10)
    return torch.stack(made, 1)


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "a row": ("abacus_ids", "one-id-per-token", lambda d: ids(d)[0]),
    "floats": ("abacus_ids", "one-id-per-token", lambda d: ids(d).float()),
    "from zero": ("abacus_ids", "counts-from-one", lambda d: (ids(d) - 1).clamp(min=0)),
    "only digits marked": ("abacus_ids", "counts-from-one", lambda d: d.long()),
    "the whole sequence": ("abacus_ids", "begins-anew", lambda d: d.long().cumsum(1)),
    "digits of the whole sequence": (
        "abacus_ids",
        "begins-anew",
        lambda d: d.long().cumsum(1) * d,
    ),
    "signs count": (
        "abacus_ids",
        "begins-anew",
        lambda d: torch.where(d, ids(d), pad(ids(d), (1, 0))[:, :-1] + 1),
    ),
    "the first row for all": ("abacus_ids", "rows-apart", by_first_row),
    "down the columns": (
        "abacus_ids",
        "rows-apart",
        lambda d: ids(d.flatten()[None]).view_as(d),
    ),
    "one sign at a time": ("abacus_ids", "odd-places", one_sign),
    "too short": ("coupled_ids", "one-id-per-token", lambda n: coupled(n, extra=0)),
    "a list": ("coupled_ids", "one-id-per-token", lambda n: coupled(n).tolist()),
    "from one": ("coupled_ids", "three-digits", lambda n: coupled(n, low=1)),
    "equals at zero": ("coupled_ids", "three-digits", lambda n: coupled(n, equals=0)),
    "plus like equals": ("coupled_ids", "three-digits", lambda n: coupled(n, plus=1 - n)),
    "most digit first": (
        "coupled_ids",
        "three-digits",
        lambda n: torch.cat([coupled(n)[:n].flip(0), coupled(n)[n:]]),
    ),
    "plus at five": (
        "coupled_ids",
        "any-size",
        lambda n: coupled(n, plus=2 if n < 3 else 5 - n),
    ),
    "a set": (
        "reachable",
        "true-or-false",
        lambda f, s: search(f, s).nonzero()[:, 0],
    ),
    "numbers": ("reachable", "true-or-false", lambda f, s: search(f, s).long()),
    "every state": (
        "reachable",
        "starts-at-first",
        lambda f, s: torch.ones(len(s), dtype=torch.bool),
    ),
    "all outputs": (
        "reachable",
        "starts-at-first",
        lambda f, s: torch.isin(torch.arange(len(s)), s[s >= 0]),
    ),
    "predecessors": ("reachable", "starts-at-first", by_columns),
    "first only": ("reachable", "takes-a-step", lambda f, s: search(f, s, rounds=0)),
    "one round": ("reachable", "until-nothing-new", lambda f, s: search(f, s, rounds=1)),
    "two rounds": ("reachable", "until-nothing-new", lambda f, s: search(f, s, rounds=2)),
    "last state": ("reachable", "undefined", lambda f, s: search(f, s, undefined=False)),
    "all margins": (
        "smallest_margin",
        "a-number",
        lambda x, r: margin(x, r)[0] - margin(x, r)[1],
    ),
    "a tensor": (
        "smallest_margin",
        "a-number",
        lambda x, r: (margin(x, r)[0] - margin(x, r)[1]).min(),
    ),
    "best of all": (
        "smallest_margin",
        "right-against-others",
        lambda x, r: (margin(x, r)[0] - x.amax(1)).min().item(),
    ),
    "against the mean": (
        "smallest_margin",
        "right-against-others",
        lambda x, r: (margin(x, r)[0] - x.mean(1)).min().item(),
    ),
    "turned round": (
        "smallest_margin",
        "right-against-others",
        lambda x, r: (margin(x, r)[1] - margin(x, r)[0]).max().item(),
    ),
    "the mean": (
        "smallest_margin",
        "the-smallest",
        lambda x, r: (margin(x, r)[0] - margin(x, r)[1]).mean().item(),
    ),
    "over all tuples": (
        "smallest_margin",
        "the-smallest",
        lambda x, r: (margin(x, r)[0].min() - margin(x, r)[1].max()).item(),
    ),
    "first and second": (
        "smallest_margin",
        "wrong-is-negative",
        lambda x, r: x.topk(2).values.diff().neg().min().item(),
    ),
    "absolute": (
        "smallest_margin",
        "wrong-is-negative",
        lambda x, r: (margin(x, r)[0] - margin(x, r)[1]).abs().min().item(),
    ),
    "by value": ("smallest_margin", "a-tie", by_value),
    "zero filled": (
        "smallest_margin",
        "below-zero",
        lambda x, r: (margin(x, r)[0] - margin(x, r, fill=0.0)[1]).min().item(),
    ),
    "two parts": ("my_task", "three-parts", lambda x: task(x)[:2]),
    "values as a set": (
        "my_task",
        "three-parts",
        lambda x: (*task(x)[:2], set(task(x)[2])),
    ),
    "minus one is a position": (
        "my_task",
        "three-parts",
        lambda x: task(x, values=[0, 1]),
    ),
    "turned difference": ("my_task", "answers", lambda x: task(x, (10 - task(x)[0]) % 10)),
    "no modulus": ("my_task", "answers", lambda x: task(x, x - pad(x, (1, 0))[:, :-1])),
    "from the answer before": ("my_task", "answers", lambda x: task(x, running(x))),
    "round the corner": ("my_task", "answers", lambda x: task(x, (x - x.roll(1, 1)) % 10)),
    "query on the output": ("my_task", "steps", lambda x: task(x, query=0, values=task(x)[2])),
    "positions from one": ("my_task", "steps", lambda x: task(x, key=0, values=task(x)[2])),
    "largest first": ("my_task", "relation", lambda x: task(x, values=task(x)[2][::-1])),
    "distances of five": (
        "my_task",
        "relation",
        lambda x: task(x, values=[v + x.shape[1] for v in task(x)[2]]),
    ),
    "shortest with a value too many": (
        "my_task",
        "shortest",
        lambda x: task(x, values=[1] if x.shape[1] == 1 else None),
    ),
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


def ids_by_columns(is_digit):
    found = torch.zeros(is_digit.shape, dtype=torch.long)
    before = torch.zeros(len(is_digit), dtype=torch.long)
    for place in range(is_digit.shape[1]):
        before = (before + 1) * is_digit[:, place]
        found[:, place] = before
    return found


def coupled_by_position(n):
    at = torch.arange(3 * n + 3)
    found = at % (n + 1) + 2
    found[2 * n + 1], found[2 * n + 2 :] = 1, torch.arange(2, n + 3)
    return found


def reachable_by_matrix(first, step):
    hits = torch.zeros(len(step), len(step))
    for state, row in enumerate(step.tolist()):
        for after in row:
            if after >= 0:
                hits[state, after] = 1
    start = torch.zeros(len(step))
    for state in first.tolist():
        if state >= 0:
            start[state] = 1
    for _ in range(len(step)):
        start = ((start + start @ hits) > 0).float()
    return start > 0


def margin_by_sorting(logits, right):
    found = []
    for row, token in zip(logits, right, strict=True):
        others = torch.cat([row[:token], row[int(token) + 1 :]])
        found.append(float(row[token] - others.sort().values[-1]))
    return sorted(found)[0]


def my_task_with_zeros(x):
    n, before = x.shape[1], torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
    query = range(n, 2 * n)
    return (x - before + 10) % 10, [(i, i - n, i - n - 1) for i in query], [0, 1][: min(n, 2)]


OTHER_WAYS = {
    "abacus_ids": ids_by_columns,
    "coupled_ids": coupled_by_position,
    "reachable": reachable_by_matrix,
    "smallest_margin": margin_by_sorting,
    "my_task": my_task_with_zeros,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


def test_the_ids_are_those_of_the_library():
    text = ["314+15=9265", "12345678+9="]
    is_digit = torch.tensor([[c.isdigit() for c in line] for line in text])
    assert torch.equal(reference_abacus_ids(is_digit), runs(is_digit))
    for n in (1, 2, 3, 9):
        assert torch.equal(reference_coupled_ids(n), coupled_ids(tasks.get("addition"), n))


def test_what_is_reached_is_what_the_task_writes():
    """Products by a digit: a carry stays small, so not every pair of tokens occurs."""
    first = torch.arange(10) * 7 // 10  # the carry of 7 x_1
    step = torch.tensor([[(7 * x + carry) // 10 for x in range(10)] for carry in range(10)])
    assert reference_reachable(first, step).nonzero()[:, 0].tolist() == list(range(7))


def test_the_capstone_is_a_task_that_the_library_accepts():
    from lgcourse.relations.affine import N, T
    from lgcourse.tasks import Operator, Segment, family
    from lgcourse.tasks.base import Task, identity

    digits = tuple(range(10))
    less = Operator.from_rule("less", ("this", "before"), lambda x, b: (x - b) % 10, digits)

    class Differences(Task):
        name, example, vocabulary = "differences", "31415=", "0123456789="
        arity, chance = 2, 0.1

        def segments(self):
            return [Segment("x", N, digits), self.mark("="), Segment("y", N)]

        def families(self):
            x, y = self.places("x", "y")
            first = family(identity(10), y(T), [x(T)], 1)
            return [first, family(less, y(T), [x(T), x(T - 1)], 2, N)]

        def answer(self, prompt, scale):
            return reference_my_task(prompt[:, :scale])[0]

    made = Differences()
    tasks.check_circuit(made, 6)
    _, steps, values = reference_my_task(torch.zeros(1, 6, dtype=torch.long))
    told = [(s.query, *s.inputs) for s in sorted(made.circuit(6), key=lambda s: s.output)]
    assert [tuple(p for p in step if p >= 0) for step in steps] == told and values == [0, 1]
