"""Which key has which id at each step, and do the ids lead attention to the operands?

`alignment_figure` draws the steps of one scale: rows are steps, columns are keys. What training
taught and which steps are resolvable comes from `lgcourse.theory.alignment`; `alignment_data` holds
what is drawn, `alignment_text` says it in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil
from textwrap import fill, shorten, wrap
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from lgcourse import tasks
from lgcourse.embeddings.named import relations_of
from lgcourse.errors import InputError
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.show.layout import LETTERS, Role, _and, _lighter, ink
from lgcourse.show.operators import key_box, shade, text_size, write_many
from lgcourse.tasks.base import Task
from lgcourse.tasks.circuit import Step
from lgcourse.theory.alignment import Alignment
from lgcourse.theory.circuits import Circuit, covered, show_scale, steps_at
from lgcourse.theory.merging import Merging
from lgcourse.theory.prediction import predict
from lgcourse.theory.priorities import Lines, lines

WIDTH, HEIGHT = 9.6, 7.7  # inches, the same for every circuit and scale
MOST = 60_000  # pairs in a picture; beyond it a cell is smaller than a pixel
MARGIN = 0.11  # share of the width that is left free behind the longest row
SEEN, NEW = "#EEEEEE", "#FFFFFF"  # ids that no operand had in training; the second is hatched
HATCHED, FOUND, LOST = "hatched", "found", "lost"  # boxes of the key that are more than a colour
DASHED: Any = (0, (1.6, 1.1))
KEY_LINES = 8
KEY_LINE = 1 / KEY_LINES  # height of a line of the key, as a share of it
TOLD = 4  # steps, or steps of one fault, that the text tells before it leaves some out

FAULTS = {
    "new operator": "training never used its operator",
    "new id": "the operand's id is new in its role",
    "no order": "training cannot single out its role",
    "rival": "another key's id is not below the operand's",
    "new tuple": "its operands' ids never stood together",
    "clash": "same ids as a step with another operator",
}


@dataclass(frozen=True)
class Operand:
    """One operand of a step.

    Args:
        key: its position.
        role: its role in the operator.
        number: the number of the role in the picture, from 1.
        id: its id in the relation that is shown.
        fault: why no relation finds it, a key of `FAULTS`; nothing if one does.
    """

    key: int
    role: str
    number: int
    id: int
    fault: str = ""


@dataclass(frozen=True)
class StepRow:
    """One row of the picture.

    Args:
        query: position that the step is made at.
        output: position that it writes.
        operator: name of its operator.
        operands: what it reads.
        faults: why it is not resolvable, keys of `FAULTS`; none if it is.
        reason: the first fault in words, or nothing.
    """

    query: int
    output: int
    operator: str
    operands: tuple[Operand, ...]
    faults: tuple[str, ...] = ()
    reason: str = ""

    @property
    def resolvable(self) -> bool:
        """Whether the step meets the three conditions of alignment."""
        return not self.faults


@dataclass(frozen=True)
class AlignmentData:
    """What `alignment_figure` draws.

    Args:
        title: circuit, relation, scale, and the scales of training.
        names: one name per position, as the layout calls it.
        steps: the rows.
        ids: the id of each key at each step; -1 for keys after the query.
        shown: how each id that occurs is written, and what it means.
        learned: ids that operands had in training.
        met: ids that any key had at a training step; contains those in ``learned``.
        unit: what the numbers in the cells are (``"i - j"``), or nothing if they are letters.
        note: why there is nothing to draw, or nothing.
    """

    title: str
    names: list[str]
    steps: list[StepRow] = field(default_factory=list)
    ids: Int[torch.Tensor, "s k"] | None = None
    shown: dict[int, Role] = field(default_factory=dict)
    learned: frozenset[int] = frozenset()
    met: frozenset[int] = frozenset()
    unit: str = ""
    note: str = ""

    @property
    def roles(self) -> dict[str, int]:
        """The roles that occur and their numbers."""
        return {o.role: o.number for step in self.steps for o in step.operands}


def alignment_data(
    circuit: Circuit | str | None,
    relation: Relation | Sequence[Relation | None] | str | None,
    train_scales: Iterable[Scale] | int,
    scale: Scale,
    shown: int = 0,
) -> AlignmentData:
    """Collect the ids of all keys at the steps of one scale, and what training makes of them.

    Args:
        circuit: a task or its name, or anything that `lgcourse.theory.circuits.steps_at` reads.
        relation: a relation, a list of them (several heads), the name of a relation or embedding,
            or None for an embedding without a finite relation.
        train_scales: the scales of the training data; one number is refused, as `predict` does.
        scale: the scale to show.
        shown: which relation of a list gives the ids that are shown; an operand counts as found if
            any of the list finds it.

    Returns:
        An `AlignmentData`; with a ``note`` and no steps where theory is silent.

    Raises:
        InputError: as `lgcourse.theory.predict`; or there are too many pairs to draw, or no
            relation number ``shown``.

    >>> data = alignment_data("copy", "rpe", range(1, 3), 3)
    >>> [(step.operands[0].key, step.faults) for step in data.steps]
    [(0, ('new id',)), (1, ('new id',)), (2, ('new id',))]
    """
    train = _scales(train_scales)
    task, heads = _named(circuit, relation, [*train, scale])
    several: list[Any] = list(heads) if isinstance(heads, (list, tuple)) else [heads]
    if not several:
        raise InputError("the list of relations is empty; give at least one relation, or None")
    if not 0 <= shown < len(several):
        raise InputError(f"shown is one of 0..{len(several) - 1}, got {shown}")
    if wrong := [one for one in several if not isinstance(one, Relation | None)]:
        raise InputError(f"a relation is a Relation, its name, or None; got {wrong[0]!r}")
    name = relation if isinstance(relation, str) else getattr(several[shown], "name", "no relation")
    if len(several) > 1:
        name += f" ({shown + 1} of {len(several)} relations)"
    title = (
        f"{getattr(task, 'name', 'circuit')}, {name}: scale {show_scale(scale)} after training on "
        f"{_range(train)}"
    )
    silent = not covered(task) or any(one is None for one in several)
    try:
        circuits = {} if silent else {n: steps_at(task, n) for n in dict.fromkeys([*train, scale])}
    except InputError:
        silent = True  # predict knows whether that says something about the task, or raises it too
    if silent:
        answer = predict(task, heads, train, [scale])
        return AlignmentData(title, [], note=f"{answer.verdict}: {answer.reason}")
    if not circuits[scale]:
        return AlignmentData(title, [], note="the circuit has no steps at this scale")
    names = _names(task, scale, circuits[scale])
    _check_size(len(circuits[scale]), len(names))
    merging = Merging(circuits.values())
    training, test = (lines([(n, circuits[n]) for n in part], merging) for part in (train, [scale]))
    alignment = Alignment(several, training, test, merging)
    return _collected(AlignmentData(title, names), alignment, several[shown], shown)


def _collected(data: AlignmentData, alignment: Alignment, relation: Relation, shown: int):
    """Fill in what an alignment says of its test scale, with the ids of one of its relations."""
    ids = _ids(relation, alignment.test[0])
    met = {id for line in alignment.training for id in _ids(relation, line).unique().tolist()}
    styles, unit = _styles(relation, ids)
    return replace(
        data,
        steps=_rows(alignment, shown),
        ids=ids,
        shown=styles,
        learned=frozenset(alignment.learned[shown].known.tolist()),
        met=frozenset(met - {-1}),
        unit=unit,
    )


def _scales(train_scales) -> list[Scale]:
    if isinstance(train_scales, (int, str)) or not isinstance(train_scales, Iterable):
        raise InputError(
            f"train_scales is a collection of scales, as range(1, 11); got {train_scales!r}"
        )
    found = list(dict.fromkeys(tuple(n) if isinstance(n, list) else n for n in train_scales))
    if not found:
        raise InputError("train_scales is empty; give at least one scale")
    return found


def _named(circuit: Any, relation: Any, scales: Sequence[Scale]) -> tuple[Any, Any]:
    """Make the task and the relation where names are given, large enough for all scales."""
    size = max((max(sizes_of(n)) for n in scales), default=1)
    if isinstance(circuit, str):
        circuit = tasks.get_for(circuit, size)
    if isinstance(relation, str):
        if circuit is not None and not isinstance(circuit, Task):
            raise InputError(
                f"relation '{relation}' is made for a task by its name; for a circuit of your own "
                "give a Relation, for instance lgcourse.relations.build('rpe', positions=64)"
            )
        relation = relations_of(relation, circuit, size) if circuit is not None else None
    return circuit, relation


def _names(circuit, scale: Scale, steps: Sequence[Step]) -> list[str]:
    """Return one name per position, up to the last one that a step writes."""
    count = max((step.output + 1 for step in steps), default=0)
    if isinstance(circuit, Task):
        return circuit.layout(scale)[:count]
    return [str(position) for position in range(count)]


def _check_size(rows: int, columns: int) -> None:
    if rows * columns > MOST:
        raise InputError(
            f"{rows} steps x {columns} keys are too many to draw; choose a smaller scale, "
            f"with at most {MOST} pairs"
        )


def _ids(relation: Relation, line: Lines) -> Int[torch.Tensor, "s k"]:
    """Return the id of each key at each step of one scale, -1 for keys after the query."""
    key = torch.arange(max(line.query.tolist(), default=-1) + 1)
    if not len(key):  # a scale without steps
        return key.new_zeros(0, 0)
    return torch.where(key > line.query[:, None], -1, relation(line.query, key, line.scale))


def _styles(relation: Relation, ids: Int[torch.Tensor, "s k"]) -> tuple[dict[int, Role], str]:
    """Return how each id is written, and what the numbers are if numbers are written.

    Values of one form are written as they are, and ids whose names are numbers as those; other ids
    get the letters and colours that the picture of the layout gives them.
    """
    present = [id for id in ids.unique().tolist() if id >= 0 and id != relation.other]
    labels = {id: relation.label(id) for id in present}
    values = {id: re.fullmatch(r"(.+) = (-?\d+)", label) for id, label in labels.items()}
    forms = {match[1] if match else None for match in values.values()}
    few = relation.size <= len(LETTERS)
    if len(forms) == 1 and None not in forms:
        texts, unit = {id: match[2] for id, match in values.items() if match}, str(forms.pop())
    elif len(present) > len(LETTERS) or all(re.search(rf"\b{i}$", labels[i]) for i in present):
        texts, unit = {id: str(id) for id in present}, "id"
    else:
        index = {id: id if few else rank for rank, id in enumerate(present)}
        texts, unit = {id: LETTERS[index[id]] for id in present}, ""
    colours = {id: shade(id if few or unit else rank) for rank, id in enumerate(present)}
    shown = {id: Role(texts[id], colours[id], labels[id]) for id in present}
    if relation.other is not None and (ids == relation.other).any():
        shown[relation.other] = Role("", SEEN, "other")
    return shown, unit


def _rows(alignment: Alignment, shown: int) -> list[StepRow]:
    """Return the steps of the test scale with what `Alignment` says of each."""
    line, made = alignment.test[0], []
    clash = alignment.clash[len(alignment.training)].tolist()
    trained = {group for line in alignment.training for group in line.group.tolist()}
    numbers: dict[str, int] = {}
    for row, step in enumerate(line.steps):
        operands, reason = [], ""
        for role, (name, key) in enumerate(zip(step.operator.roles, step.inputs, strict=True)):
            id = int(alignment.test_ids[0][row, role, shown])
            fault = ""
            if not alignment.found[0][row, role].any():
                fault = _fault(alignment, shown, row, role, id)
                reason = reason or alignment.learned[shown].why(line, row, role, id)
            number = numbers.setdefault(name, len(numbers) + 1)
            operands.append(Operand(key, name, number, id, fault))
        faults = list(dict.fromkeys(o.fault for o in operands if o.fault))
        if not faults and not alignment.met[0][row]:
            faults = ["new tuple" if int(line.group[row]) in trained else "new operator"]
        faults += ["clash"] * clash[row]
        if faults and not reason:
            reason = f"at scale {show_scale(line.scale)} {FAULTS[faults[0]]}"
        made.append(StepRow(
            step.query, step.output, step.operator.name, tuple(operands), tuple(faults), reason
        ))  # fmt: skip
    return made


def _fault(alignment: Alignment, shown: int, row: int, role: int, id: int) -> str:
    """Say why no relation finds an operand, as a key of `FAULTS`."""
    line, learned = alignment.test[0], alignment.learned[shown]
    order = learned.orders.get((int(line.group[row]), role))
    if order is None:
        return "new operator"
    if not learned.seen(line, row, role, id):
        return "new id"
    return "rival" if order.fault is None else "no order"


def _range(scales: Sequence[Scale]) -> str:
    """Write scales shortly.

    >>> _range([1, 2, 3]), _range([2, 4]), _range([(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)])
    ('1..3', '2, 4', '1x1 to 3x1 (5 scales)')
    """
    first, last = scales[0], scales[-1]
    run = range(first, first + len(scales)) if isinstance(first, int) else ()
    if len(scales) > 1 and list(scales) == list(run):
        return f"{first}..{last}"
    if len(scales) < 5:
        return ", ".join(map(show_scale, scales))
    return f"{show_scale(first)} to {show_scale(last)} ({len(scales)} scales)"


# --- in words -------------------------------------------------------------------------------------
def alignment_text(
    circuit: Circuit | str | None,
    relation: Relation | Sequence[Relation | None] | str | None,
    train_scales: Iterable[Scale] | int,
    scale: Scale,
    shown: int = 0,
) -> str:
    """Say in words what `alignment_figure` shows, with the reason where a step is not resolvable.

    >>> print(alignment_text("copy", "rpe", range(1, 2), 2))  # doctest: +NORMALIZE_WHITESPACE
    Alignment of copy, rpe: scale 2 after training on 1: 0 of 2 steps are resolvable. Of 7 pairs of
    a step and an earlier key, 2 have an id that an operand had in training, 2 another id that
    training showed, 3 an id that training never met. The step that writes y1 reads x1 as source
    (i - j = 2, not found). The step that writes y2 reads x2 as source (i - j = 2, not found). Not
    resolvable, new id (the operand's id is new in its role): y1, y2; at scale 2 operand `source` of
    `take` stands at i - j = 2, a distance that training never showed (1).
    """
    return _text(alignment_data(circuit, relation, train_scales, scale, shown))


def _text(data: AlignmentData) -> str:
    if data.ids is None:
        return f"Alignment of {data.title}: {data.note}."
    good, total = sum(step.resolvable for step in data.steps), len(data.steps)
    pairs = data.ids[data.ids >= 0].tolist()
    learned, met = (sum(id in ids for id in pairs) for ids in (data.learned, data.met))
    parts = [
        f"Alignment of {data.title}: {good} of {total} steps are resolvable.",
        f"Of {len(pairs)} pairs of a step and an earlier key, {learned} have an id that an operand "
        f"had in training, {met - learned} another id that training showed, {len(pairs) - met} an "
        "id that training never met.",
    ]
    told = [*data.steps[:TOLD], data.steps[-1]] if total > TOLD + 1 else data.steps
    for step in told:
        reads = [
            f"{data.names[o.key]} as {o.role} ({data.shown[o.id].label}"
            f"{', not found' if o.fault else ''})"
            for o in step.operands
        ]
        parts.append(f"The step that writes {data.names[step.output]} reads {_and(reads)}.")
    if len(told) < total:
        parts.append(f"{total - len(told)} of the {total} steps are left out here.")
    for fault, words in FAULTS.items():
        steps = [step for step in data.steps if fault in step.faults]
        if steps:
            parts.append(f"Not resolvable, {fault} ({words}): {_which(data, fault, steps)}.")
    return " ".join(parts)


def _which(data: AlignmentData, fault: str, steps: Sequence[StepRow]) -> str:
    """Name the steps that have a fault, and the reason of the first one that has it first."""
    names = [data.names[step.output] for step in steps]
    left = len(names) - TOLD if len(names) > TOLD + 1 else 0
    told = ", ".join(names[: len(names) - left]) + (f" and {left} more" if left else "")
    reasons = [step.reason for step in steps if step.faults[0] == fault]
    return "; ".join([told, *reasons[:1]])


# --- drawing --------------------------------------------------------------------------------------
def alignment_figure(
    circuit: Circuit | str | None,
    relation: Relation | Sequence[Relation | None] | str | None,
    train_scales: Iterable[Scale] | int,
    scale: Scale,
    shown: int = 0,
    title: str = "",
) -> Figure:
    """Draw which key has which id at each step of one scale, and which operands the ids find.

    Rows are steps, columns are keys. Ids that an operand had in training are coloured, other ids
    that training showed are grey, ids that it never met are hatched. Operands have a frame, solid
    if training's priorities find them, dashed if not, and the number of their role. Behind each row
    stands whether the step is resolvable.

    Args:
        circuit: a task or its name, or anything that `lgcourse.theory.circuits.steps_at` reads.
        relation: a relation, a list of them (several heads), the name of a relation or embedding,
            or None for an embedding without a finite relation.
        train_scales: the scales of the training data; one number is refused, as `predict` does.
        scale: the scale to show; up to about 20 everything is written out, beyond that less is.
        shown: which relation of a list gives the ids that are shown; an operand counts as found if
            any of the list finds it.
        title: title of the figure; by default circuit, relation and scales.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words. Where theory is silent, the figure is one sentence that says why.

    Raises:
        InputError: as `lgcourse.theory.predict`; or there are too many pairs to draw, or no
            relation number ``shown``.

    >>> alignment_figure("copy", "ideal-sh", range(1, 11), 20).alt.split(". ")[0]
    'Alignment of copy, ideal-sh: scale 20 after training on 1..10: 20 of 20 steps are resolvable'
    """
    data = alignment_data(circuit, relation, train_scales, scale, shown)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    figure.text(0.015, 0.97, shorten(title or data.title, 100), size=11.5, va="center")
    if data.ids is None:
        figure.text(0.015, 0.9, fill(f"No picture, {data.note}.", 110), size=9.5, va="top")
    else:
        good, total = sum(step.resolvable for step in data.steps), len(data.steps)
        words = (
            f"{good} of {total} steps resolvable. Rows: steps, by what they write. Columns: keys."
        )
        figure.text(0.015, 0.935, words, size=9.5, va="center")
        _draw_steps(figure.add_axes((0.055, 0.235, 0.945 - MARGIN, 0.685)), data)
        key = figure.add_axes((0.015, 0.01, 0.97, 0.18))
        key.set_axis_off()
        _draw_key(key, data)
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure


def _draw_steps(axes: Axes, data: AlignmentData) -> None:
    assert data.ids is not None
    count, rows = data.ids.shape[1], len(data.steps)
    columns, room = max(count, 20), max(rows, 9)  # few of them: cells of a usual size
    box = axes.get_position()
    width, height = WIDTH * box.width * 72 / columns, HEIGHT * box.height * 72 / room
    axes.set(xlim=(0, columns), ylim=(room, 0))
    _draw_cells(axes, data, width, height)
    _draw_operands(axes, data, width, height)
    _draw_marks(axes, data, width, height)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.spines["bottom"].set_position(("data", rows))
    at = range(0, count, ceil(13 / width))
    words = [f"{p}\n{data.names[p]}" if data.names[p] != str(p) else str(p) for p in at]
    axes.set_xticks([p + 0.5 for p in at], words, size=6.5)
    at = range(0, rows, ceil(7 / height))
    names = [data.names[data.steps[row].output] for row in at]
    axes.set_yticks([row + 0.5 for row in at], names, size=7.5)
    axes.tick_params(length=0, pad=2)


def _draw_marks(axes: Axes, data: AlignmentData, width: float, height: float) -> None:
    """Write behind each row whether its step is resolvable, and which operands are the trouble."""
    end = axes.get_xlim()[1] + MARGIN * WIDTH * 72 / width  # the right edge of the figure
    for row, step in enumerate(data.steps):
        mark = "✓" if step.resolvable else f"✗ {_faults(step)}" if height > 6 else "✗"
        left = step.query + 1.3
        size = min(8.0, 0.75 * height, (end - left) * width / (0.56 * len(mark)))
        axes.text(left, row + 0.53, mark, size=size, va="center_baseline", clip_on=False)


def _faults(step: StepRow) -> str:
    """Write the faults of a step, each with the numbers of its operands: ``1, 2 new id``."""
    parts = []
    for fault in step.faults:
        numbers = ", ".join(str(o.number) for o in step.operands if o.fault == fault)
        parts.append(f"{numbers} {fault}".strip())
    return "; ".join(parts)


def _draw_cells(axes: Axes, data: AlignmentData, width: float, height: float) -> None:
    """Draw one cell per pair in the colour of its id, hatched if training never met the id."""
    assert data.ids is not None
    rows, count = data.ids.shape
    colours = np.ones((rows, count, 3))
    operands = {(row, o.key) for row, step in enumerate(data.steps) for o in step.operands}
    places: dict[tuple[int, bool], list[tuple[float, float]]] = {}
    for row, ids in enumerate(data.ids.tolist()):
        for key, id in enumerate(ids):
            if id >= 0:
                reads = (row, key) in operands
                colours[row, key] = to_rgb(fill_of(data, id, reads))
                places.setdefault((id, reads), []).append((key + 0.5, row + 0.5 + 0.21 * reads))
    line: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.6} if width > 4 < height else {}
    axes.pcolormesh(np.arange(count + 1), np.arange(rows + 1), colours, **line)
    new = PolyCollection(_new(data), facecolor=NEW, edgecolor="0.78", linewidth=0.3, hatch="/////")
    axes.add_collection(new, autolim=False)
    for (id, reads), points in places.items():
        text, colour = data.shown[id].letter, ink(fill_of(data, id, reads))
        size = text_size(text, width * (0.85 if reads else 1), height * (0.7 if reads else 1))
        if text and size:
            weight = "bold" if id in data.learned else "normal"
            write_many(axes, text, points, size, colour, weight)


def _new(data: AlignmentData) -> list[list[tuple[float, float]]]:
    """Return the cells whose id training never met, neighbours in a row joined."""
    assert data.ids is not None
    boxes: list[list[tuple[float, float]]] = []
    for row, ids in enumerate(data.ids.tolist()):
        unmet = (id >= 0 and id not in data.met for id in ids)
        for new, run in groupby(enumerate(unmet), key=lambda cell: cell[1]):
            if new:
                keys = [key for key, _ in run]
                left, right = keys[0], keys[-1] + 1
                boxes.append(_box(float(left), float(row), float(right - left), 1.0))
    return boxes


def fill_of(data: AlignmentData, id: int, reads: bool) -> str:
    """Return the colour of a cell: that of its id, strong at an operand, lighter elsewhere."""
    if id in data.learned:
        return data.shown[id].colour if reads else _lighter(data.shown[id].colour)
    return SEEN if id in data.met else NEW


def _draw_operands(axes: Axes, data: AlignmentData, width: float, height: float) -> None:
    """Frame the operands; the tab on top of each has the number of its role."""
    thick = min(1.6, 0.15 * width, 0.15 * height)
    size = min(7.5, 0.85 * width, 0.42 * height)
    for found in (True, False):
        operands = [
            (row, operand)
            for row, step in enumerate(data.steps)
            for operand in step.operands
            if found is not bool(operand.fault)
        ]
        frames = [_box(o.key + 0.06, row + 0.06, 0.88, 0.88) for row, o in operands]
        tabs = [_box(o.key + 0.06, row + 0.06, 0.88, 0.37) for row, o in operands]
        for boxes, look in zip((frames, tabs, frames), _looks(found, thick), strict=True):
            axes.add_collection(PolyCollection(boxes, zorder=3, **look), autolim=False)
        for number in sorted({o.number for _, o in operands}) if size >= 4 else ():
            points = [(o.key + 0.5, row + 0.25) for row, o in operands if o.number == number]
            write_many(axes, str(number), points, size, "white" if found else "black")


def _looks(found: bool, thick: float) -> list[dict[str, Any]]:
    """Return how an operand looks: a light line below its frame, its tab, its frame.

    Found: a black tab and a solid frame. Not found: a white tab and a dashed frame.
    """
    clear = {"facecolor": "none"}
    return [
        {**clear, "edgecolor": "white", "linewidth": 1.8 * thick},
        {"facecolor": "black" if found else "white", "linewidth": 0},
        {**clear, "edgecolor": "black", "linewidth": thick, "linestyle": "-" if found else DASHED},
    ]


def _box(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def _draw_key(axes: Axes, data: AlignmentData) -> None:
    """Explain cells (left), operands and faults (middle), and letters (right)."""
    colour = next((data.shown[id].colour for id in data.shown if id in data.learned), shade(0))
    unit = {"": "letter in a cell: the id", "id": "number in a cell: the id"}
    _lines(axes, 0.0, [
        (None, unit.get(data.unit, f"number in a cell: the id, {data.unit}")),
        (colour, "an id that operands had in training, at an operand"),
        (_lighter(colour), "an id that operands had in training, elsewhere"),
        (SEEN, "an id that training showed at other keys only"),
        (HATCHED, "an id that training never met"),
    ])  # fmt: skip
    # a no-break space keeps a number and its role in one line
    roles = ", ".join(f"{n} {role}".replace(" ", "\xa0") for role, n in data.roles.items())
    told = wrap(f"role, in the tab and behind ✗: {roles}", 56, max_lines=3, placeholder=" ...")
    entries: list[tuple[str | None, str]] = [(None, words) for words in told]
    entries += [(FOUND, "operand that its id finds"), (LOST, "operand that its id does not find")]
    faults = {fault for step in data.steps for fault in step.faults}
    entries += [(None, f"✗ {fault}: {FAULTS[fault]}") for fault in FAULTS if fault in faults]
    _lines(axes, 0.345, entries[:8])
    if not data.unit:
        _draw_letters(axes, data)


def _lines(axes: Axes, x: float, entries: Sequence[tuple[str | None, str]], top: int = 0) -> None:
    """Write lines of the key from the top down, each with a box if it has a colour."""
    for row, (look, words) in enumerate(entries, start=top):
        y = 1 - (row + 0.5) * KEY_LINE
        corner, size = (x, y - 0.38 * KEY_LINE), (0.02, 0.76 * KEY_LINE)
        if look in (FOUND, LOST):
            _key_operand(axes, corner, size, look == FOUND)
        elif look == HATCHED:
            key_box(axes, corner, size, Role("", NEW, ""), hatch="/////", edgecolor="0.6")
        elif look is not None:
            letter, _, colour = look.rpartition(" ")
            key_box(axes, corner, size, Role(letter, colour, ""))
        left = x if look is None else x + 0.026
        axes.text(left, y, words, size=7.5, va="center_baseline", transform=axes.transAxes)


def _key_operand(axes: Axes, corner, size, found: bool) -> None:
    """Draw how an operand looks: frame and tab, the number 1 in the tab."""
    (x, y), (width, height) = corner, size
    tab = _box(x, y + 0.55 * height, width, 0.45 * height)
    frame = _box(x, y, width, height)
    for shape, look in zip((frame, tab, frame), _looks(found, 1.4), strict=True):
        axes.add_patch(Polygon(shape, transform=axes.transAxes, **look))


def _draw_letters(axes: Axes, data: AlignmentData) -> None:
    """List the letters of ids in up to two columns, those that operands had in training first."""
    entries = [
        (f"{role.letter} {fill_of(data, id, reads=True)}", role.label)
        for id, role in sorted(data.shown.items(), key=lambda item: item[0] not in data.learned)
        if role.letter
    ]
    if len(entries) > 2 * KEY_LINES:
        left = len(entries) - 2 * KEY_LINES + 1
        entries = [*entries[:-left], (None, f"... and {left} more")]  # type: ignore[list-item]
    _lines(axes, 0.73, entries[:KEY_LINES])
    _lines(axes, 0.865, entries[KEY_LINES:])
