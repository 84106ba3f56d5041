"""Exercise 3: POLA's forward pass, its fit in three ways, new names, and names made for a target.

The references walk through pairs in plain Python, with fractions where a solution uses floats; the
solutions that learners see compute with tensors.
"""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
NEAR = 1e-9  # float64
Matrix = list[list[Fraction]]


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _whole(generator: Generator, *shape: int) -> Tensor:
    """Whole numbers from 1 to 9 with either sign, as float64."""
    size = torch.randint(1, 10, shape, generator=generator)
    return torch.where(torch.rand(shape, generator=generator) < 0.5, size, -size).double()


def _some_ids(length: int, size: int, generator: Generator) -> Tensor:
    """A table of ids, above the diagonal too; each id stands below it and above it."""
    ids = torch.randint(0, size, (length, length), generator=generator)
    lower, upper = torch.tril_indices(length, length), torch.triu_indices(length, length, 1)
    for i, j in (lower, upper):
        places = torch.randperm(len(i), generator=generator)[:size]
        ids[i[places], j[places]] = torch.arange(len(places))
    return ids


def _lower(low: Tensor, above: Tensor | float | int) -> Tensor:
    """Return a table that holds the first below and on the diagonal, the second above it."""
    length = len(low)
    causal = torch.ones(length, length).bool().tril()
    causal = causal.reshape(length, length, *[1] * (low.ndim - 2))
    return torch.where(causal, low, torch.as_tensor(above, dtype=low.dtype))


# --- pola_forward ---------------------------------------------------------------------------------
def reference_pola_forward(x: Tensor, weight: Tensor, ids: Tensor) -> Tensor:
    """Return y_i = sum_{j <= i} W[ids[i][j]] x_j, number by number."""
    operators, names = weight.tolist(), ids.tolist()
    batch = []
    for sequence in x.tolist():
        rows = []
        for i in range(len(sequence)):
            y = [0.0] * len(operators[0])
            for j in range(i + 1):
                for p, row in enumerate(operators[names[i][j]]):
                    y[p] += sum(w * v for w, v in zip(row, sequence[j], strict=True))
            rows.append(y)
        batch.append(rows)
    return torch.tensor(batch, dtype=x.dtype)


def _forward_form(generator: Generator):
    return [(_whole(generator, 2, 5, 3), _whole(generator, 4, 6, 3), _some_ids(5, 4, generator))]


def _twice(length: int, width: int, generator: Generator) -> Tensor:
    return _whole(generator, 1, length, width).repeat(2, 1, 1)


def _running_sums(generator: Generator):
    """One name and the operator c: a sum over the past, times c; two equal sequences."""
    operator = torch.eye(2).double()[None] * _below(6, generator, low=2)
    return [(_twice(6, 2, generator), operator, torch.zeros(6, 6, dtype=torch.long))]


def _numbers_by_name(generator: Generator):
    """Each operator only stretches a vector; the table of ids is not symmetric."""
    ids = _lower(torch.arange(36).reshape(6, 6) % 7, 6 - torch.arange(36).reshape(6, 6) % 7)
    stretched = torch.arange(1.0, 8.0).double() * _below(5, generator, low=2)
    return [(_twice(6, 2, generator), stretched[:, None, None] * torch.eye(2).double(), ids)]


def _matrices(generator: Generator):
    """Square operators, so that a transposed one has the right shape, too."""
    weight = torch.tensor([[[1.0, 2.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 3.0]]]).double()
    return [(_twice(5, 2, generator), weight, _some_ids(5, 2, generator))]


def _batches(generator: Generator):
    return [(_whole(generator, 3, 4, 2), _whole(generator, 3, 2, 2), _some_ids(4, 3, generator))]


def _short(generator: Generator):
    one = torch.zeros(1, 1, dtype=torch.long)
    return [(_whole(generator, 1, 1, 2), _whole(generator, 1, 1, 2), one)]


POLA_FORWARD = Question(
    name="pola_forward",
    title="the forward pass of POLA",
    points=3,
    minutes=15,
    difficulty=2,
    hints=(
        "weight[ids] looks an operator up for each pair. What is its shape, and which of its "
        "entries must not be used?",
        "A[i, j] = W[ids[i, j]] for j <= i and 0 for j > i; then y_i is the sum over j of "
        "A[i, j] x_j, for each sequence of the batch.",
        "A = weight[ids] is [l l p d]; multiply it by the mask torch.ones(l, l).tril()[:, :, None, "
        'None]. Then torch.einsum("ijpd,bjd->bip", A, x).',
    ),
    checks=(
        Check(
            "one-vector-each",
            "a vector of width p for each place of each sequence",
            "the output is [b l p]: the sum runs over the places j and over the width d of the "
            "input; p, the rows of the operators, stays",
            _forward_form,
            parts=(),
        ),
        Check(
            "only-the-past",
            "place i adds up the places up to i",
            "the table of ids has entries above the diagonal as well; take out the pairs with "
            "j > i. The place i itself counts",
            _running_sums,
            tolerance=NEAR,
        ),
        Check(
            "row-is-the-query",
            "the pair (i, j) uses the operator number ids[i, j]",
            "rows of the table are the places i of the output, columns the places j of the input; "
            "transposed, the past and the future change places",
            _numbers_by_name,
            tolerance=NEAR,
        ),
        Check(
            "operator-times-vector",
            "an operator is multiplied by the vector, W x",
            "entry p of W x is the sum over d of W[p, d] x[d]; x W would sum over the rows of W",
            _matrices,
            tolerance=NEAR,
        ),
        Check(
            "own-sequence",
            "each sequence of the batch is mixed with itself alone",
            "the batch is no place to sum over: keep b on both sides",
            _batches,
            tolerance=NEAR,
        ),
        Check(
            "single",
            "works for one sequence of length 1",
            "squeeze() without a dimension removes the batch and the length, too",
            _short,
            tolerance=NEAR,
        ),
    ),
    reference=reference_pola_forward,
)


# --- new_ids --------------------------------------------------------------------------------------
def reference_new_ids(ids: Tensor, trained: int, tested: int) -> Tensor:
    """Collect the ids of all pairs up to each of the two lengths, and take the difference."""
    table = ids.tolist()
    shown = {table[i][j] for i in range(trained) for j in range(i + 1)}
    needed = {table[i][j] for i in range(tested) for j in range(i + 1)}
    return torch.tensor(sorted(needed - shown), dtype=torch.long)


def _distances(length: int, shift: int = 0) -> Tensor:
    at = torch.arange(length)
    return (at[:, None] - at[None, :]).clamp(min=0) + shift


def _falling(generator: Generator):
    """One row is new; in it ids fall, and stand twice."""
    at = torch.arange(5)
    ids = 20 * at[:, None] + (9 - at) // 2 + _below(9, generator)
    return [(_lower(ids, int(ids[0, 0])), 4, 5)]


def _shown_again(generator: Generator):
    """Most ids of the longer length were shown; of the new ones some are large and some small."""
    ids = _distances(8, 5) % 7
    ids[7, 2], ids[7, 5] = 0, 30 + _below(9, generator)
    return [(_lower(ids, 5), 6, 8)]


def _above_the_diagonal(generator: Generator):
    """Above the diagonal stand ids that are new there, and ids that are new below it."""
    start = _below(9, generator, low=1)
    low = _distances(8)
    return [(_lower(low, 40 + start), 4, 8), (_lower(low, 7 - low.T), 5, 8)]


def _larger_table(generator: Generator):
    return [(_distances(12, _below(9, generator)), 4, 7)]


def _in_between(generator: Generator):
    """A new id in a row between the two lengths, which the last row does not have."""
    ids = _lower(torch.ones(8, 8, dtype=torch.long), 1)
    ids[5, 1], ids[6, 6] = 8, 4 + _below(3, generator)
    return [(ids, 4, 8)]


def _nothing_new(generator: Generator):
    return [(_distances(6).clamp(max=2) + _below(5, generator), 4, 6), (_distances(5), 5, 5)]


NEW_IDS = Question(
    name="new_ids",
    title="which names does a longer length bring?",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Draw the table for length 4 with a frame around length 2. Which squares belong to length "
        "2, which to length 4? And which are no pairs at all?",
        "The pairs up to length n are the entries of ids[:n, :n] with j <= i. Collect their ids "
        "for both lengths; the answer is what only the longer one has.",
        "pairs = lambda n: ids[:n, :n][torch.ones(n, n).bool().tril()].unique() gives sorted ids "
        "without repetition. needed[~torch.isin(needed, shown)].",
    ),
    checks=(
        Check(
            "sorted-ids",
            "the new ids in rising order, each once",
            "return an int64 tensor with one dimension; unique() sorts and removes repetitions, "
            "their order of appearance is another one",
            _falling,
        ),
        Check(
            "new-alone",
            "ids that training showed are not among them",
            "the new ids are needed at the longer length and not shown at the shorter one; that an "
            "id is larger than all others does not make it new, nor that it is shown elsewhere",
            _shown_again,
        ),
        Check(
            "pairs-alone",
            "entries above the diagonal do not count",
            "j > i is no pair: what stands there is neither needed nor was it shown by training",
            _above_the_diagonal,
        ),
        Check(
            "up-to-the-length",
            "the longer length ends at `tested`",
            "the table may be larger than both lengths: cut it to ids[:tested, :tested]",
            _larger_table,
        ),
        Check(
            "all-rows",
            "all pairs of the longer length count, not those of its last row alone",
            "a new id may stand in any row from `trained` on",
            _in_between,
        ),
        Check(
            "nothing-new",
            "an empty tensor of ids if nothing is new",
            "torch.tensor([]) is float32; give it dtype=torch.long",
            _nothing_new,
        ),
    ),
    reference=reference_new_ids,
)


# --- mean_operators -------------------------------------------------------------------------------
def reference_mean_operators(
    ids: Tensor, operators: Tensor, lengths: list[int], size: int
) -> Tensor:
    """Collect what each id is asked for, at every length, and take the mean in fractions."""
    names, wanted = ids.tolist(), operators.tolist()
    p, d = operators.shape[2:]
    asked: list[list] = [[] for _ in range(size)]
    for n in lengths:
        for i in range(n):
            for j in range(i + 1):
                asked[names[i][j]].append(wanted[i][j])
    means = [
        [
            [
                float(sum((Fraction(a[r][c]) for a in group), Fraction(0)) / max(len(group), 1))
                for c in range(d)
            ]
            for r in range(p)
        ]
        for group in asked
    ]
    return torch.tensor(means, dtype=operators.dtype)


def _table_of_operators(length: int, generator: Generator, p: int = 1, d: int = 1) -> Tensor:
    return _lower(_whole(generator, length, length, p, d), 0.0)


def _mean_form(generator: Generator):
    return [(_some_ids(5, 4, generator), _table_of_operators(5, generator, 2, 3), [5], 4)]


def _one_wish(generator: Generator):
    """Each id asks for one thing; some ids of the size never occur."""
    ids = _lower(_distances(5), 7)
    values = _whole(generator, 8, 1, 1)
    return [(ids, _lower(values[ids], 0.0), [5], 8)]


def _several_wishes(generator: Generator):
    ids = _lower(_distances(6) % 3, 3)
    return [(ids, _table_of_operators(6, generator, 2, 2), [6], 4)]


def _zeros_too(generator: Generator):
    """An id asks for something at some pairs and for zero at others."""
    at = torch.arange(7)
    half = (at[None, :] == at[:, None] // 2).double()[:, :, None, None]
    return [(_lower(_distances(7), 7), half * _below(9, generator, low=2), [7], 8)]


def _traps_above(generator: Generator):
    """Ids that are used below the diagonal stand above it, too."""
    ids = _distances(6) % 3
    return [(_lower(ids, ids.T + 1), _table_of_operators(6, generator), [6], 4)]


def _several_lengths(generator: Generator):
    """Short lengths show their pairs again; the largest length does not stand last."""
    ids = _lower(_distances(6) % 2, 2)
    operators = _table_of_operators(6, generator)
    operators[0, 0] = 30.0
    return [(ids, operators, [2, 6, 3], 3), (ids, operators, [1, 2, 3, 4], 3)]


MEAN_OPERATORS = Question(
    name="mean_operators",
    title="the fit of a POLA, name by name",
    points=3,
    minutes=20,
    difficulty=3,
    hints=(
        "Take one id. Write down what each of its pairs asks for, at length 1, then again at "
        "length 2. What number has the least squared distance to all of these?",
        "W_k = (sum of the operators of all pairs with id k, over all lengths) / (number of these "
        "pairs). Pairs that ask for zero count. Without pairs W_k is 0.",
        "For each n: i, j = torch.tril_indices(n, n); sums.index_add_(0, ids[i, j], operators[i, "
        "j]) and counts.index_add_(0, ids[i, j], torch.ones(len(i))). Divide by "
        "counts.clamp(min=1).",
    ),
    checks=(
        Check(
            "one-operator-each",
            "one operator for each of the `size` ids",
            "the answer is [size, p, d], of the dtype of `operators`; ids that never occur have "
            "their place, too",
            _mean_form,
            parts=(),
        ),
        Check(
            "new-name-zero",
            "an id without pairs keeps the weight 0",
            "the mean of nothing is 0 / 0 = nan; gradient descent from zero leaves it at 0",
            _one_wish,
            tolerance=NEAR,
        ),
        Check(
            "mean",
            "an id that is asked for different things gets their mean",
            "not the sum, not the last one, not the most frequent or the middle one: least squares "
            "gives the mean",
            _several_wishes,
            tolerance=NEAR,
        ),
        Check(
            "zeros-count",
            "pairs that ask for zero count as well",
            "zero is what the target wants there, so it pulls the mean towards zero",
            _zeros_too,
            tolerance=NEAR,
        ),
        Check(
            "pairs-alone",
            "entries above the diagonal do not count",
            "j > i is no pair, whatever id stands there",
            _traps_above,
            tolerance=NEAR,
        ),
        Check(
            "every-length-again",
            "each length shows its pairs once more",
            "a pair that occurs at three lengths counts three times; the pairs of the largest "
            "length alone, each once, give another mean",
            _several_lengths,
            tolerance=NEAR,
        ),
    ),
    reference=reference_mean_operators,
)


# --- descend --------------------------------------------------------------------------------------
def reference_descend(
    codes: Tensor, wanted: Tensor, start: Tensor, rate: float, steps: int
) -> Tensor:
    """Take the steps in fractions, number by number."""
    C: Matrix = [[Fraction(v) for v in row] for row in codes.tolist()]
    A = [Fraction(v) for v in wanted.tolist()]
    W = [Fraction(v) for v in start.tolist()]
    for _ in range(steps):
        left = [
            sum((c * w for c, w in zip(row, W, strict=True)), Fraction(0)) - a
            for row, a in zip(C, A, strict=True)
        ]
        gradient = [
            sum((row[k] * e for row, e in zip(C, left, strict=True)), Fraction(0))
            for k in range(len(W))
        ]
        W = [w - Fraction(rate) * g for w, g in zip(W, gradient, strict=True)]
    return torch.tensor([float(w) for w in W], dtype=start.dtype)


def _problem(rows: int, size: int, generator: Generator) -> tuple[Tensor, Tensor]:
    return _whole(generator, rows, size), _whole(generator, rows)


def _no_steps(generator: Generator):
    return [(*_problem(6, 4, generator), _whole(generator, 4), 0.125, 0)]


def _first_step(generator: Generator):
    return [(*_problem(6, 4, generator), torch.zeros(4).double(), 0.125, 1)]


def _from_elsewhere(generator: Generator):
    return [(*_problem(6, 4, generator), _whole(generator, 4), 0.25, 1)]


def _more_steps(generator: Generator):
    codes, wanted = _problem(5, 3, generator)
    return [
        (codes / 16, wanted, torch.zeros(3).double(), 0.5, 2),
        (codes / 16, wanted, _whole(generator, 3), 0.25, 7),
    ]


def _new_names(generator: Generator):
    """Columns of zeros: names that no row shows; their numbers stand where they started."""
    codes, wanted = _problem(5, 4, generator)
    codes[:, 1] = codes[:, 3] = 0
    return [(codes / 16, wanted, _whole(generator, 4), 0.5, 6)]


DESCEND = Question(
    name="descend",
    title="gradient descent, step by step",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "With one row and one column the loss is (c w - a)^2 / 2. What is its derivative by w?",
        "The gradient of |C W - A|^2 / 2 is C^T (C W - A). Each step takes `rate` times the "
        "gradient away, at the W that the step before has left.",
        "W = start.clone(); in each of `steps` rounds: W = W - rate * codes.T @ (codes @ W - "
        "wanted).",
    ),
    checks=(
        Check(
            "starts-at-start",
            "without a step the answer is the start",
            "the loop runs `steps` times; with steps = 0 nothing changes",
            _no_steps,
        ),
        Check(
            "downhill",
            "the first step from zero",
            "the gradient is C^T (C W - A), which is taken away: mind the sign, the factor (the "
            "loss has the half in front), and that rows are added, not averaged",
            _first_step,
            tolerance=1e-6,
        ),
        Check(
            "where-it-stands",
            "the gradient is taken where W stands",
            "from another start the error C W - A is another one; it is - A only at zero",
            _from_elsewhere,
            tolerance=1e-6,
        ),
        Check(
            "each-step-anew",
            "each step takes the gradient anew",
            "a gradient that is computed once, before the loop, is wrong from the second step on",
            _more_steps,
            tolerance=1e-6,
        ),
        Check(
            "new-names-stay",
            "a name that no row shows keeps the number that it started with",
            "nothing in the loss moves it: no decay, no reset to zero",
            _new_names,
            tolerance=1e-6,
        ),
    ),
    reference=reference_descend,
)


# --- minimum_norm ---------------------------------------------------------------------------------
def _times(a: Matrix, b: Matrix) -> Matrix:
    return [
        [
            sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0))
            for column in zip(*b, strict=True)
        ]
        for row in a
    ]


def _turned(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def _reduced(rows: Matrix) -> tuple[Matrix, list[int]]:
    """Return the non-zero rows of the reduced echelon form, and the columns of their pivots."""
    rows = [list(row) for row in rows]
    pivots: list[int] = []
    for column in range(len(rows[0])):
        top = len(pivots)
        best = next((r for r in range(top, len(rows)) if rows[r][column]), None)
        if best is None:
            continue
        rows[top], rows[best] = rows[best], rows[top]
        rows[top] = [v / rows[top][column] for v in rows[top]]
        for r in range(len(rows)):
            if r != top and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [v - factor * w for v, w in zip(rows[r], rows[top], strict=True)]
        pivots.append(column)
    return rows[: len(pivots)], pivots


def _solved(square: Matrix, right: Matrix) -> Matrix:
    joined = [row + more for row, more in zip(square, right, strict=True)]
    return [row[len(square) :] for row in _reduced(joined)[0]]


def reference_minimum_norm(codes: Tensor, wanted: Tensor) -> Tensor:
    """Split C = F G into full ranks; W = G^T (G G^T)^-1 (F^T F)^-1 F^T A, in fractions."""
    C = [[Fraction(v) for v in row] for row in codes.tolist()]
    A = [[Fraction(v) for v in row] for row in wanted.tolist()]
    G, pivots = _reduced(C)
    F = [[row[k] for k in pivots] for row in C]
    middle = _solved(_times(_turned(F), F), _times(_turned(F), A))
    W = _times(_turned(G), _solved(_times(G, _turned(G)), middle))
    return torch.tensor([[float(v) for v in row] for row in W], dtype=wanted.dtype)


def _regular(rows: int, size: int, generator: Generator) -> Tensor:
    """Codes with independent columns: a large diagonal on top of small whole numbers."""
    codes = torch.randint(-2, 3, (rows, size), generator=generator).double()
    codes[torch.arange(size), torch.arange(size)] += 9
    return codes


def _norm_form(generator: Generator):
    return [(_regular(7, 3, generator), _whole(generator, 7, 4))]


def _exact(generator: Generator):
    """As many squares as numbers in the code: one solution, and it is exact."""
    return [(_regular(4, 4, generator), _whole(generator, 4, 2))]


def _too_many_wishes(generator: Generator):
    """More rows than columns, and no exact solution."""
    codes = torch.cat([_regular(4, 3, generator), _regular(4, 3, generator).flip(1)])
    return [(codes, _whole(generator, 8, 1))]


def _unseen_names(generator: Generator):
    """Names as codes: rows with a single 1, and columns that no row uses."""
    ids = torch.tensor([0, 0, 2, 4, 4, 4, 0])
    return [(torch.nn.functional.one_hot(ids, 6).double(), _whole(generator, 7, 2))]


def _shared(generator: Generator):
    """Columns that depend on others: many solutions are equally good."""
    codes = _regular(6, 2, generator)
    more = torch.stack([codes[:, 0], codes.sum(1), 2 * codes[:, 1]], dim=1)
    wide = _regular(5, 3, generator).T  # 3 squares, 5 numbers
    return [
        (torch.cat([codes, more], dim=1), _whole(generator, 6, 2)),
        (wide, _whole(generator, 3, 1)),
    ]


MINIMUM_NORM = Question(
    name="minimum_norm",
    title="the fit of a coded POLA",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "If C had an inverse, what would W be? Which matrix takes the place of the inverse for "
        "least squares?",
        "W = C^+ A with the pseudo-inverse C^+ is the solution of least squares and, of all such "
        "solutions, the one of smallest norm. (C^T C)^-1 C^T is the same only if the columns of C "
        "are independent.",
        "torch.linalg.pinv(codes) @ wanted.",
    ),
    checks=(
        Check(
            "one-row-each",
            "one row of weights for each number of the code",
            "W is [r, f], so that C W has the shape of A: [m, r] times [r, f]",
            _norm_form,
            parts=(),
        ),
        Check(
            "exact-fit",
            "where an exact fit exists, it is found",
            "C^T A is where gradient descent goes first, not where it ends",
            _exact,
            tolerance=1e-6,
        ),
        Check(
            "least-squares",
            "where none exists, the squared error is least",
            "all rows count: the first r of them can be fitted exactly, at the expense of the rest",
            _too_many_wishes,
            tolerance=1e-6,
        ),
        Check(
            "unseen-zero",
            "a column that no row uses gets the weight 0",
            "the fit says nothing about it; of all weights the smallest is 0",
            _unseen_names,
            tolerance=1e-6,
        ),
        Check(
            "smallest",
            "of many solutions the smallest one",
            "if columns depend on each other, a solver may put all the weight on some of them; the "
            "smallest solution shares it",
            _shared,
            tolerance=1e-6,
        ),
    ),
    reference=reference_minimum_norm,
)


# --- half_and_own ---------------------------------------------------------------------------------
def reference_half_and_own(query: Tensor, key: Tensor) -> Tensor:
    """Add up what the target wants at each pair; the sum says which operator it is."""
    name = {1: 0, 3: 1, 4: 2, 0: 3}
    return torch.tensor([
        [name[(1 if j == i // 2 else 0) + (3 if j == i else 0)] for j in key.tolist()]
        for i in query.tolist()
    ])  # fmt: skip


def _names_form(generator: Generator):
    return [(torch.arange(5, 9), torch.arange(3)), (torch.tensor([4]), torch.arange(2, 5))]


def _halves(generator: Generator):
    """Keys in the first half of what the queries see: no key is its own query."""
    start = _below(20, generator, low=8)
    return [(torch.arange(start + 1, start + 7), torch.arange(start))]


def _own_places(generator: Generator):
    start = _below(9, generator, low=6)
    return [(torch.arange(start, start + 5), torch.arange(start, start + 5))]


def _start(generator: Generator):
    """The beginning, where halves and own places meet; keys after their queries, too."""
    return [(torch.arange(4), torch.arange(5))]


def _any_order(generator: Generator):
    query = 40 + torch.randperm(300, generator=generator)[:5]
    key = torch.cat([query // 2, query[:2], torch.tensor([0])])
    return [(query, key[torch.randperm(len(key), generator=generator)])]


HALF_AND_OWN = Question(
    name="half_and_own",
    title="names made for a target",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Write the coefficients of the first five rows on paper. How many different ones are "
        "there? Look at the very first pair.",
        "With i = query[:, None] and j = key[None, :]: x_(i//2) is read where j == i // 2, and x_i "
        "where j == i. Each combination of these two has an id.",
        "half, own = j == i // 2, j == i. Start with ids of 3 everywhere; where half, put 0; where "
        "own, put 1; where both, put 2.",
    ),
    checks=(
        Check(
            "one-name-each",
            "an int64 id for each pair of a query and a key",
            "rows are queries and columns are keys: query[:, None] against key[None, :]",
            _names_form,
            parts=(),
        ),
        Check(
            "half",
            "id 0 at j = i // 2, id 3 elsewhere",
            "for odd i the half is rounded down: i = 5 reads j = 2; every query has such a key",
            _halves,
        ),
        Check(
            "own",
            "id 1 at j = i",
            "x_i itself is read as well, with the coefficient 3, so it needs another name",
            _own_places,
        ),
        Check(
            "both",
            "id 2 where both fall together",
            "at i = 0 the half of i is i itself: the coefficient is 1 + 3 = 4, an operator of its "
            "own; and a key after its query has no role",
            _start,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in; arange(len(query)) is right only if they start "
            "at 0 and leave none out",
            _any_order,
        ),
    ),
    reference=reference_half_and_own,
)

QUESTIONS = (POLA_FORWARD, NEW_IDS, MEAN_OPERATORS, DESCEND, MINIMUM_NORM, HALF_AND_OWN)
