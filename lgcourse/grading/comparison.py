"""Does an answer equal what is expected? Type, dtype, device and shape first, values last.

Nothing broadcasts, and no method of the answer's own class is called: a type must be exactly the
expected one, so an object that claims to equal everything fails at the first step.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

NUMBERS = (bool, int, float)


class Wrong(Exception):  # noqa: N818  it is no fault of the program
    """An answer is not what was expected; the message says what differs, in words for a learner.

    `got` and `expected` are the arrays that differ; `likely` is the mistake that fits this answer.
    """

    got: Tensor | None = None
    expected: Tensor | None = None
    likely: str = ""


class Misfit(Wrong):
    """An answer is not the kind of thing that was expected; no mistake in the idea explains it."""


def compare(
    answer: Any,
    expected: Any,
    tolerance: float = 0.0,
    parts: tuple[int, ...] | None = None,
) -> None:
    """Compare an answer with what is expected.

    Args:
        answer: what the learner's code returned; any object.
        expected: a tensor, a number, a text, or a tuple, list or dict of these.
        tolerance: largest difference of two numbers that counts as equal.
        parts: for tuples and lists, the entries whose values are compared; the form of all of them
            is. The empty tuple compares the form alone, also of tensors. None compares all.

    Raises:
        Wrong: they differ; the message has the type, dtype, device or shape, or the largest
            difference with its index.

    >>> compare(torch.tensor([1, 2]), torch.tensor([[1, 2]]))
    Traceback (most recent call last):
        ...
    lgcourse.grading.comparison.Wrong: expected shape (1, 2), got shape (2,)
    """
    _form(answer, expected, "")
    if isinstance(expected, (tuple, list)):
        for index, (one, other) in enumerate(zip(answer, expected, strict=True)):
            if parts is None or index in parts:
                _values(one, other, tolerance, f"entry {index}: ")
    elif parts is None:
        _values(answer, expected, tolerance, "")


def compare_share(answer: Any, expected: Tensor, share: float) -> None:
    """Compare row by row: a share of the rows must be right as a whole.

    Args:
        answer: what was returned; any object.
        expected: the right rows.
        share: least share of right rows, 0 to 1.

    Raises:
        Wrong: another type, dtype or shape, or too few rows are right.

    >>> compare_share(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 0]]), 0.9)
    Traceback (most recent call last):
        ...
    lgcourse.grading.comparison.Wrong: 1 of 2 answers are right as a whole, expected 90% or more
    """
    _form(answer, expected, "")
    got, wanted = torch.Tensor.detach(answer).tolist(), expected.tolist()
    right = sum(one == other for one, other in zip(got, wanted, strict=True))
    if right < share * len(wanted):
        raise Wrong(
            f"{right} of {len(wanted)} answers are right as a whole, expected {share:.0%} or more"
        )


def _form(answer: Any, expected: Any, where: str) -> None:
    """Compare types, and for tensors dtype, device and shape."""
    if type(answer) is not type(expected):
        kinds = f"expected {class_name(type(expected))}, got {class_name(type(answer))}"
        raise Misfit(f"{where}{kinds}")
    if isinstance(expected, Tensor):
        answer = torch.Tensor.detach(answer)  # a fresh object: attributes set by hand are gone
        pairs = {
            "dtype": (_dtype(answer), _dtype(expected)),
            "device": (answer.device.type, expected.device.type),
            "layout": (str(answer.layout), str(expected.layout)),
            "shape": (tuple(answer.shape), tuple(expected.shape)),
        }
        for name, (got, wanted) in pairs.items():
            if got != wanted:
                kind = Wrong if name in ("dtype", "shape") else Misfit
                raise kind(f"{where}expected {name} {wanted}, got {name} {got}")
    elif isinstance(expected, dict):
        if set(answer) != set(expected):
            raise Wrong(
                f"{where}expected the keys {short(list(expected))}, got {short(list(answer))}"
            )
        for key in expected:
            _form(answer[key], expected[key], f"{where}entry {key!r}: ")
    elif isinstance(expected, (tuple, list)):
        if len(answer) != len(expected):
            raise Wrong(f"{where}expected {len(expected)} entries, got {len(answer)}")
        for index, (one, other) in enumerate(zip(answer, expected, strict=True)):
            _form(one, other, f"{where}entry {index}: ")


def _values(answer: Any, expected: Any, tolerance: float, where: str) -> None:
    """Compare values whose form is the same."""
    if isinstance(expected, Tensor):
        _entries(torch.Tensor.detach(answer), expected, tolerance, where)
    elif isinstance(expected, (tuple, list)):
        for index, (one, other) in enumerate(zip(answer, expected, strict=True)):
            _values(one, other, tolerance, f"{where}entry {index}: ")
    elif isinstance(expected, dict):
        for key in expected:
            _values(answer[key], expected[key], tolerance, f"{where}entry {key!r}: ")
    elif isinstance(expected, NUMBERS):
        if difference(answer, expected) > tolerance:
            raise Wrong(
                f"{where}got {short(answer)}, expected {expected} (tolerance {tolerance:g})"
            )
    elif answer != expected:
        raise Wrong(f"{where}got {answer!r:.80}, expected {expected!r:.80}")


def _entries(answer: Tensor, expected: Tensor, tolerance: float, where: str) -> None:
    """Compare two tensors of one shape entry by entry, as Python numbers."""
    got, wanted = answer.flatten().tolist(), expected.flatten().tolist()
    differences = [difference(a, b) for a, b in zip(got, wanted, strict=True)]
    wrong = [d for d in differences if d > tolerance]
    if wrong:
        worst = max(wrong)
        at = differences.index(worst)
        index = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), expected.shape))
        told = Wrong(
            f"{where}{len(wrong)} of {len(got)} entries differ; the largest difference is "
            f"{worst:g} at index {index}: got {got[at]}, expected {wanted[at]} "
            f"(dtype {_dtype(expected)}, tolerance {tolerance:g})"
        )
        told.got, told.expected = answer, expected
        raise told


def short(value: Any) -> str:
    """Return a value as text of at most 80 characters.

    >>> short(3), short(10**5000)
    ('3', 'a number of 5001 digits or so')
    """
    if isinstance(value, int) and abs(value) >= 10**80:
        return f"a number of {int(value.bit_length() * math.log10(2)) + 1} digits or so"
    return f"{value!r:.80}"


def difference(got: int | float, wanted: int | float) -> int | float:
    """Return how far two numbers are apart; not-a-number is infinitely far from every number.

    >>> difference(True, False), difference(math.nan, 1.0), difference(math.inf, math.inf)
    (1, inf, 0.0)
    """
    if isinstance(got, float) or isinstance(wanted, float):
        if got == wanted or (math.isnan(got) and math.isnan(wanted)):
            return 0.0
        return math.inf if math.isnan(got) or math.isnan(wanted) else abs(got - wanted)
    return abs(int(got) - int(wanted))


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def class_name(cls: type) -> str:
    """Return the name of a class with its article; the class's own methods are not asked.

    >>> class_name(list), class_name(int), class_name(type(None))
    ('a list', 'an int', 'None')
    """
    name = type.__dict__["__name__"].__get__(cls)
    if name == "NoneType":
        return "None"
    if issubclass(cls, Tensor):
        name = "torch.Tensor" if cls is Tensor else f"{name} (a subclass of torch.Tensor)"
    return f"{'an' if name[:1] in 'aeiouAEIO' else 'a'} {name}"
