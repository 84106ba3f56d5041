"""Where does a trained model look as the scale grows? Choose a head and a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets

from lgcourse.errors import InputError
from lgcourse.relations.base import sizes_of
from lgcourse.show.attention import attention_figure
from lgcourse.show.trained import small_run
from lgcourse.show.widgets.html import Picture, box, choice, slider
from lgcourse.show.widgets.task import check_scale, largest
from lgcourse.training.runs import LoadedRun

LARGEST = 30  # largest scale
LONGEST = 120  # tokens of the longest sequence


def as_run(run: Any) -> LoadedRun:
    """Return a run; refuse anything else, and train a small one where none is given."""
    if run is None:
        return small_run()[0]
    if not isinstance(run, LoadedRun):
        raise InputError(
            f"a run is what lgcourse.training.load_run returns, got {type(run).__name__}"
        )
    return run


def largest_of(run: LoadedRun) -> int:
    """Return the largest scale that a run can take and that can be shown."""
    made_for = min(sizes_of(run.settings.largest))
    return largest(run.task, min(LARGEST, made_for), LONGEST)


def attention_viewer(run: Any = None, scale: int = 6) -> ipywidgets.VBox:
    """Make a widget: choose a head and a scale, see its attention and the ideal relation over it.

    Args:
        run: a `LoadedRun`, or a dictionary label -> run; without one, a small model is trained,
            which takes some seconds.
        scale: the scale shown first.

    Returns:
        A `VBox` with drop-down lists (run, head), sliders (scale, sample) and the picture.

    Raises:
        InputError: there is no run, something else than a run, or the scale lies outside.
    """
    runs = dict(run) if isinstance(run, Mapping) else {"": run}
    if not runs:
        raise InputError("the dictionary of runs is empty; give at least one run, or none at all")
    known = {label: as_run(one) for label, one in runs.items()}
    known = {
        label or f"{one.settings.task}, {one.settings.pe}": one for label, one in known.items()
    }
    first = next(iter(known.values()))
    check_scale("attention viewer", "scales", scale, largest_of(first))
    of = choice("run", first, list(known.items()))
    head = choice("head", (1, 1), _heads(first))
    size, sample = slider("scale n", scale, 1, largest_of(first)), slider("sample", 1, 0, 20)
    picture = Picture()
    busy = False

    def draw(_=None) -> None:
        if not busy:
            at = of.value.task.scale_of(size.value)
            layer, number = head.value
            picture.show(lambda: attention_figure(of.value, at, layer, number, sample.value))

    def choose(_) -> None:
        nonlocal busy
        busy = True
        size.max, head.options = largest_of(of.value), _heads(of.value)
        busy = False
        draw()

    of.observe(choose, "value")
    for control in (head, size, sample):
        control.observe(draw, "value")
    draw()
    controls = [head, size, sample] if len(known) == 1 else [of, head, size, sample]
    return box(controls, picture.widget)


def _heads(run: LoadedRun) -> list[tuple[str, tuple[int, int]]]:
    layers = len(run.model.blocks) * run.settings.loops
    return [
        (f"layer {layer}, head {head}", (layer, head))
        for layer in range(1, layers + 1)
        for head in range(1, run.settings.heads + 1)
    ]
