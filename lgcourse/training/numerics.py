"""Is an exact match lost to arithmetic? What a model computes with at a long input, and what fades.

Theory speaks of exact numbers. A model has float32 or less, and softmax over ever more keys. Three
things go wrong without an error: low precision makes ties of logits, a bias outgrows the numbers it
is added to or stops telling keys apart, and attention that was sharp spreads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lgcourse.embeddings.base import Context
from lgcourse.model.reading import watch
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.training.seeds import generator

QUERIES = 16  # answer tokens that are looked at
SHARP, SPREAD = (
    0.5,
    0.5,
)  # sharp: a key has half the weight; spread: it keeps less than half of that
APART = 0.01  # scores of content differ by about 1: steps of the bias must be much smaller
ALIKE, TOLD_APART = 0.8, 0.5  # share of keys with one bias: too many, and few enough


def notes(
    model: Any, task: Any, scales: Iterable[Scale], reference: Scale | None = None
) -> list[str]:
    """Say what fades between a reference scale and longer ones; nothing where all is well.

    Args:
        model: a `Transformer`.
        task: the task.
        scales: the scales to look at.
        reference: the scale to compare with, the largest of training; None: the smallest of
            ``scales``.

    Returns:
        Sentences: at most one about precision, and per scale and layer one about each of the bias
        and the attention.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> task = tasks.get("copy")
    >>> pe = embeddings.build("none", task, width=16, heads=2)
    >>> model = Transformer(len(task.vocabulary), pe, 1, 16, 2)
    >>> notes(model.bfloat16(), task, [3])
    ['the model has bfloat16 numbers: different logits can be equal; evaluate model.float()']
    """
    scales = sorted(scales, key=lambda scale: (sum(sizes_of(scale)), sizes_of(scale)))
    found = precision(model)
    first = scales[0] if reference is None else reference
    before = None
    for scale in scales:
        if sum(sizes_of(scale)) <= sum(sizes_of(first)):
            continue
        before = _look(model, task, first) if before is None else before
        found += _compared(before, _look(model, task, scale), _name(first), _name(scale))
    return found


def precision(model: Any) -> list[str]:
    """Say whether a model has numbers of less than 32 bits."""
    low = {p.dtype for p in model.parameters() if p.is_floating_point() and p.element_size() < 4}
    return [
        f"the model has {str(kind).removeprefix('torch.')} numbers: different logits can be equal; "
        "evaluate model.float()"
        for kind in sorted(low, key=str)
    ]


@torch.inference_mode()
def _look(model: Any, task: Any, scale: Scale) -> list[dict[str, Any]]:
    """Return what each layer shows at one sample: the last query's bias, how sharp heads are."""
    model.eval()
    batch = task.sample(scale, 1, generator(0, f"numerics at {_name(scale)}"))
    asked = batch.answer.nonzero()[:, 0] - 1  # these queries write the answer
    asked = asked[torch.linspace(0, len(asked) - 1, min(QUERIES, len(asked))).long()]
    layers: dict[int, list[Tensor]] = {}
    watch(
        model,
        batch.tokens,
        batch.scale,
        asked,
        lambda layer, _, weights: layers.setdefault(layer, []).append(weights.amax(-1)),
    )
    rows = []
    for layer, parts in sorted(layers.items()):
        position = model.positions[min(layer % len(model.blocks), len(model.positions) - 1)]
        sharpness = torch.cat(parts, dim=2).float().mean(dim=(0, 2)).cpu()  # h
        rows.append({"sharp": sharpness, "bias": _bias(position, batch, int(asked[-1]))})
    return rows


def _bias(position: Any, batch: Any, query: int) -> Float[Tensor, "h k"] | None:
    """Return the bias of one query, or None if there is none or it depends on content."""
    if position.reads_content:
        return None
    device = next(iter(position.parameters()), torch.zeros(())).device
    at, keys = torch.tensor([query], device=device), torch.arange(query + 1, device=device)
    context = Context(tokens=batch.tokens[:, : query + 1].to(device), scale=batch.scale)
    bias = position.bias(at, keys, batch.scale, context)
    return None if bias is None else bias.reshape(-1, query + 1).cpu()


def _compared(before: list, after: list, first: str, scale: str) -> list[str]:
    found = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        where = f"at scale {scale}, layer {number}"
        if new["bias"] is not None and old["bias"] is not None:
            found += [f"{where}: {text}" for text in saturation(old["bias"], new["bias"], first)]
        lost = (old["sharp"] >= SHARP) & (new["sharp"] < SPREAD * old["sharp"])
        if lost.any():
            head = int((old["sharp"] - new["sharp"]).masked_fill(~lost, -1).argmax())
            found.append(
                f"{where}: attention spreads, the first key of head {head + 1} has "
                f"{float(new['sharp'][head]):.2f} of the weight, {float(old['sharp'][head]):.2f} "
                f"at scale {first}"
            )
    return found


def saturation(
    before: Float[Tensor, "h k"], after: Float[Tensor, "h m"], first: str = "training"
) -> list[str]:
    """Say whether a bias saturates: it is no number, too large, or the same for most keys.

    Args:
        before: bias of one query at a scale that works.
        after: bias of one query at a longer one.
        first: name of the former scale.

    >>> far = torch.arange(1000.0).clamp(min=900)[None]  # distances beyond 100 look alike
    >>> saturation(torch.arange(20.0)[None], far)
    ['the bias saturates, 90 % of the keys have the same, 5 % at scale training']
    >>> saturation(torch.arange(20.0)[None], 1e6 * torch.arange(1000.0)[None])
    ['the bias reaches 1e+09, where neighbouring numbers are 64 apart: what scores add is lost']
    """
    if bool(after.isnan().any()) or bool((after == float("inf")).any()):
        return ["the bias is no number for some keys"]
    finite = after[after.isfinite()]
    if finite.numel() == 0:
        return []
    largest = finite.abs().max()
    step = torch.nextafter(largest, torch.tensor(float("inf"), dtype=largest.dtype)) - largest
    if float(step) > APART:
        return [
            f"the bias reaches {float(largest):.0e}, where neighbouring numbers are "
            f"{float(step):g} apart: what scores add is lost"
        ]
    old, new = (min(map(_alike, rows)) for rows in (before, after))
    if old < TOLD_APART and new > ALIKE:
        return [
            f"the bias saturates, {100 * new:.0f} % of the keys have the same, "
            f"{100 * old:.0f} % at scale {first}"
        ]
    return []


def _alike(row: Float[Tensor, " k"]) -> float:
    """Return the share of keys with the most frequent bias, among those that are not shut out."""
    finite = row[row.isfinite()]
    if finite.numel() == 0:
        return 0.0
    return int(finite.unique(return_counts=True)[1].max()) / finite.numel()


def _name(scale: Scale) -> str:
    return "x".join(map(str, sizes_of(scale)))
