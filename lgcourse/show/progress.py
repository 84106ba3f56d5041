"""How does a training go? The loss, and exact match at near and far scales, while it trains."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lgcourse.errors import InputError
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.show.curves import COLOURS, LINES, MARKERS
from lgcourse.training.evaluation import scale_name

WIDTH, HEIGHT = 9.6, 3.6  # inches

Losses = Mapping[int, float]
Scores = Mapping[int, Mapping[Scale, float]]


def training_figure(
    losses: Losses, scores: Scores, steps: int, train_scale: int, title: str = ""
) -> Figure:
    """Draw the loss over updates (left) and exact match over updates, one line per scale (right).

    Args:
        losses: update -> loss in nats, as `lgcourse.training.Run.losses`.
        scores: update -> scale -> exact match in 0..1; all with the same scales.
        steps: updates of the whole training, the end of both axes.
        train_scale: largest scale of training.
        title: title of the figure.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: an update lies outside 0..steps, or the scores have different scales.

    >>> training_figure({1: 2.3, 10: 0.5}, {10: {5: 1.0, 20: 0.25}}, 100, 5).alt
    'Training, 10 of 100 updates, on scales up to 5. Loss: 2.3 at update 1, 0.5 at 10. Exact match
    at update 10: 1.00 at scale 5, 0.25 at scale 20.'
    """
    text = training_text(losses, scores, steps, train_scale)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    figure.text(0.075, 0.945, title, size=10.5, va="center")
    left = figure.add_axes((0.075, 0.15, 0.35, 0.71))
    right = figure.add_axes((0.49, 0.15, 0.36, 0.71))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set(xlim=(0, steps), xlabel="update")
    left.set(ylabel="loss (nats)", yscale="log", ylim=(1e-4, 5))
    left.set_yticks([10.0**k for k in range(-4, 1)], ["0.0001", "0.001", "0.01", "0.1", "1"])
    left.minorticks_off()
    left.plot(list(losses), [max(1e-4, v) for v in losses.values()], color="black", linewidth=1.4)
    right.set(ylabel="exact match", ylim=(-0.04, 1.04))
    _draw_scores(right, scores, train_scale)
    figure.alt = text  # type: ignore[attr-defined]
    return figure


def _draw_scores(axes, scores: Scores, train_scale: int) -> None:
    for place, scale in enumerate(_scales(scores)):
        style = {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "linestyle": LINES[place % len(LINES)],
            "markersize": 4,
        }
        seen = max(sizes_of(scale)) <= train_scale
        label = f"scale {scale_name(scale)}" + (" (trained)" if seen else "")
        axes.plot(list(scores), [row[scale] for row in scores.values()], label=label, **style)
    if scores:
        axes.legend(
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.04),
            fontsize=8.5,
            handlelength=2,
        )


def training_text(losses: Losses, scores: Scores, steps: int, train_scale: int) -> str:
    """Say in words what `training_figure` shows.

    >>> training_text({}, {}, 100, 5)
    'Training, 0 of 100 updates, on scales up to 5. Not started.'
    """
    done = max([0, *losses, *scores])
    if done > steps or min([0, *losses, *scores]) < 0:
        raise InputError(f"updates lie in 0..{steps}, got {done}; give the steps of the training")
    start = f"Training, {done} of {steps} updates, on scales up to {train_scale}."
    if not losses and not scores:
        return f"{start} Not started."
    parts = [start]
    if losses:
        first, last = min(losses), max(losses)
        words = f"Loss: {losses[first]:.2g} at update {first}"
        parts.append(f"{words}, {losses[last]:.2g} at {last}." if last > first else f"{words}.")
    if scores:
        told = ", ".join(
            f"{scores[max(scores)][scale]:.2f} at scale {scale_name(scale)}"
            for scale in _scales(scores)
        )
        parts.append(f"Exact match at update {max(scores)}: {told}.")
    return " ".join(parts)


def _scales(scores: Scores) -> list[Scale]:
    """Return the scales of all scores; refuse rows with different ones."""
    rows = [list(row) for row in scores.values()]
    if any(row != rows[0] for row in rows):
        raise InputError(f"all scores have the same scales, got {rows[0]!r} and others")
    return rows[0] if rows else []
