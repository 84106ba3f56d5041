"""Which kinds of steps are there at all scales? Finitely many signatures, found without sampling.

A step is a pair (t, n) of a family. Its signature says where its operands and the keys that each
head reads stand: in which segment, which of them coincide, which is the query itself, and which
terms of a head hold for a key. It leaves out the scale: two steps with one signature look alike to
a one-layer model that reads only what its terms name.

Proof obligation: every step at every scale n >= 1 has one of the signatures returned here, and each
of them occurs. `lgcourse.certify.cases` discharges it: all that a signature says is asked of a
`Case`, so the regions of the signatures are the leaves of a tree of complementary answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lgcourse.certify.cases import LIMIT, Case, explore
from lgcourse.certify.integers import Row, System, add, feasible, least, point
from lgcourse.relations.affine import Affine
from lgcourse.relations.base import Scale
from lgcourse.relations.forms import Term
from lgcourse.tasks.families import Family, Segment, starts

Heads = Sequence[Sequence[Term]]


class MalformedError(Exception):
    """Families and segments do not fit together, or lie beyond what is reasoned about here."""


@dataclass(frozen=True)
class Place:
    """One position that a step needs or a head reads, without saying where it stands.

    Args:
        segment: the number of its segment.
        writers: the families that may write it; empty in the prompt.
        sources: where one family alone writes it, the places of that step's operands, role by role;
            None for one that is no place of this signature.
    """

    segment: int
    writers: tuple[int, ...] = ()
    sources: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Shape:
    """All that a signature says.

    Args:
        family: the number of the family.
        places: the different positions.
        operands: the place of each operand, role by role.
        query: the place of the query.
        reads: per head the places that it reads, each with the numbers of the terms that hold; the
            query is always among them.
    """

    family: int
    places: tuple[Place, ...]
    operands: tuple[int, ...]
    query: int
    reads: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]

    @property
    def pattern(self):
        """All but what is known of the steps that wrote the places."""
        segments = tuple(place.segment for place in self.places)
        return self.family, segments, self.operands, self.query, self.reads


@dataclass(frozen=True)
class Signature:
    """A shape, and the smallest step that has it.

    Args:
        shape: what all its steps share.
        scale, t: the smallest scale and step; sizes are a tuple where the task has several.
        positions: where the places stand there.
        fewest: the least number of keys that one of its steps can see, at any scale.
    """

    shape: Shape
    scale: Scale
    t: int
    positions: tuple[int, ...]
    fewest: int = 0


@dataclass(frozen=True)
class Setting:
    """What signatures are derived from.

    Args:
        segments, families: the layout and the circuit at all scales.
        heads: the terms of each head.
        sizes: how many sizes a scale has.
        largest: the largest size, for padded layouts; None: there is none.
    """

    segments: tuple[Segment, ...]
    families: tuple[Family, ...]
    heads: tuple[tuple[Term, ...], ...]
    sizes: int = 1
    largest: int | None = None

    @classmethod
    def of(cls, task, heads: Heads) -> Setting:
        """Take segments and families from a task."""
        segments, families = task.segments(), task.families()
        largest = task.width if getattr(task, "padded", False) else None
        rows = tuple(tuple(terms) for terms in heads)
        return cls(tuple(segments), tuple(families), rows, task.sizes, largest)

    def row(self, value: Affine, t: Row = ()) -> Row:
        """Return an expression as a row; variables are x1, then the sizes; t is a row, too."""
        sizes = tuple(value.factor(k) for k in range(self.sizes))
        return add((value.constant, 0, *sizes), t, by=value.t_factor)

    def scales(self) -> System:
        """Return the conditions on the sizes of a scale."""
        rows = [self.row(s.length) for s in self.segments if not s.where]
        for n in self.each_size():
            rows.append(add(n, (-1,)))
            if self.largest is not None:
                rows.append(add((self.largest,), n, by=-1))
        return System(tuple(rows))

    def each_size(self) -> list[Row]:
        """Return a row for each size."""
        return [self.row(Affine(0, 0, (*(0,) * k, 1))) for k in range(self.sizes)]


@dataclass(frozen=True)
class Run:
    """The steps of one family as a region: t = first + step x with x >= 0 the variable ``at``."""

    family: Family
    t: Row
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, setting: Setting, family: Family, at: int = 1) -> Run:
        x = (*(0,) * at, 1)
        t = add(setting.row(family.first), x, by=family.step)
        last = add(setting.row(family.last), t, by=-1)
        return cls(family, t, (x, last, *map(setting.row, family.where)))


def signatures(setting: Setting, limit: int = LIMIT) -> list[Signature]:
    """Return the signatures of all steps at all scales, each with its smallest step.

    Args:
        setting: layout, circuit and terms.
        limit: largest number of cases per family.

    Returns:
        The signatures, smallest scales first.

    Raises:
        MalformedError: segments and families do not fit together.
        CaseLimitError: the limit is exceeded.

    >>> from lgcourse import tasks
    >>> copy = tasks.get("copy")
    >>> [(s.scale, s.t) for s in signatures(Setting.of(copy, [copy.terms()]))]
    [(1, 1), (2, 2)]
    """
    found: dict[Shape, Signature] = {}
    for number, family in enumerate(setting.families):
        run = Run.of(setting, family)
        region = setting.scales().with_rows(run.rows)
        if not feasible(region):
            continue
        program = _Program(setting, number, run)
        for (shape, positions), case in explore(program, region, 1 + setting.sizes, limit):
            new = _smallest(setting, run, case, shape, positions)
            old = found.get(shape)
            if old is not None:
                fewest = min(new.fewest, old.fewest)
                new = replace(min(new, old, key=_order), fewest=fewest)
            found[shape] = new
    return sorted(found.values(), key=_order)


def shape_at(
    setting: Setting, number: int, t: int, sizes: tuple[int, ...]
) -> tuple[Shape, tuple[int, ...]]:
    """Return the shape of one step, and the positions of its places.

    >>> from lgcourse import tasks
    >>> copy = tasks.get("copy")
    >>> shape_at(Setting.of(copy, [copy.terms()]), 0, 2, (5,))[1]
    (1, 6)
    """
    family = setting.families[number]
    x, remainder = divmod(t - family.first(sizes=sizes), family.step)
    assert x >= 0 and not remainder, "no step of the family"
    point_rows = [add((0, 1), (x,), by=-1)]
    point_rows += [add(n, (k,), by=-1) for n, k in zip(setting.each_size(), sizes, strict=True)]
    case = Case(System(zero=tuple(point_rows)), 1 + setting.sizes)
    shape, rows = _Program(setting, number, Run.of(setting, family))(case)
    return shape, point(case.region, [(row, 0) for row in rows])


def _order(signature: Signature):
    sizes = signature.scale if isinstance(signature.scale, tuple) else (signature.scale,)
    return sum(sizes), sizes, signature.shape.family, signature.t


def _smallest(setting, run, case: Case, shape: Shape, positions: Sequence[Row]) -> Signature:
    """Return the signature with the smallest step of a case."""
    sizes = setting.each_size()
    wanted = [(add(*sizes), setting.sizes), *((n, 1) for n in sizes), ((0, 1), 0)]
    values = point(case.region, [*wanted, *((p, 0) for p in positions)])
    scale = values[1 : 1 + setting.sizes]
    x = values[1 + setting.sizes]
    t = run.family.first(sizes=scale) + run.family.step * x
    at = values[2 + setting.sizes :]
    fewest = 1 + least(case.region, positions[shape.query], 0)
    return Signature(shape, scale if setting.sizes > 1 else scale[0], t, at, fewest)


class _Program:
    """Ask a case all that makes a signature."""

    def __init__(self, setting: Setting, number: int, run: Run):
        self.setting, self.number, self.run = setting, number, run
        self.begins = [setting.row(start) for start in starts(setting.segments)]
        self.terms = list(dict.fromkeys(_bare(t) for t in chain.from_iterable(setting.heads)))
        for term in self.terms:
            if not term.form.b:
                raise MalformedError(f"form {term.form} names no key: its factor of j is 0")

    def __call__(self, case: Case) -> tuple[Shape, list[Row]]:
        setting, family, t = self.setting, self.run.family, self.run.t
        output = setting.row(family.output, t)
        query = add(output, (-1,))
        if not self._written(case, output):
            raise MalformedError(
                f"a step of '{family.operator.name}' writes outside what is written"
            )
        places = _Places(self, case)
        operands = []
        for role, value in zip(family.operator.roles, family.inputs, strict=True):
            at = setting.row(value, t)
            if not (case.not_negative(at) and case.not_negative(add(query, at, by=-1))):
                raise MalformedError(
                    f"operand '{role}' of '{family.operator.name}' lies in the future"
                )
            operands.append(places.index(at))
        own = places.index(query)
        named = {term: places.named(term, query) for term in self.terms}
        reads = tuple(_read_by(terms, named, own) for terms in setting.heads)
        found = tuple(self._place(case, segment, at, places.rows) for segment, at in places.found)
        return Shape(self.number, found, tuple(operands), own, reads), places.rows

    def locate(self, case: Case, position: Row) -> int:
        """Return the number of the segment in which a position (at least 0) stands."""
        for k, segment in enumerate(self.setting.segments):
            if not all(case.not_negative(self.setting.row(bound)) for bound in segment.where):
                continue
            if not case.not_negative(add(position, self.begins[k + 1], by=-1)):
                return k
        raise MalformedError("a position lies behind the end of the layout")

    def _written(self, case: Case, position: Row) -> bool:
        inside = case.not_negative(position)
        return inside and self.setting.segments[self.locate(case, position)].written

    def _place(self, case: Case, segment: int, position: Row, rows: list[Row]) -> Place:
        """Return a place with what is known of the step that wrote it, in the whole case."""
        if not self.setting.segments[segment].written:
            return Place(segment)
        writers = {}
        for number, family in enumerate(self.setting.families):
            run = Run.of(self.setting, family, at=case.width + 1)
            output = self.setting.row(family.output, run.t)
            region = case.region.with_rows(run.rows, [add(output, position, by=-1)])
            if feasible(region):
                writers[number] = (run, region)
        if len(writers) != 1:
            return Place(segment, tuple(writers))
        run, region = next(iter(writers.values()))
        sources = tuple(self._source(run, region, value, rows) for value in run.family.inputs)
        return Place(segment, tuple(writers), sources)

    def _source(self, run: Run, region: System, value: Affine, rows: list[Row]) -> int | None:
        """Return the place that an operand of an earlier step always is, or None."""
        case = Case(region, 0)
        at = self.setting.row(value, run.t)
        same = (k for k, row in enumerate(rows) if case.always_zero(add(at, row, by=-1)))
        return next(same, None)


class _Places:
    """The different positions of a case, in the order in which they come up."""

    def __init__(self, program: _Program, case: Case):
        self.program, self.case = program, case
        self.found: list[tuple[int, Row]] = []

    @property
    def rows(self) -> list[Row]:
        return [row for _, row in self.found]

    def index(self, position: Row) -> int:
        """Return the number of a position, a new one where it is none of those before."""
        segment = self.program.locate(self.case, position)
        for k, (other, row) in enumerate(self.found):
            if other == segment and self.case.is_zero(add(position, row, by=-1)):
                return k
        self.found.append((segment, position))
        return len(self.found) - 1

    def named(self, term: Term, query: Row) -> int | None:
        """Return the place of the key that a term names for the query, or None."""
        case, row = self.case, self.program.setting.row
        if not all(case.not_negative(row(bound)) for bound in term.where):
            return None
        if term.low is not None:
            above = add(query, row(term.low), by=-1)
            if not case.not_negative(above) or case.divide(above, term.step)[1]:
                return None
        if term.high is not None and not case.not_negative(add(row(term.high), query, by=-1)):
            return None
        sign = 1 if term.form.b > 0 else -1
        rest = _form(term.form, query, (), term.value)  # form - value, without the key: -b j
        key, remainder = case.divide(add((), rest, by=-sign), abs(term.form.b))
        if remainder or not case.not_negative(key):
            return None
        if not case.not_negative(add(query, key, by=-1)):
            return None
        if any(case.is_zero(_form(form, query, key, value)) for form, value in term.unless):
            return None
        return self.index(key)


def _bare(term: Term) -> Term:
    """Return a term without its id, so that equal ones of several heads are asked for once."""
    return Term(None, term.form, term.value, *term.guard, term.unless)


def _form(form, query: Row, key: Row, value: int) -> Row:
    """Return form(query, key, sizes) - value as a row."""
    sizes = (-value, 0, *form.factors)
    return add(add(sizes, query, by=form.a), key, by=form.b)


def _read_by(terms: Sequence[Term], named: dict[Term, int | None], own: int):
    """Return the places that a head reads, each with the numbers of its terms that hold."""
    holds: dict[int, list[int]] = {own: []}
    for number, term in enumerate(terms):
        place = named[_bare(term)]
        if place is not None:
            holds.setdefault(place, []).append(number)
    return tuple((place, tuple(numbers)) for place, numbers in sorted(holds.items()))


def uncovered(setting: Setting) -> str | None:
    """Return a place that not exactly one step writes, at the smallest scale, or None.

    The written segments of all scales are split into cases by which families write a place; so
    None is a proof, as for `signatures`.

    >>> from lgcourse import tasks
    >>> copy = tasks.get("copy")
    >>> uncovered(Setting.of(copy, []))
    >>> half = Setting(tuple(copy.segments()), (), ())
    >>> uncovered(half)
    'no step writes y1 at scale 1'
    """
    begins = [setting.row(start) for start in starts(setting.segments)]
    place = (0, 1)
    for k, segment in enumerate(setting.segments):
        if not segment.written:
            continue
        rows = [add(place, begins[k], by=-1), add(begins[k + 1], (-1,), place, by=-1)]
        region = setting.scales().with_rows([*rows, *map(setting.row, segment.where)])
        if not feasible(region):
            continue
        for count, case in explore(
            lambda c: _writers(setting, c, place), region, 1 + setting.sizes
        ):
            if count != 1:
                return _where(setting, segment, begins[k], case, count)
    return None


def _writers(setting: Setting, case: Case, place: Row) -> int:
    """Return how many families write a place."""
    return sum(_writes(setting, case, family, place) for family in setting.families)


def _writes(setting: Setting, case: Case, family: Family, place: Row) -> bool:
    pace = family.output.t_factor
    if pace < 1:
        raise MalformedError(f"the output {family.output} of a step does not move on with t")
    if not all(case.not_negative(setting.row(bound)) for bound in family.where):
        return False
    first = setting.row(family.first)
    begin = setting.row(family.output, first)
    x, remainder = case.divide(add(place, begin, by=-1), pace * family.step)
    if remainder or not case.not_negative(x):
        return False
    t = add(first, x, by=family.step)
    return case.not_negative(add(setting.row(family.last), t, by=-1))


def _where(setting: Setting, segment: Segment, begin: Row, case: Case, count: int) -> str:
    sizes = setting.each_size()
    index = add((0, 1), begin, by=-1)
    wanted = [(add(*sizes), setting.sizes), *((n, 1) for n in sizes), (index, 0)]
    _, *scale, k = point(case.region, wanted)
    name = segment.names(tuple(scale))[k]
    writers = "no step writes" if count == 0 else f"{count} steps write"
    return f"{writers} {name} at scale {'x'.join(map(str, scale))}"
