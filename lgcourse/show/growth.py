"""Which operators are used at each scale, and how does their number grow? For LRC and for SRC.

`growth_figure` draws a map of operators beside the curve of their number. `target_growth` makes the
data from a target (LRC), `circuit_growth` from a circuit and a relation (SRC); `growth_text` says
it in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lgcourse.errors import whole_number
from lgcourse.relations.base import Relation
from lgcourse.show.cells import draw_cells, name_axes, palette
from lgcourse.show.complexity import complexity_text
from lgcourse.show.curves import COLOURS, MARKERS
from lgcourse.show.layout import ink
from lgcourse.show.operators import ZERO, operators_data, shade, text_size, write_many
from lgcourse.theory.adapters import as_target
from lgcourse.theory.circuits import steps_at
from lgcourse.theory.linear import lrc_curve
from lgcourse.theory.merging import induced_src_curve, src_curve

WIDTH, HEIGHT = 9.6, 4.4  # inches
LARGEST = 64  # largest scale: beyond it cells are smaller than what can be seen
OUTSIDE = -2  # a cell of the map that is not there
Array = np.ndarray


@dataclass(frozen=True)
class GrowthData:
    """What `growth_figure` draws.

    Args:
        title: what it is about.
        map_title: what the map shows.
        rows, columns: what the axes of the map are.
        map: the number of the operator of each cell in order of appearance, ZERO for the zero
            operator, OUTSIDE for a cell that is not there.
        curves: label -> scale -> number of operators.
        train_scale: largest scale of training.
    """

    title: str
    map_title: str
    rows: str
    columns: str
    map: Int[Array, "r c"]
    curves: dict[str, dict[int, int]]
    train_scale: int

    @property
    def growth(self) -> int:
        """How many operators the first curve has at its end and not yet in training."""
        curve = next(iter(self.curves.values()))
        return curve[max(curve)] - curve[min(self.train_scale, max(curve))]


def target_growth(target: Any, scale: int, train_scale: int) -> GrowthData:
    """Collect the operators of a target at one scale, and both readings of its LRC up to it.

    Args:
        target: see `lgcourse.theory.adapters.as_target`.
        scale: the largest scale n, up to 64.
        train_scale: largest scale of training.

    Raises:
        InputError: the target or a scale cannot be used.

    >>> data = target_growth("half", 4, 2)
    >>> data.map.tolist()[3], data.curves["operators"]
    ([-1, 0, -1, -1], {1: 1, 2: 1, 3: 1, 4: 1})
    """
    _check(scale, train_scale)
    target = as_target(target)
    found = operators_data(target, scale)
    later = np.triu_indices(scale, 1)
    ids = found.ids.copy()
    ids[later] = OUTSIDE
    return GrowthData(
        title=f"Target {target.name}, scale {scale}",
        map_title="Operators A(i, j, n): equal ones have one number",
        rows="query i",
        columns="key j",
        map=ids,
        curves={kind: lrc_curve(target, scale, kind) for kind in ("operators", "rank")},
        train_scale=train_scale,
    )


def circuit_growth(
    circuit: Any, relation: Relation | None, scale: int, train_scale: int, name: str = ""
) -> GrowthData:
    """Collect which operator each step has at each scale, and the SRC up to it.

    Args:
        circuit: a task with one size, or anything that `lgcourse.theory.circuits.steps_at` reads.
        relation: a relation whose induced operators are counted too, or None.
        scale: the largest scale n, up to 64.
        train_scale: largest scale of training.
        name: what the circuit is called; by default the task's name.

    Raises:
        InputError: the circuit or a scale cannot be used.

    >>> from lgcourse import tasks
    >>> data = circuit_growth(tasks.get("parity-cot"), None, 3, 2)
    >>> data.map.tolist(), data.curves
    ([[0, -2, -2], [0, 1, -2], [0, 1, 1]], {'unit operators': {1: 1, 2: 2, 3: 2}})
    """
    _check(scale, train_scale)
    sized = getattr(circuit, "scale_of", lambda n: n)
    rows = [steps_at(circuit, sized(n)) for n in range(1, scale + 1)]
    numbers: dict[Any, int] = {}
    ids = np.full((scale, max(map(len, rows), default=1) or 1), OUTSIDE)
    for row, steps in enumerate(rows):
        for column, step in enumerate(steps):
            ids[row, column] = numbers.setdefault(step.operator, len(numbers))
    curves = {"unit operators": src_curve(circuit, scale)}
    if relation is not None:
        curves[f"induced by {relation.name}"] = induced_src_curve(circuit, relation, scale)
    name = name or getattr(circuit, "name", "circuit")
    return GrowthData(
        title=f"Circuit of {name}, scales 1 to {scale}",
        map_title="Unit operator of each step: equal ones have one number",
        rows="scale n",
        columns="step",
        map=ids,
        curves=curves,
        train_scale=train_scale,
    )


def _check(scale: object, train_scale: object) -> None:
    whole_number("scale", scale, 1, LARGEST)
    whole_number("train_scale", train_scale, 1)


# --- in words -------------------------------------------------------------------------------------
def growth_text(data: GrowthData) -> str:
    """Say in words what `growth_figure` shows.

    >>> growth_text(target_growth("position-weighted", 3, 2)).split(". ")[1]
    'Operators A(i, j, n): equal ones have one number: 3 different ones, 3 cells with the zero
    operator'
    """
    cells = data.map[data.map != OUTSIDE]
    different = len(set(cells[cells != ZERO].tolist()))
    zeros = int((cells == ZERO).sum())
    words = f"{data.map_title}: {different} different ones"
    words += f", {zeros} cells with the zero operator" if zeros else ""
    return f"{data.title}. {words}. {complexity_text(data.curves, data.train_scale)}"


# --- drawing --------------------------------------------------------------------------------------
def growth_figure(data: GrowthData) -> Figure:
    """Draw a map of operators (left) and how their number grows with the scale (right).

    Args:
        data: what `target_growth` or `circuit_growth` collected.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    >>> growth_figure(target_growth("band", 8, 4)).alt.split(". ")[0]
    'Target band, scale 8'
    """
    figure = Figure(figsize=(WIDTH, HEIGHT))
    figure.text(0.01, 0.96, shorten(data.title, 100), size=10.5, va="center")
    left = figure.add_axes((0.055, 0.12, 0.4, 0.74))
    _draw_map(left, data)
    right = figure.add_axes((0.53, 0.12, 0.3, 0.74))
    _draw_curves(right, data)
    figure.alt = growth_text(data)  # type: ignore[attr-defined]
    return figure


def _draw_map(axes, data: GrowthData) -> None:
    most = max(1, int(data.map.max()) + 1)
    table = palette([*(shade(id) for id in range(most)), "#FFFFFF", "#EDEDED"])  # OUTSIDE, ZERO
    count_r, count_c = data.map.shape
    start = 1 if data.rows == "scale n" else 0
    rows = [str(r + start) for r in range(count_r)]
    columns = [str(c + start) for c in range(count_c)]
    width, height = draw_cells(axes, table[data.map], rows, columns, ticks=11)
    name_axes(axes, data.rows, data.columns, data.map_title)
    for id in range(most):
        size = text_size(str(id), width, height)
        points = [(c + 0.5, r + 0.5) for r, c in np.argwhere(data.map == id).tolist()]
        if size >= 5 and points:
            write_many(axes, str(id), points, size, ink(shade(id)), "normal")


def _draw_curves(axes, data: GrowthData) -> None:
    """Draw one line of steps per curve, with its label and its last number at its end."""
    last = data.map.shape[0]
    axes.axvspan(0.5, min(data.train_scale, last) + 0.5, color="0.9", zorder=0)
    high = max(max(curve.values()) for curve in data.curves.values())
    for place, (label, curve) in enumerate(data.curves.items()):
        colour, counts = COLOURS[place], list(curve.values())
        edges = [*(n - 0.5 for n in curve), max(curve) + 0.5]
        axes.stairs(counts, edges, baseline=None, color=colour, linewidth=3 - 1.2 * place)
        y = 0.97 - 0.16 * place
        axes.plot(
            [1.04], [y], marker=MARKERS[place], color=colour, transform=axes.transAxes,
            clip_on=False,
        )  # fmt: skip
        at = {"transform": axes.transAxes, "va": "center"}
        axes.text(1.08, y, shorten(label, 26, placeholder="..."), size=8.5, weight="bold", **at)
        axes.text(1.08, y - 0.06, f"{counts[-1]:,} at {max(curve)}", size=8, **at)
        axes.plot(list(curve)[-1:], counts[-1:], marker=MARKERS[place], color=colour)
    axes.text(0.0, 1.03, "grey: training scales", size=8.5, transform=axes.transAxes)
    axes.set(xlim=(0.5, last + 0.5), ylim=(-0.04 * high - 0.05, 1.08 * high + 0.3))
    axes.set_xlabel("scale n", size=8.5, labelpad=1)
    axes.set_ylabel("number up to scale n", size=8.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
