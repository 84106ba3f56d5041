"""Which exercises have questions? Each module ``eNN`` of this folder holds those of exercise NN."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lgcourse.grading.question import Question


def exercises() -> list[int]:
    """Return the numbers of the exercises that have questions.

    >>> 1 in exercises()
    True
    """
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return sorted(int(name[1:]) for name in names if name[0] == "e" and name[1:].isdigit())


def questions(exercise: int) -> list[Question]:
    """Return the questions of an exercise, in their order."""
    return list(import_module(f"lgcourse.grading.bank.e{exercise:02d}").QUESTIONS)
