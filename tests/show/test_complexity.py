"""Do the curves of LRC and SRC show the counts, step by step? Asked of what is drawn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import StepPatch

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.show.complexity import (
    HEIGHT,
    WIDTH,
    _apart,
    _one_two_five,
    complexity_figure,
    complexity_text,
    stretches,
)
from lgcourse.theory import induced_src_curve, lrc_curve, src_curve


def steps(figure):
    found = [p for p in figure.axes[0].patches if isinstance(p, StepPatch)]
    return [(p.get_data().values.tolist(), p.get_data().edges.tolist()) for p in found]


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_each_scale_has_a_step_of_its_own_height():
    figure = complexity_figure({"src": {1: 1, 2: 2, 3: 2}, "ape": {1: 1, 2: 3, 3: 5}})
    edges = [0.5, 1.5, 2.5, 3.5]
    assert steps(figure) == [([1, 2, 2], edges), ([1, 3, 5], edges)]
    assert {"src", "ape", "2 at 3", "5 at 3"} <= set(words(figure))


def test_a_count_holds_until_the_next_scale_of_its_curve():
    assert steps(complexity_figure({"sparse": {1: 1, 5: 4, 10: 4}})) == [
        ([1, 4, 4], [0.5, 4.5, 9.5, 10.5])
    ]


def test_scales_as_texts_are_sorted_as_numbers():
    named = {str(n): n for n in range(1, 13)}
    assert complexity_text({"a": named}) == complexity_text({"a": {n: n for n in range(1, 13)}})
    backwards = dict(sorted(named.items(), reverse=True))
    assert steps(complexity_figure({"a": backwards})) == steps(complexity_figure({"a": named}))


def test_curves_of_the_theory_can_be_drawn_as_they_come():
    task = tasks.get("copy")
    curves = {
        "src": src_curve(task, 12),
        "ape": induced_src_curve(task, relations.build("ape", task), 12),
        "half": lrc_curve("half", 12),
    }
    figure = complexity_figure(curves, train_scale=5)
    assert [values for values, _ in steps(figure)] == [list(c.values()) for c in curves.values()]
    text = getattr(figure, "alt", "")
    assert "src: 1 at 1..12; it does not grow after training." in text
    assert "ape: 1 at 1, 2 at 2, 3 at 3, 4 at 4, and so on, 12 at 12; it grows after" in text
    assert "12 at 12, grows after training" in words(figure)


@pytest.mark.parametrize(
    ("curve", "train", "growth"),
    [
        ({1: 1, 2: 2, 3: 2}, 2, "; it does not grow after training"),
        ({1: 1, 2: 2, 3: 2}, 1, "; it grows after training"),
        ({1: 1, 2: 2, 3: 2}, 3, ""),
        ({1: 1, 2: 2, 3: 2}, None, ""),
        ({5: 1, 6: 2}, 4, ""),
    ],
)
def test_growth_is_that_beyond_the_training_scale(curve, train, growth):
    assert complexity_text({"x": curve}, train).endswith(f"{growth}.")
    assert ("grow" in complexity_text({"x": curve}, train)) == bool(growth)


@pytest.mark.parametrize(("train", "right"), [(4, 4.5), (99, 10.5)])
def test_the_training_range_is_shaded(train, right):
    figure = complexity_figure({"x": dict.fromkeys(range(1, 11), 1)}, train)
    shade = next(p for p in figure.axes[0].patches if not isinstance(p, StepPatch))
    box = shade.get_extents().transformed(figure.axes[0].transData.inverted())
    assert np.allclose([box.x0, box.x1], [0.5, right])
    assert " training scales" in words(figure)


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [(1, 29, "linear"), (1, 30, "log"), (10, 200, "linear"), (0, 5, "linear"), (0, 99, "symlog")],
)
def test_a_large_spread_gets_a_logarithmic_axis_and_says_so(low, high, scale):
    axes = complexity_figure({"x": {1: low, 2: high}}).axes[0]
    assert axes.get_yscale() == scale
    assert axes.get_ylabel().endswith("(log)") == (scale != "linear")
    assert axes.get_ylim()[0] < low or low == 0 == axes.get_ylim()[0]
    assert axes.get_ylim()[1] > high


def test_equal_curves_are_both_to_be_seen():
    curve = {n: n for n in range(1, 9)}
    figure = complexity_figure({"below": curve, "above": curve, "other": dict.fromkeys(curve, 1)})
    below, above, other = (
        p.get_linewidth() for p in figure.axes[0].patches if isinstance(p, StepPatch)
    )
    assert below > above == other


def test_labels_stand_apart_in_the_order_of_their_curves():
    curves = {f"curve {k}": {1: 1, 2: 2 + k // 3} for k in range(10)}
    figure = complexity_figure(curves)
    axes = figure.axes[0]
    places = {t.get_text(): t.get_position()[1] for t in axes.texts if t.get_weight() == "bold"}
    assert set(places) == set(curves)
    between = [b - a for a, b in pairwise(sorted(places.values()))]
    assert min(between) * HEIGHT * axes.get_position().height * 72 > 20, "points"
    assert places["curve 9"] > places["curve 0"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.14))
def test_heights_are_moved_apart_and_keep_their_order(heights, gap):
    placed = _apart(heights, gap)
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    assert all(placed[b] - placed[a] >= gap - 1e-9 for a, b in pairwise(order))
    assert min(placed) >= -1e-9 and max(placed) <= 1 + 1e-9
    if all(heights[b] - heights[a] >= gap for a, b in pairwise(order)):
        assert np.allclose(placed, heights), "moved without need"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12).map(sorted))
def test_stretches_tell_every_count(counts):
    told: list[int] = []
    for scales, count in stretches(dict(enumerate(counts, start=1))):
        first, _, last = scales.partition("..")
        told += [count] * (int(last or first) - int(first) + 1)
    assert told == counts
    assert len({count for _, count in stretches(dict(enumerate(counts)))}) == len(set(counts))


@pytest.mark.parametrize("high", [30, 5_000, 10**7])
def test_ticks_of_a_logarithmic_axis_are_few_and_round(high):
    ticks = _one_two_five(high)
    assert ticks == sorted(set(ticks)) and high / 10 < ticks[-1] <= high and len(ticks) < 16
    assert all(set(str(tick)) <= set("0125") for tick in ticks)


def test_the_size_is_fixed():
    for curves in ({"x": {1: 1}}, {"a long label " * 9: {n: n**3 for n in range(1, 40)}}):
        assert tuple(complexity_figure(curves).get_size_inches()) == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({}, "at least one"),
        ([{1: 1}], "a dictionary label -> curve"),
        ({1: 1, 2: 2}, "write {'label': curve}"),
        ({"x": {}}, "at least one scale"),
        ({"x": {0: 1}}, "a scale is a whole number of at least 1, got 0"),
        ({"x": {"two": 1}}, "got 'two'"),
        ({"x": {1: 1.5}}, "a count is a whole number"),
        ({"x": {1: True}}, "a count is a whole number"),
        ({"x": {1: 3, 2: 2}}, "'x' has 3 at 1 and 2 at 2"),
        ({f"x{k}": {1: 1} for k in range(11)}, "up to 10 curves"),
    ],
)
def test_what_is_no_curve_is_refused(curves, message):
    for function in (complexity_figure, complexity_text):
        with pytest.raises(InputError) as caught:
            function(curves)
        assert message in str(caught.value) and "\n" not in str(caught.value)
