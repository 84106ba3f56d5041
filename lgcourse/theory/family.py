"""What can a learned relation become, and would one of these serve the circuit?

LBPE states no relation before it is trained, but the relations that training can end with are
known: each head reads one cell "form = value" of a list of forms, and itself. A prediction for the
embedding is one about this family: does some choice of cells, one per head, align the circuit?
Source: the course's formalisation, after Chen, Liang and Lin (2025); the family is this course's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lgcourse.relations.cells import CellRelation
from lgcourse.relations.forms import Form
from lgcourse.theory.circuits import show_scale
from lgcourse.theory.priorities import Lines
from lgcourse.theory.views import Views

Cell = tuple[Form, int]
Operand = tuple[int, int, int]  # index of the scale's lines, row of the step, role
MOST_CHOICES = 200  # choices of cells that are looked at


@dataclass(frozen=True)
class CellFamily:
    """The relations whose heads read one cell each, and the query itself.

    Args:
        forms: the forms a i + b j + c n to choose from.
        window: the largest absolute value of a form that a cell can name.
        heads: number of heads.
        parts: whether tokens carry the number of their part of the input.

    >>> CellFamily([Form(1, -1), Form(1, -1, -1)], window=3, heads=8)
    <family of cells: 2 forms, values -3..3, up to 8 heads>
    """

    forms: Sequence[Form]
    window: int
    heads: int
    parts: bool = False

    def __repr__(self) -> str:
        return (
            f"<family of cells: {len(self.forms)} forms, values -{self.window}..{self.window}, "
            f"up to {self.heads} heads>"
        )

    @property
    def own(self) -> Cell:
        """The cell i - j = 0, the query itself, which every head reads beside its own cell."""
        form = self.forms[0]
        return Form(1, -1, (0,) * len(form.factors) if isinstance(form.c, tuple) else 0), 0

    def relations(self, cells: Sequence[Cell]) -> list[CellRelation]:
        """Return one relation per head for a choice of cells; a head without one reads itself."""
        heads = [[cell, self.own] for cell in cells] or [[self.own]]
        return [CellRelation(h, f"head {k}", self.parts) for k, h in enumerate(heads, start=1)]


@dataclass(frozen=True)
class Found:
    """What a search through a family gave.

    Args:
        views: how the choice serves the circuit; None where no choice reads all operands.
        cells: the choice.
        fault: why no choice serves the circuit; None if this one does.
        complete: whether every choice was looked at; if not, a fault proves nothing.
    """

    views: Views | None
    cells: tuple[Cell, ...]
    fault: str | None
    complete: bool = True


def search(
    family: CellFamily, training: Sequence[Lines], test: Sequence[Lines], merging, circuit
) -> Found:
    """Look for a choice of cells that aligns a circuit from training to test scales.

    A cell counts only if an operand of a training step stands there: others are never learned. A
    choice must have a cell for each operand of each step but the query itself. Only choices from
    which no cell can be left out are looked at, the smallest first; each is tried as it is and with
    one more cell, which can tell apart two steps that look the same.

    Args:
        family: what there is to choose from.
        training, test: the steps of the scales, see `lgcourse.theory.priorities.lines`.
        merging: knows their operators.
        circuit: the task, or another circuit.

    Returns:
        The first choice that aligns, or why there is none.
    """
    places, known = [*training, *test], len(training)
    holds = _holds(family, places)
    holds = {cell: here for cell, here in holds.items() if any(at < known for at, _, _ in here)}
    every = [
        (at, row, role)
        for at, line in enumerate(places)
        for row, step in enumerate(line.steps)
        for role, key in enumerate(step.inputs)
        if key != step.query
    ]
    lost = next((o for o in reversed(every) if not any(o in here for here in holds.values())), None)
    if lost is not None:
        line = places[lost[0]]
        return Found(None, (), f"at scale {show_scale(line.scale)} {_unnamed(family, line, lost)}")
    first: Found | None = None
    tried = 0
    for cells in _covers(holds, frozenset(every), family.heads):
        more = [(), *((c,) for c in holds if c not in cells)] if len(cells) < family.heads else [()]
        for extra in more:
            if tried == MOST_CHOICES and first is not None:
                return Found(first.views, first.cells, first.fault, complete=False)
            tried += 1
            chosen = (*cells, *extra)
            views = Views(family.relations(chosen), training, test, merging, circuit)
            fault = views.fault()
            found = Found(views, chosen, fault)
            if fault is None:
                return found
            first = first or found
    if first is None:
        why = f"no choice of {family.heads} cells or fewer reads every operand"
        return Found(None, (), why)
    return first


def _holds(family: CellFamily, places: Sequence[Lines]) -> dict[Cell, set[Operand]]:
    """Return for each cell of the family the operands that stand there, the query itself apart."""
    found: dict[Cell, set[Operand]] = {}
    for at, line in enumerate(places):
        for form in family.forms:
            values = form(line.query[:, None], line.inputs, line.scale)  # s r
            for row, (of_step, step) in enumerate(zip(values.tolist(), line.steps, strict=True)):
                for role, (value, key) in enumerate(zip(of_step, step.inputs, strict=False)):
                    if abs(value) <= family.window and key != step.query:
                        found.setdefault((form, value), set()).add((at, row, role))
    return found


def _covers(
    holds: dict[Cell, set[Operand]], every: frozenset[Operand], most: int
) -> Iterator[tuple[Cell, ...]]:
    """Yield the choices of up to ``most`` cells that read every operand, the smallest first.

    The operand with the fewest cells is decided first; a choice with a cell to spare is left out.
    """
    cells_of: dict[Operand, list[Cell]] = {operand: [] for operand in every}
    for cell, here in holds.items():
        for operand in here:
            cells_of[operand].append(cell)
    order = sorted(every, key=lambda operand: (len(cells_of[operand]), operand))

    def extend(chosen: tuple[Cell, ...], size: int) -> Iterator[tuple[Cell, ...]]:
        read = set().union(*(holds[cell] for cell in chosen))
        open_one = next((operand for operand in order if operand not in read), None)
        if open_one is None:
            if len(chosen) == size:
                yield chosen
        elif len(chosen) < size:
            for cell in cells_of[open_one]:
                yield from extend((*chosen, cell), size)

    seen: set[frozenset[Cell]] = set()
    for size in range(most + 1):
        for cells in extend((), size):
            one = frozenset(cells)
            if one in seen or any(_spare(cell, cells, holds) for cell in cells):
                continue
            seen.add(one)
            yield cells


def _spare(cell: Cell, cells: Sequence[Cell], holds: dict[Cell, set[Operand]]) -> bool:
    others = set().union(*(holds[other] for other in cells if other != cell))
    return holds[cell] <= others


def _unnamed(family: CellFamily, line: Lines, lost: Operand) -> str:
    """Say what no cell names, and where it stands by each form."""
    _, row, role = lost
    query, key = int(line.query[row]), int(line.inputs[row, role])
    stands = ", ".join(f"{form} = {form(query, key, line.scale)}" for form in family.forms[:4])
    more = f" and {len(family.forms) - 4} more forms" if len(family.forms) > 4 else ""
    return (
        f"{line.operand(row, role)} stands at {stands}{more}: none of these cells is one that an "
        "operand of a training step stands at"
    )
