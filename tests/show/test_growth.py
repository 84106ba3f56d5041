"""Are the maps and curves those of a count by hand?"""

from __future__ import annotations

import numpy as np
import pytest

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.show.growth import (
    OUTSIDE,
    circuit_growth,
    growth_figure,
    growth_text,
    target_growth,
)
from lgcourse.show.operators import ZERO
from lgcourse.theory.targets import get


@pytest.mark.parametrize("name", ["band", "half", "position-weighted", "decay", "random-dense"])
def test_the_map_numbers_equal_operators_alike(name):
    data = target_growth(name, 9, 4)
    dense = get(name).dense(9)[:, :, 0, 0]
    for i in range(9):
        for j in range(9):
            if j > i:
                assert data.map[i, j] == OUTSIDE
            elif dense[i, j] == 0:
                assert data.map[i, j] == ZERO
            else:
                assert np.array_equal(
                    (data.map == data.map[i, j]) & np.tri(9, dtype=bool),
                    (dense == dense[i, j]) & np.tri(9, dtype=bool),
                )


def test_the_curve_counts_distinct_values_up_to_each_scale():
    data = target_growth("position-weighted", 7, 3)
    assert data.curves["operators"] == {n: n for n in range(1, 8)}
    assert data.curves["rank"] == dict.fromkeys(range(1, 8), 1)
    assert data.growth == 4


def test_the_operators_of_a_circuit():
    task = tasks.get("addition")
    data = circuit_growth(task, relations.build("rpe", task, max_scale=5), 5, 2)
    for n in range(1, 6):
        steps = task.circuit(n)
        row = data.map[n - 1]
        assert (row[len(steps) :] == OUTSIDE).all()
        for a, first in enumerate(steps):
            for b, second in enumerate(steps):
                assert (row[a] == row[b]) == (first.operator == second.operator)
    assert data.curves["unit operators"][5] == 2
    assert data.curves["induced by rpe"][5] > data.curves["induced by rpe"][1]


def test_the_figure_shows_both_curves():
    data = target_growth("half", 6, 3)
    figure = growth_figure(data)
    _, right = figure.axes
    for stairs, curve in zip(right.patches[1:], data.curves.values(), strict=True):
        assert list(stairs.get_data().values) == list(curve.values())
    assert figure.alt == growth_text(data)  # type: ignore[attr-defined]


def test_one_size_for_all():
    datas = [target_growth("half", 2, 1), target_growth("random-dense", 30, 6)]
    datas.append(circuit_growth(tasks.get("parity-cot"), None, 30, 6))
    assert len({tuple(growth_figure(data).get_size_inches()) for data in datas}) == 1


@pytest.mark.parametrize(("scale", "train"), [(0, 1), (65, 1), (5, 0)])
def test_numbers_out_of_bounds_are_refused(scale, train):
    with pytest.raises(InputError):
        target_growth("half", scale, train)
    with pytest.raises(InputError):
        circuit_growth(tasks.get("copy"), None, scale, train)
