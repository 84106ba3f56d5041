"""Which tokens belong together? Position coupling gives those that a step relates the same id."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, soft_only
from lgcourse.embeddings.drawing import Draws
from lgcourse.errors import InputError, whole_number
from lgcourse.relations.base import Scale, check_range, largest_scale
from lgcourse.theory.circuits import covered, steps_at

MEMORY = "coupled"


def coupled_ids(task, scale: Scale) -> Int[Tensor, " l"]:
    """Return the id of each position, derived from the circuit of a task.

    The t-th token of the answer has id t + 1, and so has each prompt token that the step of this
    answer token is the first to read. The token before the answer has id 1, so that every query has
    the id below that of the token it predicts. Tokens that no step reads have id 0.

    Args:
        task: a task with a circuit.
        scale: the scale n.

    Returns:
        One id per position of the whole sequence.

    Raises:
        InputError: the task has no circuit, or its steps read the whole input.

    >>> from lgcourse.tasks import get
    >>> coupled_ids(get("reverse"), 3)  # x1 x2 x3 = y1 y2 y3
    tensor([4, 3, 2, 1, 2, 3, 4])
    >>> coupled_ids(get("addition"), 2)  # a1 a2 + b1 b2 = s1 s2 s3
    tensor([2, 3, 4, 2, 3, 1, 2, 3, 4])
    """
    refuse_uncoupled(task)
    ids = torch.zeros(task.length(scale), dtype=torch.int64)
    steps = steps_at(task, scale)
    for id, step in reversed(list(enumerate(steps, start=2))):  # the first reader writes last
        ids[list(step.inputs)] = id
    ids[[step.output for step in steps]] = torch.arange(2, len(steps) + 2)
    ids[steps[0].query] = 1
    return ids


def refuse_uncoupled(task) -> None:
    """Refuse a task without steps that could couple its tokens."""
    if task is None:
        raise InputError("coupled ids are derived from a task's circuit: give a task")
    if not covered(task) or task.arity is None:
        raise InputError(
            f"no coupling exists for task '{task.name}': "
            + ("it has no circuit of positions" if not covered(task) else "each step reads it all")
            + "; coupled works with addition, copy, parity-cot and other tasks of bounded arity"
        )


class CoupledEmbedding(PositionEmbedding):
    """Position coupling: a learned vector per id, added to the token, x + E[id]; see `coupled_ids`.

    In training all ids but 0 are shifted by one random offset per batch, as far as the table goes,
    so that every row is trained; in evaluation by none.

    Source: Cho et al. (2024), arXiv 2405.20671, section 3: digits of one significance share an id,
    "=" has the id next to the least digit's, ids start at random in training. There ids come by
    hand for each task; here from the circuit. The paper writes operands most digit first, so "+"
    stands beside the least digits and has the id of "="; ours come least digit first, and the last
    column reads "+" as a zero, so it has that column's id. Vectors start at zero here.

    Trap: without the random start, ids beyond the training scale have untrained vectors. The ids
    depend on the scale: they are a kind of Scale Hint.

    Args:
        task: the task whose circuit couples.
        rows: number of vectors.
        width: width of the token vectors.

    >>> from lgcourse.embeddings.base import Context
    >>> from lgcourse.tasks import get
    >>> pe = CoupledEmbedding(get("copy"), rows=20, width=4).eval()
    >>> pe.embed(torch.zeros(1, 7, 4), torch.arange(7), Context(scale=3)).shape
    torch.Size([1, 7, 4])
    """

    def __init__(self, task, rows: int, width: int):
        super().__init__()
        refuse_uncoupled(task)
        self.task = task
        self.table = nn.Parameter(torch.zeros(rows, width))
        self.draws = Draws()
        self._ids: dict[Scale, Tensor] = {}

    def ids(self, positions: Int[Tensor, " l"], scale: Scale) -> Int[Tensor, " l"]:
        """Return the ids of some positions; those behind the end of the sequence get 0."""
        if scale not in self._ids:
            self._ids[scale] = torch.nn.functional.pad(coupled_ids(self.task, scale), (0, 1))
        ids = self._ids[scale].to(positions.device)
        return ids[positions.clamp(max=len(ids) - 1)]

    def embed(self, x, positions, context=None):
        if context is None or context.scale is None:
            raise InputError(
                "coupled ids depend on where the operands end: give the scale of the instance"
            )
        ids = self.ids(positions, context.scale)
        largest = int(self._ids[context.scale].max())
        check_range("coupled", largest, len(self.table))
        if self.training:
            if MEMORY not in context.memory:
                room = len(self.table) - largest
                draw = torch.randint(room, (), generator=self.draws.next())
                context.memory[MEMORY] = int(draw)
            ids = torch.where(ids > 0, ids + context.memory[MEMORY], 0)
        return x + self.table[ids].to(x.dtype)


def coupled(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """Position coupling for a task, sized to its longest answer."""
    soft_only(name, other)
    refuse_uncoupled(task)
    if positions is not None:
        rows = whole_number("positions", positions, 1)
    else:
        rows = task.answer_length(max_scale if max_scale is not None else largest_scale(task)) + 2
    return CoupledEmbedding(task, rows, width)
