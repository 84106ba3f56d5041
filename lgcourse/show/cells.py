"""How are squares of query x key drawn quickly? One image, few ticks, and frames in one collection.

Shared by the figures that widgets redraw at every move: a picture takes some tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

TICKS = 16  # labels of an axis, at most: text is what takes time
FUTURE = "#FFFFFF"
Array = np.ndarray


def draw_cells(
    axes: Axes,
    colours: Float[Array, "r c 3"],
    rows: Sequence[str],
    columns: Sequence[str],
    ticks: int = TICKS,
    square: bool = False,
    line: str = "white",
) -> tuple[float, float]:
    """Draw a matrix of colours with names at some of its rows and columns.

    Args:
        axes: the axes; cell (r, c) covers r..r+1 from the top and c..c+1 from the left.
        colours: red, green and blue of each cell, 0..1.
        rows, columns: one name each.
        ticks: most names that are written along an axis.
        square: whether all cells are squares; else they fill the axes.
        line: colour of the lines between cells that are large enough to have them.

    Returns:
        Width and height of a cell in points.
    """
    count_r, count_c = colours.shape[:2]
    axes.imshow(
        colours, extent=(0, count_c, count_r, 0), aspect="auto", interpolation="nearest", zorder=0
    )
    width, height = cell_size(axes, max(1, count_c), max(1, count_r))
    if square:
        width = height = min(width, height)
        axes.set(xlim=(0, _points(axes)[0] / width), ylim=(_points(axes)[1] / height, 0))
    axes.set_axis_off()
    _name(axes, columns, ticks, width, "top" if square else "bottom")
    _name(axes, rows, ticks, height, "left")
    if min(width, height) >= 7:
        lines: dict[str, Any] = {"colors": line, "linewidth": 0.7, "zorder": 1}
        axes.vlines(range(1, count_c), 0, count_r, **lines)
        axes.hlines(range(1, count_r), 0, count_c, **lines)
    return width, height


def _name(axes: Axes, names: Sequence[str], most: int, cell: float, side: str) -> None:
    """Write names beside rows or columns."""
    step = ceil(len(names) / most)
    room = 99 if side == "left" else max(2, int(step * cell / 4.5))  # characters
    shown = [p for p in range(0, len(names), step) if len(names[p]) <= room]
    words = [names[p] for p in shown]
    if side == "left":
        points = [(-0.008, p + 0.5) for p in shown]
        write_each(axes, words, points, 7, axes.get_yaxis_transform(), ha="right")
    else:
        y, va = (1.01, "bottom") if side == "top" else (-0.012, "top")
        points = [(p + 0.5, y) for p in shown]
        write_each(axes, words, points, 7, axes.get_xaxis_transform(), va=va)


def name_axes(axes: Axes, rows: str, columns: str, title: str = "") -> None:
    """Write what the rows and columns of `draw_cells` are, and a title above them."""
    words: dict[str, Any] = {"size": 8.5, "transform": axes.transAxes, "clip_on": False}
    axes.text(0.5, -0.07, columns, ha="center", va="top", **words)
    axes.text(-0.07, 0.5, rows, ha="right", va="center", rotation=90, **words)
    axes.text(-0.1, 1.03, title, va="bottom", **words)


# --- many different texts -------------------------------------------------------------------------
class Words(PathCollection):
    """Texts as outlines, all in one collection.

    Attributes:
        words: the texts.
    """

    words: list[str]


def write_each(
    axes: Axes,
    words: Sequence[str],
    points: Sequence[tuple[float, float]],
    size: Any,
    transform: Any = None,
    colour: str = "black",
    weight: str = "normal",
    style: str = "normal",
    ha: str = "center",
    va: str = "center",
) -> None:
    """Write one short text at each point: a tenth of the time that single texts take.

    Outlines are kept, so a widget that is moved finds most of them again.

    Args:
        axes: the axes.
        words: the texts.
        points: where each goes.
        size: font size in points, one for all or one for each.
        transform: of the points; data coordinates by default.
        colour, weight, style: of the texts.
        ha, va: which end of a text is at its point: center, left, right; center, top, bottom.
    """
    figure = axes.get_figure()
    assert figure is not None
    sizes = np.broadcast_to(np.asarray(size, dtype=float), len(words)).tolist()
    outlines = [
        outline(word, own, weight, style, ha, va) for word, own in zip(words, sizes, strict=True)
    ]
    collection = Words(
        outlines,
        offsets=np.array(points).reshape(-1, 2),
        offset_transform=axes.transData if transform is None else transform,
        facecolors=colour,
        linewidths=0,
        zorder=4,
        clip_on=False,
        snap=False,  # snapped to pixels, small texts lose strokes
    )
    collection.words = list(words)
    collection.set_transform(Affine2D().scale(1 / 72) + figure.dpi_scale_trans)  # from points
    axes.add_collection(collection, autolim=False)


@lru_cache(maxsize=8192)
def outline(word: str, size: float, weight: str, style: str, ha: str, va: str) -> Path:
    """Return a text as a path in points, with its anchor at (0, 0)."""
    look: Any = {"weight": weight, "style": style}
    font = FontProperties(**look)
    path = TextPath((0, 0), word, size=size, prop=font)
    if not len(path.vertices):
        return path
    low, high = path.vertices[:, 0].min(), path.vertices[:, 0].max()
    x = {"left": low, "center": (low + high) / 2, "right": high}[ha]
    # by the height of digits, not of each text: all of a row stand on one line
    y = {"bottom": -0.1, "center": 0.36, "top": 0.85}[va] * size
    return Path(path.vertices - (x, y), path.codes)


# --- places ---------------------------------------------------------------------------------------
def cell_size(axes: Axes, columns: int, rows: int) -> tuple[float, float]:
    """Return width and height in points of a cell if so many fill the axes."""
    width, height = _points(axes)
    return width / columns, height / rows


def _points(axes: Axes) -> tuple[float, float]:
    figure, box = axes.get_figure(), axes.get_position()
    assert figure is not None
    wide, high = figure.get_size_inches()  # type: ignore[union-attr]
    return wide * box.width * 72, high * box.height * 72


def frame_cells(
    axes: Axes, places: Iterable[tuple[int, int]], cell: float, dashed: bool = False
) -> None:
    """Frame cells (row, column): a light line below a black one, seen on light and dark cells."""
    boxes = [_corners(row, column) for row, column in places]
    thick = float(np.clip(0.15 * cell, 0.6, 1.7))
    style: Any = (0, (1.6, 1.1)) if dashed else "-"
    dark = {"edgecolor": "black", "linewidth": thick, "linestyle": style}
    light = {"edgecolor": "white", "linewidth": 2.2 * thick}
    for look in (light, dark) if cell >= 5 else (dark,):  # small cells: the colour must be seen
        frames = PolyCollection(boxes, facecolor="none", zorder=3, **look)
        axes.add_collection(frames, autolim=False)


def _corners(row: int, column: int) -> list[tuple[float, float]]:
    low, high = 0.06, 0.94
    return [
        (column + low, row + low), (column + high, row + low),
        (column + high, row + high), (column + low, row + high),
    ]  # fmt: skip


def palette(colours: Sequence[str]) -> Float[Array, "k 3"]:
    """Return colours as red, green and blue in 0..1, one row each.

    >>> palette(["#FFFFFF", "#000000"]).tolist()
    [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    return np.array([to_rgb(colour) for colour in colours]).reshape(-1, 3)
