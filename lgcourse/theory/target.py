"""What is a linear target? A family of operators: y_i = sum_{j <= i} A(i, j, n) x_j.

A(i, j, n) is a p x d matrix; sequences of scale n have length n. ``linear.py`` counts the
operators, ``pola.py`` learns them. This file does not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from einops import rearrange
from jaxtyping import Float, Shaped

from lgcourse.errors import InputError

Array = np.ndarray
LARGEST = 20_000


def checked_scale(scale: Any) -> int:
    """Return a scale that is a whole number of at least 1; refuse anything else."""
    if isinstance(scale, bool) or not isinstance(scale, (int, np.integer)) or scale < 1:
        raise InputError(f"scale must be a whole number of at least 1, got {scale!r}")
    if scale > LARGEST:
        raise InputError(
            f"scale must be at most {LARGEST:,} (some {LARGEST**2 // 2:,} operators are looked at)"
        )
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

    >>> from lgcourse.theory.targets import get
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


def name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
