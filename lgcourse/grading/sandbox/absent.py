"""What stands for a room that an answer may not use, and for a package that is not installed?

Stand-ins: cells that draw a picture with the library do nothing while a submission is graded, and
an answer that asks a stand-in is told that it is not there.
"""

from __future__ import annotations

import ast
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ROOT = "lgcourse"


class NotHere(Exception):  # noqa: N818  it says what happened
    """An answer asked for a part of the library that is not there at grading."""


class NotInstalled(ModuleNotFoundError):  # noqa: N818  it says what happened
    """An answer asked for a package that the grading machine has not."""


class Absent:
    """Stands for something of the library: silent in cells, an error while an answer is asked."""

    strict = False

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def _use(self) -> None:
        if Absent.strict:
            raise NotHere(f"{self._name} is not there while answers are graded; write it yourself")

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Absent:
        self._use()
        return self

    def __getitem__(self, index: Any) -> Absent:
        self._use()
        return self

    def __iter__(self) -> Any:
        self._use()
        return iter(())

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        raise NotHere(f"{self._name} is not there while answers are graded; write it yourself")


class Quiet(Absent):
    """Stands for the checks of the notebook: they say nothing, wherever they are called."""

    def __init__(self, *_: Any):
        super().__init__("checks")

    def _use(self) -> None:
        return

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class Missing(Absent):
    """Stands for a package that is not installed; every use is told."""

    def _use(self) -> None:
        package = str(self._name).split(".")[0]
        raise NotInstalled(f"the package {package} is not installed here", name=package)

    def __getattr__(self, name: str) -> Absent:
        if not name.startswith("__"):
            self._use()
        raise AttributeError(name)


class AbsentModule(ModuleType):
    """A room that is not there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


class Rooms:
    """Finds what is there of the library and stands in for the rest; asked before others."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(f"{ROOT}."):
            return None
        there = PathFinder.find_spec(name, path, target)
        return there or ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return


def install() -> None:
    """Let imports of rooms that are not there give stand-ins."""
    sys.meta_path.insert(0, Rooms())  # type: ignore[arg-type]


def stand_ins(statement: ast.stmt, package: str) -> dict[str, Missing]:
    """Return what an import of a missing package should have named.

    >>> list(stand_ins(ast.parse("import nothing.more as n").body[0], "nothing"))
    ['n']
    """
    if isinstance(statement, ast.Import):
        bound = [(a.asname or a.name.split(".")[0], a.name) for a in statement.names]
    elif isinstance(statement, ast.ImportFrom):
        bound = [(a.asname or a.name, f"{statement.module}.{a.name}") for a in statement.names]
    else:
        bound = []
    return {n: Missing(full) for n, full in bound if full.split(".")[0] == package and n != "*"}
