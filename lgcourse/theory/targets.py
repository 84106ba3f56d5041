"""Which operators does a target have? Named targets, and adapters that read the user's own objects.

A target is a family of operators A(i, j, n) in R^{p x d}: y_i = sum_{j <= i} A(i, j, n) x_j, on
sequences of length n. This file says what the operators are; ``linear.py`` counts them and
``pola.py`` learns them. It does not import torch.
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from einops import rearrange
from jaxtyping import Float, Shaped

from lgcourse.errors import InputError
from lgcourse.registry import Registry

Array = np.ndarray


def checked_scale(scale: Any) -> int:
    """Return a scale that is a whole number of at least 1; refuse anything else."""
    if isinstance(scale, bool) or not isinstance(scale, (int, np.integer)) or scale < 1:
        raise InputError(f"scale must be a whole number of at least 1, got {scale!r}")
    return int(scale)


@dataclass(eq=False)
class Target:
    """A family of operators A(i, j, n) in R^{p x d}; the sequence of scale n has length n.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        name: what tables and figures call it.
        function: (i ``Int["k"]``, j ``Int["k"]``, n) -> one operator per pair, ``[k p d]``; for
            1 x 1 operators also ``[k]``.
        shape: (p, d), the shape of one operator.
        scale_free: whether the operators ignore n. Then scale n only adds row n - 1 to scale n - 1.
        tolerance: what counts as equal (see `lgcourse.theory.linear.lrc`); None: by type of number.
        summary: one line for lists.
        largest: the largest scale that the values support, or None.

    >>> target = get("position-weighted")
    >>> target.dense(3)[:, :, 0, 0]
    array([[1., 0., 0.],
           [0., 2., 0.],
           [0., 0., 3.]])
    """

    name: str
    function: Callable[..., Any]
    shape: tuple[int, int] = (1, 1)
    scale_free: bool = True
    tolerance: float | None = None
    summary: str = ""
    largest: int | None = None

    def operators(self, i: Array, j: Array, n: int) -> Shaped[Array, "k p d"]:
        """Return A(i, j, n) for arrays of pairs, as whole numbers, fractions or floats.

        Args:
            i: query positions, ``Int["k"]``.
            j: key positions, ``Int["k"]``, j <= i < n.
            n: the scale.

        Returns:
            The operators, ``[k p d]``: int64, or object (int and Fraction), or float.

        Raises:
            InputError: the target is not defined there, or a value is not a finite real number.
        """
        self.check_scale(max(n, int(np.max(i, initial=0)) + 1))
        return numbers(self.function(i, j, n)).reshape(len(i), *self.shape)

    def check_scale(self, scale: int) -> int:
        """Return a scale that this target is defined for; refuse any other."""
        if self.largest is not None and checked_scale(scale) > self.largest:
            raise InputError(
                f"target '{self.name}' is defined up to scale {self.largest}, got {scale}; "
                f"ask for at most {self.largest}"
            )
        return checked_scale(scale)

    def blocks(self, scale: int) -> Iterator[tuple[int, Shaped[Array, "k f"]]]:
        """Yield, for m = 1..scale, the operators that scale m may add, in rows of f = p d."""
        for m in range(1, self.check_scale(scale) + 1):
            if self.scale_free:
                i, j = np.full(m, m - 1), np.arange(m)
            else:
                i, j = np.tril_indices(m)
            yield m, rearrange(self.operators(i, j, m), "k p d -> k (p d)")

    def dense(self, n: int) -> Float[Array, "n n p d"]:
        """Return all operators of one scale as float64; those with j > i are zero."""
        i, j = np.tril_indices(checked_scale(n))
        square = np.zeros((n, n, *self.shape))
        square[i, j] = self.operators(i, j, n)
        return square


def numbers(values: Any) -> Array:
    """Return values as an array of int64, of object (int and Fraction) or of float.

    What is exact stays exact.

    Args:
        values: a number, a nested list, a numpy array or a torch tensor.

    Raises:
        InputError: an entry is not a real number, or not finite.

    >>> numbers([True, 2]).dtype, numbers([Fraction(1, 2), 1]).dtype, numbers([0.5, 1]).dtype
    (dtype('int64'), dtype('O'), dtype('float64'))
    """
    if hasattr(values, "detach"):  # a torch tensor; numpy has no bfloat16
        values = values.detach().cpu()
        values = (values.float() if values.is_floating_point() else values).numpy()
    # Lists go through object: numpy would turn whole numbers beyond int64 into rounded floats.
    array = values if isinstance(values, (Array, np.generic)) else np.array(values, dtype=object)
    array = np.asarray(array)
    if array.dtype == object or array.dtype == np.uint64:
        return _from_objects(array.astype(object))
    if array.dtype.kind in "biu":
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise InputError(f"operators must be real numbers, got an array of {array.dtype}")
    array = array.astype(np.float32 if array.dtype.itemsize < 8 else np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"operators must be finite numbers, got {array[~np.isfinite(array)][0]}")
    return array


def _from_objects(array: Array) -> Array:
    """Turn an object array into the narrowest of int64, object of exact numbers, and float."""
    types = set(map(type, array.ravel().tolist()))
    whole = tuple(t for t in types if issubclass(t, (int, np.integer, np.bool_)))
    exact = tuple(t for t in types if issubclass(t, Fraction))
    real = tuple(t for t in types if issubclass(t, (float, np.floating)))
    strange = types.difference(whole, exact, real)
    if strange:
        kind = min(t.__name__ for t in strange)
        raise InputError(
            f"an operator must be a number, a Fraction or a p x d array of such, got {kind}"
        )
    if real:
        return numbers(array.astype(np.float64))
    if whole and whole != (int,):
        flat = [int(v) if isinstance(v, whole) else v for v in array.ravel()]
        array = np.array(flat, dtype=object).reshape(array.shape)
    if exact:
        return array
    try:
        return array.astype(np.int64)
    except OverflowError:
        return array


def as_target(thing: Any) -> Target:
    """Read any description of a target.

    Args:
        thing: one of

            - a `Target`, or its name, or ``"module:attribute"`` (see `resolve`);
            - an array, tensor or nested list ``[n n]`` or ``[n n p d]``, zero for j > i; its prefix
              of size m is scale m;
            - a function (i, j, n) -> operator, or (i, j) -> operator if it ignores n. An operator
              is a number, a Fraction or a p x d array. The function is called with integer arrays
              ``[k]`` and may answer with ``[k]`` or ``[k p d]``; if it cannot, or if spot checks
              against single pairs differ, it is called pair by pair. Its attribute
              ``vectorised = True`` or ``False`` decides this, ``scale_free = True`` says that n is
              ignored (found without it if the body never reads n);
            - a linear map x ``[l d]`` -> y ``[l p]``: a ``torch.nn.Module`` or a function of one
              argument (see `sequence_map`);
            - a fitted POLA, or anything with ``coefficients(scale)``.

    Returns:
        A `Target`.

    Raises:
        InputError: none of these, or an array with entries above the diagonal.

    >>> as_target([[1, 0], [5, 1]]).dense(2)[1, 0]
    array([[5.]])
    >>> as_target(lambda i, j: Fraction(1, 1 + i - j)).scale_free
    True
    """
    if isinstance(thing, Target):
        return thing
    if isinstance(thing, str):
        return resolve(thing)
    if callable(getattr(thing, "coefficients", None)):
        return _from_coefficients(thing)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.nn.Module):
        return sequence_map(thing)
    if isinstance(thing, (Array, list, tuple)) or hasattr(thing, "detach"):
        return _from_array(thing)
    if inspect.isclass(thing):
        raise InputError(f"a target is an object, got the class {_name(thing)}; give an instance")
    if callable(thing):
        return sequence_map(thing) if _arity(thing)[0] == 1 else _from_function(thing)
    raise InputError(
        f"a target is a name, an array, a function (i, j, n) or a linear map, got "
        f"{type(thing).__name__}; known names: {', '.join(names())}"
    )


def _from_array(thing: Any) -> Target:
    array = numbers(thing)
    if array.ndim == 2:
        array = array[:, :, None, None]
    if array.ndim != 4 or array.shape[0] != array.shape[1] or 0 in array.shape:
        raise InputError(
            f"an array of operators has shape [n n] or [n n p d], got {list(np.shape(thing))}"
        )
    i, j = np.nonzero((array != 0).any(axis=(2, 3)))
    if (j > i).any():
        where = int(np.argmax(j > i))
        value = array[i[where], j[where]].squeeze().tolist()
        raise InputError(
            f"the operator at (i={i[where]}, j={j[where]}) is {value}; a causal target is zero "
            "for j > i: give the lower triangle"
        )
    size = array.shape[0]
    shape = (array.shape[2], array.shape[3])
    return Target("array", lambda i, j, n: array[i, j], shape, largest=size)


def _from_coefficients(model: Any) -> Target:
    """Read the operators of a model that tells them, such as a fitted POLA."""
    shape = tuple(numbers(model.coefficients(1)).shape[2:])
    return Target(
        type(model).__name__,
        lambda i, j, n: numbers(model.coefficients(n))[i, j],
        (shape[0], shape[1]),
        scale_free=False,
    )


# --- functions (i, j, n) -> operator --------------------------------------------------------------


def _arity(function: Any) -> tuple[int, bool]:
    """Return the number of required positional arguments and whether the third one is the scale."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InputError(
            f"cannot see the arguments of {function!r}; wrap it: lambda i, j, n: ..."
        ) from None
    positional = [p for p in parameters if p.kind < inspect.Parameter.VAR_POSITIONAL]
    if any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 3, True
    required = sum(p.default is inspect.Parameter.empty for p in positional)
    if not 1 <= required <= 3:
        raise InputError(
            f"a target function takes (i, j, n) or (i, j), a linear map takes x; "
            f"{_name(function)} requires {required} arguments"
        )
    third = positional[2].name if len(positional) > 2 else ""
    return required, required == 3 or (required == 2 and third in ("n", "m", "scale"))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _never_reads_scale(function: Any) -> bool:
    """Prove from its bytecode that a Python function (i, j, n) never reads n; False if unsure.

    Without this, a target that ignores n would cost n^3 instead of n^2 evaluations.
    """
    code = getattr(function, "__code__", None)
    place = 2 + (getattr(function, "__self__", None) is not None)
    if code is None or hasattr(function, "__wrapped__") or code.co_argcount <= place:
        return False
    name = code.co_varnames[place]
    sees_all = {"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"}
    if sees_all.intersection(code.co_names):
        return False
    read = [instruction.argval for instruction in dis.get_instructions(code)]
    return not any(name == value or (isinstance(value, tuple) and name in value) for value in read)


class _PairFunction:
    """A user's function (i, j, n) -> operator, called with whole arrays where that is safe."""

    def __init__(self, function: Any, takes_scale: bool):
        self.function, self.takes_scale = function, takes_scale
        self.declared: bool | None = getattr(function, "vectorised", None)
        self.whole = self.declared is not False
        self.random = np.random.default_rng(0)
        first = self.one(0, 0, 1)
        if first.ndim not in (0, 2):
            raise InputError(
                f"an operator is a number or a p x d array; {_name(function)}(0, 0, 1) has shape "
                f"{list(first.shape)}"
            )
        self.scalar = first.ndim == 0
        self.shape: tuple[int, int] = (1, 1) if self.scalar else (first.shape[0], first.shape[1])
        self.whole = self.whole and self.all_at_once(*np.tril_indices(3), 3) is not None

    def call(self, i: Any, j: Any, n: int) -> Any:
        """Call the user's function, for one pair or for arrays of pairs."""
        return self.function(i, j, n) if self.takes_scale else self.function(i, j)

    def one(self, i: Any, j: Any, n: int) -> Array:
        """Return the operator of one pair."""
        try:
            return numbers(self.call(int(i), int(j), n))
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the target {_name(self.function)} failed at (i={i}, j={j}, n={n}): "
                f"{type(error).__name__}: {error}"
            ) from error

    def __call__(self, i: Array, j: Array, n: int) -> Array:
        if self.whole:
            values = self.all_at_once(i, j, n)
            if values is not None:
                return values
            self.whole = False
        return self.pair_by_pair(i.tolist(), j.tolist(), n)

    def pair_by_pair(self, i: list[int], j: list[int], n: int) -> Array:
        """Return all values from one call per pair."""
        values: list[Any] = []
        try:
            values.extend(self.call(*pair, n) for pair in zip(i, j, strict=True))
        except Exception:
            k = len(values)
            self.one(i[k], j[k], n)  # says where it failed
            raise
        if hasattr(values[0], "detach"):
            values = [numbers(value).tolist() for value in values]
        together = [] if self.scalar else list(self.shape)
        try:
            array = numbers(values)
            if list(array.shape[1:]) == together:
                return array
        except ValueError:  # of numpy, if the shapes differ; or an InputError, found again below
            pass
        for pair in zip(i, j, strict=True):
            if (shape := list(self.one(*pair, n).shape)) != together:
                raise InputError(
                    f"operators must have one shape: {together} at (0, 0), {shape} at "
                    f"(i={pair[0]}, j={pair[1]}, n={n})"
                )
        raise InputError(f"the values of {_name(self.function)} at n={n} are not operators")

    def all_at_once(self, i: Array, j: Array, n: int) -> Array | None:
        """Return all values from one call, or None if the function does not do arrays."""
        expected = (len(i),) if self.scalar else (len(i), *self.shape)
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(numbers(self.call(i, j, n)))
        except Exception as error:
            if self.declared:
                raise InputError(
                    f"{_name(self.function)} says vectorised = True but failed on arrays: {error}"
                ) from error
            return None
        if values.shape == expected[1:]:  # it ignores i and j
            values = np.broadcast_to(values, expected)
        if values.shape != expected:
            if self.declared:
                raise InputError(
                    f"{_name(self.function)} says vectorised = True: expected shape "
                    f"{list(expected)}, got {list(values.shape)}"
                )
            return None
        return values if self.declared or self.agrees(values, i, j, n) else None

    def agrees(self, values: Array, i: Array, j: Array, n: int) -> bool:
        """Spot-check against single calls: the ends, the middle and random pairs.

        int64 arrays overflow silently, usually there first, and Fraction ** array gives floats.
        """
        k = len(i)
        for spot in {0, k - 1, k // 2, *self.random.integers(0, k, 6).tolist()}:
            alone = self.one(i[spot], j[spot], n)
            if alone.dtype.kind == "f":
                # numpy and the math module may differ in the last bit
                same = np.allclose(values[spot].astype(float), alone.astype(float), 1e-6, 0)
            else:
                same = values.dtype.kind != "f" and np.array_equal(values[spot], alone)
            if not same:
                return False
        return True


def _from_function(function: Any) -> Target:
    required, takes_scale = _arity(function)
    pairs = _PairFunction(function, takes_scale)
    free = getattr(function, "scale_free", None)
    if free is None:
        plain = function if inspect.isroutine(function) else function.__call__
        free = not takes_scale or _never_reads_scale(plain)
    return Target(
        _name(function), pairs, pairs.shape, bool(free), getattr(function, "tolerance", None)
    )


# --- black-box linear maps x [l d] -> y [l p] -----------------------------------------------------


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
    lgcourse.theory.targets.NotLinearError: '<lambda>' is not linear: f(2 x) is [[4.]], not
    2 f(x) = [[2.]], for x = [[1.]]
    """
    d_in = _width_in(function) if d_in is None else d_in
    call, rounding = _caller(function, d_in)
    return SequenceTarget(call, d_in, rounding if tolerance is None else tolerance, _name(function))


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
        f"the map {_name(function)} failed on an input of shape [2, {d_in}] (length, width d): "
        f"{failures[0]}; if d is not {d_in}, say sequence_map(map, d_in=...)"
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


# --- named targets --------------------------------------------------------------------------------
# Floats come from tables, so equal operators are equal bit for bit and tolerance 0 is right.

_BAND = np.array([1.0, -0.5, 0.0, 2.0, 0.0])
_DECAY = 0.8 ** np.arange(3000)  # 0.8^2999 = 2e-291: no power loses digits to underflow yet
_FRESH = np.array([[[1, 2], [0, 1]], [[0, 1], [1, 1]], [[2, 0], [1, -1]], [[1, -1], [1, 0]]])
_ANGLE = np.arange(20_000)
_TURN = np.stack([np.cos(_ANGLE), -np.sin(_ANGLE), np.sin(_ANGLE), np.cos(_ANGLE)], axis=1)


def _fresh_matrices(i: Array, j: Array, n: int) -> Array:
    return np.where((i - j < 4)[:, None, None], _FRESH[np.minimum(i - j, 3)], 0)


def _random_dense(i: Array, j: Array, n: int) -> Array:
    """Hash each pair to a number in [-1, 1) (splitmix64), so that no table is stored."""
    z = (i * (i + 1) // 2 + j + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.int64) / 2.0**63


registry = Registry("target", {})
for _target in (
    Target(
        "band",
        lambda i, j, n: _BAND[np.minimum(i - j, 4)],
        tolerance=0.0,
        summary="distances 0, 1, 3 carry 1, -0.5, 2: constant LRC",
    ),
    Target(
        "decay",
        lambda i, j, n: _DECAY[i - j],
        tolerance=0.0,
        summary="0.8^(i-j) at every distance: a new operator at each scale, of rank 1",
        largest=3000,
    ),
    Target(
        "position-weighted",
        lambda i, j, n: np.where(i == j, i + 1, 0),
        summary="y_i = (i+1) x_i: operators grow, rank stays 1",
    ),
    Target(
        "half",
        lambda i, j, n: np.where(j == i // 2, 1, 0),
        summary="y_i = x_(i//2): one operator at ever new distances",
    ),
    Target(
        "fresh-matrices",
        _fresh_matrices,
        (2, 2),
        summary="distance k < 4 carries one of four independent 2 x 2 operators: rank min(n, 4)",
    ),
    Target(
        "turning",
        lambda i, j, n: _TURN[i - j],
        (2, 2),
        tolerance=0.0,
        summary="rotation by i - j radians: operators grow, rank stays 2",
        largest=20_000,
    ),
    Target(
        "random-dense",
        _random_dense,
        tolerance=0.0,
        summary="a new random number for every pair: n (n + 1) / 2 operators, of rank 1",
    ),
):
    registry.register(_target.name, _target)
names = registry.names


def get(name: str) -> Target:
    """Return a named target.

    Args:
        name: one of ``names()``.

    Raises:
        InputError: the name is unknown.

    >>> get("half").summary
    'y_i = x_(i//2): one operator at ever new distances'
    """
    return registry.load(name)


def resolve(text: str) -> Target:
    """Return the target that a text names: a name, or ``module:attribute`` for your own.

    Args:
        text: one of ``names()``, or the module (found as Python finds it, and in the working
            folder) and the attribute that holds a function (i, j, n), an array or a linear map.

    Returns:
        A `Target`.

    Raises:
        InputError: the name, the module or the attribute does not exist, or it is no target.

    >>> resolve("band").name
    'band'
    >>> resolve("math:sinn")
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: module 'math' has no 'sinn'; did you mean 'sin'?
    """
    if ":" not in text:
        return get(text)
    path, _, attribute = text.partition(":")
    thing = _import(path)
    for part in attribute.split("."):
        if not hasattr(thing, part):
            near = get_close_matches(part, dir(thing), n=1)
            hint = f"did you mean '{near[0]}'?" if near else "write module:function"
            raise InputError(f"module '{path}' has no '{attribute}'; {hint}")
        thing = getattr(thing, part)
    return as_target(thing)


def _import(path: str) -> Any:
    here = os.getcwd()
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return import_module(path)
    except Exception as error:  # the user's module may fail in any way
        hint = f"; write '{path[:-3]}' without .py" if path.endswith(".py") else ""
        raise InputError(
            f"module '{path}' could not be imported: {type(error).__name__}: {error}{hint}"
        ) from error
    finally:
        if added:
            sys.path.remove(here)
