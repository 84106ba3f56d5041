"""How does a learned relation harden? The shares of its forms over the updates, and its cells.

A `Recorder` keeps what gates and tables are while a model trains; `gates_figure` draws one head at
one update, `gates_text` says it in words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from torch import Tensor

from lgcourse.embeddings.learned_relation import FIXED, SOFT, LearnedRelation
from lgcourse.embeddings.table import STRENGTH
from lgcourse.errors import InputError, whole_number
from lgcourse.show.cells import draw_cells, frame_cells, name_axes
from lgcourse.show.curves import COLOURS, LINES
from lgcourse.show.explanation import DARK
from lgcourse.training.trainer import Trainer

WIDTH, HEIGHT = 9.6, 4.2  # inches
STAGES = ("soft", "chosen", "fixed")
LINES_SHOWN = 5  # forms that have a line of their own; the others are grey
FULL = 8.0  # 8 s of a cell that is drawn darkest


@dataclass(frozen=True)
class Gates:
    """The gates of one layer over a training.

    Args:
        forms: the forms that a head chooses from.
        window: the largest absolute value of a form that a cell names.
        steps: the updates that were kept.
        shares: softmax of the gates, by kept update, head and form.
        strength: 8 s of each cell, by kept update, head, form and value.
        kept: whether the cell is among those that may be read.
        stage: 0 soft, 1 chosen, 2 fixed, by kept update.
        title: what was trained.
    """

    forms: tuple[str, ...]
    window: int
    steps: tuple[int, ...]
    shares: Float[Tensor, "t h f"]
    strength: Float[Tensor, "t h f w"]
    kept: Bool[Tensor, "t h f w"]
    stage: tuple[int, ...]
    title: str = ""

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.shares.shape[1]

    def at(self, step: int) -> int:
        """Return the index of the last kept update that is not after a step."""
        return max((k for k, kept in enumerate(self.steps) if kept <= step), default=0)


class Recorder:
    """Keeps what the gates of a layer are while a model trains: hand it to ``fit`` as progress.

    Args:
        every: updates between two that are kept.
        layer: the layer, from 1.
    """

    def __init__(self, every: int = 10, layer: int = 1):
        self.every, self.layer = every, layer
        self.rows: list[tuple[int, Tensor, Tensor, Tensor, int]] = []
        self.position: LearnedRelation | None = None

    def __call__(self, trainer: Trainer) -> None:
        """Take note of a step that has ended."""
        if trainer.step not in (1, trainer.steps) and trainer.step % self.every:
            return
        position = trainer.positions[self.layer - 1]
        if not isinstance(position, LearnedRelation):
            raise InputError(
                f"gates belong to a learned relation, lbpe or lbpe-sh; layer {self.layer} has "
                f"{type(position).__name__}"
            )
        self.position = position
        share = torch.softmax(position.gates.detach() / position.temperature, dim=1)
        strength = STRENGTH * position.strength().detach() * position.kept
        row = (share.clone(), strength.clone(), position.kept.clone(), int(position.stage))
        self.rows.append((trainer.step, *row))

    def gates(self, title: str = "") -> Gates:
        """Return what was kept; before any update there is nothing, an `InputError`."""
        if self.position is None:
            raise InputError("nothing was recorded; hand the recorder to fit(..., progress=...)")
        steps, shares, strength, kept, stage = zip(*self.rows, strict=True)
        forms = tuple(str(form) for form in self.position.forms)
        return Gates(
            forms,
            self.position.window,
            steps,
            torch.stack(shares),
            torch.stack(strength),
            torch.stack(kept),
            stage,
            title,
        )


# --- in words -------------------------------------------------------------------------------------
def gates_text(gates: Gates, head: int, step: int) -> str:
    """Say in words what `gates_figure` shows."""
    t, h = _place(gates, head, step)
    share = gates.shares[t, h]
    order = share.argsort(descending=True)[:3].tolist()
    told = ", ".join(f"{gates.forms[f]} {float(share[f]):.2f}" for f in order)
    parts = [
        f"Gates of head {head} at update {gates.steps[t]} of {gates.steps[-1]}, stage "
        f"{STAGES[gates.stage[t]]}. Largest shares: {told}.",
    ]
    cells = _cells(gates, t, h)
    if gates.stage[t] == SOFT:
        parts.append("All cells may be read.")
    elif not cells:
        parts.append("No cell is left: the head reads the query itself only.")
    else:
        some = [f"{gates.forms[f]} = {w - gates.window}" for f, w in cells]
        more = f" and {len(some) - 6} more" if len(some) > 7 else ""
        parts.append(f"Cells that may be read: {', '.join(some[: 6 if more else None])}{more}.")
    t, final = len(gates.steps) - 1, gates.shares[-1, h]
    parts.append(
        f"At the end the largest share is {float(final.max()):.2f}, of "
        f"{gates.forms[int(final.argmax())]}, and {len(_cells(gates, t, h))} cells are kept."
    )
    return " ".join(parts)


def _place(gates: Gates, head: int, step: int) -> tuple[int, int]:
    whole_number("head", head, 1, gates.heads)
    whole_number("step", step, 0)
    return gates.at(step), head - 1


def _cells(gates: Gates, t: int, h: int) -> list[tuple[int, int]]:
    return [(f, w) for f, w in gates.kept[t, h].nonzero().tolist()]


# --- drawing --------------------------------------------------------------------------------------
def gates_figure(gates: Gates, head: int, step: int) -> Figure:
    """Draw the shares of a head's forms over the updates (left) and its cells at one (right).

    Right, a row is a form and a column a value of it; dark cells are strong. Once cells are chosen,
    those that may be read have a frame.

    Args:
        gates: what a `Recorder` kept.
        head: the number of the head, from 1.
        step: the update; the last kept one before it is shown.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: there is no such head, or the step is no whole number.
    """
    t, h = _place(gates, head, step)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    words = f"{gates.title + ': ' if gates.title else ''}head {head}, update {gates.steps[t]}"
    figure.text(0.065, 0.95, f"{words}, stage {STAGES[gates.stage[t]]}", size=10.5, va="center")
    _draw_shares(figure.add_axes((0.065, 0.13, 0.33, 0.72)), gates, t, h)
    right = figure.add_axes((0.63, 0.13, 0.345, 0.72))
    shade = (gates.strength[t, h] / FULL).clamp(0, 1)
    values = [str(value) for value in range(-gates.window, gates.window + 1)]
    colours = 1 - shade[..., None].numpy() * (1 - np.array(DARK))
    _, cell = draw_cells(right, colours, gates.forms, values, ticks=25, line="0.85")
    if gates.stage[t] != SOFT:
        frame_cells(right, _cells(gates, t, h), cell)
    name_axes(right, "", "value of the form; dark: 8 s near 8; frame: may be read")
    figure.alt = gates_text(gates, head, step)  # type: ignore[attr-defined]
    return figure


def _draw_shares(axes, gates: Gates, t: int, h: int) -> None:
    """Draw one line per form; the forms that are ever large have colours and labels."""
    shares = gates.shares[:, h]  # t f
    order = shares.amax(0).argsort(descending=True).tolist()
    for f in order[LINES_SHOWN:]:
        axes.plot(gates.steps, shares[:, f], color="0.75", linewidth=0.8)
    for place, f in enumerate(order[:LINES_SHOWN]):
        axes.plot(
            gates.steps, shares[:, f], LINES[place], color=COLOURS[place], label=gates.forms[f]
        )
    axes.axvline(gates.steps[t], color="black", linewidth=1.2)
    for stage, name in ((SOFT + 1, "chosen"), (FIXED, "fixed")):
        first = next(
            (s for s, at in zip(gates.steps, gates.stage, strict=True) if at >= stage), None
        )
        if first is not None:
            axes.axvline(first, color="0.5", linewidth=0.8, linestyle=":")
            axes.text(first, 1.045, name, size=8, va="bottom", ha="left")
    axes.set(xlabel="update", ylabel="share of the head", ylim=(-0.03, 1.03))
    axes.set_xlim(0, gates.steps[-1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
