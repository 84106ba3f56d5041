"""Exercise 6: circuits, unit operators, and how many of them a task needs.

The references are plain Python and go another way than the shown solutions: they try all
possibilities, or compute with whole numbers.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
Table = dict[tuple[int, ...], int]


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _shuffled(things: list, generator: Generator) -> list:
    return [things[k] for k in torch.randperm(len(things), generator=generator).tolist()]


# --- run_circuit ----------------------------------------------------------------------------------
def reference_run_circuit(
    steps: list[tuple[int, Table, tuple[int, ...]]], prompt: list[int]
) -> list[int]:
    """Fill a table from position to token until nothing is missing."""
    known = dict(enumerate(prompt))
    while len(known) < len(prompt) + len(steps):
        for output, table, reads in steps:
            if output not in known and all(position in known for position in reads):
                known[output] = table[tuple(known[position] for position in reads)]
    return [known[position] for position in range(len(prompt), len(known))]


def _next_digit(generator: Generator) -> Table:
    """A table of one operand without fixed points: a wrong number of look-ups shows."""
    shift = _below(4, generator, low=1)
    return {(k,): (k + shift) % 5 for k in range(5)}


def _minus() -> Table:
    return {(a, b): (a - b) % 5 for a, b in product(range(5), repeat=2)}


def _one_by_one(generator: Generator):
    """Each step reads one token of the prompt."""
    table = _next_digit(generator)
    prompt = torch.randperm(5, generator=generator).tolist()
    reads = torch.randperm(5, generator=generator)[:3].tolist()
    return [([(5 + k, table, (p,)) for k, p in enumerate(reads)], prompt)]


def _running(generator: Generator):
    """Each step reads the token before: what was written a moment ago."""
    table = _next_digit(generator)
    return [([(k, table, (k - 1,)) for k in range(2, 7)], [4, _below(5, generator)])]


def _roles(generator: Generator):
    """Differences: the order of the operands counts, and it is not that of the positions."""
    prompt = [4, 1, 0, 2]
    steps = [(4, _minus(), (2, 0)), (5, _minus(), (3, 1)), (6, _minus(), (5, 4))]
    return [(steps, prompt)]


def _listed_anyhow(generator: Generator):
    """The steps of a chain, listed last first: each needs the one that comes behind it."""
    table = _next_digit(generator)
    steps = [(k, table, (k - 1,)) for k in range(1, 6)]
    return [(steps[::-1], [3]), (_shuffled(steps, generator)[::-1], [2])]


def _short(generator: Generator):
    return [([], [3, 1]), ([(1, _next_digit(generator), (0,))], [_below(5, generator)])]


RUN_CIRCUIT = Question(
    name="run_circuit",
    title="what does a circuit write?",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Keep one line of tokens, prompt and answer together. Which step can be done first? "
        "What does its output mean for the steps after it?",
        "Go through the steps in the order of their outputs. Each looks up one tuple, the tokens "
        "at its positions, role by role, and its token goes to the end of the line.",
        "line = list(prompt); for output, table, reads in sorted(steps, key=lambda s: s[0]): "
        "line.append(table[tuple(line[p] for p in reads)]). What is returned of the line?",
    ),
    checks=(
        Check(
            "answer-tokens",
            "a list with one whole number per step",
            "return the tokens that the circuit writes, without the prompt, as a list of ints",
            _one_by_one,
            parts=(),
        ),
        Check(
            "reads-the-prompt",
            "a step looks up the tokens at its positions",
            "the table takes tokens and not positions: look at the line first, then at the table",
            _one_by_one,
        ),
        Check(
            "reads-what-was-written",
            "a step may read what an earlier step wrote",
            "put each new token at the end of the line before the next step is done; positions "
            "count from the start of the prompt",
            _running,
        ),
        Check(
            "order-of-roles",
            "the operands come in the order of the roles",
            "the tuple has the operands in the order in which the step names them: do not sort the "
            "positions",
            _roles,
        ),
        Check(
            "any-listing",
            "steps may be listed in any order",
            "what counts is the output's position: sort the steps by it, or else a step reads "
            "what is not yet written",
            _listed_anyhow,
        ),
        Check(
            "short",
            "no step at all, and a single one",
            "a circuit without steps writes nothing: the empty list",
            _short,
        ),
    ),
    reference=reference_run_circuit,
)


# --- addition_column ------------------------------------------------------------------------------
def reference_addition_column(a: int, b: int, a_before: int, b_before: int, s_before: int) -> int:
    """Try both carries into the column before, and keep the one that explains its digit."""
    for carry in (0, 1):
        if (a_before + b_before + carry) % 10 == s_before:
            return (a + b + (a_before + b_before + carry) // 10) % 10
    raise ValueError("no carry explains the digit")


def _columns(generator: Generator, sums, carry: int, here=None):
    """Columns whose predecessor has one of some sums, with a carry into that predecessor."""
    cases = []
    for total in sums:
        low, high = max(0, total - 9), min(9, total)
        before = _below(high + 1, generator, low=low)
        a, b = here or (_below(10, generator), _below(10, generator))
        cases.append((a, b, before, total - before, (total + carry) % 10))
    return cases


def _plain(generator: Generator):
    return _columns(generator, (0, 5, 8), 0, (_below(4, generator), _below(5, generator, low=1)))


def _over_ten(generator: Generator):
    return _columns(generator, (0, 4), 0, (_below(10, generator, low=5), _below(10, generator, 6)))


def _carries(generator: Generator):
    """The column before is above nine by itself."""
    return _columns(generator, (10, 13, 17), 0, (_below(5, generator), _below(4, generator)))


def _passed_on(generator: Generator):
    """The column before is nine and gets a carry, which it hands on."""
    return _columns(generator, (9, 9, 9), 1, (_below(5, generator), _below(4, generator)))


def _nine(generator: Generator):
    """The column before is nine and gets none."""
    return _columns(generator, (9, 9, 9), 0, (_below(5, generator), _below(4, generator)))


def _all(generator: Generator):
    """All sums of the column before, with and without a carry into it; and nineteen here."""
    cases = []
    for carry in (0, 1):
        cases += _columns(generator, range(19), carry)
    return [*cases, *_columns(generator, (9, 18), 1, (9, 9))]


ADDITION_COLUMN = Question(
    name="addition_column",
    title="a column of addition without a written carry",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "If you knew the carry, the rest would be easy. Take the column before: 7 and 5, written "
        "digit 3. Was there a carry into it? Is there one out of it?",
        "The column before wrote (a' + b' + carry in) mod 10. So s' - a' - b' mod 10 is the carry "
        "in, 0 or 1, and the carry out is 1 if a' + b' + carry in is 10 or more.",
        "carry_in = (s_before - a_before - b_before) % 10; carry = (a_before + b_before + "
        "carry_in) // 10; the answer is (a + b + carry) % 10.",
    ),
    checks=(
        Check(
            "one-digit",
            "a whole number",
            "return one digit as a Python int",
            _plain,
            parts=(),
        ),
        Check(
            "without-carry",
            "columns without any carry",
            "where the column before is small, the digit is a + b",
            _plain,
        ),
        Check(
            "one-digit-only",
            "a sum of ten or more leaves its last digit",
            "the carry out of this column is the affair of the next one: take the sum mod 10",
            _over_ten,
        ),
        Check(
            "carry",
            "a column before that is ten or more carries",
            "the carry into this column comes from a_before + b_before, which may be ten or more",
            _carries,
        ),
        Check(
            "carry-passed-on",
            "nine plus a carry carries, too",
            "a column before of nine carries if it got a carry itself: its written digit is 0 "
            "then. A longer chain of carries hides behind this one case",
            _passed_on,
        ),
        Check(
            "nine-alone",
            "nine without a carry does not carry",
            "look at the digit that the column before wrote: 9 means that no carry came in",
            _nine,
        ),
        Check(
            "all-columns",
            "every column there is",
            "the carry in is what is missing between a_before + b_before and the written digit, "
            "mod 10. Comparing s_before with one of the two digits is not enough in all cases",
            _all,
        ),
    ),
    reference=reference_addition_column,
)


# --- parity_in_threes -----------------------------------------------------------------------------
def reference_parity_in_threes(m: int) -> list[tuple[int, tuple[int, int, int]]]:
    """Find the positions in a written-out layout."""
    layout = [f"x{t}" for t in range(1, 2 * m + 2)] + ["="] + [f"y{t}" for t in range(1, m + 1)]
    at = layout.index
    steps = []
    for t in range(1, m + 1):
        before = "x1" if t == 1 else f"y{t - 1}"
        steps.append((at(f"y{t}"), (at(before), at(f"x{2 * t}"), at(f"x{2 * t + 1}"))))
    return steps


def _threes(generator: Generator):
    return [(_below(6, generator, low=3),), (_below(12, generator, low=8),)]


def _smallest(generator: Generator):
    return [(1,)]


def _two(generator: Generator):
    return [(2,)]


PARITY_IN_THREES = Question(
    name="parity_in_threes",
    title="a circuit for parity that reads three tokens at a time",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Write the layout for m = 2 on paper, a position under each token: "
        "x1 x2 x3 x4 x5 = y1 y2. Which three tokens does y1 need, which y2?",
        "x_t stands at t - 1. There are 2m + 1 of them and one =, so y_t stands at 2m + 1 + t. "
        "From the second step on, the first operand is y_(t-1), the token just before.",
        "Step 1 is (2m + 2, (0, 1, 2)). For t = 2..m it is (2m + 1 + t, (2m + t, 2t - 1, 2t)): "
        "y_(t-1), x_(2t), x_(2t+1).",
    ),
    checks=(
        Check(
            "list-of-steps",
            "a list of m steps, each (output, (three positions))",
            "return a list of tuples: an output position, and a tuple of three positions that are "
            "read",
            _threes,
            parts=(),
        ),
        Check(
            "first-step",
            "with m = 1 one step reads the three bits",
            "for m = 1 the layout is x1 x2 x3 = y1: the output is at 4, and the bits at 0, 1 and 2",
            _smallest,
        ),
        Check(
            "second-step",
            "with m = 2 the second step builds on the first",
            "the second step reads the result before it and the two bits that are left, in this "
            "order; it must not read the bits of the first step again",
            _two,
        ),
        Check(
            "every-m",
            "at every m, the steps in order",
            "each step takes two new bits: step t reads x_(2t) and x_(2t+1). And the outputs "
            "start behind all 2m + 1 bits and the =",
            _threes,
        ),
    ),
    reference=reference_parity_in_threes,
)


# --- least_tables ---------------------------------------------------------------------------------
def reference_least_tables(tables: list[Table]) -> int:
    """Try every way to hand out 1, 2, .. numbers."""
    for count in range(len(tables) + 1):
        for choice in product(range(count), repeat=len(tables)):
            if all(_serves([t for t, c in zip(tables, choice, strict=True) if c == k])
                   for k in range(count)):  # fmt: skip
                return count
    raise AssertionError("one group for each always serves")


def _serves(tables: list[Table]) -> bool:
    """Return whether one table serves all: lay them over each other."""
    rows = [row for table in tables for row in table.items()]
    arities = {len(key) for key, _ in rows}
    return len(arities) <= 1 and len(dict(rows)) == len(set(rows))


def _by_clashes(count: int, clashes, generator: Generator, arity: int = 1) -> list[Table]:
    """Make tables of which exactly some pairs clash: each pair disagrees on a tuple of its own."""
    tables: list[Table] = [{(100 + k,) * arity: _below(10, generator)} for k in range(count)]
    for row, (a, b) in enumerate(clashes):
        low = _below(5, generator)
        tables[a][(row,) * arity] = low
        tables[b][(row,) * arity] = low + 1 + _below(4, generator)
    return tables


def _equal_and_not(generator: Generator):
    """Two operators, one of them three times."""
    one, other = _by_clashes(2, [(0, 1)], generator)
    return [([one, other, dict(one), dict(one)],), ([one],)]


def _partial(generator: Generator):
    """Tables that never meet the same tuple, and some that agree where they meet."""
    first = {(0,): 3, (1,): 4}
    return [([first, {(2,): 1}, {(1,): 4, (3,): 0}],), (_by_clashes(5, [], generator),)]


def _arities(generator: Generator):
    return [([{(1,): 2}, {(1, 1): 2}, {(1, 1, 1): 2}, {(2,): 2}],)]


def _not_transitive(generator: Generator):
    """b agrees with a and with c, which clash."""
    a, b, c = _by_clashes(3, [(0, 2)], generator, arity=2)
    return [([a, b, c],), ([b, a, c],), ([a, c, b],)]


def _first_fit_fails(generator: Generator):
    """Four tables in a chain of clashes, listed so that the first group that fits is wrong."""
    a, b, c, d = _by_clashes(4, [(0, 1), (1, 2), (2, 3)], generator)
    return [([a, d, b, c],), ([d, a, c, b],)]


def _odd_ring(generator: Generator):
    """Five tables, each clashing with its two neighbours: never three at once, yet 3 groups."""
    ring = _by_clashes(5, [(k, (k + 1) % 5) for k in range(5)], generator)
    return [(_shuffled(ring, generator),)]


LEAST_TABLES = Question(
    name="least_tables",
    title="SRC by hand: the fewest tables that serve all operators",
    points=4,
    minutes=25,
    difficulty=4,
    hints=(
        "When do two tables agree? Write that as a function first. The lesson's way, the first "
        "group that fits, may open a group too many: how can one be sure?",
        "Try everything: the first operator goes into each group that it agrees with, in turn, and "
        "also into a new one; for each of these go on with the rest. The least count wins.",
        "def least(rest, groups): if not rest: return len(groups); then over all groups that "
        "agree with rest[0], and over a new group, take the min of least(rest[1:], changed "
        "groups).",
    ),
    checks=(
        Check(
            "one-count",
            "a whole number",
            "return the number of groups as a Python int",
            _equal_and_not,
            parts=(),
        ),
        Check(
            "equal-tables",
            "equal tables are one operator",
            "tables with the same rows count once; tables that disagree on a tuple need two",
            _equal_and_not,
        ),
        Check(
            "partial-tables",
            "tables that never disagree are one operator",
            "a table need not be complete: two tables merge if they agree wherever both have a "
            "row, also if they have no row in common",
            _partial,
        ),
        Check(
            "arity",
            "operators that read different numbers of tokens never merge",
            "the length of the tuples is the arity; tables of different arity stay apart, though "
            "they have no tuple in common",
            _arities,
        ),
        Check(
            "all-of-a-group",
            "a table must agree with all members of its group",
            "agreement is not handed on: b may agree with a and with c while a and c disagree",
            _not_transitive,
        ),
        Check(
            "first-fit",
            "the first group that fits may be the wrong one",
            "filling groups one after the other depends on the order of the tables; try the other "
            "groups, too",
            _first_fit_fails,
        ),
        Check(
            "odd-ring",
            "a ring of five needs three groups",
            "the largest set of tables that all clash is only a lower bound",
            _odd_ring,
        ),
    ),
    reference=reference_least_tables,
)


# --- resolvable_steps -----------------------------------------------------------------------------
Steps = list[tuple[str, int, tuple[int, ...]]]


def reference_resolvable_steps(
    train: list[tuple[Steps, list[list[int]]]], test: tuple[Steps, list[list[int]]]
) -> Tensor:
    """Write down what training shows, then look each test step up."""
    shown = []
    for steps, ids in train:
        for operator, query, reads in steps:
            shown.append([operator, *[ids[query][key] for key in reads]])
    steps, ids = test
    answer = []
    for operator, query, reads in steps:
        good = [operator, *[ids[query][key] for key in reads]] in shown
        for key in reads:
            others = [j for j in range(query + 1) if j != key]
            good = good and all(ids[query][j] != ids[query][key] for j in others)
        answer.append(good)
    return torch.tensor(answer)


def _distances(length: int, far: int = 90) -> list[list[int]]:
    """Relative positions i - j; keys after the query get numbers of their own."""
    return [[i - j if j <= i else far + j for j in range(length)] for i in range(length)]


def _moved(generator: Generator):
    """Relative positions: the same steps further to the right, and one at a new distance."""
    move = _below(6, generator, low=2)
    train = [([("add", 4, (4, 1)), ("take", 3, (0,))], _distances(6))]
    steps = [("add", 4 + move, (4 + move, 1 + move)), ("take", 3 + move, (move,))]
    steps.append(("take", 4 + move, (0,)))
    return [(train, (steps, _distances(12)))]


def _other_operator(generator: Generator):
    """The ids were met, but with another operator."""
    train = [([("take", 3, (1,)), ("flip", 4, (1,))], _distances(6))]
    steps = _shuffled([("take", 5, (3,)), ("flip", 5, (3,)), ("flip", 6, (3,))], generator)
    return [(train, (steps, _distances(8)))]


def _together(generator: Generator):
    """Each id was met in its role, but not the two together; and in the other order."""
    train = [([("add", 5, (5, 4)), ("add", 5, (3, 2))], _distances(6))]
    at = _below(8, generator, low=5)
    steps = [("add", at, (at, at - 3)), ("add", at, (at, at - 1)), ("add", at, (at - 1, at))]
    return [(train, (steps, _distances(9)))]


def _one_key(generator: Generator):
    """Distances beyond 2 share one id: its operand cannot be told from the other keys there."""
    clipped = [[min(i - j, 3) if j <= i else 9 for j in range(10)] for i in range(10)]
    train = [([("take", 3, (0,)), ("take", 3, (1,))], clipped)]
    at = _below(9, generator, low=5)
    steps = [("take", at, (at - 3,)), ("take", 3, (0,)), ("take", at, (at - 2,))]
    return [(train, (steps, clipped))]


def _later_keys(generator: Generator):
    """The operand's id stands also at keys behind the query, where the model does not look."""
    parity = [[abs(i - j) for j in range(9)] for i in range(9)]
    train = [([("take", 5, (3,)), ("take", 4, (4,))], parity)]
    at = _below(6, generator, low=3)
    return [(train, ([("take", at, (at - 2,)), ("take", at, (at,))], parity))]


def _hinted(generator: Generator):
    """A relation with Scale Hint: i - j - n, so that each scale has a table of its own."""

    def page(n: int) -> list[list[int]]:
        return [[i - j - n for j in range(2 * n)] for i in range(2 * n)]

    def steps(n: int) -> Steps:
        return [("take", n + t - 1, (t - 1,)) for t in range(1, n + 1)]

    n = _below(8, generator, low=5)
    return [([(steps(k), page(k)) for k in (1, 2, 3)], (steps(n), page(n)))]


RESOLVABLE_STEPS = Question(
    name="resolvable_steps",
    title="alignment by hand: which test steps can be done?",
    points=4,
    minutes=25,
    difficulty=4,
    hints=(
        "To the model a step is an operator and the ids of its operands. Which of these pairs did "
        "training show? And when does an id point to one key only?",
        "Collect (operator, ids of the operands) of all training steps in a set, each scale with "
        "its own table of ids. A test step needs its pair in that set, and each operand's id at "
        "one key only among the keys 0..query.",
        "met = {(op, tuple(ids[q][k] for k in reads)) for steps, ids in train for op, q, reads in "
        "steps}; an id is at one key only if ids[q][: q + 1].count(ids[q][k]) == 1.",
    ),
    checks=(
        Check(
            "one-per-step",
            "one True or False per test step",
            "return a tensor of bool with one entry per test step, in their order",
            _moved,
            parts=(),
        ),
        Check(
            "ids-not-positions",
            "a step is known by its ids, wherever it stands",
            "compare the ids of the operands, ids[query][key], and not their positions; and all of "
            "them must have been met",
            _moved,
        ),
        Check(
            "with-its-operator",
            "the ids must have been met with this operator",
            "an operand of another operator at the same ids teaches nothing about this one",
            _other_operator,
        ),
        Check(
            "ids-together",
            "the ids must have been met together, role by role",
            "keep the tuple of the ids as a whole: the roles in their order, and no mixture of two "
            "training steps",
            _together,
        ),
        Check(
            "one-key",
            "an id that several keys share does not find its operand",
            "count at how many keys up to the query the operand's id stands at the test step; it "
            "must be one",
            _one_key,
        ),
        Check(
            "no-future",
            "keys behind the query do not count",
            "a causal model sees the keys 0..query, the query included",
            _later_keys,
        ),
        Check(
            "own-table",
            "each training scale has its own table of ids",
            "look the ids of a training step up in the table that comes with it",
            _hinted,
        ),
    ),
    reference=reference_resolvable_steps,
)

QUESTIONS = (RUN_CIRCUIT, ADDITION_COLUMN, PARITY_IN_THREES, LEAST_TABLES, RESOLVABLE_STEPS)
