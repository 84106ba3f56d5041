"""Exercise 4: LRC in both readings, scale by scale, and what each of them means for a layer.

The references count with sets and eliminate in fractions, in plain Python; the solutions that
learners see compute with tensors.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
NEAR = 1e-6
Rows = list[list[Fraction]]


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _numbers(table: Tensor) -> Tensor:
    """Return a table of numbers as one of 1 x 1 operators."""
    return table.double()[..., None, None]


def _distances(length: int) -> Tensor:
    at = torch.arange(length)
    return at[:, None] - at[None, :]


def _causal(length: int) -> Tensor:
    return _distances(length) >= 0


def _lower(low: Tensor, above: Tensor | float) -> Tensor:
    """Return operators [l l p d] that hold the first where j <= i, and the second above."""
    return torch.where(_causal(len(low))[:, :, None, None], low, above)


def _put(kernel: Tensor, length: int) -> Tensor:
    """Return the operators [l l p d] of a target whose distance k carries ``kernel[k]``."""
    return _lower(kernel[_distances(length).clamp(0, len(kernel) - 1)], 0.0)


def _pairs(operators: Tensor) -> list[tuple[float, ...]]:
    """Return the operators of all pairs, flattened."""
    whole = operators.flatten(2).tolist()
    return [tuple(whole[i][j]) for i in range(len(whole)) for j in range(i + 1)]


# --- lrc_operators --------------------------------------------------------------------------------
def reference_lrc_operators(operators: Tensor) -> int:
    """Collect the operators of all pairs in a set."""
    return len({operator for operator in _pairs(operators) if any(operator)})


def _repeated(generator: Generator):
    """Few numbers at many pairs, of both signs, and zeros elsewhere."""
    a = _below(9, generator, low=1)
    kernel = torch.tensor([a, -a, 0, a + 2, a, 0])
    return [(_put(_numbers(kernel), 8),), (_put(_numbers(torch.tensor([a, 0])), 6),)]


def _no_zeros(generator: Generator):
    """Every pair wants something; and a target that wants nothing at all."""
    kernel = torch.arange(1, 5) + _below(9, generator)
    return [(_put(_numbers(kernel), 6),), (torch.zeros(4, 4, 1, 1).double(),)]


def _same_entries(generator: Generator):
    """Matrices with the same entries in other places, with equal sums, with a common corner."""
    a = _below(9, generator, low=3)
    kernel = torch.tensor([[[a, 1], [2, 0]], [[a, 2], [1, 0]], [[0, 1], [2, a]], [[a, 1], [1, 1]]])
    zero = torch.zeros(1, 2, 2)
    return [(_put(torch.cat([kernel, kernel[:1], zero]).double(), 9),)]


def _above(generator: Generator):
    low = _put(_numbers(torch.tensor([1, 3, 0])), 6)
    other = _numbers(torch.arange(36).reshape(6, 6) + 10 + _below(9, generator))
    return [(_lower(low, other),)]


LRC_OPERATORS = Question(
    name="lrc_operators",
    title="LRC by counting",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Make a list of the operators at all pairs first, each as one flat row. What must be taken "
        "out of it?",
        "Flat rows, repetitions removed, and the zero row removed if it is there. How many remain?",
        "i, j = torch.tril_indices(l, l); rows = operators[i, j].flatten(1).unique(dim=0); count "
        "those for which rows.any(dim=1) is True, as an int.",
    ),
    checks=(
        Check(
            "whole-number",
            "a Python int",
            "len() gives an int; a tensor with one number needs .item() or int()",
            _repeated,
            parts=(),
        ),
        Check(
            "each-once",
            "an operator counts once, at however many pairs it stands",
            "count different operators, not pairs, and leave zero out; a number and its negative "
            "are different. In a set two equal tensors are two things: make tuples of them",
            _repeated,
        ),
        Check(
            "zero-aside",
            "the zero operator does not count, if there is one",
            "to take away 1 for zero is wrong where no pair wants zero",
            _no_zeros,
        ),
        Check(
            "whole-operators",
            "an operator is the whole matrix, each entry in its place",
            "two matrices are equal if all entries are; their sum, their sorted entries, or a set "
            "of all numbers forget where an entry stands",
            _same_entries,
        ),
        Check(
            "pairs-alone",
            "entries above the diagonal do not count",
            "j > i is no pair; torch.tril_indices gives the pairs",
            _above,
        ),
    ),
    reference=reference_lrc_operators,
)


# --- lrc_by_length --------------------------------------------------------------------------------
def reference_lrc_by_length(operators: Tensor) -> list[int]:
    """Go through the lengths, and keep what was met."""
    met: set[tuple[float, ...]] = set()
    curve = []
    for n in range(1, len(operators) + 1):
        met |= {one for one in _pairs(operators[n - 1, :n, :n]) if any(one)}
        curve.append(len(met))
    return curve


def _each_length(low: Tensor) -> Tensor:
    """Return one table for each length: the same target, cut and filled up with zeros."""
    tables = []
    for n in range(1, len(low) + 1):
        table = torch.zeros_like(low)
        table[:n, :n] = low[:n, :n]
        tables.append(table)
    return torch.stack(tables)


def _growing(generator: Generator):
    kernel = torch.tensor([2, 5, 2, 7, 7, 9]) + _below(9, generator)
    return [(_each_length(_put(_numbers(kernel), 6)),)]


def _passing(generator: Generator):
    """Numbers that come at one length and are gone at the next."""
    tables = _each_length(_put(_numbers(torch.tensor([3, 4])), 6))
    for n, place in ((2, (1, 0)), (4, (3, 1)), (5, (2, 2))):
        tables[n - 1][place] = 10.0 * n + _below(9, generator)
    return [(tables,)]


def _by_scale(generator: Generator):
    """The last row of each length wants another number than the rows before it."""
    last = _below(9, generator, low=3)
    from_end = torch.arange(1, 6)[:, None] - torch.arange(5)  # n - i
    wants = torch.where(from_end == 1, last, 2)[:, :, None].expand(5, 5, 5)
    inside = _causal(5) & (from_end[:, :, None] > 0)
    return [(_numbers(torch.where(inside, wants, 0)),)]


def _outside(generator: Generator):
    """Numbers above the diagonal and in rows behind the length, where no pair is."""
    tables = _each_length(_put(_numbers(torch.tensor([4, 4, 6])), 5))
    for n in range(1, 6):
        pairs = _causal(5) & (torch.arange(5)[:, None] < n)
        junk = _numbers(torch.arange(25).reshape(5, 5) + 20 + _below(9, generator))
        tables[n - 1] = torch.where(pairs[:, :, None, None], tables[n - 1], junk)
    return [(tables,)]


def _late_matrices(generator: Generator):
    """Matrices; the first two lengths want nothing."""
    a = _below(9, generator, low=1)
    kernel = torch.tensor([[0, 0], [0, 0], [a, 1], [1, a], [a, 1]]).double()[:, None, :]
    return [(_each_length(_put(kernel, 7)),)]


LRC_BY_LENGTH = Question(
    name="lrc_by_length",
    title="how LRC grows",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "LRC at length n is about all lengths up to n. So what must you remember from one length "
        "to the next?",
        "Keep a set of the operators that you have met. At length n add those of operators[n - 1], "
        "at the pairs j <= i < n, without zero. Its size is the next entry.",
        "met = set(); for n in range(1, l + 1): i, j = torch.tril_indices(n, n); met |= "
        "{tuple(row) for row in operators[n - 1][i, j].flatten(1).tolist() if any(row)}; "
        "curve.append(len(met)).",
    ),
    checks=(
        Check(
            "list-of-counts",
            "a list of ints, one for each length",
            "the lengths are 1 to l; return a list of Python ints, not a tensor",
            _growing,
            parts=(),
        ),
        Check(
            "counts",
            "the number of different non-zero operators",
            "each operator counts once; at length 1 there is one pair, (0, 0), in operators[0]",
            _growing,
        ),
        Check(
            "own-table",
            "each length has a table of its own",
            "the target may depend on n: the pairs of length n stand in operators[n - 1], and the "
            "last table does not hold those of shorter lengths",
            _by_scale,
        ),
        Check(
            "up-to-n",
            "what a shorter length needed counts at all longer ones",
            "LRC is about all lengths up to n, so it never falls; the count at length n alone does",
            _passing,
        ),
        Check(
            "pairs-alone",
            "only pairs with j <= i < n count at length n",
            "the tables are larger than short lengths need, and what stands outside means nothing",
            _outside,
        ),
        Check(
            "zero-aside",
            "lengths that want nothing have the LRC 0",
            "the zero operator does not count, of whatever size it is",
            _late_matrices,
        ),
    ),
    reference=reference_lrc_by_length,
)


# --- represents -----------------------------------------------------------------------------------
def reference_represents(ids: Tensor, operators: Tensor, other: int) -> bool:
    """Note what each name has to mean; two meanings are one too many."""
    names, whole = ids.tolist(), operators.flatten(2).tolist()
    meaning = {other: [0.0] * (operators.shape[2] * operators.shape[3])}
    for i in range(len(names)):
        for j in range(i + 1):
            if meaning.setdefault(names[i][j], whole[i][j]) != whole[i][j]:
                return False
    return True


def _named(ids: Tensor) -> Tensor:
    """Give all that is no pair a name of its own, under which nothing is wanted."""
    return torch.where(_causal(len(ids)), ids, 50)


def _back(length: int, farthest: int) -> Tensor:
    return _named(_distances(length).clamp(0, farthest))


def _plain(generator: Generator):
    """Three operators by column, none zero: three names serve, two or one do not."""
    ids = (torch.arange(6) // 2).expand(6, 6)
    wants = _lower(_numbers((ids + 1) * _below(9, generator, low=1)), 0.0)
    return [(_named(ids.clamp(max=most)), wants, 99) for most in (2, 1, 0)]


def _one_exception(generator: Generator):
    """One pair among many wants something else under its name."""
    operators = _put(_numbers(torch.tensor([2, 3, 5])), 6)
    wrong = operators.clone()
    i = _below(5, generator, low=2)
    wrong[i, i - 1] = 5
    return [(_back(6, 2), operators, 99), (_back(6, 2), wrong, 99)]


def _other_wants(generator: Generator):
    """All pairs under "other" want one and the same thing, which is not zero."""
    value = _below(9, generator, low=2)
    own = (_distances(5) == 0).long()
    wants, silent = (_put(_numbers(torch.tensor([4, v])), 5) for v in (value, 0))
    return [(_named(own), wants, 0), (_named(own), wants, 7), (_named(1 - own), silent, 1)]


def _zero_by_name(generator: Generator):
    """A name that stands for zero at all its pairs; and one that stands for zero at some."""
    always = _put(_numbers(torch.tensor([2, 0, 5])), 6)
    sometimes = always.clone()
    row = _below(6, generator, low=3)
    sometimes[row, row - 2] = 0
    return [(_back(6, 2), always, 99), (_back(6, 2), sometimes, 99)]


def _redundant(generator: Generator):
    """Two names for one operator."""
    value = _below(9, generator, low=2)
    return [(_back(5, 4), _put(_numbers(torch.tensor([value, value, 3, value])), 5), 99)]


def _matrices_by_name(generator: Generator):
    """Matrices that share some entries."""
    value = _below(9, generator, low=2)
    kernel = torch.tensor([[[value, 1], [0, 1]], [[value, 1], [1, 0]]]).double()
    return [(_back(4, most), _put(kernel, 4), 99) for most in (1, 0)]


def _names_above(generator: Generator):
    """Above the diagonal the names of pairs stand with other operators."""
    ids = torch.where(_causal(5), _distances(5).clamp(0, 1), _distances(5).T.clamp(0, 1))
    low = _put(_numbers(torch.tensor([2, 3 + _below(9, generator)])), 5)
    return [(ids, _lower(low, 1.5), 99)]


REPRESENTS = Question(
    name="represents",
    title="are these names fine enough?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Take one name and look at all pairs that have it. When can one operator serve them all? "
        "And what is the operator of the name `other`?",
        "For each name: all its pairs want the same operator. For `other`: they all want zero. A "
        "name that is not `other` may stand for zero as well.",
        "i, j = torch.tril_indices(l, l); names, rows = ids[i, j], operators[i, j].flatten(1). For "
        "each k in names.unique(): mine = rows[names == k]; compare (mine == mine[0]).all(), and "
        "for k == other that there is no mine.any().",
    ),
    checks=(
        Check(
            "yes-or-no",
            "True or False",
            "return a Python bool: bool() turns a tensor of one into it",
            _plain,
            parts=(),
        ),
        Check(
            "one-operator-each",
            "a name serves if all its pairs want one operator",
            "two operators under one name are one too many; but several names may be in use",
            _plain,
        ),
        Check(
            "every-pair",
            "one pair that wants something else is enough to fail",
            "look at all pairs of a name: not at the first and the last one alone, and not at "
            "what most of them want. To have as many names as operators is not enough",
            _one_exception,
        ),
        Check(
            "other-is-zero",
            "pairs under `other` must want zero",
            "`other` is no name like the rest: its operator is zero, whatever its pairs want. Only "
            "the id that is handed in as `other` has this role",
            _other_wants,
        ),
        Check(
            "zero-is-an-operator",
            "a name may stand for zero, but then at all its pairs",
            "pairs that want zero count like others: a name with zero here and 5 there fails, a "
            "name with zero everywhere does not",
            _zero_by_name,
        ),
        Check(
            "redundant-names",
            "two names for one operator do no harm",
            "nobody asks for the least number of names: two names may have one operator",
            _redundant,
        ),
        Check(
            "whole-operators",
            "operators are equal if all their entries are",
            "compare whole matrices: two of them may agree in the first row",
            _matrices_by_name,
        ),
        Check(
            "pairs-alone",
            "entries above the diagonal do not count",
            "j > i is no pair, whatever name stands there",
            _names_above,
        ),
    ),
    reference=reference_represents,
)


# --- lrc_rank -------------------------------------------------------------------------------------
def _reduced(rows: Rows) -> tuple[Rows, list[int]]:
    """Return the non-zero rows of the reduced echelon form, and the columns of their pivots."""
    rows = [list(row) for row in rows]
    pivots: list[int] = []
    for column in range(len(rows[0]) if rows else 0):
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


def reference_lrc_rank(operators: Tensor) -> int:
    """Eliminate in fractions; the number of pivots is the rank."""
    rows = {operator for operator in _pairs(operators) if any(operator)}
    return len(_reduced([[Fraction(v) for v in row] for row in sorted(rows)])[1])


def _one_number(generator: Generator):
    """Many numbers, each a multiple of any other; and none at all."""
    kernel = torch.arange(1, 7) * _below(5, generator, low=1)
    return [(_put(_numbers(kernel), 6),), (torch.zeros(4, 4, 1, 1).double(),)]


def _mixed(generator: Generator):
    """Sums and multiples of two matrices."""
    a = torch.tensor([[1.0, 2.0], [0.0, 1.0]]).double() * _below(5, generator, low=1)
    b = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).double()
    return [(_put(torch.stack([a, b, a + b, 2 * a, a - 3 * b]), 6),)]


def _of_rank_one(generator: Generator):
    """Single entries: each operator has the rank 1, their sum another one, their span a third."""
    unit = torch.eye(6).double().reshape(6, 2, 3)
    count = _below(6, generator, low=4)
    return [(_put(torch.cat([unit[:count], unit[:1]]), 8),)]


def _rank_above(generator: Generator):
    low = _put(torch.tensor([[1.0, 2.0], [2.0, 4.0]]).double()[:, None, :], 5)
    above = torch.tensor([3.0, 1.0 + _below(5, generator)]).double()
    return [(_lower(low, above),)]


LRC_RANK = Question(
    name="lrc_rank",
    title="LRC as a rank",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Which matrix has the rank that is asked for? What is one of its rows?",
        "Flatten each operator to p d numbers and stack those of all pairs. The dimension of what "
        "the rows span is the rank of this matrix.",
        "i, j = torch.tril_indices(l, l); int(torch.linalg.matrix_rank(operators[i, "
        "j].flatten(1))).",
    ),
    checks=(
        Check(
            "whole-number",
            "a Python int",
            "torch.linalg.matrix_rank gives a tensor; int() makes it a number",
            _one_number,
            parts=(),
        ),
        Check(
            "multiples",
            "a multiple of an operator adds nothing",
            "numbers other than zero span one dimension, however many there are; zero alone spans "
            "none",
            _one_number,
        ),
        Check(
            "mixes",
            "sums of multiples add nothing either",
            "it is not enough to remove multiples of single operators: a + b is in the span of a "
            "and b. The rank is never more than p d, however many operators there are",
            _mixed,
        ),
        Check(
            "span-of-all",
            "it is the span of all operators together that counts",
            "the rank of one operator, of the sum of all, and of a stack of all their rows are "
            "other numbers: flatten each operator to one row of p d numbers",
            _of_rank_one,
        ),
        Check(
            "pairs-alone",
            "entries above the diagonal do not count",
            "j > i is no pair, whatever stands there",
            _rank_above,
        ),
    ),
    reference=reference_lrc_rank,
)


# --- basis_and_code -------------------------------------------------------------------------------
def reference_basis_and_code(stack: Tensor) -> tuple[Tensor, Tensor]:
    """Reduce the transposed stack: its pivots are the basis, its columns are the coordinates."""
    columns = [[Fraction(v) for v in row] for row in stack.T.tolist()]
    reduced, pivots = _reduced(columns)
    code = [[float(row[m]) for row in reduced] for m in range(len(stack))]
    return (
        torch.tensor(code, dtype=stack.dtype).reshape(len(stack), len(pivots)),
        stack[torch.tensor(pivots, dtype=torch.long)],
    )


def _three(generator: Generator) -> Tensor:
    """Three independent rows of four numbers."""
    rows = torch.randint(-2, 3, (3, 4), generator=generator).double()
    return rows + 7 * torch.eye(4).double()[torch.randperm(4, generator=generator)[:3]]


def _code_form(generator: Generator):
    a, b, c = _three(generator)
    return [(torch.stack([a, b, a + b, c, a, 0 * a]),)]


def _own_rows(generator: Generator):
    """All rows are independent."""
    return [(_three(generator),)]


def _late_rows(generator: Generator):
    """Rows that are mixes of earlier ones come before the last independent row."""
    a, b, c = _three(generator)
    return [(torch.stack([a, 2 * a, b, a - b, c, b + c]),)]


def _mixes(generator: Generator):
    a, b, _ = _three(generator)
    factors = torch.randint(2, 9, (4, 2), generator=generator).double()
    return [(torch.cat([torch.stack([a, b]), factors @ torch.stack([a, b])]),)]


def _zero_rows(generator: Generator):
    """Rows of zeros, the first one among them."""
    a, b, _ = _three(generator)
    return [(torch.stack([0 * a, a, 0 * a, b, 0 * a, 3 * b]),)]


def _zeros_alone(generator: Generator):
    return [(torch.zeros(3 + _below(4, generator), 4).double(),)]


BASIS_AND_CODE = Question(
    name="basis_and_code",
    title="fewest operators, and the code that mixes them",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "Go through the rows from the top. When does a row tell something new? Keep those that do.",
        "A row joins the basis if the rank of the basis with it is larger than without it. The "
        "code of a row x solves code @ basis = x; the rows of the basis are independent, so there "
        "is one solution.",
        "kept = []; for m in range(len(stack)): if matrix_rank(stack[[*kept, m]]) > len(kept): "
        "kept.append(m). Then basis = stack[kept] and code = stack @ torch.linalg.pinv(basis).",
    ),
    checks=(
        Check(
            "two-tables",
            "a tuple of the code [m, r] and the basis [r, f]",
            "r is the rank of the stack; the code comes first, so that code @ basis is the stack",
            _code_form,
            parts=(),
        ),
        Check(
            "own-rows",
            "independent rows are their own basis",
            "the basis holds rows of the stack as they are, not scaled, not turned: singular "
            "vectors span the same space and are not wanted here",
            _own_rows,
            tolerance=NEAR,
        ),
        Check(
            "earliest-rows",
            "a row is kept if it is no mix of the rows before it",
            "go from the top: the first r rows need not be independent, and of two that depend on "
            "each other the earlier one is kept",
            _late_rows,
            parts=(1,),
            tolerance=NEAR,
        ),
        Check(
            "coordinates",
            "code @ basis is the stack",
            "the code of a row says how often each row of the basis goes into it",
            _mixes,
            tolerance=NEAR,
        ),
        Check(
            "zero-rows",
            "a row of zeros has a code of zeros and is never kept",
            "zero is a mix of any rows, even of none",
            _zero_rows,
            tolerance=NEAR,
        ),
        Check(
            "nothing-to-mix",
            "a stack of zeros has an empty basis",
            "then r is 0: the code is [m, 0] and the basis is [0, f]",
            _zeros_alone,
        ),
    ),
    reference=reference_basis_and_code,
)


# --- enough_length --------------------------------------------------------------------------------
def reference_enough_length(curve: list[int]) -> int:
    """Try the lengths from the shortest on."""
    return next(n for n in range(1, len(curve) + 1) if curve[n - 1] == curve[-1])


def _curve(steps: list[int], generator: Generator) -> list[int]:
    return list(accumulate(steps, initial=_below(5, generator, low=2)))


def _one_stop(generator: Generator):
    stop = _below(7, generator, low=2)
    return [(_curve([1] * stop + [0] * 4, generator),), (_curve([2, 1, 0, 0], generator),)]


def _two_stops(generator: Generator):
    return [
        (_curve([1, 0, 0, 2, 0, 0], generator),),
        (_curve([0, 0, 3, 0, 1, 0], generator),),
    ]


def _all_along(generator: Generator):
    return [(_curve([0] * _below(8, generator, low=2), generator),), ([3],)]


def _to_the_end(generator: Generator):
    return [(_curve([1] * 5, generator),), (_curve([0, 0, 0, 0, 1], generator),)]


ENOUGH_LENGTH = Question(
    name="enough_length",
    title="how long must training be?",
    points=2,
    minutes=5,
    difficulty=1,
    hints=(
        "What does LRC at the end of the curve tell? When has training shown as many operators?",
        "LRC never falls, so it has stopped growing as soon as it has its last value.",
        "curve.index(curve[-1]) is the first place with the last value; lengths count from 1.",
    ),
    checks=(
        Check(
            "whole-number",
            "a length, as a Python int",
            "the answer is a length and not a value of LRC, a list or None",
            _one_stop,
            parts=(),
        ),
        Check(
            "counts-from-1",
            "lengths count from 1",
            "curve[0] belongs to length 1; and the answer is the length at which LRC has its last "
            "value, not the one before, nor the value itself",
            _one_stop,
        ),
        Check(
            "rests",
            "a curve may rest for a while and grow again",
            "two equal neighbours do not mean that LRC has stopped growing",
            _two_stops,
        ),
        Check(
            "from-the-start",
            "if LRC never grows, length 1 is enough",
            "there may be no step at all, or one length only",
            _all_along,
        ),
        Check(
            "to-the-end",
            "if LRC grows up to the end, only the last length is enough",
            "then training must go as far as the test",
            _to_the_end,
        ),
    ),
    reference=reference_enough_length,
)

QUESTIONS = (LRC_OPERATORS, LRC_BY_LENGTH, REPRESENTS, LRC_RANK, BASIS_AND_CODE, ENOUGH_LENGTH)
