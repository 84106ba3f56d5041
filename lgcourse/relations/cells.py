"""What does a learned relation look like? A few cells "form = value", such as i - j - n = 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lgcourse.errors import InputError
from lgcourse.relations.base import Relation
from lgcourse.relations.forms import Form, Term


class CellRelation(Relation):
    """The relation whose ids are single values of integer forms; every other pair is "other".

    id(i, j, n) = the first r with u_r(i, j, n) = w_r, for the cells (u_0, w_0), (u_1, w_1), ...

    Args:
        cells: pairs of a `Form` and a value; where two hold, the earlier one gives the id.
        name: what tables and figures call it.
        parts: whether tokens carry the number of their part of the input beside this relation, as
            with `lgcourse.embeddings.segments.SegmentVectors`.
        layer: number of the layer whose head reads by it, from 1.

    Raises:
        InputError: a form does not depend on the key, so it would name all keys or none.

    >>> phi = CellRelation([(Form(1, -1, -1), 0), (Form(1, -1), 1)], name="found")
    >>> phi(torch.tensor([6]), torch.arange(7), scale=4)
    tensor([[2, 2, 0, 2, 2, 1, 2]])
    >>> phi.label(0), phi.label(2)
    ('i - j - n = 0', 'other')
    """

    def __init__(
        self,
        cells: Sequence[tuple[Form, int]],
        name: str = "cells",
        parts: bool = False,
        layer: int = 1,
    ):
        self.cells, self.name, self.parts, self.layer = list(cells), name, parts, layer
        for form, _ in self.cells:
            if not form.b:
                raise InputError(f"form {form} does not depend on the key j; give it a factor b")
        self.uses_scale = any(form.uses_scale for form, _ in self.cells)
        self.other = len(self.cells)
        self.size = self.other + 1

    def ids(self, query, key, scale):
        return self.at(query, key, scale)

    def at(self, query, key, scale=None):
        scale = 1 if scale is None else scale
        ids = torch.full_like(query + key, len(self.cells))
        for id, (form, value) in reversed(list(enumerate(self.cells))):
            ids = torch.where(form(query, key, scale) == value, id, ids)
        return ids

    def named(self, query, scale=None):
        scale = 1 if scale is None else scale
        keys = query.new_full((len(query), len(self.cells)), -1)
        ids = torch.arange(len(self.cells), device=query.device).expand(len(query), -1)
        for id, (form, value) in enumerate(self.cells):
            key = torch.div(value - form(query, 0, scale), form.b, rounding_mode="floor")
            known = (key >= 0) & (key <= query) & (self.at(query, key, scale) == id)
            keys[:, id] = torch.where(known, key, -1)
        return keys, ids

    def terms(self):
        return [
            Term(id, form, value, unless=tuple(self.cells[:id]))
            for id, (form, value) in enumerate(self.cells)
        ]

    def label(self, id):
        if id == self.other:
            return "other"
        form, value = self.cells[id]
        return f"{form} = {value}"
