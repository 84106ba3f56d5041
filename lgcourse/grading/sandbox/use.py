"""How is an answer used that is more than a function: a module with given weights, a model?

The notebook and the grading process use answers by the same lines, so they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Unfit(Exception):  # noqa: N818  it is no fault of the program
    """An answer cannot be used as the question wants; the message says why, for a learner."""


def use_module(
    answer: Any,
    options: dict[str, Any],
    weights: dict[str, Tensor],
    method: str,
    inputs: Sequence[Any],
) -> Any:
    """Make a module, give it weights, call one of its methods.

    Args:
        answer: an nn.Module class, or a function that returns a module.
        options: what the class or function is called with.
        weights: name of each parameter, such as ``"table"`` or ``"query.weight"``, and its value;
            buffers may be named, too.
        method: the method that is called, ``"forward"`` in general.
        inputs: its arguments.

    Raises:
        Unfit: no module, or its parameters are not those that are given.
    """
    module = answer(**options)
    if module is ... or module is None:
        return module
    if not isinstance(module, nn.Module):
        raise Unfit(f"expected an nn.Module, got {type(module).__name__}")
    problem = give_weights(module, weights)
    function = getattr(module, method, None)
    if not callable(function):
        raise Unfit(f"the module has no method {method}")
    if problem:
        output = _quietly(function, inputs)
        if output is ...:  # a stub: its parameters are not written yet
            return output
        raise Unfit(problem)
    module.eval()
    with torch.no_grad():
        return function(*inputs)


def _quietly(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    try:
        with torch.no_grad():
            return function(*inputs)
    except Exception:
        return None


def give_weights(module: nn.Module, weights: dict[str, Tensor]) -> str:
    """Copy weights into a module; return what does not fit, or nothing.

    >>> give_weights(nn.Linear(2, 1, bias=False), {"weight": torch.ones(1, 3)})
    'parameter weight has shape (1, 2), expected (1, 3)'
    """
    own = dict(module.named_parameters())
    places = {**dict(module.named_buffers()), **own}
    for name, value in weights.items():
        if name not in places:
            return f"the module has no parameter {name}; it has {', '.join(own) or 'none'}"
        if places[name].shape != value.shape:
            shapes = tuple(places[name].shape), tuple(value.shape)
            return f"parameter {name} has shape {shapes[0]}, expected {shapes[1]}"
        if places[name].dtype != value.dtype:
            return f"parameter {name} has dtype {places[name].dtype}, expected {value.dtype}"
    for name in own:
        if name not in weights:
            wanted = ", ".join(weights) or "none"
            return f"the module has a parameter {name} too many; expected {wanted}"
    with torch.no_grad():
        for name, value in weights.items():
            places[name].copy_(value)
    return ""


def trained(answer: Any) -> Any:
    """Return the model behind an answer: a module, or what a function without arguments returns."""
    model = answer if isinstance(answer, nn.Module) else answer()
    if model is ... or model is None:
        return model
    if not isinstance(model, nn.Module):
        raise Unfit(f"expected a trained nn.Module, got {type(model).__name__}")
    model.eval()
    return model


def write(model: Any, prompt: Tensor, scale: Any, count: int) -> Tensor:
    """Let a model write greedily: it never sees the answer.

    Args:
        model: called as ``model(tokens, scale)``, returns logits Float["b l v"].
        prompt: token ids Int["b p"].
        scale: scale of the prompts.
        count: number of tokens to write.

    Returns:
        The tokens that were written, Int["b a"].
    """
    tokens = prompt
    with torch.no_grad():
        for _ in range(count):
            logits = model(tokens, scale)
            if not isinstance(logits, Tensor) or logits.shape[:2] != tokens.shape:
                got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
                raise Unfit(f"expected logits of shape {(*tokens.shape, 'v')}, got {got}")
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    return tokens[:, prompt.shape[1] :]
