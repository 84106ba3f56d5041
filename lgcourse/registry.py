"""Which names does a room offer? Answered without importing torch, so that `--help` is quick.

A registry maps a name to ``"module:attribute"``; the module is imported when the name is used.
"""

from __future__ import annotations

from importlib import import_module
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

    return attribute
