"""Can attention find the operands of every step by their ids alone, as training taught it?

If it can, the relation aligns the circuit from training to test scales: (1) every induced operator
that a test step needs was met in training, (2) for each role the priorities that training forces on
the ids single out the operand at every step, and (3) steps that need incompatible operators differ
in their ids or in the tokens that they read.
Source: the course's formalisation, after Chen, Liang and Lin (2025).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from lgcourse.relations.base import Relation
from lgcourse.theory.circuits import show_scale
from lgcourse.theory.merging import Merging, operand_ids
from lgcourse.theory.priorities import CELLS, Learned, Lines


class Alignment:
    """How relations serve a circuit: which test steps they resolve, and why not the others.

    With several relations (heads), an operand counts as found if one of them singles it out, a test
    step as met if a training step of the same operator agrees with it, for every operand, in the id
    of a relation that singles it out, and two steps as different if one relation tells them apart.

    Args:
        relations: one or more relations.
        training, test: the steps of the scales.
        merging: knows their operators.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        training: Sequence[Lines],
        test: Sequence[Lines],
        merging: Merging,
    ):
        self.training, self.test, self.merging = training, test, merging
        train_ids = [self._ids(relation, training) for relation in relations]
        test_ids = [self._ids(relation, test) for relation in relations]
        self.learned = [
            Learned(relation, training, ids)
            for relation, ids in zip(relations, train_ids, strict=True)
        ]
        resolved = [
            [learned.resolve(line, found) for line, found in zip(test, ids, strict=True)]
            for learned, ids in zip(self.learned, test_ids, strict=True)
        ]
        self.train_ids, self.test_ids = _side_by_side(train_ids), _side_by_side(test_ids)
        self.found = _side_by_side(resolved)
        self.met = self._met()
        self.clash = self._clashes()

    @staticmethod
    def _ids(relation: Relation, several: Sequence[Lines]) -> list[Tensor]:
        return [operand_ids(relation, line.steps, line.scale) for line in several]

    @property
    def resolvable(self) -> list[Bool[Tensor, " s"]]:
        """For each test scale: which steps meet all three conditions."""
        clash = self.clash[len(self.training) :]
        return [met & ~clashing for met, clashing in zip(self.met, clash, strict=True)]

    def _met(self) -> list[Bool[Tensor, " s"]]:
        """Conditions 1 and 2: operands found by ids that training showed together."""
        shown: dict[int, list[Tensor]] = defaultdict(list)
        for line, ids in zip(self.training, self.train_ids, strict=True):
            for group in line.group.unique().tolist():
                shown[group].append(_distinct(_own(line, ids, group)))
        tuples = {group: _distinct(torch.cat(parts)) for group, parts in shown.items()}
        met = []
        for line, ids, found in zip(self.test, self.test_ids, self.found, strict=True):
            good = torch.zeros(len(line.steps), dtype=torch.bool)
            for group in set(line.group.unique().tolist()) & set(tuples):
                good[line.group == group] = _agree(
                    _own(line, ids, group), _own(line, found, group), tuples[group]
                )
            met.append(good)
        return met

    def _clashes(self) -> list[Bool[Tensor, " s"]]:
        """Condition 3: which steps have the same ids as a step with an incompatible operator.

        Two operators are incompatible if they disagree on a tuple of tokens that both can read;
        where the tokens always differ, no tuple is in both tables, and the operators are
        compatible. So the ids alone remain to be compared.
        """
        several = [*self.training, *self.test]
        clash = [torch.zeros(len(line.steps), dtype=torch.bool) for line in several]
        all_ids = [*self.train_ids, *self.test_ids]
        users: dict[tuple, set[int]] = defaultdict(set)
        keys = []
        for line, ids in zip(several, all_ids, strict=True):
            arity = (line.inputs >= 0).sum(1)
            keys.append([
                (own, tuple(row[: own * ids.shape[2]]))
                for own, row in zip(arity.tolist(), ids.flatten(1).tolist(), strict=True)
            ])  # fmt: skip
            for key, operator in zip(keys[-1], line.operator.tolist(), strict=True):
                users[key].add(operator)
        bad = {
            (key, operator)
            for key, operators in users.items()
            if len(operators) > 1
            for operator in operators
            if self.merging.clashes(operator, operators)
        }
        for line, own, flags in zip(several, keys, clash, strict=True):
            pairs = zip(own, line.operator.tolist(), strict=True)
            flags[:] = torch.tensor([pair in bad for pair in pairs], dtype=torch.bool)
        return clash

    # --- in words -------------------------------------------------------------------------------
    def fault(self) -> str | None:
        """Return why the circuit is not aligned; None if it is.

        Named first is an id that the first failing test step needs and training never showed,
        then what training itself cannot settle, then the rest.
        """
        at = next((k for k, good in enumerate(self.resolvable) if not good.all()), None)
        row = 0 if at is None else int((~self.resolvable[at]).nonzero()[0, 0])
        reason = None if at is None else self._unseen(at, row)
        reason = reason or self._training_fault()
        if reason is None and at is not None:
            reason = self._why(at, row)
        if reason is not None:
            return reason
        for line, clashing in zip(self.training, self.clash, strict=False):
            if clashing.any():
                return self._why_clash(line, int(clashing.nonzero()[0, 0]))
        return None

    def _lost(self, index: int, row: int) -> list[tuple[int, int]]:
        """Return the operands of a test step that no relation finds, with their first ids."""
        lost = (~self.found[index][row].any(-1)).nonzero()[:, 0].tolist()
        return [(role, int(self.test_ids[index][row, role, 0])) for role in lost]

    def _unseen(self, index: int, row: int) -> str | None:
        line, learned = self.test[index], self.learned[0]
        for role, id in self._lost(index, row):
            if not learned.seen(line, row, role, id):
                return self._of_several(learned.why(line, row, role, id))
        return None

    def _training_fault(self) -> str | None:
        for role, order in self.learned[0].orders.items():
            if order.fault and all(learned.orders[role].fault for learned in self.learned):
                return self._of_several(order.fault)
        return None

    def _why(self, index: int, row: int) -> str:
        line = self.test[index]
        for role, id in self._lost(index, row):
            return self._of_several(self.learned[0].why(line, row, role, id))
        if not self.met[index][row]:
            name = line.steps[row].operator.name
            return (
                f"at scale {show_scale(line.scale)} the operands of `{name}` have ids that "
                "training never showed together"
            )
        return self._why_clash(line, row)

    def _why_clash(self, line: Lines, row: int) -> str:
        return (
            f"at scale {show_scale(line.scale)} `{line.steps[row].operator.name}` (position "
            f"{line.steps[row].output}) reads the same ids as a step that needs another operator, "
            "so nothing tells the two apart"
        )

    def _of_several(self, reason: str) -> str:
        number = len(self.learned)
        if number == 1:
            return reason
        name = getattr(self.learned[0].relation, "name", "the first")
        return f"none of the {number} relations finds an operand; for '{name}': {reason}"


def _side_by_side(per_relation: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Join what several relations say about the steps of each scale: Tensor["s r relation"]."""
    return [torch.stack(scale, dim=-1) for scale in zip(*per_relation, strict=True)]


def _own(line: Lines, values: Tensor, group: int) -> Tensor:
    """Return the rows of one group, for the roles that it has."""
    rows = (line.group == group).nonzero()[:, 0]
    return values[rows, : line.steps[int(rows[0])].operator.arity]


def _distinct(rows: Tensor) -> Tensor:
    """Return the distinct rows; rows without content are all the same."""
    return rows.unique(dim=0) if rows.numel() else rows[:1]


def _agree(ids: Tensor, found: Tensor, shown: Tensor) -> Bool[Tensor, " m"]:
    """Return which tuples of ids agree with a shown one, in each role by one that finds it."""
    chunk = max(1, CELLS // max(1, shown.numel()))
    parts = []
    for start in range(0, len(ids), chunk):
        part = slice(start, start + chunk)
        same = (ids[part, None] == shown) & found[part, None]  # [m d r relation]
        parts.append(same.any(-1).all(-1).any(-1))
    return torch.cat(parts)
