"""What does a wrong scale hint do? Choose the true scale and what the model is told."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ipywidgets

from lgcourse.errors import InputError
from lgcourse.show.hint import FAR, hint_data, hint_figure, hint_scores, hints_around
from lgcourse.show.widgets.attention import as_run, largest_of
from lgcourse.show.widgets.html import Picture, box, slider
from lgcourse.show.widgets.task import check_scale


def hint_explorer(run: Any = None, scale: int = 6, off: int = 0) -> ipywidgets.VBox:
    """Make a widget: choose the true scale and a hint, see what is named, said and scored.

    Args:
        run: a `LoadedRun` whose embedding is given the scale, of a task with one size; without one,
            a small model is trained, which takes some seconds.
        scale: the true scale shown first.
        off: by how much the hint is wrong at first, -3..3.

    Returns:
        A `VBox` with three sliders (scale, error of the hint, sample) and the picture.

    Raises:
        InputError: the run takes no Scale Hint or has several sizes, or a number lies outside.
    """
    run = as_run(run)
    if run.task.sizes != 1:
        raise InputError(
            f"the hint explorer shows tasks with one size, task '{run.task.name}' has "
            f"{run.task.sizes}"
        )
    most = largest_of(run)
    check_scale("hint explorer", "scales", scale, most)
    if isinstance(off, bool) or not isinstance(off, int) or not -FAR <= off <= FAR:
        raise InputError(f"the hint explorer shows hints off by -{FAR}..{FAR}, got {off!r}")
    size, wrong = slider("true scale n", scale, 1, most), slider("hint minus n", off, -FAR, FAR)
    sample = slider("sample", 1, 0, 20)
    picture = Picture()

    @lru_cache
    def scores(n: int) -> dict[int, float]:
        return hint_scores(run, n, hints_around(n))

    def figure():
        n = size.value
        told = max(1, n + wrong.value)
        return hint_figure(hint_data(run, n, told, scores(n), sample.value))

    figure()  # a run without a hint is refused here
    for control in (size, wrong, sample):
        control.observe(lambda _: picture.show(figure), "value")
    picture.show(figure)
    return box([size, wrong, sample], picture.widget)
