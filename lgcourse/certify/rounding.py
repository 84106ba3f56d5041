"""How far can float32 arithmetic move the logits of a step? A bound from running error analysis.

A one-layer decoder is evaluated in float64 on the tokens of a step; beside every vector goes a
bound on the 2-norm of the error that float32 arithmetic can have made so far. Each operation takes
the bound of what went in times its Lipschitz constant there, and adds the rounding of its own:

    y = W x + b       |W|_2 e  +  g (| |W| |x| |_2 + |b|_2 + | |W| |_2 e)
    layer norm        max|gain| e / sqrt(var' + eps)  +  rounding of mean, variance and output
    scores            |q|_2 e_k + |k|_2 e_q + e_k e_q  +  g sum |q| |k|  +  bias, addition
    softmax           sum_i w_i (exp(d_i) - 1) |v_i - y|_2 exp(max d)  for scores off by d_i
    gelu              8 u |x|_2; together with the matrices W1 before and W2 behind it
                      (0.5 |W2 W1|_2 + 0.63 |W2|_2 |W1|_2) e, as its slope lies within 0.5 -+ 0.63

The line on softmax: weights proportional to w_i exp(d_i) give y' with
y' - y = sum_i w_i (exp(d_i) - 1) (v_i - y) / sum_j w_j exp(d_j), as sum_i w_i (v_i - y) = 0.
Here u = 2^-24, g = n u / (1 - n u) for sums of n products in any order, fused or not, and var' the
variance after the worst change. What it covers: IEEE float32 (not TF32, not bfloat16) on any
attention path, exp and erf within 32 units in the last place, the variance of layer norm by two
passes, by Welford's update, or as E x^2 - (E x)^2. How far the bias of a pair can be off stands in
`bias_error`. The result is multiplied by 1.001, far more than float64 adds.

Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, section 3.1 (the constants g)
and 3.3 (running error analysis).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from einops import einsum, rearrange
from torch import Tensor
from torch.nn.functional import gelu, layer_norm

from lgcourse.certify.signatures import Shape
from lgcourse.embeddings.learned_relation import LearnedRelation
from lgcourse.embeddings.table import CONSTANT, RelationTable

U = 2.0**-24
SAFETY = 1.001
EXP = 32  # units in the last place of exp and erf


def gamma(count: int) -> float:
    """Return n u / (1 - n u), the relative error of a sum of n products."""
    return count * U / (1 - count * U)


def bias_error(embedding, biases: list[Tensor]) -> list[Tensor]:
    """Return how far float32 can move the biases of each head, ``[r]`` for the places it reads.

    A table is read and multiplied once. A learned relation takes a softmax of gates / T, x say,
    over F forms: each entry is off by at most 2 (4 max|x| + 32) + F units in the last place; then
    come the products and the sum over the cells that hold, which are all cells of the head at most.
    Where no strength is negative, their sum is the bias itself. Other embeddings: 1024 units.
    """
    if isinstance(embedding, RelationTable):
        return [4 * U * bias.abs() for bias in biases]
    if isinstance(embedding, LearnedRelation):
        x = (embedding.gates.detach() / embedding.temperature).abs().amax(dim=1)
        units = 2 * (4 * x + EXP) + len(embedding.forms) + 32
        strength = embedding.strength().detach() * embedding.kept
        rough = CONSTANT * strength.abs().sum(dim=(1, 2))
        same = (strength >= 0).flatten(1).all(dim=1)
        rows = zip(biases, rough, same, strict=True)
        sizes = [bias.abs() if s else r.expand_as(bias) for bias, r, s in rows]
        return [u * U * size for u, size in zip(units, sizes, strict=True)]
    return [1024 * U * bias.abs().max().expand_as(bias) for bias in biases]


@dataclass
class Bounded:
    """Vectors ``[... d]`` and a bound on the 2-norm of their errors ``[...]``."""

    x: Tensor
    e: Tensor

    @property
    def size(self) -> Tensor:
        return self.x.norm(dim=-1)

    def pick(self, index: Tensor) -> Bounded:
        return Bounded(self.x[index], self.e[index])


def linear(weight: Tensor, v: Bounded, bias: Tensor | None = None) -> Bounded:
    """Return W x + b."""
    norm, rough = (torch.linalg.matrix_norm(w, 2) for w in (weight, weight.abs()))
    own = (v.x.abs() @ weight.abs().T).norm(dim=-1) + rough * v.e
    y = v.x @ weight.T
    if bias is not None:
        y, own = y + bias, own + bias.norm()
    return Bounded(y, norm * v.e + gamma(weight.shape[1] + 2) * own)


def plus(a: Bounded, b: Bounded) -> Bounded:
    """Return a + b."""
    y = a.x + b.x
    return Bounded(y, (a.e + b.e) * (1 + U) + U * y.norm(dim=-1))


def normalise(norm, v: Bounded) -> Bounded:
    """Return the layer norm of vectors; without one (identity) the vectors themselves."""
    if not isinstance(norm, torch.nn.LayerNorm):
        return v
    gain, shift = norm.weight.detach(), norm.bias.detach()
    width = v.x.shape[-1]
    y = layer_norm(v.x, (width,), gain, shift, norm.eps)
    spread = (v.x - v.x.mean(dim=-1, keepdim=True)).norm(dim=-1)
    least = (spread - v.e).clamp(min=0)
    rate = (least**2 / width + norm.eps).rsqrt()  # largest 1 / sqrt(var + eps) nearby
    size, most = v.size + v.e, spread + v.e
    # E x^2 - (E x)^2 is off by 2 g |x|^2 / d; relative to var + eps, which is at least 1 / rate^2
    off = 2 * gamma(width + 10) * size**2 / width * rate**2
    off = torch.where(off < 0.25, off, float("inf"))  # 1 / sqrt(1 - off) - 1 <= off below 1/4
    top = gain.abs().max()
    mean = gamma(width + 2) * size
    own = (
        top * rate * (1 + off) * (mean + (off + 4 * U) * most + 8 * U * size) + 4 * U * shift.norm()
    )
    return Bounded(y, top * rate * v.e + own)


class StepBound:
    """The logits of a step of a one-layer model in float64, each with its bound.

    Args:
        model: a `Transformer` of one layer in float64.
        parts: the part of each segment of the layout, see `lgcourse.certify.parts`.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> pe = embeddings.build("none", width=16, heads=2)
    >>> StepBound(Transformer(12, pe, 1, 16, 2).double()).q.x.shape
    torch.Size([12, 2, 8])
    """

    @torch.no_grad()
    def __init__(self, model, parts: Sequence[int] = ()):
        self.model, self.block, self.parts = model, model.blocks[0], list(parts)
        table = model.tokens.weight.detach()
        self.words = len(table)
        self.tokens = Bounded(table, torch.zeros(len(table), dtype=table.dtype))
        added = getattr(model.embedding, "segments", None)
        if added is not None:  # row part * words + token
            rows = added.vectors.detach()[: 1 + max(self.parts), None] + table
            rows = rows.flatten(0, 1)
            self.tokens = Bounded(rows, U * rows.norm(dim=-1))
        else:
            self.parts = [0] * len(self.parts)
        into = self.tokens
        if self.block.norm == "pre":
            into = normalise(self.block.attention_norm, into)
        attention = self.block.attention
        rows = rearrange(
            attention.project.weight.detach(),
            "(three h d) w -> three h d w",
            three=3,
            h=attention.heads,
        )
        self.q, self.k, self.v = (_per_head(part, into) for part in rows)

    @torch.no_grad()
    def __call__(
        self, shape: Shape, tokens: Tensor, biases: list[Tensor], expected: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the logits ``[t v]`` of tuples, and the bound on (right - other) ``[t v]``.

        Args:
            shape: the signature.
            tokens: the tuples ``[t p]``.
            biases: per head the bias of each place that it reads, in the order of ``shape.reads``.
            expected: the right token of each tuple.
        """
        if any(self.parts):
            part = torch.tensor([self.parts[place.segment] for place in shape.places])
            tokens = tokens + self.words * part
        own = tokens[:, shape.query]
        off = bias_error(self.model.embedding, biases)
        heads = [
            self._head(h, tokens, own, biases[h], off[h], [place for place, _ in reads])
            for h, reads in enumerate(shape.reads)
        ]
        joined = Bounded(
            torch.cat([head.x for head in heads], dim=-1),
            torch.stack([head.e for head in heads]).norm(dim=0),
        )
        block, x = self.block, self.tokens.pick(own)
        x = plus(x, linear(block.attention.out.weight.detach(), joined))
        if block.norm == "post":
            x = normalise(block.attention_norm, x)
            x = normalise(block.mlp_norm, plus(x, self._mlp(x)))
        else:
            x = plus(x, self._mlp(normalise(block.mlp_norm, x)))
        return self._logits(normalise(self.model.norm, x), expected)

    def _head(self, h, tokens, own, bias, bias_off, places) -> Bounded:
        """softmax(q k / sqrt(d) + bias) v over the places that a head reads."""
        q = Bounded(self.q.x[own, h], self.q.e[own, h])
        keys = tokens[:, places]  # t r
        k = Bounded(self.k.x[keys, h], self.k.e[keys, h])
        v = Bounded(self.v.x[keys, h], self.v.e[keys, h])
        scale = q.x.shape[-1] ** -0.5
        raw = einsum(q.x, k.x, "t d, t r d -> t r") * scale
        score = raw + bias
        size, e = q.size[:, None], q.e[:, None]
        off = scale * (size * k.e + k.size * e + e * k.e)
        rough = (
            einsum(q.x.abs(), k.x.abs(), "t d, t r d -> t r") + size * k.e + k.size * e + e * k.e
        )
        off = off + gamma(q.x.shape[-1] + 3) * scale * rough
        off = off + bias_off + U * (score.abs() + off)
        off = off + 2 * U * score.abs().amax(dim=1, keepdim=True)  # of s - max
        factor = torch.expm1(off)
        count = len(places)
        own_error = gamma(EXP * 2 + count + 4) if count > 1 else 0.0  # of a weight, relative
        weight = torch.softmax(score, dim=1)
        x = einsum(weight, v.x, "t r, t r d -> t d")
        apart = (v.x - x[:, None]).norm(dim=-1)
        grown = (1 + factor.amax(1)) * (1 + own_error)
        moved = grown * (weight * (factor * apart + own_error * v.size)).sum(1)
        grown = grown * (1 + factor.amax(1))
        moved = moved + grown * (weight * v.e).sum(1)
        moved = moved + gamma(count + 1) * grown * (weight * (v.size + v.e)).sum(1)
        return Bounded(x, moved + count * 2.0**-120 * v.size.amax(dim=1))  # flushed to zero

    def _mlp(self, x: Bounded) -> Bounded:
        """W2 gelu(W1 x + b1) + b2; what e does is W2 D W1 e with D between -0.13 and 1.13."""
        first, second = self.block.mlp[0], self.block.mlp[2]
        w1, w2 = first.weight.detach(), second.weight.detach()
        n1, n2, n21 = (torch.linalg.matrix_norm(w, 2) for w in (w1, w2, w2 @ w1))
        hidden = linear(w1, x, first.bias.detach())
        own = hidden.e - n1 * x.e + 8 * U * (hidden.size + hidden.e)
        active = Bounded(gelu(hidden.x), 1.13 * hidden.e + own)
        y = linear(w2, active, second.bias.detach())
        through = 0.5 * n21 + 0.63 * n2 * n1  # D = 0.5 + D', |D'| <= 0.63
        return Bounded(y.x, through * x.e + 1.13 * n2 * own + (y.e - n2 * active.e))

    def _logits(self, x: Bounded, expected: Tensor) -> tuple[Tensor, Tensor]:
        tied = self.model.logits is None
        weight = (self.model.tokens if tied else self.model.logits).weight.detach()
        if tied:
            weight = weight * weight.shape[1] ** -0.5
        logits = x.x @ weight.T
        apart = torch.cdist(weight, weight, compute_mode="donot_use_mm_for_euclid_dist")[expected]
        rough = x.x.abs() @ weight.abs().T + weight.norm(dim=1) * x.e[:, None]
        own = gamma(weight.shape[1] + 4) * (rough + rough.gather(1, expected[:, None]))
        return logits, SAFETY * (apart * x.e[:, None] + own)


def _per_head(weight: Tensor, x: Bounded) -> Bounded:
    """Return the projections of one kind (q, k or v) for all heads, [v h d]."""
    heads = [linear(one, x) for one in weight]
    return Bounded(torch.stack([h.x for h in heads], 1), torch.stack([h.e for h in heads], 1))
