"""Where does an answer differ from the target? Both arrays side by side, and their difference.

`difference_figure` draws them, `difference_text` says the same in words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgcourse.errors import InputError

LARGEST = 64  # rows and columns of the picture
WRITTEN = 12  # arrays up to this size have their numbers written into the cells
TOLD = 5  # differences that the text tells


def as_matrix(array: Any) -> np.ndarray:
    """Return an array as a matrix: leading dimensions become rows.

    >>> as_matrix([1, 2, 3]).shape, as_matrix(np.zeros((2, 3, 4))).shape
    ((1, 3), (6, 4))
    """
    array = np.asarray(array)
    if array.dtype == bool:
        array = array.astype(np.int64)
    return array.reshape(1, -1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])


def difference_figure(got: Any, expected: Any, name: str = "your answer") -> Figure:
    """Draw an answer, the target and their difference; cells that differ are marked by a cross.

    Args:
        got: the answer, an array of numbers.
        expected: the target, of the same shape; the first 64 rows and columns are drawn.
        name: what the answer is called.

    Returns:
        A matplotlib `Figure` (not registered with pyplot); ``figure.alt`` says the same in words.

    Raises:
        InputError: the shapes differ, or there is nothing in the arrays.

    >>> difference_figure([[1, 2]], [[1, 3]]).alt
    'Your answer beside the target, shape (1, 2): 1 of 2 entries differ. At (0, 1): 2, not 3.'
    """
    text = difference_text(got, expected, name)
    one, two = (as_matrix(a)[:LARGEST, :LARGEST] for a in (got, expected))
    rows, columns = one.shape
    height = min(5.0, max(2.0, 1.1 + 2.6 * rows / columns))
    figure = Figure(figsize=(9.6, height), layout="constrained")
    axes = figure.subplots(1, 3)
    finite = np.concatenate([a[np.isfinite(a)].ravel() for a in (one, two)])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    wrong = differs(one, two)
    with np.errstate(invalid="ignore"):
        apart = one.astype(float) - two.astype(float)
    bound = float(np.abs(apart[np.isfinite(apart)]).max(initial=0.0)) or 1.0
    _draw(axes[0], one, name, low, high, "Greys")
    _draw(axes[1], two, "target", low, high, "Greys")
    # light where they agree, dark where they differ: readable in grey, too
    _draw(axes[2], np.where(wrong, np.abs(apart), 0.0), "difference", 0.0, bound, "Reds", apart)
    at = np.argwhere(wrong)
    for panel in axes[:2]:
        panel.plot(at[:, 1], at[:, 0], "x", color="#D55E00", markersize=7, markeredgewidth=1.6)
    figure.alt = text  # type: ignore[attr-defined]
    return figure


def _draw(
    axes: Axes,
    values: np.ndarray,
    title: str,
    low: float,
    high: float,
    colours: str,
    numbers: np.ndarray | None = None,
) -> None:
    span = (high - low) or 1.0
    shade = np.nan_to_num(values.astype(float), nan=high, posinf=high, neginf=low)
    # at most 0.55 of the scale: numbers in black stay readable
    axes.imshow(shade, cmap=colours, vmin=low, vmax=low + span / 0.55, aspect="auto")
    axes.set_title(title, size=10)
    axes.set_xticks(_ticks(values.shape[1]))
    axes.set_yticks(_ticks(values.shape[0]))
    axes.tick_params(labelsize=8)
    if max(values.shape) <= WRITTEN:
        for (i, j), value in np.ndenumerate(values if numbers is None else numbers):
            axes.text(j, i, f"{value:.3g}", ha="center", va="center", size=8)


def _ticks(count: int) -> list[int]:
    return list(range(0, count, max(1, -(-count // 12))))


def differs(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where two arrays differ; not-a-number equals itself, rounding does not count."""
    if got.dtype.kind in "fc" or expected.dtype.kind in "fc":
        return np.asarray(~np.isclose(got, expected, rtol=1e-5, atol=1e-6, equal_nan=True))
    return np.asarray(got != expected)


def difference_text(got: Any, expected: Any, name: str = "your answer") -> str:
    """Say in words what `difference_figure` shows."""
    one, two = np.asarray(got), np.asarray(expected)
    if one.shape != two.shape:
        raise InputError(f"arrays of one shape can be drawn, got {one.shape} and {two.shape}")
    if not one.size:
        raise InputError("there is nothing to draw: the arrays are empty")
    wrong = differs(one, two)
    places = np.argwhere(wrong)
    head = (
        f"{name[:1].upper()}{name[1:]} beside the target, shape {one.shape}: "
        f"{len(places)} of {one.size} entries differ."
    )
    told = []
    for place in places[:TOLD]:
        index = tuple(int(i) for i in place)
        told.append(f"At {index}: {one[index]:.6g}, not {two[index]:.6g}.")
    more = [f"And {len(places) - TOLD} more."] if len(places) > TOLD else []
    return " ".join([head, *told, *more])
