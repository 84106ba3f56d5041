"""Which exercises have questions? Each module ``eNN`` of this folder holds those of exercise NN.

How to write a question. Define a `Question` with its `Check`s, and add it to ``QUESTIONS``. Names
are unique over all exercises: an answer is found by its name alone. ``kind`` says what the answer
is:

**function** (the usual)
    ``reference(*arguments)`` is the truth, in plain Python and by another way than the solution.
    ``draw(generator)`` of a check returns the argument tuples of its calls. Arguments and answers
    are tensors, numbers, texts, None, and tuples, lists or dicts of these; only such data cross
    to the process that grades. An argument that is an object of the library is
    ``Made("tasks:get", "copy")``: each side makes it by ``lgcourse.tasks.get("copy")``.
**module** (a class derived from nn.Module, or a function that makes one)
    The cases of a check are `Use`s: ``Use(inputs={"x": x}, options={"width": 8},
    weights={"table": table})`` means ``answer(width=8)``, then the parameter ``table`` gets the
    given values, then ``forward(x)`` is compared. ``method`` calls another method. The reference
    is an nn.Module class that is used likewise, or a function of the `Use`. The text of the
    exercise names the parameters; in the stub ``__init__`` is written and ``forward`` returns
    ``...``.
**number** (a variable, stub ``size = ...``)
    ``reference()`` computes it; a check has no ``draw``. ``mistakes=((3, "you counted ..."),
    ...)`` answers likely wrong numbers. What would be right is never printed. An int answers a
    float.
**choice** (a variable that holds one of some texts)
    ``choices=("grows", "stays")`` and ``reference()``; ``mistakes`` says of each wrong option
    why.
**model** (a variable that holds a trained nn.Module, or a function without arguments that trains)
    It is called as ``model(tokens, scale)`` and returns logits. `prompts` and `true_answers` of
    `lgcourse.grading.models` make ``draw`` and ``reference`` from a task; the check says
    ``share=0.9``: so many prompts must be answered right as a whole. The model writes greedily
    and never sees an answer. ``seconds`` of the question is what training may take at grading.

Checks stand in the order in which they run; each isolates one idea, on data where the wrong idea
gives a wrong value. The first one compares the form alone (``parts=()``). ``message`` names the
likely mistake. Three hints: what to look at, which equation, nearly the code.

``forbids`` lists the rooms of lgcourse that an answer may not use; they are not there at grading.
The default forbids them all, since most answers need only torch. To leave some open, list the
others: a room that is open needs those that it imports. A cell that uses a forbidden room, for a
picture say, does nothing at grading. At least four plausible wrong answers per question stand in
``tests/grading/``, each with the id of the check that must reject it.
"""

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
