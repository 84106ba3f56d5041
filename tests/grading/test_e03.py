"""Exercise 3: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from lgcourse import relations, theory
from lgcourse.grading import questions
from lgcourse.grading.bank.e03 import (
    reference_half_and_own,
    reference_mean_operators,
    reference_minimum_norm,
)
from lgcourse.grading.question import FAILED, PASSED, RAISED, examine

QUESTIONS = {question.name: question for question in questions(3)}
SEEDS = range(6)


# --- pola_forward ---------------------------------------------------------------------------------
def lower(ids, diagonal=0):
    return torch.ones(ids.shape).double().tril(diagonal)[:, :, None, None]


def mixed(x, weight, ids, mask=None, rule="ijpd,bjd->bip"):
    mask = lower(ids) if mask is None else mask
    return torch.einsum(rule, weight[ids] * mask, x)


def batch_mean(x, weight, ids):
    return mixed(x.mean(0, keepdim=True).expand_as(x), weight, ids)


def either_way(x, weight, ids):
    """x W where that is possible."""
    square = weight.shape[1] == weight.shape[2]
    return mixed(x, weight, ids, rule="ijdp,bjd->bip" if square else "ijpd,bjd->bip")


# --- new_ids --------------------------------------------------------------------------------------
def block(ids, n, diagonal=0):
    return ids[:n, :n][torch.ones(n, n).bool().tril(diagonal)]


def not_in(needed, shown):
    return needed[~torch.isin(needed, shown)]


def in_order(ids, trained, tested):
    shown = set(block(ids, trained).tolist())
    return torch.tensor(
        list(dict.fromkeys(v for v in block(ids, tested).tolist() if v not in shown))
    )


def last_row(ids, trained, tested):
    return not_in(ids[tested - 1, :tested].unique(), block(ids, trained))


def above_the_largest(ids, trained, tested):
    needed = block(ids, tested).unique()
    return needed[needed > block(ids, trained).max()]


def new_rows(ids, trained, tested):
    """Everything in the rows behind training."""
    rows = [ids[i, : i + 1] for i in range(trained, tested)]
    return torch.cat(rows).unique() if rows else torch.tensor([], dtype=torch.long)


def floating(ids, trained, tested):
    made = sorted(set(block(ids, tested).tolist()) - set(block(ids, trained).tolist()))
    return torch.tensor(made)


# --- mean_operators -------------------------------------------------------------------------------
def groups(ids, operators, lengths, size, causal=True, zeros=True, once=False):
    found = [[] for _ in range(size)]
    for n in [max(lengths)] if once else lengths:
        for i in range(n):
            for j in range(i + 1 if causal else n):
                if zeros or operators[i, j].any():
                    found[int(ids[i, j])].append(operators[i, j])
    return found


def summed_up(summary, unseen=0.0, **options):
    """Answer question 3 with another summary than the mean, or with other pairs."""

    def answer(ids, operators, lengths, size):
        empty = torch.full(operators.shape[2:], unseen, dtype=operators.dtype)
        found = groups(ids, operators, lengths, size, **options)
        return torch.stack([summary(torch.stack(g)) if g else empty for g in found])

    return answer


def mean(g):
    return g.mean(0)


def nothing_for_unseen(ids, operators, lengths, size):
    found = groups(ids, operators, lengths, size)
    return torch.stack([torch.stack(g).mean(0) for g in found if g])


def last_length(ids, operators, lengths, size):
    return summed_up(mean)(ids, operators, lengths[-1:], size)


def whole_table(ids, operators, lengths, size):
    return summed_up(mean)(ids, operators, [len(ids)], size)


def mean_of_means(ids, operators, lengths, size):
    """The mean over lengths of the mean at each length."""
    each = [groups(ids, operators, [n], size) for n in lengths]
    empty = torch.zeros(operators.shape[2:], dtype=operators.dtype)
    rows = []
    for k in range(size):
        means = [torch.stack(one[k]).mean(0) for one in each if one[k]]
        rows.append(torch.stack(means).mean(0) if means else empty)
    return torch.stack(rows)


# --- descend --------------------------------------------------------------------------------------
def descended(C, A, start, rate, steps, factor=1.0, decay=0.0):
    W = start.clone()
    for _ in range(steps):
        W = (1 - decay) * W - rate * factor * C.T @ (C @ W - A)
    return W


def one_more(C, A, start, rate, steps):
    return descended(C, A, start, rate, steps + 1)


def gradient_once(C, A, start, rate, steps):
    return start - steps * rate * C.T @ (C @ start - A)


def from_zero(C, A, start, rate, steps):
    return descended(C, A, torch.zeros_like(start), rate, steps) if steps else start.clone()


def error_forgotten(C, A, start, rate, steps):
    return start + steps * rate * C.T @ A


def one_step(C, A, start, rate, steps):
    return descended(C, A, start, rate, min(steps, 1))


def unseen_to_zero(C, A, start, rate, steps):
    W = descended(C, A, start, rate, steps)
    return torch.where(C.any(0), W, 0.0) if steps else W


def small_to_zero(C, A, start, rate, steps):
    return torch.linalg.pinv(C) @ A if not C.any(0).all() else descended(C, A, start, rate, steps)


# --- minimum_norm ---------------------------------------------------------------------------------
def first_rows(C, A):
    r = min(C.shape)
    return torch.linalg.pinv(C[:r]) @ A[:r]


def some_columns(C, A):
    """A basic solution: all weight on columns that are independent of those before."""
    kept = []
    for k in range(C.shape[1]):
        if torch.linalg.matrix_rank(C[:, [*kept, k]]) > len(kept):
            kept.append(k)
    W = torch.zeros(C.shape[1], A.shape[1], dtype=C.dtype)
    W[kept] = torch.linalg.pinv(C[:, kept]) @ A
    return W


def from_ones(C, A):
    """Where gradient descent from ones ends."""
    ones = torch.ones(C.shape[1], A.shape[1], dtype=C.dtype)
    inverse = torch.linalg.pinv(C)
    return inverse @ A + ones - inverse @ C @ ones


def nan_for_unseen(C, A):
    W = torch.linalg.pinv(C) @ A
    return torch.where(C.any(0)[:, None], W, torch.nan)


def last_columns(C, A):
    return some_columns(C.flip(1), A).flip(0)


def ridge(C, A):
    eye = torch.eye(C.shape[1], dtype=C.dtype)
    return torch.linalg.solve(C.T @ C + 0.1 * eye, C.T @ A)


def normalised_rows(C, A):
    """Weighs rows differently: right only where the fit is exact."""
    size = C.norm(dim=1, keepdim=True) + torch.arange(1.0, len(C) + 1).double()[:, None]
    return torch.linalg.pinv(C / size) @ (A / size)


# --- half_and_own ---------------------------------------------------------------------------------
def named(q, k, half=None, own=None, ids=(0, 1, 2, 3)):
    i, j = q[:, None], k[None, :]
    at_half = (j == i // 2) if half is None else half(i, j)
    at_own = (j == i) if own is None else own(i, j)
    made = torch.where(at_half, ids[0], ids[3])
    return torch.where(at_own, torch.where(at_half, ids[2], ids[1]), made)


def counted_from_0(q, k):
    return named(torch.arange(len(q)) + int(q.min()), k) if len(q) > 1 else named(q, k)


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "places last": ("pola_forward", "one-vector-each", lambda *a: mixed(*a).transpose(1, 2)),
    "not summed": (
        "pola_forward",
        "one-vector-each",
        lambda x, w, ids: torch.einsum("ijpd,bjd->bijp", w[ids] * lower(ids), x),
    ),
    "float32": ("pola_forward", "one-vector-each", lambda *a: mixed(*a).float()),
    "one sequence": ("pola_forward", "one-vector-each", lambda *a: mixed(*a)[0]),
    "no mask": ("pola_forward", "only-the-past", lambda x, w, ids: mixed(x, w, ids, 1.0)),
    "without itself": (
        "pola_forward",
        "only-the-past",
        lambda x, w, ids: mixed(x, w, ids, lower(ids, -1)),
    ),
    "the future": (
        "pola_forward",
        "only-the-past",
        lambda x, w, ids: mixed(x, w, ids, lower(ids).transpose(0, 1)),
    ),
    "a mean": (
        "pola_forward",
        "only-the-past",
        lambda x, w, ids: mixed(x, w, ids) / torch.arange(1, len(ids) + 1)[:, None],
    ),
    "ids transposed": ("pola_forward", "row-is-the-query", lambda x, w, ids: mixed(x, w, ids.T)),
    "ids of the last row": (
        "pola_forward",
        "row-is-the-query",
        lambda x, w, ids: mixed(x, w, ids[-1:].expand_as(ids).clone()),
    ),
    "x W": ("pola_forward", "operator-times-vector", either_way),
    "diagonal": (
        "pola_forward",
        "operator-times-vector",
        lambda x, w, ids: mixed(
            x, torch.diag_embed(w.diagonal(0, 1, 2)) if w.shape[1] == w.shape[2] else w, ids
        ),
    ),
    "mean of the batch": ("pola_forward", "own-sequence", batch_mean),
    "first sequence": (
        "pola_forward",
        "own-sequence",
        lambda x, w, ids: mixed(x[:1], w, ids).expand(len(x), -1, -1).clone(),
    ),
    "squeezed": ("pola_forward", "single", lambda *a: mixed(*a).squeeze()),
    "length squeezed": (
        "pola_forward",
        "single",
        lambda x, w, ids: mixed(x, w, ids).squeeze(1),
    ),
    "a list": ("new_ids", "sorted-ids", lambda *a: in_order(*a).tolist()),
    "a count": ("new_ids", "sorted-ids", lambda *a: len(in_order(*a))),
    "order of appearance": ("new_ids", "sorted-ids", in_order),
    "with repetitions": (
        "new_ids",
        "sorted-ids",
        lambda ids, a, b: not_in(block(ids, b), block(ids, a)).sort().values,
    ),
    "those that are gone": (
        "new_ids",
        "sorted-ids",
        lambda ids, a, b: not_in(block(ids, a).unique(), block(ids, b)),
    ),
    "all in new rows": ("new_ids", "new-alone", new_rows),
    "above the largest": ("new_ids", "new-alone", above_the_largest),
    "no mask for the names": (
        "new_ids",
        "pairs-alone",
        lambda ids, a, b: not_in(ids[:b, :b].unique(), ids[:a, :a].unique()),
    ),
    "mask for the test only": (
        "new_ids",
        "pairs-alone",
        lambda ids, a, b: not_in(block(ids, b).unique(), ids[:a, :a].unique()),
    ),
    "mask for training only": (
        "new_ids",
        "pairs-alone",
        lambda ids, a, b: not_in(ids[:b, :b].unique(), block(ids, a)),
    ),
    "whole table": (
        "new_ids",
        "up-to-the-length",
        lambda ids, a, b: not_in(block(ids, len(ids)).unique(), block(ids, a)),
    ),
    "one length too far": (
        "new_ids",
        "up-to-the-length",
        lambda ids, a, b: not_in(block(ids, min(b + 1, len(ids))).unique(), block(ids, a)),
    ),
    "last row": ("new_ids", "all-rows", last_row),
    "a float if empty": ("new_ids", "nothing-new", floating),
    "for each length": ("mean_operators", "one-operator-each", lambda ids, o, n, s: o[:s]),
    "single precision": (
        "mean_operators",
        "one-operator-each",
        lambda *a: summed_up(mean)(*a).float(),
    ),
    "flattened": (
        "mean_operators",
        "one-operator-each",
        lambda *a: summed_up(mean)(*a).flatten(1),
    ),
    "those that occur": ("mean_operators", "new-name-zero", nothing_for_unseen),
    "nan": ("mean_operators", "new-name-zero", summed_up(mean, torch.nan)),
    "ones": ("mean_operators", "new-name-zero", summed_up(mean, 1.0)),
    "sum": ("mean_operators", "new-name-zero", summed_up(lambda g: g.sum(0))),
    "last wish": ("mean_operators", "mean", summed_up(lambda g: g[-1])),
    "first wish": ("mean_operators", "mean", summed_up(lambda g: g[0])),
    "median": ("mean_operators", "mean", summed_up(lambda g: g.median(0).values)),
    "middle of the range": (
        "mean_operators",
        "mean",
        summed_up(lambda g: (g.amax(0) + g.amin(0)) / 2),
    ),
    "zeros left out": ("mean_operators", "zeros-count", summed_up(mean, zeros=False)),
    "all squares": ("mean_operators", "pairs-alone", summed_up(mean, causal=False)),
    "each pair once": ("mean_operators", "every-length-again", summed_up(mean, once=True)),
    "last length": ("mean_operators", "every-length-again", last_length),
    "the table at once": ("mean_operators", "every-length-again", whole_table),
    "mean of means": ("mean_operators", "every-length-again", mean_of_means),
    "a step at once": ("descend", "starts-at-start", one_more),
    "zero at once": (
        "descend",
        "starts-at-start",
        lambda C, A, s, r, n: descended(C, A, 0 * s, r, n),
    ),
    "uphill": ("descend", "downhill", lambda *a: descended(*a, factor=-1.0)),
    "doubled": ("descend", "downhill", lambda *a: descended(*a, factor=2.0)),
    "mean over rows": (
        "descend",
        "downhill",
        lambda C, A, s, r, n: descended(C, A, s, r, n, factor=1 / len(C)),
    ),
    "start unused": ("descend", "where-it-stands", from_zero),
    "error forgotten": ("descend", "where-it-stands", error_forgotten),
    "one gradient": ("descend", "each-step-anew", gradient_once),
    "one step": ("descend", "each-step-anew", one_step),
    "new names to zero": ("descend", "new-names-stay", unseen_to_zero),
    "to the smallest": ("descend", "new-names-stay", small_to_zero),
    "transposed": (
        "minimum_norm",
        "one-row-each",
        lambda C, A: (torch.linalg.pinv(C) @ A).T,
    ),
    "fitted values": ("minimum_norm", "one-row-each", lambda C, A: C @ torch.linalg.pinv(C) @ A),
    "not solved": ("minimum_norm", "exact-fit", lambda C, A: C.T @ A),
    "rounded": ("minimum_norm", "exact-fit", lambda C, A: (torch.linalg.pinv(C) @ A).round()),
    "divided by counts": (
        "minimum_norm",
        "exact-fit",
        lambda C, A: C.T @ A / C.sum(0).clamp(min=1)[:, None],
    ),
    "first rows": ("minimum_norm", "least-squares", first_rows),
    "weighed rows": ("minimum_norm", "least-squares", normalised_rows),
    "from ones": ("minimum_norm", "unseen-zero", from_ones),
    "nan for unseen": ("minimum_norm", "unseen-zero", nan_for_unseen),
    "some columns": ("minimum_norm", "smallest", some_columns),
    "weight on the last columns": ("minimum_norm", "smallest", last_columns),
    "a small number added": ("minimum_norm", "exact-fit", ridge),
    "pairs as a list": (
        "half_and_own",
        "one-name-each",
        lambda q, k: [(i, j) for i in q.tolist() for j in k.tolist()],
    ),
    "keys in rows": ("half_and_own", "one-name-each", lambda q, k: named(q, k).T),
    "true or false": ("half_and_own", "one-name-each", lambda q, k: named(q, k) < 3),
    "rounded up": (
        "half_and_own",
        "half",
        lambda q, k: named(q, k, lambda i, j: j == (i + 1) // 2),
    ),
    "even only": ("half_and_own", "half", lambda q, k: named(q, k, lambda i, j: 2 * j == i)),
    "half of the key": ("half_and_own", "half", lambda q, k: named(q, k, lambda i, j: i == j // 2)),
    "other is 0": ("half_and_own", "half", lambda q, k: named(q, k, ids=(1, 2, 3, 0))),
    "half alone": (
        "half_and_own",
        "own",
        lambda q, k: named(q, k, own=lambda i, j: (j == i) & (i < 0)),
    ),
    "one name for both terms": ("half_and_own", "own", lambda q, k: named(q, k, ids=(0, 0, 2, 3))),
    "the key before": (
        "half_and_own",
        "own",
        lambda q, k: named(q, k, own=lambda i, j: j == i - 1),
    ),
    "half first": ("half_and_own", "both", lambda q, k: named(q, k, ids=(0, 1, 0, 3))),
    "own first": ("half_and_own", "both", lambda q, k: named(q, k, ids=(0, 1, 1, 3))),
    "neither": ("half_and_own", "both", lambda q, k: named(q, k, ids=(0, 1, 3, 3))),
    "counted": ("half_and_own", "given-positions", counted_from_0),
    "sorted keys": ("half_and_own", "given-positions", lambda q, k: named(q, k.sort().values)),
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


def test_a_formula_that_needs_independent_columns_ends_at_the_first_that_are_not():
    def normal_equations(C, A):
        return torch.linalg.solve(C.T @ C, C.T @ A)

    end = examine(QUESTIONS["minimum_norm"], normal_equations).stopped_at
    assert end is not None and (end.check.id, end.outcome) == ("unseen-zero", RAISED)


# --- right answers in other ways ------------------------------------------------------------------
class Looked(relations.Relation):
    """A table of ids as a relation, without a look above the diagonal."""

    def __init__(self, ids, size):
        self.table, self.size = ids, size

    def ids(self, query, key, scale):
        return self.table[query, key]


def forward_by_the_library(x, weight, ids):
    pola = theory.POLA(Looked(ids, len(weight)), x.shape[2], weight.shape[1], dtype=x.dtype)
    pola.weight.data.copy_(weight)
    return pola(x, x.shape[1]).detach()


def new_ids_by_counting(ids, trained, tested):
    size = int(ids.max()) + 1
    counts = [torch.bincount(block(ids, n), minlength=size) for n in (trained, tested)]
    return ((counts[0] == 0) & (counts[1] > 0)).nonzero()[:, 0]


def means_by_the_library(ids, operators, lengths, size):
    p, d = operators.shape[2:]
    pola = theory.POLA(Looked(ids, size), d, p, dtype=operators.dtype)
    low = operators * torch.ones(ids.shape).double().tril()[:, :, None, None]
    return pola.fit(low.numpy(), lengths).pola.weight.detach()


def descend_by_autograd(codes, wanted, start, rate, steps):
    W = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([W], lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        (((codes @ W - wanted) ** 2).sum() / 2).backward()
        optimizer.step()
    return W.detach()


def minimum_norm_by_numpy(codes, wanted):
    return torch.from_numpy(np.linalg.lstsq(codes.numpy(), wanted.numpy(), rcond=1e-10)[0])


def names_by_the_library(query, key):
    def target(i, j, n):
        return int(j == i // 2) + 3 * int(j == i)

    phi = theory.ideal_relation_of(target, int(torch.cat([query, key]).max()) + 1)
    ids = phi(query, key, 1)
    right = torch.tensor([2, 0, 1, 3])  # the library numbers operators as they appear: 4, 1, 3
    return right[ids] if phi.size == 4 else ids


OTHER_WAYS = {
    "pola_forward": forward_by_the_library,
    "new_ids": new_ids_by_counting,
    "mean_operators": means_by_the_library,
    "descend": descend_by_autograd,
    "minimum_norm": minimum_norm_by_numpy,
    "half_and_own": names_by_the_library,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


def test_the_examples_of_the_text():
    ids, operators = torch.zeros(2, 2).long(), torch.tensor([[6.0, 0], [2, 2]])[:, :, None, None]
    assert reference_mean_operators(ids, operators, [1, 2], 1).flatten().tolist() == [4]
    codes, wanted = torch.ones(1, 2).double(), torch.full((1, 1), 6.0).double()
    assert reference_minimum_norm(codes, wanted).flatten().tolist() == [3, 3]
    at = torch.arange(5)
    distances = at[:, None] - at
    assert QUESTIONS["new_ids"].reference(distances, 3, 5).tolist() == [3, 4]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fit_is_where_descent_ends_and_the_mean_is_its_special_case(seed):
    """Three questions, one answer: names as codes, and many steps from zero."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 5, (5, 5), generator=generator)
    operators = torch.randint(-9, 10, (5, 5, 1, 1), generator=generator).double()
    pairs = [(i, j) for n in (2, 5, 3) for i in range(n) for j in range(i + 1)]
    codes = torch.tensor([[float(k == ids[i, j]) for k in range(6)] for i, j in pairs]).double()
    wanted = torch.stack([operators[i, j].flatten() for i, j in pairs])
    means = reference_mean_operators(ids, operators, [2, 5, 3], 6).flatten(1)
    assert torch.allclose(means, reference_minimum_norm(codes, wanted), atol=1e-12)
    zero = torch.zeros(6).double()
    ended = QUESTIONS["descend"].reference(codes, wanted[:, 0], zero, 1 / 16, 2)
    for _ in range(40):
        ended = QUESTIONS["descend"].reference(codes, wanted[:, 0], ended, 1 / 16, 20)
    assert torch.allclose(ended, means[:, 0], atol=1e-4)


def test_the_names_made_for_the_target_are_exact_at_every_length():
    def target(i, j, n):
        return Fraction(int(j == i // 2) + 3 * int(j == i))

    at = torch.arange(40)
    phi = relations.Table(reference_half_and_own(at, at), other=3)
    model, residual = theory.POLA(phi, 1, 1).fit(target, [2])
    assert residual == 0 and model.error(target, range(1, 41)) == 0
