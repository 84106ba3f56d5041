"""Where do prediction and measurement differ? A grid of tasks and embeddings, both side by side."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lgcourse.errors import InputError

CELL, HIGH = 0.62, 0.36  # inches of a cell, wide and high
LEFT, RIGHT, TOP, BOTTOM = 2.5, 0.25, 1.35, 1.15  # inches around the grid
# verdict -> fill, hatch, mark, words. Fills differ in lightness alone, and marks repeat the
# difference, so that the figure reads the same in grey and for every kind of colour vision.
LOOKS = {
    "generalises": ("0.25", "", "+", "generalises"),
    "fails": ("1.0", "", "\u2013", "fails"),
    "not trained": ("0.86", "////", "", "not trained"),
    "no prediction": ("0.93", "", "?", "no prediction, or not covered"),
    "not covered": ("0.93", "", "?", "no prediction, or not covered"),
    "refused": ("0.70", "", "x", "cannot be built"),
    "unfinished": ("1.0", "....", "", "not finished"),
}
FRAME = "#D55E00"  # vermilion; the frame is thick and has a sign, its colour is not needed
Verdicts = Mapping[tuple[str, str], tuple[str, str]]


def matrix_figure(cells: Verdicts, title: str = "") -> Figure:
    """Draw what was predicted (left half) and measured (right half) for tasks and embeddings.

    Args:
        cells: (task, embedding) -> (predicted, measured), both among generalises, fails,
            not trained, no prediction, not covered, refused, unfinished. Pairs may be missing.
        title: title of the figure.

    Returns:
        A matplotlib `Figure` (not registered with pyplot), one row per task and one column per
        embedding. Where both verdicts are generalises or fails and they differ, the cell has a
        thick frame and a star above its middle. ``figure.alt`` says the same in words.

    Raises:
        InputError: there is no cell, or a verdict is unknown.

    >>> cells = {("copy", "rpe"): ("fails", "generalises"), ("copy", "t5"): ("fails", "fails")}
    >>> matrix_figure(cells).alt
    'Predicted and measured length generalisation, 1 task by 2 embeddings. 2 cells have both:
    they agree in 1 and differ in 1. Differ: copy with rpe (predicted fails, measured generalises).
    copy: generalises measured with rpe; fails with t5.'
    """
    text = matrix_text(cells)
    tasks, embeddings = _sides(cells)
    width = LEFT + CELL * len(embeddings) + RIGHT
    height = TOP + HIGH * len(tasks) + BOTTOM
    width = max(width, 6.5)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes(
        (
            LEFT / width,
            BOTTOM / height,
            CELL * len(embeddings) / width,
            HIGH * len(tasks) / height,
        )
    )
    axes.set(xlim=(0, len(embeddings)), ylim=(len(tasks), 0))
    for (task, pe), verdicts in cells.items():
        _draw(axes, float(embeddings.index(pe)), float(tasks.index(task)), verdicts)
    axes.set_xticks([k + 0.5 for k in range(len(embeddings))], embeddings)
    axes.set_yticks([k + 0.5 for k in range(len(tasks))], tasks)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    for tick in axes.xaxis.get_major_ticks():
        tick.label2.set(rotation=45, ha="left", rotation_mode="anchor")
    figure.text(0.12 / width, 1 - 0.2 / height, title, size=11, va="center")
    _legend(figure, {verdict for pair in cells.values() for verdict in pair}, width, height)
    figure.alt = text  # type: ignore[attr-defined]
    return figure


def matrix_text(cells: Verdicts) -> str:
    """Say in words what `matrix_figure` shows.

    Args:
        cells: as `matrix_figure`.

    Raises:
        InputError: there is no cell, or a verdict is unknown.
    """
    if not cells:
        raise InputError("there is no cell to show; run a sweep first")
    for pair in cells.values():
        for verdict in pair:
            if verdict not in LOOKS:
                raise InputError(f"unknown verdict {verdict!r}; known: {', '.join(LOOKS)}")
    tasks, embeddings = _sides(cells)
    both = [place for place, pair in cells.items() if _counts(pair)]
    apart = [place for place in both if _differ(cells[place])]
    sentences = [
        f"Predicted and measured length generalisation, {_many(len(tasks), 'task')} by "
        f"{_many(len(embeddings), 'embedding')}.",
        f"{_many(len(both), 'cell')} {'has' if len(both) == 1 else 'have'} both: they agree in "
        f"{len(both) - len(apart)} and differ in {len(apart)}.",
    ]
    if apart:
        shown = (
            f"{t} with {e} (predicted {cells[t, e][0]}, measured {cells[t, e][1]})"
            for t, e in apart
        )
        sentences.append(f"Differ: {'; '.join(shown)}.")
    for task in tasks:
        found: dict[str, list[str]] = {}
        for pe in embeddings:
            if (task, pe) in cells:
                found.setdefault(cells[task, pe][1], []).append(pe)
        parts = [f"{verdict} with {', '.join(pes)}" for verdict, pes in found.items()]
        parts[0] = parts[0].replace(" with ", " measured with ", 1)
        sentences.append(f"{task}: {'; '.join(parts)}.")
    return " ".join(sentences)


def _sides(cells: Verdicts) -> tuple[list[str], list[str]]:
    return [*dict.fromkeys(task for task, _ in cells)], [*dict.fromkeys(pe for _, pe in cells)]


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _counts(pair: tuple[str, str]) -> bool:
    return all(verdict in ("generalises", "fails") for verdict in pair)


def _differ(pair: tuple[str, str]) -> bool:
    return _counts(pair) and pair[0] != pair[1]


def _draw(axes: Axes, x: float, y: float, pair: tuple[str, str]) -> None:
    for side, verdict in enumerate(pair):
        _half(axes, x + side / 2, y, 0.5, 1.0, verdict)
    axes.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor="0.45", linewidth=0.8))
    if _differ(pair):
        inside = Rectangle((x + 0.04, y + 0.06), 0.92, 0.88, fill=False)
        inside.set(edgecolor=FRAME, linewidth=3.2, zorder=4)
        axes.add_patch(inside)
        star = axes.text(x + 0.5, y + 0.5, "*", size=9, weight="bold", ha="center", va="center")
        star.set_bbox({"boxstyle": "circle,pad=0.0", "facecolor": "white", "edgecolor": FRAME})
        star.set_zorder(5)


def _half(axes: Axes, x: float, y: float, wide: float, high: float, verdict: str) -> None:
    fill, hatch, mark, _ = LOOKS[verdict]
    patch = Rectangle((x, y), wide, high, facecolor=fill, edgecolor="0.6", linewidth=0.4)
    patch.set_hatch(hatch)
    axes.add_patch(patch)
    ink = "white" if float(fill) < 0.5 else "black"
    axes.text(x + wide / 2, y + high / 2, mark, color=ink, size=10, ha="center", va="center")


def _legend(figure: Figure, used: set[str], width: float, height: float) -> None:
    axes = figure.add_axes((0.02, 0.02, 0.96, (BOTTOM - 0.25) / height))
    axes.set(xlim=(0, width * 0.96), ylim=(BOTTOM - 0.25, 0))
    axes.set_axis_off()
    words = "left half: predicted; right half: measured; star in a thick frame: they differ"
    axes.text(0.05, 0.12, shorten(words, 120), size=9, va="center")
    shown: dict[str, str] = {}
    for verdict, look in LOOKS.items():
        if verdict in used:
            shown.setdefault(look[3], verdict)
    x, y = 0.05, 0.3
    for words, verdict in shown.items():
        step = 0.45 + 0.075 * len(words)
        if x + step > width * 0.96 and x > 0.05:
            x, y = 0.05, y + 0.3
        _half(axes, x, y, 0.25, 0.2, verdict)
        axes.text(x + 0.32, y + 0.1, words, size=9, va="center")
        x += step
