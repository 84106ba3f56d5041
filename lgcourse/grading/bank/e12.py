"""Exercise 12: ids of two neighbouring ideas, what a certificate checks, and a task of one's own.

The references are plain Python over lists; the solutions that learners see compute with tensors or
in another order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
UNDEFINED = -1


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


# --- abacus_ids -----------------------------------------------------------------------------------
def reference_abacus_ids(is_digit: Tensor) -> Tensor:
    """Count along each row, beginning anew behind every other token."""
    rows = []
    for row in is_digit.tolist():
        ids: list[int] = []
        for flag in row:
            ids.append((ids[-1] if ids else 0) + 1 if flag else 0)
        rows.append(ids)
    return torch.tensor(rows)


def _digits(*texts: str) -> Tensor:
    return torch.tensor([[letter == "d" for letter in text] for text in texts])


def _one_number(generator: Generator):
    return [(_digits("d" * _below(9, generator, low=4)),)]


def _two_numbers(generator: Generator):
    n = _below(6, generator, low=3)
    return [(_digits("d" * n + "+" + "d" * (n - 1) + "=" + "d" * (n + 1)),)]


def _several_rows(generator: Generator):
    """Rows that differ in where their numbers end."""
    return [(_digits("dd+ddd=d", "dddd+d=d", "d+ddddd="),)]


def _odd_places(generator: Generator):
    """A sign in front, two signs in a row, a row without digits."""
    return [(_digits("+dd==ddd", "========", "dddd+d=d"),), (_digits("+"),), (_digits("d"),)]


ABACUS_IDS = Question(
    name="abacus_ids",
    title="which digit of its number is each token?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Write the ids of 314+15= by hand. At which tokens does the count begin anew? What do you "
        "need to know about the tokens before a digit?",
        "id = position - (position of the last token before it that is no digit); if there is "
        "none, that position is -1. For a token that is no digit this gives 0 by itself.",
        "at = torch.arange(l); last = torch.where(is_digit, -1, at).cummax(dim=1).values; return "
        "at - last.",
    ),
    checks=(
        Check(
            "one-id-per-token",
            "one whole number per token",
            "the ids have the shape of is_digit and are int64",
            _one_number,
            parts=(),
        ),
        Check(
            "counts-from-one",
            "a number counts 1, 2, 3, ...",
            "the first digit has id 1; 0 is for tokens that are no digits",
            _one_number,
        ),
        Check(
            "begins-anew",
            "each number begins anew at 1",
            "a cumulative sum goes on behind the sign; and other tokens have id 0",
            _two_numbers,
        ),
        Check(
            "rows-apart",
            "each sequence is counted by itself",
            "numbers end at different places in different rows: count along dim 1, row by row",
            _several_rows,
        ),
        Check(
            "odd-places",
            "signs in front or side by side, and rows without digits",
            "before the first sign the count has to start at the first token, and two signs in a "
            "row are both 0",
            _odd_places,
        ),
    ),
    reference=reference_abacus_ids,
)


# --- coupled_ids ----------------------------------------------------------------------------------
def reference_coupled_ids(n: int) -> Tensor:
    """Give each name of the layout its id."""
    layout = [f"a{t}" for t in range(1, n + 1)] + ["+"]
    layout += [f"b{t}" for t in range(1, n + 1)] + ["="]
    layout += [f"s{t}" for t in range(1, n + 2)]
    ids = {f"{letter}{t}": t + 1 for t in range(1, n + 2) for letter in "abs"}
    return torch.tensor([{**ids, "=": 1, "+": n + 2}[name] for name in layout])


def _sizes(generator: Generator):
    n = _below(8, generator, low=3)
    return [(n,), (n + 5,), (1,)]


def _small(generator: Generator):
    return [(3,), (1,)]


COUPLED_IDS = Question(
    name="coupled_ids",
    title="ids that couple the digits of one column",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Write the layout for n = 2: a1 a2 + b1 b2 = s1 s2 s3. Which tokens does the step that "
        "writes s2 need? They must have one id.",
        "a_t, b_t and s_t have id t + 1. The = has 1. The + stands with the last column, s_(n+1), "
        "at n + 2. How many tokens are there?",
        "column = torch.arange(2, n + 2); torch.cat the parts: column, [n + 2], column, [1], and "
        "one column more for s.",
    ),
    checks=(
        Check(
            "one-id-per-token",
            "3 n + 3 whole numbers",
            "both operands have n digits, the sum has n + 1, and there are two signs; int64",
            _sizes,
            parts=(),
        ),
        Check(
            "three-digits",
            "at n = 3 each column has its id, and the signs have theirs",
            "a_1, b_1 and s_1 have id 2; the = has 1, one below, so that each query has the id "
            "below that of the digit it writes; the + has the id of the last column, n + 2",
            _small,
        ),
        Check(
            "any-size",
            "at other sizes too",
            "the ids go with n: the last column is s_(n+1) at n + 2",
            _sizes,
        ),
    ),
    reference=reference_coupled_ids,
)


# --- reachable ------------------------------------------------------------------------------------
def reference_reachable(first: Tensor, step: Tensor) -> Tensor:
    """Search from the first results on."""
    table = step.tolist()
    found = {state for state in first.tolist() if state != UNDEFINED}
    todo = list(found)
    while todo:
        for state in table[todo.pop()]:
            if state != UNDEFINED and state not in found:
                found.add(state)
                todo.append(state)
    return torch.tensor([state in found for state in range(len(table))])


def _relabel(first: list[int], step: list[list[int]], generator: Generator):
    """Give the states other numbers, so that no number can be guessed."""
    order = torch.randperm(len(step), generator=generator).tolist()
    name = {old: new for new, old in enumerate(order)} | {UNDEFINED: UNDEFINED}
    rows = {name[old]: [name[s] for s in row] for old, row in enumerate(step)}
    return torch.tensor([name[s] for s in first]), torch.tensor([rows[k] for k in sorted(rows)])


def _at_once(generator: Generator):
    """Every state that is reached is a first result."""
    step = [[0, 1], [1, 0], [2, 2], [3, 0]]
    return [_relabel([0, 1], step, generator)]


def _one_round(generator: Generator):
    step = [[0, 2], [1, 1], [2, 0], [3, 1], [4, 0]]
    return [_relabel([0, 0], step, generator)]


def _chain(generator: Generator):
    """A long way: each round finds one state."""
    count = 7
    step = [[min(k + 1, count - 2)] * 2 for k in range(count - 1)] + [[0, 0]]
    return [_relabel([0, 0], step, generator)]


def _undefined(generator: Generator):
    """The last state is reached by nothing, and -1 is no state."""
    first = torch.tensor([0, -1])
    step = torch.tensor([[1, -1], [0, 1], [2, 0], [-1, 3], [0, 4]])
    return [(first, step)]


REACHABLE = Question(
    name="reachable",
    title="which results can a circuit ever have?",
    points=4,
    minutes=20,
    difficulty=3,
    hints=(
        "On paper: which results are possible after the first step? From these, which ones after "
        "the second? When may you stop?",
        "Start with the set of first results. Add step[y, x] for every y in the set and every x. "
        "Do it until nothing new comes. -1 is never a result.",
        "found = set of first without -1; while True: new = found | {int(s) for y in found for s "
        "in step[y] if s >= 0}; if new == found: break; found = new.",
    ),
    checks=(
        Check(
            "true-or-false",
            "True or False per result",
            "return bool with one entry per row of step",
            _at_once,
            parts=(),
        ),
        Check(
            "starts-at-first",
            "the first results are reached, others are not",
            "a state that only leads to itself is not reached: start from first, not from all",
            _at_once,
        ),
        Check(
            "takes-a-step",
            "results of the second step are reached as well",
            "row y of step holds what may follow the result y, one entry per input",
            _one_round,
        ),
        Check(
            "until-nothing-new",
            "goes on until nothing new comes",
            "one or two rounds are not enough: a later step meets the results of the one before",
            _chain,
        ),
        Check(
            "undefined",
            "-1 is no result",
            "found[-1] = True marks the last state: leave out what is undefined",
            _undefined,
        ),
    ),
    reference=reference_reachable,
)


# --- smallest_margin ------------------------------------------------------------------------------
def reference_smallest_margin(logits: Tensor, right: Tensor) -> float:
    """Compare the right logit with each of the others."""
    return min(
        row[token] - max(value for k, value in enumerate(row) if k != token)
        for row, token in zip(logits.double().tolist(), right.tolist(), strict=True)
    )


def _answers(tuples: int, tokens: int, generator: Generator, lead: float):
    """Logits above 0 whose right entry is the largest by at least ``lead``."""
    logits = 10.0 + torch.randn(tuples, tokens, generator=generator)
    right = torch.randint(tokens, (tuples,), generator=generator)
    at = torch.arange(tuples)
    logits[at, right] = logits.max(1).values + lead + torch.rand(tuples, generator=generator)
    return logits, right


def _single(generator: Generator):
    return [_answers(1, 5, generator, 1.0), _answers(1, 3, generator, 0.5)]


def _all_right(generator: Generator):
    """One tuple is closer than all others, and it has neither the least nor the largest logits."""
    logits, right = _answers(6, 5, generator, 5.0)
    at = _below(5, generator)
    best = logits[at].topk(2).values
    logits[at, right[at]] = best[1] + 0.25
    return [(logits + 5 * torch.arange(6)[:, None], right)]


def _some_wrong(generator: Generator):
    logits, right = _answers(6, 5, generator, 2.0)
    right[2] = (right[2] + 1) % 5
    return [(logits, right)]


def _tie(generator: Generator):
    """Two tokens have the same logit, and one of them is right."""
    logits, right = _answers(5, 4, generator, 2.0)
    logits[3, (right[3] + 1) % 4] = logits[3, right[3]]
    return [(logits, right)]


def _negative(generator: Generator):
    """All logits lie below 0."""
    logits, right = _answers(4, 4, generator, 1.0)
    return [(logits - 50.0, right)]


SMALLEST_MARGIN = Question(
    name="smallest_margin",
    title="how close does a model come to a wrong answer?",
    points=3,
    minutes=10,
    difficulty=3,
    hints=(
        "For one tuple: which two logits decide whether the arg-max is right, and what is their "
        "difference? What sign has it when the model is wrong?",
        "margin = logit of the right token - the largest of the other logits. The smallest one "
        "over all tuples is what a proof rests on.",
        "own = logits.gather(1, right[:, None])[:, 0]; others = logits.scatter(1, right[:, None], "
        "float('-inf')).amax(1); return (own - others).min().item().",
    ),
    checks=(
        Check(
            "a-number",
            "a float",
            "return one Python float for all tuples: .item() makes it of a tensor",
            _single,
            parts=(),
        ),
        Check(
            "right-against-others",
            "the right logit against the best other one",
            "leave the right token out before you take the largest of the others",
            _single,
            tolerance=1e-4,
        ),
        Check(
            "the-smallest",
            "the smallest one over all tuples",
            "take the difference tuple by tuple first, then the minimum: not the mean, and not the "
            "smallest right logit against the largest wrong one of all tuples",
            _all_right,
            tolerance=1e-4,
        ),
        Check(
            "wrong-is-negative",
            "a wrong answer has a negative margin",
            "the difference between the largest and the second largest logit is never negative: it "
            "does not know which token is right",
            _some_wrong,
            tolerance=1e-4,
        ),
        Check(
            "a-tie",
            "a tie has the margin 0",
            "leave out the right token by its place, not by its value: another token may have the "
            "same logit",
            _tie,
            tolerance=1e-4,
        ),
        Check(
            "below-zero",
            "logits below 0 are logits",
            "setting the right token to 0 before the maximum makes 0 the largest of the others: "
            "set it to minus infinity",
            _negative,
            tolerance=1e-4,
        ),
    ),
    reference=reference_smallest_margin,
)


# --- my_task --------------------------------------------------------------------------------------
def reference_my_task(x: Tensor) -> tuple[Tensor, list[tuple[int, int, int]], list[int]]:
    """Find positions in a written-out layout, answers by ordinary arithmetic."""
    rows = [
        [(digit - before) % 10 for digit, before in zip(row, [0, *row[:-1]], strict=True)]
        for row in x.tolist()
    ]
    n = x.shape[1]
    layout = [f"x{t}" for t in range(1, n + 1)] + ["="] + [f"y{t}" for t in range(1, n + 1)]
    at = {name: position for position, name in enumerate(layout)}
    steps = [(at[f"y{t}"] - 1, at[f"x{t}"], at.get(f"x{t - 1}", -1)) for t in range(1, n + 1)]
    values = {i - j - n for i, *read in steps for j in read if j >= 0}
    return torch.tensor(rows), steps, sorted(values)


def _words(generator: Generator):
    sizes = (_below(7, generator, low=4), _below(12, generator, low=8), 1)
    return [(torch.randint(10, (b, n), generator=generator),) for b, n in zip((3, 5, 2), sizes,
            strict=True)]  # fmt: skip


def _single_digits(generator: Generator):
    return [(torch.randint(10, (4, 1), generator=generator),)]


def _long_enough(generator: Generator):
    n = _below(12, generator, low=5)
    return [(torch.randint(10, (3, n), generator=generator),)]


MY_TASK = Question(
    name="my_task",
    title="capstone: answers, circuit and relation of a new task",
    points=5,
    minutes=30,
    difficulty=4,
    hints=(
        "First the answers for 31415=: y1 = 3, y2 = 1 - 3 = -2, and what digit is that? Then the "
        "layout for n = 3, with a position under each token.",
        "y_t stands at n + t and is written by the query at n + t - 1; x_t stands at t - 1. What "
        "is i - j - n for x_t, and for x_(t-1)? The first step has no x_0.",
        "answers: (x - F.pad(x, (1, 0))[:, :-1]) % 10. steps: [(n + t - 1, t - 1, t - 2) for t in "
        "1..n], where -1 stands for no operand. values: collect i - j - n of all operands >= 0.",
    ),
    checks=(
        Check(
            "three-parts",
            "a tuple of answers, steps and values",
            "answers: int64 [b, n]. steps: a list of n tuples (query, x_t, x_(t-1)). values: a "
            "sorted list without repeats; at n = 1 it has one entry, since there is no x_0",
            _words,
            parts=(),
        ),
        Check(
            "answers",
            "the answers are right",
            "y_t = x_t - x_(t-1) mod 10, in this order, a digit from 0 to 9; y_1 = x_1; and it is "
            "x_(t-1) that is taken away, not y_(t-1)",
            _long_enough,
            parts=(0,),
        ),
        Check(
            "steps",
            "each step names its query and its operands",
            "positions count from 0; the query stands one before what is written; the first step "
            "has -1 for the operand that it lacks",
            _long_enough,
            parts=(1,),
        ),
        Check(
            "relation",
            "the values that name the operands with Scale Hint",
            "i - j - n over all operands of all steps, without repeats, sorted. If you find more "
            "than two, look at your positions again",
            _long_enough,
            parts=(2,),
        ),
        Check(
            "shortest",
            "an instance of one digit",
            "at n = 1 there is one step and one operand: -1 is no position and names nothing",
            _single_digits,
        ),
    ),
    reference=reference_my_task,
)

QUESTIONS = (ABACUS_IDS, COUPLED_IDS, REACHABLE, SMALLEST_MARGIN, MY_TASK)
