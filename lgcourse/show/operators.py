"""Which operator does a target put on which pair of positions, and did a fitted POLA learn it?

`operators_figure` draws the triangle of operators A(i, j, n), equal operators in one colour and
with one number, counted from 1. `operators_data` holds what is drawn, `operators_text` says it in
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Polygon, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from lgcourse.errors import InputError
from lgcourse.show.curves import COLOURS
from lgcourse.show.layout import Role, _lighter, ink
from lgcourse.theory.adapters import as_target
from lgcourse.theory.pola import ideal_relation_of
from lgcourse.theory.target import Array, checked_scale

WIDTH, HEIGHT = 9.6, 5.5  # inches
LARGEST = 64  # largest scale: beyond it cells are smaller than what can be seen
ZERO, NEITHER = -1, -2  # no operator there; a value that is no operator of the target
BLANK, GREY = "#FFFFFF", "#D9D9D9"
FRAMED = "framed"  # a box of the key that shows how a difference looks
TOLD = 6  # operators that the text tells before it leaves some out
Entry = tuple[Role | None, str]  # a line of a key


@dataclass(frozen=True)
class OperatorData:
    """What `operators_figure` draws.

    Args:
        name: the target's name.
        scale: the scale n.
        operators: the distinct non-zero operators on scales <= n, in order of appearance; their
            number is LRC_op.
        ids: which of them stands at (i, j); ZERO for the zero operator and for j > i.
        fitted_name: what the fitted model is called, or nothing.
        fitted: its coefficients, or None.
        fitted_ids: which operator a coefficient equals up to the tolerance; ZERO, or NEITHER for
            other values.
        differs: whether a coefficient differs from the target by more than the tolerance.
    """

    name: str
    scale: int
    operators: Shaped[Array, "k p d"]
    ids: Int[Array, "n n"]
    fitted_name: str = ""
    fitted: Float[Array, "n n p d"] | None = None
    fitted_ids: Int[Array, "n n"] | None = None
    differs: Bool[Array, "n n"] | None = None

    @property
    def present(self) -> list[int]:
        """The ids that occur at this scale, in order."""
        return np.unique(self.ids[self.ids != ZERO]).tolist()


def operators_data(
    target: Any, scale: int, pola: Any = None, tolerance: float = 1e-4
) -> OperatorData:
    """Number the operators of a target at one scale, and compare a fitted model with them.

    Args:
        target: a name, an array, a function (i, j, n), a linear map: see
            `lgcourse.theory.adapters.as_target`.
        scale: the scale n, up to 64.
        pola: a fitted `POLA` or `CodedPOLA`, or the `Fit` that its ``fit`` returned; or None.
        tolerance: a coefficient differs if one of its entries is off by more than this share of the
            target's largest entry.

    Returns:
        An `OperatorData`.

    Raises:
        InputError: the target or the scale cannot be used, or the model has operators of another
            shape or a relation made for fewer positions.

    >>> operators_data("half", 4).ids.tolist()
    [[0, -1, -1, -1], [0, -1, -1, -1], [-1, 0, -1, -1], [-1, 0, -1, -1]]
    """
    target, scale = as_target(target), checked_scale(scale)
    if scale > LARGEST:
        raise InputError(f"the picture shows scales up to {LARGEST}, got {scale}")
    relation = ideal_relation_of(target, scale)
    at = torch.arange(scale)
    ids = relation(at, at, scale).numpy()
    ids = np.where(ids == relation.other, ZERO, ids)
    operators = relation.table.operators().reshape(-1, *target.shape)
    data = OperatorData(target.name, scale, operators, ids)
    return data if pola is None else _compared(data, target, pola, tolerance)


def _compared(data: OperatorData, target, pola, tolerance: float) -> OperatorData:
    pola = getattr(pola, "pola", pola)  # a Fit holds its model
    if not callable(getattr(pola, "coefficients", None)):
        raise InputError(f"pola is a fitted POLA or CodedPOLA, got {type(pola).__name__}")
    with torch.no_grad():
        fitted = pola.coefficients(data.scale).double().cpu().numpy()
    if fitted.shape[2:] != target.shape:
        raise InputError(
            f"the operators of target '{data.name}' are {_by(target.shape)}, those of the model "
            f"{_by(fitted.shape[2:])}"
        )
    wanted = target.dense(data.scale)
    slack = tolerance * (abs(wanted).max() or 1.0)
    differs = abs(fitted - wanted).max(axis=(2, 3)) > slack
    ids = np.where(differs, _nearest(data, fitted, slack), data.ids)
    name = getattr(getattr(pola, "relation", None), "name", "code")
    return replace(data, fitted_name=name, fitted=fitted, fitted_ids=ids, differs=differs)


def _nearest(data: OperatorData, fitted: Array, slack: float) -> Int[Array, "n n"]:
    """Return the id of the operator that each coefficient equals, ZERO, or NEITHER."""
    best, ids = abs(fitted).max(axis=(2, 3)), np.full(fitted.shape[:2], ZERO)
    for id, operator in enumerate(data.operators.astype(np.float64)):
        distance = abs(fitted - operator).max(axis=(2, 3))
        ids, best = np.where(distance < best, id, ids), np.minimum(distance, best)
    return np.where(best <= slack, ids, NEITHER)


def _by(shape) -> str:
    return " x ".join(map(str, shape))


# --- in words -------------------------------------------------------------------------------------
def operators_text(target: Any, scale: int, pola: Any = None, tolerance: float = 1e-4) -> str:
    """Say in words what `operators_figure` shows.

    >>> operators_text("half", 4)
    'Operators of target half at scale 4, a triangle of 10 pairs (query i, key j <= i): 1 operator
    besides zero. Operator 1 = 1 at 4 pairs: (0, 0), (1, 0), (2, 1), (3, 1). The zero operator at 6
    pairs.'
    """
    return _text(operators_data(target, scale, pola, tolerance))


def _text(data: OperatorData) -> str:
    n = data.scale
    pairs, count = n * (n + 1) // 2, len(data.present)
    parts = [
        f"Operators of target {data.name} at scale {n}, a triangle of {_some(pairs, 'pair')} "
        f"(query i, key j <= i): {_some(count, 'operator')} besides zero."
    ]
    for id in data.present[: TOLD if count > TOLD + 1 else None]:
        where = np.argwhere(data.ids == id)
        value = show_operator(data.operators[id])
        parts.append(
            f"Operator {id + 1} = {value} at {_some(len(where), 'pair')}: {_pairs(where)}."
        )
    if count > TOLD + 1:
        parts.append(f"{count - TOLD} operators are left out here.")
    zeros = pairs - int((data.ids != ZERO).sum())
    parts.append(f"The zero operator at {_some(zeros, 'pair')}.")
    if data.fitted is None or data.differs is None:
        return " ".join(parts)
    differing = np.argwhere(data.differs)
    start = f"The fitted model ({data.fitted_name}) differs at {len(differing)} of {pairs} pairs"
    if not len(differing):
        return " ".join([*parts, f"{start}."])
    i, j = differing[0].tolist()
    wanted = "0" if data.ids[i, j] == ZERO else show_operator(data.operators[data.ids[i, j]])
    found = show_operator(data.fitted[i, j])
    parts.append(
        f"{start}: {_pairs(differing)}. The first one is {found} there instead of {wanted}."
    )
    return " ".join(parts)


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _pairs(where: Array, most: int = 5) -> str:
    shown = [f"({i}, {j})" for i, j in where[: most if len(where) > most + 1 else None].tolist()]
    left = len(where) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def show_operator(operator: Array) -> str:
    """Write an operator in few characters: a number, or the rows of a matrix.

    >>> show_operator(np.array([[2.0]])), show_operator(np.array([[1, 2], [0, 1 / 3]]))
    ('2', '[1 2; 0 0.333]')
    """
    rows = [[_short(value) for value in row] for row in operator.tolist()]
    if len(rows) == len(rows[0]) == 1:
        return rows[0][0]
    if operator.size > 9:
        return f"a {_by(operator.shape)} matrix with first entry {rows[0][0]}"
    return f"[{'; '.join(' '.join(row) for row in rows)}]"


def _short(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# --- drawing --------------------------------------------------------------------------------------
def operators_figure(
    target: Any, scale: int, pola: Any = None, tolerance: float = 1e-4, title: str = ""
) -> Figure:
    """Draw the operators A(i, j, n) of a target as a triangle, and a fitted model beside it.

    Equal operators have one colour and one number (written where it fits), zero operators are
    blank. In the model's triangle, cells that differ from the target have a frame and a black
    corner; a coefficient that equals another operator has that one's colour and number.

    Args:
        target: see `operators_data`.
        scale: the scale n, up to 64.
        pola: a fitted model or what its ``fit`` returned, or None; see `operators_data`.
        tolerance: what counts as a difference, see `operators_data`.
        title: title of the figure.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: see `operators_data`.

    >>> from lgcourse import relations, theory
    >>> fit = theory.POLA(relations.build("rpe", positions=16), 1, 1).fit("band", range(1, 9))
    >>> operators_figure("band", 16, fit).alt.split(". ")[-1]
    'The fitted model (rpe) differs at 0 of 136 pairs.'
    """
    data = operators_data(target, scale, pola, tolerance)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    if title:
        figure.text(0.05, 0.965, title, size=11.5, va="center")
    left, right = (figure.add_axes((x, 0.07, 0.435, 0.8)) for x in (0.05, 0.55))
    count = f"{_some(len(data.present), 'operator')} besides zero"
    _triangle(left, data, data.ids, f"Target {data.name}, scale {data.scale}: {count}")
    if data.fitted_ids is None:
        right.set_axis_off()
        _draw_key(right, 0.0, _operator_key(data, 22))
    else:
        assert data.differs is not None
        number, pairs = int(data.differs.sum()), data.scale * (data.scale + 1) // 2
        words = f"Fitted POLA ({data.fitted_name}): {number} of {pairs} pairs differ"
        cell = _triangle(right, data, data.fitted_ids, words)
        _differences(right, data, cell)
        _draw_key(left, 0.48, _operator_key(data, 8))  # more would cover cells
        _draw_key(right, 0.48, _difference_key(data))
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure


def shade(id: int) -> str:
    """Return the colour of an id: seven colours, then the same ones lighter, then again.

    >>> shade(0) == shade(14), len({shade(id) for id in range(14)})
    (True, 14)
    """
    colour = COLOURS[id % len(COLOURS)]
    return _lighter(colour) if id // len(COLOURS) % 2 else colour


def _triangle(axes: Axes, data: OperatorData, ids: Array, words: str) -> float:
    """Draw a triangle of ids with their numbers; return the size of a cell in points."""
    n = data.scale
    rows = max(n, 7)  # few positions: cells of a usual size
    colours = np.ones((n, n, 3))
    places: dict[int, list[tuple[float, float]]] = {}
    for i, j in zip(*np.tril_indices(n), strict=True):
        id = int(ids[i, j])
        colours[i, j] = to_rgb({ZERO: BLANK, NEITHER: GREY}.get(id, shade(id)))
        if id >= 0:
            places.setdefault(id, []).append((j + 0.5, i + 0.5))
    cell = _square(axes, rows)
    line: dict[str, Any] = {"edgecolors": "0.8", "linewidth": 0.5} if cell > 4 else {}
    for row in range(n):  # white cells need their lines, cells above the diagonal have none
        edges = np.arange(row + 2)
        axes.pcolormesh(edges, [row, row + 1], colours[row : row + 1, : row + 1], **line)
    for id, points in places.items():
        size = text_size(str(id + 1), cell, cell)
        if size:
            write_many(axes, str(id + 1), points, size, ink(shade(id)))
    _ticks(axes, n)
    axes.set_title(words, size=9.5, loc="left", pad=8)
    return cell


def write_many(
    axes: Axes,
    text: str,
    points: Sequence[tuple[float, float]],
    size: float,
    colour: str,
    weight: str = "bold",
) -> None:
    """Write one text at many points: one collection, since single texts are slow.

    Args:
        axes: the axes.
        text: the text, a few characters.
        points: where its middle goes, in data coordinates.
        size: font size in points.
        colour: colour of the text.
        weight: ``"bold"`` or ``"normal"``.
    """
    figure = axes.get_figure()
    assert figure is not None
    texts = PathCollection(
        [_outline(text, size, weight)],
        offsets=points,
        offset_transform=axes.transData,
        facecolors=colour,
        linewidths=0,
        zorder=4,
        snap=False,  # snapped to pixels, small texts lose strokes
    )
    texts.set_gid(text)
    texts.set_transform(Affine2D().scale(1 / 72) + figure.dpi_scale_trans)  # from points
    axes.add_collection(texts, autolim=False)


@lru_cache(maxsize=512)
def _outline(text: str, size: float, weight: str) -> Path:
    """Return a text as a path in points, its middle at (0, 0)."""
    path = TextPath((0, 0), text, size=size, prop=FontProperties(weight=weight))
    low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
    return Path(path.vertices - (low + high) / 2, path.codes)


def text_size(text: str, width: float, height: float, largest: float = 9.0) -> float:
    """Return the size at which a bold text fits a cell (all in points); 0 if below 4."""
    size = min(largest, 0.88 * width / (0.7 * max(1, len(text))), 0.62 * height)
    return size if size >= 4 else 0.0


def _square(axes: Axes, rows: int) -> float:
    """Give a triangle square cells; return the size of one in points."""
    box = axes.get_position()
    width, height = WIDTH * box.width * 72, HEIGHT * box.height * 72
    cell = min(width, height) / rows
    axes.set(xlim=(0, width / cell), ylim=(height / cell, 0))
    return cell


def _ticks(axes: Axes, n: int) -> None:
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.spines["bottom"].set_position(("data", n))
    at = range(0, n, ceil(n / 22))
    axes.set_xticks([p + 0.5 for p in at], [str(p) for p in at], size=7)
    axes.set_yticks([p + 0.5 for p in at], [str(p) for p in at], size=7)
    axes.tick_params(length=0, pad=2)
    axes.set_ylabel("query i", size=8.5, labelpad=2)
    axes.yaxis.set_label_coords(-0.055, 1 - n / (2 * axes.get_ylim()[0]))
    axes.text(n / 2, n + 0.062 * axes.get_ylim()[0], "key j", size=8.5, ha="center", va="top")


def _operator_key(data: OperatorData, lines: int) -> list[Entry]:
    """List the operators with colour and number, in up to so many lines."""
    shown = data.present if len(data.present) < lines else data.present[: lines - 2]
    entries: list[Entry] = [(None, "number in a cell: operator A(i, j, n)")]
    entries += [
        (Role(str(id + 1), shade(id), ""), f"= {_cut(data.operators[id])}") for id in shown
    ]  # fmt: skip
    if len(shown) < len(data.present):
        entries.append((None, f"... and {len(data.present) - len(shown)} more"))
    if np.any(data.ids[np.tril_indices(data.scale)] == ZERO):
        entries.append((Role("", BLANK, ""), "zero operator"))
    return entries


def _difference_key(data: OperatorData) -> list[Entry]:
    assert data.differs is not None and data.fitted_ids is not None
    if not data.differs.any():
        return [(None, "every pair as in the target")]
    entries: list[Entry] = [(Role(FRAMED, BLANK, ""), "frame and corner: it differs")]
    if (data.fitted_ids == NEITHER).any():
        entries.append((Role("", GREY, ""), "no operator of the target"))
        if data.operators[0:1].size < 2:  # matrices do not fit
            entries.append((None, "number in a grey cell: its value"))
    return entries


def _draw_key(axes: Axes, x: float, entries: Sequence[Entry]) -> None:
    """Write a key from the top down, its left edge at a share x of the axes' width."""
    height = 13 / (HEIGHT * axes.get_position().height * 72)
    for line, (role, words) in enumerate(entries):
        middle = 0.985 - (line + 0.5) * height
        if role is not None:
            key_box(axes, (x, middle - 0.42 * height), (0.06, 0.84 * height), role)
        place: dict[str, Any] = {"transform": axes.transAxes, "va": "center_baseline", "size": 8}
        axes.text(x if role is None else x + 0.075, middle, words, **place)


def key_box(
    axes: Axes, corner: tuple[float, float], size: tuple[float, float], role: Role, **style
) -> None:
    """Draw one coloured box of a key with its letter, or framed; places in shares of the axes."""
    look: dict[str, Any] = {"facecolor": role.colour, "edgecolor": "0.6", "linewidth": 0.5, **style}
    if role.letter == FRAMED:
        look |= {"edgecolor": "black", "linewidth": 1.6}
        x, y = corner[0] + size[0], corner[1] + size[1]
        triangle = [(x, y), (x - 0.3 * size[0], y), (x, y - 0.4 * size[1])]
        mark = Polygon(triangle, facecolor="black", transform=axes.transAxes, zorder=3)
        axes.add_patch(mark)
    axes.add_patch(Rectangle(corner, *size, transform=axes.transAxes, **look))
    if role.letter not in ("", FRAMED):
        middle = (corner[0] + size[0] / 2, corner[1] + size[1] / 2)
        look = {"size": 7.5, "weight": "bold", "color": ink(role.colour)}
        place: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(*middle, role.letter, fontdict=look, **place)


def _cut(operator: Array, most: int = 34) -> str:
    words = show_operator(operator)
    return words if len(words) <= most else words[: most - 3] + "..."


def _differences(axes: Axes, data: OperatorData, cell: float) -> None:
    """Frame the cells that differ and blacken a corner; write values that are no operators."""
    assert data.differs is not None and data.fitted is not None and data.fitted_ids is not None
    inset = 0.09
    for i, j in np.argwhere(data.differs).tolist():
        axes.add_patch(Rectangle(
            (j + inset, i + inset), 1 - 2 * inset, 1 - 2 * inset, fill=False, edgecolor="black",
            linewidth=min(1.6, 0.12 * cell),
        ))  # fmt: skip
        if data.fitted_ids[i, j] == NEITHER and data.fitted[i, j].size == 1:
            value = f"{data.fitted[i, j].item():.2g}".replace("0.", ".")
            size = text_size(value, cell, cell, largest=8.0)
            if size:
                axes.text(j + 0.5, i + 0.5, value, size=size, ha="center", va="center_baseline")
    corners = [_corner(i, j, inset) for i, j in np.argwhere(data.differs).tolist()]
    axes.add_collection(PolyCollection(corners, facecolor="black", linewidth=0), autolim=False)


def _corner(i: int, j: int, inset: float) -> Sequence[tuple[float, float]]:
    right, top = j + 1 - inset, i + inset
    return [(right, top), (right - 0.24, top), (right, top + 0.24)]
