"""How do we name a user's mistake? One line: the value, what was expected, what is near it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """The user's input cannot be used; the message is one line that says what would be right.

    The command line prints the message and exits with code 2; any other exception is a fault of
    the package.

    >>> raise InputError("scale must be a whole number of at least 1, got 0")
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: scale must be a whole number of at least 1, got 0
    """


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Make the error for a name that is not in a list, with the nearest name in it.

    Args:
        kind: what the name should have named, for instance ``"task"``.
        name: the name that was given.
        known: the names that exist.

    Returns:
        An `InputError` to raise.

    >>> str(unknown_name("task", "adition", ["addition", "copy"]))
    "unknown task 'adition'; did you mean 'addition'? Known: addition, copy"
    """
    known = list(known)
    nearest = get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean '{nearest[0]}'? Known" if nearest else "known"
    return InputError(f"unknown {kind} '{name}'; {hint}: {', '.join(known)}")


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number that lies within bounds; anything else is an `InputError`.

    >>> whole_number("steps", 0, 1, 10)
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: steps must be a whole number of at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if most is not None and value > most:
        shown = str(value) if value < 10**20 else "a larger number"
        raise InputError(f"{name} must be at most {most:,}, got {shown}")
    return value
