"""Exercise 5: what a relation can hand out, what a code can form, and a relation that aligns.

The references are plain Python, with fractions where a solution uses floats; the solutions that
learners see compute with tensors.
"""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _matrices(generator: Generator, *shape: int) -> Tensor:
    """Whole numbers from -4 to 4, as floats."""
    return torch.randint(-4, 5, shape, generator=generator).double()


def _flat(operators: Tensor) -> list[list[Fraction]]:
    return [[Fraction(v) for row in m for v in row] for m in operators.tolist()]


# --- best_error -----------------------------------------------------------------------------------
def reference_best_error(learned: Tensor, wanted: Tensor) -> float:
    """Try every weight, and zero, for each operator that is wanted."""
    weights = _flat(learned) + [[Fraction(0)] * (wanted.shape[1] * wanted.shape[2])]
    worst = Fraction(0)
    for target in _flat(wanted):
        worst = max(
            worst,
            min(max(abs(a - b) for a, b in zip(w, target, strict=True)) for w in weights),
        )
    return float(worst)


def _scalars(generator: Generator):
    """Numbers: the least error is that of one place, far from all weights."""
    start = _below(5, generator)
    learned = torch.arange(1.0, 6.0).double()[:, None, None] + start
    wanted = torch.tensor([1.0, 7.0, 3.0]).double()[:, None, None] + start
    return [(learned, wanted)]


def _all_known(generator: Generator):
    learned = _matrices(generator, 4, 2, 3) + 10 * torch.arange(1.0, 5.0).double()[:, None, None]
    return [(learned, learned[torch.tensor([2, 0, 2])])]


def _near_zero(generator: Generator):
    """Operators that are wanted near zero, where all weights are large."""
    learned = _matrices(generator, 3, 2, 2) + 20
    wanted = _matrices(generator, 5, 2, 2)
    wanted[0] = 0
    return [(learned, wanted[:1]), (learned, wanted)]


def _mixed_entries(generator: Generator):
    """Each entry alone occurs in some weight, no weight has them all."""
    a, b = _below(4, generator, low=2), _below(9, generator, low=5)
    learned = torch.tensor([[[a, b], [b, a]], [[b, a], [a, b]]]).double()
    wanted = torch.tensor([[[a, a], [b, b]], [[b, b], [a, a]]]).double()
    return [(learned, wanted)]


def _several_entries(generator: Generator):
    """Errors in several entries of one operator: their largest counts, not the sum or mean."""
    learned = _matrices(generator, 1, 2, 2) + 30
    apart = torch.tensor([[3.0, -2.0], [1.0, -5.0]]).double()
    return [(learned, learned + apart), (learned, learned - apart)]


BEST_ERROR = Question(
    name="best_error",
    title="the best that any relation can do with learned operators",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "For one pair there are few choices: each learned operator, and zero. Which one does the "
        "designer take? And which pair decides the error of the whole model?",
        "The error is max over m of min over choices of max over p, d of |choice - wanted|. Zero "
        "is a choice, too: it is the weight of an id that training did not show.",
        "Put a zero operator behind `learned` with torch.cat, subtract with [None, :] and "
        "[:, None], take abs(), amax over the last two dimensions, then the least over the "
        "choices and the largest over m; .item() makes it a float.",
    ),
    checks=(
        Check(
            "one-number",
            "one Python float",
            "return one float for the whole model: the largest error over all wanted operators. "
            ".item() turns a tensor of one entry into it",
            _scalars,
            parts=(),
        ),
        Check(
            "worst-pair",
            "for each pair the best choice, and of the pairs the worst",
            "the designer chooses for each pair by itself, so take the least error per wanted "
            "operator first; the error of the model is then the largest of these, not their mean "
            "or least",
            _scalars,
        ),
        Check(
            "known-is-exact",
            "the error is 0 if each wanted operator was learned, in any order",
            "compare each wanted operator with each learned one; the two lists need not have the "
            "same length or order, and one weight may serve many pairs",
            _all_known,
        ),
        Check(
            "largest-entry",
            "the error of an operator is that of its worst entry",
            "take the largest absolute difference over p and d; not the sum, the mean or a norm",
            _several_entries,
        ),
        Check(
            "zero-is-free",
            "zero can be handed out, too",
            "an id that training never showed has the weight 0, so the zero operator is one more "
            "choice",
            _near_zero,
        ),
        Check(
            "whole-operators",
            "an operator is chosen as a whole",
            "one id gives all entries of an operator at once; the best choice per entry would mix "
            "several operators",
            _mixed_entries,
        ),
    ),
    reference=reference_best_error,
)


# --- in_span --------------------------------------------------------------------------------------
def reference_in_span(trained: Tensor, new: Tensor) -> Tensor:
    """Eliminate in fractions: an operator is in the span if nothing of it is left."""
    basis: list[tuple[int, list[Fraction]]] = []  # place of the leading entry, row

    def reduced(row: list[Fraction]) -> list[Fraction]:
        for lead, known in basis:
            factor = row[lead]
            row = [a - factor * b for a, b in zip(row, known, strict=True)]
        return row

    for row in map(reduced, _flat(trained)):
        rest = reduced(row)
        lead = next((k for k, v in enumerate(rest) if v), None)
        if lead is not None:
            basis.append((lead, [v / rest[lead] for v in rest]))
    return torch.tensor([not any(reduced(row)) for row in _flat(new)])


def _independent(generator: Generator, count: int) -> Tensor:
    """2 x 2 operators whose first entries are those of a triangle: independent at any draw."""
    rows = torch.tril(_matrices(generator, 4, 4), -1) + torch.eye(4).double()
    return rows[torch.randperm(4, generator=generator)[:count]].reshape(count, 2, 2)


def _inside_and_outside(generator: Generator):
    """Two training operators; new ones are: one of them, a third direction."""
    three = _independent(generator, 3)
    return [(three[:2], torch.stack([three[0], three[2], three[1]]))]


def _combinations(generator: Generator):
    """Sums with factors: in the span, though equal to no training operator."""
    three = _independent(generator, 3)
    a, b = three[0], three[1]
    new = torch.stack([2 * a - 3 * b, a + b, 5 * b, a + b + three[2]])
    return [(three[:2], new)]


def _numbers(generator: Generator):
    """1 x 1 operators: every number is a multiple of any other that is not zero."""
    three = torch.tensor([[[3.0]]]).double()
    return [(three, torch.tensor([7.0, 0.0, -2.0]).double()[:, None, None])]


def _dependent(generator: Generator):
    """Many training operators that span little: their number is not the rank."""
    three = _independent(generator, 3)
    a, b = three[0], three[1]
    trained = torch.stack([a, 2 * a, b, a - b, a + b, 3 * b, a])
    nothing = torch.zeros(5, 2, 2).double()
    return [(trained, torch.stack([three[2], a - 4 * b])), (nothing, torch.stack([nothing[0], a]))]


def _one_by_one(generator: Generator):
    """Two new operators, both outside; together with the training ones they must not help."""
    four = _independent(generator, 4)
    return [(four[:1], torch.stack([four[1], four[1] + four[0], four[2], four[0]]))]


def _sizes(generator: Generator):
    """Small and large operators, and a residue that is small beside them but not zero."""
    three = _independent(generator, 3)
    tiny, large = three[:2] / 1024, three[:2] * 1024
    near = three[0] * 1024 + three[2]
    return [(tiny, three), (large, torch.stack([three[1], near, three[2] / 64]))]


IN_SPAN = Question(
    name="in_span",
    title="which new operators can a code form?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "A code forms combinations of operators. Write each operator as one long row of p d "
        "numbers. When is a row a combination of others? Think of the rank of a matrix.",
        "A row is in the span of others if the rank does not grow when it is added to them. Ask "
        "this for each new operator by itself.",
        "known = trained.flatten(1); for each row of new.flatten(1) compare "
        "torch.linalg.matrix_rank(torch.cat([known, row[None]])) with the rank of known.",
    ),
    checks=(
        Check(
            "one-per-operator",
            "one True or False per new operator",
            "return a tensor of bool with one entry per new operator, in their order",
            _inside_and_outside,
            parts=(),
        ),
        Check(
            "known-and-new",
            "a training operator is in the span, one in a new direction is not",
            "flatten each operator to one row first; the rank to look at is that of the list of "
            "operators, not that of a single 2 x 2 matrix",
            _inside_and_outside,
        ),
        Check(
            "combinations",
            "combinations of training operators are in the span",
            "an operator need not be equal to one of training, nor a multiple of one: a code mixes "
            "several",
            _combinations,
        ),
        Check(
            "numbers",
            "every number is a multiple of any number but 0",
            "for 1 x 1 operators the span of one non-zero number is everything; zero is always in "
            "the span",
            _numbers,
        ),
        Check(
            "rank-not-number",
            "many dependent training operators span little",
            "the number of training operators says nothing; their rank does. Zero operators span "
            "nothing at all",
            _dependent,
        ),
        Check(
            "each-by-itself",
            "each new operator is judged by itself",
            "one new operator must not help another into the span: add one row at a time to the "
            "training operators",
            _one_by_one,
        ),
        Check(
            "sizes",
            "small and large operators",
            "a fixed threshold such as 1e-2 depends on the size of the operators; matrix_rank "
            "takes one that fits them",
            _sizes,
        ),
    ),
    reference=reference_in_span,
)


# --- ideal_ids ------------------------------------------------------------------------------------
def reference_ideal_ids(operators: Tensor) -> Tensor:
    """Walk over the pairs and keep a list of the operators met so far."""
    met: list[list[list[float]]] = []
    table = operators.tolist()
    length = len(table)
    for i in range(length):
        for j in range(i + 1):
            if any(map(any, table[i][j])) and table[i][j] not in met:
                met.append(table[i][j])
    ids = [[len(met)] * length for _ in range(length)]
    for i in range(length):
        for j in range(i + 1):
            if table[i][j] in met:
                ids[i][j] = met.index(table[i][j])
    return torch.tensor(ids)


def _diagonals(generator: Generator):
    """Distances 0 and 2 carry two operators that differ in one entry; the rest is zero."""
    first = _matrices(generator, 2, 3) + 10
    second = first.clone()
    second[1, 2] += 1
    operators = torch.zeros(6, 6, 2, 3).double()
    at = torch.arange(6)
    operators[at, at] = first
    operators[at[2:], at[:4]] = second
    return [(operators,)]


def _plain(generator: Generator):
    """Distances 0 and 1 carry numbers, the smaller first."""
    low = _below(5, generator, low=1)
    operators = torch.zeros(5, 5, 1, 1).double()
    at = torch.arange(5)
    operators[at, at] = float(low)
    operators[at[1:], at[:4]] = low + 3.0
    return [(operators,)]


def _falling(generator: Generator):
    """Numbers that fall and repeat: the order of appearance is not that of size."""
    order = torch.randperm(4, generator=generator).double().add(1).flip(0)
    if bool((order.diff() > 0).all()):
        order = order.flip(0)
    operators = torch.zeros(8, 8, 1, 1).double()
    at = torch.arange(8)
    operators[at, at, 0, 0] = order[at % 4]
    return [(operators,)]


def _above(generator: Generator):
    """Operators above the diagonal, which no causal model reads, known ones and new ones."""
    (operators,) = _plain(generator)[0]
    at = torch.arange(4)
    operators[at, at + 1] = operators[0, 0].clone()
    operators[0, 4] = 77.0
    return [(operators,)]


def _cancelling(generator: Generator):
    """Operators whose entries sum to zero, and negative ones."""
    one = torch.tensor([[1.0, -1.0], [0.0, 0.0]]).double() * _below(6, generator, low=1)
    operators = torch.zeros(4, 4, 2, 2).double()
    operators[1, 0], operators[2, 1], operators[3, 3] = one, -one, one.T
    return [(operators,)]


def _extremes(generator: Generator):
    return [(torch.zeros(3, 3, 2, 1).double(),), (_matrices(generator, 1, 1, 1, 2) + 9,)]


IDEAL_IDS = Question(
    name="ideal_ids",
    title="the ideal relation of a target",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Theorem 2 says what to do: pairs with the same operator get the same id, pairs with the "
        "zero operator get `other`. Which pairs can be left out?",
        "Walk over i, and for each i over j <= i. Keep the distinct non-zero operators that you "
        "have met, in a list; the id is the place in that list. At the end `other` is its length.",
        "operators[i, j].flatten().tolist() as a tuple can be the key of a dictionary: "
        "ids.setdefault(key, len(ids)) gives an operator the next free id when it is new.",
    ),
    checks=(
        Check(
            "square-of-ids",
            "one whole-number id per pair",
            "return ids of dtype int64 with the shape [l l]: one id per pair of a query and a key",
            _plain,
            parts=(),
        ),
        Check(
            "same-operator-same-id",
            "equal operators share an id, zero has `other`",
            "the first operator met has id 0. `other` is the number of distinct non-zero "
            "operators, and pairs with j > i have it, too",
            _plain,
        ),
        Check(
            "all-entries",
            "operators that differ in a single entry are different",
            "compare all p x d entries: the first entry or the sum of an operator does not tell "
            "it apart",
            _diagonals,
        ),
        Check(
            "order-of-appearance",
            "ids are numbered in the order of appearance",
            "read row by row, from the left; torch.unique numbers operators by size",
            _falling,
        ),
        Check(
            "cancelling-entries",
            "an operator is zero only if all its entries are",
            "entries that cancel make a sum of zero, but no zero operator; and an operator is not "
            "its negative, nor its transpose",
            _cancelling,
        ),
        Check(
            "no-future",
            "pairs with j > i have `other`, whatever stands there",
            "a causal model never reads above the diagonal: give these pairs no id, and do not "
            "count what stands there as an operator",
            _above,
        ),
        Check(
            "extremes",
            "a target without operators, and one with a single pair",
            "with no non-zero operator at all, every id is `other` = 0",
            _extremes,
        ),
    ),
    reference=reference_ideal_ids,
)


# --- right_pairs ----------------------------------------------------------------------------------
def reference_right_pairs(
    train_ids: Tensor, train_values: Tensor, ids: Tensor, values: Tensor
) -> Tensor:
    """Fit each id in fractions and compare."""
    asked: dict[int, list[Fraction]] = {}
    for id, value in zip(train_ids.tolist(), train_values.tolist(), strict=True):
        asked.setdefault(id, []).append(Fraction(value))
    weights = {id: sum(found) / len(found) for id, found in asked.items()}
    right = [
        weights.get(id, Fraction(0)) == Fraction(value)
        for id, value in zip(ids.tolist(), values.tolist(), strict=True)
    ]
    return torch.tensor(right)


def _clean(generator: Generator):
    """Three ids with one operator each; at two test pairs the operator is a new one."""
    values = torch.tensor([3.0, 5.0, 8.0]) + _below(9, generator)
    train_ids = torch.tensor([0, 1, 2, 1, 0, 2])
    ids = torch.tensor([2, 1, 0, 0, 1])
    wanted = values[ids] + torch.tensor([0.0, 0.0, 0.0, 20.0, 20.0])
    return [(train_ids, values[train_ids], ids, wanted)]


def _known_elsewhere(generator: Generator):
    """The wanted operator was learned, under another id."""
    values = torch.tensor([1.0, 4.0]) + _below(9, generator)
    train_ids = torch.tensor([0, 1, 1, 0])
    return [
        (train_ids, values[train_ids], torch.tensor([0, 1, 0]), values[torch.tensor([1, 0, 0])])
    ]


def _unseen(generator: Generator):
    """Ids that training did not show: right exactly where nothing is wanted."""
    value = float(_below(9, generator, low=2))
    train_ids = torch.tensor([0, 0, 3])
    train_values = torch.tensor([value, value, value + 1])
    return [
        (
            train_ids,
            train_values,
            torch.tensor([5, 5, 1, 0, 7]),
            torch.tensor([0.0, value, 0.0, value, value + 1]),
        )
    ]


def _torn(generator: Generator):
    """An id that training asked for two operators learns their mean."""
    low = float(_below(9, generator, low=1))
    train_ids = torch.tensor([0, 0, 0, 0, 1])
    train_values = torch.tensor([low, low + 8, low, low, 50.0])
    ids = torch.tensor([0, 0, 0, 0, 1])
    return [(train_ids, train_values, ids, torch.tensor([low, low + 8, low + 4, low + 2, 50.0]))]


RIGHT_PAIRS = Question(
    name="right_pairs",
    title="at which test pairs is a fitted POLA right?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Do what the learner does. What does it learn for an id that training always asked for the "
        "same operator? For one that it asked for two? For one that it never showed?",
        "The weight of an id is the mean of its training operators, and 0 without any. A test pair "
        "is right if the weight of its id equals the operator that is wanted there.",
        "For each id in ids: found = train_values[train_ids == id]; the weight is found.mean() if "
        "len(found) else 0. Compare it with the entry of values, and collect the results with "
        "torch.tensor.",
    ),
    checks=(
        Check(
            "one-per-pair",
            "one True or False per test pair",
            "return a tensor of bool with one entry per entry of `ids`",
            _clean,
            parts=(),
        ),
        Check(
            "weight-against-wanted",
            "a pair is right if the weight of its id is what is wanted there",
            "that an id was seen in training is not enough: its weight must be the operator that "
            "is wanted",
            _clean,
        ),
        Check(
            "under-this-id",
            "the operator must have been learned under this very id",
            "that training showed the operator somewhere is not enough: the relation leads the "
            "pair to the weight of its id and to no other",
            _known_elsewhere,
        ),
        Check(
            "unseen-is-zero",
            "an unseen id gives 0, which is right where nothing is wanted",
            "an id that training never showed keeps the weight 0: it is wrong for every non-zero "
            "operator, and right for zero",
            _unseen,
        ),
        Check(
            "torn-id",
            "an id that stood for two operators learns their mean",
            "least squares takes the mean over all training pairs of the id: not the first or last "
            "one, not the most frequent, and each pair counts",
            _torn,
        ),
    ),
    reference=reference_right_pairs,
)


# --- counterexample -------------------------------------------------------------------------------
def reference_counterexample(target: Tensor, predicted: Tensor, train_scale: int) -> Tensor:
    """Write the table of coefficients entry by entry."""
    old, guess = target.tolist(), predicted.tolist()
    length = len(old)
    rows = [[0.0] * length for _ in range(length)]
    for i in range(length):
        for j in range(i + 1):
            rows[i][j] = old[i][j] if i < train_scale else guess[i][j] + 1
    return torch.tensor(rows, dtype=target.dtype)


def _learner(generator: Generator, length: int, train_scale: int):
    """A target, and a prediction that is exact on the training scales and wrong behind."""
    target = torch.tril(_matrices(generator, length, length))
    off = torch.randint(2, 6, (length, length), generator=generator).double()
    off[:train_scale] = 0
    return target, target + torch.tril(off), train_scale


def _some(generator: Generator):
    return [_learner(generator, 7, 4)]


def _short(generator: Generator):
    """The learner is not exact on the training scales; the target there must stay, all the same."""
    target, predicted, train_scale = _learner(generator, 6, 3)
    predicted[:3] = torch.tril(torch.ones(3, 6)).double() * 50
    return [(target, predicted, train_scale)]


def _exact(generator: Generator):
    """The learner is exact everywhere: behind the training scales the target must change."""
    target, _, train_scale = _learner(generator, 6, _below(5, generator, low=2))
    return [(target, target.clone(), train_scale)]


def _ends(generator: Generator):
    return [_learner(generator, 5, 5), _learner(generator, 5, 1)]


COUNTEREXAMPLE = Question(
    name="counterexample",
    title="a target that any given learner fails on",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Which rows of the table does training at scales up to N0 show? There your target must be "
        "the old one, or else the learner would have learned something else.",
        "Scale N0 has the positions 0 to N0 - 1. So rows below N0 are the old ones. In all later "
        "rows each coefficient with j <= i is the learner's plus 1, and zero above the diagonal.",
        "made = target.clone(); made[n0:] = predicted[n0:] + 1; return torch.tril(made).",
    ),
    checks=(
        Check(
            "one-table",
            "one table of coefficients, of the type of the target",
            "return a tensor of the shape [l l] and the dtype of `target`",
            _some,
            parts=(),
        ),
        Check(
            "off-by-one-behind",
            "old rows as they were, later rows the learner's plus 1",
            "rows 0 to N0 - 1 belong to the training scales; the first new row is row N0. What "
            "is off by one there is the learner's prediction, not the old target. Above the "
            "diagonal all is zero",
            _some,
        ),
        Check(
            "keeps-training",
            "training shows the old target, not what the learner makes of it",
            "in the rows below N0 take the target's own coefficients: the learner may be wrong "
            "there, and its training data must not change",
            _short,
        ),
        Check(
            "fools-a-perfect-guess",
            "a learner that guessed the old target is fooled, too",
            "do not ask where the learner differs from the old target: your target must differ "
            "from the learner at every later pair, also where it guessed the old one",
            _exact,
        ),
        Check(
            "ends",
            "training on all scales, and on scale 1 only",
            "with N0 = l no row is left to change; with N0 = 1 all rows but the first are",
            _ends,
        ),
    ),
    reference=reference_counterexample,
)


# --- reverse_relation -----------------------------------------------------------------------------
def reference_reverse_relation(query: Tensor, key: Tensor, n: int) -> Tensor:
    """Walk through the steps: the one that writes y_t reads x_(n+1-t)."""
    layout = [f"x{t}" for t in range(1, n + 1)] + ["="] + [f"y{t}" for t in range(1, n + 1)]
    at = layout.index
    reads = {(at(f"y{t}") - 1, at(f"x{n + 1 - t}")) for t in range(1, n + 1)}
    rows = [[0 if (i, j) in reads else 1 for j in key.tolist()] for i in query.tolist()]
    return torch.tensor(rows)


def _form(generator: Generator):
    return [(torch.arange(4, 9), torch.arange(3), 6), (torch.tensor([5]), torch.arange(4), 3)]


def _example(generator: Generator):
    return [(torch.arange(4, 8), torch.arange(4), 4)]


def _scales(generator: Generator):
    low = _below(8, generator, low=5)
    return [(torch.arange(n, 2 * n), torch.arange(n), n) for n in (low, low + 4, 1)]


def _picked(generator: Generator):
    n = _below(9, generator, low=6)
    steps = torch.randperm(n, generator=generator)[:3]
    others = torch.randperm(n, generator=generator)[:4]
    return [(n + steps, torch.cat([others, n - 1 - steps[:1]]), n)]


def _prompt(generator: Generator):
    """Queries inside the prompt, which write nothing, and keys behind them."""
    n = _below(9, generator, low=4)
    return [(torch.arange(2 * n), torch.arange(2 * n), n)]


REVERSE_RELATION = Question(
    name="reverse_relation",
    title="a relation that aligns reverse",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Draw layout_figure(tasks.get('reverse'), 4). The coloured squares lie on a line, but not "
        "on one parallel to the diagonal: which of i + j and i - j stays the same on it?",
        "y_t is written by the query at n + t - 1 and reads x_(n+1-t) at n - t. Add the two "
        "positions: t is gone, and a number that depends on n alone is left.",
        "With i = query[:, None] and j = key[None, :], a pair is read if i + j == 2 * n - 1 and "
        "the query is a step, n <= i. torch.where(read, 0, 1) turns that into ids.",
    ),
    checks=(
        Check(
            "one-id-per-pair",
            "one whole-number id per pair of a query and a key",
            "rows are queries and columns are keys: query[:, None] against key[None, :]; and ids "
            "are int64, a comparison alone is bool",
            _form,
            parts=(),
        ),
        Check(
            "reads-backwards",
            "at scale 4 each step marks the symbol that it copies",
            "the first step reads the last symbol: the query at n reads position n - 1. From step "
            "to step the query moves one place on and the operand one place back, so it is the sum "
            "i + j that stays. The operand has id 0, all else id 1",
            _example,
        ),
        Check(
            "needs-scale",
            "at other scales too",
            "the sum of query and operand is not one number: it grows with n, by 2 each time",
            _scales,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in; arange(len(query)) is right only if they start "
            "at 0 and leave none out",
            _picked,
        ),
        Check(
            "steps-only",
            "only steps read, and only what stands before them",
            "inside the prompt nothing is written, so nothing is read there: i + j has the right "
            "value for some pairs with the key behind the query, too. A step has n <= i",
            _prompt,
        ),
    ),
    reference=reference_reverse_relation,
)

QUESTIONS = (BEST_ERROR, IN_SPAN, IDEAL_IDS, RIGHT_PAIRS, COUNTEREXAMPLE, REVERSE_RELATION)
