"""Where does one head of a trained model look at one scale, and what should it read there?

`attention_figure` draws the weights of a head, one row per answer token, the operands of the ideal
relation framed, and beside each row what the model says. `attention_data` holds what is drawn,
`attention_text` says it in words. All heads of one sample are in `explanation_figure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from lgcourse.errors import InputError, whole_number
from lgcourse.model.reading import attention_weights
from lgcourse.relations.base import Scale
from lgcourse.show.cells import draw_cells, frame_cells
from lgcourse.show.explanation import DARK
from lgcourse.theory.circuits import covered
from lgcourse.training.evaluation import right_tokens, scale_name
from lgcourse.training.explanation import words, words_at

WIDTH, HEIGHT = 9.6, 5.0  # inches
LONGEST = 256  # positions; beyond it a cell is smaller than three pixels
TOLD = 3  # rows that the text tells


@dataclass(frozen=True)
class AttentionData:
    """What `attention_figure` draws.

    Args:
        title: the run and the scale.
        head: layer, head, and what its embedding says that it reads.
        rows: the name of what is predicted in each row.
        columns: the name of each key.
        weights: attention by row and column; 0 where the key comes after the query.
        later: how many columns, from the left, a row can see.
        operands: (row, column) that the ideal relation reads; empty without a circuit.
        truth: the true token of each row.
        right: whether the model says it.
        share: the mean weight on the operands of a row; None where no operands are known.
    """

    title: str
    head: str
    rows: list[str]
    columns: list[str]
    weights: Float[Tensor, "s k"]
    later: list[int]
    operands: list[tuple[int, int]]
    truth: list[str]
    right: list[bool]
    share: float | None


def attention_data(
    run: Any, scale: Scale, layer: int = 1, head: int = 1, seed: int = 1
) -> AttentionData:
    """Read one head of a run on one sample.

    Args:
        run: a `LoadedRun`.
        scale: the scale of the sample.
        layer, head: their numbers, from 1.
        seed: seed of the sample.

    Returns:
        An `AttentionData`.

    Raises:
        InputError: there is no such layer or head, the run cannot take the scale, or the sequence
            is too long to draw.
    """
    task = run.task
    task.check_scale(scale)
    if task.length(scale) > LONGEST:
        raise InputError(
            f"task '{task.name}' has {task.length(scale)} positions at scale {scale_name(scale)}; "
            f"pictures go up to {LONGEST}: choose a smaller scale"
        )
    batch = task.sample(scale, 1, torch.Generator().manual_seed(seed))
    at = batch.answer.nonzero()[:, 0].tolist()
    queries = torch.tensor(at) - 1
    weights = attention_weights(run.model, batch.tokens, scale, queries)[:, 0]  # layer h s k
    whole_number("layer", layer, 1, weights.shape[0])
    whole_number("head", head, 1, weights.shape[1])
    last = at[-1]  # no row sees a key from here on
    own = weights[layer - 1, head - 1, :, :last]
    row = {position: r for r, position in enumerate(at)}
    steps = task.circuit(scale) if covered(task) else []
    operands = [(row[s.output], key) for s in steps if s.output in row for key in s.inputs]
    told = words_at(words(run.model), layer - 1, head - 1)
    names = task.layout(scale)
    return AttentionData(
        title=f"{task.name}, {run.settings.pe}, trained up to scale {run.settings.train_scale}: "
        f"scale {scale_name(scale)}",
        head=f"layer {layer}, head {head}" + (f": {told}" if told else ""),
        rows=[names[p] for p in at],
        columns=names[:last],
        weights=own,
        later=at,
        operands=operands,
        truth=[task.vocabulary[token] for token in batch.tokens[0, at].tolist()],
        right=right_tokens(run.model, batch)[0].tolist(),
        share=_share(own, operands),
    )


def _share(weights: Float[Tensor, "s k"], operands: list[tuple[int, int]]) -> float | None:
    rows = {row for row, _ in operands}
    pairs = set(operands)  # a key that is read in two roles counts once
    return sum(float(weights[pair]) for pair in pairs) / len(rows) if rows else None


# --- in words -------------------------------------------------------------------------------------
def attention_text(run: Any, scale: Scale, layer: int = 1, head: int = 1, seed: int = 1) -> str:
    """Say in words what `attention_figure` shows."""
    return _text(attention_data(run, scale, layer, head, seed))


def _text(data: AttentionData) -> str:
    good = sum(data.right)
    parts = [
        f"Attention of {data.title}, one sample. {data.head[:1].upper()}{data.head[1:]}.",
        f"The model says {good} of {len(data.right)} answer tokens right.",
    ]
    if data.share is not None:
        parts.append(f"Mean weight on the operands of the ideal relation: {data.share:.2f}.")
    for row, name in enumerate(data.rows[:TOLD]):
        best = int(data.weights[row].argmax())
        reads = [data.columns[key] for r, key in data.operands if r == row]
        should = f"; the step reads {', '.join(reads)}" if reads else ""
        weight = float(data.weights[row, best])
        parts.append(f"For {name} most weight, {weight:.2f}, is on {data.columns[best]}{should}.")
    if len(data.rows) > TOLD:
        parts.append(f"{len(data.rows) - TOLD} of the {len(data.rows)} rows are left out here.")
    return " ".join(parts)


# --- drawing --------------------------------------------------------------------------------------
def attention_figure(
    run: Any, scale: Scale, layer: int = 1, head: int = 1, seed: int = 1
) -> Figure:
    """Draw the attention of one head, with the operands of the ideal relation framed.

    Rows are the answer tokens that are predicted, columns the keys; dark cells get much attention.
    Behind each row stand the true token and whether the model says it.

    Args:
        run, scale, layer, head, seed: as `attention_data`.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.

    Raises:
        InputError: as `attention_data`.
    """
    data = attention_data(run, scale, layer, head, seed)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    figure.text(0.01, 0.965, shorten(data.title, 120), size=10.5, va="center")
    end = "" if data.share is None else f"; {100 * data.share:.1f} % on the framed operands"
    figure.text(0.01, 0.915, shorten(data.head, 110) + end, size=9, va="center")
    axes = figure.add_axes((0.055, 0.075, 0.865, 0.77))
    shade = 1 - data.weights[..., None].numpy() * (1 - np.array(DARK))
    for row, seen in enumerate(data.later):
        shade[row, seen:] = 0.93  # keys that come after the query
    width, height = draw_cells(axes, shade, data.rows, data.columns, ticks=24, line="0.9")
    frame_cells(axes, data.operands, min(width, height))
    size = min(9.0, 0.8 * height)
    if size >= 4:
        for row, (token, right) in enumerate(zip(data.truth, data.right, strict=True)):
            words = f"{token} {'✓' if right else '✗'}"
            axes.text(
                1.006, row + 0.5, words, size=size, va="center_baseline",
                transform=axes.get_yaxis_transform(), weight="normal" if right else "bold",
            )  # fmt: skip
    note = "rows: what is predicted; columns: keys; dark: much attention; frame: the step reads it"
    figure.text(0.055, 0.018, note, size=8, va="center")
    note = f"truth, ✓ if the model says it ({sum(data.right)} of {len(data.right)})"
    figure.text(0.99, 0.875, note, size=8, va="center", ha="right")
    figure.alt = _text(data)  # type: ignore[attr-defined]
    return figure
