"""Which id does a relation give each pair, and which ids do the operands have, at two scales?

`relation_figure` draws two triangles of query x key side by side, one per scale: a colour and a
number for each id, a frame around each operand. `relation_data` holds what is drawn,
`relation_text` says it in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lgcourse import relations
from lgcourse.errors import InputError
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.show.alignment import _styles
from lgcourse.show.cells import draw_cells, frame_cells, palette
from lgcourse.show.layout import Role, ink
from lgcourse.show.operators import key_box, text_size, write_many
from lgcourse.theory.circuits import covered, show_scale

WIDTH, HEIGHT = 9.6, 5.4  # inches
LONGEST = 256  # positions of a triangle; beyond it a cell is smaller than two pixels
KEYS = 12  # ids that the key lists
TOLD = 6  # ids of operands that the text tells before it leaves some out


@dataclass(frozen=True)
class Triangle:
    """The ids of one scale.

    Args:
        scale: the scale n.
        names: what the layout calls each position.
        ids: the id of each pair, -1 where the key comes after the query.
        operands: (query, key) of every operand of the task's circuit.
    """

    scale: Scale
    names: list[str]
    ids: Int[Tensor, "l l"]
    operands: list[tuple[int, int]]

    @property
    def read(self) -> list[int]:
        """The ids that operands have, in order."""
        return sorted({int(self.ids[pair]) for pair in self.operands})


@dataclass(frozen=True)
class RelationData:
    """What `relation_figure` draws.

    Args:
        title: the relation and the task.
        triangles: one per scale.
        shown: how each id is written, and what it means.
        unit: what the numbers in the cells are (``"i - j"``), or nothing if they are letters.
        other: the id of pairs without a role, or None.
    """

    title: str
    triangles: tuple[Triangle, Triangle]
    shown: dict[int, Role]
    unit: str
    other: int | None

    @property
    def kept(self) -> list[int]:
        """The ids that operands have at both scales."""
        first, second = (set(triangle.read) for triangle in self.triangles)
        return sorted(first & second)


def relation_data(relation: Any, task: Any, scales: Any) -> RelationData:
    """Ask a relation for every pair of two scales, and a task for its operands.

    Args:
        relation: a `Relation`, or a name in `lgcourse.relations`.
        task: a `Task`; one without a circuit has no operands to mark.
        scales: two scales.

    Returns:
        A `RelationData`.

    Raises:
        InputError: the relation is unknown or needs a circuit that the task has not, there are not
            two scales, or a sequence is too long to draw.

    >>> from lgcourse import tasks
    >>> data = relation_data("rpe", tasks.get("copy"), (2, 3))
    >>> [triangle.read for triangle in data.triangles], data.unit
    ([[2], [3]], 'i - j')
    """
    if not isinstance(scales, Sequence) or isinstance(scales, str) or len(scales) != 2:
        raise InputError(f"scales are two scales, as (3, 5); got {scales!r}")
    for scale in scales:
        task.check_scale(scale)
        if task.length(scale) > LONGEST:
            raise InputError(
                f"task '{task.name}' has {task.length(scale)} positions at scale "
                f"{show_scale(scale)}; pictures go up to {LONGEST}: choose a smaller scale"
            )
    if isinstance(relation, str):
        largest = task.scale_of(max(max(sizes_of(scale)) for scale in scales))
        relation = relations.build(relation, task, max_scale=largest)
    if not isinstance(relation, Relation):
        raise InputError(f"a relation is a Relation or its name, got {type(relation).__name__}")
    first, second = (_triangle(relation, task, scale) for scale in scales)
    shown, unit = _styles(relation, torch.cat([first.ids.flatten(), second.ids.flatten()])[None])
    title = f"{relation.name}, task {task.name}"
    return RelationData(title, (first, second), shown, unit, relation.other)


def _triangle(relation: Relation, task, scale: Scale) -> Triangle:
    at = torch.arange(task.length(scale))
    ids = torch.where(at[None, :] > at[:, None], -1, relation(at, at, scale))
    steps = task.circuit(scale) if covered(task) else []
    operands = [(step.query, key) for step in steps for key in step.inputs]
    return Triangle(scale, task.layout(scale), ids, operands)


# --- in words -------------------------------------------------------------------------------------
def relation_text(relation: Any, task: Any, scales: Any) -> str:
    """Say in words what `relation_figure` shows.

    >>> from lgcourse import tasks
    >>> print(relation_text("rpe", tasks.get("copy"), (2, 3)))  # doctest: +NORMALIZE_WHITESPACE
    Relation rpe, task copy: ids of all pairs at two scales. Scale 2: 15 pairs, 5 ids; the 2
    operands have 1 id: i - j = 2. Scale 3: 28 pairs, 7 ids; the 3 operands have 1 id: i - j = 3.
    Ids that operands have at both scales: none.
    """
    return _text(relation_data(relation, task, scales))


def _text(data: RelationData) -> str:
    parts = [f"Relation {data.title}: ids of all pairs at two scales."]
    for triangle in data.triangles:
        ids = triangle.ids[triangle.ids >= 0]
        count = len(ids.unique())
        words = f"Scale {show_scale(triangle.scale)}: {len(ids)} pairs, {_some(count, 'id')}"
        if triangle.operands:
            read = triangle.read
            words += (
                f"; the {len(triangle.operands)} operands have {_some(len(read), 'id')}: "
                f"{_listed(data, read)}"
            )
        parts.append(f"{words}.")
    if any(triangle.operands for triangle in data.triangles):
        parts.append(f"Ids that operands have at both scales: {_listed(data, data.kept)}.")
    else:
        parts.append("The task has no circuit, so no operands are marked.")
    return " ".join(parts)


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _listed(data: RelationData, ids: Sequence[int]) -> str:
    told = ids if len(ids) <= TOLD + 1 else [*ids[: TOLD - 1], ids[-1]]
    words = [data.shown[id].label for id in told]
    if len(told) < len(ids):
        words.insert(-1, f"{len(ids) - len(told)} more")
    return ", ".join(words) or "none"


# --- drawing --------------------------------------------------------------------------------------
def relation_figure(relation: Any, task: Any, scales: Any) -> Figure:
    """Draw the ids of a relation at two scales, the task's operands framed.

    Rows are queries, columns are keys. Equal ids have equal colours in both triangles, and a number
    or letter where it fits. Below: the ids that operands have.

    Args:
        relation, task, scales: as `relation_data`.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: as `relation_data`.

    >>> from lgcourse import tasks
    >>> relation_figure("ideal-sh", tasks.get("copy"), (3, 5)).alt.split(": ")[-1]
    'take source.'
    """
    data = relation_data(relation, task, scales)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    words = f"Relation {data.title}. Rows: query i; columns: key j; frames: what a step reads"
    figure.text(0.01, 0.972, shorten(words, 130), size=10, va="center")
    for left, triangle in zip((0.045, 0.545), data.triangles, strict=True):
        axes = figure.add_axes((left, 0.175, 0.45, 0.7))
        _draw(axes, data, triangle)
    _draw_key(figure.add_axes((0.01, 0.0, 0.98, 0.16)), data)
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure


def _draw(axes: Axes, data: RelationData, triangle: Triangle) -> None:
    ids = triangle.ids.numpy()
    known = sorted(data.shown)
    table = palette([*(data.shown[id].colour for id in known), "#FFFFFF"])
    place = np.where(ids < 0, len(known), np.searchsorted(known, ids))
    width, height = draw_cells(axes, table[place], triangle.names, triangle.names, square=True)
    for id in known:
        text = data.shown[id].letter
        size = text_size(text, width, height) if text else 0.0
        if size >= 5:
            points = [(key + 0.5, query + 0.5) for query, key in np.argwhere(ids == id).tolist()]
            if points:
                write_many(axes, text, points, size, ink(data.shown[id].colour), "normal")
    frame_cells(axes, triangle.operands, width)
    title = f"scale {show_scale(triangle.scale)}: {len(triangle.names)} tokens"
    axes.text(1.0, 0.97, title, size=10, ha="right", va="top", transform=axes.transAxes)


def _draw_key(axes: Axes, data: RelationData) -> None:
    """List the ids that operands have, and whether they are the same at both scales."""
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    first, second = (triangle.read for triangle in data.triangles)
    read = sorted({*first, *second})
    kept = data.kept
    unit = {"": "letter: the id", "id": "number: the id"}.get(data.unit, f"number: {data.unit}")
    words = f"{unit}. Ids of framed pairs: {len(first)} and {len(second)}, in both {len(kept)}"
    axes.text(0.0, 0.9, words, size=9, va="center")
    for place, id in enumerate(read[: KEYS - 1] if len(read) > KEYS else read):
        row, column = divmod(place, 4)
        x, y = 0.25 * column, 0.66 - 0.27 * row
        role = data.shown[id]
        key_box(axes, (x, y - 0.1), (0.022, 0.2), role)
        where = "both" if id in kept else show_scale(data.triangles[id not in first].scale)
        label = f"{shorten(role.label, 26, placeholder='...')} ({where})"
        axes.text(x + 0.028, y, label, size=8, va="center")
    if len(read) > KEYS:
        axes.text(0.75, 0.12, f"... and {len(read) - KEYS + 1} more", size=8, va="center")
