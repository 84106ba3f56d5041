"""How does a learned relation harden? Choose a head and an update."""

from __future__ import annotations

from typing import Any

import ipywidgets

from lgcourse.errors import InputError, whole_number
from lgcourse.show.gates import Gates, gates_figure
from lgcourse.show.trained import small_run
from lgcourse.show.widgets.html import Picture, box, choice, slider


def gates_viewer(gates: Any = None, head: int = 1, step: int = 1) -> ipywidgets.VBox:
    """Make a widget: choose a head and an update, see shares and cells as they harden.

    Args:
        gates: what a `lgcourse.show.gates.Recorder` kept; without it, a small model is trained,
            which takes some seconds.
        head: the head shown first.
        step: the update shown first.

    Returns:
        A `VBox` with a drop-down list, a slider and the picture.

    Raises:
        InputError: these are no gates, or there is no such head or update.
    """
    gates = small_run()[1] if gates is None else gates
    if not isinstance(gates, Gates):
        raise InputError(
            f"gates are what lgcourse.show.gates.Recorder keeps, got {type(gates).__name__}"
        )
    whole_number("head", head, 1, gates.heads)
    last = gates.steps[-1]
    which = choice("head", head, list(range(1, gates.heads + 1)))
    at = slider("update", whole_number("step", step, 1, last), 1, last)
    at.step = max(1, gates.steps[1] - gates.steps[0]) if len(gates.steps) > 1 else 1
    picture = Picture()

    def draw(_=None) -> None:
        picture.show(lambda: gates_figure(gates, which.value, at.value))

    for control in (which, at):
        control.observe(draw, "value")
    draw()
    return box([which, at], picture.widget)
