"""Exercise 5: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import relations, tasks, theory
from lgcourse.grading import questions
from lgcourse.grading.bank.e05 import reference_ideal_ids, reference_reverse_relation
from lgcourse.grading.question import FAILED, PASSED, examine

QUESTIONS = {question.name: question for question in questions(5)}
SEEDS = range(6)


# --- best_error -----------------------------------------------------------------------------------
def apart(learned, wanted, zero=True):
    choices = torch.cat([learned, torch.zeros_like(wanted[:1])]) if zero else learned
    return (choices[None, :] - wanted[:, None]).abs()  # m choices p d


def best(learned, wanted):
    return apart(learned, wanted).amax((2, 3)).amin(1)


def each_once(learned, wanted):
    """Give each wanted operator the nearest weight that is still free."""
    free, worst = [*learned, torch.zeros_like(wanted[0])], 0.0
    for one in wanted:
        errors = [float((weight - one).abs().max()) for weight in free]
        worst = max(worst, min(errors))
        free.pop(errors.index(min(errors)))
    return worst


# --- in_span --------------------------------------------------------------------------------------
def rank(rows):
    return int(torch.linalg.matrix_rank(rows))


def spanned(trained, new, flatten=True):
    known, new = (trained.flatten(1), new.flatten(1)) if flatten else (trained, new)
    return torch.tensor([rank(torch.cat([known, row[None]])) == rank(known) for row in new])


def by_residue(threshold):
    def answer(trained, new):
        known, rows = trained.flatten(1), new.flatten(1)
        return (rows - rows @ torch.linalg.pinv(known) @ known).abs().amax(1) < threshold

    return answer


def is_multiple_of_one(trained, new):
    return torch.tensor([
        any(rank(torch.stack([a.flatten(), b.flatten()])) < 2 for a in trained) for b in new
    ])  # fmt: skip


def growing(trained, new):
    known, found = trained.flatten(1), []
    for row in new.flatten(1):
        more = torch.cat([known, row[None]])
        found.append(rank(more) == rank(known))
        known = more
    return torch.tensor(found)


def by_number(trained, new):
    return torch.tensor([
        len(trained) >= new[0].numel() or bool(one) for one in spanned(trained, new)
    ])  # fmt: skip


def rank_is_number(trained, new):
    known = trained.flatten(1)
    return torch.tensor([
        rank(torch.cat([known, row[None]])) <= len(known) for row in new.flatten(1)
    ])  # fmt: skip


def without_zero(trained, new):
    return spanned(trained, new) & new.flatten(1).any(1)


# --- ideal_ids ------------------------------------------------------------------------------------
def numbered(operators, name, zero=lambda m: not m.any(), future=False, start=0):
    """Number pairs by the name of their operators, as a learner might."""
    known, length = {}, len(operators)
    ids = torch.full((length, length), -1)
    for i in range(length):
        for j in range(length if future else i + 1):
            if not zero(operators[i, j]):
                ids[i, j] = known.setdefault(name(operators[i, j]), len(known) + start)
    return torch.where(ids < 0, len(known) + start, ids)


def whole(operator):
    return tuple(operator.flatten().tolist())


def by_size(operators):
    length = len(operators)
    lower = torch.tril(torch.ones(length, length)).bool() & operators.flatten(2).any(2)
    _, ids = torch.unique(operators[lower].flatten(1), dim=0, return_inverse=True)
    made = torch.full((length, length), int(ids.max()) + 1 if len(ids) else 0)
    made[lower] = ids
    return made


def future_counted(operators):
    """Give no id above the diagonal, but count what stands there."""
    ids = numbered(operators, whole)
    last = int(numbered(operators, whole, future=True).max())
    other = max(last, int(ids.max()))
    return torch.where(ids == ids[0, -1], other, ids)


def behind_the_largest(operators):
    """Start with zeros, so that without any operator the largest id is 0 and `other` is 1."""
    made = numbered(operators, whole)
    other = torch.where(made < made[0, -1], made, 0).max() + 1
    return torch.where(made == made[0, -1], other, made)


# --- right_pairs ----------------------------------------------------------------------------------
def fitted(summary, unseen=0.0):
    def answer(train_ids, train_values, ids, values):
        made = []
        for id in ids.tolist():
            found = train_values[train_ids == id].tolist()
            made.append(summary(found) if found else unseen)
        return torch.tensor(made) == values

    return answer


def mean(values):
    return sum(values) / len(values)


def most_frequent(values):
    return max(values, key=values.count)


def of_distinct(values):
    return mean(list(set(values)))


# --- counterexample -------------------------------------------------------------------------------
def rows_from(start, base, extra=1.0):
    def answer(target, predicted, train_scale):
        made = target.clone()
        rows = slice(train_scale + start, None)
        made[rows] = {"target": target, "predicted": predicted}[base][rows] + extra
        return torch.tril(made)

    return answer


def no_triangle(target, predicted, train_scale):
    made = target.clone()
    made[train_scale:] = predicted[train_scale:] + 1
    return made


def from_the_prediction(target, predicted, train_scale):
    made = predicted.clone()
    made[train_scale:] += 1
    return torch.tril(made)


def where_it_differs(target, predicted, train_scale):
    made = torch.where(predicted == target, target, predicted + 1)
    made[:train_scale] = target[:train_scale]
    return made


def from_the_end(target, predicted, train_scale):
    made, new = target.clone(), len(target) - train_scale
    made[-new:] = predicted[-new:] + 1  # -0 is 0: all rows
    return torch.tril(made)


# --- reverse_relation -----------------------------------------------------------------------------
def i_plus_j(query, key):
    return query[:, None] + key[None, :]


def marked(read):
    return torch.where(read, 0, 1)


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "a tensor": ("best_error", "one-number", lambda a, b: best(a, b).max()),
    "one per pair": ("best_error", "one-number", lambda a, b: best(a, b)),
    "an int": ("best_error", "one-number", lambda a, b: int(best(a, b).max())),
    "mean over pairs": ("best_error", "worst-pair", lambda a, b: best(a, b).mean().item()),
    "best pair": ("best_error", "worst-pair", lambda a, b: best(a, b).min().item()),
    "worst choice": ("best_error", "worst-pair", lambda a, b: apart(a, b).max().item()),
    "one choice for all": (
        "best_error",
        "worst-pair",
        lambda a, b: apart(a, b).amax((0, 2, 3)).min().item(),
    ),
    "in order": ("best_error", "worst-pair", lambda a, b: (a[: len(b)] - b).abs().max().item()),
    "each weight once": ("best_error", "known-is-exact", each_once),
    "no zero": (
        "best_error",
        "zero-is-free",
        lambda a, b: apart(a, b, zero=False).amax((2, 3)).amin(1).max().item(),
    ),
    "entry by entry": (
        "best_error",
        "whole-operators",
        lambda a, b: apart(a, b).amin(1).max().item(),
    ),
    "sum of entries": (
        "best_error",
        "largest-entry",
        lambda a, b: apart(a, b).sum((2, 3)).amin(1).max().item(),
    ),
    "mean of entries": (
        "best_error",
        "largest-entry",
        lambda a, b: apart(a, b).mean((2, 3)).amin(1).max().item(),
    ),
    "norm": (
        "best_error",
        "largest-entry",
        lambda a, b: apart(a, b).square().sum((2, 3)).sqrt().amin(1).max().item(),
    ),
    "no absolute value": (
        "best_error",
        "worst-pair",
        lambda a, b: (a[None] - b[:, None]).amax((2, 3)).amin(1).max().item(),
    ),
    "one answer for all": ("in_span", "one-per-operator", lambda a, b: spanned(a, b).all()),
    "a list": ("in_span", "one-per-operator", lambda a, b: spanned(a, b).tolist()),
    "numbers": ("in_span", "one-per-operator", lambda a, b: spanned(a, b).long()),
    "always": ("in_span", "known-and-new", lambda a, b: torch.ones(len(b)).bool()),
    "the other way": ("in_span", "known-and-new", lambda a, b: ~spanned(a, b)),
    "equal to one": (
        "in_span",
        "combinations",
        lambda a, b: (a[None, :] == b[:, None]).flatten(2).all(2).any(1),
    ),
    "a multiple of one": ("in_span", "combinations", is_multiple_of_one),
    "zero is never in": ("in_span", "numbers", without_zero),
    "full when many": ("in_span", "rank-not-number", by_number),
    "rank against number": ("in_span", "rank-not-number", rank_is_number),
    "one helps the next": ("in_span", "each-by-itself", growing),
    "a fixed threshold": ("in_span", "sizes", by_residue(0.05)),
    "a list of ids": ("ideal_ids", "square-of-ids", lambda o: reference_ideal_ids(o).tolist()),
    "float ids": ("ideal_ids", "square-of-ids", lambda o: reference_ideal_ids(o).double()),
    "a flat list": ("ideal_ids", "square-of-ids", lambda o: reference_ideal_ids(o).flatten()),
    "the operators": ("ideal_ids", "square-of-ids", lambda o: o[..., 0, 0]),
    "from 1": ("ideal_ids", "same-operator-same-id", lambda o: numbered(o, whole, start=1)),
    "one id per pair": (
        "ideal_ids",
        "same-operator-same-id",
        lambda o: torch.arange(len(o) ** 2).view(len(o), -1),
    ),
    "the distance": (
        "ideal_ids",
        "same-operator-same-id",
        lambda o: (torch.arange(len(o))[:, None] - torch.arange(len(o))).clamp(min=0),
    ),
    "zero has an id": (
        "ideal_ids",
        "same-operator-same-id",
        lambda o: numbered(o, whole, zero=lambda m: False),
    ),
    "first entry": ("ideal_ids", "all-entries", lambda o: numbered(o, lambda m: m[0, 0].item())),
    "unique": ("ideal_ids", "order-of-appearance", by_size),
    "sum is zero": (
        "ideal_ids",
        "cancelling-entries",
        lambda o: numbered(o, whole, zero=lambda m: m.sum() == 0),
    ),
    "without sign": (
        "ideal_ids",
        "cancelling-entries",
        lambda o: numbered(o, lambda m: whole(m.abs())),
    ),
    "any order of entries": (
        "ideal_ids",
        "cancelling-entries",
        lambda o: numbered(o, lambda m: tuple(sorted(whole(m)))),
    ),
    "above the diagonal too": (
        "ideal_ids",
        "no-future",
        lambda o: numbered(o, whole, future=True),
    ),
    "future counted": ("ideal_ids", "no-future", future_counted),
    "other behind the largest id": ("ideal_ids", "extremes", behind_the_largest),
    "the share": ("right_pairs", "one-per-pair", lambda *a: fitted(mean)(*a).double().mean()),
    "a list of bool": ("right_pairs", "one-per-pair", lambda *a: fitted(mean)(*a).tolist()),
    "the weights": (
        "right_pairs",
        "one-per-pair",
        lambda ti, tv, i, v: torch.tensor([tv[ti == k].mean() for k in i]),
    ),
    "id was seen": (
        "right_pairs",
        "weight-against-wanted",
        lambda ti, tv, i, v: torch.isin(i, ti),
    ),
    "operator was seen": (
        "right_pairs",
        "under-this-id",
        lambda ti, tv, i, v: torch.isin(v, tv) & torch.isin(i, ti),
    ),
    "operator was seen, whatever the id": (
        "right_pairs",
        "under-this-id",
        lambda ti, tv, i, v: torch.isin(v, tv),
    ),
    "unseen is always wrong": (
        "right_pairs",
        "unseen-is-zero",
        lambda ti, tv, i, v: fitted(mean)(ti, tv, i, v) & torch.isin(i, ti),
    ),
    "unseen is always right": (
        "right_pairs",
        "unseen-is-zero",
        lambda ti, tv, i, v: fitted(mean)(ti, tv, i, v) | ~torch.isin(i, ti),
    ),
    "unseen is not a number": ("right_pairs", "unseen-is-zero", fitted(mean, float("nan"))),
    "the first": ("right_pairs", "torn-id", fitted(lambda v: v[0])),
    "the last": ("right_pairs", "torn-id", fitted(lambda v: v[-1])),
    "the most frequent": ("right_pairs", "torn-id", fitted(most_frequent)),
    "distinct ones": ("right_pairs", "torn-id", fitted(of_distinct)),
    "any of them": (
        "right_pairs",
        "torn-id",
        lambda ti, tv, i, v: torch.tensor(
            [
                w in tv[ti == k].tolist() or (w == 0 and k not in ti.tolist())
                for k, w in zip(i.tolist(), v.tolist(), strict=True)
            ]
        ),  # fmt: skip
    ),
    "the later rows alone": (
        "counterexample",
        "one-table",
        lambda t, p, n: torch.tril(p + 1)[n:],
    ),
    "nested lists": ("counterexample", "one-table", lambda t, p, n: torch.tril(p + 1).tolist()),
    "single precision": ("counterexample", "one-table", lambda t, p, n: torch.tril(p + 1).float()),
    "one row too late": ("counterexample", "off-by-one-behind", rows_from(1, "predicted")),
    "one row too early": ("counterexample", "off-by-one-behind", rows_from(-1, "predicted")),
    "the old target plus 1": ("counterexample", "off-by-one-behind", rows_from(0, "target")),
    "minus 1": ("counterexample", "off-by-one-behind", rows_from(0, "predicted", -1)),
    "above the diagonal": ("counterexample", "off-by-one-behind", no_triangle),
    "from the prediction": ("counterexample", "keeps-training", from_the_prediction),
    "where it differs": ("counterexample", "fools-a-perfect-guess", where_it_differs),
    "from the end": ("counterexample", "ends", from_the_end),
    "bool": ("reverse_relation", "one-id-per-pair", lambda q, k, n: i_plus_j(q, k) != 2 * n - 1),
    "transposed": (
        "reverse_relation",
        "one-id-per-pair",
        lambda q, k, n: marked(i_plus_j(q, k) == 2 * n - 1).T,
    ),
    "a list of pairs": (
        "reverse_relation",
        "one-id-per-pair",
        lambda q, k, n: [(i, j) for i in q.tolist() for j in k.tolist() if i + j == 2 * n - 1],
    ),
    "copy": (
        "reverse_relation",
        "reads-backwards",
        lambda q, k, n: marked(q[:, None] - k[None, :] == n),
    ),
    "2 n": ("reverse_relation", "reads-backwards", lambda q, k, n: marked(i_plus_j(q, k) == 2 * n)),
    "the output's position": (
        "reverse_relation",
        "reads-backwards",
        lambda q, k, n: marked(i_plus_j(q, k) + 1 == 2 * n - 1),
    ),
    "ids swapped": (
        "reverse_relation",
        "reads-backwards",
        lambda q, k, n: 1 - reference_reverse_relation(q, k, n),
    ),
    "n forgotten": ("reverse_relation", "needs-scale", lambda q, k, n: marked(i_plus_j(q, k) == 7)),
    "n + 3": ("reverse_relation", "needs-scale", lambda q, k, n: marked(i_plus_j(q, k) == n + 3)),
    "counted from the start": (
        "reverse_relation",
        "given-positions",
        lambda q, k, n: marked(
            i_plus_j(n + torch.arange(len(q)), torch.arange(len(k))) == 2 * n - 1
        ),
    ),
    "all queries": (
        "reverse_relation",
        "steps-only",
        lambda q, k, n: marked(i_plus_j(q, k) == 2 * n - 1),
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


def best_error_with_loops(learned, wanted):
    choices = [*learned, torch.zeros_like(wanted[0])]
    return max(min(float((c - w).abs().max()) for c in choices) for w in wanted)


def right_pairs_with_a_table(train_ids, train_values, ids, values):
    size = int(max(train_ids.max(), ids.max())) + 1
    total = torch.zeros(size).index_add(0, train_ids, train_values)
    count = torch.zeros(size).index_add(0, train_ids, torch.ones(len(train_ids)))
    return torch.where(count > 0, total / count, 0.0)[ids] == values


def counterexample_with_masks(target, predicted, train_scale):
    row = torch.arange(len(target))[:, None]
    made = torch.where(row < train_scale, target, predicted + 1)
    return torch.where(row >= row.T, made, torch.zeros_like(made))


def reverse_relation_by_lookup(query, key, n):
    wanted = 2 * n - 1 - query
    wanted = torch.where((query >= n) & (wanted >= 0), wanted, torch.full_like(wanted, -1))
    return 1 - torch.eq(wanted.unsqueeze(1), key.unsqueeze(0)).to(torch.int64)


OTHER_WAYS = {
    "best_error": best_error_with_loops,
    "in_span": by_residue(1e-9),
    "ideal_ids": lambda operators: numbered(operators, whole),
    "right_pairs": right_pairs_with_a_table,
    "counterexample": counterexample_with_masks,
    "reverse_relation": reverse_relation_by_lookup,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_reverse_reference_is_the_librarys_relation(n):
    task = tasks.get("reverse")
    at = torch.arange(task.length(n))
    library = relations.build("ideal-sh", task, max_scale=n)(at, at, n)
    assert torch.equal(reference_reverse_relation(at, at, n), library)


@pytest.mark.parametrize("name", ["band", "half", "fresh-matrices", "position-weighted"])
def test_the_ideal_reference_is_the_librarys_relation(name):
    from lgcourse.theory.targets import get

    target, at = get(name), torch.arange(9)
    phi = theory.ideal_relation_of(target, 9)
    mine = reference_ideal_ids(torch.as_tensor(target.dense(9)))
    assert torch.equal(mine, phi(at, at, 9))
