"""How is an answer used? A function is called, a module made and given weights; faults are told.

The notebook and the process that grades use answers by these lines, so they agree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from lgcourse.grading.comparison import Misfit, Wrong, class_name
from lgcourse.grading.sandbox import use
from lgcourse.grading.sandbox.codec import Made

WANTED = {
    "function": "a function",
    "module": "an nn.Module class",
    "model": "a trained nn.Module, or a function that returns one",
}


class Raised(Wrong):
    """An answer raised an exception; the message says which, and in which line of the learner.

    `kind` is the name of the exception's class, `place` the learner's line.
    """

    kind: str = ""
    place: str = ""


class NotAttempted(Exception):  # noqa: N818  it is no fault of the program
    """An answer is still the stub."""


class CannotGrade(Exception):  # noqa: N818  it is the outcome's name
    """Grading is not possible here; the message says why and what would mend it."""


@dataclass(frozen=True)
class Use:
    """One use of a module that a learner wrote: made, given weights, called.

    Args:
        inputs: name and value of each argument of the call; they are passed by place.
        options: what the class (or a function that makes the module) is called with.
        weights: name and value of each parameter; only these arrays reach the module.
        method: the method that is called.
    """

    inputs: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    method: str = "forward"


Arguments = tuple[Any, ...]
Case = Any  # Arguments, or a `Use` for modules


class Asked:
    """An answer, used so that each of its faults becomes `Wrong` or `NotAttempted`."""

    def __init__(self, answer: Any, kind: str = "function"):
        self.answer, self.kind = answer, kind
        self._model: Any = None

    def __call__(self, case: Case) -> Any:
        if self.answer is ... or self.answer is None:
            raise NotAttempted("there is no answer yet")
        if self.kind in ("number", "choice"):
            return self.answer
        if not callable(self.answer):
            wanted, got = WANTED[self.kind], class_name(type(self.answer))
            raise Misfit(f"expected {wanted}, got {got}; pass the {self.kind} itself")
        case = built(case)
        given = copied(case)
        try:
            output = self._used(case)
        except KeyboardInterrupt:
            raise
        except use.Unfit as problem:
            raise Misfit(str(problem)) from None
        except BaseException as error:  # SystemExit too: it must not end the notebook
            raise raised(error, self.answer) from None
        return checked(output, arguments_of(given), arguments_of(case))

    def _used(self, case: Case) -> Any:
        if isinstance(case, Use):
            return use_module(self.answer, case)
        if self.kind != "model":
            return self.answer(*case)
        if self._model is None:
            self._model = use.trained(self.answer)
        if self._model is ... or self._model is None:
            return self._model
        return use.write(self._model, *case)


def use_module(answer: Any, case: Use) -> Any:
    """Use a module as a case says."""
    inputs = list(case.inputs.values())
    return use.use_module(answer, dict(case.options), dict(case.weights), case.method, inputs)


def checked(output: Any, given: Sequence[Any], after: Sequence[Any]) -> Any:
    """Return what an answer returned, unless it is the stub's or arguments were changed.

    Args:
        output: what it returned.
        given: the arguments of the call.
        after: the same arguments after it.

    Raises:
        NotAttempted: it returned nothing.
        Misfit: an argument is not what it was.
    """
    if output is ...:
        raise NotAttempted("the function still returns ...")
    if output is None:
        raise NotAttempted("the function returns None; does a return statement miss?")
    for index, (one, other) in enumerate(zip(given, after, strict=True)):
        if isinstance(one, Tensor) and not _equal(one, other):
            raise Misfit(f"the function changes its argument {index + 1} in place; work on a copy")
    return output


def _equal(one: Tensor, other: Any) -> bool:
    """Return whether two tensors are equal; entries that are no numbers equal one another."""
    if not isinstance(other, Tensor) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())


def raised(error: BaseException, answer: Any) -> Raised:
    """Return what a learner's code raised, and in which of its lines, in words."""
    try:
        words = " ".join(str(error).split())[:300]
    except Exception:  # an exception of the learner's own whose text cannot be made
        words = "(no text)"
    place = place_of(error, answer)
    text = f"your code raised {class_name(type(error))}: {words}"
    made = Raised(f"{text}\n{place}" if place else text)
    made.kind, made.place = type.__dict__["__name__"].__get__(type(error)), place
    return made


def place_of(error: BaseException, answer: Any) -> str:
    """Return the innermost line of the learner's own file or cell that was running."""
    if error.__traceback__ is None:
        return ""
    frames = inspect.getinnerframes(error.__traceback__, context=1)[1:]  # the first is ours
    code = getattr(answer, "__code__", None) or _code_of_class(answer)
    own = [f for f in frames if code is None or f.filename == code.co_filename]
    cells = [f for f in frames if f.filename.startswith("<cell ")]  # where notebooks are graded
    frames = [f for f in frames if f.filename not in (__file__, use.__file__)]
    if not (cells or own or frames):
        return ""
    frame = (cells or own or frames)[-1]
    line = frame.code_context[0].strip() if frame.code_context else ""
    cell = f"{frame.filename.strip('<>')}, " if cells else ""
    function = "" if frame.function == "<module>" else f", {frame.function}"
    return f"in {cell}line {frame.lineno}{function}: {line}".rstrip(": ")


def _code_of_class(answer: Any) -> Any:
    """Return the code of some method of a class: all of them stand in one file."""
    values = vars(answer).values() if isinstance(answer, type) else ()
    return next((v.__code__ for v in values if inspect.isfunction(v)), None)


def arguments_of(case: Case) -> list[Any]:
    """Return what a call is given."""
    return list(case.inputs.values() if isinstance(case, Use) else case)


def copied(case: Case) -> Case:
    """Return a case that can be changed without harm."""
    return _mapped(case, lambda a: a.clone() if isinstance(a, Tensor) else a)


def built(case: Case) -> Case:
    """Return a case with the objects that `Made` names."""
    return _mapped(case, lambda a: a.build() if isinstance(a, Made) else a)


def _mapped(case: Case, change: Callable[[Any], Any]) -> Case:
    if not isinstance(case, Use):
        return tuple(map(change, case))
    parts = [
        {k: change(v) for k, v in part.items()}
        for part in (case.inputs, case.options, case.weights)
    ]
    return Use(parts[0], parts[1], parts[2], case.method)


def show_call(function: Callable[..., Any], case: Case) -> str:
    """Return arguments as a learner would write them.

    >>> import torch
    >>> show_call(lambda guess, n: ..., (torch.tensor([[1, 2]]), 3))
    'guess = tensor([[1, 2]]), n = 3'
    >>> show_call(lambda operators: ..., (torch.tensor([[[2]], [[5]]]),))
    'operators = a tensor of shape (2, 1, 1) with the numbers [2, 5]'
    """
    if isinstance(case, Use):
        named = [*case.options.items(), *case.weights.items(), *case.inputs.items()]
    else:
        named = list(zip(inspect.signature(function).parameters, case, strict=True))
    return ", ".join(f"{n} = {_shown(a)}" for n, a in named) or "nothing"


def _shown(argument: Any) -> str:
    if not isinstance(argument, Tensor):
        return repr(argument)
    if argument.numel() > 60:
        return f"a tensor of shape {tuple(argument.shape)}"
    if argument.ndim > 2 and argument.shape[-2:] == (1, 1):  # operators that are single numbers
        shape = tuple(argument.shape)
        return f"a tensor of shape {shape} with the numbers {argument[..., 0, 0].tolist()}"
    return f"tensor({argument.tolist()})"
