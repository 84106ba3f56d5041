"""Will it generalise? A guess, the prediction and what was measured, side by side.

`verdict_figure` draws them for one `Question`, `verdict_text` says them in words. Before there is a
guess, neither prediction nor measurement is shown.
"""

from __future__ import annotations

from textwrap import wrap

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lgcourse.errors import unknown_name
from lgcourse.show.curves import COLOURS, MARKERS
from lgcourse.show.layout import ink
from lgcourse.show.questions import Question

WIDTH, HEIGHT = 9.6, 3.4  # inches
GUESSES = ("generalises", "fails")
LOOKS = {"generalises": COLOURS[0], "fails": COLOURS[1]}
RIGHT = 0.9  # exact match from which a run counts as right


def verdict_text(question: Question, guess: str = "") -> str:
    """Say in words what `verdict_figure` shows.

    >>> verdict_text(Question("copy", "rpe", 2, 10, 5, 20, (1.0,), (0.0,)))
    'Task copy with rpe, 2 layers, trained on scales up to 5. Will it generalise to scale 20? No
    guess yet.'
    """
    start = (
        f"Task {question.task} with {question.pe}, {_layers(question)}, trained on scales up to "
        f"{question.train_scale}. Will it generalise to scale {question.scale}?"
    )
    if not guess:
        return f"{start} No guess yet."
    _check(guess)
    predicted, reason = question.predicted()
    near, far = (", ".join(f"{v:.2f}" for v in at) for at in (question.near, question.far))
    return (
        f"{start} Your guess: {guess}. Prediction: {predicted}, since {reason}. Measured: "
        f"{question.measured}; exact match by seed: {near} at scale {question.train_scale} and "
        f"{far} at scale {question.scale}."
    )


def _layers(question: Question) -> str:
    return f"{question.layers} layer{'s' if question.layers > 1 else ''}"


def _check(guess: str) -> None:
    if guess not in GUESSES:
        raise unknown_name("guess", guess, GUESSES)


def verdict_figure(question: Question, guess: str = "") -> Figure:
    """Draw a question, and once there is a guess also the prediction and what was measured.

    Args:
        question: the question.
        guess: ``"generalises"`` or ``"fails"``, or nothing yet.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: the guess is neither.
    """
    text = verdict_text(question, guess)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_axes((0.0, 0.0, 0.6, 1.0))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    axes.text(0.02, 0.92, f"{question.task} with {question.pe}, {_layers(question)}", size=12)
    words = f"trained on scales 1 to {question.train_scale}: does it answer at {question.scale}?"
    axes.text(0.02, 0.83, words, size=10)
    predicted, reason = question.predicted() if guess else ("?", "")
    measured = question.measured if guess else "?"
    rows = (("your guess", guess or "?"), ("prediction", predicted), ("measured", measured))
    for place, (name, verdict) in enumerate(rows):
        y = 0.66 - 0.15 * place
        axes.text(0.02, y, name, size=10.5, va="center")
        colour = LOOKS.get(verdict, "#EDEDED")
        axes.add_patch(Rectangle((0.22, y - 0.055), 0.36, 0.11, facecolor=colour, edgecolor="0.4"))
        axes.text(0.4, y, verdict, size=10.5, ha="center", va="center", color=ink(colour))
        if place and guess and verdict in GUESSES:
            words = "= your guess" if verdict == guess else "≠ your guess"
            axes.text(0.61, y, words, size=10, va="center")
    for line, words in enumerate(wrap(f"theory: {reason}", 88, max_lines=3) if guess else ()):
        axes.text(0.02, 0.2 - 0.065 * line, words, size=8.5, va="center")
    if guess:
        _draw_scores(figure.add_axes((0.7, 0.16, 0.28, 0.7)), question)
    figure.alt = text  # type: ignore[attr-defined]
    return figure


def _draw_scores(axes, question: Question) -> None:
    """Draw one marker per seed at the near and at the far scale."""
    for place, scores in enumerate((question.near, question.far)):
        count = len(scores)
        x = [place + 0.36 * ((k + 0.5) / count - 0.5) for k in range(count)]
        axes.plot(x, scores, MARKERS[place], color=COLOURS[place], markersize=5, alpha=0.85)
    axes.axhline(RIGHT, color="0.5", linewidth=0.8, linestyle=":")
    axes.text(1.45, RIGHT - 0.02, f"{RIGHT}", size=8, va="top", ha="right")
    names = (f"scale {question.train_scale}\n(trained)", f"scale {question.scale}")
    axes.set_xticks([0, 1], names, size=8.5)
    axes.set(xlim=(-0.5, 1.5), ylim=(-0.05, 1.05))
    words = f"exact match, {len(question.far)} seeds"
    axes.text(0.0, 1.05, words, size=9.5, transform=axes.transAxes)
    axes.spines[["top", "right"]].set_visible(False)
