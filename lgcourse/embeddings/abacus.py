"""Which digit of its number is this? Abacus counts inside each run of digits."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, soft_only
from lgcourse.embeddings.drawing import Draws
from lgcourse.errors import InputError, whole_number
from lgcourse.relations.base import check_range, positions_for

OFFSET = 99  # largest random offset of the authors' code
MEMORY = "abacus"


def runs(is_digit: Bool[Tensor, "b l"]) -> Int[Tensor, "b l"]:
    """Count 1, 2, 3, ... inside each run of digits; other tokens get 0.

    >>> text = "314+15=9265"
    >>> runs(torch.tensor([[c.isdigit() for c in text]]))
    tensor([[1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4]])
    """
    at = torch.arange(is_digit.shape[1], device=is_digit.device)
    before = torch.where(is_digit, -1, at).cummax(dim=1).values  # the last token that is no digit
    return at - before


class AbacusEmbedding(PositionEmbedding):
    """A learned vector per place in the number, added to the token: x + E[id].

    id = 1, 2, 3, ... inside each run of digits, 0 for other tokens. In training all ids but 0 are
    shifted by one random offset per batch, 0..K; in evaluation by none. So places that are longer
    than the training numbers have trained vectors.

    Source: McLeish et al. (2024), arXiv 2405.17399, section 3, K = 99 as in its code. Vectors start
    at zero here.

    Traps: numbers must stand least digit first, as all tasks here write them, or equal ids are not
    equal places. The offset is one per batch, not per token. With a key-value cache the run goes on
    from the tokens before.

    Args:
        digits: ids of the tokens that are digits.
        rows: number of vectors.
        width: width of the token vectors.
        offset: the largest random offset K.

    >>> from lgcourse.embeddings.base import Context
    >>> pe = AbacusEmbedding(digits=range(10), rows=20, width=4, offset=9).eval()
    >>> tokens = torch.tensor([[3, 1, 4, 10, 1, 5, 11]])
    >>> pe.embed(torch.zeros(1, 7, 4), torch.arange(7), Context(tokens=tokens)).shape
    torch.Size([1, 7, 4])
    """

    digits: Tensor

    def __init__(self, digits: Iterable[int], rows: int, width: int, offset: int = OFFSET):
        super().__init__()
        self.register_buffer("digits", torch.tensor(list(digits)), persistent=False)
        self.offset = whole_number("offset", offset, 0)
        self.table = nn.Parameter(torch.zeros(rows, width))
        self.draws = Draws()

    def embed(self, x, positions, context=None):
        if context is None or context.tokens is None:
            raise InputError(
                "abacus counts digits: give embed a Context(tokens=...), as Transformer does"
            )
        ids = runs(torch.isin(context.tokens, self.digits))[:, positions]  # b l
        if self.training:
            if MEMORY not in context.memory:
                draw = torch.randint(self.offset + 1, (), generator=self.draws.next())
                context.memory[MEMORY] = int(draw)
            ids = torch.where(ids > 0, ids + context.memory[MEMORY], 0)
        check_range("abacus", ids.max(), len(self.table))
        return x + self.table[ids].to(x.dtype)


def digits_of(task) -> list[int]:
    """Return the ids of the tokens that are digits; an `InputError` where there are none."""
    if task is None:
        raise InputError("abacus counts the digits of a task's numbers: give a task")
    words = task.vocabulary
    found = [id for id, word in enumerate(words) if isinstance(words, str) and word.isdecimal()]
    if not found:
        raise InputError(
            f"abacus counts digits, and the tokens of task '{task.name}' are no digits; "
            "use another embedding, for instance ideal-sh"
        )
    return found


def abacus(name, task, width, heads, max_scale=None, positions=None, other="auto", offset=OFFSET):
    """Abacus embedding for the digits of a task, with a largest random ``offset``."""
    soft_only(name, other)
    found = digits_of(task)
    rows = positions_for(task, max_scale, positions) + whole_number("offset", offset, 0) + 1
    return AbacusEmbedding(found, rows, width, offset)
