"""What did a run learn? Its relation in words, where its attention goes, and what theory expects.

`explain` measures three things that belong together: the share of attention on the operands of the
steps, the agreement of the learned relation with the ideal one, and the exact match that the run
has; and it states what `lgcourse.theory.predict` says of the learned relation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor

from lgcourse.errors import InputError, whole_number
from lgcourse.model.reading import Share, operand_share, reads_of
from lgcourse.relations.base import Relation, Scale, sizes_of
from lgcourse.relations.cells import CellRelation
from lgcourse.relations.chain import ChainRelation, chains
from lgcourse.tasks.circuit import Step
from lgcourse.theory.circuits import covered
from lgcourse.theory.merging import positions
from lgcourse.theory.prediction import Prediction, predict
from lgcourse.training.evaluation import scale_name
from lgcourse.training.seeds import generator

SAMPLES = 16
STEPS = 200  # steps that are looked at per scale; of more, a random part
TOKENS = 2**14  # tokens of all samples of a scale together
EVERY_SCALE = 20  # the relation is compared at all scales up to this one, in tasks of one size
TOLD = 3  # ids of a table, and ways to name an operand, that the words tell
MOST_ROLES, LONGEST = 20, 90  # roles and characters of one text that `Explanation.lines` writes
READS = {"cells": "reads", "strengths": "strongest ids (strength)", "none": ""}
EVENLY = "if spread evenly over all keys"
COUNTED = {  # what the words call a number of a `Share`
    "operands that some head puts before all other keys": "first_anywhere",
    "operands with at least half of some head's attention": "half_anywhere",
}


# --- the relation that a model learned ------------------------------------------------------------
@dataclass(frozen=True)
class Reader:
    """A relation in a model.

    Args:
        layer: number of the layer, from 1; None: all layers.
        head: number of the head, from 1; None: all heads.
        relation: the relation.
    """

    layer: int | None
    head: int | None
    relation: Relation

    @property
    def place(self) -> str:
        """Where it is, in words."""
        if self.relays:
            return self.relation.name
        return "all heads" if self.head is None else f"layer {self.layer} head {self.head}"

    @property
    def relays(self) -> bool:
        """Whether it reads through a token that has read before."""
        return isinstance(self.relation, ChainRelation)


def readers(model) -> list[Reader]:
    """Return the relations by which a model reads.

    A relation that heads share, such as that of a table, is given once; learned ones are given per
    layer and head.

    Returns:
        The relations; empty where an embedding states no finite one.
    """
    found: list[Reader] = []
    for layer, position in enumerate(model.positions, start=1):
        relation = position.relation
        if relation is None:
            return []
        if not isinstance(relation, (list, tuple)):
            return [Reader(None, None, relation)]
        for head, one in enumerate(relation, start=1):
            one.name, one.layer = f"layer {layer} head {head}", layer
            found.append(Reader(layer, head, one))
    return found


def words(model) -> list[dict[str, Any]]:
    """Say what each head of each layer reads, as far as its position embedding tells.

    Returns:
        One dictionary per layer and head: ``layer`` and ``head``, from 1 (None stands for all,
        where they share what there is to say), ``words``, and ``kind``: ``"cells"`` (all that the
        head can read), ``"strengths"`` (ids with the numbers that are added to the scores, up to a
        factor that all ids share) or ``"none"``.
    """
    rows: list[dict[str, Any]] = []
    shared = len(model.positions) < len(model.blocks)
    for number, position in enumerate(model.positions, start=1):
        kind, texts = _words(position)
        for head, text in enumerate(texts, start=1):
            where = {"layer": None if shared else number, "head": None if kind == "none" else head}
            rows.append({**where, "kind": kind, "words": text})
    return rows


def words_at(rows: Sequence[dict[str, Any]], layer: int, head: int) -> str:
    """Return what `words` says of one head, or nothing if it says the same of all heads.

    Args:
        rows: what `words` returned.
        layer, head: their numbers from 0; blocks that are applied again count as further layers.
    """
    layers = max(row["layer"] or 1 for row in rows)
    here = ((None, head + 1), (layer % layers + 1, head + 1))
    return next((row["words"] for row in rows if (row["layer"], row["head"]) in here), "")


def _words(position) -> tuple[str, list[str]]:
    """Return the kind of words, and one text per head, or one for all of them."""
    relation, table = position.relation, getattr(position, "table", None)
    if relation is None:
        return "none", ["no finite relation is stated for this embedding"]
    if isinstance(relation, (list, tuple)):
        if hasattr(position, "words"):
            return "cells", [re.sub(r"^head \d+: ", "", text) for text in position.words()]
        return "cells", [" or ".join(_named_ids(one)) or "itself only" for one in relation]
    if table is None or table.ndim != 2 or table.shape[1] != relation.size:
        return "none", [f"relation {relation.name}, {relation.size} ids; no strength per id"]
    left_out = relation.other if getattr(position, "other", None) == "excluded" else None
    return "strengths", [_strongest(relation, row.detach(), left_out) for row in table]


def _named_ids(relation: Relation) -> list[str]:
    return [relation.label(id) for id in range(relation.size) if id != relation.other]


def _strongest(relation: Relation, strengths: Tensor, left_out: int | None) -> str:
    """Say which ids have the largest strengths in a head's table."""
    order = [id for id in strengths.argsort(descending=True).tolist() if id != left_out]
    told = [f"{relation.label(id)} ({float(strengths[id]):.2f})" for id in order[:TOLD]]
    rest = f", {len(order) - TOLD} more" if len(order) > TOLD else ""
    return ", ".join(told) + rest + ("; other keys excluded" if left_out is not None else "")


def predict_run(run) -> Prediction:
    """Predict from the relation that a run learned whether it generalises to its test scales.

    All heads of all layers count together, see `readers` and `lgcourse.theory.predict`.

    Args:
        run: a `LoadedRun`.

    Returns:
        A `Prediction`; its verdict is "no prediction" where the embedding states no finite
        relation, and "not covered" where the task has no circuit.
    """
    found = {_key(reader.relation): reader.relation for reader in readers(run.model)}
    trained = _train_scales(run)
    return predict(run.task, list(found.values()) or None, trained, run.settings.test_scales)


def _key(relation: Relation):
    """Return what two heads of a layer with the same relation have in common."""
    if isinstance(relation, CellRelation):
        return relation.layer, *relation.cells
    return id(relation)


def _train_scales(run) -> list[Scale]:
    return list(run.task.scales(run.task.scale_of(run.settings.train_scale)))


def _scales(run) -> list[Scale]:
    """Return the scales at which attention is read: the largest of training, and those of test."""
    largest = run.task.scale_of(run.settings.train_scale)
    return _in_order([largest, *run.settings.test_scales])


def _in_order(scales: Sequence[Scale]) -> list[Scale]:
    """Return scales without repeats, small ones first."""
    return sorted(dict.fromkeys(scales), key=lambda scale: (sum(sizes_of(scale)), sizes_of(scale)))


# --- where attention goes -------------------------------------------------------------------------
def share_at(run, scale: Scale, samples: int = SAMPLES, seed: int = 0) -> Share:
    """Measure how much attention the queries of the steps of a scale put on their operands.

    Args:
        run: a `LoadedRun`; its task has a circuit.
        scale: the scale n.
        samples: number of sequences; fewer where they have more than a thousand tokens.
        seed: seed of the samples, and of the choice of steps where there are more than 200.

    Returns:
        A `Share`, see `lgcourse.model.reading.operand_share`.

    Raises:
        InputError: the task has no circuit, or none that could be written down at this scale.
    """
    whole_number("samples", samples, 1)
    source = generator(seed, f"explain at {scale_name(scale)}")
    steps = _steps(run.task, scale)
    count = max(1, min(samples, TOKENS // run.task.length(scale)))
    batch = run.task.sample(scale, count, source)
    scored = [step for step in steps if batch.answer[step.output] and step.inputs]
    return operand_share(run.model, batch, _some(scored, STEPS, source))


def _steps(task, scale: Scale) -> list[Step]:
    if not covered(task):
        raise InputError(f"task '{task.name}' has no circuit made of positions only")
    return sorted(task.circuit(scale), key=lambda step: step.output)


def _some(steps: Sequence[Step], most: int, source: torch.Generator) -> list[Step]:
    """Return the steps, or a random part of so many."""
    if len(steps) <= most:
        return list(steps)
    return [steps[k] for k in torch.randperm(len(steps), generator=source)[:most].sort().values]


# --- agreement with the ideal relation ------------------------------------------------------------
@dataclass(frozen=True)
class Naming:
    """One id that names the operand of a role.

    Args:
        place: the layer and head whose relation has the id.
        id: the id in words.
        share: share of the role's steps at which it names the operand.
    """

    place: str
    id: str
    share: float


@dataclass
class RoleNaming:
    """How a learned relation names the operand of one role.

    Args:
        operator, role: the role, as the ideal relation labels it.
        steps: number of steps with this role that were looked at.
        named: share of them at which some head names the operand.
        by: the ids that do, those that name it most often first.
    """

    operator: str
    role: str
    steps: int = 0
    named: float = 0.0
    by: list[Naming] = field(default_factory=list)


@dataclass(frozen=True)
class Agreement:
    """How a learned relation agrees with the ideal one on the operands' ids.

    A head names an operand if it gives it an id that no other key of the query has, that is not
    "other", and that this role had at a training scale. Where a role is named at no step by any
    head alone, heads of two layers may name it together: the later one reads a token at which the
    earlier one has read the operand.

    Args:
        scales: the scales that were looked at.
        roles: one entry per role of the circuit.
        besides: ids other than "other" that stand at a key that is no operand of the step, with the
            share of steps at which they do; empty if the relation has no id "other".
    """

    scales: list[Scale]
    roles: list[RoleNaming]
    besides: list[Naming]

    @property
    def agrees(self) -> bool:
        """Whether every role is named at every step."""
        return self.complete == len(self.roles)

    @property
    def complete(self) -> int:
        """The number of roles that are named at every step."""
        return sum(role.named == 1 for role in self.roles)

    @property
    def unnamed(self) -> list[RoleNaming]:
        """The roles that are named at no step."""
        return [role for role in self.roles if role.named == 0]


def agreement(
    heads: Sequence[Reader],
    task,
    train_scales: Sequence[Scale],
    scales: Sequence[Scale],
    most: int = STEPS,
) -> Agreement:
    """Compare relations with the ideal one, role by role.

    Args:
        heads: the relations, see `readers`.
        task: a task with a circuit.
        train_scales: the scales of training.
        scales: the scales to look at.
        most: steps to look at per scale; if there are more, a random choice.

    Returns:
        An `Agreement`.

    Raises:
        InputError: the task has no circuit, or none that could be written down at a scale.

    >>> from lgcourse import relations, tasks
    >>> task = tasks.get("copy")
    >>> heads = [Reader(1, 1, relations.build("rpe-sh", task))]
    >>> found = agreement(heads, task, range(1, 11), [5, 20])
    >>> found.agrees, found.roles[0].by
    (True, [Naming(place='layer 1 head 1', id='i - j - n = 0', share=1.0)])
    """
    found = _compared_by(heads, task, train_scales, scales, most)
    if found.agrees:
        return found
    cells = [head.relation for head in heads if isinstance(head.relation, CellRelation)]
    relays = [Reader(None, None, chain) for chain in chains(cells)]
    return _compared_by([*heads, *relays], task, train_scales, scales, most) if relays else found


def _compared_by(heads, task, train_scales, scales, most) -> Agreement:
    tally = _Tally(heads)
    for scale in train_scales:
        tally.learn(_steps(task, scale), scale)
    for scale in scales:
        source = generator(0, f"agreement at {scale_name(scale)}")
        tally.look(_some(_steps(task, scale), most, source), scale)
    return Agreement(list(scales), tally.roles(), tally.others())


RoleName = tuple[str, str]  # operator and role


class _Tally:
    """Counts which ids name the operands of which roles."""

    def __init__(self, readers: Sequence[Reader]):
        self.readers = readers
        self.shown: set[tuple[int, RoleName, int]] = set()  # reader, role, id: met in training
        self.count: dict[RoleName, int] = defaultdict(int)  # steps
        self.named: dict[RoleName, int] = defaultdict(int)  # steps at which some head names it
        self.by: dict[tuple[RoleName, int, int], int] = defaultdict(int)  # role, reader, id
        self.besides: dict[tuple[int, int], int] = defaultdict(int)  # reader, id
        self.steps = 0

    def learn(self, steps: Sequence[Step], scale: Scale) -> None:
        """Note the ids that each role has at a training scale."""
        query, inputs = positions(steps)
        for number, reader in enumerate(self.readers):
            for row, ids in enumerate(_ids(reader.relation, query, inputs, scale)[1].tolist()):
                self.shown |= {(number, role, ids[r]) for r, role in enumerate(_roles(steps[row]))}

    def look(self, steps: Sequence[Step], scale: Scale) -> None:
        """Count the steps of one scale."""
        query, inputs = positions(steps)
        if not inputs.numel():
            return
        named: dict[tuple[int, RoleName], bool] = {}
        self.steps += len(steps)
        for number, reader in enumerate(self.readers):
            other = reader.relation.other
            ids, own = _ids(reader.relation, query, inputs, scale)  # s k, s r
            alone = torch.stack([(ids == own[:, [r]]).sum(1) == 1 for r in range(own.shape[1])], 1)
            good = (alone & (own != (-1 if other is None else other))).tolist()
            for row, step in enumerate(steps):
                for r, role in enumerate(_roles(step)):
                    id = int(own[row, r])
                    found = good[row][r] and (number, role, id) in self.shown
                    named[row, role] = named.get((row, role), False) or found
                    self.by[role, number, id] += found
            if other is not None and not reader.relays:  # the query itself is no finding
                known = torch.cat([inputs, query[:, None]], dim=1)
                self._note_others(number, ids, reads_of(known, ids.shape[1]), other)
        for (_, role), found in named.items():
            self.count[role] += 1
            self.named[role] += found

    def _note_others(self, number: int, ids: Tensor, reads: Tensor, other: int) -> None:
        row, key = ((ids >= 0) & (ids != other) & ~reads).nonzero(as_tuple=True)
        pairs = {(r, id) for r, id in zip(row.tolist(), ids[row, key].tolist(), strict=True)}
        for _, id in pairs:
            self.besides[number, id] += 1

    def roles(self) -> list[RoleNaming]:
        """Return what was counted, role by role."""
        return [
            RoleNaming(*role, count, self.named[role] / count, self._by(role, count))
            for role, count in self.count.items()
        ]

    def _by(self, role: RoleName, count: int) -> list[Naming]:
        rows = [((k[1], k[2]), n) for k, n in self.by.items() if k[0] == role and n]
        return [self._naming(*key, n / count) for key, n in sorted(rows, key=lambda row: -row[1])]

    def others(self) -> list[Naming]:
        """Return the ids that stand at keys that are no operand, the most frequent first."""
        rows = sorted(self.besides.items(), key=lambda row: -row[1])
        return [self._naming(*key, count / self.steps) for key, count in rows]

    def _naming(self, number: int, id: int, share: float) -> Naming:
        reader = self.readers[number]
        return Naming(reader.place, reader.relation.label(id), share)


def _roles(step: Step) -> Iterator[RoleName]:
    for role in step.operator.roles:
        yield step.operator.name, str(role)


def _ids(relation: Relation, query, inputs, scale: Scale) -> tuple[Tensor, Tensor]:
    """Return the ids of all keys (-1 after the query), and those of the operands (-1: none)."""
    key = torch.arange(int(query.max()) + 1 if len(query) else 0)
    if not len(key):
        return inputs.new_zeros(0, 0), inputs
    ids = torch.where(key > query[:, None], -1, relation(query, key, scale))
    return ids, torch.where(inputs < 0, -2, ids.gather(1, inputs.clamp(min=0)))


# --- all of it ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Explanation:
    """What a run learned, measured.

    Args:
        task, pe: their names.
        train_scale: sizes of training were 1..train_scale.
        heads: what each head reads, see `words`.
        shares: attention on the operands, one entry per scale; those of training first.
        agreement: how the relation agrees with the ideal one; None where there is no relation or
            no circuit.
        prediction: what theory says of the relation.
        exact_match: scale -> exact match that was measured after training.
        notes: what could not be measured, and why.
    """

    task: str
    pe: str
    train_scale: int
    heads: list[dict[str, Any]]
    shares: list[Share]
    agreement: Agreement | None
    prediction: Prediction
    exact_match: dict[str, float]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON; scales become ``"20"`` or ``"20x13"``."""
        shares = {}
        for share in self.shares:
            shares[scale_name(share.scale)] = {k: v for k, v in vars(share).items() if k != "scale"}
        found = self.agreement
        return {
            "task": self.task,
            "pe": self.pe,
            "train_scale": self.train_scale,
            "relation": self.heads,
            "attention": shares,
            "agreement": None if found is None else {
                "agrees": found.agrees,
                "scales": list(map(scale_name, found.scales)),
                "roles": [asdict(role) for role in found.roles],
                "unnamed": [f"{role.operator} {role.role}" for role in found.unnamed],
                "besides": [asdict(naming) for naming in found.besides],
            },
            "prediction": self.prediction.to_json(),
            "exact_match": self.exact_match,
            "notes": self.notes,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return all of it in plain words, about one screen."""
        samples = max((share.samples for share in self.shares), default=0)
        many = f"; up to {STEPS} steps and {samples} samples per scale" if samples else ""
        return [
            f"{self.task}, {self.pe}, trained on scales 1..{self.train_scale}{many}",
            *self._attention(),
            *self._against_ideal(),
            *self._outcome(),
            *(f"note: {note}" for note in self.notes),
        ]

    def _attention(self) -> list[str]:
        """The table of heads: their share of attention on the operands, and what they read."""
        if not self.shares:
            return [f"{_place(row)}: {row['words']}" for row in self.heads]
        shares = self.shares
        scales, kind = [scale_name(share.scale) for share in shares], self.heads[0]["kind"]
        rows = [["attention on the operands at scale", *scales, READS[kind]]]
        for layer, heads in enumerate(shares[0].on_operands):
            for head in range(len(heads)):
                values = [f"{100 * share.on_operands[layer][head]:.1f} %" for share in shares]
                name = _place({"layer": layer + 1, "head": head + 1})
                text = shorten(words_at(self.heads, layer, head), LONGEST, placeholder=" ...")
                rows.append([f"  {name}", *values, text])
        rows.append([f"  {EVENLY}", *(f"{100 * share.evenly:.1f} %" for share in shares), ""])
        for label, name in COUNTED.items():
            rows.append([f"  {label}", *(percent(getattr(s, name)) for s in shares), ""])
        whole = [f"{_place(row)}: {row['words']}" for row in self.heads if row["head"] is None]
        return [*_columns(rows), *whole]

    def _against_ideal(self) -> list[str]:
        """The roles of the circuit, and which ids name them; the worst first if not all fit."""
        found = self.agreement
        if found is None:
            return []
        roles = found.roles
        lines = [
            f"operands named by an id of their own that training showed: {found.complete} of "
            f"{len(roles)} roles at every step; scales {_short(found.scales)}"
        ]
        if len(roles) > MOST_ROLES:
            roles = sorted(roles, key=lambda role: role.named)[:MOST_ROLES]
        rows = [[f"  {r.operator}: {r.role}", percent(r.named), _listed(r.by)] for r in roles]
        lines += _columns(rows)
        if len(roles) < len(found.roles):
            lines.append(f"  ... and {len(found.roles) - len(roles)} roles, named as often or more")
        if found.besides:
            lines.append(f"named though no operand, share of steps: {_listed(found.besides)}")
        return lines

    def _outcome(self) -> list[str]:
        said = self.prediction
        scores = ", ".join(f"{value:.3f} at {n}" for n, value in self.exact_match.items())
        return [
            f"theory, from this relation: {said.verdict}, because {said.reason}",
            f"measured after training, exact match: {scores}",
        ]


def explain(run, samples: int = SAMPLES, seed: int = 0) -> Explanation:
    """Say what a run learned: its relation, its attention, and what theory makes of the relation.

    Args:
        run: a `LoadedRun`.
        samples: number of sequences per scale whose attention is read.
        seed: seed of these sequences.

    Returns:
        An `Explanation`.
    """
    notes: list[str] = []
    shares = []
    for scale in _scales(run):
        try:
            shares.append(share_at(run, scale, samples, seed))
        except InputError as error:
            notes.append(f"no operands at scale {scale_name(scale)}: {error}")
        if not covered(run.task):
            break
    found = readers(run.model)
    compared = None
    if found and covered(run.task):
        trained = [n for n in _train_scales(run) if _can_be_written(run.task, n)]
        compared = agreement(found, run.task, trained, _compared(run))
    return Explanation(
        task=run.settings.task,
        pe=run.settings.pe,
        train_scale=run.settings.train_scale,
        heads=words(run.model),
        shares=shares,
        agreement=compared,
        prediction=predict_run(run),
        exact_match=run.result["exact_match"],
        notes=notes,
    )


def _compared(run) -> list[Scale]:
    """Return the scales at which the relation is compared with the ideal one."""
    task, scales = run.task, _train_scales(run)
    if task.sizes == 1:  # with more sizes there are too many scales
        scales += range(1, min(EVERY_SCALE, max(sizes_of(run.settings.largest))) + 1)
    scales += run.settings.test_scales
    return [scale for scale in _in_order(scales) if _can_be_written(task, scale)]


def _can_be_written(task, scale: Scale) -> bool:
    limit = getattr(task, "largest_circuit", None)
    return limit is None or max(sizes_of(scale)) <= limit


def percent(share: float) -> str:
    """Return a share as text; only what is exactly none or all is written as 0 or 100 %.

    >>> percent(1.0), percent(0.99999), percent(0.1234), percent(0.0)
    ('100 %', '99.9 %', '12.3 %', '0 %')
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return f"{min(99.9, max(0.1, 100 * share)):.1f} %"


def _place(row: dict[str, Any]) -> str:
    """Name a layer and head in words; None stands for all."""
    layer = "all layers" if row["layer"] is None else f"layer {row['layer']}"
    return f"{layer} {'all heads' if row['head'] is None else 'head ' + str(row['head'])}"


def _listed(namings: Sequence[Naming]) -> str:
    """List ids with their places; an id that does the same in several heads is named once."""
    places: dict[tuple[str, float], list[str]] = {}
    for n in namings:
        places.setdefault((n.id, n.share), []).append(n.place)
    rows = [f"{id} ({_heads(at)}, {percent(share)})" for (id, share), at in places.items()]
    more = [f"{len(rows) - TOLD} more"] if len(rows) > TOLD else []
    return ", ".join([*rows[:TOLD], *more])


def _heads(places: Sequence[str]) -> str:
    """Join the names of heads.

    >>> _heads(["layer 1 head 2", "layer 1 head 3", "layer 2 head 1"])
    'layer 1 head 2 3, layer 2 head 1'
    """
    joined: dict[str, list[str]] = {}
    for place in places:
        words, _, number = place.rpartition(" ")
        joined.setdefault(words, []).append(number)
    return ", ".join(f"{words} {' '.join(numbers)}" for words, numbers in joined.items())


def _short(scales: Sequence[Scale]) -> str:
    """Write scales shortly.

    >>> _short([1, 2, 3, 50]), _short([(1, 1), (1, 2), (2, 1), (2, 2), (9, 4)])
    ('1..3, 50', '1x1, 1x2, .. 2x2, 9x4 (5 scales)')
    """
    parts: list[list[Scale]] = []
    for scale in scales:
        if parts and isinstance(scale, int) and scale - 1 == parts[-1][-1]:
            parts[-1].append(scale)
        else:
            parts.append([scale])
    names = [scale_name(p[0]) + (f"..{scale_name(p[-1])}" if p[1:] else "") for p in parts]
    if len(names) > 4:
        return f"{', '.join(names[:2])}, .. {', '.join(names[-2:])} ({len(scales)} scales)"
    return ", ".join(names)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows as a table: the first and last column to the left, those between to the right.

    >>> _columns([["a", "1.0", "x"], ["bcd", "10.0", "yz"]])
    ['a     1.0  x', 'bcd  10.0  yz']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at in (0, len(widths) - 1) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
