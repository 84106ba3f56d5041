"""What if training shows the positions of long inputs? Each pass draws them from a long range."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.embeddings.absolute import LearnedEmbedding, SinusoidalEmbedding
from lgcourse.embeddings.alibi import ALiBiEmbedding
from lgcourse.embeddings.base import Context, PositionEmbedding, head_size, soft_only
from lgcourse.embeddings.drawing import Draws
from lgcourse.embeddings.rope import RotaryEmbedding
from lgcourse.embeddings.t5 import ScalarBias
from lgcourse.errors import InputError, unknown_name, whole_number
from lgcourse.relations import build as build_relation
from lgcourse.relations.base import Scale, positions_for

LARGEST = 2048  # of the paper
MEMORY = "randomized"


class RandomizedEmbedding(PositionEmbedding):
    """Positions 0..l-1 become a sorted random draw, without replacement, from 0..M-1.

    i -> r_i with r_0 < r_1 < ... < r_(l-1) < M; another embedding then takes r_i for i. All layers
    and all sequences of one pass share the draw. It is kept in ``context.memory``, so tokens that
    are generated with a cache find the positions of those before them.

    How many to draw: as many as the whole sequence has, where task and scale are known; otherwise
    as many as the first pass has. With a task, generation and teacher forcing see the same.
    Training draws anew in each pass, evaluation always takes the same draw (see `Draws`): one that
    is like those of training, where evenly spaced positions would be something new.

    Source: Ruoss et al. (2023), arXiv 2305.16843, section 3; M = 2048 is the paper's. Its
    "relative" is that of Transformer-XL; here it is one learned number per head and distance.

    Trap: a new draw for each generated token moves every key that is in the cache already.

    Args:
        around: the embedding that takes the drawn positions, one for positions 0..M-1.
        largest: M.
        task: the task, which tells the length of the whole sequence.

    >>> pe = RandomizedEmbedding(SinusoidalEmbedding(4), largest=100).eval()
    >>> drawn = pe.drawn(torch.arange(50), None, Context())
    >>> drawn.shape, bool((drawn.diff() > 0).all()), int(drawn.max()) < 100
    (torch.Size([50]), True, True)
    """

    def __init__(self, around: PositionEmbedding, largest: int, task=None):
        super().__init__()
        self.around, self.largest, self.task = around, largest, task
        self.per_layer = around.per_layer
        self.draws = Draws()

    def drawn(
        self, positions: Int[Tensor, " l"], scale: Scale | None, context: Context | None
    ) -> Int[Tensor, " l"]:
        """Return the drawn positions of some positions; the first call of a pass makes the draw."""
        if context is None:
            raise InputError(
                "randomized positions are drawn once per pass: give the hooks a Context, as "
                "Transformer does"
            )
        needed = int(positions.max()) + 1
        if MEMORY not in context.memory:
            whole = self.task.length(scale) if self.task is not None and scale is not None else 0
            context.memory[MEMORY] = self._draw(max(needed, whole)).to(positions.device)
        draw = context.memory[MEMORY]
        if needed > len(draw):
            raise InputError(
                f"randomized positions were drawn for {len(draw)} tokens, and token {needed} "
                "follows: build the embedding with the task and give the scale, so that it draws "
                "for the whole sequence"
            )
        return draw[positions]

    def _draw(self, count: int) -> Int[Tensor, " l"]:
        if count > self.largest:
            raise InputError(
                f"'randomized' draws from {self.largest} positions, got a sequence of {count} "
                f"tokens; build it with a larger max_scale (or largest={count} and more)"
            )
        return torch.randperm(self.largest, generator=self.draws.next())[:count].sort().values

    def embed(self, x, positions, context=None):
        scale = None if context is None else context.scale
        return self.around.embed(x, self.drawn(positions, scale, context), context)

    def rotate(self, q, k, query, key, context=None):
        scale = None if context is None else context.scale
        i, j = self.drawn(query, scale, context), self.drawn(key, scale, context)
        return self.around.rotate(q, k, i, j, context)

    def bias(self, query, key, scale, context=None):
        i, j = self.drawn(query, scale, context), self.drawn(key, scale, context)
        return self.around.bias(i, j, scale, context)


def _around(kind: str, name: str, width: int, heads: int, largest: int) -> PositionEmbedding:
    makers = {
        "sinusoidal": lambda: SinusoidalEmbedding(width),
        "learned": lambda: LearnedEmbedding(largest, width),
        "relative": lambda: ScalarBias(build_relation("rpe", positions=largest), heads),
        "rope": lambda: RotaryEmbedding(head_size(name, width, heads)),
        "alibi": lambda: ALiBiEmbedding(heads),
    }
    if kind not in makers:
        raise unknown_name("embedding to randomize", kind, makers)
    return makers[kind]()


def randomized(
    name,
    task,
    width,
    heads,
    max_scale=None,
    positions=None,
    other="auto",
    around="sinusoidal",
    largest=None,
):
    """Randomized positions ``around`` sinusoidal, learned, relative, rope or alibi.

    ``largest`` positions to draw from: 2048, or twice the longest sequence if that is more.
    """
    soft_only(name, other)
    longest = positions_for(task, max_scale, positions)
    if largest is None:
        largest = max(LARGEST, 2 * longest)
    whole_number("largest", largest, longest)
    return RandomizedEmbedding(_around(around, name, width, heads, largest), largest, task)
