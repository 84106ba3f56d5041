"""Which targets have names? Worked examples, and the user's own as ``module:attribute``."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from lgcourse.errors import InputError
from lgcourse.registry import Registry
from lgcourse.theory.adapters import as_target
from lgcourse.theory.target import Array, Target

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
