"""Which way is attention computed? Five paths to one result, and the rule that chooses one.

Each path takes queries ``[b h q d]``, keys and values ``[b h k d]`` and the `View` of the layer; it
returns softmax(q k / sqrt(d) + bias) v, ``[b h q d]``. The bias of later keys is minus infinity.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from lgcourse.embeddings.base import wide
from lgcourse.errors import InputError, unknown_name
from lgcourse.model.view import View

Rows = Float[Tensor, "b h q d"]
Keys = Float[Tensor, "b h k d"]

SCORES = {"cpu": 2**22, "cuda": 2**28}  # scores held at once by the chunked path: 16 MiB, 1 GiB
GATHERED = 2**17  # floats of queries that gather their keys at once: 0.5 MiB, r times that for keys
LONG = 64  # keys; below, all are read: that is quicker than to gather some
FEW = 8  # a query's named keys are few where this many times as many stand before it
FLEX_FROM = 4096  # queries on CUDA from which the bias is worth computing inside the kernel


def plain(q: Rows, k: Keys, v: Keys, view: View) -> Rows:
    """Write the equation down; softmax in float32, or wider where the model is."""
    scores = wide((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5)  # b h q k
    weights = torch.softmax(scores + view.bias(q, k), dim=-1)
    return weights.to(v.dtype) @ v


def chunked(q: Rows, k: Keys, v: Keys, view: View) -> Rows:
    """Go the plain path for some queries at a time, so that memory is linear in the length."""
    kind = "cuda" if q.is_cuda else "cpu"
    rows = []
    for part in parts(q.shape[2], SCORES[kind] // (q.shape[0] * q.shape[1] * k.shape[2])):
        some = view.rows(part)
        seen = len(some.key)
        rows.append(plain(q[:, :, part], k[:, :, :seen], v[:, :, :seen], some))
    return torch.cat(rows, dim=2)


def gathered(q: Rows, k: Keys, v: Keys, view: View) -> Rows:
    """Read only the keys that the embedding names, r per query: cost linear in the length.

    Raises:
        InputError: the embedding reads all keys.
    """
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # b l h d: a token is one row
    k, v = (x if x[0].is_contiguous() else x.contiguous() for x in (k, v))  # `_take` is quick then
    rows = []
    for part in parts(q.shape[1], GATHERED // q[:, 0].numel()):
        few = view.rows(part).named()
        if few is None:
            raise InputError(
                "path 'gathered' needs an embedding that names few keys per query (ideal, ideal-sh,"
                " rpe-sh with other='excluded'); choose another path, for instance 'auto'"
            )
        keys, bias = few  # h q r
        at = keys.clamp(min=0)  # an empty slot has bias minus infinity: any key will do
        scores = (wide(q[:, part, None]) * _take(k, at)).sum(-1)  # b q r h
        scores = scores * q.shape[-1] ** -0.5 + bias.permute(1, 2, 0)
        weights = torch.softmax(scores, dim=2)
        rows.append((weights[..., None] * _take(v, at)).sum(2).to(v.dtype))  # b q h d
    return torch.cat(rows, dim=1).transpose(1, 2)


def _take(x: Float[Tensor, "b k h d"], at) -> Float[Tensor, "b q r h d"]:
    """Return the rows of x at positions [h q r]; quicker where all heads ask for the same."""
    if at.shape[0] > 1:
        return x[:, at.permute(1, 2, 0), torch.arange(x.shape[2], device=x.device)]
    rows = [sequence.index_select(0, at.flatten()) for sequence in x]  # (q r) h d
    return (torch.stack(rows) if len(rows) > 1 else rows[0][None]).unflatten(1, at.shape[1:])


def sdpa(q: Rows, k: Keys, v: Keys, view: View) -> Rows:
    """Let PyTorch's kernel do it, with the bias as a float mask in the dtype of the scores.

    Causality is part of the bias: the kernel's own counts from the top left, which is wrong with a
    cache, and not every backend takes both.
    """
    bias = view.bias(q, k).to(q.dtype)
    return scaled_dot_product_attention(q, k, v, attn_mask=bias)


def flex(q: Rows, k: Keys, v: Keys, view: View) -> Rows:
    """Evaluate the bias of each pair inside the kernel (FlexAttention): none is stored.

    On CUDA the kernel is compiled once per embedding and shape. On a CPU it is not: only the result
    can be compared there, and it has no gradients.

    Source: Dong et al. (2024), arXiv 2412.05496.

    Raises:
        InputError: the embedding gives its bias for whole rows only, or gradients are asked for on
            a CPU.
    """
    if not _bias_is_pairwise(view):
        raise InputError(
            f"path 'flex' needs the bias of single pairs, and {type(view.position).__name__} gives "
            "it for whole rows only; choose path 'plain', 'chunked' or 'sdpa'"
        )
    if not q.is_cuda and torch.is_grad_enabled() and q.requires_grad:
        raise InputError("path 'flex' has no gradients on a CPU; choose path 'plain' or 'sdpa'")
    position, query, key, scale = view.position, view.query, view.key, view.scale

    def score(score, batch, head, row, column):
        i, j = query[row], key[column]
        own = position.bias_at(head, i, j, scale)
        return torch.where(j <= i, score if own is None else score + own, float("-inf"))

    size = q.shape[-1]
    if q.is_cuda and size < 16:  # the least that the kernel takes; zeros change no score
        q, k, v = (pad(x, (0, 16 - size)) for x in (q, k, v))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
        return _kernel(q.is_cuda)(q, k, v, score_mod=score, scale=size**-0.5)[..., :size]


@cache
def _kernel(compiled: bool):
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False) if compiled else flex_attention


def _bias_is_pairwise(view: View) -> bool:
    """Return whether the score function may ask for the bias of a pair (or there is none).

    This also makes a relation compute what it keeps per scale, before anything is traced.
    """
    if view.position.reads_content:
        return False
    one = view.query[-1]
    pair = view.position.bias_at(torch.zeros_like(one), one, one, view.scale)
    return pair is not None or not view.is_biased()


PATHS = {"plain": plain, "chunked": chunked, "gathered": gathered, "sdpa": sdpa, "flex": flex}


def check_path(name: str) -> str:
    """Return the name of a path, or ``"auto"``; another name is an `InputError`."""
    if name not in ("auto", *PATHS):
        raise unknown_name("attention path", name, ["auto", *PATHS])
    return name


def choose_path(q: Rows, view: View) -> str:
    """Return which path computes the attention of some queries.

    The one that was asked for by name; otherwise

    - ``gathered`` where the embedding names few keys among many,
    - on CUDA ``flex`` for long inputs, where the embedding gives the bias of single pairs,
    - ``chunked`` where the scores would take too much memory, without gradients,
    - on CUDA ``sdpa``, unless it would round the bias to 16 bits,
    - ``plain`` otherwise.
    """
    if view.path != "auto":
        return check_path(view.path)
    keys = len(view.key)
    slots = view.slots() if keys > LONG else None
    if slots is not None and keys > FEW * slots:
        return "gathered"
    exact = q.dtype in (torch.float32, torch.float64)
    long = len(view.query) >= FLEX_FROM and q.dtype != torch.float64
    if q.is_cuda and long and _bias_is_pairwise(view):
        return "flex"
    scores = q.shape[0] * q.shape[1] * q.shape[2] * keys
    if scores > SCORES["cuda" if q.is_cuda else "cpu"] and not torch.is_grad_enabled():
        return "chunked"
    if q.is_cuda and (exact or not view.is_biased()):
        return "sdpa"
    return "plain"


def attend(q: Rows, k: Keys, v: Keys, view: View) -> Rows:
    """Compute attention by the chosen path."""
    return PATHS[choose_path(q, view)](q, k, v, view)


def parts(count: int, size: int) -> Iterator[slice]:
    """Cut 0..count-1 into slices of a size (at least 1)."""
    size = max(1, size)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
