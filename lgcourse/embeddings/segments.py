"""Which part of the input is this? The number of marks before, such as "+" and "="."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import Context
from lgcourse.errors import InputError

PARTS = 8  # later parts share the last vector


def part_of(tokens: Int[Tensor, "b l"], marks: Int[Tensor, " m"]) -> Int[Tensor, "b l"]:
    """Return how many marks stand before each token; a mark belongs to the part that it ends.

    >>> part_of(torch.tensor([[3, 1, 10, 4, 11, 7]]), torch.tensor([10, 11]))
    tensor([[0, 0, 0, 1, 1, 2]])
    """
    is_mark = torch.isin(tokens, marks).long()
    return is_mark.cumsum(dim=1) - is_mark


def marks_of(task) -> list[int]:
    """Return the tokens that stand at fixed places of a layout: those that name a position.

    >>> from lgcourse import tasks
    >>> task = tasks.get("addition")
    >>> [task.vocabulary[mark] for mark in marks_of(task)]
    ['+', '=']
    """
    names = set(task.layout(task.scale_of(2)))
    return [token for token, name in enumerate(task.vocabulary) if name in names]


class SegmentVectors(nn.Module):
    """A learned vector per part of the input, added to the token: x + E[part].

    A relation can name a place where an operand has ended and the next part begins. The part tells
    the reader so: the same digit means another thing there. It depends on tokens only, so it is the
    same at every length.

    Source: segment vectors as in Devlin et al. (2019), arXiv 1810.04805, here counted from marks.

    Args:
        marks: the tokens that end a part.
        width: width of the token vectors.
    """

    marks: Tensor

    def __init__(self, marks: Iterable[int], width: int):
        super().__init__()
        self.register_buffer("marks", torch.tensor(list(marks), dtype=torch.long))
        self.vectors = nn.Parameter(torch.zeros(PARTS, width))

    @classmethod
    def of(cls, task, width: int) -> SegmentVectors:
        """Make the vectors for the marks of a task."""
        return cls(marks_of(task), width)

    def forward(self, x: Float[Tensor, "b l d"], context: Context | None) -> Float[Tensor, "b l d"]:
        if context is None or context.tokens is None:
            raise InputError("segments are counted from the tokens; give a Context(tokens=...)")
        part = part_of(context.tokens, self.marks).clamp(max=PARTS - 1)
        return x + self.vectors[part[:, -x.shape[1] :]].to(x.dtype)
