"""How does attention use a relation? A learned number per head and id, added to the scores."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from lgcourse.embeddings.base import PositionEmbedding, look_up, soft_only, wide
from lgcourse.errors import InputError
from lgcourse.relations import build as build_relation
from lgcourse.relations.base import Relation

STRENGTH = 8.0  # turns table entries of size about 1 into weights that outlast many keys
CONSTANT = 27.0
EXCLUDED = float("-inf")


class RelationTable(PositionEmbedding):
    """A learned table over a relation, as an additive bias per head h.

    other = "soft":      bias[h, i, j] = 8 log(keys_i + 1) table[h, phi(i, j, n)]
    other = "excluded":  bias[h, i, j] = 27 table[h, phi(i, j, n)], minus infinity for the id
                         "other"; the query itself always stays.

    keys_i = i + 1 is the number of keys that query i sees. Softmax over m keys spreads: a fixed gap
    between operand and other keys is outweighed when m grows. A gap that grows as log(m) is not.
    The factor multiplies the positional term only; scores of content are left as they are. Where
    "other" is excluded no factor may depend on the number of keys: 27 is 8 log(30), about the
    factor of the longest training inputs, so that both modes learn at the same speed.

    A limit of "excluded": attention averages, so where all operands hold the same token, a step
    looks alike however many operands it has. Steps that must answer differently have to differ in a
    token that they read (see `lgcourse.tasks.addition.Addition`).

    Source: a relation gives ids as in T5's scalar bias, Raffel et al. (2020), arXiv 1910.10683; the
    length factor and the exclusion are this course's.

    Args:
        relation: the positional relation.
        heads: number of heads, each with a row of its own.
        other: ``"soft"`` or ``"excluded"``.

    Raises:
        InputError: ``other`` is neither, or the relation has no id "other" to exclude.

    >>> table = RelationTable(build_relation("rpe", positions=8), heads=2)
    >>> table.bias(torch.arange(3), torch.arange(3), scale=1).shape
    torch.Size([2, 3, 3])
    """

    relation: Relation
    per_layer = True

    def __init__(self, relation: Relation, heads: int, other: str = "soft"):
        super().__init__()
        if other not in ("soft", "excluded"):
            raise InputError(f"other must be 'soft' or 'excluded', got {other!r}")
        if other == "excluded" and relation.other is None:
            soft_only(relation.name, other)
        self.relation, self.other = relation, other
        self.table = nn.Parameter(torch.zeros(heads, relation.size))
        if relation.other is not None:  # the relation names few keys: one layer can read them all
            self.recommended = {"layers": 1, "learning_rate": 6e-3, "steps": 1000}

    def bias(self, query, key, scale, context=None):
        ids = self.relation(query, key, scale)
        strength = wide(self.table[:, ids])  # h q k
        return self._weigh(strength, ids, query[:, None], key[None, :])

    def bias_at(self, head, query, key, scale):
        self._need(scale)
        ids = self.relation.at(query, key, scale)
        return self._weigh(look_up(self.table, head, ids, query, key), ids, query, key)

    def _weigh(self, strength, ids, query, key):
        if self.other == "soft":
            keys = (query + 1).to(strength.dtype)
            return STRENGTH * torch.log(keys + 1) * strength
        outside = (ids == self.relation.other) & (query != key)
        return (CONSTANT * strength).masked_fill(outside, EXCLUDED)

    def _need(self, scale):
        if scale is None and self.relation.uses_scale:
            raise InputError(
                f"relation '{self.relation.name}' uses a Scale Hint: give the scale of the instance"
            )

    def named(self, query, scale):
        if self.other == "soft":
            return None
        self._need(scale)
        keys, ids = self.relation.named(query, scale)
        itself = self.relation.at(query, query, scale)
        alone = torch.eq(itself, cast(int, self.relation.other))  # else it is among the named
        keys = torch.cat([keys, torch.where(alone, query, -1)[:, None]], dim=1)
        ids = torch.cat([ids, itself[:, None]], dim=1)
        strength = CONSTANT * wide(self.table[:, ids])  # h q r
        return keys.expand_as(strength), strength.masked_fill(keys < 0, EXCLUDED)

    def named_terms(self):
        terms = None if self.other == "soft" else self.relation.terms()
        return None if terms is None else [terms]


def table(name, task, width, heads, max_scale=None, positions=None, other="auto", **options):
    """Learned table over the relation of the same name; an id "other" is excluded by default."""
    relation = build_relation(name, task, max_scale=max_scale, positions=positions, **options)
    if other == "auto":
        other = "soft" if relation.other is None else "excluded"
    return RelationTable(relation, heads, other)
