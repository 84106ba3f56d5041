"""What can a learner do that mixes by position only? POLA, its exact fit, its best relation.

Position-Only Linear Attention, with operators W_k in R^{p x d}:
    POLA       y_i = sum_{j <= i} W[phi(i, j, n)] x_j                 phi gives each pair one id
    CodedPOLA  y_i = sum_{j <= i} (sum_k c_k(i, j, n) W_k) x_j        c gives each pair r numbers
The first is the second with one-hot codes. W is what is learned; phi or c is what the position
embedding contributes: it routes positions to operators that were learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lgcourse.errors import InputError, whole_number
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.theory.adapters import as_target
from lgcourse.theory.linear import UNKNOWN, ZERO, scan
from lgcourse.theory.target import Array, Target, checked_scale

CUTOFF = 1e-12  # singular values of the codes below this share of the largest count as zero


class Fit(NamedTuple):
    """A fitted model and what its fit leaves over.

    Attributes:
        pola: the model, with its weights set.
        residual: the largest absolute difference between its coefficients and the target's
            operators on the training scales; 0 (up to rounding) if the fit is exact.
    """

    pola: CodedPOLA
    residual: float


class CodedPOLA(nn.Module):
    """Position-Only Linear Attention over a real-valued code c(i, j, n) in R^r.

    y_i = sum_{j <= i} (sum_k c_k(i, j, n) W_k) x_j

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        code: (query ``Int["q"]``, key ``Int["k"]``, scale) -> ``Float["q k r"]``; only pairs with
            key <= query are read. Its attribute ``size`` is r; without it a trial call tells.
        d_in: width d of the inputs.
        d_out: width p of the outputs.
        dtype: type of the weights.
        device: device of the weights.

    Attributes:
        weight: the operators W, ``[r p d]``; they start at zero.

    >>> def by_position(query, key, scale):
    ...     return ((query[:, None] == key) * (query[:, None] + 1.0))[..., None]
    >>> pola, residual = CodedPOLA(by_position, 1, 1).fit("position-weighted", range(1, 9))
    >>> pola(torch.ones(1, 3, 1), scale=3)[0, :, 0].detach()
    tensor([1., 2., 3.])
    >>> pola.error("position-weighted", [16]) < 1e-4
    True
    """

    weight: nn.Parameter

    def __init__(
        self,
        code: Callable[..., Tensor],
        d_in: int,
        d_out: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        super().__init__()
        for name, value in {"d_in": d_in, "d_out": d_out}.items():
            whole_number(name, value, 1)
        if not callable(code):
            raise InputError(f"a code or relation can be called with positions, got {code!r}")
        self.code, self.d_in, self.d_out = code, d_in, d_out
        size = getattr(code, "size", None)
        if size is None:
            start = torch.zeros(1, dtype=torch.long)
            size = code(start, start, 1).shape[-1]
        self.weight = nn.Parameter(torch.zeros(size, d_out, d_in, dtype=dtype, device=device))

    def extra_repr(self) -> str:
        """Return the sizes, for print."""
        return f"{len(self.weight)} operators {self.d_out} x {self.d_in}"

    def forward(self, x: Float[Tensor, "b l d"], scale: Scale) -> Float[Tensor, "b l p"]:
        """Mix the inputs by position: y_i = sum_{j <= i} A_hat(i, j, n) x_j.

        Args:
            x: inputs ``[b l d_in]``, of the type of the weights.
            scale: the scale n of all instances in the batch.

        Returns:
            Outputs ``[b l d_out]``.

        Raises:
            InputError: the width or the type of x does not fit the weights.
        """
        if x.ndim != 3 or x.shape[2] != self.d_in:
            raise InputError(
                f"x has shape {list(x.shape)}; expected [batch, length, d_in = {self.d_in}]"
            )
        if x.dtype != self.weight.dtype:
            raise InputError(
                f"x is {x.dtype} and the weights are {self.weight.dtype}; convert one with .to()"
            )
        return einsum(self.coefficients(scale, x.shape[1]), x, "q k p d, b k d -> b q p")

    def coefficients(self, scale: Scale, length: int | None = None) -> Float[Tensor, "l l p d"]:
        """Return the operators A_hat(i, j, n) of all pairs of one scale, zero for j > i.

        Args:
            scale: the scale n.
            length: length l of the sequences; by default the scale, which then is one whole number.

        Returns:
            Operators ``[l l p d]``; rows are queries.

        Raises:
            InputError: the scale is no whole number of at least 1, or has several sizes and no
            length.
        """
        sizes = sizes_of(scale)
        if length is None:
            if len(sizes) > 1:
                raise InputError(f"scale {scale!r} has several sizes: give the length as well")
            length = sizes[0]
        positions = torch.arange(length, device=self.weight.device)
        return torch.where(
            _causal(positions)[:, :, None, None],
            self.mix(positions, scale),
            self.weight.new_zeros(()),
        )

    def mix(self, positions: Int[Tensor, " l"], scale: Scale) -> Float[Tensor, "l l p d"]:
        """Return sum_k c_k(i, j, n) W_k for all pairs; those with j > i are not read."""
        return einsum(self._codes(positions, scale), self.weight, "q k r, r p d -> q k p d")

    def _codes(self, positions: Tensor, scale: Scale) -> Float[Tensor, "l l r"]:
        codes = self.code(positions, positions, scale).to(self.weight)
        return torch.where(_causal(positions)[:, :, None], codes, codes.new_zeros(()))

    def fit(self, target: Any, scales: Iterable[int]) -> Fit:
        """Set the weights to the minimum-norm solution of the fit on all given scales.

        The inputs are the basis vectors, so the loss is
            sum_n sum_{j <= i < n} |A_hat(i, j, n) - A(i, j, n)|^2
        and the solution is W = C^+ A, where C has the code of each pair as a row. Gradient descent
        from zero reaches the same W. If no exact fit exists, this is the least-squares one. Weights
        of ids that the scales do not show stay zero.

        Args:
            target: a name, an array, a function (i, j, n), a linear map: see
                `lgcourse.theory.adapters.as_target`.
            scales: the training scales, for instance ``range(1, 9)``.

        Returns:
            The model itself and the residual, see `Fit`.

        Raises:
            InputError: there is no scale, or the target's operators have another shape.
        """
        target, scales = self._checked(target, scales)
        solution = rearrange(
            self._minimum_norm(target, scales), "r (p d) -> r p d", p=self.d_out, d=self.d_in
        )
        with torch.no_grad():
            self.weight.copy_(torch.as_tensor(solution))
        return Fit(self, self.error(target, scales))

    def fit_gradient(
        self, target: Any, scales: Iterable[int], steps: int = 1000, lr: float | None = None
    ) -> Fit:
        """Train by gradient descent from zero on basis vectors; half the loss of `fit`.

        Args:
            target: see `fit`.
            scales: the training scales.
            steps: number of steps; each uses all scales.
            lr: learning rate; it must lie below 2 / c, where c is the largest eigenvalue of C^T C.
                The default is 1 / c.

        Returns:
            The model itself and the residual, see `Fit`.

        Raises:
            InputError: see `fit`; or the learning rate is too large and the weights overflow.
        """
        target, scales = self._checked(target, scales)
        largest = self._curvature(scales)
        lr = 1 / max(largest, 1e-300) if lr is None else lr
        batches = [(n, *self._basis_batch(target, n)) for n in scales]
        with torch.no_grad():
            self.weight.zero_()
        for _ in range(steps):
            loss = sum(((self(x, n) - y) ** 2).sum() / 2 for n, x, y in batches)
            (gradient,) = torch.autograd.grad(loss, self.weight)
            with torch.no_grad():
                self.weight.sub_(lr * gradient)
        if not self.weight.isfinite().all():
            raise InputError(f"lr = {lr:g} diverges; take less than 2 / {largest:.6g}")
        return Fit(self, self.error(target, scales))

    def error(self, target: Any, scales: Iterable[int]) -> float:
        """Return the largest coefficient error |A_hat(i, j, n) - A(i, j, n)| over the scales given.

        Args:
            target: see `fit`.
            scales: the scales to test, for instance ``range(1, 17)``.

        Raises:
            InputError: see `fit`.
        """
        target, scales = self._checked(target, scales)
        with torch.no_grad():
            made = [(n, self.coefficients(n).double().cpu().numpy()) for n in scales]
        return max(float(abs(square - target.dense(n)).max()) for n, square in made)

    def _checked(self, target: Any, scales: Iterable[int]) -> tuple[Target, list[int]]:
        if not isinstance(scales, Iterable):
            raise InputError(
                f"scales must be a list of scales, got {scales!r}; write [{scales!r}] or range(...)"
            )
        target, scales = as_target(target), [checked_scale(n) for n in scales]
        if not scales:
            raise InputError("scales must hold at least one scale, got none")
        if target.shape != (self.d_out, self.d_in):
            raise InputError(
                f"the operators of target '{target.name}' are p x d = {target.shape[0]} x "
                f"{target.shape[1]}, but the model has d_out = {self.d_out}, d_in = {self.d_in}"
            )
        return target, scales

    def _basis_batch(self, target: Target, n: int) -> tuple[Tensor, Tensor]:
        """Return all basis vectors of R^{n x d} as inputs, and the target's outputs for them."""
        x = rearrange(torch.eye(n * self.d_in), "b (l d) -> b l d", d=self.d_in).to(self.weight)
        square = torch.as_tensor(target.dense(n)).to(self.weight)
        return x, einsum(square, x, "q k p d, b k d -> b q p")

    # The two ways to solve for W; POLA has shorter ones.

    def _rows(self, scales: list[int]) -> Iterator[tuple[int, Float[Array, "t r"]]]:
        """Yield each scale with C: the codes of its pairs with j <= i, in float64."""
        for n in scales:
            positions = torch.arange(n, device=self.weight.device)
            codes = self.code(positions, positions, n)[_causal(positions)]
            yield n, codes.detach().double().cpu().numpy()

    def _minimum_norm(self, target: Target, scales: list[int]) -> Float[Array, "r f"]:
        """Solve min |W| among the minimisers of |C W - A|, one scale at a time.

        The triangular factor of [C | A] holds all that the solution needs and has r + f rows.
        """
        size, width = len(self.weight), self.d_out * self.d_in
        factor = np.zeros((0, size + width))
        for n, codes in self._rows(scales):
            block = np.hstack([codes, _lower_rows(target, n)])
            factor = _triangular(factor, block)
        return np.linalg.pinv(factor[:, :size], rcond=CUTOFF) @ factor[:, size:]

    def _curvature(self, scales: list[int]) -> float:
        """Return the largest eigenvalue of C^T C."""
        factor = np.zeros((0, len(self.weight)))
        for _, codes in self._rows(scales):
            factor = _triangular(factor, codes)
        return float(np.linalg.norm(factor, 2) ** 2)


class POLA(CodedPOLA):
    """Position-Only Linear Attention over a relation: y_i = sum_{j <= i} W[phi(i, j, n)] x_j.

    It is `CodedPOLA` with the code `OneHot`, in which a product with a code is a look-up, and C^T C
    counts how often each id occurs.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        relation: the relation phi, see `lgcourse.relations`.
        d_in: width d of the inputs.
        d_out: width p of the outputs.
        dtype: type of the weights.
        device: device of the weights.

    Attributes:
        weight: one operator per id, ``[K p d]``; they start at zero.

    >>> from lgcourse import relations
    >>> pola, residual = POLA(relations.build("rpe", positions=16), 1, 1).fit("band", range(1, 9))
    >>> residual, pola.error("band", range(1, 17))
    (0.0, 0.0)
    >>> pola.weight[:5, 0, 0].tolist()
    [1.0, -0.5, 0.0, 2.0, 0.0]
    """

    def __init__(
        self,
        relation: Any,
        d_in: int,
        d_out: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        if not callable(relation):
            raise InputError(f"a relation can be called with positions, got {relation!r}")
        super().__init__(OneHot(relation), d_in, d_out, dtype, device)
        self.relation = relation

    def mix(self, positions, scale):
        """Return W[phi(i, j, n)] for all pairs; those with j > i are not read."""
        return self.weight[_ids(self.relation, positions, positions, scale)]

    def _counted_ids(self, n: int) -> Array:
        positions = torch.arange(n, device=self.weight.device)
        ids = _ids(self.relation, positions, positions, n)[_causal(positions)]
        return ids.cpu().numpy()

    def _minimum_norm(self, target, scales):
        """Return for each id the mean of the operators of its pairs; zero for an id never seen."""
        sums = np.zeros((len(self.weight), self.d_out * self.d_in))
        counts = np.zeros(len(self.weight))
        for n in scales:
            ids = self._counted_ids(n)
            np.add.at(sums, ids, _lower_rows(target, n))
            np.add.at(counts, ids, 1)
        return sums / np.maximum(counts, 1)[:, None]

    def _curvature(self, scales):
        """Return how often the most frequent id occurs."""
        ids = np.concatenate([self._counted_ids(n) for n in scales])
        return float(np.bincount(ids).max())


class OneHot:
    """The code of a relation: c_k(i, j, n) = 1 if k = phi(i, j, n), otherwise 0.

    >>> from lgcourse import relations
    >>> code = OneHot(relations.build("rpe", positions=2))
    >>> code(torch.tensor([1]), torch.tensor([0, 1]), 2)
    tensor([[[0., 1.],
             [1., 0.]]])
    """

    def __init__(self, relation: Any):
        self.relation, self.size = relation, relation.size

    def __call__(
        self, query: Int[Tensor, " q"], key: Int[Tensor, " k"], scale: Scale
    ) -> Float[Tensor, "q k r"]:
        return F.one_hot(_ids(self.relation, query, key, scale), self.size).float()


def _causal(positions: Tensor) -> Bool[Tensor, "l l"]:
    return positions[:, None] >= positions[None, :]


def _triangular(factor: Array, block: Array) -> Array:
    """Return R of the QR decomposition of both, one above the other."""
    return np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))


def _lower_rows(target: Target, n: int) -> Float[Array, "t f"]:
    """Return the operators of all pairs with j <= i, row by row, one flat operator per line."""
    i, j = np.tril_indices(n)
    return rearrange(target.dense(n)[i, j], "t p d -> t (p d)")


def _ids(relation: Any, query: Tensor, key: Tensor, scale: Scale) -> Int[Tensor, "q k"]:
    """Return the ids of all pairs, 0 for keys after their query; refuse ids without a weight."""
    ids = torch.where(key[None, :] > query[:, None], 0, relation(query, key, scale))
    wrong = (ids < 0) | (ids >= relation.size)
    if wrong.any():
        q, k = wrong.nonzero()[0].tolist()
        raise InputError(
            f"the relation gives (i={int(query[q])}, j={int(key[k])}, n={scale}) the id "
            f"{int(ids[q, k])}; expected 0..{relation.size - 1}: its size must cover the scale"
        )
    return ids


# --- the best that a position embedding can be ----------------------------------------------------


class OperatorRelation(Relation):
    """The ideal relation of a target: id = index of the operator; see `ideal_relation_of`."""

    def __init__(self, target: Target, scale: int, tolerance: float | None):
        self.target, self.scale = target, scale
        self.table = scan(target, scale, tolerance, rank=False).table
        self.name, self.uses_scale = f"ideal for {target.name}", not target.scale_free
        self.other = len(self.table)
        self.size = self.other + 1

    def ids(self, query, key, scale):
        """Return the index of each pair's operator, or ``other`` for the zero operator."""
        rows, where = _operators_of_pairs(self.target, query[:, 0], key[0], scale)
        found = self.table.find(rows)
        if (found == UNKNOWN).any():
            q, k = (int(w[np.argmax(found == UNKNOWN)]) for w in where)
            raise InputError(
                f"the operator of '{self.target.name}' at (i={int(query[q, 0])}, "
                f"j={int(key[0, k])}, n={scale}) does not occur on scales <= {self.scale}; "
                "build the relation with a larger scale"
            )
        found[found == ZERO] = self.other
        ids = np.full((len(query), key.shape[1]), self.other)
        ids[where] = found
        return torch.as_tensor(ids, device=query.device)

    def label(self, id):
        """Return what an id means, in words."""
        return "other" if id == self.other else f"operator {id}"


class OperatorCode:
    """The ideal code of a target: coordinates of each operator in a basis; see `ideal_code_of`."""

    def __init__(self, target: Target, scale: int, tolerance: float | None):
        span = scan(target, scale, tolerance).span
        assert span is not None
        width = target.shape[0] * target.shape[1]
        self.target, self.size = target, span.rank
        self.uses_scale = not target.scale_free
        self.basis = np.array(span.basis, dtype=np.float64).reshape(-1, width)
        # largest entry 1 in each row, so that one huge operator does not hide a small one
        self._norms = abs(self.basis).max(axis=1, initial=0)
        self._inverse = np.linalg.pinv(self.basis / self._norms[:, None])

    def __call__(
        self, query: Int[Tensor, " q"], key: Int[Tensor, " k"], scale: Scale
    ) -> Float[Tensor, "q k r"]:
        rows, where = _operators_of_pairs(self.target, query, key, scale)
        codes = np.zeros((len(query), len(key), self.size))
        codes[where] = rows.astype(np.float64) @ self._inverse / self._norms
        return torch.as_tensor(codes, device=query.device)


def _operators_of_pairs(target: Target, query: Tensor, key: Tensor, scale: Scale):
    """Return the operators of the causal pairs, one per row, and where they stand in [q k]."""
    i, j = query.cpu().numpy(), key.cpu().numpy()
    where = np.nonzero(j[None, :] <= i[:, None])
    rows = target.operators(i[where[0]], j[where[1]], checked_scale(scale))
    return rearrange(rows, "k p d -> k (p d)"), where


def ideal_relation_of(target: Any, scale: int, tolerance: float | None = None) -> OperatorRelation:
    """Make the ideal relation of a target: id = index of the operator, "other" = zero operator.

    If LRC_op does not grow from N0 to N, a POLA with it that is trained on scales <= N0 is exact at
    N. If LRC_op grows, no relation does it, this one included.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        target: see `lgcourse.theory.adapters.as_target`.
        scale: the largest scale whose operators get an id.
        tolerance: what counts as equal, see `lgcourse.theory.linear.lrc`.

    Returns:
        A `Relation`; its ids are 0..LRC_op - 1 in order of appearance, and LRC_op for "other".
        Asked for a pair whose operator has no id, it raises InputError.

    >>> phi = ideal_relation_of("half", 16)
    >>> phi(torch.arange(4), torch.arange(3), scale=4)
    tensor([[0, 1, 1],
            [0, 1, 1],
            [1, 0, 1],
            [1, 0, 1]])
    """
    return OperatorRelation(as_target(target), checked_scale(scale), tolerance)


def ideal_code_of(target: Any, train_scale: int, tolerance: float | None = None) -> OperatorCode:
    """Make the ideal code of a target: coordinates in a basis of the operators of training.

    If LRC_rank does not grow from N0 to N, a CodedPOLA with it that is trained on scales <= N0 is
    exact at N. If it grows, no code does it; this one then gives the nearest operator in the span.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        target: see `lgcourse.theory.adapters.as_target`.
        train_scale: the largest training scale N0.
        tolerance: what counts as dependent, see `lgcourse.theory.linear.lrc`.

    Returns:
        A code for `CodedPOLA`, of size r = LRC_rank at N0; float64.

    >>> code = ideal_code_of("position-weighted", 8)
    >>> code(torch.tensor([15]), torch.tensor([14, 15]), 16)
    tensor([[[ 0.],
             [16.]]], dtype=torch.float64)
    """
    return OperatorCode(as_target(target), checked_scale(train_scale), tolerance)
