"""Which relation says exactly what a step reads? The ideal one, derived from the task's circuit.

It labels each operand of a step with (operator, role) and every other key with "other".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace

import torch
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.relations.affine import Affine
from lgcourse.relations.base import Relation, Scale, largest_scale, sizes_of
from lgcourse.relations.forms import Term
from lgcourse.relations.terms import TermRelation

Read = tuple[int, int, Hashable]  # (query, key, role)
# With Scale Hint not all scales are looked at beforehand, but those up to 64 (12 where there are
# several sizes). For roles also the largest one, which shows those of tasks that always get new
# ones.
ROLE_SCALES = {1: 64}


class CircuitRelation(Relation):
    """The ideal relation of a circuit: phi(i, j, n) = the role of j in the step at i, or "other".

    Source: the course's formalisation, after Chen, Liang and Lin (2025), who call it the ideal
    position embedding.

    Args:
        reads: callable scale -> list of (query, key, role); roles are any hashable labels.
        scales: the scales to collect roles from; scale-free relations know the pairs of these only.
        hinted: True (Scale Hint): the pairs depend on n. False: one table must serve every scale.
        name: what tables and figures call it.

    Raises:
        InputError: not ``hinted``, and two scales make a step at the same query that reads other
            positions or other roles ("other" counts as a role; a query that makes no step at a
            scale is free there); or a step reads one position in two roles.

    >>> shifted = lambda n: [(t, t - 1, "previous") for t in range(1, n)]
    >>> phi = CircuitRelation(shifted, scales=range(1, 5), hinted=False, name="previous")
    >>> phi(torch.arange(3), torch.arange(3))
    tensor([[1, 1, 1],
            [0, 1, 1],
            [1, 0, 1]])
    """

    def __init__(
        self,
        reads: Callable[[Scale], list[Read]],
        scales: Iterable[Scale],
        hinted: bool,
        name: str,
    ):
        self.name, self.uses_scale, self.reads = name, hinted, reads
        scales = list(scales)
        union = {} if hinted else self._union(scales)
        roles = dict.fromkeys(role for scale in scales for _, _, role in self._checked_reads(scale))
        self.roles = {role: index for index, role in enumerate(roles)}
        other = len(self.roles)
        self.other, self.size = other, other + 1
        self._pages: dict[Scale | None, tuple[Tensor, Tensor]] = {}
        if not hinted:
            self._pages[None] = self._page((i, j, role) for (i, j), role in union.items())

    def _checked_reads(self, scale: Scale) -> list[Read]:
        return checked_reads(self.reads, scale, self.name)

    def _union(self, scales) -> dict[tuple[int, int], Hashable]:
        """Lay all scales over each other; queries that make no step at a scale are free there."""
        union: dict[tuple[int, int], Hashable] = {}
        keys_of: dict[int, tuple[dict[int, Hashable], Scale]] = {}
        for scale in scales:
            rows: dict[int, dict[int, Hashable]] = {}
            for query, key, role in self._checked_reads(scale):
                rows.setdefault(query, {})[key] = role
            for query, row in rows.items():
                before, earlier = keys_of.setdefault(query, (row, scale))
                if before != row:
                    self._refuse(query, before, earlier, row, scale)
                union.update({(query, key): role for key, role in row.items()})
        return union

    def _refuse(self, query, before, earlier, row, scale):
        key = next(k for k in sorted({*before, *row}) if before.get(k) != row.get(k))
        was, now = (repr(labels.get(key, "other")) for labels in (before, row))
        raise InputError(
            f"no scale-free '{self.name}' exists: the pair (query {query}, key {key}) is {was} at "
            f"scale {earlier} and {now} at scale {scale}; use '{self.name}-sh' (Scale Hint)"
        )

    def _page(self, reads) -> tuple[Tensor, Tensor]:
        rows: dict[int, dict[int, int]] = {}
        for query, key, role in reads:
            if role not in self.roles:
                raise InputError(
                    f"relation '{self.name}' was built from scales that have no role {role!r}; "
                    "build it with more scales (CircuitRelation) or another max_scale"
                )
            rows.setdefault(query, {})[key] = self.roles[role]
        slots = max(map(len, rows.values()), default=1)
        last = max(rows, default=-1) + 1  # one row more, for queries that make no step
        keys = torch.full((last + 1, slots), -1)
        ids = torch.full_like(keys, self.size - 1)
        for query, row in rows.items():
            keys[query, : len(row)] = torch.tensor(list(row))
            ids[query, : len(row)] = torch.tensor(list(row.values()))
        return keys, ids

    def ids(self, query, key, scale):
        return self.at(query, key, scale)

    def at(self, query, key, scale=None):
        keys, ids = (slots.to(query.device) for slots in self._slots(scale))
        row = query.clamp(max=len(keys) - 1)  # the last row is empty
        result = torch.full_like(query + key, self.size - 1)
        for slot in range(keys.shape[1]):
            result = torch.where(keys[row, slot] == key, ids[row, slot], result)
        return result

    def named(self, query, scale=None):
        keys, ids = (slots.to(query.device) for slots in self._slots(scale))
        row = query.clamp(max=len(keys) - 1)
        return keys[row], ids[row]

    def _slots(self, scale: Scale | None) -> tuple[Tensor, Tensor]:
        """Return for every query which keys it reads and their ids, [q r]; empty slots have -1."""
        page = scale if self.uses_scale else None
        if page not in self._pages:
            assert page is not None
            self._pages[page] = self._page(self._checked_reads(page))
        return self._pages[page]

    def label(self, id):
        if id == self.other:
            return "other"
        role = next(role for role, index in self.roles.items() if index == id)
        return " ".join(map(str, role)) if isinstance(role, tuple) else str(role)


def checked_reads(reads: Callable[[Scale], list[Read]], scale: Scale, name: str) -> list[Read]:
    """Return what a circuit reads at a scale; one position in two roles of a step is an error."""
    seen: dict[tuple[int, int], Hashable] = {}
    read = list(reads(scale))
    for query, key, role in read:
        if seen.setdefault((query, key), role) != role:
            raise InputError(
                f"'{name}' at scale {scale}: the step at query {query} reads position {key} as "
                f"{seen[query, key]!r} and as {role!r}; a relation gives a pair one id"
            )
    return read


def ideal(task=None, max_scale=None, positions=None) -> Relation:
    """The scale-free ideal relation of a task; an error where the layout moves operands with n."""
    return _from_task(task, max_scale, hinted=False)


def ideal_sh(task=None, max_scale=None, positions=None) -> Relation:
    """The ideal relation of a task, given the scale (Scale Hint)."""
    return _from_task(task, max_scale, hinted=True)


def _from_task(task, max_scale, hinted) -> Relation:
    name = "ideal-sh" if hinted else "ideal"
    if task is None:
        raise InputError(f"relation '{name}' is derived from a circuit: give a task")
    largest = max_scale if max_scale is not None else largest_scale(task)
    task.check_scale(largest)
    terms = getattr(task, "terms", lambda: None)()
    if terms is not None and not hinted:
        terms = _at_every_scale(terms, largest)
    if terms is not None:
        for scale in _few_scales(task, largest):
            checked_reads(task.reads, scale, name)
        return TermRelation(terms, name)
    scales = [*_few_scales(task, largest), largest] if hinted else list(task.scales(largest))
    relation = CircuitRelation(task.reads, scales, hinted, "ideal")
    relation.name = name
    return relation


def _few_scales(task, largest: Scale) -> list[Scale]:
    """Return the small scales whose circuits are looked through."""
    known = ROLE_SCALES.get(task.sizes, 12)
    small = tuple(min(size, known) for size in sizes_of(largest))
    return list(task.scales(small if task.sizes > 1 else small[0]))


def _at_every_scale(terms: list[Term], largest: Scale) -> list[Term] | None:
    """Return scale-free terms that serve every scale up to the largest, or None.

    They do where no form moves with the scale, and each range of queries starts at one place and
    only grows: the relation of the largest scale then holds those of all others.
    """
    free, sizes = [], sizes_of(largest)
    for term in terms:
        low, high = term.low, term.high
        if term.form.uses_scale or term.unless or low is None or high is None:
            return None
        if not low.is_constant or any(factor < 0 for factor in high.factors):
            return None
        for bound in term.where:  # it only falls, so where it holds at the largest, it always does
            if any(factor > 0 for factor in bound.factors) or bound(sizes=sizes) < 0:
                return None
        free.append(replace(term, high=Affine(high(sizes=sizes)), where=()))
    return free
