"""How many operators does a target or a task need, scale by scale? The curves of LRC and SRC."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from textwrap import shorten
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from lgcourse.errors import InputError
from lgcourse.show.curves import COLOURS, MARKERS

WIDTH, HEIGHT = 8.0, 4.0  # inches
MOST = 10  # curves whose labels fit
SPREAD = 30  # from this ratio of the largest to the smallest count on, the axis is logarithmic
TOLD = 5  # stretches of a curve that the text tells before it leaves some out

Curve = Mapping[int, int]


def complexity_figure(
    curves: Any,
    train_scale: int | None = None,
    title: str = "",
    quantity: str = "number of operators",
) -> Figure:
    """Draw LRC or SRC over scale, one line of steps per curve, each with its label at its end.

    Args:
        curves: label -> scale -> count, as `lgcourse.theory.lrc_curve` and `src_curve` return it
            (scales may be texts, as in JSON). A count holds until the next scale of its curve.
        train_scale: largest scale of training; the range up to it is shaded.
        title: title of the figure.
        quantity: what is counted.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words. The axis of counts is logarithmic if the largest is 30 times the smallest.

    Raises:
        InputError: there is no curve or more than 10, a curve is empty, a scale or a count is no
            whole number, or a curve decreases, which LRC and SRC never do.

    >>> complexity_figure({"src": {1: 1, 2: 2, 3: 2}, "ape": {1: 1, 2: 3, 3: 5}}, 2).alt
    'Number of operators over scale, trained on scales up to 2. src: 1 at 1, 2 at 2..3; it does not
    grow after training. ape: 1 at 1, 3 at 2, 5 at 3; it grows after training.'
    """
    text, checked = complexity_text(curves, train_scale, quantity), _checked(curves)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_axes((0.085, 0.13, 0.6, 0.72))
    first = min(min(curve) for curve in checked.values())
    last = max(max(curve) for curve in checked.values())
    if train_scale is not None:
        _shade(axes, first, last, train_scale)
    drawn = list(checked.values())
    for index, curve in enumerate(drawn):
        hidden_by = sum(_alike(curve, later) for later in drawn[index + 1 :])
        _draw(axes, index, curve, width=1.8 + 2.2 * hidden_by)
    axes.set(xlabel="scale n", ylabel=f"{quantity} up to scale n")
    figure.text(0.085, 0.95, title, size=11, va="center")
    axes.set_xlim(first - 0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    _scale_counts(axes, checked)
    _label_ends(axes, checked, train_scale)
    figure.alt = text  # type: ignore[attr-defined]
    return figure


def complexity_text(
    curves: Any,
    train_scale: int | None = None,
    quantity: str = "number of operators",
) -> str:
    """Say in words what `complexity_figure` shows.

    >>> complexity_text({"half": {1: 1, 2: 1, 3: 1}})
    'Number of operators over scale. half: 1 at 1..3.'
    """
    trained = "" if train_scale is None else f", trained on scales up to {_whole(train_scale)}"
    sentences = [f"{quantity[:1].upper()}{quantity[1:]} over scale{trained}."]
    for label, curve in _checked(curves).items():
        told = [f"{count} at {scales}" for scales, count in stretches(curve)]
        if len(told) > TOLD + 1:
            told = [*told[: TOLD - 1], "and so on", told[-1]]
        growth = _growth(curve, train_scale)
        sentences.append(f"{label}: {', '.join(told)}{'; it ' + growth if growth else ''}.")
    return " ".join(sentences)


def stretches(curve: Curve) -> list[tuple[str, int]]:
    """Return a curve as stretches of scales with the same count.

    >>> stretches({1: 1, 2: 2, 3: 2})
    [('1', 1), ('2..3', 2)]
    """
    runs: list[list[int]] = []
    for scale, count in curve.items():
        if runs and runs[-1][2] == count:
            runs[-1][1] = scale
        else:
            runs.append([scale, scale, count])
    return [(str(a) if a == b else f"{a}..{b}", count) for a, b, count in runs]


def _growth(curve: Curve, train_scale: int | None) -> str:
    """Say whether a curve grows after training; nothing if it has no scale before or after."""
    if train_scale is None or not min(curve) <= train_scale < max(curve):
        return ""
    before = max(count for scale, count in curve.items() if scale <= train_scale)
    return "grows after training" if curve[max(curve)] > before else "does not grow after training"


def _checked(curves) -> dict[str, dict[int, int]]:
    """Return the curves with whole numbers as scales, in order; refuse what is no such curve."""
    if not isinstance(curves, Mapping) or not curves:
        raise InputError(f"curves is a dictionary label -> curve with at least one, got {curves!r}")
    if len(curves) > MOST:
        raise InputError(f"a figure can label up to {MOST} curves, got {len(curves)}; draw two")
    checked = {}
    for label, curve in curves.items():
        if not isinstance(curve, Mapping) or not curve:
            raise InputError(
                f"a curve is a dictionary scale -> count with at least one scale, got {curve!r} "
                f"for {label!r}; write {{'label': curve}}"
            )
        rows = sorted((_whole(scale), _count(count, label)) for scale, count in curve.items())
        for (low, before), (high, after) in zip(rows, rows[1:], strict=False):
            if after < before:
                raise InputError(
                    f"counts up to a scale never decrease, but '{label}' has {before} at {low} and "
                    f"{after} at {high}"
                )
        checked[str(label)] = dict(rows)
    return checked


def _whole(scale) -> int:
    number = int(scale) if isinstance(scale, str) and scale.isdecimal() else scale
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InputError(f"a scale is a whole number of at least 1, got {scale!r}")
    return number


def _count(count, label) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InputError(f"a count is a whole number of at least 0, got {count!r} in '{label}'")
    return count


# --- drawing --------------------------------------------------------------------------------------
def _shade(axes: Axes, first: int, last: int, train_scale: int) -> None:
    right = min(train_scale, last) + 0.5
    axes.axvspan(first - 0.5, right, color="0.88", zorder=0)
    axes.text(
        first - 0.5, 1.01, " training scales", size=8.5, color="0.25", va="bottom",
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip


def _alike(first: Curve, second: Curve) -> bool:
    """Return whether two curves would mostly hide each other; the one below is drawn thicker."""
    return 2 * sum(second.get(scale) == count for scale, count in first.items()) > len(first)


def _draw(axes: Axes, index: int, curve: dict[int, int], width: float) -> None:
    """Draw one curve: a step per scale, and a marker at up to twelve of them."""
    scales, counts = list(curve), list(curve.values())
    colour = COLOURS[index % len(COLOURS)]
    edges = [*(scale - 0.5 for scale in scales), scales[-1] + 0.5]
    axes.stairs(counts, edges, baseline=None, color=colour, linewidth=width)
    every = ceil(len(scales) / 12)
    shown = range((len(scales) - 1) % every, len(scales), every)  # the last one is among them
    axes.plot(
        [scales[k] for k in shown], [counts[k] for k in shown], linestyle="", color=colour,
        marker=MARKERS[index % len(MARKERS)], markersize=4 + width / 2,
    )  # fmt: skip


def _scale_counts(axes: Axes, curves: dict[str, dict[int, int]]) -> None:
    counts = [count for curve in curves.values() for count in curve.values()]
    low, high = min(counts), max(counts)
    if high >= SPREAD * max(low, 1):
        # 0 has no place on a logarithmic axis; symlog is linear from 0 to 1
        axes.set_yscale("log") if low else axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0.8 * low if low else -0.15, 1.5 * high)
        axes.set_yticks([c for c in _one_two_five(high) if c >= low])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
        axes.set_ylabel(f"{axes.get_ylabel()} (log)")
    else:
        axes.set_ylim(-0.04 * max(high, 1), max(1.08 * high, high + 0.5))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _one_two_five(high: int) -> list[int]:
    """Return 0, 1, 2, 5, 10, 20, ... up to a number; only powers of ten where these are many.

    >>> _one_two_five(60)
    [0, 1, 2, 5, 10, 20, 50]
    """
    digits = (1, 2, 5) if high < 10_000 else (1,)
    return [0, *(d * 10**k for k in range(len(str(high))) for d in digits if d * 10**k <= high)]


def _label_ends(axes: Axes, curves: dict[str, dict[int, int]], train_scale: int | None) -> None:
    """Write each label beside the end of its curve, moved apart where ends are close."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [(max(curve), curve[max(curve)]) for curve in curves.values()]
    gap = 27 / (HEIGHT * axes.get_position().height * 72)  # two lines of text, as a share
    places = _apart([float(to_axes.transform(end)[1]) for end in ends], gap)
    for index, (label, curve) in enumerate(curves.items()):
        scale, count = ends[index]
        growth = _growth(curve, train_scale)
        words = f"{count:,} at {scale}" + (f", {growth}" if growth else "")
        colour, middle = COLOURS[index % len(COLOURS)], places[index]
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
        axes.annotate(
            "", (scale + 0.5, count), (1.05, middle + 0.2 * gap), arrowprops=line,
            textcoords="axes fraction", annotation_clip=False,
        )  # fmt: skip
        axes.plot(
            [1.06], [middle + 0.2 * gap], marker=MARKERS[index % len(MARKERS)], markersize=7,
            color=colour, transform=axes.transAxes, clip_on=False,
        )  # fmt: skip
        place: dict[str, Any] = {"transform": axes.transAxes, "va": "center"}
        name = shorten(label, 34, placeholder="...")
        axes.text(1.085, middle + 0.2 * gap, name, size=9.5, weight="bold", **place)
        axes.text(1.085, middle - 0.25 * gap, words, size=8, color="0.2", **place)


def _apart(heights: list[float], gap: float) -> list[float]:
    """Move heights as little as needed so that neighbours keep a gap, within 0..1 if they can.

    >>> _apart([0.5, 0.5, 0.875], 0.25)
    [0.375, 0.625, 0.875]
    """
    groups: list[list[int]] = []  # heights that touch, from below

    def middle(group: list[int]) -> float:
        mean = sum(heights[k] for k in group) / len(group)
        half = gap * (len(group) - 1) / 2
        return 0.5 if half > 0.5 else min(max(mean, half), 1 - half)

    for k in sorted(range(len(heights)), key=lambda k: heights[k]):
        group = [k]
        while (
            groups and middle(group) - middle(groups[-1]) < gap * (len(group) + len(groups[-1])) / 2
        ):
            group = [*groups.pop(), *group]
        groups.append(group)
    placed = list(heights)
    for group in groups:
        for rank, k in enumerate(group):
            placed[k] = middle(group) + gap * (rank - (len(group) - 1) / 2)
    return placed
