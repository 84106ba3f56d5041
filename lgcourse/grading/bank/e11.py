"""Exercise 11: read a learned relation out of a head, use it, and predict what a wrong hint does.

The references are plain Python over lists; the solutions that learners see compute with tensors or
with formulas.
"""

from __future__ import annotations

import math
from itertools import cycle, islice

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
EQUALS, NOTHING = 10, -1


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


# --- read_cells -----------------------------------------------------------------------------------
def reference_read_cells(strength: Tensor, kept: Tensor) -> list[tuple[int, int]]:
    """Walk through the table, then sort."""
    window = (strength.shape[1] - 1) // 2
    found = []
    for f, (row, flags) in enumerate(zip(strength.tolist(), kept.tolist(), strict=True)):
        found += [(s, f, w - window) for w, (s, k) in enumerate(zip(row, flags, strict=True)) if k]
    return [(f, value) for _, f, value in sorted(found, reverse=True)]


def _table(forms: int, window: int, generator: Generator):
    """Strengths that all differ, some of them below 0."""
    count = forms * (2 * window + 1)
    order = torch.randperm(count, generator=generator).view(forms, -1)
    return order.float() / 4 - count / 8


def _only(strength: Tensor, *cells: tuple[int, int]):
    kept = torch.zeros(strength.shape, dtype=torch.bool)
    for f, w in cells:
        kept[f, w] = True
    return strength, kept


def _one_cell(generator: Generator):
    """One kept cell, and it is not the strongest of the table."""
    strength = _table(4, 3, generator)
    order = strength.flatten().argsort().tolist()
    f, w = divmod(order[_below(20, generator, low=8)], 7)
    if w == 3 or f in (0, w - 3):  # the value 0, or one that equals the form, hides mistakes
        f, w = 2, 6
    return [_only(strength, (f, w))]


def _ordered(generator: Generator):
    cases = []
    for _ in range(3):
        strength = _table(4, 3, generator)
        places = torch.randperm(28, generator=generator)[:6].tolist()
        cases.append(_only(strength, *(divmod(place, 7) for place in places)))
    return cases


def _other_windows(generator: Generator):
    cases = []
    for window in (0, 1, 5):
        strength = _table(3, window, generator)
        width = 2 * window + 1
        places = torch.randperm(3 * width, generator=generator)[:3].tolist()
        cases.append(_only(strength, *(divmod(place, width) for place in places)))
    return cases


def _empty(generator: Generator):
    return [_only(_table(4, 3, generator))]


READ_CELLS = Question(
    name="read_cells",
    title="which cells does a head keep?",
    points=3,
    minutes=10,
    difficulty=2,
    hints=(
        "kept[f, w] says whether the cell in row f and column w stays. Which form is row f, and "
        "which value is column w, if column 0 stands for the smallest value?",
        "The window is (number of columns - 1) / 2, and column w holds the value w - window. Sort "
        "by strength, largest first.",
        "kept.nonzero().tolist() gives the pairs [f, w]; sort them with key=lambda c: "
        "-float(strength[c[0], c[1]]); then return [(f, w - window) for f, w in ...].",
    ),
    checks=(
        Check(
            "list-of-pairs",
            "a list with one pair of whole numbers per kept cell",
            "only cells with kept = True are listed, whatever their strength is; each is a tuple "
            "(form, value) of Python integers",
            _ordered,
            parts=(),
        ),
        Check(
            "form-and-value",
            "row and column become form and value",
            "(form, value), in this order; and the column is not the value: the middle column "
            "stands for 0, the first one for -window",
            _one_cell,
        ),
        Check(
            "strongest-first",
            "the strongest cell comes first",
            "nonzero() lists cells row by row: sort by strength, largest first. A strength below 0 "
            "is weaker than 0, so do not take absolute values",
            _ordered,
        ),
        Check(
            "any-window",
            "the window is read off the table",
            "the table has 2 window + 1 columns; do not write 3 into the code",
            _other_windows,
        ),
        Check(
            "none-kept",
            "a head that keeps nothing gives an empty list",
            "the strongest cell of the table is no answer if kept is False everywhere",
            _empty,
        ),
    ),
    reference=reference_read_cells,
)


# --- key_of ---------------------------------------------------------------------------------------
def reference_key_of(cell: tuple[int, int, int, int], i: int, n: int) -> int:
    """Try every key up to the query."""
    a, b, c, value = cell
    found = [j for j in range(i + 1) if a * i + b * j + c * n == value]
    return found[0] if found else NOTHING


def _copy_cell(generator: Generator):
    n = _below(12, generator, low=5)
    return [((1, -1, -1, 0), i, n) for i in range(n, 2 * n)]


def _other_cells(generator: Generator):
    """Cells with a value, with a plus, and with two n."""
    n = _below(12, generator, low=6)
    return [
        ((1, -1, -1, 1), n + 3, n),
        ((1, -1, -2, 2), 2 * n + 4, n),
        ((1, 1, -2, -1), n + 2, n),
        ((1, -1, 0, 2), n, n),
        ((0, 1, -1, 0), 2 * n, n),
    ]


def _before_start(generator: Generator):
    n = _below(12, generator, low=5)
    return [((1, -1, -1, 1), n, n), ((1, -1, -1, 0), n - 2, n), ((1, -1, 0, 3), 1, n)]


def _behind_query(generator: Generator):
    n = _below(12, generator, low=5)
    return [((1, 1, -2, -1), n - 2, n), ((0, 1, -1, 0), n - 1, n), ((1, -1, 0, -1), n, n)]


def _halves(generator: Generator):
    """i - 2j = w: every second query finds a key."""
    n = _below(12, generator, low=5)
    return [((1, -2, 0, 0), i, n) for i in range(3, 9)] + [((1, -2, -1, 1), i, n) for i in
            range(n + 3, n + 8)]  # fmt: skip


KEY_OF = Question(
    name="key_of",
    title="which key does a cell name?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Take i - j - n = 0 with i = 9 and n = 4. Which j solves it? Do the same for i + j - 2n = "
        "-1. What of i - 2j = 0 with i = 7?",
        "a i + b j + c n = w means b j = w - a i - c n. A key exists if b divides the right side "
        "and if 0 <= j <= i.",
        "j, rest = divmod(w - a * i - c * n, b); return j if rest == 0 and 0 <= j <= i else -1.",
    ),
    checks=(
        Check(
            "a-position",
            "a whole number",
            "return a Python int: / gives a float, // and divmod give whole numbers",
            _copy_cell,
            parts=(),
        ),
        Check(
            "solves-for-the-key",
            "the cell of copy names the operand",
            "i - j - n = 0 gives j = i - n: move everything but b j to the right and divide by b, "
            "which may be -1",
            _copy_cell,
        ),
        Check(
            "any-form",
            "other forms and values too",
            "use all of a, b, c and w: in i + j - 2n = -1 the sign of j is plus, n counts twice, "
            "and the value is not 0",
            _other_cells,
        ),
        Check(
            "starts-at-zero",
            "there is no key before the first",
            "a negative j is no position: return -1, also where j is -2",
            _before_start,
        ),
        Check(
            "no-future",
            "a key behind the query is no key",
            "a causal model reads keys up to the query, the query included: j <= i",
            _behind_query,
        ),
        Check(
            "divides",
            "no half keys",
            "if b does not divide the right side, no key solves the equation: rounding names a "
            "wrong one",
            _halves,
        ),
    ),
    reference=reference_key_of,
)


# --- operand_share --------------------------------------------------------------------------------
def reference_operand_share(weights: Tensor, operands: Tensor) -> Tensor:
    """Add up head by head and step by step."""
    shares = []
    for head in weights.tolist():
        sums = []
        for row, keys in zip(head, operands.tolist(), strict=True):
            read = {key for key in keys if key >= 0}
            if read:
                sums.append(math.fsum(row[key] for key in read))
        shares.append(math.fsum(sums) / len(sums))
    return torch.tensor(shares)


def _attention(heads: int, queries: int, keys: int, generator: Generator) -> Tensor:
    return torch.softmax(2 * torch.randn(heads, queries, keys, generator=generator), dim=-1)


def _distinct(queries: int, keys: int, roles: int, generator: Generator) -> Tensor:
    return torch.stack([torch.randperm(keys, generator=generator)[:roles] for _ in range(queries)])


def _one_operand(generator: Generator):
    return [(_attention(3, 5, 7, generator), _distinct(5, 7, 1, generator))]


def _two_operands(generator: Generator):
    return [(_attention(2, 4, 6, generator), _distinct(4, 6, 2, generator))]


def _missing(generator: Generator):
    """Some steps have one operand less; the last key gets much, and counts for nothing."""
    weights, operands = _attention(3, 5, 6, generator), _distinct(5, 5, 3, generator)
    weights[..., -1] += 1.0
    operands[0, 2], operands[3, 0] = NOTHING, NOTHING
    return [(weights / weights.sum(-1, keepdim=True), operands)]


def _twice(generator: Generator):
    """One key is the operand in two roles."""
    weights, operands = _attention(2, 5, 6, generator), _distinct(5, 6, 3, generator)
    operands[:, 2] = operands[:, 0]
    return [(weights, operands)]


def _no_operand(generator: Generator):
    """Queries whose step reads nothing are left out of the mean."""
    weights, operands = _attention(2, 6, 6, generator), _distinct(6, 6, 2, generator)
    operands[1], operands[4] = NOTHING, NOTHING
    return [(weights, operands)]


OPERAND_SHARE = Question(
    name="operand_share",
    title="how much attention do the operands get?",
    points=4,
    minutes=15,
    difficulty=3,
    hints=(
        "For one head and one query: which entries of the row of weights belong to operands? Mark "
        "them with True in a mask of shape [q, k].",
        "A key that is an operand twice gets its attention once, so a mask is better than a sum "
        "over roles. -1 marks nothing. Then mean over the queries that have an operand.",
        "mask = (operands[:, :, None] == torch.arange(k)).any(1); sums = (weights * mask).sum(-1); "
        "then sums[:, mask.any(1)].mean(1).",
    ),
    checks=(
        Check(
            "one-share-per-head",
            "one number per head",
            "sum over the operands, mean over the queries: both go, the heads stay",
            _one_operand,
            parts=(),
        ),
        Check(
            "right-keys",
            "the attention on the operand is averaged over the queries",
            "row q of operands belongs to query q: each query has its own key. weights[:, :, "
            "operands] hands every query the operands of all",
            _one_operand,
            tolerance=1e-5,
        ),
        Check(
            "adds-operands",
            "operands of one step are added",
            "a head that spreads over both operands reads both: add them, no mean and no maximum",
            _two_operands,
            tolerance=1e-5,
        ),
        Check(
            "missing-operand",
            "-1 stands for no operand",
            "weights[..., -1] is the last key: a role that a step does not have must not count",
            _missing,
            tolerance=1e-5,
        ),
        Check(
            "counted-once",
            "a key with two roles counts once",
            "attention on a key is there once, however many roles the key has; a sum over roles "
            "can exceed 1",
            _twice,
            tolerance=1e-5,
        ),
        Check(
            "steps-only",
            "queries without an operand are left out",
            "divide by the number of queries that have an operand, not by all queries",
            _no_operand,
            tolerance=1e-5,
        ),
    ),
    reference=reference_operand_share,
)


# --- drop_weakest ---------------------------------------------------------------------------------
def reference_drop_weakest(strength: Tensor, cost: Tensor, spare: float) -> Tensor:
    """Try the cells one by one, the weakest first; work in whole numbers."""
    costs, room = [round(c) for c in cost.tolist()], round(spare)
    dropped: set[int] = set()
    for cell in sorted(range(len(costs)), key=strength.tolist().__getitem__):
        if sum(costs[c] for c in dropped | {cell}) <= room:
            dropped.add(cell)
    return torch.tensor([cell not in dropped for cell in range(len(costs))])


def _cells(costs: list[int], generator: Generator, shuffle: bool = True):
    """Cells whose strength rises in the order of the list, then mixed up."""
    order = torch.randperm(len(costs), generator=generator) if shuffle else torch.arange(len(costs))
    strength = torch.arange(1, len(costs) + 1).float()
    return strength[order], torch.tensor(costs).float()[order]


def _free(generator: Generator):
    """All weak cells are free, the strong ones dear."""
    strength, cost = _cells([0, 0, 0, 90, 80], generator, shuffle=False)
    return [(strength.flip(0), cost.flip(0), 3.0), (*_cells([0, 0, 90, 80], generator), 3.0)]


def _weak_but_needed(generator: Generator):
    """The weakest is dear: it stays, and the search goes on behind it."""
    return [(*_cells([50, 1, 60, 1, 70], generator), 5.0)]


def _adds_up(generator: Generator):
    """Each alone would be cheap enough; together they are not."""
    return [(*_cells([3, 3, 3, 3, 60], generator), 7.0)]


def _order_matters(generator: Generator):
    """The weakest first, although another choice would drop more cells, or cheaper ones."""
    return [(*_cells([6, 2, 2, 2, 90], generator), 7.0), (*_cells([4, 5, 1, 90], generator), 6.0)]


def _bound(generator: Generator):
    """A loss that is just the bound is still allowed."""
    return [(*_cells([2, 3, 40, 50], generator), 5.0), (*_cells([5, 40, 50], generator), 5.0)]


DROP_WEAKEST = Question(
    name="drop_weakest",
    title="which cells can be spared?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Go through the cells in the order of their strength, the weakest first. What do you know "
        "when you come to a cell, and what do you ask?",
        "Keep the sum of the costs of what was dropped so far. Drop the cell if that sum, with its "
        "own cost, stays at most spare; else keep it and go on.",
        "for cell in strength.argsort().tolist(): if total + float(cost[cell]) <= spare: total += "
        "float(cost[cell]); kept[cell] = False.",
    ),
    checks=(
        Check(
            "kept-or-not",
            "True or False per cell",
            "return bool[c], True for the cells that stay, in the order of the input",
            _free,
            parts=(),
        ),
        Check(
            "spares-the-free",
            "what costs nothing is dropped, what is dear stays",
            "True means kept; and cells come in any order, so sort by strength and write the "
            "answer back to the cell's own place",
            _free,
        ),
        Check(
            "weak-is-not-useless",
            "a weak cell that is needed stays, and the search goes on",
            "the strength only gives the order: ask the cost. And do not stop at the first cell "
            "that must stay",
            _weak_but_needed,
        ),
        Check(
            "costs-add-up",
            "the costs of all that was dropped are added",
            "the loss is measured with all dropped cells missing, so compare the sum with spare, "
            "not each cost by itself",
            _adds_up,
        ),
        Check(
            "weakest-first",
            "the order is that of strength",
            "go from the weakest to the strongest, not from the cheapest on and not from the "
            "strongest down",
            _order_matters,
        ),
        Check(
            "at-the-bound",
            "a loss that is just the bound is allowed",
            "at most means <=, not <",
            _bound,
        ),
    ),
    reference=reference_drop_weakest,
)


# --- copy_under_hint ------------------------------------------------------------------------------
def reference_copy_under_hint(x: Tensor, hint: int) -> Tensor:
    """Say the answer as a pattern: late by hint - n, or going round behind the last hint digits."""
    digits, n = x.tolist(), len(x)
    if hint > n:
        return torch.tensor(([NOTHING] * (hint - n) + digits)[:n])
    return torch.tensor(list(islice(cycle([*digits[n - hint :], EQUALS]), n)))


def _word(n: int, generator: Generator) -> Tensor:
    return torch.randperm(10, generator=generator)[:n]


def _true(generator: Generator):
    return [(_word(n, generator), n) for n in (6, 1, 9)]


def _late(generator: Generator):
    return [(_word(n, generator), n + k) for n, k in ((6, 1), (8, 1), (5, 1))]


def _later(generator: Generator):
    return [(_word(n, generator), n + k) for n, k in ((6, 3), (5, 9))]


def _early(generator: Generator):
    return [(_word(n, generator), n - 1) for n in (6, 8, 3)]


def _round(generator: Generator):
    return [(_word(n, generator), n - k) for n, k in ((6, 2), (9, 6), (5, 4))]


COPY_UNDER_HINT = Question(
    name="copy_under_hint",
    title="what does a copying model write under a wrong hint?",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "Write x1 x2 x3 = and the queries behind it, for n = 3 and hint = 2. The first query "
        "stands on =, at position 3. Which position does i - j - 2 = 0 name?",
        "The step that writes y_t looks from i = n + t - 1 and reads j = i - hint. Position n "
        "holds =, and positions behind n hold what the model has written before.",
        "line = [*x.tolist(), 10]; n times: j = len(line) - 1 - hint; line.append(line[j] if j >= "
        "0 else -1); then the last n entries.",
    ),
    checks=(
        Check(
            "n-tokens",
            "as many tokens as there are digits",
            "the answer has n whole numbers, the prompt is not part of it",
            _true,
            parts=(),
        ),
        Check(
            "true-hint",
            "under the true hint it copies",
            "with hint = n the first step reads position 0",
            _true,
        ),
        Check(
            "one-too-large",
            "one too large: it begins with nothing, then copies late",
            "the first step would read position -1, which does not exist: -1 is written. In Python "
            "line[-1] is the last entry, not nothing",
            _late,
        ),
        Check(
            "far-too-large",
            "as many missing as the hint is too large",
            "every step whose key lies before position 0 writes -1, not only the first",
            _later,
        ),
        Check(
            "one-too-small",
            "one too small: it begins with the second digit, and ends with =",
            "the last step reads position n, where = stands (token 10)",
            _early,
        ),
        Check(
            "reads-itself",
            "behind = it reads its own answer",
            "positions behind n hold what was written before, be it right or wrong: write step by "
            "step",
            _round,
        ),
    ),
    reference=reference_copy_under_hint,
)

QUESTIONS = (READ_CELLS, KEY_OF, OPERAND_SHARE, DROP_WEAKEST, COPY_UNDER_HINT)
