"""Can a model find its relation by itself? Each head learns which values of forms it reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding, soft_only, wide
from lgcourse.embeddings.table import CONSTANT, EXCLUDED, STRENGTH
from lgcourse.errors import InputError
from lgcourse.relations.cells import CellRelation
from lgcourse.relations.forms import Form, Term

WINDOW = 3  # values -3..3 of each form can be named
PAIRS = ((0, 1), (1, -1), (1, 1), (1, -2))  # factors of i and j; (1, -2): two answers per operand
SOFT, PRUNED, FIXED = 0, 1, 2
PRUNE_AT, FIX_AT = 0.5, 0.8  # shares of the training at which the stages begin
COLDEST = 0.1  # temperature of the gates from PRUNE_AT on
LEAST = 1.0  # a cell of less strength is outweighed by many other keys, see `LearnedRelation`
JITTER = 2.5
LARGEST_CACHED = 2**20


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
    value |w| <= 3. Its strength is softmax(gate[h] / T)[f] table[h, f, w]. A pair's strength s is
    the sum over its cells; a pair in no cell has strength 0. Training goes through three stages:

    soft:    bias = 8 log(keys_i + 1) s, while T falls from 1 to 0.1: forms compete within a head.
    pruned:  cells with 8 s <= 1 are dropped and keys outside the rest are excluded; the length
             factor is multiplied by a draw from U(1, 2.5) per step.
    fixed:   the cells stay as they are, bias = 27 s: no factor depends on the length any more.

    The best of m keys outweighs each of the others by m^(8 s), so a cell with 8 s <= 1 would drown
    in a long input. The query itself always stays. What is left is a finite relation that can be
    read, one per head (`relation`), and a model that attends to nothing else.

    Source: learned positional relations after Chen, Liang and Lin (2025), arXiv 2510.04130; forms,
    gates and stages are this course's.

    Args:
        forms: the forms to choose from.
        heads: number of heads.

    >>> found = LearnedRelation(candidate_forms(), heads=2)
    >>> found.bias(torch.arange(4), torch.arange(4), scale=1).shape
    torch.Size([2, 4, 4])
    """

    per_layer = True
    recommended = {"layers": 1, "learning_rate": 6e-3, "steps": 1500}
    rates = {"gates": 2e-2}
    stage: Tensor
    temperature: Tensor
    kept: Tensor

    def __init__(self, forms: Sequence[Form], heads: int):
        super().__init__()
        self.forms, self.uses_scale = list(forms), any(form.uses_scale for form in forms)
        values = 2 * WINDOW + 1
        self.table = nn.Parameter(torch.zeros(heads, len(self.forms), values))
        self.gates = nn.Parameter(0.01 * torch.randn(heads, len(self.forms)))
        kept = torch.ones(heads, len(self.forms), values, dtype=torch.bool)
        self.register_buffer("kept", kept)
        self.register_buffer("stage", torch.tensor(SOFT))
        self.register_buffer("temperature", torch.tensor(1.0))
        self.jitter = 1.0
        self._cells: dict[tuple, Tensor] = {}

    def anneal(self, share: float, source: torch.Generator) -> None:
        """Set the stage, temperature and jitter of the next update."""
        self.temperature.fill_(COLDEST ** min(1.0, share / PRUNE_AT))
        self.stage.fill_(SOFT if share < PRUNE_AT else PRUNED if share < FIX_AT else FIXED)
        self.jitter = 1.0
        if PRUNE_AT <= share < FIX_AT:
            self.jitter += (JITTER - 1.0) * float(torch.rand((), generator=source))
            self.kept.copy_(STRENGTH * self.strength().detach() > LEAST)

    def strength(self) -> Tensor:
        """Return the strength of every cell, ``[h f w]``."""
        gate = torch.softmax(wide(self.gates) / self.temperature.to(wide(self.gates).dtype), dim=1)
        return gate[:, :, None] * wide(self.table)

    def bias(self, query, key, scale, context=None):
        cells = self._cells_of(query, key, scale)  # (f w) (q k)
        strength = self.strength()
        shape = (-1, len(query), len(key))
        if int(self.stage) == SOFT:
            return self._factor(query, strength) * (strength.flatten(1) @ cells).view(shape)
        summed = ((strength * self.kept).flatten(1) @ cells).view(shape)
        inside = (self.kept.flatten(1).to(cells.dtype) @ cells).view(shape) > 0
        own = query[:, None] == key[None, :]
        return (self._factor(query, strength) * summed).masked_fill(~(inside | own), EXCLUDED)

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
        """The relation of each head, strongest cell first; None before the first pruning."""
        if int(self.stage) == SOFT:
            return None
        return [
            CellRelation(self.cells(head), f"head {head + 1}") for head in range(len(self.kept))
        ]

    def cells(self, head: int) -> list[tuple[Form, int]]:
        """Return the kept cells of a head, strongest first."""
        strength = self.strength()[head].detach()
        places = self.kept[head].nonzero().tolist()
        places.sort(key=lambda place: -float(strength[place[0], place[1]]))
        return [(self.forms[f], w - WINDOW) for f, w in places]

    def words(self) -> list[str]:
        """Return what each head reads, in words."""
        relations = self.relation or []
        return [
            f"head {h}: " + (" or ".join(map(phi.label, range(phi.other))) or "itself only")
            for h, phi in enumerate(relations, start=1)
        ]

    def _factor(self, query, like):
        """The length factor of each query, ``[q 1]``, or the constant of the fixed stage."""
        if int(self.stage) == FIXED:
            return CONSTANT
        factor = STRENGTH * torch.log((query + 2).to(like.dtype))[:, None]  # keys_i + 1 = i + 2
        return factor * (self.jitter if self.training else 1.0)

    def _cells_of(self, query, key, scale):
        """Return which pair lies in which cell, as numbers ``[(f w) (q k)]``."""
        self._need(scale)
        dtype = wide(self.table).dtype
        place = (scale, len(query), len(key), query.device, dtype)
        whole = torch.equal(query, key) and int(query[0]) == 0  # a whole sequence: as at each step
        if whole and place in self._cells:
            return self._cells[place]
        values = torch.stack(
            [form(query[:, None], key[None, :], scale) for form in self.forms]
        )  # f q k
        window = torch.arange(-WINDOW, WINDOW + 1, device=query.device)
        cells = (values[:, None] == window[None, :, None, None]).to(dtype)  # f w q k
        cells = cells.flatten(0, 1).flatten(1)
        # a tensor made in inference mode could not be used in training later
        if whole and cells.numel() < LARGEST_CACHED and not torch.is_inference_mode_enabled():
            self._cells[place] = cells
        return cells

    def _named_by(self, head, query, scale):
        """Return the keys that a head reads and their bias, ``[q r]``; the query comes last."""
        relation = CellRelation(self.cells(head))
        keys, _ = relation.named(query, scale)
        own = torch.where((keys == query[:, None]).any(1), -1, query)  # once only
        keys = torch.cat([keys, own[:, None]], dim=1)
        strength = self.strength()[head]
        summed = torch.zeros(keys.shape, dtype=strength.dtype, device=query.device)
        for f, w in self.kept[head].nonzero().tolist():
            holds = self.forms[f](query[:, None], keys, scale) == w - WINDOW
            summed = summed + torch.where(holds, strength[f, w], 0.0)
        return keys, (CONSTANT * summed).masked_fill(keys < 0, EXCLUDED)

    def _need(self, scale):
        if scale is None and self.uses_scale:
            raise InputError("a learned relation with Scale Hint needs the scale of the instance")

    def __deepcopy__(self, memo):
        copied = type(self)(self.forms, len(self.kept)).to(self.table.device, self.table.dtype)
        copied.load_state_dict(self.state_dict())
        return copied.train(self.training)


def learned_relation(name, task, width, heads, max_scale=None, positions=None, other="auto"):
    """A learned relation: forms in i and j for lbpe, in i, j and n for lbpe-sh (Scale Hint)."""
    if other == "soft":
        raise InputError(f"'{name}' ends with 'other' excluded; use other='auto'")
    if other != "excluded":
        soft_only(name, other)
    return LearnedRelation(candidate_forms(getattr(task, "sizes", 1), name.endswith("-sh")), heads)
