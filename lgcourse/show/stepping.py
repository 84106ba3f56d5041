"""Which tokens make the next one? One step of a circuit, with what is written so far.

`step_figure` draws a sequence up to one step, its operands and the token that they make.
`step_data` holds what is drawn, `step_text` says it in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from textwrap import shorten
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from lgcourse.errors import InputError
from lgcourse.relations.base import Scale
from lgcourse.show.cells import write_each
from lgcourse.show.curves import COLOURS
from lgcourse.show.layout import LETTERS, Role, _and
from lgcourse.theory.circuits import show_scale, steps_at

WIDTH, HEIGHT = 9.6, 4.4  # inches
PER_ROW, ROWS = 40, 4  # tokens of a row, and rows of the picture
BOXES = {"given": "#EDEDED", "written": "#FFFFFF", "made": "#FFF3B0", "open": "#FFFFFF"}


@dataclass(frozen=True)
class Read:
    """One operand of the step.

    Args:
        position: where it stands.
        role: its letter, its colour and its role in the operator.
    """

    position: int
    role: Role


@dataclass(frozen=True)
class StepData:
    """What `step_figure` draws.

    Args:
        title: the task, its scale, and which step of how many.
        tokens, names: one text per position: the token, and what the layout calls the place.
        prompt_length: number of tokens up to and with ``=``.
        output: the position that the step writes; later ones are still open.
        operator: the name of its operator.
        reads: its operands.
        value: what the operator makes of the operands, as a token.
        operators: how many different operators the steps up to this one have.
    """

    title: str
    tokens: list[str]
    names: list[str]
    prompt_length: int
    output: int
    operator: str
    reads: list[Read]
    value: str
    operators: int


def step_data(task: Any, scale: Scale, step: int, seed: int = 0) -> StepData:
    """Draw one sample of a task and look at one step of its circuit.

    Args:
        task: a `Task` with a circuit.
        scale: the scale n.
        step: the number of the step, from 1.
        seed: seed of the sample.

    Returns:
        A `StepData`.

    Raises:
        InputError: the task has no circuit at this scale, or no such step; or the sequence is too
            long to draw.

    >>> from lgcourse import tasks
    >>> data = step_data(tasks.get("parity-cot"), 4, 3)
    >>> data.operator, [(data.names[r.position], r.role.label) for r in data.reads]
    ('add', [('y2', 'before'), ('x3', 'next')])
    """
    steps = steps_at(task, scale)
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= len(steps):
        raise InputError(
            f"task '{task.name}' has the steps 1..{len(steps)} at scale {show_scale(scale)}, "
            f"got {step!r}"
        )
    if task.length(scale) > PER_ROW * ROWS:
        raise InputError(
            f"the picture has room for {PER_ROW * ROWS} tokens, task '{task.name}' has "
            f"{task.length(scale)} at scale {show_scale(scale)}; choose a smaller scale"
        )
    tokens = task.sample(scale, 1, torch.Generator().manual_seed(seed)).tokens[0].tolist()
    this = steps[step - 1]
    reads = [
        Read(key, Role(LETTERS[k % len(LETTERS)], COLOURS[k % (len(COLOURS) - 1)], name))
        for k, (name, key) in enumerate(zip(this.operator.roles, this.inputs, strict=True))
    ]
    made = this.operator(*(tokens[key] for key in this.inputs))
    return StepData(
        title=f"{task.name}, scale {show_scale(scale)}: step {step} of {len(steps)}",
        tokens=[task.vocabulary[token] for token in tokens],
        names=task.layout(scale),
        prompt_length=task.prompt_length(scale),
        output=this.output,
        operator=this.operator.name,
        reads=reads,
        value=task.vocabulary[made],
        operators=len({one.operator for one in steps[:step]}),
    )


# --- in words -------------------------------------------------------------------------------------
def step_text(task: Any, scale: Scale, step: int, seed: int = 0) -> str:
    """Say in words what `step_figure` shows.

    >>> from lgcourse import tasks
    >>> print(step_text(tasks.get("copy"), 2, 1))  # doctest: +NORMALIZE_WHITESPACE
    Task copy, scale 2: step 1 of 2. So far: 4 9 =. The step writes y1 at position 3: take of
    x1 '4' (A: source) gives '4'. Operators used so far: 1.
    """
    return _text(step_data(task, scale, step, seed))


def _text(data: StepData) -> str:
    so_far = " ".join(data.tokens[: data.output])
    return (
        f"Task {data.title}. So far: {so_far}. The step writes {data.names[data.output]} at "
        f"position {data.output}: {_formula(data)} gives '{data.value}'. Operators used so far: "
        f"{data.operators}."
    )


def _formula(data: StepData) -> str:
    operands = [
        f"{data.names[r.position]} '{data.tokens[r.position]}' ({r.role.letter}: {r.role.label})"
        for r in data.reads
    ]
    return f"{data.operator} of {_and(operands)}"


# --- drawing --------------------------------------------------------------------------------------
def step_figure(task: Any, scale: Scale, step: int, seed: int = 0) -> Figure:
    """Draw a sequence up to one step: what is given, what is written, what the step reads.

    Operands have coloured boxes with the letters of their roles and arrows to the token that the
    step makes. Tokens that later steps write are still dots.

    Args:
        task, scale, step, seed: as `step_data`.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: as `step_data`.

    >>> from lgcourse import tasks
    >>> step_figure(tasks.get("addition"), 3, 2).alt.split(". ")[0]
    'Task addition, scale 3: step 2 of 4'
    """
    data = step_data(task, scale, step, seed)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_axes((0.01, 0.0, 0.98, 1.0))
    axes.set_axis_off()
    axes.text(0.0, 0.955, data.title, size=11, va="center", transform=axes.transAxes)
    words = "grey: given; white: written; dots: still open; yellow: what this step writes"
    axes.text(1.0, 0.955, words, size=8.5, va="center", ha="right", transform=axes.transAxes)
    _draw_tokens(axes, data)
    _draw_step(axes, data)
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure


def _grid(data: StepData) -> tuple[int, int]:
    """Return the tokens of a row and the number of rows."""
    per_row = max(14, min(PER_ROW, len(data.tokens)))
    return per_row, ceil(len(data.tokens) / per_row)


def _middle(data: StepData, position: int) -> tuple[float, float]:
    per_row, _ = _grid(data)
    return position % per_row + 0.5, position // per_row + 0.5


def _draw_tokens(axes: Axes, data: StepData) -> None:
    per_row, rows = _grid(data)
    top = 1.25 if rows == 1 else 0.45  # rows of room for the title and the arrows
    axes.set(xlim=(0, per_row), ylim=(max(rows, 2) + 1.1, -top))
    kinds = [
        "given" if p < data.prompt_length else
        "made" if p == data.output else
        "written" if p < data.output else "open"
        for p in range(len(data.tokens))
    ]  # fmt: skip
    boxes = [_box(*_middle(data, p)) for p in range(len(data.tokens))]
    reads = {read.position: read.role.colour for read in data.reads}
    edges = [reads.get(p, "black" if p == data.output else "0.55") for p in range(len(boxes))]
    widths = [3.4 if p in reads else 2.4 if p == data.output else 0.7 for p in range(len(boxes))]
    axes.add_collection(
        PolyCollection(
            boxes, facecolors=[BOXES[k] for k in kinds], edgecolors=edges, linewidths=widths
        ),
        autolim=False,
    )
    size = min(13.0, 0.6 * WIDTH * 72 / per_row)
    for bold in (True, False):
        shown = [p for p in range(len(boxes)) if (p in reads or p == data.output) is bold]
        words = [data.tokens[p] if p <= data.output else "·" for p in shown]
        points = [_middle(data, p) for p in shown]
        write_each(axes, words, points, size, weight="bold" if bold else "normal")


def _box(x: float, y: float) -> list[tuple[float, float]]:
    wide, high = 0.42, 0.2
    return [(x - wide, y - high), (x + wide, y - high), (x + wide, y + high), (x - wide, y + high)]


def _draw_step(axes: Axes, data: StepData) -> None:
    """Draw arrows from the operands, their names, and what is computed."""
    end = _middle(data, data.output)
    small: dict[str, Any] = {"size": 8, "ha": "center", "va": "center"}
    for number, read in enumerate(data.reads):
        x, y = _middle(data, read.position)
        bend = -0.32 if y == end[1] else -0.12
        axes.annotate(
            "", (end[0], end[1] - 0.22), (x, y - 0.22),
            arrowprops={
                "arrowstyle": "-|>", "color": read.role.colour, "linewidth": 1.8,
                "connectionstyle": f"arc3,rad={bend - 0.05 * (number % 3)}",
                "shrinkA": 0, "shrinkB": 1,
            },
        )  # fmt: skip
        name = f" {data.names[read.position]}" if _grid(data)[0] <= 20 else ""  # room for it
        axes.text(x, y + 0.32, f"{read.role.letter}{name}", **small)
    operands = ", ".join(f"{read.role.letter}: {read.role.label}" for read in data.reads)
    values = ", ".join(
        f"{r.role.letter} = {data.names[r.position]} = '{data.tokens[r.position]}'"
        for r in data.reads
    )
    place: dict[str, Any] = {"transform": axes.transAxes, "va": "center"}
    words = f"{data.names[data.output]} = {data.operator}({operands})"
    axes.text(0.0, 0.13, shorten(words, 130, placeholder=" ..."), size=10.5, **place)
    words = f"here {values}, so '{data.value}'. Different operators so far: {data.operators}"
    axes.text(0.0, 0.05, shorten(words, 140, placeholder=" ..."), size=10.5, **place)
