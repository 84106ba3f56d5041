"""Which names does a room offer? Answered without importing torch, so that `--help` is quick.

A registry maps a name to ``"module:attribute"``; the module is imported when the name is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from typing import Any

from lgcourse.errors import InputError, unknown_name


class Registry:
    """Names of one kind, each with the place where it is defined.

    Args:
        kind: what a name stands for, for instance ``"task"``; used in messages.
        places: name -> ``"module:attribute"``.

    >>> Registry("sign", {"pi": "math:pi"}).load("pi")
    3.141592653589793
    """

    def __init__(self, kind: str, places: dict[str, str]):
        self.kind = kind
        self._places: dict[str, Any] = dict(places)

    def names(self) -> list[str]:
        """Return all names, in the order in which they were registered."""
        return list(self._places)

    def load(self, name: str) -> Any:
        """Return the object behind a name; an unknown one is an `InputError` with the nearest."""
        if name not in self._places:
            raise unknown_name(self.kind, name, self._places)
        place = self._places[name]
        if not isinstance(place, str):
            return place
        module, attribute = place.split(":")
        return getattr(import_module(module), attribute)

    def register(self, name: str, value: Any) -> None:
        """Add a name of the user's own; a name that is taken is an `InputError`."""
        if name in self._places:
            raise InputError(f"{self.kind} '{name}' exists already; choose another name")
        self._places[name] = value


def refuse_options(
    kind: str,
    name: str,
    make: Callable[..., Any],
    options: Iterable[str],
    given: Iterable[str] = (),
) -> None:
    """Refuse an option that the maker of a named thing does not take.

    Args:
        kind, name: what the thing is called.
        make: its maker; one that hands further options on (``**options``) is not asked.
        options: names of the options.
        given: parameters of the maker that are no options.

    >>> refuse_options("sign", "pi", lambda digits=2: None, {"digts": 3})
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: sign 'pi' has no option 'digts'; it takes digits
    """
    parameters = signature(make).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = [p for p in parameters if p not in given]
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"{kind} '{name}' has no option '{option}'; {takes}")


def lazy(package: str, homes: dict[str, str]):
    """Make a module ``__getattr__`` that imports public names on first use.

    Args:
        package: the package whose ``__init__`` asks, for instance ``"lgcourse.tasks"``.
        homes: public name -> submodule that defines it.
    """

    def attribute(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    room = vars(sys.modules[package])  # `import *` and completion see the names, too
    room["__all__"] = [*homes, *(name for name in ("names", "get", "build") if name in room)]
    room["__dir__"] = lambda: sorted({*room, *homes})
    return attribute
