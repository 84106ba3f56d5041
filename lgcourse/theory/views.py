"""What does a step see through several heads that attend to nothing else, and is that enough?

Each head of a learned relation reads a few cells "form = value" and excludes every other key. Which
key stands at a cell follows from the positions, so a step sees a fixed number of tokens: its view.
No head has to prefer one key to another; the layers behind the heads get what all of them read.
They serve a test step if (1) each operand stands at a cell of some head, (2) training had a step
with the same view and the same table, and (3) no step that looks the same needs another one.
Source: the course's formalisation, after Chen, Liang and Lin (2025).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse.relations.cells import CellRelation
from lgcourse.relations.chain import ChainRelation
from lgcourse.tasks.base import Task
from lgcourse.theory.circuits import show_scale
from lgcourse.theory.merging import Merging
from lgcourse.theory.priorities import Lines

NO_KEY = -1


@dataclass(frozen=True)
class Seen:
    """What a step sees, and what it needs.

    Args:
        view: for each cell of each head what stands there, -1 for no key.
        cells: for each operand, the cells at which it stands.
        operator, table: the step's operator, and which table serves it after merging.
    """

    view: tuple[int, ...]
    cells: tuple[frozenset[int], ...]
    operator: int
    table: int

    def like(self, other: Seen) -> bool:
        """Whether each operand stands at a cell where it stands in the other step, too."""
        same = len(self.cells) == len(other.cells)
        return same and all(a & b for a, b in zip(self.cells, other.cells, strict=True))


class Views:
    """How heads that read cells serve a circuit: which test steps they resolve, and why not others.

    A view says for each cell of each head whether a key stands there, and what its token tells of
    its place: whether it is a mark such as "=", and, where the tokens carry their part, which part
    of the input it belongs to.

    Args:
        heads: their relations, made of cells; "other" is never attended to. Chains of two heads
            count as heads.
        training, test: the steps of the scales.
        merging: knows their operators.
        circuit: the task, or another circuit; its layout tells the marks and parts.

    >>> from lgcourse.relations.forms import Form
    >>> from lgcourse.tasks import get
    >>> from lgcourse.theory.priorities import lines
    >>> task, merging = get("copy"), Merging()
    >>> _ = [merging.add_steps(task.circuit(n)) for n in (1, 2, 3, 9)]
    >>> train = lines([(n, task.circuit(n)) for n in (1, 2, 3)], merging)
    >>> test = lines([(9, task.circuit(9))], merging)
    >>> def share(*forms):
    ...     heads = [CellRelation([(form, 0)]) for form in forms]
    ...     return float(Views(heads, train, test, merging, task).resolvable[0].double().mean())
    >>> share(Form(1, -1, -1), Form(1, -1)), share(Form(1, -2), Form(1, -1))
    (1.0, 0.0)
    """

    def __init__(
        self,
        heads: Sequence[CellRelation | ChainRelation],
        training: Sequence[Lines],
        test: Sequence[Lines],
        merging: Merging,
        circuit,
    ):
        self.heads, self.training, self.test, self.merging = heads, training, test, merging
        self.task = circuit if isinstance(circuit, Task) else None
        self.trained = [self._see(line) for line in training]
        self.tested = [self._see(line) for line in test]
        self.shown: dict[tuple, set[Seen]] = defaultdict(set)  # view -> training steps
        self.needed: dict[tuple, set[Seen]] = defaultdict(set)  # view -> all steps
        for kept, lines in ((self.shown, self.trained), (self.needed, self.trained + self.tested)):
            for seen in (step for line in lines for step in line):
                kept[seen.view].add(seen)

    @property
    def resolvable(self) -> list[Bool[Tensor, " s"]]:
        """For each test scale: which steps meet all three conditions."""
        return [
            torch.tensor([self._broken(seen) is None for seen in line], dtype=torch.bool)
            for line in self.tested
        ]

    def fault(self) -> str | None:
        """Return why the circuit is not served; None if it is."""
        places = [*zip(self.test, self.tested, strict=True)]
        places += zip(self.training, self.trained, strict=True)
        for line, steps in places:
            for row, seen in enumerate(steps):
                broken = self._broken(seen)
                if broken:
                    return self._words(line, row, seen, broken)
        return None

    # --- what is seen -------------------------------------------------------------------------
    def _see(self, line: Lines) -> list[Seen]:
        if not len(line.steps):
            return []
        key = torch.cat([head.named(line.query, line.scale)[0] for head in self.heads], dim=1)
        tells = self._tells(line)
        view = torch.where(key < 0, NO_KEY, tells[key.clamp(min=0)])
        at = (key[:, None] == line.inputs[:, :, None]) & (key >= 0)[:, None]  # s r cell
        rows = zip(view.tolist(), line.operator.tolist(), line.group.tolist(), strict=True)
        return [
            Seen(tuple(told), self._cells(at[k], step.operator.arity), operator, table)
            for (k, step), (told, operator, table) in zip(enumerate(line.steps), rows, strict=True)
        ]

    @staticmethod
    def _cells(at: Bool[Tensor, "r cell"], arity: int) -> tuple[frozenset[int], ...]:
        return tuple(frozenset(row.nonzero()[:, 0].tolist()) for row in at[:arity])

    def _tells(self, line: Lines) -> Int[Tensor, " k"]:
        """Return for each position what its token tells of its place, as a number."""
        if self.task is None:
            return torch.zeros(int(line.query.max()) + 1, dtype=torch.long)
        words = set(self.task.vocabulary)
        mark = torch.tensor([name in words for name in self.task.layout(line.scale)]).long()
        part = mark.cumsum(0) - mark if any(head.parts for head in self.heads) else 0 * mark
        return 2 * part + mark

    # --- the three conditions -----------------------------------------------------------------
    def _broken(self, seen: Seen) -> int | None:
        """Return which condition a step breaks: 1, 2 or 3."""
        if not all(seen.cells):
            return 1
        alike = [s for s in self.shown[seen.view] if s.table == seen.table and s.like(seen)]
        if not alike:
            return 2
        return 3 if any(self._clash(seen, other) for other in self.needed[seen.view]) else None

    def _clash(self, seen: Seen, other: Seen) -> bool:
        """Whether two steps with one view need different things."""
        if len(seen.cells) == len(other.cells) and seen.like(other):
            return self.merging.clashes(seen.operator, {other.operator})
        return True

    def _words(self, line: Lines, row: int, seen: Seen, broken: int) -> str:
        step, scale = line.steps[row], show_scale(line.scale)
        where = f"at scale {scale} `{step.operator.name}`, which writes position {step.output},"
        if broken == 1:
            role = next(r for r, cells in enumerate(seen.cells) if not cells)
            return f"at scale {scale} no head reads {line.operand(row, role)}"
        if broken == 2:
            return f"{where} sees what no step of training with its operator saw"
        return (
            f"{where} sees the same as a step that needs another operator or has its operands "
            "elsewhere, so nothing tells the two apart"
        )
