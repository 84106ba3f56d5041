"""Which tokens can a step of a signature meet? All tuples of tokens at its places, as one table.

A place of the prompt holds any of its segment's tokens, whatever stands elsewhere; a mark holds
itself. The operands together are a tuple that the operator is defined for. A place that the
circuit has written and that is no operand holds any output of the families that may write it; where
it is one family, its operands are places as well, or some of them, only what its table allows with
these. So the table may hold tuples that never occur (over-approximated), and misses none that do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse.certify.signatures import Setting, Shape


class TupleLimitError(Exception):
    """A signature has more tuples than the limit."""


@dataclass(frozen=True)
class Tuples:
    """The tuples of a signature.

    Args:
        tokens: one row per tuple, one column per place.
        expected: what the operator makes of each.
        loose: the places whose tokens are over-approximated.
    """

    tokens: Int[Tensor, "t p"]
    expected: Int[Tensor, " t"]
    loose: tuple[int, ...] = field(default=())


def tuples(setting: Setting, shape: Shape, limit: int) -> Tuples:
    """Return every tuple of tokens that a step of a signature can meet.

    Args:
        setting: layout and circuit.
        shape: the signature.
        limit: largest number of tuples.

    Raises:
        TupleLimitError: there are more.

    >>> from lgcourse import tasks
    >>> from lgcourse.certify.signatures import signatures
    >>> parity = tasks.get("parity-cot")
    >>> setting = Setting.of(parity, [parity.terms()])
    >>> tuples(setting, signatures(setting)[1].shape, 100).tokens.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    operator = setting.families[shape.family].operator
    table = torch.tensor([[*row, out] for row, out in operator.table.items()]).long()
    operands, expected = table[:, :-1], table[:, -1]
    tokens = torch.full((len(table), len(shape.places)), -1)
    kept = torch.ones(len(table), dtype=torch.bool)
    for role, place in enumerate(shape.operands):  # one place may be an operand in two roles
        kept &= (tokens[:, place] < 0) | (tokens[:, place] == operands[:, role])
        tokens[:, place] = operands[:, role]
    known = sorted(set(shape.operands))
    for place in known:
        kept &= torch.isin(tokens[:, place], domain(setting, shape, place))
    tokens, expected = tokens[kept], expected[kept]
    for place in known:
        keep = _possible(setting, shape, place, known, tokens)
        tokens, expected = tokens[keep], expected[keep]
    for place in range(len(shape.places)):
        if place in known:
            continue
        values = domain(setting, shape, place)
        if len(tokens) * len(values) > limit:
            raise TupleLimitError(f"{len(tokens) * len(values):,} tuples in one signature")
        count = len(tokens)
        tokens = tokens.repeat_interleave(len(values), dim=0)
        expected = expected.repeat_interleave(len(values), dim=0)
        tokens[:, place] = values.repeat(count)
        known.append(place)
        for other in known:
            keep = _possible(setting, shape, other, known, tokens)
            tokens, expected = tokens[keep], expected[keep]
    if len(tokens) > limit:
        raise TupleLimitError(f"{len(tokens):,} tuples in one signature")
    return Tuples(tokens, expected, _loose(setting, shape))


def domain(setting: Setting, shape: Shape, place: int) -> Int[Tensor, " v"]:
    """Return the tokens that can stand at a place, looked at by itself."""
    segment = setting.segments[shape.places[place].segment]
    if not segment.written:
        return torch.tensor(sorted(set(segment.tokens)))
    writers = shape.places[place].writers
    outputs = {v for number in writers for v in setting.families[number].operator.table.values()}
    return torch.tensor(sorted(outputs)).long()


def _loose(setting: Setting, shape: Shape) -> tuple[int, ...]:
    """Return the places that are written, and not known from the operands of their own step."""
    return tuple(
        number
        for number, place in enumerate(shape.places)
        if place.writers and (not place.sources or None in place.sources)
    )


def _possible(setting, shape: Shape, place: int, known: list[int], tokens) -> Bool[Tensor, " t"]:
    """Return which tuples its writer's table allows for a place, as far as its operands are known.

    The table is restricted to the operands that are known, and the output.
    """
    sources, writers = shape.places[place].sources, shape.places[place].writers
    roles = [role for role, source in enumerate(sources) if source is not None and source in known]
    if not roles:
        return torch.ones(len(tokens), dtype=torch.bool)
    table = setting.families[writers[0]].operator.table
    rows = {(*(operands[role] for role in roles), out) for operands, out in table.items()}
    allowed = torch.tensor(sorted(rows)).long()
    seen = tokens[:, [*(sources[role] for role in roles), place]]
    base = 1 + int(max(allowed.max(), tokens.max()))
    return torch.isin(numbers_of(seen, base), numbers_of(allowed, base))


def numbers_of(rows: Int[Tensor, "t c"], base: int) -> Int[Tensor, " t"]:
    """Return one number per row, its entries read as digits in a base that is larger than each.

    >>> numbers_of(torch.tensor([[1, 2, 3]]), base=10)
    tensor([123])
    """
    code = torch.zeros(len(rows), dtype=torch.long)
    for column in rows.T:
        code = code * base + column
    return code
