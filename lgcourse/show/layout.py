"""What does a sequence of a task look like, and which earlier tokens does each step read?

`layout_figure` draws one sample token by token and, below it, the ideal relation as a triangle of
query x key. `layout_data` holds what is drawn, `layout_text` says it in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from textwrap import fill
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from torch import Tensor

from lgcourse import relations
from lgcourse.errors import InputError
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.show.cells import write_each
from lgcourse.show.curves import COLOURS

WIDTH, HEIGHT = 8.0, 7.7  # inches, the same for every task and scale: a widget must not jump
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghkmnpqrstuvwxyz"  # without those that look alike
OTHER, OTHER_STEP = "#EDEDED", "#D1D1D1"  # pairs without a role; the second in rows of steps
SHOWN_STEPS = 4  # steps that the text tells before it leaves some out


@dataclass(frozen=True)
class Role:
    """How one id of a relation is shown: a letter and a colour, and what it means."""

    letter: str
    colour: str
    label: str


@dataclass(frozen=True)
class LayoutData:
    """What `layout_figure` draws.

    Args:
        title: the task and its scale.
        tokens, names: one text per position: the token, and what the layout calls the place.
        prompt_length: number of tokens up to and with ``=``.
        scored: whether the token at a position is scored.
        ids: the ideal relation of all pairs, or None where the task has no circuit.
        roles: how each id that occurs is shown; the id "other" is not among them.
        writes: query position -> position of the token that its step writes.
        note: why there is no relation, or nothing.
    """

    title: str
    tokens: list[str]
    names: list[str]
    prompt_length: int
    scored: list[bool]
    ids: Int[Tensor, "l l"] | None
    roles: dict[int, Role]
    writes: dict[int, int]
    note: str = ""

    def reads(self, query: int) -> list[tuple[int, Role]]:
        """Return the positions that the step at a query reads, with their roles."""
        row = [] if self.ids is None else self.ids[query, : query + 1].tolist()
        return [(key, self.roles[id]) for key, id in enumerate(row) if id in self.roles]


def layout_data(task: Any, scale: Scale, seed: int = 0) -> LayoutData:
    """Draw one sample of a task and ask the ideal relation for every pair of its positions.

    Args:
        task: a `Task`.
        scale: the scale n of the sample.
        seed: seed of the sample.

    Returns:
        A `LayoutData`.

    Raises:
        InputError: the scale is not one of the task's.

    >>> from lgcourse import tasks
    >>> data = layout_data(tasks.get("copy"), 2)
    >>> data.names, data.ids.tolist()[2], data.writes
    (['x1', 'x2', '=', 'y1', 'y2'], [0, 1, 1, 1, 1], {2: 3, 3: 4})
    """
    batch = task.sample(scale, 1, torch.Generator().manual_seed(seed))
    size = "x".join(map(str, sizes_of(scale)))
    ids, roles, writes, note = None, {}, {}, ""
    try:
        writes = {step.query: step.output for step in task.circuit(scale)}
        relation = relations.build("ideal-sh", task, max_scale=scale)
        at = torch.arange(batch.tokens.shape[1])
        ids = relation(at, at, scale)
        roles = _roles(relation, ids)
    except InputError as error:  # not covered by circuits: the sequence can be drawn all the same
        note = str(error)
    return LayoutData(
        title=f"{task.name}, scale {size}",
        tokens=[task.vocabulary[token] for token in batch.tokens[0].tolist()],
        names=task.layout(scale),
        prompt_length=task.prompt_length(scale),
        scored=batch.answer.tolist(),
        ids=ids,
        roles=roles,
        writes=writes,
        note=note,
    )


def _roles(relation, ids) -> dict[int, Role]:
    """Give each id a letter and a colour; they stay the same over scales if there are few ids."""
    present = [id for id in ids.unique().tolist() if id != relation.other]
    few = relation.size <= len(LETTERS)
    shown = {}
    for rank, id in enumerate(present):
        index = id if few else rank
        colour, round_ = COLOURS[index % len(COLOURS)], index // len(COLOURS)
        colour = _lighter(colour) if round_ % 2 else colour
        shown[id] = Role(LETTERS[index % len(LETTERS)], colour, relation.label(id))
    return shown


def _lighter(colour: str) -> str:
    mixed = (round(255 * (0.5 * part + 0.5)) for part in to_rgb(colour))
    return "#" + "".join(f"{part:02X}" for part in mixed)


def ink(colour: str) -> str:
    """Return black or white, whichever can be read better on a colour.

    Contrast is that of the WCAG 2: (L1 + 0.05) / (L2 + 0.05) with relative luminances L; black and
    white are equally good where L = 0.179.

    >>> ink("#0072B2"), ink("#D55E00")
    ('white', 'black')
    """
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return "black" if np.dot(linear, (0.2126, 0.7152, 0.0722)) > 0.179 else "white"


def layout_text(task: Any, scale: Scale, seed: int = 0) -> str:
    """Say in words what `layout_figure` shows.

    >>> from lgcourse import tasks
    >>> print(layout_text(tasks.get("copy"), 1))  # doctest: +NORMALIZE_WHITESPACE
    Task copy, scale 1: one sequence of 3 tokens. Prompt, given: 0 x1 is '4', 1 = is '='. Answer,
    scored: 2 y1 is '4'. Ideal relation: the query at 1 (=) writes y1 and reads x1 (A: take source).
    All other pairs have no role.
    """
    return _text(layout_data(task, scale, seed))


def _text(data: LayoutData) -> str:
    start = data.prompt_length
    parts = [f"Task {data.title}: one sequence of {len(data.tokens)} tokens."]
    parts.append(f"Prompt, given: {_listed(data, range(start))}.")
    answer = [p for p, scored in enumerate(data.scored) if scored]
    padding = [p for p in range(start, len(data.tokens)) if not data.scored[p]]
    parts.append(f"Answer, scored: {_listed(data, answer)}.")
    if padding:
        parts.append(f"Padding, not scored: {_listed(data, padding)}.")
    if data.ids is None:
        return " ".join([*parts, f"No ideal relation: {data.note}."])
    queries = list(data.writes)
    shown = queries
    if len(queries) > SHOWN_STEPS + 2:
        shown = [*queries[:SHOWN_STEPS], queries[-1]]
    sentences = []
    for query in shown:
        reads = [f"{data.names[k]} ({role.letter}: {role.label})" for k, role in data.reads(query)]
        place = f"the query at {query} ({data.names[query]})"
        sentences.append(f"{place} writes {data.names[data.writes[query]]} and reads {_and(reads)}")
    parts.append(f"Ideal relation: {'; '.join(sentences)}.")
    if len(shown) < len(queries):
        parts.append(f"{len(queries) - len(shown)} of the {len(queries)} steps are left out here.")
    return " ".join([*parts, "All other pairs have no role."])


def _listed(data: LayoutData, positions: Sequence[int]) -> str:
    return ", ".join(f"{p} {data.names[p]} is '{data.tokens[p]}'" for p in positions)


def _and(items: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]])) or "nothing"


# --- drawing --------------------------------------------------------------------------------------
def layout_figure(task: Any, scale: Scale, seed: int = 0) -> Figure:
    """Draw one sequence of a task and the ideal relation of its circuit.

    Above: every token with its position and its name in the layout; tokens of the prompt in thin
    boxes, scored tokens in thick ones. Below: query x key, a letter and a colour for each role.

    Args:
        task: a `Task`.
        scale: the scale n; up to about 20 everything is written out, beyond that less is.
        seed: seed of the sample.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: the scale is not one of the task's.

    >>> from lgcourse import tasks
    >>> layout_figure(tasks.get("addition"), 3).alt.split(".")[0]
    'Task addition, scale 3: one sequence of 12 tokens'
    """
    data = layout_data(task, scale, seed)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    per_row = max(24, ceil(len(data.tokens) / 3))
    strip = 0.03 + 0.078 * ceil(len(data.tokens) / per_row)  # share of the height
    _draw_tokens(figure.add_axes((0.01, 1 - strip, 0.98, strip)), data, per_row)
    triangle = figure.add_axes((0.075, 0.05, 0.915, 0.905 - strip))
    if data.ids is None:
        triangle.set_axis_off()
        triangle.text(0.0, 0.95, fill(f"No ideal relation: {data.note}", 100), size=9, va="top")
    else:
        _draw_relation(triangle, data)
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure


def _draw_tokens(axes: Axes, data: LayoutData, per_row: int) -> None:
    """Draw the tokens as boxes, in up to three rows; where they are many the boxes get smaller."""
    points = 0.98 * WIDTH * 72 / per_row  # width of a box
    axes.set(xlim=(-0.1, per_row + 0.1), ylim=(ceil(len(data.tokens) / per_row), -0.38))
    axes.set_axis_off()
    words = "thin boxes: the prompt, given; thick boxes: the answer, scored"
    if not all(data.scored[data.prompt_length :]):
        words += "; dotted: padding"
    axes.text(0.05, -0.2, f"{data.title}    ({words})", size=9, va="center")
    places = [(p % per_row + 0.5, float(p // per_row)) for p in range(len(data.tokens))]
    for position, (x, y) in enumerate(places):
        axes.add_patch(_box(data, position, x, y))
    # narrow boxes leave room for every tenth number and name
    named = range(0, len(places), 1 if points >= 16 else 10)
    numbers, names = [str(p) for p in named], [data.names[p] for p in named]
    above, below = ([(places[p][0], places[p][1] + dy) for p in named] for dy in (0.13, 0.82))
    sizes = [min(7.5, max(5.5, 1.7 * points / max(1, len(name)))) for name in names]
    write_each(axes, numbers, above, 6.5, colour="0.3")
    write_each(axes, names, below, sizes, style="italic")
    for scored in (True, False):
        large = {p: min(11.0, 1.1 * points / max(1, len(t))) for p, t in enumerate(data.tokens)}
        shown = [p for p, size in large.items() if size >= 4 and data.scored[p] is scored]
        write_each(
            axes,
            [data.tokens[p] for p in shown],
            [(places[p][0], places[p][1] + 0.47) for p in shown],
            [large[p] for p in shown],
            weight="bold" if scored else "normal",
        )


def _box(data: LayoutData, position: int, x: float, y: float) -> Rectangle:
    scored, given = data.scored[position], position < data.prompt_length
    return Rectangle(
        (x - 0.44, y + 0.25),
        0.88,
        0.42,
        facecolor="white" if scored else "0.94",
        edgecolor="black" if scored else "0.4",
        linewidth=2.2 if scored else 0.8,
        linestyle="-" if scored or given else ":",
    )


def _draw_relation(axes: Axes, data: LayoutData) -> None:
    """Draw the triangle: rows are queries, columns are keys that do not come after them."""
    count = len(data.tokens)
    columns = max(1.07 * count, 22.0)  # the margin is for what the last steps write
    rows = max(count, 15)  # few tokens: cells of a usual size
    box = axes.get_position()
    cell = min(WIDTH * box.width * 72 / columns, HEIGHT * box.height * 72 / rows)  # points
    _draw_cells(axes, data, size=min(10.0, 0.9 * cell))
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.set_axis_off()
    pad = 3 / cell  # three points
    at = range(0, count, ceil(count / 26))
    names, line = [data.names[p] for p in at], 1 + 8 / cell
    write_each(axes, [str(p) for p in at], [(p + 0.5, count + pad) for p in at], 6.5, va="top")
    write_each(axes, names, [(p + 0.5, count + pad + line - 1) for p in at], 6.5, va="top")
    labels = [f"{name}  {p}" for name, p in zip(names, at, strict=True)]
    write_each(axes, labels, [(-pad, p + 0.5) for p in at], 6.5, ha="right")
    words = "Ideal relation. Rows: query i, which attends. Columns: key j, what it attends to."
    axes.text(-0.075, 1.01, words, size=9, va="bottom", transform=axes.transAxes)
    _draw_key(axes, data)


def _draw_cells(axes: Axes, data: LayoutData, size: float) -> None:
    """Draw one square per pair, with its letter, and what each step writes beside its row."""
    assert data.ids is not None
    count = len(data.tokens)
    colours = np.ones((count, count, 3))  # white: keys that come after their query
    places: dict[int, list[tuple[float, float]]] = {}
    for query, row in enumerate(data.ids.tolist()):
        colours[query, : query + 1] = to_rgb(OTHER_STEP if query in data.writes else OTHER)
        for key, role in data.reads(query):
            colours[query, key] = to_rgb(role.colour)
            places.setdefault(row[key], []).append((key + 0.5, query + 0.5))
    edges = np.arange(count + 1)
    line = 0.6 if size >= 5 else 0.0
    axes.pcolormesh(edges, edges, colours, edgecolors="white", linewidth=line)
    for id, points in places.items() if size >= 4.5 else ():
        _letters(axes, points, data.roles[id], size, axes.transData)
    words = [f"◀ writes {data.names[p]}" if size >= 5 else "◀" for p in data.writes.values()]
    behind = [(query + 1.2, query + 0.54) for query in data.writes]
    write_each(axes, words, behind, min(7.0, size), ha="left")


def _letters(axes: Axes, points, role: Role, size: float, transform) -> None:
    """Write a role's letter at many points: one collection, since single texts are slow."""
    figure = axes.get_figure()
    assert figure is not None
    letters = PathCollection(
        [_outline(role.letter, size)],
        offsets=points,
        offset_transform=transform,
        facecolors=ink(role.colour),
        linewidths=0,
        snap=False,  # snapped to pixels, small letters lose strokes
    )
    letters.set_transform(Affine2D().scale(1 / 72) + figure.dpi_scale_trans)  # from points
    axes.add_collection(letters, autolim=False)


@lru_cache
def _outline(letter: str, size: float) -> Path:
    """Return a bold letter as a path in points, its middle at (0, 0)."""
    path = TextPath((0, 0), letter, size=size, prop=FontProperties(weight="bold"))
    low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
    return Path(path.vertices - (low + high) / 2, path.codes)


def _draw_key(axes: Axes, data: LayoutData) -> None:
    """Explain letters and greys in the empty corner, where keys would come after their queries."""
    entries = list(data.roles.values())
    entries.append(Role("", OTHER_STEP, "other, in the row of a step (◀)"))
    entries.append(Role("", OTHER, "other, in a row without a step"))
    points = HEIGHT * axes.get_position().height * 72
    height = min(15.0, 0.52 * points / len(entries)) / points  # of a line, as a share
    size = min(8.0, 0.75 * height * points)
    place: dict[str, Any] = {"transform": axes.transAxes}
    for line, role in enumerate(entries):
        middle = 0.99 - (line + 0.5) * height
        corner = (0.64, middle - 0.4 * height)
        axes.add_patch(Rectangle(corner, 0.025, 0.8 * height, facecolor=role.colour, **place))
        if role.letter:
            _letters(axes, [(0.6525, middle)], role, size, axes.transAxes)
        axes.text(0.673, middle, role.label, size=size, va="center_baseline", **place)
