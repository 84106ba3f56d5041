"""Does an answer only hand the question on to the library? Looked up, without running it.

The notebook warns by this; while a submission is graded the forbidden rooms are not there at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any


def forbidden_uses(answer: Any, forbids: tuple[str, ...]) -> list[str]:
    """Return the forbidden parts of lgcourse that an answer names.

    Args:
        answer: a function or class; anything else uses nothing.
        forbids: rooms or parts of them, such as ``"tasks"`` or ``"embeddings.rotary"``.

    Returns:
        Names such as ``"lgcourse.tasks"``, sorted.

    >>> from lgcourse import relations
    >>> forbidden_uses(lambda q, k: relations.build("rpe"), ("relations",))
    ['lgcourse.relations']
    """
    found = {name for name in _names(answer, set()) if name.startswith("lgcourse.")}
    roots = tuple(f"lgcourse.{part}" for part in forbids)
    return sorted({r for r in roots for n in found if n == r or n.startswith(f"{r}.")})


def _names(answer: Any, seen: set[int]) -> Iterator[str]:
    """Yield the modules that a function, its helpers and its imports name."""
    if issubclass(type(answer), type):  # the answer's own claim of its class is not asked
        for cls in answer.__mro__[1:]:
            yield str(cls.__module__)
        for value in list(vars(answer).values()):
            if isinstance(value, FunctionType):
                yield from _names(value, seen)
        return
    if type(answer) is not FunctionType or id(answer) in seen:
        return
    seen.add(id(answer))
    yield str(answer.__module__)
    yield from _imported(answer.__code__)
    for code in _codes(answer.__code__):
        for name in code.co_names:
            value = answer.__globals__.get(name)
            if isinstance(value, ModuleType):
                yield from _through(value.__name__, code.co_names)
            elif isinstance(value, (FunctionType, type)):
                home = str(value.__module__)
                yield home
                if home == answer.__module__:
                    yield from _names(value, seen)
            elif value is not None:
                yield str(type(value).__module__)


def _through(module: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield a module, and the rooms that are reached through ``lgcourse`` itself."""
    yield module
    if module == "lgcourse":
        yield from (f"lgcourse.{name}" for name in names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _imported(code: CodeType) -> Iterator[str]:
    """Yield modules that the code imports where it runs."""
    for inner in _codes(code):
        for name in inner.co_names:
            if name.startswith("lgcourse"):
                yield from _through(name, inner.co_names)
