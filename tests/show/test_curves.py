"""Can curves that lie on each other be told apart, and is the text that of the figure?"""

from __future__ import annotations

import pytest

from lgcourse.show import curve_figure

ONES = {1: 1.0, 5: 1.0, 9: 1.0}
FALLS = {1: 1.0, 5: 0.4, 9: 0.0}


def widths(*rows):
    figure = curve_figure({str(k): row for k, row in enumerate(rows)}, train_scale=5)
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 1]
    assert [list(line.get_ydata()) for line in lines] == [list(row.values()) for row in rows]
    assert len({line.get_color() for line in lines}) == len(rows)
    return [line.get_linewidth() for line in lines], [line.get_markersize() for line in lines]


@pytest.mark.parametrize(
    "rows",
    [
        (ONES, ONES),
        (ONES, dict(ONES), ONES),
        (FALLS, {1: 0.2, 5: 0.4, 9: 0.01}),
        (ONES, {5: 1.0, 9: 1.0}),
    ],
)
def test_a_covered_curve_is_broader_than_what_covers_it(rows):
    for values in widths(*rows):
        assert values == sorted(values, reverse=True) and len(set(values)) == len(values)


@pytest.mark.parametrize("rows", [(ONES, FALLS), (FALLS, {1: 0.9, 5: 0.4, 9: 0.5}), ({1: 1.0},)])
def test_curves_that_only_cross_look_alike(rows):
    if len(rows[0]) == 1:
        assert len(curve_figure({"a": rows[0]}, 1).axes[0].lines) == 1
        return
    for values in widths(*rows):
        assert len(set(values)) == 1


def test_ticks_are_whole_numbers():
    figure = curve_figure({"a": {1: 1.0, 2: 1.0, 3: 0.5}}, train_scale=2)
    figure.draw_without_rendering()
    assert all(float(tick).is_integer() for tick in figure.axes[0].get_xticks())
