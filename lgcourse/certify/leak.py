"""How far can keys without a role move a step? A bound for all fillings, and ranges of lengths.

In a soft table every other key keeps some attention. With L keys before a query, of which the
signature and the marks of the layout fix Q, m = L - Q others hold tokens that nobody knows, a
share p_w of them the token w. Relative to the strongest known role, a head gives them the weight

    psi(L) sum_w p_w exp(s_w),    psi(L) = m (L + 1)^c,    c = 8 (table[other] - table[role]),

with s_w the content score of the query and token w, a finite table. So what a head writes is
(sum_r a_r v_r + psi sum_w p_w exp(s_w) v_w) / (sum_r a_r + psi sum_w p_w exp(s_w)): a
linear-fractional image of the simplex of all p, hence the convex hull of the images of its
corners, and each corner is a filling with one token. The weights a_r of known keys that are no
strongest role depend on L as well, (L + 1)^(8 (table[r] - table[role])); over a range of L they lie
between two values, and a ball around the head's output covers what that changes.

From there the set is carried to the logits: every quantity below is an interval, or the least value
of a linear function on the set. Layer norm divides by a number whose range is bounded; GELU lies
between two lines of one slope on the range of its input; the final layer norm is multiplied out, as
only the sign of (right - other) matters. What float32 rounding adds is bounded beside it.

Source: bounds of a network by linear functions, Zhang et al. (2018), arXiv 1811.00866; here on a
set that is exact for attention whose scores take finitely many values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import einsum, rearrange
from torch import Tensor
from torch.nn.functional import gelu

from lgcourse.certify.rounding import EXP, SAFETY, StepBound, U, gamma
from lgcourse.embeddings.table import STRENGTH

POINTS = 16  # at which a GELU is compared with its chord
CURVED = 0.8  # largest second derivative of GELU, 2 phi(0), rounded up
SLACK = 1e-9  # covers float64 arithmetic in logarithms of weights
KNOWN = 64  # known keys of a step, at most
EXACT = 2.0**24  # keys up to which float32 counts exactly; beyond, no rounding is bounded


@dataclass
class Cells:
    """Many ranges, each of one tuple, all with the same keys known.

    Args:
        query: the token of the query.
        tokens: the known tokens of each, that of the query among them; ``[c r]``.
        expected: the right token of each.
        low, high: the least and the largest number of keys, infinity allowed; ``[c]``.
    """

    query: Tensor
    tokens: Tensor
    expected: Tensor
    low: Tensor
    high: Tensor

    def pick(self, rows: Tensor) -> Cells:
        """Return some of them."""
        return Cells(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass
class _Head:
    """What a head can write: known + g (other_k - known) for g_low <= g <= g_high, and a ball."""

    known: Tensor  # c d
    other: Tensor  # k d
    least: Tensor  # c k
    most: Tensor  # c k
    ball: Tensor  # c

    def extremes(self, of_known: Tensor, of_other: Tensor) -> tuple[Tensor, Tensor]:
        """Return the least and largest value of functions, given at known and other points.

        Args:
            of_known: ``[c f]``.
            of_other: ``[c k f]``, or ``[1 k f]``.
        """
        apart = of_other - of_known[:, None]
        one, two = apart * self.least[..., None], apart * self.most[..., None]
        return (
            of_known + torch.minimum(one.amin(1), two.amin(1)),
            of_known + torch.maximum(one.amax(1), two.amax(1)),
        )


class LeakBound:
    """Bounds the logits of a one-layer pre-norm decoder with a soft table, in float64.

    Args:
        model: the `Transformer` in float64.
        others: the tokens that a key without a role can hold.
    """

    @torch.no_grad()
    def __init__(self, model, others: Tensor):
        self.model, self.others, block = model, others, model.blocks[0]
        plain = StepBound(model)
        self.table = model.embedding.table.detach()
        size = plain.q.x.shape[-1]
        self.scores = einsum(plain.q.x, plain.k.x, "a h d, b h d -> h a b") * size**-0.5
        out = rearrange(block.attention.out.weight.detach(), "o (h d) -> h o d", h=len(self.table))
        self.values = einsum(out, plain.v.x, "h o d, v h d -> h v o")
        self.tokens = model.tokens.weight.detach()
        width = self.tokens.shape[1]
        self.centre = torch.eye(width, dtype=out.dtype) - 1 / width
        first, second = block.mlp[0], block.mlp[2]
        norm, last = block.mlp_norm, model.norm
        self.w1 = (first.weight.detach() * norm.weight.detach()) @ self.centre  # of x, without rho
        self.b1 = first.bias.detach() + first.weight.detach() @ norm.bias.detach()
        self.w2, self.b2 = second.weight.detach(), second.bias.detach()
        self.eps, self.last_eps, self.shift = norm.eps, last.eps, last.bias.detach()
        tied = model.logits is None
        answers = (model.tokens if tied else model.logits).weight.detach()
        self.answers = answers * width**-0.5 if tied else answers
        self.ends = self.answers * last.weight.detach() @ self.centre  # of x, without 1 / sigma
        self.norm2 = torch.linalg.matrix_norm(self.w2, 2)
        self.rounding = _Rounding(self, plain, out)

    @torch.no_grad()
    def __call__(self, cells: Cells, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what bounds each cell.

        Args:
            cells: the ranges.
            ids: the relation's id of each known key by head, ``[h r]``.

        Returns:
            A lower bound on the smallest difference between the right logit and another one, a
            bound on what float32 rounding can change of such a difference, and the largest weight
            of all others in a head; ``[c]`` each.
        """
        x = self.tokens[cells.query]
        heads = [self.head(h, cells, ids[h]) for h in range(len(self.table))]
        share = torch.stack([head.most.amax(1) for head in heads], 1)  # c h
        off = self.rounding.of_heads(share, cells.high)
        for head, one in zip(heads, off.T, strict=True):
            head.ball = head.ball + one
        middle, rates, size, whole = self._norm(x, heads)
        lines = self._gelu(x, heads, rates)
        ends = self.ends[cells.expected][:, None] - self.ends  # c v d
        along = self._behind(middle)
        value = self._through(x, heads, rates, lines, torch.cat([ends, along[:, None]], 1))
        written = self._written(lines)
        top = (((size + written) ** 2) / x.shape[1] + self.last_eps).sqrt() * (1 + SLACK)
        bottom = value[:, -1].clamp(min=0)  # |x - mean| is at least its part along a direction
        bottom = (bottom**2 / x.shape[1] + self.last_eps).sqrt() * (1 - SLACK)
        value = value[:, :-1]
        shift = (self.answers[cells.expected][:, None] - self.answers) @ self.shift
        value = value + torch.minimum(shift * bottom[:, None], shift * top[:, None])
        value = torch.where(value > 0, value / top[:, None], value / bottom[:, None])
        value = value.scatter(1, cells.expected[:, None], float("inf")).amin(1)
        error = self.rounding.of_logits(off, whole, size, written, rates[1], bottom)
        return value - SLACK, error, share.amax(1)

    def _through(self, x, heads: list[_Head], rates, lines: _Lines, ends: Tensor) -> Tensor:
        """Return the least value of functions ``[c v d]`` behind the MLP, before the last norm."""
        through = ends @ self.w2  # c v f
        sloped = through * lines.slope[:, None]
        bent = sloped @ self.w1  # c v d
        offset = torch.where(through > 0, lines.least[:, None], lines.most[:, None])
        value = ends @ self.b2 + sloped @ self.b1 + (through * offset).sum(-1)
        both = [self._least(x, heads, ends + rate[:, None, None] * bent) for rate in rates]
        return value + torch.minimum(*both)

    def head(self, h: int, cells: Cells, ids: Tensor) -> _Head:
        """Bound what one head writes, see the top of this module."""
        table, score = self.table[h], self.scores[h, cells.query]  # c v
        strength = STRENGTH * table[ids]
        falls = strength - strength.max()  # r, at most 0
        known = score.gather(1, cells.tokens)
        top = known.amax(1, keepdim=True)
        least, most = (torch.log(length + 1)[:, None] for length in (cells.low, cells.high))
        high = torch.exp(known - top + falls * least)
        low = torch.exp(known - top + torch.where(falls < 0, falls * most, 0.0))
        weight, half = (high + low) / 2, (high - low) / 2 + SLACK * high
        total, fewest = weight.sum(1), low.sum(1) * (1 - SLACK)
        v = self.values[h, cells.tokens]  # c r d
        mixed = einsum(weight, v, "c r, c r d -> c d") / total[:, None]
        ball = (half * (v - mixed[:, None]).norm(dim=-1)).sum(1) / fewest
        mass = torch.exp(score[:, self.others] - top)  # c k
        c = float(STRENGTH * table[self.model.embedding.relation.other] - strength.max())
        rare, often = log_psi(c, cells.tokens.shape[1], cells.low, cells.high)
        g = []
        for log, known_mass in ((rare, high.sum(1)), (often, fewest)):
            g.append(torch.sigmoid(log[:, None] + torch.log(mass / known_mass[:, None])))
        return _Head(mixed, self.values[h, self.others], g[0], g[1], ball)

    def _least(self, x: Tensor, heads: list[_Head], functions: Tensor) -> Tensor:
        """Return the least value of functions ``[c f d]`` of the sum of x and all heads."""
        value = einsum(functions, x, "c f d, c d -> c f")
        size = functions.norm(dim=-1)
        for head in heads:
            known = einsum(functions, head.known, "c f d, c d -> c f")
            other = (functions @ head.other.T).transpose(1, 2)  # c k f
            value = value + head.extremes(known, other)[0] - size * head.ball[:, None]
        return value

    def _behind(self, x: Tensor) -> Tensor:
        """Return the direction of x - mean behind the MLP, for one x."""
        scaled = x @ self.centre
        scaled = x @ self.w1.T / (scaled.square().mean(-1, keepdim=True) + self.eps).sqrt()
        y = (x + gelu(scaled + self.b1) @ self.w2.T + self.b2) @ self.centre
        return y / y.norm(dim=-1, keepdim=True).clamp(min=1e-30)

    def _norm(self, x: Tensor, heads: list[_Head]):
        """Look at the set of sums x.

        Returns:
            A point in it, the least and the largest 1 / sigma of the layer norm, and the largest
            norm of x - mean and of x.
        """
        middle, offsets = x, []
        for head in heads:
            apart = head.other - head.known[:, None]  # c k d
            ends = torch.cat([apart * head.least[..., None], apart * head.most[..., None]], 1)
            middle = middle + head.known + ends.mean(1)
            offsets.append(ends - ends.mean(1, keepdim=True))
        whole = middle.norm(dim=-1)
        for head, points in zip(heads, offsets, strict=True):
            whole = whole + points.norm(dim=-1).amax(1) + head.ball
        size = (middle @ self.centre).norm(dim=-1)
        along = middle @ self.centre / size[:, None].clamp(min=1e-30)
        low, high, side, away = size, size, torch.zeros_like(size), size
        for head, points in zip(heads, offsets, strict=True):
            points = points @ self.centre
            on = einsum(points, along, "c k d, c d -> c k")
            low, high = low + on.amin(1) - head.ball, high + on.amax(1) + head.ball
            beside = points - on[..., None] * along[:, None]
            side = side + beside.norm(dim=-1).amax(1) + head.ball
            away = away + points.norm(dim=-1).amax(1) + head.ball
        high, low = torch.maximum(high, -low), low.clamp(min=0) * (1 - SLACK)
        high = torch.minimum((high**2 + side**2).sqrt(), away) * (1 + SLACK)
        least, most = ((s**2 / x.shape[1] + self.eps).rsqrt() for s in (high, low))
        return middle, (least, most), high, whole * (1 + SLACK)

    def _gelu(self, x: Tensor, heads: list[_Head], rates: tuple[Tensor, Tensor]) -> _Lines:
        """Return two lines around each GELU of the MLP."""
        low = high = x @ self.w1.T
        for head in heads:
            one, two = head.extremes(head.known @ self.w1.T, (head.other @ self.w1.T)[None])
            size = self.w1.norm(dim=1) * head.ball[:, None]
            low, high = low + one - size, high + two + size
        scaled = torch.stack([v * rate[:, None] for v in (low, high) for rate in rates])
        return lines_around_gelu(scaled.amin(0) + self.b1, scaled.amax(0) + self.b1)

    def _written(self, lines: _Lines) -> Tensor:
        """Return the largest norm of what the MLP adds."""
        middle = (lines.low + lines.high) / 2 @ self.w2.T + self.b2
        loose = self.norm2 * ((lines.high - lines.low) / 2).norm(dim=-1)
        return (middle.norm(dim=-1) + loose) * (1 + SLACK)


@dataclass
class _Lines:
    """Lines around GELU, slope z + least <= gelu(z) <= slope z + most, and its range; ``[c f]``."""

    slope: Tensor
    least: Tensor
    most: Tensor
    low: Tensor
    high: Tensor


def lines_around_gelu(low: Tensor, high: Tensor) -> _Lines:
    """Return the lines with the slope of the chord over low..high.

    Between two of the points at which they are compared, a function whose second derivative is at
    most M lies within M d^2 / 8 of its chord there.

    >>> lines = lines_around_gelu(torch.tensor([-1.0]), torch.tensor([1.0]))
    >>> lines.slope, bool(lines.least < 0 and lines.most > 0.34)
    (tensor([0.5000]), True)
    """
    low, high = low - SLACK * (1 + low.abs()), high + SLACK * (1 + high.abs())
    wide = high - low
    at = low[..., None] + torch.linspace(0, 1, POINTS + 1, dtype=low.dtype) * wide[..., None]
    y = gelu(at)
    slope = (y[..., -1] - y[..., 0]) / wide
    rest = y - slope[..., None] * at
    bend = CURVED * (wide / POINTS) ** 2 / 8 + SLACK * (1 + at.abs().amax(-1))
    return _Lines(
        slope, rest.amin(-1) - bend, rest.amax(-1) + bend, y.amin(-1) - bend, y.amax(-1) + bend
    )


class _Rounding:
    """What float32 arithmetic adds, from the largest sizes that occur; see `rounding`.

    A sum of L weights is off by gamma(L) of itself. Where the others are many and weigh little it
    is better to say: one addition is off by at most the smaller of its two parts. A number is in
    the smaller part at most log2(S / s) times, s its size and S that of all others, so what the
    others add is at most sum s log2(S / s) <= S log2 L, once more S where they meet known keys, all
    times e for what computed sums can be off; only additions of known keys count with their whole.
    """

    def __init__(self, bound: LeakBound, plain: StepBound, out: Tensor):
        model, block = bound.model, bound.model.blocks[0]
        self.table = STRENGTH * bound.table.abs().amax(1)  # h
        q, k, v = plain.q, plain.k, plain.v
        scale = q.x.shape[-1] ** -0.5
        qe, ke = q.e.amax(0), k.e.amax(0)  # h
        qs, ks = q.size.amax(0), k.size.amax(0)
        off = scale * (qs * ke + ks * qe + qe * ke)
        self.score = off + gamma(q.x.shape[-1] + 3) * scale * (qs * ks + qs * ke + ks * qe)
        self.largest = bound.scores.abs().amax((1, 2))
        self.value, self.value_off = v.size.amax(0), v.e.amax(0)
        self.out = torch.linalg.matrix_norm(out, 2)  # h
        self.width = bound.tokens.shape[1]
        whole = torch.linalg.matrix_norm(block.attention.out.weight.detach().abs(), 2)
        self.into = gamma(self.width + 2) * whole * self.value.norm()
        w1, w2 = (block.mlp[k].weight.detach() for k in (0, 2))
        sizes = (torch.linalg.matrix_norm(w, 2) for w in (w1, w1.abs(), w2, w2.abs(), w2 @ w1))
        self.w1, self.w1_rough, self.w2, self.w2_rough, both = sizes
        self.through = 0.5 * both + 0.63 * self.w2 * self.w1  # see `rounding`
        self.b1, self.b2 = block.mlp[0].bias.detach().norm(), block.mlp[2].bias.detach().norm()
        self.norms = (block.mlp_norm, model.norm)
        self.rows = bound.answers.norm(dim=1).max()
        self.apart = torch.cdist(bound.answers, bound.answers).max()

    def of_heads(self, share: Tensor, keys: Tensor) -> Tensor:
        """Return how far each head's part of the sum can be off, ``[c h]``.

        Args:
            share: the largest weight of all others, ``[c h]``.
            keys: the largest number of keys; beyond 2^24 the bound is for 2^24.
        """
        keys = keys.clamp(max=EXACT)[:, None]
        bias = self.table * torch.log(keys + 1)
        score = self.largest + bias + self.score
        off = self.score + (EXP + 8) * U * bias + 4 * U * score
        weight = torch.expm1(off) + gamma(2 * EXP + 8)
        every = keys * U / (1 - keys * U).clamp(min=0.5)
        few = gamma(KNOWN) + share * torch.e * (4 + torch.log2(keys))
        total = torch.minimum(every + gamma(8), few)
        grown = (1 + weight) * (1 + 2 * total)
        moved = grown * (2 * weight + 2 * total) * self.value + grown * self.value_off
        return (moved + keys * 2.0**-120 * self.value) * self.out

    def of_logits(self, off: Tensor, whole, size, written, rate, sigma) -> Tensor:
        """Return how far the difference of two logits can be off behind the heads, ``[c]``.

        Args:
            off: what `of_heads` returned.
            whole, size: the largest norms of x and of x - mean before the MLP.
            written: the largest norm of what the MLP adds.
            rate: the largest 1 / sigma of the layer norm there.
            sigma: the least sigma of the last one.
        """
        start = self.into + U * (whole + off.sum(1)) * 2
        went, normed = self._norm(self.norms[0], whole, size, start, rate)
        hidden = self.w1 * normed + self.b1
        own = gamma(self.width + 2) * (self.w1_rough * (normed + went) + self.b1)
        own = own + 8 * U * (hidden + self.w1 * went + own)
        came = self.through * went + 1.13 * self.w2 * own
        active = hidden + 1.13 * (self.w1 * went + own)
        came = came + gamma(4 * self.width + 2) * (self.w2_rough * active + self.b2)
        both = (start + came) * (1 + U) + U * (whole + written)
        last, normed = self._norm(self.norms[1], whole + written, size + written, both, 1 / sigma)
        own = 2 * gamma(self.width + 4) * self.rows * (normed + last)
        return SAFETY * (self.apart * last + own)

    def _norm(self, norm, whole, size, off, rate) -> tuple[Tensor, Tensor]:
        """Return the bound behind a layer norm and the largest size of its output."""
        top, shift = norm.weight.detach().abs().max(), norm.bias.detach().norm()
        whole, size = whole + off, size + off
        part = 2 * gamma(self.width + 10) * whole**2 / self.width * rate**2
        part = torch.where(part < 0.25, part, float("inf"))
        mean = gamma(self.width + 2) * whole
        own = (1 + part) * (mean + (part + 4 * U) * size + 8 * U * whole)
        return top * rate * (off + own) + 4 * U * shift, top * self.width**0.5 + shift


def log_psi(c: float, fixed: int, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the largest value of log((L - Q) (L + 1)^c) for low <= L <= high.

    Its derivative 1 / (L - Q) + c / (L + 1) is positive for c >= -1; else it has one zero, where
    the function is largest.

    >>> least, most = log_psi(-2.0, 0, torch.tensor([1.0]), torch.tensor([float("inf")]))
    >>> least, torch.exp(most)  # largest at L = 1: 1 / 4
    (tensor([-inf]), tensor([0.2500]))
    """

    def value(length: Tensor) -> Tensor:
        end = 0.0 if c == -1 else float("-inf") if c < -1 else float("inf")
        found = torch.log(length - fixed) + c * torch.log(length + 1)
        return torch.where(torch.isinf(length), end, found)

    ends = torch.stack([value(low), value(high)])
    most = ends.amax(0)
    if c < -1:
        peak = (c * fixed - 1) / (1 + c)
        inside = (low < peak) & (peak < high)
        most = torch.where(inside, value(torch.full_like(low, peak)), most)
    return ends.amin(0) - SLACK, most + SLACK
