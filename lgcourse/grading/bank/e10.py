"""Exercise 10: the parts of a learned relation: gate, forms, cells, exclusion, and what is new.

The references are plain Python over lists and loops; the solutions that learners see compute with
tensors.
"""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
LEFT_OUT = float("-inf")


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _mixed(rows: int, columns: int, generator: Generator, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(rows, columns, generator=generator)


# --- gate_shares ----------------------------------------------------------------------------------
def reference_gate_shares(gates: Tensor, temperature: float) -> Tensor:
    """Return each head's shares, in exact steps that cannot overflow."""
    rows = []
    for row in gates.tolist():
        powers = [math.exp((value - max(row)) / temperature) for value in row]
        rows.append([power / math.fsum(powers) for power in powers])
    return torch.tensor(rows)


def _warm(generator: Generator):
    return [(_mixed(3, 5, generator), 1.0), (_mixed(1, 4, generator), 1.0)]


def _cooler(generator: Generator):
    gates = _mixed(3, 5, generator)
    return [(gates, 0.4), (gates, 2.5)]


def _cold(generator: Generator):
    """Gates that are far apart for their temperature: powers beyond float32."""
    return [(_mixed(2, 6, generator, 40.0), 0.1), (_mixed(2, 6, generator, 40.0) - 300.0, 0.5)]


GATE_SHARES = Question(
    name="gate_shares",
    title="how much of a head belongs to each form?",
    points=2,
    minutes=5,
    difficulty=1,
    hints=(
        "A softmax turns numbers into shares that add up to 1. Over what must the shares of one "
        "head add up to 1, and which dimension counts that?",
        "share[h, f] = exp(gate[h, f] / T) / sum over f' of exp(gate[h, f'] / T). The smaller T, "
        "the more the largest gate gets.",
        "torch.softmax(gates / temperature, dim=...) with the dimension of the forms.",
    ),
    checks=(
        Check(
            "one-share-per-form",
            "one share per head and form",
            "the answer has the shape of gates; argmax and max throw the form's dimension away",
            _warm,
            parts=(),
        ),
        Check(
            "adds-up-in-a-head",
            "the shares of one head add up to 1",
            "softmax over the forms (dim=1), not over the heads, not over both; and it takes "
            "powers of e, not the gates themselves",
            _warm,
            tolerance=1e-5,
        ),
        Check(
            "temperature",
            "a low temperature sharpens",
            "divide the gates by the temperature, before the softmax; multiplying does the "
            "opposite, and dividing the shares afterwards breaks their sum",
            _cooler,
            tolerance=1e-5,
        ),
        Check(
            "far-apart",
            "gates that are far apart give no inf and no nan",
            "exp of a large number is infinite in float32: take the largest gate of a head away "
            "first, as torch.softmax does",
            _cold,
            tolerance=1e-3,
        ),
    ),
    reference=reference_gate_shares,
)


# --- form_values ----------------------------------------------------------------------------------
def reference_form_values(forms: Tensor, query: Tensor, key: Tensor, n: int) -> Tensor:
    """Return every value by three loops."""
    return torch.tensor(
        [
            [[a * i + b * j + c * n for j in key.tolist()] for i in query.tolist()]
            for a, b, c in forms.tolist()
        ]
    )


FORMS = ((0, 1, 0), (1, -1, 0), (1, 1, 0), (1, -2, 0), (1, -1, -1), (1, 1, -2), (1, -1, -2))


def _forms(count: int, generator: Generator, of=FORMS) -> Tensor:
    return torch.tensor(of)[torch.randperm(len(of), generator=generator)[:count]]


def _distance(generator: Generator):
    """i - j alone, with more queries than keys, and the other way round."""
    n = _below(9, generator, low=4)
    one = torch.tensor([[1, -1, 0]])
    return [
        (one, torch.arange(3, 9), torch.arange(4), n),
        (one, torch.arange(2), torch.arange(5), n),
    ]


def _several(generator: Generator):
    n = _below(9, generator, low=4)
    forms = torch.tensor([[0, 1, 0], [1, 1, 0], [1, -2, 0]])
    return [(forms, torch.arange(5), torch.arange(7), n)]


def _hinted(generator: Generator):
    n = _below(9, generator, low=4)
    forms = torch.cat([_forms(3, generator), torch.tensor([[1, -1, -1]])])
    return [(forms, torch.arange(6), torch.arange(5), m) for m in (n, n + 7)]


def _picked(generator: Generator):
    n = _below(9, generator, low=4)
    query = 10 + torch.randperm(20, generator=generator)[:3]
    key = torch.randperm(20, generator=generator)[:4]
    return [(_forms(2, generator), query, key, n), (_forms(5, generator), query[:1], key, n)]


FORM_VALUES = Question(
    name="form_values",
    title="the values of integer forms at all pairs",
    points=3,
    minutes=10,
    difficulty=2,
    hints=(
        "Write u = i - j for queries 3, 4 and keys 0, 1, 2 as a table with a row per query. What "
        "do you add to have such a table for each form?",
        "u_f(i, j, n) = a_f i + b_f j + c_f n. Each of the three terms has its own shape: the "
        "first depends on f and i, the second on f and j, the third on f alone.",
        "With a, b, c = forms[:, 0, None, None], forms[:, 1, None, None], ...: a * query[:, None] "
        "+ b * key[None, :] + c * n.",
    ),
    checks=(
        Check(
            "form-query-key",
            "one whole number per form, query and key",
            "the dimensions are forms, queries, keys, in this order; give each of the three its "
            "own place with None",
            _distance,
            parts=(),
        ),
        Check(
            "distance",
            "i - j is right",
            "i is the query and j the key, and u = a i + b j + c n keeps the sign of b",
            _distance,
        ),
        Check(
            "each-form",
            "each form has its own factors",
            "row f of forms is (a, b, c) of form f: columns 0, 1 and 2",
            _several,
        ),
        Check(
            "scale",
            "n enters with its factor c",
            "add c n: a form without it is the same at every scale",
            _hinted,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in; arange(len(query)) is right only if they start "
            "at 0 and leave none out",
            _picked,
        ),
    ),
    reference=reference_form_values,
)


# --- soft_strength --------------------------------------------------------------------------------
def reference_soft_strength(share: Tensor, table: Tensor, values: Tensor) -> Tensor:
    """Look every value up in a dictionary of cells."""
    window = (table.shape[1] - 1) // 2
    cells = {
        (f, w - window): share[f].item() * number
        for f, row in enumerate(table.tolist())
        for w, number in enumerate(row)
    }
    forms, queries, keys = values.shape
    given = values.tolist()
    return torch.tensor(
        [
            [
                math.fsum(cells.get((f, given[f][i][j]), 0.0) for f in range(forms))
                for j in range(keys)
            ]
            for i in range(queries)
        ]
    )


def _shares(count: int, generator: Generator) -> Tensor:
    return torch.softmax(2 * torch.randn(count, generator=generator), dim=0)


def _inside(forms: int, window: int, generator: Generator, shape=(4, 3)) -> Tensor:
    return torch.randint(-window, window + 1, (forms, *shape), generator=generator)


def _one_form(generator: Generator):
    """One form that has the whole head, all values inside the window."""
    return [(torch.ones(1), _mixed(1, 7, generator), _inside(1, 3, generator))]


def _two_forms(generator: Generator):
    return [(_shares(4, generator), _mixed(4, 7, generator), _inside(4, 3, generator))]


def _beyond(generator: Generator):
    """Values a little and far outside, on both sides."""
    cases = []
    for window in (3, 1):
        values = torch.randint(-3 * window - 2, 3 * window + 3, (3, 5, 4), generator=generator)
        values[0, 0, 0], values[0, 0, 1] = window + 1, -window - 1
        cases.append((_shares(3, generator), _mixed(3, 2 * window + 1, generator), values))
    return cases


def _windows(generator: Generator):
    """Other widths of the window, the narrowest too."""
    cases = []
    for window in (0, 1, 5):
        values = torch.randint(-window - 2, window + 3, (2, 3, 5), generator=generator)
        cases.append((_shares(2, generator), _mixed(2, 2 * window + 1, generator), values))
    return cases


SOFT_STRENGTH = Question(
    name="soft_strength",
    title="the strength of a pair under a soft gate",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "Take one form first. Its table has entries for the values -w .. w, the first one for -w. "
        "In which column stands the entry for the value 0? For a value v?",
        "strength[i, j] = sum over forms of share_f table[f, v + w], where v = values[f, i, j] and "
        "only forms with |v| <= w count. w is half of what the table's width has beyond 1.",
        "inside = values.abs() <= w; at = values.clamp(-w, w) + w; picked = table[torch.arange(f)"
        "[:, None, None], at]. Then mask, weigh by share and sum over the forms.",
    ),
    checks=(
        Check(
            "one-number-per-pair",
            "one number per query and key",
            "the forms are summed away: the answer is [q, k] in float32",
            _one_form,
            parts=(),
        ),
        Check(
            "window-offset",
            "with a single form, the right entry is found",
            "the first column belongs to the value -w and not to 0: a value v stands in column "
            "v + w. A negative index counts from the end and finds another entry",
            _one_form,
            tolerance=1e-5,
        ),
        Check(
            "mixes-forms",
            "the forms are weighed by their shares and summed",
            "each form looks up its own row, is multiplied by its own share, and then they are "
            "added; a mean divides once too often, and only the largest share is the cold end",
            _two_forms,
            tolerance=1e-5,
        ),
        Check(
            "outside-is-nothing",
            "a value outside the window adds nothing",
            "clamp alone hands the last entry to all values beyond: set what lies outside to 0",
            _beyond,
            tolerance=1e-5,
        ),
        Check(
            "any-window",
            "the window is read off the table",
            "the table has 2 w + 1 columns; do not write the window of the lesson into the code",
            _windows,
            tolerance=1e-5,
        ),
    ),
    reference=reference_soft_strength,
)


# --- exclude --------------------------------------------------------------------------------------
def reference_exclude(bias: Tensor, inside: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Decide pair by pair."""
    rows: list[list[float]] = []
    for row, i in enumerate(query.tolist()):
        rows.append([])
        for column, j in enumerate(key.tolist()):
            kept = i == j or (j < i and bool(inside[row, column]))
            rows[-1].append(bias[row, column].item() if kept else LEFT_OUT)
    return torch.tensor(rows)


def _pairs(query: Tensor, key: Tensor, generator: Generator, share: float):
    shape = (len(query), len(key))
    bias = torch.randn(shape, generator=generator)
    return bias, torch.rand(shape, generator=generator) < share, query, key


def _named_past(generator: Generator):
    """Keys before their query, about half of them in a cell."""
    bias, inside, query, key = _pairs(torch.arange(6, 10), torch.arange(6), generator, 0.5)
    inside.fill_diagonal_(True)  # so that a mistake about the query itself shows later
    return [(bias, inside, query, key)]


def _own(generator: Generator):
    """Whole inputs; the query is in no cell."""
    at = torch.arange(_below(9, generator, low=5))
    bias, inside, query, key = _pairs(at, at, generator, 0.4)
    inside &= key[None, :] < query[:, None]
    return [(bias, inside, query, key)]


def _last(generator: Generator):
    """The last queries of a longer input, as when a model writes with a cache."""
    count = _below(9, generator, low=6)
    key = torch.arange(count)
    bias, inside, query, key = _pairs(key[-3:], key, generator, 0.4)
    inside &= key[None, :] < query[:, None]
    return [(bias, inside, query, key)]


def _future(generator: Generator):
    """Cells that also hold keys behind their query, as i + j = w does."""
    at = torch.arange(_below(9, generator, low=5))
    bias, inside, query, key = _pairs(at, at, generator, 0.5)
    inside[0, 1], inside[1, 2] = True, True
    return [(bias, inside, query, key)]


EXCLUDE = Question(
    name="exclude",
    title="which keys may a head still attend to?",
    points=3,
    minutes=10,
    difficulty=3,
    hints=(
        "Softmax gives a key the weight 0 if its score is minus infinity. Which keys must get "
        "that, and which two kinds must not?",
        "Kept are the keys that stand in a cell of the head and are not behind the query, and the "
        "query itself, always: an empty row would be 0 / 0.",
        "i, j = query[:, None], key[None, :]; kept = (inside & (j <= i)) | (i == j); then "
        "bias.masked_fill(~kept, float('-inf')).",
    ),
    checks=(
        Check(
            "one-bias-per-pair",
            "one number per pair",
            "return the bias with some entries replaced, in the shape [q, k], not the mask",
            _named_past,
            parts=(),
        ),
        Check(
            "others-are-out",
            "keys in no cell are at minus infinity, the others keep their bias",
            "0 is a score like others and leaves a key its share: minus infinity excludes. And "
            "what is inside a cell keeps its own bias",
            _named_past,
        ),
        Check(
            "itself-stays",
            "the query itself always stays",
            "without it, a query whose cells hold no key has nothing to attend to, and softmax "
            "over nothing is nan",
            _own,
        ),
        Check(
            "given-positions",
            "the query is found by its position",
            "compare the positions, query[:, None] == key[None, :]: the diagonal of the matrix is "
            "the query only if both begin at 0",
            _last,
        ),
        Check(
            "no-future",
            "a cell does not open the future",
            "a cell such as i + j = w also holds keys behind the query; a causal model must not "
            "read them",
            _future,
        ),
    ),
    reference=reference_exclude,
)


# --- new_values -----------------------------------------------------------------------------------
def reference_new_values(form: tuple[int, int, int], trained: int, n: int) -> float:
    """Collect the values of the form at the operands, scale by scale."""

    def at_operands(m: int) -> list[int]:
        layout = [f"x{t}" for t in range(1, m + 1)] + ["="] + [f"y{t}" for t in range(1, m + 1)]
        a, b, c = form
        return [
            a * (layout.index(f"y{t}") - 1) + b * layout.index(f"x{m + 1 - t}") + c * m
            for t in range(1, m + 1)
        ]

    known = {value for m in range(1, trained + 1) for value in at_operands(m)}
    new = [value not in known for value in at_operands(n)]
    return float(Fraction(sum(new), len(new)))


def _within(generator: Generator):
    """Scales of training, where nothing is new."""
    n = _below(9, generator, low=3)
    forms = ((0, 1, 0), (1, 1, 0), (1, -1, 0), (1, 1, -2))
    return [(form, n + more, n) for form in forms for more in (0, 1)]


def _absolute(generator: Generator):
    trained = _below(9, generator, low=4)
    return [((0, 1, 0), trained, n) for n in (trained + 1, 2 * trained, 5 * trained)]


def _relative(generator: Generator):
    trained = _below(9, generator, low=4)
    return [((1, -1, 0), trained, n) for n in (trained + 1, 2 * trained, 3 * trained + 1)]


def _with_scale(generator: Generator):
    trained = _below(9, generator, low=4)
    forms = ((1, 1, 0), (1, 1, -2), (1, -1, -1), (0, 1, -1), (1, -2, 0))
    return [(form, trained, 2 * trained + 1) for form in forms]


NEW_VALUES = Question(
    name="new_values",
    title="how much of a relation was never trained?",
    points=4,
    minutes=20,
    difficulty=3,
    hints=(
        "Write the layout of reverse for m = 2 and m = 3. Which query writes y1, and which key "
        "does it read? What is i - j there, and i + j?",
        "y_t stands at m + t, so its query is m + t - 1; x_(m + 1 - t) stands at m - t. Collect "
        "a i + b j + c m over t = 1..m and over m = 1..trained in a set.",
        "known = {value(m, t) for m in range(1, trained + 1) for t in range(1, m + 1)}; then the "
        "share of t = 1..n whose value(n, t) is not in known.",
    ),
    checks=(
        Check(
            "a-share",
            "a float",
            "return a share from 0.0 to 1.0 as a Python float, not a count and not a tensor",
            _within,
            parts=(),
        ),
        Check(
            "training-is-known",
            "at a scale of training nothing is new",
            "collect the values of all scales 1..trained, both ends included, and of all steps of "
            "each",
            _within,
        ),
        Check(
            "positions-run-out",
            "with the key's position as the name",
            "only pairs of a query and its operand count: a key that stood in a training input, "
            "but was no operand, was not learned. And it is a share of the n steps of scale n",
            _absolute,
            tolerance=1e-9,
        ),
        Check(
            "distances-run-out",
            "with the distance as the name",
            "reverse reads from the back: y_t reads x_(n + 1 - t), at n - t counted from 0, while "
            "copy would read t - 1. So the distance differs from step to step",
            _relative,
            tolerance=1e-9,
        ),
        Check(
            "own-scale",
            "each scale is put into its own form",
            "with c != 0 the value at a training scale m takes c m, not c n",
            _with_scale,
            tolerance=1e-9,
        ),
    ),
    reference=reference_new_values,
)

QUESTIONS = (GATE_SHARES, FORM_VALUES, SOFT_STRENGTH, EXCLUDE, NEW_VALUES)
