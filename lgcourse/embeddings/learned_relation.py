"""Can a model find its relation by itself? Each head learns which values of forms it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, wide
from lgcourse.embeddings.segments import SegmentVectors
from lgcourse.embeddings.table import CONSTANT, EXCLUDED, STRENGTH
from lgcourse.errors import InputError
from lgcourse.relations.base import positions_for
from lgcourse.relations.cells import CellRelation
from lgcourse.relations.forms import Form, Term

WINDOW = 3  # with a hint, values -3..3 of each form can be named
PAIRS = ((0, 1), (1, -1), (1, 1), (1, -2))  # factors of i and j; (1, -2): two answers per operand
SOFT, CHOSEN, FIXED = 0, 1, 2
CHOOSE_AT, FIX_AT = 0.45, 0.6  # shares of the training at which the stages begin
COLDEST = 0.1  # temperature of the gates from CHOOSE_AT on
TRIED, LEAST = 0.1, 0.5  # 8 s of cells that are chosen, and of those that are kept to the end
SPARE = 0.3  # nats that dropping cells may add to the loss at the worst place
JITTER = 2.5


def candidate_forms(sizes: int = 1, hinted: bool = True) -> list[Form]:
    """Return the forms a i + b j - c n that a head can choose from, c in {0, 1, 2} with a hint.

    >>> candidate_forms(hinted=False)
    [j, i - j, i + j, i - 2j]
    >>> len(candidate_forms()), len(candidate_forms(sizes=2))
    (12, 36)
    """
    steps = list(product(range(3), repeat=sizes)) if hinted else [(0,) * sizes]
    return [
        Form(a, b, tuple(-c for c in row) if sizes > 1 else -row[0])
        for a, b in PAIRS
        for row in steps
    ]


class LearnedRelation(PositionEmbedding):
    """LBPE: the relation itself is learned with the model, from the task's loss alone.

    A cell (f, w) of a head h holds the pairs with u_f(i, j, n) = w, for an integer form u_f and a
    value |w| <= window. Its strength is softmax(gate[h] / T)[f] table[h, f, w]. A pair's strength s
    is the sum over its cells; a pair in no cell has strength 0. Training goes through three stages:

    soft:    bias = 8 log(keys_i + 1) s, while T falls from 1 to 0.1: forms compete within a head.
    chosen:  once, the cells with 8 s > 0.1 are chosen and the gates stop; from then on keys outside
             the chosen cells are excluded. The length factor is multiplied by a draw from U(1, 2.5)
             per step, so that the model meets the sharp attention of long inputs.
    fixed:   once, cells with 8 s <= 0.5 are dropped, and then, the weakest first, all without which
             the loss at the worst place of an answer stays nearly the same; bias = 27 s: no factor
             depends on the length any more.

    Cells are chosen generously: where several forms name the same rare pair, such as the key of a
    first step, each of them can do with little strength. With all else excluded the needed ones
    grow. Dropping asks for the fewest keys: what a step reads beside its operands is noise, and
    among more tokens there are more combinations that training never shows. The query itself always
    stays. What is left is a finite relation that can be read, one per head (`relation`), and a
    model that attends to nothing else.

    Source: learned positional relations after Chen, Liang and Lin (2025), arXiv 2510.04130; forms,
    gates and stages are this course's.

    Args:
        forms: the forms to choose from.
        heads: number of heads.
        window: the largest absolute value of a form that a cell can name.
        segments: vectors for the parts of the input, added to the tokens; None: none.

    >>> found = LearnedRelation(candidate_forms(), heads=2)
    >>> found.bias(torch.arange(4), torch.arange(4), scale=1).shape
    torch.Size([2, 4, 4])
    """

    per_layer = True
    rates = {"gates": 2e-2}
    stage: Tensor
    temperature: Tensor
    kept: Tensor

    def __init__(
        self,
        forms: Sequence[Form],
        heads: int,
        window: int = WINDOW,
        segments: SegmentVectors | None = None,
    ):
        super().__init__()
        self.forms, self.window, self.segments = list(forms), window, segments
        self.uses_scale = any(form.uses_scale for form in self.forms)
        sizes = len(self.forms[0].factors)  # more sizes, more forms to choose from: more steps
        self.recommended = {"layers": 1, "learning_rate": 6e-3, "steps": 1400 * sizes}
        cells = (heads, len(self.forms), 2 * window + 1)
        self.table = nn.Parameter(torch.zeros(cells))
        self.gates = nn.Parameter(0.01 * torch.randn(heads, len(self.forms)))
        self.register_buffer("kept", torch.ones(cells, dtype=torch.bool))
        self.register_buffer("stage", torch.tensor(SOFT))
        self.register_buffer("temperature", torch.tensor(1.0))
        self.jitter = 1.0
        self._cells: dict[tuple, tuple[Tensor, Tensor]] = {}

    def anneal(
        self, share: float, source: torch.Generator, loss: Callable[[], float] | None = None
    ) -> None:
        """Set the stage, temperature and jitter of the next update."""
        self.temperature.fill_(COLDEST ** min(1.0, share / CHOOSE_AT))
        if share >= CHOOSE_AT and int(self.stage) == SOFT:
            self.kept.copy_(STRENGTH * self.strength().detach() > TRIED)
        if share >= FIX_AT and int(self.stage) == CHOSEN:
            self.kept &= STRENGTH * self.strength().detach() > LEAST
            self.stage.fill_(FIXED)
            if loss is not None:
                self._drop(loss)
        self.stage.fill_(SOFT if share < CHOOSE_AT else CHOSEN if share < FIX_AT else FIXED)
        self.jitter = 1.0
        if int(self.stage) == CHOSEN:
            self.jitter += (JITTER - 1.0) * float(torch.rand((), generator=source))

    def _drop(self, loss: Callable[[], float]) -> None:
        """Drop every cell that can be spared, the weakest first."""
        strength, bound = self.strength().detach(), loss() + SPARE
        cells = [(float(strength[h, f, w]), h, f, w) for h, f, w in self.kept.nonzero().tolist()]
        for _, h, f, w in sorted(cells):
            self.kept[h, f, w] = False
            if loss() > bound:
                self.kept[h, f, w] = True

    def strength(self) -> Float[Tensor, "h f w"]:
        """Return the strength of every cell; the gates learn in the soft stage only."""
        gates = wide(self.gates if int(self.stage) == SOFT else self.gates.detach())
        share = torch.softmax(gates / self.temperature.to(gates.dtype), dim=1)
        return share[:, :, None] * wide(self.table)

    def embed(self, x, positions, context=None):
        return x if self.segments is None else self.segments(x, context)

    def bias(self, query, key, scale, context=None):
        cell, pair = self._cells_of(query, key, scale)
        shape = (len(self.kept), len(query), len(key))

        def spread(values: Float[Tensor, "h f w"]) -> Float[Tensor, "h q k"]:
            """Add up, for every pair, the values of its cells."""
            empty = values.new_zeros(shape).flatten(1)
            return empty.index_add(1, pair, values.flatten(1)[:, cell]).view(shape)

        strength = self.strength()
        if int(self.stage) == SOFT:
            return self._factor(query, strength) * spread(strength)
        inside = spread(self.kept.to(strength.dtype)) > 0
        own = query[:, None] == key[None, :]
        bias = self._factor(query, strength) * spread(strength * self.kept)
        return bias.masked_fill(~(inside | own), EXCLUDED)

    def named(self, query, scale):
        if int(self.stage) != FIXED:
            return None
        self._need(scale)
        rows = [self._named_by(head, query, scale) for head in range(len(self.kept))]
        slots = max(keys.shape[1] for keys, _ in rows)
        room = [slots - keys.shape[1] for keys, _ in rows]
        pad = nn.functional.pad
        keys = torch.stack([pad(k, (0, r), value=-1) for (k, _), r in zip(rows, room, strict=True)])
        bias = [pad(b, (0, r), value=EXCLUDED) for (_, b), r in zip(rows, room, strict=True)]
        return keys, torch.stack(bias)

    def named_terms(self):
        if int(self.stage) != FIXED:
            return None
        return [
            [Term((form, value), form, value) for form, value in self.cells(head)]
            for head in range(len(self.kept))
        ]

    @property
    def relation(self):  # type: ignore[override]
        """The relation of each head, strongest cell first; None before the cells are chosen.

        The last cell is i - j = 0, the query itself, which every head keeps.
        """
        if int(self.stage) == SOFT:
            return None
        form = self.forms[0]
        own = Form(1, -1, (0,) * len(form.factors) if isinstance(form.c, tuple) else 0), 0
        heads = [self.cells(head) for head in range(len(self.kept))]
        parts = self.segments is not None
        return [
            CellRelation(cells if own in cells else [*cells, own], f"head {head}", parts)
            for head, cells in enumerate(heads, start=1)
        ]

    def cells(self, head: int) -> list[tuple[Form, int]]:
        """Return the chosen cells of a head, strongest first."""
        strength = self.strength()[head].detach()
        places = self.kept[head].nonzero().tolist()
        places.sort(key=lambda place: -float(strength[place[0], place[1]]))
        return [(self.forms[f], w - self.window) for f, w in places]

    def words(self) -> list[str]:
        """Return what each head reads, in words."""
        if int(self.stage) == SOFT:
            return []
        heads = [self.cells(head) for head in range(len(self.kept))]
        return [
            f"head {h}: " + (" or ".join(f"{form} = {w}" for form, w in cells) or "itself only")
            for h, cells in enumerate(heads, start=1)
        ]

    def _factor(self, query, like):
        """The length factor of each query, ``[q 1]``, or the constant of the fixed stage."""
        if int(self.stage) == FIXED:
            return CONSTANT
        factor = STRENGTH * torch.log((query + 2).to(like.dtype))[:, None]  # keys_i + 1 = i + 2
        return factor * (self.jitter if self.training else 1.0)

    def _cells_of(self, query, key, scale) -> tuple[Int[Tensor, " m"], Int[Tensor, " m"]]:
        """Return all m memberships: which cell (f w) holds which pair (q k)."""
        self._need(scale)
        place = (scale, len(query), len(key), query.device)
        count, every = len(key), torch.arange(len(key), device=key.device)
        whole = torch.equal(key, every) and torch.equal(query, every[count - len(query) :])
        if whole and place in self._cells:  # the last queries of a whole input: as at each step
            return self._cells[place]
        i, j = query[:, None], key[None, :]
        values = torch.stack([form(i, j, scale).expand(len(query), -1) for form in self.forms])
        inside = (values.abs() <= self.window) & (j <= i)  # f q k
        form, row, column = inside.nonzero(as_tuple=True)
        cell = form * (2 * self.window + 1) + values[inside] + self.window
        found = cell, row * len(key) + column
        # a tensor made in inference mode could not be used in training later
        if whole and not torch.is_inference_mode_enabled():
            self._cells[place] = found
        return found

    def _named_by(self, head, query, scale):
        """Return the keys that a head reads and their bias, ``[q r]``; the query comes last."""
        relation = CellRelation(self.cells(head))
        keys, _ = relation.named(query, scale)
        own = torch.where((keys == query[:, None]).any(1), -1, query)  # once only
        keys = torch.cat([keys, own[:, None]], dim=1)
        strength = self.strength()[head]
        summed = torch.zeros(keys.shape, dtype=strength.dtype, device=query.device)
        for f, w in self.kept[head].nonzero().tolist():
            holds = self.forms[f](query[:, None], keys, scale) == w - self.window
            summed = summed + torch.where(holds, strength[f, w], 0.0)
        return keys, (CONSTANT * summed).masked_fill(keys < 0, EXCLUDED)

    def _need(self, scale):
        if scale is None and self.uses_scale:
            raise InputError("a learned relation with Scale Hint needs the scale of the instance")


def learned_relation(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """A learned relation: forms in i and j for lbpe, in i, j and n for lbpe-sh (Scale Hint)."""
    if other not in ("auto", "excluded"):
        raise InputError(f"'{name}' ends with 'other' excluded; use other='auto', not {other!r}")
    hinted = name.endswith("-sh")
    window = WINDOW if hinted else positions_for(task, max_scale, positions) - 1
    segments = None if task is None else SegmentVectors.of(task, width)
    forms = candidate_forms(getattr(task, "sizes", 1), hinted)
    return LearnedRelation(forms, heads, window, segments)
