"""What does a wrong scale hint do? Exact match by what the model is told, and what its steps read.

`hint_figure` draws the scores of several hints and, for one of them, the keys that the relation
names beside the operands that the steps need. `hint_scores` measures, `hint_data` collects,
`hint_text` says it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from matplotlib.figure import Figure
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.model.generation import next_tokens
from lgcourse.relations.base import Relation
from lgcourse.show.cells import draw_cells, frame_cells, palette
from lgcourse.show.curves import COLOURS
from lgcourse.theory.circuits import covered
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.seeds import generator

WIDTH, HEIGHT = 9.6, 4.4  # inches
LONGEST = 256  # positions; beyond it a cell is smaller than two pixels
FAR = 3  # hints up to so far from the truth are measured
SHOWN = 24  # answer tokens that are written out


@dataclass(frozen=True)
class HintData:
    """What `hint_figure` draws.

    Args:
        title: the run.
        scale, told: the true scale and the hint.
        scores: hint -> exact match.
        rows: the name of each answer token.
        columns: the name of each key.
        needed: (row, column) that the circuit reads.
        named: (row, column) that the relation names with the hint.
        truth, said: the answer of one sample, and what the model says with the hint.
    """

    title: str
    scale: int
    told: int
    scores: dict[int, float]
    rows: list[str]
    columns: list[str]
    needed: list[tuple[int, int]]
    named: list[tuple[int, int]]
    truth: list[str]
    said: list[str]


def hints_around(scale: int) -> range:
    """Return the hints that are measured at a scale: up to 3 less and 3 more, at least 1.

    >>> list(hints_around(2)), list(hints_around(10))
    ([1, 2, 3, 4, 5], [7, 8, 9, 10, 11, 12, 13])
    """
    return range(max(1, scale - FAR), scale + FAR + 1)


def hint_scores(
    run: Any, scale: int, hints: Iterable[int], samples: int = 50, seed: int = 0
) -> dict[int, float]:
    """Measure exact match at one scale for several hints, always on the same samples.

    Args:
        run: a `LoadedRun` whose embedding is given the scale.
        scale: the true scale.
        hints: what the model is told instead.
        samples: number of samples.
        seed: seed of the samples.

    Returns:
        A dictionary from hint to exact match.

    Raises:
        InputError: the run takes no Scale Hint, or the scale is not one of its task's.
    """
    _relations(run)
    batch = run.task.sample(scale, samples, generator(seed, f"hints at {scale}"))
    scores = {}
    for told in hints:
        right = right_tokens(run.model, replace(batch, scale=told))
        scores[told] = right.all(dim=1).double().mean().item()
    return scores


def _relations(run) -> list[Relation]:
    """Return the relations of a run that is given the scale; refuse any other run."""
    found = run.model.positions[0].relation
    relations = [one for one in (found if isinstance(found, list) else [found]) if one is not None]
    if not any(relation.uses_scale for relation in relations):
        raise InputError(
            "a wrong hint needs an embedding that is given the scale, such as ideal-sh; this run "
            f"has {run.settings.pe}"
        )
    return relations


def hint_data(
    run: Any, scale: int, told: int, scores: Mapping[int, float], seed: int = 1
) -> HintData:
    """Collect what a run does with a hint: the keys that are named, and one answer.

    Args:
        run: a `LoadedRun` whose embedding is given the scale, of a task with one size.
        scale: the true scale.
        told: what the model is told.
        scores: hint -> exact match, as `hint_scores` measures it.
        seed: seed of the sample.

    Returns:
        A `HintData`.

    Raises:
        InputError: the run takes no Scale Hint, or the sequence is too long to draw.
    """
    task, relations = run.task, _relations(run)
    task.check_scale(scale)
    if task.length(scale) > LONGEST:
        raise InputError(
            f"task '{task.name}' has {task.length(scale)} positions at scale {scale}; pictures go "
            f"up to {LONGEST}: choose a smaller scale"
        )
    batch = task.sample(scale, 1, torch.Generator().manual_seed(seed))
    at = batch.answer.nonzero()[:, 0]
    row = {int(position): r for r, position in enumerate(at)}
    last = int(at[-1])
    names = _named(relations, at - 1, torch.arange(last), told)
    steps = task.circuit(scale) if covered(task) else []
    needed = [(row[s.output], key) for s in steps if s.output in row for key in s.inputs]
    guess = next_tokens(run.model, batch.tokens, told, last=batch.tokens.shape[1])[0, at - 1]
    layout = task.layout(scale)
    return HintData(
        title=f"{task.name}, {run.settings.pe}, trained up to scale {run.settings.train_scale}",
        scale=scale,
        told=told,
        scores=dict(scores),
        rows=[layout[p] for p in at.tolist()],
        columns=layout[:last],
        needed=needed,
        named=[(r, c) for r, c in names.nonzero().tolist()],
        truth=[task.vocabulary[token] for token in batch.tokens[0, at].tolist()],
        said=[task.vocabulary[token] for token in guess.tolist()],
    )


def _named(
    relations: list[Relation], query: Int[Tensor, " s"], key: Int[Tensor, " k"], told: int
) -> Bool[Tensor, "s k"]:
    """Return the keys to which some relation gives an id other than "other"."""
    named = torch.zeros(len(query), len(key), dtype=torch.bool)
    for relation in relations:
        named |= relation(query, key, told) != relation.other
    named &= key <= query[:, None]
    # heads that were learned keep the query itself, whatever they read
    return named & (key != query[:, None]) if len(relations) > 1 else named


# --- in words -------------------------------------------------------------------------------------
def hint_text(data: HintData) -> str:
    """Say in words what `hint_figure` shows."""
    hit = len(set(data.named) & set(data.needed))
    wrong = sum(a != b for a, b in zip(data.truth, data.said, strict=True))
    told = ", ".join(f"{value:.2f} if told {hint}" for hint, value in data.scores.items())
    return (
        f"{data.title}. Scale {data.scale}, told {data.told}"
        f"{' (the truth)' if data.told == data.scale else ''}. The relation names "
        f"{len(data.named)} keys, {hit} of them among the {len(set(data.needed))} that the steps "
        f"read. One answer: true {_joined(data.truth)}, model {_joined(data.said)}, {wrong} of "
        f"{len(data.truth)} tokens wrong. Exact match: {told}."
    )


def _joined(tokens: list[str]) -> str:
    gap = "" if all(len(token) == 1 for token in tokens) else " "
    words = gap.join(tokens[:SHOWN])
    return words + ("..." if len(tokens) > SHOWN else "")


# --- drawing --------------------------------------------------------------------------------------
def hint_figure(data: HintData) -> Figure:
    """Draw exact match by hint (left), and for one hint what is named and what is needed (right).

    Right, rows are answer tokens and columns keys: a frame is an operand that the step needs, a
    coloured cell is a key that the relation names with this hint.

    Args:
        data: what `hint_data` collected.

    Returns:
        A matplotlib `Figure` of fixed size (not registered with pyplot); ``figure.alt`` says the
        same in words.
    """
    figure = Figure(figsize=(WIDTH, HEIGHT))
    truth = " (the truth)" if data.told == data.scale else ""
    words = f"{data.title}: scale {data.scale}, told {data.told}{truth}"
    figure.text(0.01, 0.96, shorten(words, 120), size=10.5, va="center")
    _draw_scores(figure.add_axes((0.075, 0.14, 0.27, 0.68)), data)
    right = figure.add_axes((0.43, 0.14, 0.555, 0.6))
    named = np.zeros((len(data.rows), len(data.columns)), dtype=int)
    for place in data.named:
        named[place] = 1
    colours = palette(["#EDEDED", COLOURS[5]])[named]
    width, height = draw_cells(right, colours, data.rows, data.columns, ticks=16)
    frame_cells(right, sorted(set(data.needed)), min(width, height))
    note = "frame: the step needs it; orange: the relation names it"
    figure.text(0.43, 0.03, note, size=8.5, va="center")
    wrong = [a != b for a, b in zip(data.truth, data.said, strict=True)]
    mark = "".join("^" if bad else " " for bad in wrong[:SHOWN])
    mono: dict[str, Any] = {"family": "monospace", "size": 9.5, "va": "center"}
    single = all(len(token) == 1 for token in data.truth + data.said)
    figure.text(0.43, 0.895, f"true   {_joined(data.truth)}", **mono)
    figure.text(0.43, 0.845, f"model  {_joined(data.said)}", **mono)
    figure.text(0.43, 0.795, f"       {mark}" if single else f"{sum(wrong)} wrong", **mono)
    figure.alt = hint_text(data)  # type: ignore[attr-defined]
    return figure


def _draw_scores(axes, data: HintData) -> None:
    hints, values = list(data.scores), list(data.scores.values())
    colours = [COLOURS[5] if hint == data.told else "0.8" for hint in hints]
    axes.bar(hints, values, color=colours, edgecolor="0.3", linewidth=0.8, width=0.7)
    for hint, value in data.scores.items():
        axes.text(hint, value + 0.02, f"{value:.2f}", ha="center", size=8)
    axes.axvline(data.scale, color="black", linewidth=0.8, linestyle=":", zorder=0)
    axes.text(data.scale, 1.12, "the truth", ha="center", size=8)
    axes.set(ylim=(0, 1.1), xlabel="the scale that the model is told", ylabel="exact match")
    axes.set_xticks(hints)
    axes.spines[["top", "right"]].set_visible(False)
