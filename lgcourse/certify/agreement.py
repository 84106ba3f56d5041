"""Do a task's families make its answers? Compared with all prompts of small scales, and samples.

The certificate's theorem speaks of the circuit; this ties the circuit to what the task scores. An
operator that is met with every entry of its table is compared completely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from lgcourse.certify.admission import listed
from lgcourse.certify.tuples import numbers_of
from lgcourse.errors import InputError
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.tasks.checking import check_circuit
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import circuit_of, layout, uniform
from lgcourse.training.seeds import generator

COMPARED = {1: (*range(1, 21), 50, 100), 2: (1, 2, 3, 4, 5, 9)}
ALL = 50_000  # prompts of a scale that are all looked at
TOKENS = 1_000_000  # tokens of samples at larger scales, up to the size LAST
LAST = {1: 6, 2: 3}


def unlike_circuit(task) -> str | None:
    """Return where segments, families, circuit and answers of a task differ, or None.

    >>> from lgcourse import tasks
    >>> unlike_circuit(tasks.get("copy"))
    """
    for size in COMPARED[task.sizes]:
        for scale in listed(task, size):
            if layout(task.segments(), scale) != list(task.layout(scale)):
                return f"the segments of '{task.name}' are not its layout at scale {scale}"
            told, made = circuit_of(task.families(), scale), task.circuit(scale)
            if _plain(told) != _plain(made):
                return f"the families of '{task.name}' are not its circuit at scale {scale}"
            try:
                check_circuit(task, scale)
            except InputError as error:
                return str(error)
    return None


def _plain(steps):
    return sorted((s.output, s.inputs, s.operator.name) for s in steps), {
        s.operator.name: s.operator for s in steps
    }


@dataclass
class Compared:
    """What a comparison found.

    Args:
        wrong: a step whose operator does not make the answer, in words, or None.
        seen: operator -> which entries of its table were met.
    """

    wrong: str | None = None
    seen: dict[Operator, Tensor] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """How much of each operator's table was compared with answers, in words."""
        return [
            f"operator '{operator.name}': {int(met.sum()):,} of {len(met):,} table entries were "
            "compared with the task's answers"
            for operator, met in self.seen.items()
        ]


def compare_answers(task) -> Compared:
    """Compare every step of a circuit with the answers of all prompts of small scales.

    >>> from lgcourse import tasks
    >>> compare_answers(tasks.get("parity-cot")).notes[1]
    "operator 'add': 4 of 4 table entries were compared with the task's answers"
    """
    found = Compared()
    segments = task.segments()
    end = [segment.letter for segment in segments].index("=") + 1
    source = generator(0, "agreement")
    for size in range(1, LAST[task.sizes] + 1):
        for scale in listed(task, size):
            if max(sizes_of(scale)) > LAST[task.sizes]:
                continue
            places = [s.tokens for s in segments[:end] for _ in range(s.count(sizes_of(scale)))]
            lines = _every(places)
            if lines is None:
                lines = uniform(segments[:end], scale, TOKENS // task.length(scale), source)
            found.wrong = _compare(task, scale, lines, found.seen)
            if found.wrong:
                return found
    return found


def _every(places: list[tuple[int, ...]]) -> Tensor | None:
    """Return all prompts, or None where they are too many."""
    count = 1
    for tokens in places:
        count *= len(tokens)
    if count > ALL:
        return None
    rows = torch.cartesian_prod(*(torch.tensor(tokens) for tokens in places))
    return rows.reshape(count, len(places))


def _compare(task, scale: Scale, lines: Tensor, seen: dict[Operator, Tensor]) -> str | None:
    tokens = task.batch(lines, scale).tokens
    base = len(task.vocabulary)
    for step in circuit_of(task.families(), scale):
        operator = step.operator
        codes, outputs = _table(operator, base)
        met = seen.setdefault(operator, torch.zeros(len(codes), dtype=torch.bool))
        code = numbers_of(tokens[:, list(step.inputs)], base)
        at = torch.searchsorted(codes, code).clamp(max=len(codes) - 1)
        right = (codes[at] == code) & (outputs[at] == tokens[:, step.output])
        if not bool(right.all()):
            line = lines[int((~right).nonzero()[0, 0])].tolist()
            return (
                f"task '{task.name}': operator '{operator.name}' does not make "
                f"{task.layout(scale)[step.output]} of the answer to '{task.decode(line)}'"
            )
        met[at] = True
    return None


@lru_cache(maxsize=32)
def _table(operator: Operator, base: int) -> tuple[Tensor, Tensor]:
    """Return the codes of an operator's operands, rising, and its outputs."""
    entries = torch.tensor([[*row, out] for row, out in operator.table.items()])
    codes, order = numbers_of(entries[:, :-1], base).sort()
    return codes, entries[order, -1]
