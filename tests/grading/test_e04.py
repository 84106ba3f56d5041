"""Exercise 4: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lgcourse import relations, theory
from lgcourse.grading import questions
from lgcourse.grading.bank.e04 import (
    reference_basis_and_code,
    reference_lrc_by_length,
    reference_lrc_operators,
    reference_lrc_rank,
    reference_represents,
)
from lgcourse.grading.question import FAILED, PASSED, examine
from lgcourse.theory import targets

QUESTIONS = {question.name: question for question in questions(4)}
SEEDS = range(6)


def rows(operators, causal=True):
    """Return the operators of all pairs, flattened, one in each row."""
    l = len(operators)
    if not causal:
        return operators.reshape(l * l, -1)
    i, j = torch.tril_indices(l, l)
    return operators[i, j].flatten(1)


# --- lrc_operators --------------------------------------------------------------------------------
def count(found):
    return int(found.unique(dim=0).any(1).sum())


def less_zero(operators):
    return len(rows(operators).unique(dim=0)) - 1


def used_pairs(operators):
    return int(rows(operators).any(1).sum())


def sizes(operators):
    return count(rows(operators).abs())


# --- lrc_by_length --------------------------------------------------------------------------------
def curve(operators, block=True, causal=True, upto=True, zero=False):
    """Answer question 2, but forget something."""
    met, found = set(), []
    for n in range(1, len(operators) + 1):
        table = operators[n - 1][:n, :n] if block else operators[n - 1]
        new = {tuple(row) for row in rows(table, causal).tolist() if zero or any(row)}
        met = met | new if upto else new
        found.append(len(met))
    return found


def last_table(operators):
    return [reference_lrc_operators(operators[-1][:n, :n]) for n in range(1, len(operators) + 1)]


def running_maximum(operators):
    """The most operators that any one length has."""
    alone = curve(operators, upto=False)
    return [max(alone[: n + 1]) for n in range(len(alone))]


def new_in_last_row(operators):
    """Right for targets that do not depend on n: each length adds one row."""
    met, found = set(), []
    for n in range(1, len(operators) + 1):
        met |= {tuple(one) for one in operators[n - 1][n - 1, :n].flatten(1).tolist() if any(one)}
        found.append(len(met))
    return found


def from_length_2(operators):
    return curve(operators)[1:]


def shifted(operators):
    return [0, *curve(operators)[:-1]]


def how_many_new(operators):
    whole = [0, *curve(operators)]
    return [b - a for a, b in zip(whole, whole[1:], strict=False)]


# --- represents -----------------------------------------------------------------------------------
def fine(ids, operators, other, causal=True, zeros=True, special=True, first=None, ends=False):
    """Answer question 3, but forget something."""
    names = rows(ids[..., None, None], causal)[:, 0]
    found = rows(operators, causal)[:, :first]
    for k in names.unique():
        mine = found[names == k]
        mine = mine if zeros else mine[mine.any(1)]
        if len(mine) == 0:
            continue
        mine = mine[[0, -1]] if ends else mine
        if (mine != mine[0]).any() or (special and k == other and mine.any()):
            return False
    return True


def only_other_is_zero(ids, operators, other):
    names, found = rows(ids[..., None, None])[:, 0], rows(operators)
    silent = any(not found[names == k].any() and k != other for k in names.unique())
    return fine(ids, operators, other) and not silent


def name_by_name(ids, operators, other):
    """Demands that an operator has one name, too."""
    names, found = rows(ids[..., None, None])[:, 0], rows(operators)
    meaning = {tuple(found[names == k][0].tolist()) for k in names.unique()}
    return fine(ids, operators, other) and len(meaning) == len(names.unique())


def enough_names(ids, operators, other):
    names = rows(ids[..., None, None])[:, 0].unique()
    return len(names[names != other]) >= reference_lrc_operators(operators)


def zero_under_zero(ids, operators, other):
    return fine(ids, operators, 0)


def most_agree(ids, operators, other):
    names, found = rows(ids[..., None, None])[:, 0], rows(operators)
    for k in names.unique():
        mine = found[names == k]
        if (mine == mine.median(0).values).all(1).double().mean() < 0.8:
            return False
    return True


# --- lrc_rank -------------------------------------------------------------------------------------
def rank(table):
    return int(torch.linalg.matrix_rank(table))


def directions(operators):
    """Counts operators that are no multiple of another."""
    kept = []
    for row in rows(operators):
        if row.any() and all(rank(torch.stack([row, other])) == 2 for other in kept):
            kept.append(row)
    return len(kept)


def rank_of_rows(operators):
    i, j = torch.tril_indices(len(operators), len(operators))
    return rank(operators[i, j].flatten(0, 1))


# --- basis_and_code -------------------------------------------------------------------------------
def kept_rows(stack, order=None):
    kept = []
    for m in range(len(stack)) if order is None else order:
        if rank(stack[sorted([*kept, m])]) > len(kept):
            kept.append(m)
    return torch.tensor(sorted(kept), dtype=torch.long)


def coded(stack, kept):
    basis = stack[kept]
    return stack @ torch.linalg.pinv(basis), basis


def singular(stack):
    u, size, v = torch.linalg.svd(stack, full_matrices=False)
    r = rank(stack)
    return u[:, :r] * size[:r], v[:r]


def normalised(stack):
    code, basis = coded(stack, kept_rows(stack))
    size = basis.norm(dim=1)
    return code * size, basis / size[:, None]


def nearest(stack):
    """The code says which kept row is the nearest."""
    basis = stack[kept_rows(stack)]
    if len(basis) == 0:
        return stack[:, :0], basis
    names = torch.cdist(stack, basis).argmin(1)
    return torch.nn.functional.one_hot(names, len(basis)).to(stack), basis


def products(stack):
    """Scalar products instead of coordinates."""
    kept = kept_rows(stack)
    basis = stack[kept]
    code = stack @ basis.T / (basis**2).sum(1)
    own = torch.eye(len(kept)).to(stack)
    return torch.where(
        (torch.arange(len(stack))[:, None] == kept).any(1)[:, None],
        own[(torch.arange(len(stack))[:, None] == kept).int().argmax(1)] if len(kept) else code,
        code,
    ), basis


def by_elimination(stack):
    """Marks zero rows with a one, as if they were the first row of the basis."""
    code, basis = coded(stack, kept_rows(stack))
    code = code.clone()
    if code.shape[1]:
        code[~stack.any(1), 0] = 1
    return code, basis


def at_least_one(stack):
    kept = kept_rows(stack)
    return coded(stack, kept if len(kept) else torch.tensor([0]))


def without_zero_rows(stack):
    code, basis = coded(stack, kept_rows(stack))
    return code[stack.any(1)], basis


# --- enough_length --------------------------------------------------------------------------------
def first_rest(values):
    for n in range(1, len(values)):
        if values[n] == values[n - 1]:
            return n
    return len(values)


def last_change(values):
    """Looks for a step, and finds none in a constant curve."""
    steps = [n + 1 for n in range(1, len(values)) if values[n] != values[n - 1]]
    return max(steps) if steps else len(values)


def before_the_end(values):
    inner = values[:-1] or values
    return inner.index(inner[-1]) + 1


def longest_rest(values):
    """Where the most frequent value begins."""
    best = max(values, key=lambda v: (values.count(v), v))
    return values.index(best) + 1


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "a tensor": (
        "lrc_operators",
        "whole-number",
        lambda o: rows(o).unique(dim=0).any(1).sum(),
    ),
    "the operators": ("lrc_operators", "whole-number", lambda o: rows(o).unique(dim=0)),
    "pairs in use": ("lrc_operators", "each-once", used_pairs),
    "sizes": ("lrc_operators", "each-once", sizes),
    "zero too": ("lrc_operators", "each-once", lambda o: len(rows(o).unique(dim=0))),
    "less one": ("lrc_operators", "zero-aside", less_zero),
    "all numbers": (
        "lrc_operators",
        "whole-operators",
        lambda o: count(rows(o).flatten()[:, None]),
    ),
    "sums of entries": (
        "lrc_operators",
        "whole-operators",
        lambda o: count(rows(o).sum(1, keepdim=True)),
    ),
    "sorted entries": ("lrc_operators", "whole-operators", lambda o: count(rows(o).sort(1).values)),
    "first entry": ("lrc_operators", "whole-operators", lambda o: count(rows(o)[:, :1])),
    "whole square": ("lrc_operators", "pairs-alone", lambda o: count(rows(o, causal=False))),
    "a tensor of counts": (
        "lrc_by_length",
        "list-of-counts",
        lambda o: torch.tensor(curve(o)),
    ),
    "from length 2": ("lrc_by_length", "list-of-counts", from_length_2),
    "one number": ("lrc_by_length", "list-of-counts", lambda o: curve(o)[-1]),
    "one length late": ("lrc_by_length", "counts", shifted),
    "new ones": ("lrc_by_length", "counts", how_many_new),
    "at this length": ("lrc_by_length", "up-to-n", lambda o: curve(o, upto=False)),
    "largest so far": ("lrc_by_length", "up-to-n", running_maximum),
    "table of the last length": ("lrc_by_length", "own-table", last_table),
    "last row alone": ("lrc_by_length", "own-table", new_in_last_row),
    "rows behind": ("lrc_by_length", "pairs-alone", lambda o: curve(o, block=False)),
    "future": ("lrc_by_length", "pairs-alone", lambda o: curve(o, causal=False)),
    "with zero": ("lrc_by_length", "zero-aside", lambda o: curve(o, zero=True)),
    "tensors": (
        "represents",
        "yes-or-no",
        lambda ids, o, other: torch.tensor(fine(ids, o, other)),
    ),
    "a count of names": ("represents", "yes-or-no", lambda ids, o, other: len(ids.unique())),
    "always yes": ("represents", "one-operator-each", lambda ids, o, other: True),
    "always no": ("represents", "one-operator-each", lambda ids, o, other: False),
    "first and last pair": (
        "represents",
        "every-pair",
        lambda ids, o, other: fine(ids, o, other, ends=True),
    ),
    "most pairs": ("represents", "every-pair", most_agree),
    "enough names": ("represents", "every-pair", enough_names),
    "other like all": (
        "represents",
        "other-is-zero",
        lambda ids, o, other: fine(ids, o, other, special=False),
    ),
    "zero aside": (
        "represents",
        "zero-is-an-operator",
        lambda ids, o, other: fine(ids, o, other, zeros=False),
    ),
    "zero needs other": ("represents", "zero-is-an-operator", only_other_is_zero),
    "one name each": ("represents", "redundant-names", name_by_name),
    "first row": (
        "represents",
        "whole-operators",
        lambda ids, o, other: fine(ids, o, other, first=o.shape[3]),
    ),
    "names above": (
        "represents",
        "pairs-alone",
        lambda ids, o, other: fine(ids, o, other, causal=False),
    ),
    "rank as a tensor": (
        "lrc_rank",
        "whole-number",
        lambda o: torch.linalg.matrix_rank(rows(o)),
    ),
    "singular values": ("lrc_rank", "whole-number", lambda o: torch.linalg.svdvals(rows(o))),
    "different ones": ("lrc_rank", "multiples", reference_lrc_operators),
    "number of entries": ("lrc_rank", "multiples", lambda o: o.shape[2] * o.shape[3]),
    "rank of the table": (
        "lrc_rank",
        "multiples",
        lambda o: rank(o[:, :, 0, 0].tril()),
    ),
    "no multiples": ("lrc_rank", "mixes", directions),
    "largest rank": (
        "lrc_rank",
        "span-of-all",
        lambda o: max(rank(one) for one in rows(o).reshape(-1, *o.shape[2:])),
    ),
    "rank of the sum": (
        "lrc_rank",
        "span-of-all",
        lambda o: rank(rows(o).sum(0).reshape(o.shape[2:])),
    ),
    "all rows": ("lrc_rank", "span-of-all", rank_of_rows),
    "whole square spanned": ("lrc_rank", "pairs-alone", lambda o: rank(rows(o, causal=False))),
    "basis alone": ("basis_and_code", "two-tables", lambda s: s[kept_rows(s)]),
    "basis first": ("basis_and_code", "two-tables", lambda s: coded(s, kept_rows(s))[::-1]),
    "different rows": (
        "basis_and_code",
        "two-tables",
        lambda s: coded(s, torch.tensor(sorted({s.tolist().index(r) for r in s.tolist()}))),
    ),
    "as a list": ("basis_and_code", "two-tables", lambda s: list(coded(s, kept_rows(s)))),
    "singular vectors": ("basis_and_code", "own-rows", singular),
    "length 1": ("basis_and_code", "own-rows", normalised),
    "first r rows": (
        "basis_and_code",
        "earliest-rows",
        lambda s: coded(s, torch.arange(rank(s))),
    ),
    "from below": (
        "basis_and_code",
        "earliest-rows",
        lambda s: coded(s, kept_rows(s, range(len(s) - 1, -1, -1))),
    ),
    "nearest row": ("basis_and_code", "coordinates", nearest),
    "scalar products": ("basis_and_code", "coordinates", products),
    "zero rows marked": ("basis_and_code", "zero-rows", by_elimination),
    "never empty": ("basis_and_code", "nothing-to-mix", at_least_one),
    "a list of lengths": (
        "enough_length",
        "whole-number",
        lambda c: [n + 1 for n, v in enumerate(c) if v == c[-1]],
    ),
    "a float": ("enough_length", "whole-number", lambda c: float(c.index(c[-1]) + 1)),
    "from 0": ("enough_length", "counts-from-1", lambda c: c.index(c[-1])),
    "the value": ("enough_length", "counts-from-1", lambda c: c[-1]),
    "the whole length": ("enough_length", "counts-from-1", len),
    "first rest": ("enough_length", "rests", first_rest),
    "longest rest": ("enough_length", "rests", longest_rest),
    "last step": ("enough_length", "from-the-start", last_change),
    "one before the end": ("enough_length", "to-the-end", before_the_end),
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


# --- right answers in other ways ------------------------------------------------------------------
def target_of(operators):
    """Return the table as a target of the library."""
    return (operators * torch.ones(len(operators), len(operators)).tril()[..., None, None]).numpy()


def operators_by_the_library(operators):
    return theory.lrc(target_of(operators), len(operators))


def curve_by_the_library(operators):
    p, d = operators.shape[3:]

    def target(i, j, n):
        return operators[n - 1, i, j].reshape(p, d).numpy()

    return list(theory.lrc_curve(target, len(operators)).values())


def represents_by_a_fit(ids, operators, other):
    """Fit a POLA on this one length; without a weight for "other" its error tells."""
    names = torch.where(ids == other, 0, ids + 1)
    l, _, p, d = operators.shape
    pola = theory.POLA(relations.Table(names), d, p, dtype=torch.float64)
    target = target_of(operators)
    pola.fit(target, [l])
    pola.weight.data[0] = 0
    return pola.error(target, [l]) < 1e-9


def rank_by_the_library(operators):
    return theory.lrc(target_of(operators), len(operators), kind="rank")


def basis_by_projection(stack):
    """Gram and Schmidt: keep a row if something is left of it."""
    directions, kept = [], []
    for m, row in enumerate(stack):
        left = row.clone()
        for _ in range(2):
            for q in directions:
                left = left - (left @ q) * q
        if left.norm() > 1e-9:
            directions.append(left / left.norm())
            kept.append(m)
    basis = stack[torch.tensor(kept, dtype=torch.long)]
    code = np.linalg.lstsq(basis.T.numpy(), stack.T.numpy(), rcond=None)[0].T
    return torch.from_numpy(code.copy()), basis


def enough_by_walking_back(values):
    n = len(values)
    while n > 1 and values[n - 2] == values[-1]:
        n -= 1
    return n


OTHER_WAYS = {
    "lrc_operators": operators_by_the_library,
    "lrc_by_length": curve_by_the_library,
    "represents": represents_by_a_fit,
    "lrc_rank": rank_by_the_library,
    "basis_and_code": basis_by_projection,
    "enough_length": enough_by_walking_back,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


@pytest.mark.parametrize("name", targets.names())
def test_the_references_count_what_the_library_counts_for_its_own_targets(name):
    target = targets.get(name)
    tables = torch.zeros(7, 7, 7, *target.shape).double()
    for n in range(1, 8):
        tables[n - 1, :n, :n] = torch.from_numpy(target.dense(n))
    assert reference_lrc_by_length(tables) == list(theory.lrc_curve(name, 7).values())
    assert reference_lrc_operators(tables[-1]) == theory.lrc(name, 7)
    if name != "turning":  # its floats have full rank as fractions
        assert reference_lrc_rank(tables[-1]) == theory.lrc(name, 7, kind="rank")
    ideal = theory.ideal_relation_of(name, 7)
    ids = ideal(torch.arange(7), torch.arange(7), 7)
    assert reference_represents(ids, tables[-1], ideal.other)
    assert not reference_represents(torch.zeros(7, 7).long(), tables[-1], 0)


def test_the_examples_of_the_text():
    tables = torch.zeros(2, 2, 2, 1, 1).double()
    tables[0, 0, 0] = 5
    tables[1] = 6
    assert reference_lrc_by_length(tables) == [1, 2]
    code, basis = reference_basis_and_code(torch.tensor([[1.0, 0], [2, 0], [1, 1]]))
    assert code.tolist() == [[1, 0], [2, 0], [0, 1]] and basis.tolist() == [[1, 0], [1, 1]]
