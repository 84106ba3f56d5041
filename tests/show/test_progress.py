"""Does the picture of a training show the numbers that it was given?"""

from __future__ import annotations

import pytest

from lgcourse.errors import InputError
from lgcourse.show.progress import training_figure, training_text

LOSSES = {1: 2.5, 10: 0.5, 20: 0.02}
SCORES = {10: {5: 0.5, 20: 0.0}, 20: {5: 1.0, 20: 0.25}}


def test_the_lines_are_the_numbers():
    left, right = training_figure(LOSSES, SCORES, 40, 5).axes
    assert list(left.lines[0].get_xdata()) == [1, 10, 20]
    assert list(left.lines[0].get_ydata()) == [2.5, 0.5, 0.02]
    assert [list(line.get_ydata()) for line in right.lines] == [[0.5, 1.0], [0.0, 0.25]]
    assert [line.get_label() for line in right.lines] == ["scale 5 (trained)", "scale 20"]
    assert left.get_xlim() == right.get_xlim() == (0, 40)


def test_lines_differ_in_more_than_colour():
    _, right = training_figure(LOSSES, SCORES, 40, 5).axes
    looks = {(line.get_marker(), line.get_linestyle()) for line in right.lines}
    assert len(looks) == 2


def test_nothing_yet():
    figure = training_figure({}, {}, 40, 5)
    assert figure.alt.endswith("Not started.")  # type: ignore[attr-defined]


def test_a_training_longer_than_planned_is_refused():
    with pytest.raises(InputError, match=r"updates lie in 0\.\.10, got 20"):
        training_text(LOSSES, SCORES, 10, 5)


def test_scores_of_different_scales_are_refused():
    with pytest.raises(InputError, match="the same scales"):
        training_text({}, {1: {5: 1.0}, 2: {6: 1.0}}, 10, 5)
