"""What does a trained model attend to? Its attention weights, layer by layer, at chosen queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lgcourse.embeddings.base import wide
from lgcourse.errors import InputError
from lgcourse.model.attention import Attention
from lgcourse.model.paths import parts
from lgcourse.model.view import View
from lgcourse.relations.base import Scale
from lgcourse.tasks.base import Batch
from lgcourse.tasks.circuit import Step
from lgcourse.theory.merging import positions

TOGETHER = 2**22  # weights held at once: 16 MiB
Look = Callable[[int, slice, Tensor], None]


def attention_weights(
    model,
    tokens: Int[Tensor, "b l"],
    scale: Scale | None,
    queries: Int[Tensor, " q"] | None = None,
) -> Float[Tensor, "layer b h q k"]:
    """Return the attention weights of a model at chosen queries.

    weights = softmax(q k / sqrt(d) + bias) over the keys, with the queries, keys and bias that the
    model itself computes, so that a head gathers weights times values.

    Args:
        model: a `Transformer`.
        tokens: token ids, all sequences of one scale.
        scale: the scale n.
        queries: positions of the queries; None: all of them.

    Returns:
        One weight per layer, sequence, head, query and key; 0 for keys after their query. Blocks
        that are applied again (``loops``) count as further layers.

    Raises:
        InputError: a query lies outside the sequence.

    >>> from lgcourse import Transformer, embeddings
    >>> model = Transformer(12, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> weights = attention_weights(model, torch.zeros(3, 5, dtype=torch.long), scale=2)
    >>> weights.shape, weights[0, 0, 0, 1].tolist()  # equal tokens, equal weights
    (torch.Size([1, 3, 2, 5, 5]), [0.5, 0.5, 0.0, 0.0, 0.0])
    """
    queries = torch.arange(tokens.shape[1]) if queries is None else queries
    layers: dict[int, list[Tensor]] = {}
    watch(model, tokens, scale, queries, lambda at, _, w: layers.setdefault(at, []).append(w.cpu()))
    return torch.stack([torch.cat(rows, dim=2) for _, rows in sorted(layers.items())])


@torch.inference_mode()
def watch(
    model, tokens: Int[Tensor, "b l"], scale: Scale | None, queries: Int[Tensor, " q"], look: Look
) -> None:
    """Run a model once and show its attention weights, a few queries at a time.

    For long sequences: never more than about four million weights are held at once.

    Args:
        model: a `Transformer`; it is evaluated, not trained.
        tokens: token ids, all sequences of one scale.
        scale: the scale n.
        queries: positions of the queries.
        look: called with the layer (from 0), the part of ``queries``, and the weights of that part,
            ``[b h q k]``.

    Raises:
        InputError: a query lies outside the sequence.
    """
    length = tokens.shape[1]
    if len(queries) == 0 or int(queries.min()) < 0 or int(queries.max()) >= length:
        raise InputError(
            f"queries are positions 0..{length - 1} of the sequence, got {queries.tolist()!r:.60}"
        )
    device = next(model.parameters()).device
    queries = queries.to(device)

    pieces: dict[int, list[Tensor]] = {}  # long inputs come piece by piece

    def see(attention, inputs, output) -> None:
        x, view = inputs
        pieces.setdefault(view.layer, []).append(x)
        if len(view.key) == length:
            x = torch.cat(pieces.pop(view.layer), dim=1)
            for part, weights in _weights(attention, x, view, queries):
                look(view.layer, part, weights)

    with _hooked(model, see):
        model(tokens.to(device), scale)


def _weights(attention: Attention, x, view: View, queries) -> Iterator[tuple[slice, Tensor]]:
    """Yield the weights of a layer for some queries at a time, from what went into the layer.

    Args:
        attention: the layer.
        x: what went in, for all tokens, ``[b l d]``.
        view: a view that sees all keys.
        queries: positions of the queries.
    """
    q, k, _ = rearrange(
        attention.project(x), "b l (three h d) -> three b h l d", three=3, h=attention.heads
    )
    q, k = view.position.rotate(q, k, view.key, view.key, view.context)
    batch, heads, length, size = k.shape
    for part in parts(len(queries), TOGETHER // (batch * heads * length)):
        at = queries[part]
        some = replace(view, query=view.key[at], shared=None)
        rows = q[:, :, at]
        scores = wide((rows @ k.transpose(-1, -2)) * size**-0.5)  # b h q k
        yield part, torch.softmax(scores + some.bias(rows, k), dim=-1)


@contextmanager
def _hooked(model, see) -> Iterator[None]:
    """Let ``see`` look at each attention layer of a model in evaluation; leave it as it was."""
    training = model.training
    layers = [module for module in model.modules() if isinstance(module, Attention)]
    hooks = [layer.register_forward_hook(see) for layer in layers]
    try:
        model.eval()
        yield
    finally:
        for hook in hooks:
            hook.remove()
        model.train(training)


# --- what falls on the operands -------------------------------------------------------------------
@dataclass(frozen=True)
class Share:
    """Where attention goes at the queries of some steps.

    Args:
        scale: the scale.
        samples: number of sequences.
        steps: number of steps that were looked at.
        evenly: the share of the operands if every query spread its attention evenly over its keys.
        on_operands: layer -> head -> the weight that a query puts on all operands of its step, mean
            over steps and samples.
        half: layer -> share of the operands, of all steps and samples, to which some head gives at
            least half of its attention.
        first: layer -> share of the operands to which some head gives more weight than to any key
            that is no operand of the step.
        half_anywhere, first_anywhere: the same for the heads of all layers together.
    """

    scale: Scale
    samples: int
    steps: int
    evenly: float
    on_operands: list[list[float]]
    half: list[float]
    first: list[float]
    half_anywhere: float
    first_anywhere: float


def operand_share(model, batch: Batch, steps: Sequence[Step]) -> Share:
    """Measure how much attention the queries of steps put on what the steps read.

    A step that writes position p has its query at p - 1, where p is predicted. Above the first
    layer a position holds more than its token, so a model may be right and read elsewhere there.

    Args:
        model: a `Transformer`.
        batch: samples of one scale.
        steps: steps of a circuit at that scale, each with at least one operand.

    Returns:
        A `Share`.

    Raises:
        InputError: there are no steps, or one without operands or beyond the sequence.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> task = tasks.get("copy")
    >>> model = Transformer(11, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> batch = task.sample(3, 5, torch.Generator().manual_seed(0))
    >>> share = operand_share(model, batch, task.circuit(3))
    >>> share.steps, round(share.evenly, 3)  # (1/4 + 1/5 + 1/6) / 3
    (3, 0.206)
    """
    if not steps or not all(step.inputs for step in steps):
        raise InputError(
            f"attention on operands needs steps that read something, got {steps!r:.80}"
        )
    query, inputs = positions(steps)  # s, s r
    reads = reads_of(inputs, batch.tokens.shape[1])
    seen = _Seen(inputs, reads)
    watch(model, batch.tokens, batch.scale, query, seen)
    return Share(
        scale=batch.scale,
        samples=len(batch.tokens),
        steps=len(steps),
        evenly=float((reads.sum(1) / (query + 1)).mean()),
        on_operands=seen.means(),
        half=[seen.share(rows) for _, rows in sorted(seen.half.items())],
        first=[seen.share(rows) for _, rows in sorted(seen.first.items())],
        half_anywhere=seen.share(torch.stack(list(seen.half.values())).any(0)),
        first_anywhere=seen.share(torch.stack(list(seen.first.values())).any(0)),
    )


class _Seen:
    """Takes in attention weights, a few queries at a time, and keeps what a `Share` needs."""

    def __init__(self, inputs: Int[Tensor, "s r"], reads: Bool[Tensor, "s k"]):
        self.inputs, self.reads, self.valid = inputs, reads, inputs >= 0
        self.sums: dict[int, Tensor] = {}  # layer -> h
        self.half: dict[int, Tensor] = {}  # layer -> b s r
        self.first: dict[int, Tensor] = {}
        self.samples = 0

    def __call__(self, layer: int, part: slice, weights: Float[Tensor, "b h q k"]) -> None:
        weights = weights.cpu()
        self.samples, heads = weights.shape[:2]
        reads, at = self.reads[part], self.inputs[part].clamp(min=0)
        own = weights.gather(-1, at.expand(self.samples, heads, *at.shape))  # b h q r
        rest = weights.masked_fill(reads, 0).amax(-1, keepdim=True)
        sums = self.sums.setdefault(layer, torch.zeros(heads, dtype=torch.float64))
        sums += (weights * reads).double().sum((0, 2, 3))
        for kept, better in ((self.half, own >= 0.5), (self.first, own > rest)):
            rows = torch.zeros((self.samples, *self.valid.shape), dtype=torch.bool)
            kept.setdefault(layer, rows)[:, part] = better.any(1)

    def means(self) -> list[list[float]]:
        """Return the mean weight on the operands of a step, by layer and head."""
        count = self.samples * len(self.inputs)
        return [(sums / count).tolist() for _, sums in sorted(self.sums.items())]

    def share(self, rows: Bool[Tensor, "b s r"]) -> float:
        """Return the share of the operands that there are."""
        return float((rows & self.valid).sum()) / (self.samples * int(self.valid.sum()))


def reads_of(inputs: Int[Tensor, "s r"], length: int) -> Bool[Tensor, "s k"]:
    """Return which of the keys 0..length-1 each step reads; -1 among its inputs stands for none.

    >>> reads_of(torch.tensor([[0, -1], [1, 1]]), 3).int()
    tensor([[1, 0, 0],
            [0, 1, 0]], dtype=torch.int32)
    """
    reads = torch.zeros(len(inputs), length + 1, dtype=torch.bool)
    reads.scatter_(1, torch.where(inputs < 0, length, inputs), True)
    return reads[:, :length]
