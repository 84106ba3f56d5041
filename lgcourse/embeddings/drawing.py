"""Where do random positions come from? From a counter that is saved with the weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Draws(nn.Module):
    """A stream of random draws: the k-th draw of training is the same in every run.

    The number k is a buffer. It is saved with the weights, so a training that is resumed draws what
    it would have drawn. Evaluation does not count: it always gets draw 0, which training never
    takes, so that the same input gets the same answer and generation can be compared with teacher
    forcing.

    >>> draws = Draws()
    >>> first, second = (int(torch.randint(10**6, (), generator=draws.next())) for _ in range(2))
    >>> first != second, int(draws.count)
    (True, 2)
    """

    count: Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def next(self) -> torch.Generator:
        """Return the source of the next draw."""
        if self.training:
            self.count += 1
        number = int(self.count) if self.training else 0
        # neighbouring seeds of a Mersenne twister start alike: spread them
        return torch.Generator().manual_seed((number * 0x9E3779B97F4A7C15 + 1) % 2**63)
