"""Which models can be certified at all? Those whose step reads a few named keys, and nothing else.

The trust boundary, in one place. A certificate rests on what follows, beyond what it proves:

1. The embedding keeps the promise of `PositionEmbedding.named_terms`: a head reads the query itself
   and the keys for which one of its terms holds; and the bias of a pair depends only on the head,
   on which of its terms hold, and on whether the key is the query. (Compared with the embedding's
   `bias` and `named` at the smallest step of every signature, and at all queries of the scales in
   `PROMISED`.)
2. The task's segments and families say its layout, its circuit, and what is scored; and the circuit
   makes the task's answers. (Compared in `lgcourse.certify.agreement`, which tells how many entries
   of the operators' tables were met.) The free tokens of a segment are independent of each other.
3. PyTorch evaluates the model in float64 at the smallest step of each signature as its equations
   say, and float32 arithmetic is IEEE arithmetic as described in `lgcourse.certify.rounding`.
4. This package reasons correctly. (`lgcourse.certify.checker` shares no code with it except what
   loads models, and checks a certificate in another way.)
"""

from __future__ import annotations

from math import isinf

import torch
from torch import Tensor, nn

from lgcourse.certify.parts import adds_nothing_unknown
from lgcourse.certify.signatures import Heads
from lgcourse.embeddings.base import PositionEmbedding
from lgcourse.embeddings.drawing import Draws
from lgcourse.model.attention import Attention
from lgcourse.model.transformer import Block, Transformer
from lgcourse.relations.base import Scale

PROMISED = {1: (1, 2, 3, 4, 5, 8, 13, 40, 1000), 2: (1, 2, 3, 5, 9)}
KNOWN = (
    *(Transformer, Block, Attention, Draws, nn.Embedding, nn.Linear, nn.LayerNorm),
    *(nn.GELU, nn.Sequential, nn.ModuleList, nn.Identity),
)
Kinds = dict[tuple, float]
ROWS = 256  # queries of one scale that are compared


def obstacle(model, task) -> str | None:
    """Return why a model and a task cannot be certified, whatever the weights, or None.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> copy = tasks.get("copy")
    >>> pe = embeddings.build("alibi", copy, width=16, heads=2)
    >>> obstacle(Transformer(11, pe, 1, 16, 2), copy)
    "PositionEmbedding 'ALiBiEmbedding' names no finite set of keys ..."
    """
    if type(model) is not Transformer:
        return f"the model is a {type(model).__name__}, not a lgcourse.Transformer"
    altered = _altered(model)
    if altered:
        return altered
    kinds = {p.dtype for p in model.parameters()} - {torch.float32, torch.float64}
    if kinds:
        return f"weights are {kinds.pop()}; the rounding bound is for float32 and float64"
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        name = next(n for n, p in model.named_parameters() if not bool(torch.isfinite(p).all()))
        return f"weights are not finite: {name} holds NaN or infinity"
    for embedding in model.positions:
        why = _unnamed(embedding)
        if why:
            return why
    if task.segments() is None or task.families() is None:
        return f"task '{task.name}' does not say its circuit for all scales at once (families)"
    return None


def _altered(model: Transformer) -> str | None:
    """Return what is not as the class says: another module, a hook, or a replaced method."""
    for name, module in model.named_modules():
        if not name.startswith("positions.") and type(module) not in KNOWN:
            return f"module '{name}' is a {type(module).__name__}, no part of a Transformer here"
        if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
            return f"module '{name or 'model'}' has a hook or a forward of its own"
        if isinstance(module, nn.GELU) and module.approximate != "none":
            return f"module '{name}' approximates GELU"
    return None


def _unnamed(embedding) -> str | None:
    """Return why an embedding does not fit: it is no finite relation, or more than a bias."""
    name = type(embedding).__name__
    if not adds_nothing_unknown(embedding):
        return f"PositionEmbedding '{name}' changes vectors by their position (embed)"
    if type(embedding).rotate is not PositionEmbedding.rotate:
        return f"PositionEmbedding '{name}' changes vectors by their position (rotate)"
    own = {"embed", "rotate", "bias", "named", "named_terms"} & set(vars(embedding))
    if own:
        return f"PositionEmbedding '{name}' has replaced methods: {', '.join(sorted(own))}"
    if embedding.reads_content:
        return f"PositionEmbedding '{name}' lets the bias depend on content"
    terms = embedding.named_terms()
    if terms is None:
        return (
            f"PositionEmbedding '{name}' names no finite set of keys that a head reads: other keys "
            "get attention, or its relation is not made of forms"
        )
    return None


def broken_promise(embedding, heads: Heads, task) -> str | None:
    """Return where an embedding reads other keys than its terms name, at some scales, or None."""
    seen: Kinds = {}
    for size in PROMISED[task.sizes]:
        for scale in listed(task, size):
            length = task.length(scale)
            query = torch.arange(length)
            if length > ROWS:
                ends = ROWS // 4
                middle = torch.linspace(ends, length - ends - 1, ROWS - 2 * ends).long()
                query = torch.cat([query[:ends], middle, query[-ends:]])
            wrong = unlike_terms(embedding, heads, query, scale, seen)
            if wrong is not None:
                return wrong
    return None


def unlike_terms(
    embedding, heads: Heads, query: Tensor, scale: Scale, seen: Kinds | None = None
) -> str | None:
    """Return a pair where bias, named keys and terms of an embedding differ, or None.

    ``seen`` holds the bias of each kind of pair, by head, and is filled.
    """
    seen = {} if seen is None else seen
    key = torch.arange(int(query.max()) + 1)
    bias = embedding.bias(query, key, scale)
    named = embedding.named(query, scale)
    if bias is None or named is None:
        return "the embedding has terms, but no bias or no named keys"
    future = key[None, :] > query[:, None]
    own = key[None, :] == query[:, None]
    known: dict[int, Tensor] = {}
    for head in range(len(bias)):
        terms = heads[head]
        if id(terms) not in known:
            known[id(terms)] = torch.stack(
                [
                    t.allows(query, scale)[:, None] & t.hits(query[:, None], key[None, :], scale)
                    for t in terms
                ]
                or [own & False]
            )  # r q k
        holds = known[id(terms)]
        told = (holds.any(0) | own) & ~future
        read = torch.isfinite(bias[head]) & ~future
        gathered = torch.zeros_like(told)
        keys = named[0][head % len(named[0])]
        rows = torch.arange(len(query))[:, None].expand_as(keys)
        found = (keys >= 0) & torch.isfinite(named[1][head])
        gathered[rows[found], keys[found]] = True
        for what, pairs in (("bias", read), ("named", gathered)):
            if not torch.equal(told, pairs):
                q, k = (told != pairs).nonzero()[0].tolist()
                return (
                    f"head {head + 1} at scale {scale}: terms and {what} differ on whether query "
                    f"{int(query[q])} reads key {k}"
                )
        kinds = torch.cat([holds, own[None]])[:, told].T  # pairs (r + 1)
        for kind, value in zip(kinds.tolist(), bias[head][told].tolist(), strict=True):
            if isinf(value) or abs(seen.setdefault((head, *kind), value) - value) > 1e-6:
                return (
                    f"head {head + 1} at scale {scale}: the bias of a kind of pair is not constant"
                )
    return None


def listed(task, size: int) -> list[Scale]:
    """Return the scales of a task that are listed under a size, as far as it has them.

    >>> from lgcourse import tasks
    >>> listed(tasks.get("copy"), 7), listed(tasks.get("addition-unequal"), 7)
    ([7], [(7, 1), (7, 2), (7, 3), (7, 5), (7, 9)])
    """
    scales = [size] if task.sizes == 1 else [(size, m) for m in PROMISED[2]]
    return [scale for scale in scales if task.has_scale(scale)]
