"""Will a model that learned short inputs work on long ones? Predicted before any training.

Source: the course's formalisation, after Chen, Liang and Lin (2025): length generalisation from the
training to the test scales is predicted if and only if the number of unit operators does not grow
and the relation aligns the circuit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lgcourse.errors import InputError
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.relations.cells import CellRelation
from lgcourse.relations.chain import chains
from lgcourse.tasks.base import Task
from lgcourse.tasks.circuit import Step
from lgcourse.theory.alignment import Alignment
from lgcourse.theory.circuits import Circuit, covered, show_scale, steps_at
from lgcourse.theory.family import CellFamily, Found, search
from lgcourse.theory.merging import Bounds, Merging
from lgcourse.theory.priorities import lines
from lgcourse.theory.views import Views

MOST_PAIRS = 10**9


@dataclass(frozen=True)
class Prediction:
    """What theory says about length generalisation, and why.

    Args:
        verdict: ``"generalises"``, ``"fails"``, ``"no prediction"`` (the embedding has no finite
            relation) or ``"not covered"`` (the task has no circuit).
        resolvable: test scale -> share of its steps that meet the three conditions of alignment;
            empty where theory is silent or the operators cannot be written down.
        src_train: number of merged operators on the training scales; None where not known.
        src_test: the same on training and test scales together.
        reason: why, in words.
    """

    verdict: str
    resolvable: dict[Scale, float] = field(default_factory=dict)
    src_train: int | None = None
    src_test: int | None = None
    reason: str = ""

    @property
    def generalises(self) -> bool | None:
        """True or False as predicted; None where theory is silent."""
        return {"generalises": True, "fails": False}.get(self.verdict)

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as plain values for JSON; scales become ``"20"`` or ``"20x13"``.

        >>> Prediction("fails", {(20, 13): 0.5}, 3, 3, "why").to_json()["resolvable"]
        {'20x13': 0.5}
        """
        return {
            "verdict": self.verdict,
            "generalises": self.generalises,
            "resolvable": {show_scale(n): share for n, share in self.resolvable.items()},
            "src_train": self.src_train,
            "src_test": self.src_test,
            "reason": self.reason,
        }


def predict(
    circuit: Circuit | None,
    relation: Relation | Sequence[Relation | None] | CellFamily | None,
    train_scales: Iterable[Scale] | int,
    test_scales: Iterable[Scale] | int,
) -> Prediction:
    """Predict whether a model with a relation generalises from training scales to test scales.

    Source: the course's formalisation, after Chen, Liang and Lin (2025).

    Args:
        circuit: a task, or anything that `lgcourse.theory.circuits.steps_at` reads.
        relation: a `Relation` made for the largest scale; a list of them for several heads (an
            operand is found if one of them finds it; if all are made of cells, as learned ones are,
            each head reads all its cells, see `lgcourse.theory.views`, and if that is not enough, a
            head of a later layer also gets what one of an earlier layer read at the token it reads,
            see `lgcourse.relations.ChainRelation`); a `CellFamily` for an embedding that learns
            its relation: "generalises" if some choice of its cells aligns the circuit, "fails" if
            none does; None for an embedding without a finite relation.
        train_scales: the scales of the training data; one number is refused, since it could mean
            the scale n or all scales up to n.
        test_scales: the scales to predict for.

    Returns:
        A `Prediction`. Operators are counted on the given scales, not on those between.

    Raises:
        InputError: no scales, a scale that the task does not have, a circuit that is not valid, or
            a relation made for fewer positions.

    >>> from lgcourse.relations import build
    >>> from lgcourse.tasks import get
    >>> task = get("addition")
    >>> predict(task, build("ideal-sh", task), range(1, 11), [20, 50]).verdict
    'generalises'
    >>> predict(task, build("rpe", task), range(1, 11), [20]).verdict
    'fails'
    """
    train, test = _scales(train_scales, "train_scales"), _scales(test_scales, "test_scales")
    if circuit is None or not covered(circuit):
        name = f"task '{circuit.name}'" if isinstance(circuit, Task) else "the task"
        return Prediction("not covered", reason=f"{name} has no circuit made of positions only")
    family = relation if isinstance(relation, CellFamily) else None
    relations = [] if family else _relations(relation)
    circuits = _circuits(circuit, [*train, *test])
    if isinstance(circuits, str):
        said = "fails" if relations or family else "no prediction"
        return Prediction(said, reason=circuits)
    merging = Merging()
    before = _count(merging, [circuits[n] for n in train])
    after = _count(merging, [circuits[n] for n in test])
    if not relations and not family:
        reason = "the embedding has no finite relation, so alignment is not defined for it"
        return Prediction("no prediction", {}, before.upper, after.upper, reason)
    training, testing = (lines([(n, circuits[n]) for n in part], merging) for part in (train, test))
    grows = _growth(merging, before, after, circuits, train, test)
    if family:
        found = search(family, training, testing, merging, circuit)
        return _of_family(family, found, grows, test, before, after)
    alignment = _alignment(relations, training, testing, merging, circuit, circuits)
    shares = _shares(test, alignment)
    fault = grows or alignment.fault()
    verdict = "fails" if fault else "generalises"
    return Prediction(verdict, shares, before.upper, after.upper, fault or _praise(after))


def broken_condition(
    circuit: Circuit,
    relation: Relation | Sequence[Relation],
    train_scales: Iterable[Scale],
    scale: Scale,
    output: int,
) -> tuple[int, str]:
    """Say which of the three conditions of alignment a single step breaks.

    Args:
        circuit, relation, train_scales: as in `predict`.
        scale: the scale of the step.
        output: the position that it writes.

    Returns:
        1, 2 or 3, and why; 0 and no words where it meets all three. 1: training never showed the
        ids, or the operator; 2: they do not single out the operand; 3: the step looks like one that
        needs another operator. Learned relations, whose heads attend to their cells only, have
        conditions of their own, see `Views`: 1: no head reads an operand; 2: training had no such
        view; 3: as above.

    >>> from lgcourse.relations import build
    >>> from lgcourse.tasks import get
    >>> task = get("copy")
    >>> broken_condition(task, build("rpe", task), range(1, 11), 11, output=12)[0]
    1
    """
    relations, train = _relations(relation), _scales(train_scales, "train_scales")
    circuits = {n: steps_at(circuit, n) for n in [*train, scale]}
    merging = Merging()
    for steps in circuits.values():
        merging.add_steps(steps)
    training, testing = (lines([(n, circuits[n]) for n in p], merging) for p in (train, [scale]))
    row = next((k for k, s in enumerate(circuits[scale]) if s.output == output), None)
    if row is None:
        raise InputError(f"no step writes position {output} at scale {show_scale(scale)}")
    alignment = _alignment(relations, training, testing, merging, circuit, circuits)
    if isinstance(alignment, Alignment):
        return _broken(alignment, row)
    seen = alignment.tested[0][row]
    number = alignment._broken(seen)
    return (number, alignment._words(testing[0], row, seen, number)) if number else (0, "")


def _broken(alignment: Alignment, row: int) -> tuple[int, str]:
    """Return which condition a step of the only test scale breaks, and why."""
    if bool(alignment.resolvable[0][row]):
        return 0, ""
    line, why = alignment.test[0], alignment._why(0, row)
    lost = (~alignment.found[0][row].any(-1)).nonzero()[:, 0].tolist()
    if lost:
        ids = alignment.test_ids[0][row, lost[0]].tolist()
        pairs = zip(alignment.learned, ids, strict=True)
        return (2 if any(one.seen(line, row, lost[0], id) for one, id in pairs) else 1), why
    return (3 if bool(alignment.met[0][row]) else 1), why


def _alignment(relations, training, testing, merging, circuit, circuits) -> Alignment | Views:
    """Look at how relations serve a circuit; heads that read cells are looked at by their views."""
    heads = [one for one in relations if isinstance(one, CellRelation)]
    if len(heads) == len(relations) > 1:
        return _views(heads, training, testing, merging, circuit)
    _refuse_too_many(circuits)
    return Alignment(relations, training, testing, merging)


def _of_family(
    family: CellFamily, found: Found, grows: str | None, test: list[Scale], before, after
) -> Prediction:
    """Say what a search through a family of relations means."""
    counts = before.upper, after.upper
    shares = _shares(test, found.views) if found.views else dict.fromkeys(test, 0.0)
    cells = ", ".join(f"{form} = {value}" for form, value in found.cells)
    if grows:
        return Prediction("fails", shares, *counts, grows)
    if found.fault is None:
        heads = f"heads that read {cells} do so" if cells else "the query is all that is read"
        reason = f"{_praise(after)}: {heads}, and training has an operand at each of these cells"
        return Prediction("generalises", shares, *counts, reason)
    if not found.complete:
        reason = f"too many relations can be learned to look at them all; for {cells}: "
        return Prediction("no prediction", shares, *counts, reason + found.fault)
    tried = f"; for instance with {cells}" if cells else ""
    forms = ", ".join(map(str, family.forms))
    reason = f"no relation that can be learned ({forms}) aligns{tried}: {found.fault}"
    return Prediction("fails", shares, *counts, reason)


def _shares(test: list[Scale], alignment: Alignment | Views) -> dict[Scale, float]:
    """Return the share of resolvable steps at each test scale."""
    return {
        n: float(good.double().mean()) if len(good) else 1.0
        for n, good in zip(test, alignment.resolvable, strict=True)
    }


def _views(heads: list[CellRelation], *given) -> Views:
    """Look at what the heads see by themselves, and if it is not enough, through one token, too."""
    direct = Views(heads, *given)
    if direct.fault() is None or len({head.layer for head in heads}) == 1:
        return direct
    relayed = Views([*heads, *chains(heads)], *given)
    return relayed if relayed.fault() is None else direct


def _relations(relation) -> list[Relation]:
    """Return the relations of an embedding as a list, empty where one of them is not finite."""
    relations = list(relation) if isinstance(relation, (list, tuple)) else [relation]
    for one in relations:
        if one is not None and not callable(one):
            raise InputError(
                f"a relation is an object such as lgcourse.relations.build('rpe'), got {one!r}"
            )
    return [] if any(one is None for one in relations) else relations


def _circuits(circuit: Circuit, scales: list[Scale]) -> dict[Scale, list[Step]] | str:
    """Return the steps of each scale; why it cannot be, if the arity has no bound."""
    unbounded = isinstance(circuit, Task) and circuit.kind == "grows" and circuit.arity is None
    if isinstance(circuit, Task):
        for n in scales:
            circuit.check_scale(n)
    try:
        return {n: steps_at(circuit, n) for n in dict.fromkeys(scales)}
    except InputError as error:
        if not unbounded:
            raise
        return f"the number of operators grows and their arity has no bound: {error}"


def _refuse_too_many(circuits: dict[Scale, list[Step]]) -> None:
    """Refuse scales at which the keys of all steps would take many minutes to look at."""
    for n, steps in circuits.items():
        pairs = len(steps) * max((step.output for step in steps), default=0)
        if pairs > MOST_PAIRS:
            raise InputError(
                f"scale {show_scale(n)} has {pairs:,} pairs of a step and a key; predict looks "
                f"at up to {MOST_PAIRS:,} per scale: choose smaller scales"
            )


def _scales(scales, name: str) -> list[Scale]:
    """Return scales as a list without repeats, refusing what is no collection of scales."""
    if isinstance(scales, (int, str)) or not isinstance(scales, Iterable):
        raise InputError(
            f"{name} is a collection of scales, as range(1, 11) or [20, 50]; got {scales!r}"
        )
    found = list(dict.fromkeys(tuple(n) if isinstance(n, list) else n for n in scales))
    if not found:
        raise InputError(f"{name} is empty; give at least one scale")
    for n in found:
        sizes_of(n)
    return found


def _count(merging: Merging, circuits) -> Bounds:
    for steps in circuits:
        merging.add_steps(steps)
    return merging.bounds()


def _growth(merging: Merging, before: Bounds, after: Bounds, circuits, train, test) -> str | None:
    """Return in words that test scales need more operators than training showed, or None."""
    if after.upper <= before.upper:
        return None
    groups = merging.groups()
    met = {groups[merging.add(step.operator)] for n in train for step in circuits[n]}
    new = (
        f"; at scale {show_scale(n)} position {step.output} needs `{step.operator.name}`, which "
        "training never showed"
        for n in test
        for step in circuits[n]
        if groups[merging.add(step.operator)] not in met
    )
    bounds = "" if before.exact and after.exact else " (upper bounds)"
    return (
        f"the number of operators grows from {before.upper} to {after.upper}{bounds}, and no "
        f"position embedding adds operators{next(new, '')}"
    )


def _praise(after: Bounds) -> str:
    one = after.upper == 1
    number = "the only operator serves" if one else f"the same {after.upper} operators serve"
    return (
        f"{number} training and test scales, and every operand is singled out by an id that "
        "training showed"
    )
