"""Exercise 6: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
import torch

from lgcourse import tasks, theory
from lgcourse.grading import questions
from lgcourse.grading.bank.e06 import (
    reference_addition_column,
    reference_least_tables,
    reference_parity_in_threes,
    reference_run_circuit,
)
from lgcourse.grading.question import FAILED, PASSED, examine
from lgcourse.tasks.circuit import Operator, Step, execute

QUESTIONS = {question.name: question for question in questions(6)}
SEEDS = range(6)


# --- run_circuit ----------------------------------------------------------------------------------
def run(steps, prompt, order=lambda steps: sorted(steps, key=lambda s: s[0]), tuple_of=tuple):
    line = list(prompt)
    for _, table, reads in order(steps):
        line.append(table[tuple_of(line[p] for p in reads)])
    return line[len(prompt) :]


def from_the_prompt(steps, prompt):
    line = [*prompt, *[0] * len(steps)]  # never written to
    return [
        table[tuple(line[p] for p in reads)]
        for _, table, reads in sorted(steps, key=lambda s: s[0])
    ]


def positions_looked_up(steps, prompt):
    return [table.get(reads, reads[0]) for _, table, reads in steps]


def sorted_roles(steps, prompt):
    return run([(o, table, tuple(sorted(reads))) for o, table, reads in steps], prompt)


def sorted_tokens(steps, prompt):
    return run(steps, prompt, tuple_of=lambda tokens: tuple(sorted(tokens)))


def as_listed(steps, prompt):
    line = [*prompt, *[0] * len(steps)]
    for output, table, reads in steps:
        line[output] = table[tuple(line[p] for p in reads)]
    return line[len(prompt) :]


def counted_from_the_end(steps, prompt):
    return [*prompt, *run(steps, prompt)][-len(steps) :]  # -0 is 0: the whole line


# --- addition_column ------------------------------------------------------------------------------
def column(carry):
    return lambda a, b, p, q, s: (a + b + carry(p, q, s)) % 10


# --- parity_in_threes -----------------------------------------------------------------------------
def threes(first=lambda m: (0, 1, 2), reads=None, output=lambda m, t: 2 * m + 1 + t):
    reads = reads or (lambda m, t: (2 * m + t, 2 * t - 1, 2 * t))
    return lambda m: [
        (output(m, 1), first(m)),
        *((output(m, t), reads(m, t)) for t in range(2, m + 1)),
    ]


# --- least_tables ---------------------------------------------------------------------------------
def agree(f, g, arity=True, common=False):
    if arity and len(next(iter(f))) != len(next(iter(g))):
        return False
    if common and not set(f) & set(g) and f != g:
        return False
    return all(g.get(key, token) == token for key, token in f.items())


def first_fit(tables, agrees=agree, whole=True):
    groups = []
    for table in tables:
        for group in groups:
            if all(agrees(table, other) for other in (group if whole else group[-1:])):
                group.append(table)
                break
        else:
            groups.append([table])
    return len(groups)


def best_order(tables, agrees=agree, whole=True):
    return min(first_fit(order, agrees, whole) for order in permutations(tables))


def distinct(tables):
    return len({frozenset(table.items()) for table in tables})


def largest_clash(tables):
    sizes = range(1, len(tables) + 1)
    return max(
        size
        for size in sizes
        for some in combinations(tables, size)
        if all(not agree(a, b) for a, b in combinations(some, 2))
    )


def without_arity(tables):
    return best_order(tables, lambda f, g: agree(f, g, arity=False))


def by_names(tables):
    return len({id(table) for table in tables})


def chained(tables):
    """Join whatever agrees with any member of a group."""
    groups = []
    for table in tables:
        near = [g for g in groups if any(agree(table, other) for other in g)]
        groups = [g for g in groups if g not in near] + [[t for g in near for t in g] + [table]]
    return len(groups)


# --- resolvable_steps -----------------------------------------------------------------------------
def resolvable(
    train,
    test,
    name=lambda op, q, reads, ids: (op, *[ids[q][k] for k in reads]),
    keys=lambda q: slice(0, q + 1),
    alone=True,
    page=lambda ids, test_ids: ids,
):
    met = {name(op, q, r, page(ids, test[1])) for steps, ids in train for op, q, r in steps}
    steps, ids = test
    return torch.tensor([
        name(op, q, r, ids) in met
        and (not alone or all(ids[q][keys(q)].count(ids[q][k]) == 1 for k in r))
        for op, q, r in steps
    ])  # fmt: skip


def role_by_role(train, test):
    met = {
        (op, role, ids[q][k])
        for steps, ids in train
        for op, q, reads in steps
        for role, k in enumerate(reads)
    }
    steps, ids = test
    return torch.tensor([
        all(
            (op, role, ids[q][k]) in met and ids[q][: q + 1].count(ids[q][k]) == 1
            for role, k in enumerate(reads)
        )
        for op, q, reads in steps
    ])  # fmt: skip


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "the whole line": ("run_circuit", "answer-tokens", lambda s, p: [*p, *run(s, p)]),
    "a tuple": ("run_circuit", "answer-tokens", lambda s, p: tuple(run(s, p))),
    "the last token": ("run_circuit", "answer-tokens", lambda s, p: run(s, p)[-1]),
    "a tensor": ("run_circuit", "answer-tokens", lambda s, p: torch.tensor(run(s, p))),
    "no table": (
        "run_circuit",
        "reads-the-prompt",
        lambda s, p: [p[r[0]] if r[0] < len(p) else 0 for _, _, r in s],
    ),
    "positions looked up": ("run_circuit", "reads-the-prompt", positions_looked_up),
    "the prompt alone": ("run_circuit", "reads-what-was-written", from_the_prompt),
    "sorted positions": ("run_circuit", "order-of-roles", sorted_roles),
    "sorted tokens": ("run_circuit", "order-of-roles", sorted_tokens),
    "as they are listed": ("run_circuit", "any-listing", as_listed),
    "counted from the end": ("run_circuit", "short", counted_from_the_end),
    "digit and carry": (
        "addition_column",
        "one-digit",
        lambda *c: (reference_addition_column(*c), 0),
    ),
    "a float": ("addition_column", "one-digit", lambda *c: float(reference_addition_column(*c))),
    "always a carry": ("addition_column", "without-carry", column(lambda p, q, s: 1)),
    "the other way round": (
        "addition_column",
        "without-carry",
        column(lambda p, q, s: int(p + q < 10)),
    ),
    "no mod": ("addition_column", "one-digit-only", lambda a, b, p, q, s: a + b + (p + q > s)),
    "stops at nine": (
        "addition_column",
        "one-digit-only",
        lambda a, b, p, q, s: min(9, a + b + (p + q > s)),
    ),
    "carries forgotten": ("addition_column", "carry", column(lambda p, q, s: 0)),
    "carry only at nine": ("addition_column", "carry", column(lambda p, q, s: int(p + q == 9))),
    "sum above nine": ("addition_column", "carry-passed-on", column(lambda p, q, s: (p + q) // 10)),
    "digit differs from the sum": (
        "addition_column",
        "carry-passed-on",
        column(lambda p, q, s: int(p + q >= 10 and s == (p + q) % 10)),
    ),
    "nine always": ("addition_column", "nine-alone", column(lambda p, q, s: int(p + q >= 9))),
    "written digit too small": (
        "addition_column",
        "all-columns",
        column(lambda p, q, s: int(s < p) if p + q != 9 else int(s == 0)),
    ),
    "carry in taken for carry out": (
        "addition_column",
        "carry",
        column(lambda p, q, s: (s - p - q) % 10),
    ),
    "pairs without a tuple": (
        "parity_in_threes",
        "list-of-steps",
        lambda m: [(o, *r) for o, r in reference_parity_in_threes(m)],
    ),
    "one step more": (
        "parity_in_threes",
        "list-of-steps",
        lambda m: reference_parity_in_threes(m + 1),
    ),
    "lists of positions": (
        "parity_in_threes",
        "list-of-steps",
        lambda m: [(o, list(r)) for o, r in reference_parity_in_threes(m)],
    ),
    "counted from 1": (
        "parity_in_threes",
        "first-step",
        lambda m: [(o + 1, tuple(p + 1 for p in r)) for o, r in reference_parity_in_threes(m)],
    ),
    "equals forgotten": (
        "parity_in_threes",
        "first-step",
        threes(output=lambda m, t: 2 * m + t, reads=lambda m, t: (2 * m + t - 1, 2 * t - 1, 2 * t)),
    ),
    "the query": ("parity_in_threes", "first-step", threes(output=lambda m, t: 2 * m + t)),
    "y1 in the first step": (
        "parity_in_threes",
        "first-step",
        threes(first=lambda m: (2 * m + 1, 1, 2)),
    ),
    "three new bits": (
        "parity_in_threes",
        "second-step",
        threes(reads=lambda m, t: (2 * t - 2, 2 * t - 1, 2 * t)),
    ),
    "result last": (
        "parity_in_threes",
        "second-step",
        threes(reads=lambda m, t: (2 * t - 1, 2 * t, 2 * m + t)),
    ),
    "bits again": (
        "parity_in_threes",
        "second-step",
        threes(reads=lambda m, t: (2 * m + t, 2 * t - 2, 2 * t - 1)),
    ),
    "one bit per step": (
        "parity_in_threes",
        "every-m",
        threes(reads=lambda m, t: (2 * m + t, t + 1, t + 2)),
    ),
    "the groups": ("least_tables", "one-count", lambda tables: [best_order(tables)]),
    "a share": ("least_tables", "one-count", lambda tables: best_order(tables) / 1),
    "tables as objects": ("least_tables", "equal-tables", by_names),
    "all of them": ("least_tables", "equal-tables", len),
    "one table for all": ("least_tables", "equal-tables", lambda tables: 1),
    "distinct ones": ("least_tables", "partial-tables", distinct),
    "must share a tuple": (
        "least_tables",
        "partial-tables",
        lambda tables: best_order(tables, lambda f, g: agree(f, g, common=True)),
    ),
    "arity forgotten": ("least_tables", "arity", without_arity),
    "agrees with any": ("least_tables", "all-of-a-group", chained),
    "agrees with the last": (
        "least_tables",
        "all-of-a-group",
        lambda tables: best_order(tables, whole=False),
    ),
    "first fit": ("least_tables", "first-fit", first_fit),
    "largest clash": ("least_tables", "odd-ring", largest_clash),
    "the share of steps": (
        "resolvable_steps",
        "one-per-step",
        lambda a, b: resolvable(a, b).double().mean(),
    ),
    "a list": ("resolvable_steps", "one-per-step", lambda a, b: resolvable(a, b).tolist()),
    "positions": (
        "resolvable_steps",
        "ids-not-positions",
        lambda a, b: resolvable(a, b, name=lambda op, q, r, ids: (op, q, *r)),
    ),
    "operator alone": (
        "resolvable_steps",
        "ids-not-positions",
        lambda a, b: resolvable(a, b, name=lambda op, q, r, ids: op),
    ),
    "first operand alone": (
        "resolvable_steps",
        "with-its-operator",
        lambda a, b: resolvable(a, b, name=lambda op, q, r, ids: [ids[q][k] for k in r][0]),
    ),
    "operator forgotten": (
        "resolvable_steps",
        "with-its-operator",
        lambda a, b: resolvable(a, b, name=lambda op, q, r, ids: tuple(ids[q][k] for k in r)),
    ),
    "role by role": ("resolvable_steps", "ids-together", role_by_role),
    "any order": (
        "resolvable_steps",
        "ids-together",
        lambda a, b: resolvable(
            a, b, name=lambda op, q, r, ids: (op, *sorted(ids[q][k] for k in r))
        ),
    ),
    "shared ids": ("resolvable_steps", "one-key", lambda a, b: resolvable(a, b, alone=False)),
    "all keys": (
        "resolvable_steps",
        "no-future",
        lambda a, b: resolvable(a, b, keys=lambda q: slice(None)),
    ),
    "query left out": (
        "resolvable_steps",
        "ids-not-positions",
        lambda a, b: resolvable(a, b, keys=lambda q: slice(0, q)),
    ),
    "the table of the test": (
        "resolvable_steps",
        "own-table",
        lambda a, b: resolvable(a, b, page=lambda ids, other: other),
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


def addition_by_table(a, b, a_before, b_before, s_before):
    carry = {(p + q + c) % 10: (p + q + c) // 10 for p, q in [(a_before, b_before)] for c in (0, 1)}
    return int(str(a + b + carry[s_before])[-1])


def threes_by_counting(m):
    x, y = iter(range(2 * m + 1)), range(2 * m + 2, 3 * m + 2)
    before, steps = next(x), []
    for output in y:
        steps.append((output, (before, next(x), next(x))))
        before = output
    return steps


OTHER_WAYS = {
    "run_circuit": lambda steps, prompt: run(steps, prompt),
    "addition_column": addition_by_table,
    "parity_in_threes": threes_by_counting,
    "least_tables": best_order,
    "resolvable_steps": resolvable,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


def operator(table):
    return Operator("", tuple(map(str, range(len(next(iter(table)))))), table)


def test_the_references_agree_with_the_library():
    for (tables,) in QUESTIONS["least_tables"].cases(0)["odd-ring"]:
        steps = [Step(9 + k, operator(t), (0,) * len(next(iter(t)))) for k, t in enumerate(tables)]
        assert reference_least_tables(tables) == theory.src({1: steps}, 1) == 3
    for steps, prompt in QUESTIONS["run_circuit"].cases(0)["order-of-roles"]:
        library = [Step(output, operator(table), reads) for output, table, reads in steps]
        line = execute(library, prompt, len(prompt) + len(steps))
        assert reference_run_circuit(steps, prompt) == line[len(prompt) :]


def test_the_addition_reference_is_the_librarys_operator():
    task = tasks.get("addition")
    step = next(s for s in task.circuit(4) if s.operator.arity == 5)
    roles = step.operator.roles
    columns = [(k, v) for k, v in step.operator.table.items() if max(k) < 10]  # no + and =
    for tokens, digit in columns[::97]:
        at = dict(zip(roles, tokens, strict=True))
        known = [at[name] for name in ("a", "b", "a before", "b before", "s before")]
        assert reference_addition_column(*known) == digit
