"""Which relations are made of integer-linear forms u = a i + b j + c n of query, key and scale?

None, APE, RPE, and their versions with Scale Hint. A form names a diagonal of the attention square;
a relation made of forms gives each pair the form whose value is nearest to 0, and that value. The
Scale Hint is nothing but c != 0.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product

import torch

from lgcourse.errors import InputError
from lgcourse.relations.affine import Affine, signed_sum
from lgcourse.relations.base import Relation, Scale, positions_for, sizes_of

Guard = tuple[Affine | None, Affine | None, int, tuple[Affine, ...]]


@dataclass(frozen=True)
class Form:
    """An integer-linear form u(i, j, n) = a i + b j + c n.

    Args:
        a: factor of the query position i.
        b: factor of the key position j.
        c: factor of the scale n; a tuple for tasks with several sizes.

    >>> Form(1, -1, -2)
    i - j - 2n
    >>> Form(1, -1, -2)(9, 4, 2)
    1
    """

    a: int
    b: int
    c: int | tuple[int, ...] = 0

    @property
    def factors(self) -> tuple[int, ...]:
        """The factors of the sizes, as a tuple."""
        return self.c if isinstance(self.c, tuple) else (self.c,)

    @property
    def uses_scale(self) -> bool:
        """Whether the value depends on the scale."""
        return any(self.factors)

    def __call__(self, query, key, scale: Scale = 1):
        """Return a i + b j + c n for numbers or tensors that broadcast."""
        value = self.a * query + self.b * key
        if not self.uses_scale:
            return value
        sizes = sizes_of(scale)
        if len(sizes) != len(self.factors):
            raise InputError(
                f"form {self} takes {len(self.factors)} size(s), got {len(sizes)} in {scale!r}"
            )
        return value + sum(c * n for c, n in zip(self.factors, sizes, strict=True))

    def __repr__(self) -> str:
        count = len(self.factors)
        letters = ["n"] if count == 1 else [f"n{k + 1}" for k in range(count)]
        parts = zip((self.a, self.b, *self.factors), ("i", "j", *letters), strict=True)
        return signed_sum(list(parts)) or "0"


@dataclass(frozen=True)
class Term:
    """One entry of a relation that is made of forms: where form(i, j, n) = value, the id is this.

    A relation says its terms with `Relation.terms`; that is all that a program needs to know of it
    at every scale.

    Args:
        id: the id, or the role that a relation gives an id.
        form, value: the pairs that it names.
        low, high: the first and last query that it holds for, expressions in the sizes; None: no
            bound.
        step: it holds for every step-th query from ``low`` on.
        where: expressions in the sizes; it holds where all are at least 0.
        unless: pairs (form, value); it does not hold where one of these does.

    >>> Term(0, Form(1, -1, -1), 0, low=Affine(4), unless=((Form(1, -1), 1),))
    i - j - n = 0 for 4 <= i, unless i - j = 1: id 0
    """

    id: Hashable
    form: Form
    value: int
    low: Affine | None = None
    high: Affine | None = None
    step: int = 1
    where: tuple[Affine, ...] = ()
    unless: tuple[tuple[Form, int], ...] = ()

    @property
    def guard(self) -> Guard:
        """What must hold for the query and the scale, whatever the key."""
        return self.low, self.high, self.step, self.where

    @property
    def uses_scale(self) -> bool:
        """Whether it depends on the scale."""
        forms = [self.form, *(form for form, _ in self.unless)]
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        return any(form.uses_scale for form in forms) or any(
            not bound.is_constant for bound in (*bounds, *self.where)
        )

    def allows(self, query, scale: Scale):
        """Return for which queries the guard holds."""
        sizes = sizes_of(scale)
        held = query >= 0
        if not all(bound(sizes=sizes) >= 0 for bound in self.where):
            return held & False
        if self.low is not None:
            low = self.low(sizes=sizes)
            held = held & (query >= low)
            if self.step > 1:
                held = held & ((query - low) % self.step == 0)
        return held if self.high is None else held & (query <= self.high(sizes=sizes))

    def hits(self, query, key, scale: Scale):
        """Return for which pairs the form has the value, and nothing in ``unless`` holds."""
        held = self.form(query, key, scale) == self.value
        for form, value in self.unless:
            held = held & (form(query, key, scale) != value)
        return held

    def key(self, query, scale: Scale):
        """Return the key that each query (a tensor) finds, -1 where there is none.

        The guard is left to `allows`.
        """
        wanted = self.value - self.form(query, 0, scale)  # = b j
        key = torch.div(wanted, self.form.b, rounding_mode="floor")
        found = (key >= 0) & (key <= query) & self.hits(query, key, scale)
        return torch.where(found, key, -1)

    def __repr__(self) -> str:
        text = f"{self.form} = {self.value}"
        below = "" if self.low is None else f"{self.low} <= "
        above = "" if self.high is None else f" <= {self.high}"
        stride = "" if self.step == 1 else f" in steps of {self.step}"
        bounds = [f"{below}i{above}{stride}"] if below or above else []
        bounds += [f"{bound} >= 0" for bound in self.where]
        text += f" for {' and '.join(bounds)}" if bounds else ""
        apart = " or ".join(f"{form} = {value}" for form, value in self.unless)
        return f"{text}{f', unless {apart}' if apart else ''}: id {self.id}"


class FormRelation(Relation):
    """The relation that gives a pair its nearest form and that form's value, within a window.

    With forms u_0, u_1, ... and a window low..high, let f be the form with the smallest
    |u_f(i, j, n)| inside the window (ties go to the earlier form):
    id(i, j, n) = f (high - low + 1) + u_f(i, j, n) - low. If none lies inside, the id is "other".

    Args:
        forms: the forms, nearest first in case of ties.
        low, high: the window of values, both included.
        name: what tables and figures call it.
        beyond: ``"other"``, or ``"error"``: a causal pair outside the window is an `InputError`.

    >>> phi = FormRelation([Form(1, -1), Form(1, -1, -1)], -1, 1, name="example")
    >>> phi(torch.tensor([9]), torch.arange(10), scale=4)
    tensor([[6, 6, 6, 6, 5, 4, 3, 6, 2, 1]])
    >>> phi.label(4)
    'i - j - n = 0'
    """

    def __init__(self, forms, low: int, high: int, name: str, beyond: str = "other"):
        self.forms, self.low, self.high, self.name = list(forms), low, high, name
        self.uses_scale = any(form.uses_scale for form in self.forms)
        self.width = high - low + 1
        self.size = len(self.forms) * self.width
        if beyond == "other":
            self.other = self.size
            self.size += 1

    def ids(self, query, key, scale):
        ids = self.at(query, key, scale)
        if self.other is None:
            self._refuse_outside((ids < 0) & (key <= query), query, key)
        return ids.clamp(min=0)

    def at(self, query, key, scale=None):
        scale = 1 if scale is None else scale
        best = torch.full(torch.broadcast_shapes(query.shape, key.shape), -1, device=query.device)
        distance = torch.full_like(best, torch.iinfo(torch.int64).max)
        for index, form in enumerate(self.forms):
            value = form(query, key, scale).expand_as(best)
            nearer = (value >= self.low) & (value <= self.high) & (value.abs() < distance)
            distance = torch.where(nearer, value.abs(), distance)
            best = torch.where(nearer, index * self.width + value - self.low, best)
        return best if self.other is None else torch.where(best < 0, self.other, best)

    def named(self, query, scale=None):
        if self.other is None or not all(form.b for form in self.forms):
            return super().named(query, scale)
        scale = 1 if scale is None else scale
        slots = []
        for index, form in enumerate(self.forms):
            rest = form(query, 0, scale)  # u = rest + b j
            for value in range(self.low, self.high + 1):
                key = torch.div(value - rest, form.b, rounding_mode="floor")
                id = index * self.width + value - self.low
                known = (key >= 0) & (key <= query) & (self.at(query, key, scale) == id)
                slots.append((torch.where(known, key, -1), torch.full_like(key, id)))
        keys, ids = zip(*slots, strict=True)
        return torch.stack(keys, dim=1), torch.stack(ids, dim=1)

    def terms(self):
        return [
            Term(
                index * self.width + value - self.low,
                form,
                value,
                unless=tuple(self._nearer(index, value)),
            )
            for index, form in enumerate(self.forms)
            for value in range(self.low, self.high + 1)
        ]

    def _nearer(self, index: int, value: int):
        """Yield which values of the other forms come before this value of this form."""
        for other, form in enumerate(self.forms):
            for near in range(self.low, self.high + 1):
                tie = abs(near) == abs(value) and other < index
                if other != index and (abs(near) < abs(value) or tie):
                    yield form, near

    def _refuse_outside(self, outside, query, key):
        if outside.any():
            row, column = outside.nonzero()[0].tolist()
            raise InputError(
                f"relation '{self.name}' knows {self.forms[0]} = {self.low}..{self.high}; query "
                f"{int(query[row, 0])} and key {int(key[0, column])} lie outside: build it with a "
                "larger max_scale or more positions"
            )

    def label(self, id):
        if id == self.other:
            return "other"
        form, offset = divmod(id, self.width)
        return f"{self.forms[form]} = {offset + self.low}"


class Constant(Relation):
    """The relation of a model without position embedding (NoPE): every pair has id 0."""

    name, size = "none", 1

    def ids(self, query, key, scale):
        return torch.zeros_like(query + key)

    def label(self, id):
        return "any"


def none(task=None, max_scale=None, positions=None) -> Relation:
    """NoPE: phi = 0."""
    return Constant()


def ape(task=None, max_scale=None, positions=None) -> Relation:
    """Absolute positions: phi = j."""
    last = positions_for(task, max_scale, positions) - 1
    return FormRelation([Form(0, 1)], 0, last, "ape", beyond="error")


def rpe(task=None, max_scale=None, positions=None) -> Relation:
    """Relative positions: phi = i - j."""
    last = positions_for(task, max_scale, positions) - 1
    return FormRelation([Form(1, -1)], 0, last, "rpe", beyond="error")


def ape_sh(task=None, max_scale=None, positions=None) -> Relation:
    """Absolute positions with Scale Hint: phi = j - n, the distance from where the operand ends."""
    last = positions_for(task, max_scale, positions) - 1
    sizes = getattr(task, "sizes", 1)
    end = -1 if sizes == 1 else (-1,) + (0,) * (sizes - 1)  # where the first operand ends
    return FormRelation([Form(0, 1, end)], -last, last, "ape-sh", beyond="error")


def rpe_sh(task=None, max_scale=None, positions=None, window: int = 2) -> Relation:
    """Relative positions with Scale Hint: the nearest of i - j - a n, a in {0, 1, 2}."""
    sizes = getattr(task, "sizes", 1)
    forms = [
        Form(1, -1, tuple(-a for a in steps) if sizes > 1 else -steps[0])
        for steps in product(range(3), repeat=sizes)
    ]
    return FormRelation(forms, -window, window, "rpe-sh")
