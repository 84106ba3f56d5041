"""Does LRC count operators and their rank as the definition says, on every kind of target?"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lgcourse.errors import InputError
from lgcourse.theory import targets
from lgcourse.theory.adapters import as_target
from lgcourse.theory.blackbox import NotCausalError, NotLinearError, sequence_map
from lgcourse.theory.linear import distinct_operators, lrc, lrc_curve
from lgcourse.theory.target import checked_scale


def rank_by_elimination(rows):
    """The rank of rows of numbers, by Gaussian elimination in fractions, in plain Python."""
    rows, rank = [[Fraction(v) for v in row] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((k for k in range(rank, len(rows)) if rows[k][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for k in range(rank + 1, len(rows)):
            factor = rows[k][column] / rows[rank][column]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[rank], strict=True)]
        rank += 1
    return rank


def curve_by_definition(operator, scale, kind):
    """LRC at 1..scale from the definition; `operator` gives a flat tuple of exact numbers."""
    curve = {}
    for n in range(1, scale + 1):
        met = {
            tuple(operator(i, j, m))
            for m in range(1, n + 1)
            for i in range(m)
            for j in range(i + 1)
        }
        met = {row for row in met if any(row)}
        curve[n] = len(met) if kind == "operators" else rank_by_elimination(sorted(met))
    return curve


@st.composite
def families(draw, entries):
    """A random family of exact operators, which depends on n as well: [(n, i, j)] -> flat tuple."""
    scale, p, d = draw(st.integers(1, 4)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    free = draw(st.booleans())
    table: dict = {}
    for n in range(1, scale + 1):
        for i in range(n):
            for j in range(i + 1):
                if free and n > i + 1:
                    table[n, i, j] = table[n - 1, i, j]
                else:
                    table[n, i, j] = tuple(draw(st.tuples(*[entries] * (p * d))))
    return table, scale, (p, d)


def as_function(table, shape, times=1):
    p, d = shape
    return lambda i, j, n: [[times * table[n, i, j][r * d + c] for c in range(d)] for r in range(p)]


exact = st.one_of(
    st.integers(-2, 2), st.fractions(-1, 1, max_denominator=3), st.integers(2**70, 2**70 + 1)
)


@pytest.mark.parametrize("kind", ["operators", "rank"])
@given(family=families(exact))
@settings(max_examples=60, deadline=None)
def test_exact_curves_follow_the_definition(kind, family):
    table, scale, shape = family
    expected = curve_by_definition(lambda i, j, n: table[n, i, j], scale, kind)
    assert lrc_curve(as_function(table, shape), scale, kind) == expected


@given(
    family=families(st.integers(-2, 2)),
    factor=st.sampled_from([-1, 3, Fraction(-2, 7), 2.0**-40, 1e6]),
)
@settings(max_examples=60, deadline=None)
def test_properties_of_the_two_readings(family, factor):
    table, scale, (p, d) = family
    function = as_function(table, (p, d))
    operators, rank = (lrc_curve(function, scale, kind) for kind in ("operators", "rank"))
    for n in range(1, scale + 1):
        assert rank[n] <= operators[n]
        assert rank[n] <= p * d
        assert n == 1 or (rank[n - 1] <= rank[n] and operators[n - 1] <= operators[n])
        assert lrc(function, n) == operators[n] and lrc(function, n, "rank") == rank[n]
    scaled = as_function(table, (p, d), factor)
    assert lrc_curve(scaled, scale) == operators
    assert lrc_curve(scaled, scale, "rank") == rank


@given(seed=st.integers(0, 10**6), n=st.integers(2, 8), d=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_every_description_of_a_target_gives_the_same_curves(seed, n, d):
    rng = np.random.default_rng(seed)
    whole = rng.integers(-1, 2, size=(n, n, d, d)) * np.tri(n, dtype=int)[:, :, None, None]
    definition = {
        kind: curve_by_definition(lambda i, j, m: whole[i, j].ravel().tolist(), n, kind)
        for kind in ("operators", "rank")
    }
    weights = torch.as_tensor(whole)

    def through_map(x):
        return np.einsum("qkpd,kd->qp", whole[: len(x), : len(x)], x)

    descriptions = [
        whole,
        whole.tolist(),
        whole.astype(float),
        whole.astype(np.float32),
        torch.as_tensor(whole),
        torch.as_tensor(whole).bfloat16(),
        lambda i, j, n: whole[i, j],
        lambda i, j: whole[i, j].tolist(),
        lambda i, j, n: weights[i, j],
        sequence_map(through_map, d_in=d),
    ]
    for thing in descriptions:
        for kind, expected in definition.items():
            assert lrc_curve(thing, n, kind) == expected, (thing, kind)


def test_distinct_operators_come_in_order_of_appearance_and_stay_exact():
    found = distinct_operators(lambda i, j, n: Fraction(n, 3) if i == j else 0, 4)
    assert found.shape == (4, 1, 1)
    assert found.ravel().tolist() == [Fraction(k, 3) for k in range(1, 5)]
    assert distinct_operators([[0, 0], [0, 0]], 2).shape == (0, 1, 1)


# --- exactness: versions that compute in float64 or int64 must fail here --------------------------


def test_fractions_that_are_equal_as_floats_are_distinct():
    tiny = Fraction(1, 10**30)
    target = [[1, 0], [1 + tiny, 1]]
    assert float(1 + tiny) == 1.0
    assert lrc(target, 2) == 2
    assert lrc(np.array(target, dtype=float), 2) == 1


def test_exact_rank_where_floats_see_a_smaller_one():
    big = 10**17
    pair = [[[big, big + 1]], [[big + 1, big + 2]]]  # determinant -1
    target = [[pair[0], [[0, 0]]], [pair[1], [[0, 0]]]]
    assert np.linalg.matrix_rank(np.array(pair, dtype=float).reshape(2, 2)) == 1
    assert lrc(target, 2, "rank") == 2


def test_whole_numbers_beyond_int64_from_arrays_that_overflow():
    for operator in (lambda i, j, n: 2 ** (j * (i - j)), lambda i, j, n: (i + 7) ** (3 * j + 1)):
        expected = len({operator(i, j, 20) for i in range(20) for j in range(i + 1)})
        assert lrc(operator, 20) == expected


def test_fraction_powers_are_not_silently_floats():
    # Fraction ** array gives floats: 0.8^k and 0.8^(k+1) would meet within the tolerance
    assert lrc(lambda i, j: Fraction(4, 5) ** (i - j), 200) == 200


def test_operators_that_look_dependent_to_a_shortcut():
    def rank_of(first, second):
        return lrc([[[first], [[0, 0]]], [[second], [[0, 0]]]], 2, "rank")

    for prime in (2**31 - 1, 2**61 - 1):  # dependent modulo the prime
        assert rank_of([1, 1], [1, 1 + prime]) == 2
    # dependent in int64: (2^32, 0) times (2^32, -1), which is orthogonal to (1, 2^32), is 2^64
    assert rank_of([1, 2**32], [2**32, 0]) == 2
    assert rank_of([1, 2**32], [2**30, 2**62]) == 1


# --- what the definition says about zero and about scales -----------------------------------------


def test_the_zero_operator_is_not_counted():
    assert lrc("band", 16) == 3  # a version that counts zero says 4
    assert lrc(lambda i, j, n: 0, 5) == 0 and lrc(lambda i, j, n: 0.0, 5, "rank") == 0


def test_operators_of_all_smaller_scales_count():
    def by_scale(i, j, n):
        return n

    assert lrc_curve(by_scale, 5) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}  # scale 5 alone has one
    assert lrc_curve(lambda i, j, n: [[n, n**2]], 5, "rank") == {1: 1, 2: 2, 3: 2, 4: 2, 5: 2}


def hidden_reads():
    def through_closure(i, j, n):
        return (lambda: n)()

    def through_locals(i, j, n):
        return sum(v for k, v in locals().items() if k == "n")

    def through_star(*positions):
        return positions[2]

    class Callable:
        def __call__(self, i, j, scale):
            return scale

    return [through_closure, through_locals, through_star, Callable(), Callable().__call__]


@pytest.mark.parametrize("function", hidden_reads(), ids=lambda f: type(f).__name__)
def test_a_function_that_reads_the_scale_in_a_hidden_way_is_not_taken_for_scale_free(function):
    assert lrc(function, 5) == 5


def test_a_function_that_never_reads_the_scale_is_asked_once_per_pair():
    calls = []

    def ignores(i, j, n):
        calls.append(1)
        return 1 if i == j else 0

    assert lrc(ignores, 40) == 1
    assert len(calls) < 40 * 41 / 2 + 100  # not 40^3 / 6


def test_a_function_that_takes_arrays_is_not_asked_pair_by_pair():
    calls = []

    def band(i, j, n):
        calls.append(1)
        return np.where(i == j, 1, 0)

    assert lrc(band, 400) == 1
    assert len(calls) < 20 * 400
    calls.clear()
    assert lrc(declared(vectorised=True)(band), 400) == 1
    assert len(calls) <= 400 + 5


def declared(**attributes):
    """Set attributes of a function."""

    def with_attributes(function):
        function.__dict__.update(attributes)
        return function

    return with_attributes


def test_the_attributes_of_a_function_are_believed():
    @declared(scale_free=True)
    def constant(i, j, n):
        return 3 * n

    assert as_target(constant).scale_free

    @declared(vectorised=False)
    def one_by_one(i, j, n):
        assert isinstance(i, int)
        return 2**i

    assert lrc(one_by_one, 80) == 80

    @declared(vectorised=True)
    def not_arrays(i, j, n):
        return 1 if i == j else 0

    with pytest.raises(InputError, match="vectorised = True"):
        lrc(not_arrays, 4)


def test_a_third_argument_with_a_default_is_an_option_unless_it_is_the_scale():
    assert lrc(lambda i, j, width=3: width, 5) == 1
    assert lrc(lambda i, j, n=3: n, 5) == 5


# --- floats and their tolerance -------------------------------------------------------------------


def count_with_tolerance(rows_by_scale, tolerance):
    """The documented rule in plain Python: one operator after the other."""
    counted: list = []
    curve, largest = [], 0.0
    for rows in rows_by_scale:
        largest = max([largest, *(abs(v) for row in rows for v in row)])
        for row in rows:
            limit = tolerance * largest
            is_zero = max(abs(v) for v in row) <= limit
            known = any(
                max(abs(a - b) for a, b in zip(row, other, strict=True)) <= limit
                for other in counted
            )
            if not is_zero and not known:
                counted.append(row)
        curve.append(len(counted))
    return curve


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 8),
    d=st.integers(1, 3),
    growth=st.sampled_from([1.0, 3.0]),
)
@settings(max_examples=80, deadline=None)
def test_the_tolerance_rule_is_the_documented_one(seed, n, d, growth):
    # steps of 1/64 are exact in float64, so both versions see the same borderline cases
    rng = np.random.default_rng(seed)
    steps = rng.integers(-64, 65, size=(n, n, 1, d)) * np.tri(n, dtype=int)[:, :, None, None]
    values = steps / 64.0 * (growth ** np.arange(n))[:, None, None, None]
    rows = [values[i, : i + 1, 0].tolist() for i in range(n)]
    tolerance = 1 / 16
    curve = lrc_curve(values, n, tolerance=tolerance)
    assert list(curve.values()) == count_with_tolerance(rows, tolerance)
    rank = lrc_curve(values, n, "rank", tolerance=tolerance)
    assert all(rank[m] <= curve[m] for m in curve)
    assert all(rank[m] <= rank[m + 1] for m in range(1, n))


def test_rounding_noise_is_not_counted_by_default_and_is_with_tolerance_zero():
    noisy = [[0.1 + 0.2, 0.0], [0.3, 0.0]]
    assert lrc(noisy, 2) == 1
    assert lrc(noisy, 2, tolerance=0.0) == 2
    assert lrc([[-0.0, 0.0], [0.0, -0.0]], 2, tolerance=0.0) == 0


def test_float_rank_ignores_noise_and_sees_small_operators():
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(3, 4))
    rows = rng.normal(size=(20, 20, 3)) @ basis
    target = (rows * np.tri(20)[:, :, None]).reshape(20, 20, 2, 2)
    assert lrc(target, 20, "rank") == 3
    assert lrc(target * 1e-200, 20, "rank") == 3
    assert lrc(target * 1e200, 20, "rank") == 3
    assert lrc(target + 1e-3 * rng.normal(size=target.shape) * (target != 0), 20, "rank") == 4


def test_with_tolerance_zero_floats_are_exact_fractions():
    # 0.1 + 0.2 and 0.3 differ in the last bit, so the rows are independent
    rows = [[[[0.1 + 0.2, 1.0]], [[0.0, 0.0]]], [[[0.3, 1.0]], [[0.0, 0.0]]]]
    assert lrc(rows, 2, "rank", tolerance=0.0) == 2
    assert lrc(rows, 2, "rank") == 1


def test_whole_numbers_that_turn_into_floats_midway():
    assert lrc(lambda i, j, n: 1 if i < 3 else 0.5, 6) == 2
    assert lrc(lambda i, j, n: 1 if i < 2 else Fraction(1, 2) if i < 4 else 0.25, 6) == 3


# --- the figures that users need ------------------------------------------------------------------


@pytest.mark.parametrize("kind, band, dense", [("operators", 3, 125_250), ("rank", 1, 1)])
def test_large_scales(kind, band, dense):
    assert lrc_curve("band", 2000, kind)[2000] == band
    random = np.tril(np.random.default_rng(0).normal(size=(500, 500)))
    curve = lrc_curve(random, 500, kind)
    assert curve[500] == dense and curve[2] == min(3, dense)


def test_dense_random_matrices():
    rng = np.random.default_rng(1)
    target = rng.normal(size=(60, 60, 2, 3)) * np.tri(60)[:, :, None, None]
    assert list(lrc_curve(target, 60).values()) == [n * (n + 1) // 2 for n in range(1, 61)]
    assert list(lrc_curve(target, 5, "rank").values()) == [1, 3, 6, 6, 6]


# --- linear maps that can only be called ----------------------------------------------------------


class CausalAttention(nn.Module):
    d_in = 2

    def __init__(self):
        super().__init__()
        self.q, self.v = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)

    def forward(self, x):
        scores = self.q(x) @ self.q(x).T
        scores = scores.masked_fill(~torch.ones_like(scores).tril().bool(), -1e9)
        return scores.softmax(-1) @ self.v(x)


def running_median(x):
    return np.array([np.median(x[max(0, i - 2) : i + 1], axis=0) for i in range(len(x))])


NOT_LINEAR: dict[str, Any] = {
    "square": lambda x: x**2,
    "affine": lambda x: x + 1,
    "relu": lambda x: np.maximum(x, 0),
    "absolute": abs,
    "median: homogeneous and odd, not additive": running_median,
    "clipped far out": lambda x: np.clip(x, -50, 50),
    "curved only near zero": lambda x: np.where(abs(x) < 1e-2, 0, x),
    "product": lambda x: x * x[:1],
    "linear layer with bias": nn.Linear(2, 3),
    "causal softmax attention": CausalAttention(),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_a_map_that_is_not_linear_is_refused_with_a_witness(name):
    function = NOT_LINEAR[name]
    with pytest.raises(NotLinearError, match="not linear") as caught:
        lrc(function, 4)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, NotCausalError)

    def call(x):
        with torch.no_grad():
            x = torch.as_tensor(x).float() if isinstance(function, nn.Module) else x
            return np.asarray(function(x), dtype=float)

    (x, z), (y, w) = caught.value.inputs, caught.value.outputs
    assert np.allclose(call(x), y, atol=1e-6) and np.allclose(call(z), w, atol=1e-6)
    factor = (x * z).sum() / (x * x).sum() if x.any() else 0
    if np.allclose(z, factor * x):  # two inputs on one line whose outputs are not
        assert not np.allclose(w, factor * y, atol=1e-5)
    else:
        assert not np.allclose(call(x + z), y + w, atol=1e-5)


def test_a_witness_for_a_map_that_looks_ahead():
    with pytest.raises(NotCausalError, match="x_3 = .* alone changes y_0 from 0 to 1") as caught:
        lrc(lambda x: x[::-1], 4)
    (x, z), (y, w) = caught.value.inputs, caught.value.outputs
    assert (x[:3] == z[:3]).all() and (y[0] != w[0]).all()


def test_a_map_that_answers_differently_each_time_is_refused():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8, bias=False), nn.Dropout(0.5))
    with pytest.raises(NotLinearError, match=r"same x.*\.eval\(\)"):
        lrc(model, 4)
    assert lrc(model.eval(), 4) == 1


class BatchedMean(nn.Module):
    d_in = 3

    def __init__(self, by_scale):
        super().__init__()
        self.by_scale = by_scale
        self.mix = nn.Parameter(torch.randn(2, 3, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        b, l, d = x.shape
        count = float(l) if self.by_scale else torch.arange(1.0, l + 1)[:, None]
        return (x.cumsum(1) / count) @ self.mix.T


@pytest.mark.parametrize("by_scale", [False, True])
def test_a_module_that_wants_batches_is_read_at_every_scale(by_scale):
    target = sequence_map(BatchedMean(by_scale))
    assert target.shape == (2, 3)
    assert lrc_curve(target, 6) == {n: n for n in range(1, 7)}
    assert lrc(target, 6, "rank") == 1
    shares = [1 / 4] * 3 if by_scale else [1 / 2, 1 / 3, 1 / 4]
    mix = BatchedMean(by_scale).mix[0, 0].item()
    assert np.allclose(target.dense(4)[1:, 0, 0, 0], mix * np.array(shares), atol=1e-6)


def test_a_scale_free_map_is_read_once_and_a_scaled_one_at_each_scale():
    calls = {"free": 0, "scaled": 0}

    def free(x):
        calls["free"] += 1
        return np.cumsum(x, axis=0)

    def scaled(x):
        calls["scaled"] += 1
        return np.cumsum(x, axis=0) / len(x)

    assert lrc(free, 30) == 1 and lrc(scaled, 30) == 30
    assert calls["free"] < 6 * 30 < 30 * 31 / 2 < calls["scaled"]


def test_maps_that_do_not_fit_are_named():
    with pytest.raises(InputError, match=r"shape \[2, 1\].*d_in="):
        lrc(lambda x: x @ np.ones((3, 2)), 4)
    assert lrc(sequence_map(lambda x: x @ np.ones((3, 2)), d_in=3), 4) == 1
    with pytest.raises(InputError, match="nan"), np.errstate(all="ignore"):
        lrc(lambda x: x / x * x, 4)


# --- named targets, and names on the command line -------------------------------------------------


def test_named_targets_have_the_curves_that_their_summaries_state():
    n = np.arange(1, 13)
    expected: dict[str, Any] = {
        "band": ([1, 2, 2, *[3] * 9], np.ones(12)),
        "decay": (n, np.ones(12)),
        "position-weighted": (n, np.ones(12)),
        "half": (np.ones(12), np.ones(12)),
        "fresh-matrices": (np.minimum(n, 4), np.minimum(n, 4)),
        "turning": (n, np.minimum(n, 2)),
        "random-dense": (n * (n + 1) // 2, np.ones(12)),
    }
    assert list(expected) == targets.names()
    for name, curves in expected.items():
        for kind, curve in zip(("operators", "rank"), curves, strict=True):
            assert list(lrc_curve(name, 12, kind).values()) == list(curve), (name, kind)
        assert targets.get(name).summary


def test_named_targets_hold_what_their_formulas_say():
    i, j = np.tril_indices(40)
    formulas = {
        "band": lambda i, j: {0: 1, 1: -0.5, 3: 2}.get(i - j, 0),
        "decay": lambda i, j: 0.8 ** (i - j),
        "position-weighted": lambda i, j: i + 1 if i == j else 0,
        "half": lambda i, j: int(j == i // 2),
    }
    for name, formula in formulas.items():
        values = [formula(*pair) for pair in zip(i.tolist(), j.tolist(), strict=True)]
        assert np.allclose(targets.get(name).dense(40)[i, j, 0, 0], values, rtol=1e-12, atol=0)
    turn = targets.get("turning").dense(6)
    assert np.allclose(turn[3, 1] @ turn[4, 1], turn[5, 0])  # angles add
    assert np.linalg.matrix_rank(targets._FRESH.reshape(4, 4)) == 4
    random = targets.get("random-dense").dense(60)[np.tril_indices(60)]
    assert abs(random.mean()) < 0.05 and abs(random.std() - 3**-0.5) < 0.02


def test_a_scale_that_the_values_do_not_support_is_refused():
    with pytest.raises(InputError, match="up to scale 3000, got 3001"):
        lrc("decay", 3001)
    with pytest.raises(InputError, match="up to scale 3, got 4"):
        lrc(np.eye(3), 4)


def test_module_and_attribute_name_a_target(tmp_path, monkeypatch):
    (tmp_path / "my_targets.py").write_text(
        "import numpy as np\ndef band(i, j, n):\n    return 1 if i - j in (0, 2) else 0\n"
        "class Box:\n    eye = np.eye(5)\nbroken = 'text'\n"
    )
    (tmp_path / "my_fault.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    assert lrc("my_targets:band", 8) == 1
    assert lrc("my_targets:Box.eye", 5) == 1
    assert str(tmp_path) not in sys.path
    for text, words in {
        "my_targets:bnad": "module 'my_targets' has no 'bnad'; did you mean 'band'",
        "my_targets:": "has no ''",
        "no_such_module:f": "could not be imported: ModuleNotFoundError",
        "my_targets.py:band": "write 'my_targets' without .py",
        "my_fault:f": "ZeroDivisionError",
        "my_targets:Box": "give an instance",
        "bandd": "did you mean 'band'",
    }.items():
        with pytest.raises(InputError, match=words):
            targets.resolve(text)


BAD = {
    "scale must be a whole number of at least 1, got 0": lambda: lrc("band", 0),
    "got 2.0": lambda: checked_scale(2.0),
    "got True": lambda: lrc("band", True),
    "did you mean 'rank'": lambda: lrc("band", 4, "ranks"),
    r"operator at \(i=0, j=1\) is 1": lambda: lrc(np.ones((3, 3)), 2),
    r"shape \[n n\] or \[n n p d\], got \[2, 3\]": lambda: lrc(np.eye(3)[:2], 2),
    "real numbers": lambda: lrc(np.eye(3, dtype=complex), 2),
    "finite numbers, got nan": lambda: lrc(np.diag([1, np.nan]), 2),
    r"failed at \(i=3, j=0, n=4\): ZeroDivisionError": lambda: lrc(lambda i, j, n: 1 / (i - 3), 5),
    "got str": lambda: lrc(lambda i, j, n: "a", 5),
    r"has shape \[2\]": lambda: lrc(lambda i, j, n: [1, 2], 5),
    r"\[1, 2\] at \(i=1, j=0": lambda: lrc(lambda i, j, n: [[1, 2]] if i else [[1]], 5),
    "requires 4 arguments": lambda: lrc(lambda i, j, n, w: 1, 5),
    "got int": lambda: lrc(3, 5),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_named_in_one_line(words):
    with pytest.raises(InputError, match=words) as caught:
        BAD[words]()
    assert "\n" not in str(caught.value)


def test_counting_needs_no_torch():
    code = (
        "import sys; from lgcourse.theory.linear import lrc; assert lrc('band', 8) == 3; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
