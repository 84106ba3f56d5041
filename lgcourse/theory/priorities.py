"""What does training force on the ids of a role? The operand's id must win over all others there.

A role is an operand of an operator. Attention finds it by one number per id, its strength, so
training leaves an order on the ids that the role has had; `Learned` holds these orders.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse.relations.base import Relation, Scale
from lgcourse.tasks.circuit import Step
from lgcourse.theory.circuits import show_scale
from lgcourse.theory.merging import Merging, positions

CELLS = 1 << 22  # cells of the attention square that are looked at together
Role = tuple[int, int]  # group of operators that one table serves, index of the operand


@dataclass(frozen=True)
class Lines:
    """The steps of one scale, with their positions and operators as arrays.

    Args:
        steps: the steps, s of them.
        scale: their scale.
        query, inputs: the query, and the operands by role (-1 where a step has fewer).
        operator: index of the step's operator among the distinct ones.
        group: which table serves it after merging.
    """

    steps: Sequence[Step]
    scale: Scale
    query: Int[Tensor, " s"]
    inputs: Int[Tensor, "s r"]
    operator: Int[Tensor, " s"]
    group: Int[Tensor, " s"]

    def roles(self, part: slice) -> Iterator[tuple[Role, Int[Tensor, " m"]]]:
        """Yield the roles of some steps, each with the rows (of these steps) that have it."""
        groups = self.group[part]
        for group in groups.unique().tolist():
            rows = (groups == group).nonzero()[:, 0]
            for role in range(self.steps[part.start + int(rows[0])].operator.arity):
                yield (group, role), rows

    def operand(self, row: int, role: int) -> str:
        """Name an operand in words."""
        operator = self.steps[row].operator
        return f"operand `{operator.roles[role]}` of `{operator.name}`"


def lines(circuits: Sequence[tuple[Scale, Sequence[Step]]], merging: Merging) -> list[Lines]:
    """Turn the steps of several scales, whose operators ``merging`` knows, into arrays."""
    groups = torch.tensor(merging.groups(), dtype=torch.long)
    made = []
    for scale, steps in circuits:
        operator = torch.tensor(merging.add_steps(steps), dtype=torch.long)
        made.append(Lines(steps, scale, *positions(steps), operator, groups[operator]))
    return made


@dataclass
class Order:
    """What training forces on the ids of one role.

    Args:
        operand: the role in words.
        columns: the role's ids, as indices among all ids that the relation gives to operands.
        above: above[a, b] is True where id a must win over id b: the transitive closure of "the
            operand's id beats every other id of the role that is present".
        fault: why there is no strict order, in words; None if there is one.
    """

    operand: str
    columns: Int[Tensor, " k"]
    above: Bool[Tensor, "k k"]
    fault: str | None = None

    def place(self, columns: Int[Tensor, " m"]) -> Int[Tensor, " m"]:
        """Return where ids stand among the role's ids, -1 for those that are new to it."""
        found = torch.searchsorted(self.columns, columns).clamp(max=len(self.columns) - 1)
        return torch.where(self.columns[found] == columns, found, -1)


class Learned:
    """A relation after training: the ids that each role has had, and the priorities among them.

    For every training step and role, let o be the operand's id and P the ids of the role that are
    present among the keys j <= query. Training asks that o belongs to one key only and that o beats
    every other id in P. If "beats" has no cycle, a strict order exists, and its transitive closure
    is what training forces. At a test step the role is resolved if o belongs to one key only and is
    above every other id of the role that is present.

    Args:
        relation: the relation phi.
        training: the steps of the training scales.
        ids: the operands' ids at these steps.
    """

    def __init__(self, relation: Relation, training: Sequence[Lines], ids: Sequence[Tensor]):
        self.relation = relation
        flat = [found[found >= 0] for found in ids]
        self.known = torch.cat(flat).unique() if flat else torch.zeros(0, dtype=torch.long)
        self.orders = self._roles(training, ids)
        for line, found in zip(training, ids, strict=True):
            for part, counts in self._counts(line):
                self._compare(line, part, counts, found[part])
        for order in self.orders.values():
            if order.fault is None:
                self._close(order)

    def _roles(self, training, ids) -> dict[Role, Order]:
        columns: dict[Role, list[Tensor]] = defaultdict(list)
        operand: dict[Role, str] = {}
        for line, found in zip(training, ids, strict=True):
            for role, rows in line.roles(slice(0, None)):
                columns[role].append(found[rows, role[1]].unique())
                operand.setdefault(role, line.operand(int(rows[0]), role[1]))
        orders = {}
        for role, parts in columns.items():
            own = torch.searchsorted(self.known, torch.cat(parts).unique())
            none = torch.zeros(len(own), len(own), dtype=torch.bool)
            orders[role] = Order(operand[role], own, none)
        return orders

    def _counts(self, line: Lines) -> Iterator[tuple[slice, Int[Tensor, "q k"]]]:
        """Yield how many keys have each known id, for some queries at a time."""
        if not len(line.query) or not len(self.known):
            return
        key = torch.arange(int(line.query.max()) + 1)
        chunk = max(1, CELLS // (len(key) + len(self.known)))
        for start in range(0, len(line.query), chunk):
            part = slice(start, start + chunk)
            query = line.query[part]
            ids = self.relation(query, key, line.scale)
            column, known = self._columns(ids)
            column = torch.where(known & (key <= query[:, None]), column, len(self.known))
            counts = torch.zeros(len(query), len(self.known) + 1, dtype=torch.int32)
            counts.scatter_add_(1, column, torch.ones_like(column, dtype=torch.int32))
            yield part, counts[:, :-1]

    def _columns(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return where ids stand among the known ones, and whether they are known."""
        column = torch.searchsorted(self.known, ids.contiguous()).clamp(max=len(self.known) - 1)
        return column, self.known[column] == ids

    def _compare(self, line: Lines, part: slice, counts, ids) -> None:
        """Note what some steps force: the operand's id is there once, and beats the rest."""
        for role, rows in line.roles(part):
            order = self.orders[role]
            place = order.place(self._columns(ids[rows, role[1]])[0])
            present = counts[rows][:, order.columns]
            shared = (present.gather(1, place[:, None])[:, 0] != 1).nonzero()[:, 0]
            if len(shared) and order.fault is None:
                row, number = rows[shared[0]], int(present[shared[0], place[shared[0]]])
                order.fault = (
                    f"training cannot single out {order.operand}: at scale "
                    f"{show_scale(line.scale)}, {number} keys have its id "
                    f"{self._name(ids[row, role[1]])}"
                )
            at, other = present.nonzero(as_tuple=True)
            order.above[place[at], other] = True

    def _close(self, order: Order) -> None:
        order.above.fill_diagonal_(False)
        above, cycle = closure(order.above.numpy())
        order.above = torch.from_numpy(above)
        if cycle:
            names = [self._name(self.known[order.columns[c]]) for c in [*cycle, cycle[0]]]
            order.fault = (
                f"training asks for contrary priorities among the ids of {order.operand}: "
                f"{' over '.join(names)}"
            )

    def resolve(self, line: Lines, ids: Int[Tensor, "s r"]) -> Bool[Tensor, "s r"]:
        """Return for each test step and role whether the priorities single out the operand."""
        resolved = line.inputs < 0  # a step has nothing to find in the roles that it lacks
        for part, counts in self._counts(line):
            for role, rows in line.roles(part):
                order = self.orders.get(role)
                if order is None or order.fault is not None:
                    continue
                place, present = self._seen(order, ids[part][rows, role[1]], counts[rows])
                single = present.gather(1, place.clamp(min=0)[:, None])[:, 0] == 1
                rivals = (present > 0) & ~order.above[place]
                rivals.scatter_(1, place.clamp(min=0)[:, None], False)
                good = (place >= 0) & single & ~rivals.any(1)
                resolved[part.start + rows, role[1]] = good
        return resolved

    def _seen(self, order: Order, ids, counts) -> tuple[Tensor, Tensor]:
        """Return each id's place in an order (-1: new in this role), and the role's counts."""
        column, known = self._columns(ids)
        return torch.where(known, order.place(column), -1), counts[:, order.columns]

    # --- in words -------------------------------------------------------------------------------
    def seen(self, line: Lines, row: int, role: int, id: int) -> bool:
        """Return whether training showed the id of an operand in its role."""
        order = self.orders.get((int(line.group[row]), role))
        return order is not None and id in self.known[order.columns].tolist()

    def why(self, line: Lines, row: int, role: int, id: int) -> str:
        """Return why a role is not resolved at a test step."""
        operand = f"at scale {show_scale(line.scale)} {line.operand(row, role)}"
        order = self.orders.get((int(line.group[row]), role))
        if order is None:
            return f"{operand} is new: training never used this operator"
        if not self.seen(line, row, role, id):
            return f"{operand} {self._stands(id)}, {self._never(id, order)}"
        if order.fault is not None:
            return order.fault
        return self._rival(line, row, order, id, operand)

    def _rival(self, line: Lines, row: int, order: Order, id: int, operand: str) -> str:
        one = Lines([line.steps[row]], line.scale, *(
            field[row : row + 1] for field in (line.query, line.inputs, line.operator, line.group)
        ))  # fmt: skip
        _, counts = next(self._counts(one))
        place, present = self._seen(order, torch.tensor([id]), counts)
        number = int(present[0, place])
        if number != 1:
            return f"{operand} is not the only one: {number} keys have its id {self._name(id)}"
        rivals = (present[0] > 0) & ~order.above[place[0]]
        rivals[place] = False
        rival = int(rivals.nonzero()[0, 0])
        taught = "taught it to win" if order.above[rival, place[0]] else "never compared the two"
        other = self._name(self.known[order.columns[rival]])
        return (
            f"{operand} has the id {self._name(id)}, but {other} is present too, and training "
            f"{taught}"
        )

    def _label(self, id) -> str:
        label = getattr(self.relation, "label", None)
        return label(int(id)) if label else f"id {int(id)}"

    def _name(self, id) -> str:
        return f"'{self._label(id)}'"

    def _stands(self, id: int) -> str:
        label = self._label(id)
        return f"stands at {label}" if " = " in label else f"has the id '{label}'"

    def _never(self, id: int, order: Order) -> str:
        form = self._label(id).partition(" = ")[0]
        what = {"i - j": "a distance", "j": "a position"}.get(form, "an id")
        labels = [self._label(i) for i in self.known[order.columns].tolist()]
        return f"{what} that training never showed ({_shorten(labels, form)})"


def closure(beats: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the transitive closure of "beats", or a cycle that it has.

    Nodes are taken from the last ones up, so each adds up the finished rows of what it beats.

    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> closure(chain)[0].astype(int).tolist(), closure(chain | chain.T)[1]
    ([[0, 1, 1], [0, 0, 1], [0, 0, 0]], [0, 1])
    """
    size, left = len(beats), beats.sum(1)
    packed, ready, done = np.packbits(beats, axis=1), np.flatnonzero(left == 0).tolist(), 0
    while ready:
        node = ready.pop()
        done += 1
        below = np.flatnonzero(beats[node])
        if len(below):
            packed[node] |= np.bitwise_or.reduce(packed[below], axis=0)
        above = np.flatnonzero(beats[:, node])
        left[above] -= 1
        ready += above[left[above] == 0].tolist()
    if done == size:
        return np.unpackbits(packed, axis=1, count=size).astype(bool), []
    return beats, _cycle(beats, left > 0)


def _cycle(beats: np.ndarray, stuck: np.ndarray) -> list[int]:
    """Return the nodes of a cycle in order: a pair if there is one, else any.

    Every stuck node beats another stuck node, so each way through them must come back.
    """
    mutual = np.argwhere(beats & beats.T)
    if len(mutual):
        return mutual[0].tolist()
    way = [int(np.flatnonzero(stuck)[0])]
    while True:
        node = int(np.flatnonzero(beats[way[-1]] & stuck)[0])
        if node in way:
            return way[way.index(node) :]
        way.append(node)


def _shorten(labels: list[str], form: str, most: int = 4) -> str:
    """Return labels as ranges of a form's values where they all have this form: ``1..10``."""
    found = [re.fullmatch(rf"{re.escape(form)} = (-?\d+)", label) for label in labels]
    values = sorted(int(match[1]) for match in found if match)
    if len(values) < len(labels):
        return ", ".join(labels[:most] + ["..."] * (len(labels) > most))
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    shown = [str(a) if a == b else f"{a}..{b}" for a, b in runs]
    return ", ".join(shown[:most] + ["..."] * (len(shown) > most))
