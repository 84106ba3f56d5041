"""How do we read the user's own target? Arrays, functions (i, j, n) -> operator, linear maps."""

from __future__ import annotations

import dis
import inspect
import sys
from typing import Any

import numpy as np

from lgcourse.errors import InputError
from lgcourse.theory.blackbox import sequence_map
from lgcourse.theory.target import Array, Target, name_of, numbers


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

    >>> from fractions import Fraction
    >>> as_target([[1, 0], [5, 1]]).dense(2)[1, 0]
    array([[5.]])
    >>> as_target(lambda i, j: Fraction(1, 1 + i - j)).scale_free
    True
    """
    from lgcourse.theory import targets  # which itself reads the user's own by this function

    if isinstance(thing, Target):
        return thing
    if isinstance(thing, str):
        return targets.resolve(thing)
    if callable(getattr(thing, "coefficients", None)):
        return _from_coefficients(thing)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.nn.Module):
        return sequence_map(thing)
    if isinstance(thing, (Array, list, tuple)) or hasattr(thing, "detach"):
        return _from_array(thing)
    if inspect.isclass(thing):
        raise InputError(f"a target is an object, got the class {name_of(thing)}; give an instance")
    if callable(thing):
        return sequence_map(thing) if _arity(thing)[0] == 1 else _from_function(thing)
    raise InputError(
        f"a target is a name, an array, a function (i, j, n) or a linear map, got "
        f"{type(thing).__name__}; known names: {', '.join(targets.names())}"
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
            f"{name_of(function)} requires {required} arguments"
        )
    third = positional[2].name if len(positional) > 2 else ""
    return required, required == 3 or (required == 2 and third in ("n", "m", "scale"))


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
                f"an operator is a number or a p x d array; {name_of(function)}(0, 0, 1) has shape "
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
                f"the target {name_of(self.function)} failed at (i={i}, j={j}, n={n}): "
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
        raise InputError(f"the values of {name_of(self.function)} at n={n} are not operators")

    def all_at_once(self, i: Array, j: Array, n: int) -> Array | None:
        """Return all values from one call, or None if the function does not do arrays."""
        expected = (len(i),) if self.scalar else (len(i), *self.shape)
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(numbers(self.call(i, j, n)))
        except Exception as error:
            if self.declared:
                raise InputError(
                    f"{name_of(self.function)} says vectorised = True but failed on arrays: {error}"
                ) from error
            return None
        if values.shape == expected[1:]:  # it ignores i and j
            values = np.broadcast_to(values, expected)
        if values.shape != expected:
            if self.declared:
                raise InputError(
                    f"{name_of(self.function)} says vectorised = True: expected shape "
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
        name_of(function), pairs, pairs.shape, bool(free), getattr(function, "tolerance", None)
    )
