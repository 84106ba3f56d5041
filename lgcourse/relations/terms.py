"""How can a relation be said for every scale at once? By a few terms "form = value, for queries".

Such a relation can be evaluated at a million queries without a table, and a program can reason
about all its scales.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from math import gcd

import torch

from lgcourse.errors import InputError
from lgcourse.relations.affine import Affine
from lgcourse.relations.base import Relation
from lgcourse.relations.forms import Form, Guard, Term


class TermRelation(Relation):
    """The relation whose ids are given by terms; every pair in no term is "other".

    id(i, j, n) = the number of the role of the term that holds for (i, j, n).

    Terms are meant to exclude each other: two of one guard never hold for the same pair, and
    two with different guards never hold for the same query. The ideal relation of a circuit is so.

    Args:
        terms: the terms; their ``id`` is a role, any hashable label. Terms with the same role share
            an id.
        name: what tables and figures call it.
        roles: the order in which roles are numbered; others follow in the order of the terms.

    Raises:
        InputError: a form does not depend on the key.

    >>> from lgcourse.relations.affine import N
    >>> copied = Term("source", Form(1, -1, -1), 0, low=N, high=2 * N - 1)
    >>> phi = TermRelation([copied], "copy")
    >>> phi(torch.tensor([2, 3, 4, 5, 6]), torch.arange(4), scale=3)
    tensor([[1, 1, 1, 1],
            [0, 1, 1, 1],
            [1, 0, 1, 1],
            [1, 1, 0, 1],
            [1, 1, 1, 1]])
    >>> phi.terms()
    [i - j - n = 0 for n <= i <= 2n - 1: id 0]
    """

    def __init__(self, terms: Iterable[Term], name: str, roles: Iterable[Hashable] = ()):
        self.name, self._terms = name, list(terms)
        for term in self._terms:
            if not term.form.b:
                raise InputError(
                    f"form {term.form} does not depend on the key j; give it a factor b"
                )
        order = dict.fromkeys([*roles, *(term.id for term in self._terms)])
        self.roles = {role: index for index, role in enumerate(order)}
        self.uses_scale = any(term.uses_scale for term in self._terms)
        self.other = len(self.roles)
        self.size = self.other + 1
        self._rows: dict[Guard, list[Term]] = {}
        for term in self._terms:
            self._rows.setdefault(term.guard, []).append(term)

    def terms(self):
        return [replace(term, id=self.roles[term.id]) for term in self._terms]

    def ids(self, query, key, scale):
        return self.at(query, key, scale)

    def at(self, query, key, scale=None):
        scale = 1 if scale is None else scale
        ids = torch.full_like(query + key, self.size - 1)
        for rows in self._rows.values():
            inside = rows[0].allows(query, scale)
            for term in rows:
                ids = torch.where(inside & term.hits(query, key, scale), self.roles[term.id], ids)
        return ids

    def named(self, query, scale=None):
        scale = 1 if scale is None else scale
        slots = max(map(len, self._rows.values()), default=1)
        keys = query.new_full((slots, len(query)), -1)
        ids = torch.full_like(keys, self.size - 1)
        for rows in self._rows.values():
            inside = rows[0].allows(query, scale)
            for slot, term in enumerate(rows):
                key = term.key(query, scale)
                found = inside & (key >= 0)
                keys[slot] = torch.where(found, key, keys[slot])
                ids[slot] = torch.where(found, self.roles[term.id], ids[slot])
        return keys.T, ids.T

    def label(self, id):
        if id == self.other:
            return "other"
        role = next(role for role, index in self.roles.items() if index == id)
        return " ".join(map(str, role)) if isinstance(role, tuple) else str(role)


def term_of(
    role: Hashable,
    query: Affine,
    key: Affine,
    first: Affine,
    last: Affine,
    step: int = 1,
    where: tuple[Affine, ...] = (),
    sizes: int = 1,
) -> Term:
    """Return the term that names key(t, n) at query(t, n) for t = first, first + step, .., last.

    With query = s t + ... and key = c t + ..., eliminating t gives s key - c query, free of t.

    Args:
        role: what the key is for the query.
        query, key: their positions; the query moves on with t.
        first, last: the range of t, expressions in the sizes.
        step: how far t goes at once.
        where: expressions in the sizes that must be at least 0.
        sizes: how many sizes a scale has.

    >>> from lgcourse.relations.affine import N, T
    >>> term_of("source", query=N + T - 1, key=T - 1, first=Affine(1), last=N)
    i - j - n = 0 for n <= i <= 2n - 1: id source
    """
    speed, pace = query.t_factor, key.t_factor
    if speed < 1:
        raise InputError(f"the query {query} of a step does not move on with t")
    rest = key * speed - query * pace  # = speed j - pace i, free of t
    a, b, constant = pace, -speed, rest.constant
    factors = [rest.factor(k) for k in range(sizes)]
    if a < 0 or (a == 0 and b < 0):
        a, b, constant, factors = -a, -b, -constant, [-c for c in factors]
    common = gcd(a, b, constant, *factors)
    a, b, constant = a // common, b // common, constant // common
    factors = [c // common for c in factors]
    form = Form(a, b, tuple(factors) if sizes > 1 else factors[0])
    guard = (query.put(first), query.put(last), speed * step, where)
    return Term(role, form, -constant, *guard)
