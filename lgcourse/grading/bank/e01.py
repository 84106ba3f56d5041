"""Exercise 1: exact match, positions in a layout, and the relation that copying needs.

The references are plain Python over lists; the solutions that learners see compute with tensors
or with formulas.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


# --- exact_match ----------------------------------------------------------------------------------
def reference_exact_match(guess: Tensor, target: Tensor) -> Tensor:
    """Return per sample whether all answer tokens are right."""
    pairs = zip(guess.tolist(), target.tolist(), strict=True)
    return torch.tensor([mine == true for mine, true in pairs])


def _all_right(generator: Generator):
    target = torch.randint(10, (5, 3), generator=generator)
    return [(target, target)]


def _neighbours(generator: Generator):
    """Each guess is the next sample's target, and no token of it is right."""
    start = torch.randint(10, (3,), generator=generator)
    target = (torch.arange(7)[:, None] + start) % 10
    return [(target.roll(-1, 0), target)]


def _one_wrong(generator: Generator):
    """Sample p has its only wrong token at p; the last sample has none. Short and long answers."""
    cases = []
    for length in (4, 150):  # a long one: no share below 1 is enough
        target = torch.randint(10, (5, length), generator=generator)
        shift = torch.randint(1, 10, (4,), generator=generator)
        guess = target.clone()
        guess[torch.arange(4), torch.arange(4)] += shift
        cases.append((guess % 10, target))
    return cases


def _other_order(generator: Generator):
    """The right tokens in another order."""
    rows = [torch.randperm(10, generator=generator)[:4] for _ in range(3)]
    target = torch.stack(rows)
    return [(target.roll(1, 1), target)]


def _single(generator: Generator):
    cases = []
    for b, a in ((1, 4), (3, 1), (1, 1)):
        target = torch.randint(10, (b, a), generator=generator)
        cases += [(target, target), ((target + 1) % 10, target)]
    return cases


EXACT_MATCH = Question(
    name="exact_match",
    title="is the whole answer right?",
    points=2,
    minutes=5,
    difficulty=1,
    hints=(
        "Compare token by token first. What is the shape of that comparison, and which of its "
        "dimensions counts the tokens of one answer?",
        "An answer is right if all of its tokens are. Samples are the first dimension and stay; "
        "the second one goes.",
        "(guess == target) is Bool[b a]. Reduce it with .all(dim=...) over the answer's dimension.",
    ),
    checks=(
        Check(
            "one-per-sample",
            "one True or False per sample",
            "reduce over the answer tokens only: all() without dim joins the batch too, dim=0 runs "
            "over the batch, and mean() gives token accuracy, a share instead of True or False",
            _all_right,
            parts=(),
        ),
        Check(
            "own-target",
            "a guess is compared with its own target",
            "sample i must meet target i and no other: an extra dimension such as guess[:, None] "
            "broadcasts, so that every guess meets every target",
            _neighbours,
        ),
        Check(
            "one-wrong-token",
            "one wrong token makes the whole answer wrong",
            "every token counts: any() asks for one right token, a mean above a threshold for many "
            "of them, and a single column such as [:, -1] looks at one place only",
            _one_wrong,
        ),
        Check(
            "order-counts",
            "the right tokens in a wrong order are a wrong answer",
            "compare place by place: sums, sorted tokens or sets forget where a token stands",
            _other_order,
        ),
        Check(
            "single",
            "works for one sample and for answers of one token",
            "squeeze() without a dimension removes every dimension of size 1, the batch too",
            _single,
        ),
    ),
    reference=reference_exact_match,
)


# --- addition_step --------------------------------------------------------------------------------
def reference_addition_step(n: int, t: int) -> tuple[int, int, int, int]:
    """Find the positions in a written-out layout."""
    layout = [f"a{k}" for k in range(1, n + 1)] + ["+"]
    layout += [f"b{k}" for k in range(1, n + 1)] + ["="]
    layout += [f"s{k}" for k in range(1, n + 2)]
    at = layout.index
    return at(f"s{t}") - 1, at(f"a{t}"), at(f"b{t}"), at(f"s{t - 1}")


def _steps(generator: Generator):
    """All middle steps of two scales: a wrong formula cannot be right at each of them."""
    small = _below(7, generator, low=4)
    return [(n, t) for n in (small, small + 5) for t in range(2, n + 1)]


ADDITION_STEP = Question(
    name="addition_step",
    title="which positions does one step of addition touch?",
    points=3,
    minutes=10,
    difficulty=2,
    hints=(
        "Write the layout for n = 3 on paper, a position under each token: "
        "a1 a2 a3 + b1 b2 b3 = s1 s2 s3 s4. Where are a2, b2 and s1? Then do it for t = 3.",
        "Each part starts where the one before has ended: a_1 at 0, b_1 behind n digits and the +, "
        "s_1 behind both numbers and two signs. The token at position p is predicted at p - 1.",
        "a_t is at t - 1, b_t at n + t. The last one written before s_t is s_(t-1), which stands "
        "at 2n + 2 + (t - 2). Where, then, is the query?",
    ),
    checks=(
        Check(
            "four-numbers",
            "a tuple of four whole numbers",
            "return (query, a, b, previous) as a tuple of four Python integers",
            _steps,
            parts=(),
        ),
        Check(
            "digit-of-a",
            "a_t is found",
            "t counts from 1 and positions from 0; and the least digit stands first, so that a_1 "
            "is the very first token",
            _steps,
            parts=(1,),
        ),
        Check(
            "digit-of-b",
            "b_t is found",
            "in front of b_1 stand n digits and one more token, the +",
            _steps,
            parts=(2,),
        ),
        Check(
            "previous-result",
            "s_(t-1) is found",
            "it is the result of the column before, s_(t-1) and not s_t; in front of s_1 stand "
            "both numbers, the + and the =",
            _steps,
            parts=(3,),
        ),
        Check(
            "query-before-output",
            "the query is found",
            "the query is not where s_t stands: a decoder reads position p - 1 to predict the "
            "token at p",
            _steps,
            parts=(0,),
        ),
    ),
    reference=reference_addition_step,
)


# --- copy_relation --------------------------------------------------------------------------------
def reference_copy_relation(query: Tensor, key: Tensor, n: int) -> Tensor:
    """Walk through the steps: the one that writes y_t reads x_t."""
    layout = [f"x{t}" for t in range(1, n + 1)] + ["="] + [f"y{t}" for t in range(1, n + 1)]
    reads = {(layout.index(f"y{t}") - 1, layout.index(f"x{t}")) for t in range(1, n + 1)}
    return torch.tensor(
        [[0 if (i, j) in reads else 1 for j in key.tolist()] for i in query.tolist()]
    )


def _form(generator: Generator):
    return [(torch.arange(4, 9), torch.arange(3), 6), (torch.tensor([5]), torch.arange(4), 3)]


def _example(generator: Generator):
    """Scale 4, as in the text of the question; keys among x1..xn, the last position left out."""
    return [(torch.arange(8), torch.arange(4), 4)]


def _scales(generator: Generator):
    low = _below(8, generator, low=5)
    return [(torch.arange(2 * n), torch.arange(n), n) for n in (low, low + 4, 1)]


def _picked(generator: Generator):
    """A few positions in any order: step queries, and keys with at least one operand."""
    n = _below(9, generator, low=6)
    steps = torch.randperm(n, generator=generator)[:3]
    others = torch.randperm(n, generator=generator)[:4]
    return [(n + steps, torch.cat([others, steps[:1]]), n)]


def _later(generator: Generator):
    """Keys that come after their query; the last position as a query is left out."""
    n = _below(8, generator, low=3)
    return [(torch.arange(2 * n), torch.arange(2 * n + 1), n)]


def _whole(generator: Generator):
    n = _below(8, generator, low=3)
    return [(torch.arange(2 * n + 1), torch.arange(2 * n + 1), n)]


COPY_RELATION = Question(
    name="copy_relation",
    title="the relation that copying needs, with Scale Hint",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Draw layout_figure(tasks.get('copy'), 4). In each row of a step one square is marked: how "
        "far left of the diagonal is it? Does that distance change from row to row? With n?",
        "y_t is written by the query at n + t - 1 and reads x_t at t - 1, so i - j is the same for "
        "all t. Which queries are steps, and which keys are x's?",
        "With i = query[:, None] and j = key[None, :], a pair is read if i - j has the right value "
        "and j < n. torch.where(read, 0, 1) turns that into ids.",
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
            "reads-n-back",
            "at scale 4 each step marks the symbol that it copies",
            "the query stands one place before the token that it writes: y_t is at n + t, its "
            "query at n + t - 1. The operand has id 0, all else id 1",
            _example,
        ),
        Check(
            "needs-scale",
            "at other scales too",
            "the distance to the operand is not one number: it is n, which is what the Scale Hint "
            "tells",
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
            "no-future",
            "keys that come after their query have no role",
            "abs(i - j) also marks keys that lie n places ahead, where a causal model cannot look",
            _later,
        ),
        Check(
            "last-query",
            "the last position writes nothing, so it reads nothing",
            "the query at 2n stands on y_n, and nothing follows: the key n places back is the =, "
            "which is no operand",
            _whole,
        ),
    ),
    reference=reference_copy_relation,
)

QUESTIONS = (EXACT_MATCH, ADDITION_STEP, COPY_RELATION)
