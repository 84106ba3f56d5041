"""Which keys does each head of a trained model attend to, and are they the ones that a step reads?

`explanation_figure` draws, for one sample, the rows of the attention square at which the answer is
predicted: once with the roles of the ideal relation, then once per head with its weights and the
keys that its relation names. `explanation_data` holds what is drawn, `explanation_text` says it in
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.model.reading import attention_weights
from lgcourse.relations.base import Scale
from lgcourse.show.alignment import DASHED, _box
from lgcourse.show.layout import OTHER, LayoutData, Role, _and, ink, layout_data
from lgcourse.show.operators import key_box, text_size, write_many
from lgcourse.training.evaluation import scale_name
from lgcourse.training.explanation import readers, words, words_at

WIDTH, PANEL = 11.0, 4.95  # inches: the figure, and the cells of one panel
CELL, TICKS, HEAD, TOP = 14.0, 24.0, 20.0, 42.0  # points: a row; below, above a panel; the title
KEY_LINE, KEY_LINES = 12.5, 13  # points; the least number of lines of a column of the key
MOST_ROWS, MOST_KEYS, MOST_HEADS = 16, 32, 16
TITLE = 78  # characters above a panel
SMALL = 6  # the scale that is shown, or the largest below it that fits
DARK = to_rgb("#08306B")  # a weight of 1; white is 0
LEAST = 0.05  # weights below are not told in the text, and need no column


@dataclass(frozen=True)
class Panel:
    """What one head does.

    Args:
        layer, head: their numbers, from 1.
        words: what its embedding says that it reads, or nothing.
        weights: attention by row and column of the picture.
        named: the keys that its relation names; None where no id means "other".
        share: the mean weight on the operands of a row; None where no operands are known.
    """

    layer: int
    head: int
    words: str
    weights: Float[Tensor, "s k"]
    named: Bool[Tensor, "s k"] | None
    share: float | None

    @property
    def title(self) -> str:
        """Layer, head, and what it reads."""
        words = f": {self.words}" if self.words else ""
        return f"layer {self.layer} head {self.head}{words}"


@dataclass(frozen=True)
class ExplanationData:
    """What `explanation_figure` draws.

    Args:
        title: the run and the scale.
        layout: the sample, and the ideal relation of all its pairs.
        writes: the position that is predicted in each row; the query stands one before it.
        keys: the position of each column.
        panels: the heads.
        notes: what is left out, and why.
    """

    title: str
    layout: LayoutData
    writes: list[int]
    keys: list[int]
    panels: list[Panel]
    notes: list[str] = field(default_factory=list)

    @property
    def roles(self) -> list[Role]:
        """The roles that occur, by letter."""
        return sorted(set(self.operands.values()), key=lambda role: (role.letter, role.label))

    @property
    def operands(self) -> dict[tuple[int, int], Role]:
        """(row, column) -> the role that the ideal relation gives this key."""
        column = {key: c for c, key in enumerate(self.keys)}
        return {
            (row, column[key]): role
            for row, output in enumerate(self.writes)
            for key, role in self.layout.reads(output - 1)
            if key in column
        }


def explanation_data(run: Any, scale: Scale | None = None, seed: int = 1) -> ExplanationData:
    """Read the attention of a run on one sample.

    Args:
        run: a `LoadedRun`.
        scale: the scale of the sample; None takes one of about 6 that fits the picture.
        seed: seed of the sample.

    Returns:
        An `ExplanationData`.

    Raises:
        InputError: the scale is not one of the task's, or the run was made for smaller ones.
    """
    task = run.task
    scale = _small_scale(run) if scale is None else scale
    layout = layout_data(task, scale, seed)
    batch = task.sample(scale, 1, torch.Generator().manual_seed(seed))  # the one of the layout
    notes = [] if layout.ids is not None else [f"no ideal relation: {layout.note}"]
    scored = batch.answer.nonzero()[:, 0].tolist()
    if len(scored) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(scored)} rows are shown, the first ones")
    writes = scored[:MOST_ROWS]
    query = torch.tensor(writes) - 1
    weights = attention_weights(run.model, batch.tokens, scale, query)[:, 0]  # layer h s k
    reads = torch.zeros(weights.shape[2:], dtype=torch.bool)
    for row, output in enumerate(writes):
        reads[row, [key for key, _ in layout.reads(output - 1)]] = True
    named = _named(run.model, weights.shape, query, scale, reads)
    keys = _columns(weights[..., : writes[-1]], named, reads)
    if len(keys) < writes[-1]:
        notes.append(f"{len(keys)} of {writes[-1]} keys are shown, those that are read most")
    panels = _panels(run.model, weights, named, reads, keys)
    if len(panels) < weights.shape[0] * weights.shape[1]:
        notes.append(f"{len(panels)} of {weights.shape[0] * weights.shape[1]} heads are shown")
    title = f"{task.name}, {run.settings.pe}: attention at scale {scale_name(scale)}, one sample"
    return ExplanationData(title, layout, writes, keys, panels, notes)


def _small_scale(run) -> Scale:
    """Return the largest scale up to 6 whose answer fits the rows of the picture, at least 1."""
    for size in range(min(SMALL, run.settings.train_scale), 1, -1):
        scale = run.task.scale_of(size)
        if run.task.answer_length(scale) <= MOST_ROWS:
            return scale
    return run.task.scale_of(1)


def _named(model, shape, query, scale: Scale, reads) -> dict[tuple[int, int], Bool[Tensor, "s k"]]:
    """Return the keys that each head's relation names, by layer and head from 0."""
    layers, heads, _, length = shape
    key, blocks = torch.arange(length), len(model.blocks)
    named: dict[tuple[int, int], Tensor] = {}
    for reader in readers(model):
        if reader.relation.other is None:
            continue
        ids = reader.relation(query, key, scale)
        itself = (key == query[:, None]) & ~reads  # always kept: shown where it is an operand
        here = (ids != reader.relation.other) & (key <= query[:, None]) & ~itself
        for layer in range(layers):
            for head in range(heads):
                if reader.layer in (None, layer % blocks + 1) and reader.head in (None, head + 1):
                    named[layer, head] = here
    return named


def _columns(weights: Tensor, named, reads: Tensor) -> list[int]:
    """Return the keys to show: all, or those that are operands, or named, or much attended to."""
    count = weights.shape[-1]
    if count <= MOST_KEYS:
        return list(range(count))
    matter = weights.amax((0, 1, 2)) + 4.0 * reads[:, :count].any(0)
    for here in named.values():
        matter = torch.maximum(matter, 2.0 * here[:, :count].any(0))
    shown = min(MOST_KEYS, int((matter >= LEAST).sum()))
    return matter.argsort(descending=True, stable=True)[:shown].sort().values.tolist()


def _panels(model, weights: Tensor, named, reads: Tensor, keys: list[int]) -> list[Panel]:
    told = words(model)
    covered = reads.any(1)
    places = [(layer, head) for layer in range(len(weights)) for head in range(weights.shape[1])]
    panels = []
    for layer, head in places[:MOST_HEADS]:
        own = weights[layer, head]
        share = float((own * reads).sum(1)[covered].mean()) if covered.any() else None
        here = named.get((layer, head))
        here = None if here is None else here[:, keys]
        text = words_at(told, layer, head)
        panels.append(Panel(layer + 1, head + 1, text, own[:, keys], here, share))
    return panels


# --- in words -------------------------------------------------------------------------------------
def explanation_text(run: Any, scale: Scale | None = None, seed: int = 1) -> str:
    """Say in words what `explanation_figure` shows."""
    return _text(explanation_data(run, scale, seed))


def _text(data: ExplanationData) -> str:
    names, operands = data.layout.names, data.operands
    parts = [f"{data.title}. Rows: what is predicted, {_listed(names, data.writes)}."]
    if operands:
        roles = [f"{role.letter} is {role.label}" for role in data.roles]
        parts.append(f"Ideal relation: {_and(roles)}.")
        output = data.writes[min(row for row, _ in operands)]
        reads = [f"{names[k]} ({role.letter})" for k, role in data.layout.reads(output - 1)]
        parts.append(f"The step that writes {names[output]} reads {_and(reads)}.")
    for panel in data.panels:
        parts.append(_panel_text(data, panel))
    return " ".join([*parts, *(f"{note[:1].upper()}{note[1:]}." for note in data.notes)])


def _panel_text(data: ExplanationData, panel: Panel) -> str:
    """Say where a head's attention goes, role by role, and what its relation names."""
    rows = len({row for row, _ in data.operands})
    means: dict[str, float] = dict.fromkeys([role.letter for role in data.roles], 0.0)
    for (row, column), role in data.operands.items():
        means[role.letter] += float(panel.weights[row, column]) / rows
    told = [f"{mean:.2f} on {letter}" for letter, mean in means.items() if mean >= LEAST]
    text = f"{panel.title[:1].upper()}{panel.title[1:]}."
    if panel.share is not None:
        text += f" Mean weight on the operands {panel.share:.2f}"
        text += f": {', '.join(told)}." if told else "."
    if panel.named is not None:
        hits = sum(bool(panel.named[place]) for place in data.operands)
        text += f" Named: {int(panel.named.sum())} keys, {hits} of them operands."
    return text


def _listed(names: Sequence[str], positions: Sequence[int]) -> str:
    return ", ".join(names[p] for p in positions)


# --- drawing --------------------------------------------------------------------------------------
def explanation_figure(run: Any, scale: Scale | None = None, seed: int = 1) -> Figure:
    """Draw the attention of every head of a run beside the ideal relation, for one sample.

    Rows are the positions that are predicted, columns the keys. Dark cells get much attention. A
    letter is the role that the key has for the step in the ideal relation. A frame is a key that
    the head's relation names, dashed if it is no operand of the step.

    Args:
        run: a `LoadedRun`.
        scale: the scale of the sample; None takes one of about 6 that fits the picture.
        seed: seed of the sample.

    Returns:
        A matplotlib `Figure` (not registered with pyplot), as high as its heads need;
        ``figure.alt`` says the same in words.

    Raises:
        InputError: the scale is not one of the task's, or the run was made for smaller ones.
    """
    data = explanation_data(run, scale, seed)
    if not data.writes:
        raise InputError(f"task '{run.task.name}' predicts nothing at scale {scale!r}")
    body = CELL * len(data.writes)
    lines = min(max(KEY_LINES, int((body + TICKS) / KEY_LINE)), len(_entries(data)))
    first = max(body + TICKS, KEY_LINE * lines) + HEAD
    each = body + TICKS + HEAD
    total = TOP + first + each * ceil(len(data.panels) / 2)
    figure = Figure(figsize=(WIDTH, total / 72))
    figure.text(0.01, 1 - 0.3 * TOP / total, shorten(data.title, 110), size=11.5, va="center")
    notes = shorten("; ".join(data.notes), 170, placeholder=" ...")
    figure.text(0.01, 1 - 0.75 * TOP / total, notes, size=8, va="center")
    left, right = 0.045, 0.545
    share = PANEL / WIDTH
    _ideal(figure.add_axes((left, 1 - (TOP + HEAD + body) / total, share, body / total)), data)
    key = figure.add_axes((right - 0.03, 1 - (TOP + first) / total, share + 0.03, first / total))
    _draw_key(key, data, first, lines)
    for number, panel in enumerate(data.panels):
        row, column = divmod(number, 2)
        bottom = 1 - (TOP + first + row * each + HEAD + body) / total
        axes = figure.add_axes((right if column else left, bottom, share, body / total))
        _head(axes, data, panel)
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure


def tone(weight: float) -> str:
    """Return the colour of a weight: white for 0, dark blue for 1, darker with every step.

    >>> tone(0.0), tone(1.0)
    ('#ffffff', '#08306b')
    """
    red, green, blue = (1 - weight * (1 - part) for part in DARK)
    return to_hex((red, green, blue))


def _ideal(axes: Axes, data: ExplanationData) -> None:
    """Draw the roles of the ideal relation."""
    colours = [[OTHER] * len(data.keys) for _ in data.writes]
    for (row, column), role in data.operands.items():
        colours[row][column] = role.colour
    _cells(axes, data, colours)
    _title(axes, "ideal relation: what each step reads" if data.operands else "no ideal relation")


def _head(axes: Axes, data: ExplanationData, panel: Panel) -> None:
    """Draw the weights of a head, and frame what its relation names."""
    _cells(axes, data, [[tone(w) for w in row] for row in panel.weights.tolist()])
    if panel.named is not None:
        places = [(int(row), int(column)) for row, column in panel.named.nonzero()]
        for operand in (True, False):
            boxes = [_box(c + 0.07, r + 0.07, 0.86, 0.86) for r, c in places
                     if ((r, c) in data.operands) is operand]  # fmt: skip
            for look in _frames(operand, min(1.2, 1.2 * _width(data) / CELL)):
                axes.add_collection(PolyCollection(boxes, zorder=3, **look), autolim=False)
    end = "" if panel.share is None else f"; {100 * panel.share:.1f} % on operands"
    _title(axes, shorten(panel.title, TITLE - len(end), placeholder=" ...") + end)


def _frames(operand: bool, thick: float) -> list[dict[str, Any]]:
    """Return the lines of a frame: a light one, so that it is seen on dark cells, then a black."""
    style = "-" if operand else DASHED
    return [
        {"facecolor": "none", "edgecolor": "white", "linewidth": 2.1 * thick},
        {"facecolor": "none", "edgecolor": "black", "linewidth": thick, "linestyle": style},
    ]


def _width(data: ExplanationData) -> float:
    """Return the width of a cell in points; few keys have cells of a usual size."""
    return PANEL * 72 / max(len(data.keys), 16)


def _cells(axes: Axes, data: ExplanationData, colours: list[list[str]]) -> None:
    """Draw one cell per row and key, with the letters of the ideal roles; none after the query."""
    rows, columns = len(data.writes), len(data.keys)
    width = _width(data)
    axes.set(xlim=(0, max(columns, 16)), ylim=(rows, 0))
    for row, output in enumerate(data.writes):
        seen = sum(key < output for key in data.keys)
        shades = np.array([[to_rgb(colour) for colour in colours[row][:seen]]])
        axes.pcolormesh(
            np.arange(seen + 1), [row, row + 1], shades, edgecolors="0.8", linewidth=0.4
        )
    letters: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (row, column), role in data.operands.items():
        place = (column + 0.5, row + 0.5)
        letters.setdefault((role.letter, ink(colours[row][column])), []).append(place)
    for (letter, colour), points in letters.items():
        size = text_size(letter, width, CELL, largest=8.0)
        if size:
            write_many(axes, letter, points, size, colour)
    _ticks(axes, data, width)


def _ticks(axes: Axes, data: ExplanationData, width: float) -> None:
    names, tokens = data.layout.names, data.layout.tokens
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    step = ceil(9 / width)
    at = range(0, len(data.keys), step)
    keys = [data.keys[column] for column in at]
    texts = [names[k] if names[k] == tokens[k] else f"{names[k]}\n{tokens[k]}" for k in keys]
    axes.set_xticks([column + 0.5 for column in at], texts, size=min(6.0, 0.62 * step * width))
    axes.set_yticks([row + 0.5 for row in range(len(data.writes))],
                    [names[output] for output in data.writes], size=6.5)  # fmt: skip
    axes.tick_params(length=0, pad=2)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, size=8, loc="left", pad=4)


Entry = tuple[str | None, str, str]  # colour of a box or None, its letter, words


def _entries(data: ExplanationData) -> list[Entry]:
    """List what the picture means: weights, frames, letters."""
    entries: list[Entry] = [
        (None, "", "rows: what is predicted"),
        (None, "", "columns: keys, by name and token"),
        (None, "", "last of a row: the query, known without attention"),
        *((tone(w), "", f"{100 * w:.0f} % of a head's attention") for w in (1.0, 0.5, 0.1)),
    ]
    if any(panel.named is not None for panel in data.panels):
        entries += [
            ("solid", "", "the head's relation names this key, an operand"),
            ("dashed", "", "it names this key, which is no operand"),
        ]
    if data.roles:
        entries.append((None, "", "letter: the key's role in the ideal relation"))
    return entries + [(role.colour, role.letter, role.label) for role in data.roles]


def _draw_key(axes: Axes, data: ExplanationData, height: float, lines: int) -> None:
    """Write the key from the top down, in up to two columns of so many lines."""
    axes.set_axis_off()
    entries = _entries(data)
    if len(entries) > 2 * lines:
        left = len(entries) - 2 * lines + 1
        entries = [*entries[: 2 * lines - 1], (None, "", f"... and {left} more")]
    line = KEY_LINE / height
    for number, (look, letter, text) in enumerate(entries):
        column, row = divmod(number, lines)
        x, y = 0.55 * column, 1 - (row + 0.5) * line
        corner, size = (x, y - 0.4 * line), (0.03, 0.8 * line)
        if look in ("solid", "dashed"):
            style = "-" if look == "solid" else DASHED
            box: dict[str, Any] = {"edgecolor": "black", "linewidth": 1.2, "linestyle": style}
            key_box(axes, corner, size, Role("", tone(0.3), ""), **box)
        elif look is not None:
            key_box(axes, corner, size, Role(letter, look, ""))
        place: dict[str, Any] = {"transform": axes.transAxes, "va": "center_baseline", "size": 7.5}
        axes.text(
            x if look is None else x + 0.04, y, shorten(text, 52, placeholder=" ..."), **place
        )
