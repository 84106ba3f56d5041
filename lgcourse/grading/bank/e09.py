"""Exercise 9: a Scale Hint is read off the prompt, enters as -c n, and saves the padding.

The references write layouts out as lists of names, or try all small forms; the solutions that
learners see compute with formulas and tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
PLUS, EQUALS = 10, 11


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


# --- scale_of -------------------------------------------------------------------------------------
def reference_scale_of(tokens: Tensor) -> Tensor:
    """Count the digits in front of the plus, row by row."""
    scales = []
    for row in tokens.tolist():
        count = 0
        while row[count] != PLUS:
            count += 1
        scales.append(count)
    return torch.tensor(scales)


def _sums(scales, generator: Generator, behind: int = 0, written: int | None = None) -> Tensor:
    """Rows of a1..an + b1..bn = and digits behind, filled up with zeros to one length."""
    rows = []
    for n in scales:
        a, b = torch.randint(0, 10, (2, n), generator=generator).tolist()
        answer = n + 1 if written is None else min(written, n + 1)
        s = torch.randint(0, 10, (answer,), generator=generator).tolist()
        rows.append([*a, PLUS, *b, EQUALS, *s])
    length = max(map(len, rows)) + behind
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


def _one_scale(generator: Generator):
    n = _below(7, generator, low=3)
    return [(_sums([n] * 4, generator),), (_sums([n + 3] * 2, generator),)]


def _mixed(generator: Generator):
    low = _below(4, generator, low=1)
    return [(_sums([low, low + 5, low + 2, low + 9], generator),)]


def _prompts_only(generator: Generator):
    """Nothing of the answer is written yet, or a part of it; zeros behind the whole of it."""
    n = _below(7, generator, low=3)
    rows = [(_sums([n] * 3, generator, written=k),) for k in (0, 2)]
    return [*rows, (_sums([n] * 3, generator, behind=9),)]


SCALE_OF = Question(
    name="scale_of",
    title="where does the hint come from?",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Which token of the prompt stands at a place from which n can be told? Is it there before "
        "the first digit of the answer is asked for?",
        "The layout is a1..an + b1..bn =. The plus stands at position n; the = stands at 2n + 1. "
        "Either is enough.",
        "(tokens == 10) is True once in each row; .long().argmax(dim=1) gives the position of it.",
    ),
    checks=(
        Check(
            "one-per-row",
            "one whole number for each row",
            "return int64 of shape [b]: one scale for each row of the batch, not one number and "
            "not a list",
            _one_scale,
            parts=(),
        ),
        Check(
            "counts",
            "n is the number of digits of one operand",
            "positions count from 0, so the plus stands at n; and n counts the digits of one "
            "operand, not of both, and not those of the answer",
            _one_scale,
        ),
        Check(
            "from-prompt",
            "the prompt alone tells it",
            "at generation time the answer is not written yet: the length of the row, or the "
            "number of digits in it, is then another one. And zeros may stand behind it",
            _prompts_only,
        ),
        Check(
            "each-row",
            "each row has its own scale",
            "rows of one batch may have different scales; do not read the first row for all",
            _mixed,
        ),
    ),
    reference=reference_scale_of,
)


# --- shift_relation -------------------------------------------------------------------------------
def reference_shift_relation(query: Tensor, key: Tensor, n: int) -> Tensor:
    """Write the layout and the steps as names."""
    layout = [f"x{t}" for t in range(1, n + 1)] + ["="] + [f"y{t}" for t in range(1, n + 1)]
    reads = {(layout.index("y1") - 1, layout.index(f"x{n}"))}
    for t in range(2, n + 1):
        reads.add((layout.index(f"y{t}") - 1, layout.index(f"x{t - 1}")))
    return torch.tensor(
        [[0 if (i, j) in reads else 1 for j in key.tolist()] for i in query.tolist()]
    )


def _shift_form(generator: Generator):
    return [(torch.arange(5, 10), torch.arange(3), 6), (torch.tensor([4]), torch.arange(4), 3)]


def _later_steps(generator: Generator):
    """Scale 5: the steps from the second on, keys among the x's."""
    return [(torch.arange(6, 10), torch.arange(5), 5)]


def _later_scales(generator: Generator):
    n = _below(9, generator, low=6)
    return [(torch.arange(m + 1, 2 * m), torch.arange(m), m) for m in (n, n + 4, 2)]


def _first_step(generator: Generator):
    n = _below(9, generator, low=3)
    return [(torch.tensor([m]), torch.arange(m + 1), m) for m in (n, n + 3, 1)]


def _only_first(generator: Generator):
    """i - j = 1 is the operand at the query n alone."""
    n = _below(9, generator, low=3)
    return [(torch.arange(2 * n), torch.arange(2 * n), n)]


def _shift_whole(generator: Generator):
    """All positions, the last query too, and keys that come later."""
    cases = []
    for n in (1, _below(8, generator, low=2)):
        at = torch.arange(2 * n + 1)
        cases.append((at, at, n))
    return cases


def _shift_picked(generator: Generator):
    n = _below(9, generator, low=6)
    steps = n + torch.randperm(n, generator=generator)[:4]
    keys = torch.randperm(n, generator=generator)
    return [(steps, keys, n), (steps[:1], keys[:3], n)]


SHIFT_RELATION = Question(
    name="shift_relation",
    title="two geometries: the relation of shift, with Scale Hint",
    points=4,
    minutes=20,
    difficulty=3,
    hints=(
        "Draw layout_figure(tasks.get('shift'), 4). All marked squares but one lie on a line. "
        "Which one does not?",
        "y_1 is written at the query n and reads x_n, at n - 1. For t from 2 on, y_t is written at "
        "n + t - 1 and reads x_(t-1), at t - 2. What is i - j in each of the two cases?",
        "later = (i - j == n + 1) & (j < n - 1); first = (i == n) & (j == n - 1). Where one of the "
        "two holds, the id is 0.",
    ),
    checks=(
        Check(
            "one-id-per-pair",
            "one whole-number id per pair of a query and a key",
            "rows are queries and columns are keys: query[:, None] against key[None, :]; and ids "
            "are int64, a comparison alone is bool",
            _shift_form,
            parts=(),
        ),
        Check(
            "later-steps",
            "at scale 5 the later steps mark what they read",
            "y_t reads x_(t-1), not x_t, so it stands one place further back than in copy; and the "
            "query stands one place before the token that it writes. The operand has id 0",
            _later_steps,
        ),
        Check(
            "needs-scale",
            "at other scales too",
            "the distance to the operand grows with n: this is what the Scale Hint tells",
            _later_scales,
        ),
        Check(
            "first-step",
            "the first step reads the last symbol",
            "at the query n, the =, no key has i - j = n + 1: the first step reads x_n, the key "
            "right before it",
            _first_step,
        ),
        Check(
            "only-the-first",
            "and no other step reads the key right before it",
            "i - j = 1 holds for some key of every query; ask for i = n as well",
            _only_first,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in; arange(len(query)) is right only if they start "
            "at 0 and leave none out",
            _shift_picked,
        ),
        Check(
            "whole",
            "over all pairs, the last query too",
            "the last position writes nothing: the key n + 1 places before it is x_n, but no "
            "step reads it there",
            _shift_whole,
        ),
    ),
    reference=reference_shift_relation,
)


# --- fit_form -------------------------------------------------------------------------------------
LARGEST_C = 3


def reference_fit_form(query: Tensor, key: Tensor, scale: Tensor) -> tuple[int, int, int]:
    """Try all forms; the data are such that one alone fits."""
    found = []
    for b in (-1, 1):
        for c in range(LARGEST_C + 1):
            steps = zip(query.tolist(), key.tolist(), scale.tolist(), strict=True)
            values = {i + b * j - c * n for i, j, n in steps}
            if len(values) == 1:
                found.append((b, c, values.pop()))
    assert len(found) == 1, found
    return found[0]


def _line(b: int, c: int, value: int, scales, generator: Generator):
    """Steps with i + b j = c n + value, three or four for each scale, in a random order."""
    steps = []
    for n in scales:
        whole = c * n + value
        for k in range(min(3 + n % 2, n)):
            j = k + 1 if b == -1 else max(0, (whole - k) // 2 - k)
            steps.append((whole - b * j, j, n))
    order = torch.randperm(len(steps), generator=generator)
    query, key, scale = torch.tensor(steps)[order].unbind(1)
    return query, key, scale


def _no_hint(generator: Generator):
    low = _below(6, generator, low=3)
    return [_line(-1, 0, value, (low, low + 1, low + 4), generator) for value in (0, 3, 8)]


def _once(generator: Generator):
    low = _below(6, generator, low=3)
    return [_line(-1, 1, value, (low, low + 2, low + 5), generator) for value in (0, 1)]


def _twice_n(generator: Generator):
    low = _below(6, generator, low=3)
    return [
        _line(-1, c, value, (low, low + 3, low + 7), generator) for c, value in ((2, 1), (3, 0))
    ]


def _signed(generator: Generator):
    low = _below(6, generator, low=5)
    return [_line(-1, 1, -2, (low, low + 1, low + 2), generator)]


def _sum_form(generator: Generator):
    low = _below(6, generator, low=4)
    return [_line(1, 2, -1, (low, low + 2, low + 5), generator)]


FIT_FORM = Question(
    name="fit_form",
    title="which form names the operand at every scale?",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "There are only eight pairs (b, c) to try. What must be true of i + b j - c n over all "
        "steps if the pair is the right one?",
        "For the right pair, i + b j - c n has one value at all steps. b is -1 where the line runs "
        "parallel to the diagonal, and 1 where it runs across.",
        "for b in (-1, 1): for c in range(4): value = query + b * key - c * scale; if (value == "
        "value[0]).all(), return (b, c, int(value[0])).",
    ),
    checks=(
        Check(
            "three-integers",
            "a tuple of three whole numbers",
            "return (b, c, value) as Python integers; int(...) makes one of a tensor",
            _once,
            parts=(),
        ),
        Check(
            "no-hint",
            "c is 0 where the distance does not move with n",
            "value is what i + b j - c n is at all steps; with b = -1 and c = 0 it is the "
            "distance. b is the sign of j in the form, not its opposite",
            _no_hint,
        ),
        Check(
            "one-n",
            "c is 1 where the distance grows by one with each n",
            "compare steps of different scales: steps of one scale alone cannot tell c n from a "
            "number. And c n is taken off, so c is positive",
            _once,
        ),
        Check(
            "more-n",
            "c can be 2 and 3",
            "addition reads a digit 2n + 1 places back: c is a factor to be found, not a switch",
            _twice_n,
        ),
        Check(
            "negative-value",
            "the value can be negative",
            "i - j can be less than c n: keep the sign, without abs() or a remainder",
            _signed,
        ),
        Check(
            "sum",
            "b is 1 where the line runs across the diagonal",
            "in reverse, i + j stays the same from step to step, not i - j: try both signs of b",
            _sum_form,
        ),
    ),
    reference=reference_fit_form,
)


# --- misread --------------------------------------------------------------------------------------
def reference_misread(n: int, told: int, t: int) -> tuple[str, str]:
    """Count places in the layout that is there, by distances of the layout that was told."""

    def layout(m: int) -> list[str]:
        parts = [f"a{k}" for k in range(1, m + 1)] + ["+"]
        parts += [f"b{k}" for k in range(1, m + 1)] + ["="]
        return parts + [f"s{k}" for k in range(1, m + 2)]

    true, believed = layout(n), layout(told)
    far = believed.index("s1") - 1
    back = [far - believed.index("a1"), far - believed.index("b1")]
    query = true.index(f"s{t}") - 1
    places = [query - distance for distance in back]
    names = [true[p] if p >= 0 else "nothing" for p in places]
    return names[0], names[1]


def _true_hints(generator: Generator):
    n = _below(8, generator, low=4)
    return [(m, m, t) for m in (n, n + 3) for t in range(1, m + 1)]


def _one_less(generator: Generator):
    n = _below(8, generator, low=5)
    return [(n, n - 1, t) for t in range(1, n - 2)] + [(n, n - 2, 1)]


def _across(generator: Generator):
    """Near the end a number is left: the sign or the other number is read instead."""
    n = _below(8, generator, low=5)
    return [(n, n - 1, n), (n, n - 1, n - 1), (n, n - 2, n - 2)]


def _too_far(generator: Generator):
    n = _below(8, generator, low=5)
    return [(n, n + 1, t) for t in (1, 2, 3, n)] + [(n, 2 * n, 1), (n, 3 * n, 2), (n, n + 2, 2)]


MISREAD = Question(
    name="misread",
    title="what does addition read under a wrong hint?",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "The model does not read 'a_t'. It reads the key at some distance from its query, and "
        "the hint enters only there. Where is the query, really?",
        "The layout is a1..an + b1..bn = s1..s(n+1) for the true n, and the query that writes s_t "
        "is at 2n + t. From there it reads the keys 2m + 1 and m places back, where m is what it "
        "was told.",
        "names = a1, .., an, +, b1, .., bn, =, s1, ..; i = 2 * n + t; p = i - (2 * told + 1) and "
        "q = i - told. Return names[p] if p >= 0 else 'nothing', and the same for q.",
    ),
    checks=(
        Check(
            "two-names",
            "a tuple of two texts",
            "return two names such as ('a2', 'b2'), in this order, as a tuple",
            _true_hints,
            parts=(),
        ),
        Check(
            "true-hint",
            "with the true hint it reads a_t and b_t",
            "first check your distances where nothing is wrong: 2n + 1 back to a_t, n back to b_t, "
            "counted from the query, which stands one place before s_t",
            _true_hints,
        ),
        Check(
            "one-off",
            "a hint too small makes it read later digits",
            "the query stands where it stands, by the true n; only the distances come from the "
            "hint. The distance to a has two n in it, that to b one. Names are those of the true n",
            _one_less,
        ),
        Check(
            "across-signs",
            "it may read a sign, or a digit of another number",
            "behind a_n comes the +, then b_1; behind b_n the =, then s_1: name what stands there, "
            "also if it makes no sense",
            _across,
        ),
        Check(
            "before-start",
            "a place before the first token is nothing",
            "a negative position is before the start: no key is there. In Python, a negative index "
            "would count from the end",
            _too_far,
        ),
    ),
    reference=reference_misread,
)


# --- tokens_saved ---------------------------------------------------------------------------------
def reference_tokens_saved(longest: int, width: int) -> float:
    """Write all rows out and count."""
    unpadded = padded = 0
    for n in range(1, longest + 1):
        unpadded += len("a" * n + "+" + "b" * n + "=" + "s" * (n + 1))
        padded += len("a" * (width + 1) + "+" + "b" * (width + 1) + "=" + "s" * (width + 1))
    return 1 - unpadded / padded


def _one_size(generator: Generator):
    width = _below(40, generator, low=10)
    return [(1, width), (1, 1)]


def _all_sizes(generator: Generator):
    longest = _below(20, generator, low=5)
    return [(longest, 40), (longest, longest), *((10, width) for width in (10, 100, 1000))]


TOKENS_SAVED = Question(
    name="tokens_saved",
    title="how many tokens does the hint save?",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "How long is a row of scale n without padding? And how long is every row with it?",
        "Unpadded: n + 1 + n + 1 + (n + 1) tokens. Padded, each of the three numbers has W + 1 "
        "digits. Training draws each n from 1 to `longest` equally often.",
        "The mean of 3n + 3 over n = 1..longest is 3 (longest + 1) / 2 + 3. Divide it by 3 W + 5, "
        "and take the result from 1.",
    ),
    checks=(
        Check(
            "one-number",
            "a Python float",
            "return the share as a float, not a count of tokens and not a tensor",
            _all_sizes,
            parts=(),
        ),
        Check(
            "lengths",
            "the lengths of both layouts, signs and all",
            "the answer has n + 1 digits, + and = are tokens too, and padded operands have W + 1 "
            "digits, so that the last carry finds zeros. The mean of 1..longest is "
            "(longest + 1) / 2. What is saved is 1 minus the ratio",
            _one_size,
            tolerance=1e-6,
        ),
        Check(
            "mean-over-scales",
            "the mean over all scales of training",
            "training draws n from 1 to `longest`: it is not enough to look at the longest scale",
            _all_sizes,
            tolerance=1e-6,
        ),
    ),
    reference=reference_tokens_saved,
)

QUESTIONS = (SCALE_OF, SHIFT_RELATION, FIT_FORM, MISREAD, TOKENS_SAVED)
