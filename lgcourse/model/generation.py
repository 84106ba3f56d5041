"""How does a trained model answer? Greedily: the likeliest token, again and again."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.relations.base import Scale


@torch.inference_mode()
def generate(model, prompt: Int[Tensor, "b p"], scale: Scale, count: int) -> Int[Tensor, "b a"]:
    """Return the ``count`` tokens that the model writes behind each prompt.

    Args:
        model: a `Transformer`.
        prompt: token ids up to and with ``=``, all of one scale.
        scale: the scale of the prompts.
        count: number of tokens to write.

    Returns:
        The written tokens, without the prompt.

    >>> from lgcourse import Transformer, embeddings
    >>> model = Transformer(12, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> generate(model, torch.zeros(2, 3, dtype=torch.long), scale=1, count=4).shape
    torch.Size([2, 4])
    """
    model.eval()
    tokens = prompt
    for _ in range(count):
        logits = model(tokens, scale)[:, -1]  # b v
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
    return tokens[:, prompt.shape[1] :]
