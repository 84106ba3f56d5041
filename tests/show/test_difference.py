"""Does the picture of a difference mark just the entries that differ, and say the same in words?"""

from __future__ import annotations

import numpy as np
import pytest

from lgcourse.errors import InputError
from lgcourse.show.difference import as_matrix, difference_figure, difference_text


def crosses(figure, panel=0):
    (marks,) = figure.axes[panel].lines
    return sorted(zip(marks.get_ydata().astype(int), marks.get_xdata().astype(int), strict=True))


def test_crosses_stand_where_entries_differ():
    expected = np.arange(12.0).reshape(3, 4)
    got = expected.copy()
    got[0, 1], got[2, 3] = 9.0, np.nan
    figure = difference_figure(got, expected)
    assert crosses(figure, 0) == crosses(figure, 1) == [(0, 1), (2, 3)]
    assert [axes.get_title() for axes in figure.axes] == ["your answer", "target", "difference"]
    assert "2 of 12 entries differ. At (0, 1): 9, not 1. At (2, 3): nan, not 11." in figure.alt


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([True, False], [True, True]),
        (3, 4),
        (np.zeros((2, 3, 4)), np.ones((2, 3, 4))),
        (np.full((2, 2), np.nan), np.zeros((2, 2))),
        (np.full((1, 2), np.inf), np.zeros((1, 2))),
        (np.zeros((200, 300)), np.ones((200, 300))),
    ],
)
def test_arrays_of_every_form_are_drawn(got, expected):
    figure = difference_figure(got, expected)
    figure.canvas.draw()
    shown = as_matrix(got)[:64, :64]
    assert figure.axes[0].images[0].get_array().shape == shown.shape
    assert (
        len(crosses(figure))
        == (np.asarray(got) != np.asarray(expected)).reshape(as_matrix(got).shape)[:64, :64].sum()
    )


def test_numbers_stand_in_the_cells_of_small_arrays():
    figure = difference_figure([[1.0, 2.5]], [[1.0, 2.0]])
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert texts == [["1", "2.5"], ["1", "2"], ["0", "0.5"]]
    assert not difference_figure(np.zeros((13, 2)), np.ones((13, 2))).axes[0].texts


def test_equal_arrays_have_no_cross():
    same = np.array([[np.nan, 1.0], [np.inf, 0.0]])
    figure = difference_figure(same, same)
    assert crosses(figure) == [] and "0 of 4 entries differ." in figure.alt
    assert "0 of 1 entries" in difference_text([0.1 + 0.2], [0.3]), "rounding is no difference"


def test_many_differences_are_counted():
    text = difference_text(np.zeros(9), np.ones(9))
    assert text.count("At (") == 5 and text.endswith("And 4 more.")


def test_what_cannot_be_drawn_is_told():
    with pytest.raises(InputError, match=r"got \(2,\) and \(3,\)"):
        difference_figure([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="empty"):
        difference_text([], [])
