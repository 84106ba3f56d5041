"""How does the number of a target's operators grow? Edit a target, see its map and its curve."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets
import numpy as np

from lgcourse.errors import unknown_name, whole_number
from lgcourse.show.growth import growth_figure, target_growth
from lgcourse.show.widgets.html import Picture, box, choice, slider
from lgcourse.theory import targets
from lgcourse.theory.target import Target

LARGEST, SIZES = 30, 12  # largest scale, and largest size k


def _band(k: int) -> Target:
    return Target(f"band of {k}", lambda i, j, n: np.where(i - j < k, i - j + 1, 0))


def _block(k: int) -> Target:
    return Target(f"blocks of {k}", lambda i, j, n: np.where(i // k == j // k, 1, 0))


def _spread(k: int) -> Target:
    return Target(f"y_i = x_(i//{k})", lambda i, j, n: np.where(j == i // k, 1, 0))


def _clock(k: int) -> Target:
    return Target(f"y_i = (i mod {k} + 1) x_i", lambda i, j, n: np.where(i == j, i % k + 1, 0))


def _slow(k: int) -> Target:
    return Target(f"y_i = (i//{k} + 1) x_i", lambda i, j, n: np.where(i == j, i // k + 1, 0))


def _turn(k: int) -> Target:
    angle = 2 * np.pi * np.arange(k) / k
    turns = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1)
    turns = turns.reshape(k, 2, 2).round(12)
    return Target(f"turns by (i - j)/{k} of a circle", lambda i, j, n: turns[(i - j) % k], (2, 2))


KINDS: dict[str, Callable[[int], Target]] = {
    "band of k distances": _band,
    "blocks of size k": _block,
    "x at i // k": _spread,
    "factor i mod k": _clock,
    "factor i // k": _slow,
    "turns, k to a circle": _turn,
}


def lrc_explorer(
    kind: str = "factor i mod k", size: int = 4, scale: int = 12, train_scale: int = 6
) -> ipywidgets.VBox:
    """Make a widget: edit a target's kind and size, see its operators and both readings of LRC.

    Args:
        kind: the kind shown first, one of `KINDS` or a named target, whose size does not matter.
        size: its size k, 1..12.
        scale: the largest scale shown first, 1..30.
        train_scale: training shows scales up to this one, 1..30.

    Returns:
        A `VBox` with a drop-down list, three sliders and the picture.

    Raises:
        InputError: the kind is unknown, or a number lies outside.

    >>> "operators: 1 at 1, 2 at 2, 3 at 3..12" in lrc_explorer(size=3).children[-1].value
    True
    """
    known = [*KINDS, *targets.names()]
    if kind not in known:
        raise unknown_name("kind of target", kind, known)
    which = choice("target", kind, known)
    k = slider("size k", whole_number("size", size, 1, SIZES), 1, SIZES)
    n = slider("scale n", whole_number("scale", scale, 1, LARGEST), 1, LARGEST)
    whole_number("train_scale", train_scale, 1, LARGEST)
    trained = slider("training up to", train_scale, 1, LARGEST)
    picture = Picture()

    def draw(_=None) -> None:
        make = KINDS.get(which.value)
        k.disabled = make is None  # a named target has no size
        target = targets.get(which.value) if make is None else make(k.value)
        picture.show(lambda: growth_figure(target_growth(target, n.value, trained.value)))

    for control in (which, k, n, trained):
        control.observe(draw, "value")
    draw()
    return box([which, k, n, trained], picture.widget)
