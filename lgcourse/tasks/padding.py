"""What does zero-padding to one width change? Operands stand at the same places at every scale."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.errors import InputError, whole_number
from lgcourse.relations.affine import Affine
from lgcourse.tasks.base import Task
from lgcourse.tasks.families import Segment


class Padded(Task):
    """A task whose layout has one width for all scales; to be named before the task it pads.

    Args:
        width: W, the largest scale that fits.

    >>> from lgcourse.tasks import get
    >>> task = get("parity-cot-padded", width=7)
    >>> task.length(2) == task.length(7) == 15
    True
    """

    padded = True

    def __init__(self, width: int = 100):
        self.width = whole_number("width", width, 1)

    def zeros(self, letter: str, count: Affine, extra: int = 0) -> Segment:
        """Return the padding behind x_1 .. x_count, up to x_(W + extra)."""
        fill = self.vocabulary.index(self.fill)
        return Segment(letter, self.width + extra - count, (fill,), start=count + 1)

    def check_scale(self, scale):
        super().check_scale(scale)
        refuse_wider(self, scale)


def refuse_wider(task, scale: int) -> None:
    """Refuse a scale that does not fit the width of a task."""
    if scale > task.width:
        raise InputError(
            f"task '{task.name}' was made for width {task.width}, got scale {scale}; "
            f"make it with option width={scale} or more"
        )


def pad_operand(tokens: Int[Tensor, "b p"], scale: int, width: int) -> Int[Tensor, "b w"]:
    """Put zeros behind the first ``scale`` tokens, up to ``width``."""
    zeros = tokens.new_zeros(tokens.shape[0], width - scale)
    return torch.cat([tokens[:, :scale], zeros, tokens[:, scale:]], dim=1)
