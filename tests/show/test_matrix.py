"""The grid of predictions and measurements says in words what it draws, and marks differences."""

import pytest

from lgcourse import InputError
from lgcourse.show.matrix import matrix_figure, matrix_text

CELLS = {
    ("copy", "rpe"): ("fails", "generalises"),
    ("copy", "t5"): ("fails", "fails"),
    ("sort", "rpe"): ("not covered", "generalises"),
    ("sort", "t5"): ("generalises", "not trained"),
}


def test_only_cells_with_both_verdicts_can_differ():
    text = matrix_text(CELLS)
    assert "2 cells have both: they agree in 1 and differ in 1." in text
    assert "Differ: copy with rpe" in text and "sort with" not in text.split("copy:")[0]


def test_each_difference_has_one_star():
    axes = matrix_figure(CELLS).axes[0]
    assert [t.get_position() for t in axes.texts if t.get_text() == "*"] == [(0.5, 0.5)]
    agreed = {**CELLS, ("copy", "rpe"): ("fails", "fails")}
    assert not [t for t in matrix_figure(agreed).axes[0].texts if t.get_text() == "*"]


def test_wrong_cells_are_refused():
    with pytest.raises(InputError, match="no cell"):
        matrix_figure({})
    with pytest.raises(InputError, match="unknown verdict"):
        matrix_figure({("copy", "rpe"): ("fails", "maybe")})
