"""Which operators does a linear map have that we can only call? Unit vectors read them off.

A map that is not linear, or not causal, is refused with the inputs and outputs that show it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from einops import rearrange
from jaxtyping import Float, Shaped

from lgcourse.errors import InputError
from lgcourse.theory.target import Array, Target, checked_scale, name_of


class NotLinearError(InputError):
    """A map that was given as a target is not linear; ``inputs`` and ``outputs`` show it."""

    def __init__(self, message: str, inputs: tuple[Array, ...], outputs: tuple[Array, ...]):
        super().__init__(message)
        self.inputs, self.outputs = inputs, outputs


class NotCausalError(NotLinearError):
    """A map that was given as a target looks ahead; ``inputs`` and ``outputs`` show it."""


def _show(x: Array) -> str:
    return " ".join(np.array2string(x + 0.0, precision=6, threshold=12, separator=", ").split())


class SequenceTarget(Target):
    """The operators of a linear map that can only be called; see `sequence_map`."""

    def __init__(self, call: Callable[[Array], Array], d_in: int, tolerance: float, name: str):
        self.call, self.d_in, self.slack = call, d_in, 10 * tolerance
        self._read: tuple[int, Array] | None = None
        shape = call(np.zeros((1, d_in))).shape
        super().__init__(
            name, self._operators_at, (shape[1], d_in), scale_free=False, tolerance=tolerance
        )

    def _operators_at(self, i: Array, j: Array, n: int) -> Array:
        return self.dense(n)[i, j]

    def dense(self, n: int) -> Float[Array, "n n p d"]:
        """Read the operators at scale n by unit vectors, and check that they explain the map."""
        if self._read is None or self._read[0] != n:
            self._read = (n, self._checked(checked_scale(n)))
        return self._read[1]

    def blocks(self, scale: int) -> Iterator[tuple[int, Shaped[Array, "k f"]]]:
        """Yield the operators that scale m may add, for m = 1..scale.

        A map whose first m outputs depend on the first m inputs alone is scale-free and is read
        once. On a random x, equal outputs mean equal operators with probability 1, so that is
        checked by one call per scale.
        """
        square = self.dense(scale)
        once = self._prefixes_agree(square)
        for m in range(1, scale + 1):
            if once:
                yield m, rearrange(square[m - 1, :m], "j p d -> j (p d)")
            else:
                i, j = np.tril_indices(m)
                yield m, rearrange(self.dense(m)[i, j], "k p d -> k (p d)")

    def _prefixes_agree(self, square: Array) -> bool:
        scale = len(square)
        for x in self._probes(scale):
            y, size = _apply(square, x), _apply(abs(square), abs(x)).max(initial=0)
            for m in range(1, scale):
                if abs(self.call(x[:m]) - y[:m]).max() > self.slack * size:
                    return False
        return True

    def _probes(self, n: int) -> list[Array]:
        """Inputs of several sizes; a map that is linear on all of them is taken to be linear."""
        random = np.random.default_rng(0)
        whole = random.choice([-2.0, -1.0, 1.0, 2.0, 3.0], size=(n, self.d_in))
        return [whole] + [size * random.normal(size=(n, self.d_in)) for size in (1.0, 1e-3, 1e3)]

    def _checked(self, n: int) -> Array:
        units = rearrange(np.eye(n * self.d_in), "u (l d) -> u l d", d=self.d_in)
        columns = np.stack([self.call(unit) for unit in units])  # u l p
        square = rearrange(columns, "(j d) i p -> i j p d", d=self.d_in)
        self._check_repeatable(units[0], columns[0])
        self._check_causal(square, units, columns)
        for x in self._probes(n):
            size = _apply(abs(square), abs(x)).max(initial=0)
            if abs(self.call(x) - _apply(square, x)).max() > self.slack * size:
                raise self._witness(x, units, columns)
        return square * np.tri(n)[:, :, None, None]

    def _check_repeatable(self, x: Array, y: Array) -> None:
        again = self.call(x)
        if abs(again - y).max() > self.slack * abs(y).max():
            raise NotLinearError(
                f"'{self.name}' is not a function: f(x) is {_show(y)}, then {_show(again)}, for "
                f"the same x = {_show(x)}; switch its randomness off, for a module with .eval()",
                (x, x),
                (y, again),
            )

    def _check_causal(self, square: Array, units: Array, columns: Array) -> None:
        n = len(square)
        ahead = abs(square) > self.slack * abs(square).max()
        ahead &= ~np.tri(n, dtype=bool)[:, :, None, None]
        if not ahead.any():
            return
        zero = np.zeros_like(units[0])
        base = self.call(zero)
        for i, j, p, d in np.argwhere(ahead):
            unit, value = units[j * self.d_in + d], columns[j * self.d_in + d][i, p]
            # a constant is no look ahead: the linearity check names it
            if abs(base[i, p] - value) <= self.slack * abs(value):
                continue
            raise NotCausalError(
                f"'{self.name}' is not causal: x_{j} = {_show(unit[j])} alone changes y_{i} from "
                f"{base[i, p]:.6g} to {value:.6g}; a target reads j <= i only",
                (zero, unit),
                (base, self.call(unit)),
            )

    def _witness(self, x: Array, units: Array, columns: Array) -> NotLinearError:
        """Find two inputs that show it: add x up unit by unit until the sum of outputs is wrong."""
        total, output = np.zeros_like(x), np.zeros_like(columns[0])
        for unit, column, factor in zip(units, columns, x.ravel().tolist(), strict=True):
            for c in (2.0, -1.0, factor):
                y = self.call(c * unit)
                if abs(y - c * column).max() > self.slack * abs(c * column).max():
                    return self._refusal(
                        f"f({c:.6g} x) is {_show(y)}, not {c:.6g} f(x) = {_show(c * column)}",
                        (unit, c * unit),
                        (column, y),
                    )
            step, size = factor * unit, abs(output).max() + abs(factor * column).max()
            both, sides = self.call(total + step), self.call(total) + factor * column
            if abs(both - sides).max() > self.slack * size:
                return self._refusal(
                    f"f(x + z) is {_show(both)}, not f(x) + f(z) = {_show(sides)}",
                    (total, step),
                    (self.call(total), factor * column),
                )
            total, output = total + step, both
        # each step was within the slack, but not their sum
        return self._refusal(f"f(x) is {_show(self.call(x))}", (x,), (self.call(x),))

    def _refusal(self, what: str, inputs: tuple, outputs: tuple) -> NotLinearError:
        base = self.call(np.zeros_like(inputs[0]))
        hint = f"; f(0) is {_show(base)}, not 0: drop the bias" if base.any() else ""
        shown = f"x = {_show(inputs[0])}" + (f", z = {_show(inputs[1])}" if " z)" in what else "")
        return NotLinearError(
            f"'{self.name}' is not linear: {what}, for {shown}{hint}", inputs, outputs
        )


def _apply(square: Array, x: Array) -> Array:
    """y_i = sum_j A(i, j) x_j."""
    return np.tensordot(square, x, axes=([1, 3], [0, 1]))


def sequence_map(
    function: Any, d_in: int | None = None, tolerance: float | None = None
) -> SequenceTarget:
    """Make a target from a linear, causal map that can only be called; its operators are read off.

    A(i, j, n) = y_i for the unit vectors at x_j, on inputs of length n.

    Args:
        function: x ``[l d]`` -> y ``[l p]``, or ``[l]`` for p = 1; a ``torch.nn.Module`` (also one
            that wants ``[b l d]``; ``[l d]`` is tried first), or a function of numpy arrays or of
            torch tensors.
        d_in: width d of x; by default the module's ``d_in`` or ``in_features``, or 1.
        tolerance: rounding error of the map, relative to its largest output; 1e-5 for modules in
            float32, otherwise 1e-9.

    Returns:
        A `Target`. A map that reads all scales alike is found to be scale-free and read once.

    Raises:
        InputError: (when it is read) the map is not linear or not causal, with the inputs and
            outputs that show it; ``inputs`` and ``outputs`` of the error hold them as arrays. It is
            probed by unit vectors and random inputs: this cannot prove that a map is linear.

    >>> target = sequence_map(lambda x: np.cumsum(x, axis=0))
    >>> target.dense(2)[:, :, 0, 0]
    array([[1., 0.],
           [1., 1.]])
    >>> sequence_map(lambda x: x**2).dense(1)
    Traceback (most recent call last):
        ...
    lgcourse.theory.blackbox.NotLinearError: '<lambda>' is not linear: f(2 x) is [[4.]], not
    2 f(x) = [[2.]], for x = [[1.]]
    """
    d_in = _width_in(function) if d_in is None else d_in
    call, rounding = _caller(function, d_in)
    slack = rounding if tolerance is None else tolerance
    return SequenceTarget(call, d_in, slack, name_of(function))


def _width_in(function: Any) -> int:
    modules = function.modules() if hasattr(function, "modules") else [function]
    for module in modules:
        for name in ("d_in", "in_features"):
            if isinstance(getattr(module, name, None), int):
                return getattr(module, name)
    return 1


def _caller(function: Any, d_in: int) -> tuple[Callable[[Array], Array], float]:
    """Return a call numpy [l d] -> numpy [l p] that suits the map, and its rounding error."""
    torch = sys.modules.get("torch")
    ways, rounding = [], 1e-9
    if torch is None or not isinstance(function, torch.nn.Module):
        ways.append(function)
    if torch is not None:
        like = next(iter(getattr(function, "parameters", lambda: [])()), torch.zeros(0).double())
        rounding = 1e-9 if like.dtype == torch.float64 else 1e-5

        def with_tensors(x: Array):
            with torch.no_grad():
                return function(torch.as_tensor(x).to(like)).double().cpu().numpy()

        ways += [with_tensors, lambda x: with_tensors(x[None])[0]]
    failures = []
    for way in ways:
        try:
            return _with_checked_output(way, _shape_of(way, d_in)), rounding
        except Exception as error:  # the next way may suit the map
            failures.append(error)
    raise InputError(
        f"the map {name_of(function)} failed on an input of shape [2, {d_in}] (length, width d): "
        f"{failures[0]}; if its width is another, give "
        "lgcourse.theory.sequence_map(map, d_in=...) instead"
    ) from failures[0]


def _shape_of(way: Callable, d_in: int) -> int:
    """Return p after a trial call; length 2 tells the axis of positions from a batch of one."""
    shape = np.asarray(way(np.zeros((2, d_in))), dtype=np.float64).shape
    if len(shape) not in (1, 2) or shape[0] != 2:
        raise InputError(f"a map x [l d] -> y [l p] gave shape {list(shape)} for l = 2")
    return 1 if len(shape) == 1 else shape[1]


def _with_checked_output(way: Callable, width: int) -> Callable[[Array], Array]:
    def call(x: Array) -> Array:
        y = np.array(way(x.copy()), dtype=np.float64)
        if y.size != len(x) * width or len(y) != len(x):
            raise InputError(
                f"a map x [l d] -> y [l p] gave shape {list(y.shape)} for l = {len(x)}, p = {width}"
            )
        if not np.isfinite(y).all():
            raise InputError(f"the map gave {y[~np.isfinite(y)][0]} for x = {_show(x)}")
        return y.reshape(len(x), width)

    return call
