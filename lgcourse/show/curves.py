"""How does exact match change with scale? The curve that every run and every lesson draws."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lgcourse.relations.base import Scale, sizes_of

# Okabe and Ito's colours in an order whose greys differ too; markers repeat the distinction.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", "-", "--", "-.")

Rows = Mapping[str, Mapping[Scale, float]]


def curve_figure(rows: Rows, train_scale: int, title: str = "") -> Figure:
    """Draw exact match over scale, one line per row, the training range shaded.

    Where curves lie on each other, those below are broader and can be seen at both sides.

    Args:
        rows: label -> scale -> exact match in 0..1.
        train_scale: largest scale of training; the range up to it is shaded.
        title: title of the figure.

    Returns:
        A matplotlib `Figure` (not registered with pyplot); ``figure.alt`` says the same in words.

    >>> curve_figure({"rpe": {10: 1.0, 20: 0.0}}, train_scale=10).alt
    'Exact match over scale, trained on scales up to 10. rpe: 1.00 at 10, 0.00 at 20.'
    """
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.axvspan(0, train_scale, color="0.88", zorder=0)
    axes.text(0, 1.045, "grey: training scales", ha="left", va="bottom", color="0.25", size=9)
    for index, (label, scores) in enumerate(rows.items()):
        x = [max(sizes_of(scale)) for scale in scores]
        style: dict[str, Any] = {
            "color": COLOURS[index % len(COLOURS)],
            "marker": MARKERS[index % len(MARKERS)],
            "linestyle": LINES[index % len(LINES)],
        }
        # a curve that others cover is broader, so that it shows at both sides of them
        covered = sum(_lie_together(scores, other) for other in list(rows.values())[index + 1 :])
        style |= {"linewidth": 1.6 + 2.2 * covered, "markersize": 6 + 2.6 * covered}
        axes.plot(x, list(scores.values()), label=label, **style)
    axes.set(xlabel="scale n", ylabel="exact match", ylim=(-0.04, 1.04), title=title)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.alt = curve_text(rows, train_scale)  # type: ignore[attr-defined]
    return figure


def _lie_together(one: Mapping[Scale, float], other: Mapping[Scale, float]) -> bool:
    """Return whether two curves nearly coincide from one of their points to the next."""
    shared = [scale for scale in one if scale in other]
    close = [abs(one[scale] - other[scale]) < 0.02 for scale in shared]
    return any(a and b for a, b in zip(close, close[1:], strict=False))


def curve_text(rows: Rows, train_scale: int) -> str:
    """Say in words what `curve_figure` shows."""
    sentences = [f"Exact match over scale, trained on scales up to {train_scale}."]
    for label, scores in rows.items():
        points = (f"{v:.2f} at {'x'.join(map(str, sizes_of(s)))}" for s, v in scores.items())
        sentences.append(f"{label}: {', '.join(points)}.")
    return " ".join(sentences)


def png(figure: Figure, dpi: int = 110) -> bytes:
    """Return a figure as PNG bytes, its text alternative in the file's description."""
    buffer = io.BytesIO()
    text = getattr(figure, "alt", "")
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Description": text})
    return buffer.getvalue()
