"""How does a trained model answer? Greedily: the likeliest token, again and again."""

from __future__ import annotations

from inspect import signature

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.model.cache import Cache
from lgcourse.relations.base import Scale

TOGETHER = 2**14  # tokens that go through the model at once where no gradients are needed


@torch.inference_mode()
def generate(
    model, prompt: Int[Tensor, "b p"], scale: Scale, count: int, cache: bool = True
) -> Int[Tensor, "b a"]:
    """Return the ``count`` tokens that the model writes behind each prompt.

    Args:
        model: a `Transformer`.
        prompt: token ids up to and with ``=``, all of one scale.
        scale: the scale of the prompts.
        count: number of tokens to write.
        cache: keep keys and values of the tokens so far; False computes them again for each token.

    Returns:
        The written tokens, without the prompt.

    >>> from lgcourse import Transformer, embeddings
    >>> model = Transformer(12, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> generate(model, torch.zeros(2, 3, dtype=torch.long), scale=1, count=4).shape
    torch.Size([2, 4])
    """
    model.eval()
    batch, length = prompt.shape
    tokens = torch.cat([prompt, prompt.new_zeros(batch, count)], dim=1)
    kept = Cache(capacity=length + count) if cache else None
    read = 0
    for end in range(length, length + count):
        if kept is None:
            logits = model(tokens[:, :end], scale)
        else:
            logits = model(tokens[:, read:end], scale, kept, last=1)
            read = end
        tokens[:, end] = logits[:, -1].argmax(-1)
    return tokens[:, length:]


def last_logits(
    model, tokens: Int[Tensor, "b l"], scale: Scale | None, last: int
) -> Float[Tensor, "b q v"]:
    """Return the logits of the last tokens, without computing others where the model can.

    A model of your own, whose ``forward`` knows only tokens and scale, computes all of them.

    Args:
        model: a `Transformer`, or any module with ``forward(tokens, scale)``.
        tokens: token ids, all sequences of one scale.
        scale: the scale n.
        last: how many.

    >>> from lgcourse import Transformer, embeddings
    >>> model = Transformer(12, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> last_logits(model, torch.zeros(3, 7, dtype=torch.long), scale=2, last=2).shape
    torch.Size([3, 2, 12])
    """
    if "last" in signature(model.forward).parameters:
        return model(tokens, scale, last=last)
    return model(tokens, scale)[:, tokens.shape[1] - last :]


@torch.inference_mode()
def next_tokens(
    model, tokens: Int[Tensor, "b l"], scale: Scale, last: int | None = None
) -> Int[Tensor, "b q"]:
    """Return the likeliest next token at every position, as arg-max of the logits.

    Many sequences go through the model some at a time, and long ones piece by piece (`Transformer`
    does that), so that memory is linear in the length.

    Args:
        model: a `Transformer`.
        tokens: token ids, all sequences of one scale.
        scale: the scale n.
        last: only for so many last positions.

    >>> from lgcourse import Transformer, embeddings
    >>> model = Transformer(12, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> next_tokens(model, torch.zeros(3, 7, dtype=torch.long), scale=2).shape
    torch.Size([3, 7])
    """
    model.eval()
    length = tokens.shape[1]
    last = length if last is None else last
    some = tokens.split(max(1, TOGETHER // length))
    return torch.cat([last_logits(model, few, scale, last).argmax(-1) for few in some])
