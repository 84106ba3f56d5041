"""Up to which length is a model exact whose other keys keep some attention? Ranges of lengths.

The steps of such a model are no finite table: what is attended to beside the named keys is any
filling, and the length enters. But a signature still says which keys are known, and
`lgcourse.certify.leak` bounds a step over a range of lengths and over all fillings at once. So for
every signature and every tuple the lengths from the smallest on are covered by ranges. A range
that cannot be closed is halved; one length that cannot be closed ends the search.

Theorem. If all ranges up to L keys are closed, the model is exact at every scale whose sequences
have at most L + 1 tokens: by induction, as before, since whatever else was written correctly lies
among the fillings.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

import torch
from torch import Tensor

from lgcourse.certify.admission import PROMISED, listed
from lgcourse.certify.counterexample import Counterexample, replay, shape_steps
from lgcourse.certify.leak import EXACT, KNOWN, Cells, LeakBound
from lgcourse.certify.signatures import MalformedError, Setting, Signature
from lgcourse.certify.steps import EvaluationError
from lgcourse.certify.tuples import Tuples
from lgcourse.embeddings.table import CONSTANT, STRENGTH, RelationTable
from lgcourse.relations.base import LARGEST_SIZE, sizes_of
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.seeds import generator

CELLS = 600_000  # ranges that are looked at, at most
TOGETHER = 128  # at once
WIDER = 4  # how much longer the longest of a range is
SHOWN = (8, 32, 128, 512, 2048)  # numbers of keys for which the largest leak is stored
TRIED = 8  # ranges that could not be closed for which an instance is searched
FAR = 600  # keys beyond which no instance is searched
COMPARED = 16  # tuples and fillings on which the model itself is run


def hardened(model):
    """Return a copy that reads named keys only, to look at its relation; None: the model is so.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> pe = embeddings.build("ideal-sh", tasks.get("copy"), width=8, heads=1, other="soft")
    >>> hardened(Transformer(11, pe, 1, 8, 1)).embedding.other
    'excluded'
    """
    embedding = model.positions[0] if hasattr(model, "positions") else None
    if type(embedding) is not RelationTable or embedding.other != "soft":
        return None
    if embedding.relation.other is None or vars(embedding).keys() & METHODS:
        return None
    twin = copy.deepcopy(model)
    for k, position in enumerate(twin.positions):
        hard = RelationTable(position.relation, len(position.table), other="excluded")
        hard.to(position.table.device, position.table.dtype)
        hard.load_state_dict(position.state_dict())
        twin.positions[k] = hard
    return twin


METHODS = {"embed", "rotate", "bias", "bias_at", "named", "named_terms", "_weigh"}


def unlike_soft(model, twin, task) -> str | None:
    """Return where a soft bias is not 8 log(keys + 1) times what its hard twin says, or None."""
    soft, hard = model.embedding, twin.embedding
    rest = soft.table.detach()[:, soft.relation.other, None, None]
    for size in PROMISED[task.sizes]:
        for scale in listed(task, size):
            length = task.length(scale)
            query = torch.linspace(0, length - 1, min(length, 64)).long().unique()
            key = torch.arange(length)
            named = hard.bias(query, key, scale).detach() / CONSTANT
            factor = STRENGTH * torch.log(query.to(named.dtype) + 2)[:, None]
            told = factor * torch.where(torch.isfinite(named), named, rest.expand_as(named))
            found = soft.bias(query, key, scale).detach()
            past = key[None, :] <= query[:, None]
            if not torch.allclose(found[:, past], told[:, past], rtol=1e-4, atol=1e-4):
                return f"the bias at scale {scale} is not that of the relation's ids"
    return None


@dataclass
class Reach:
    """How far the ranges of a signature reach.

    Args:
        keys: the largest number of keys up to which all is closed; infinity allowed.
        margin, error: the bound on a margin and on float32 rounding of the range that was closed
            with the least difference of both; no other margin is smaller than that difference.
        cells: how many ranges were looked at.
        share: number of keys -> the largest weight of all others in a head.
        open: (row of the tuple, number of keys) that could not be closed.
    """

    keys: float
    margin: float = inf
    error: float = -inf
    cells: int = 0
    share: dict[int, float] = field(default_factory=dict)
    open: list[tuple[int, int]] = field(default_factory=list)


def prepare(model, setting: Setting) -> tuple[LeakBound, list[int]]:
    """Return the bound of a model in float64, and the segments that hold one mark each.

    Raises:
        MalformedError: the layout does not say what stands before every query.
    """
    free, marks, last = set(), [], ""
    begun = False
    for k, segment in enumerate(setting.segments):
        if segment.written:
            if last:  # it would stand before some queries and not before others
                raise MalformedError(f"segment '{last}' stands among what is written")
            begun = True
            continue
        if begun:
            last = segment.letter  # behind all that is written: no query sees it
            continue
        alone = segment.length.is_constant and segment.length.constant == 1
        if alone and len(set(segment.tokens)) == 1 and not segment.where:
            marks.append(k)
        else:
            free |= set(segment.tokens)
    for family in setting.families:
        free |= set(family.operator.table.values())
    if model.blocks[0].norm != "pre":
        raise MalformedError("the bound on other keys is for blocks with norm='pre'")
    return LeakBound(model, torch.tensor(sorted(free))), marks


def known_keys(setting: Setting, relation, signature: Signature, marks: list[int]):
    """Return the id of each known key by head ``[h r]``, and the marks behind the places."""
    shape = signature.shape
    standing = {place.segment for place in shape.places}
    more = [setting.segments[k].tokens[0] for k in marks if k not in standing]
    ids = torch.full((len(setting.heads), len(shape.places) + len(more)), relation.other)
    for head, reads in enumerate(shape.reads):
        for place, numbers in reads:
            found = {setting.heads[head][number].id for number in numbers}
            if len(found) > 1:
                raise MalformedError("two terms of a soft relation hold for one pair")
            if found:
                ids[head, place] = int(found.pop())  # type: ignore[call-overload]
    if ids.shape[1] > KNOWN or signature.fewest < ids.shape[1]:
        raise MalformedError(
            f"a step knows {ids.shape[1]} keys, of {signature.fewest} that it sees"
        )
    return ids, torch.tensor(more, dtype=torch.long)


def reach(
    bound: LeakBound, ids: Tensor, more: Tensor, signature: Signature, table: Tuples, upto: float,
    budget: int,
) -> Reach:  # fmt: skip
    """Cover the numbers of keys of a signature by ranges that are closed, as far as they go.

    Args:
        bound, ids, more: see `prepare` and `known_keys`.
        signature, table: the signature and its tuples.
        upto: cover no more keys; infinity: all.
        budget: look at no more ranges.
    """
    known = torch.cat([table.tokens, more.expand(len(table.tokens), -1)], dim=1)
    query = table.tokens[:, signature.shape.query]
    made = Reach(upto)
    low: float = signature.fewest
    while low <= made.keys and low < inf:
        high = min(WIDER * low, upto) if low < EXACT else inf
        every = torch.ones(len(known), dtype=torch.float64)
        cells = Cells(query, known, table.expected, low * every, high * every)
        _close(bound, ids, cells, made, budget)
        low = high + 1
    for keys in SHOWN:
        if signature.fewest <= keys <= made.keys:
            made.share[keys] = _share(bound, ids, query, known, table.expected, keys)
    return made


def _close(bound: LeakBound, ids: Tensor, cells: Cells, made: Reach, budget: int) -> None:
    """Close ranges, halving those that stay open; a length that stays open limits ``made.keys``."""
    rows = torch.arange(len(cells.low))
    pending = [(rows, cells)]
    while pending:
        rows, cells = pending.pop()
        within = (cells.low <= made.keys).nonzero()[:, 0]
        rows, cells = rows[within], cells.pick(within)
        halves = []
        for part in torch.arange(len(rows)).split(TOGETHER):
            some = cells.pick(part)
            value, error, _ = bound(some, ids)
            made.cells += len(part)
            closed = value > error
            if bool(closed.any()):
                least = torch.where(closed, value - error, inf).argmin()
                pair = float(value[least]), float(error[least])
                if pair[0] - pair[1] < made.margin - made.error:
                    made.margin, made.error = pair
            halves.append(part[~closed])
        left = torch.cat(halves) if halves else rows[:0]
        rows, cells = rows[left], cells.pick(left)
        single = (cells.low == cells.high) | torch.tensor(made.cells >= budget)
        single |= torch.isinf(cells.high) & (cells.low >= 2.0**40)
        for row, keys in zip(rows[single].tolist(), cells.low[single].tolist(), strict=True):
            made.open.append((row, int(keys)))
            made.keys = min(made.keys, keys - 1)
        rows, cells = rows[~single], cells.pick((~single).nonzero()[:, 0])
        if len(rows):
            longest = torch.where(torch.isinf(cells.high), WIDER * cells.low, cells.high)
            middle = torch.sqrt(cells.low * longest).floor()
            middle = torch.where(torch.isinf(cells.high), longest, middle)
            middle = torch.minimum(middle, cells.high - 1)
            first = Cells(cells.query, cells.tokens, cells.expected, cells.low, middle)
            then = Cells(cells.query, cells.tokens, cells.expected, middle + 1, cells.high)
            pending += [(rows, then), (rows, first)]  # the shorter ones first


def _share(bound: LeakBound, ids, query, known, expected, keys: int) -> float:
    most = 0.0
    for part in torch.arange(len(query)).split(1024)[:8]:
        at = torch.full((len(part),), float(keys), dtype=torch.float64)
        cells = Cells(query[part], known[part], expected[part], at, at)
        heads = [bound.head(h, cells, ids[h]) for h in range(len(ids))]
        most = max(most, max(float(head.most.max()) for head in heads))
    return most


def compare_with_model(model, task, setting, bound: LeakBound, ids, more, signature, table) -> None:
    """Run the model itself on some fillings of a signature's smallest step.

    Raises:
        EvaluationError: a margin is below its bound, so the model is not as its equations say.
    """
    source = generator(0, "fillings")
    rows = torch.randint(len(table.tokens), (COMPARED,), generator=source)
    query = signature.positions[signature.shape.query]
    tokens, expected = table.tokens[rows], table.expected[rows]
    line = task.sample(signature.scale, COMPARED, source).tokens[:, : query + 1].clone()
    sizes = sizes_of(signature.scale)
    names = [s for s in setting.segments for _ in range(s.count(sizes))]
    for at in range(query + 1):
        if at not in signature.positions and len(set(names[at].tokens)) != 1:
            pick = torch.randint(len(bound.others), (COMPARED,), generator=source)
            line[:, at] = bound.others[pick]
    line[:, list(signature.positions)] = tokens
    with torch.inference_mode():
        logits = model(line, signature.scale)[:, -1].clone()
    right = logits.gather(1, expected[:, None])
    margin = (right - logits.scatter(1, expected[:, None], -inf)).amin(1)
    keys = torch.full((COMPARED,), query + 1.0, dtype=torch.float64)
    known = torch.cat([tokens, more.expand(COMPARED, -1)], dim=1)
    cells = Cells(tokens[:, signature.shape.query], known, expected, keys, keys)
    value, _, _ = bound(cells, ids)
    if not bool((margin >= value - 1e-7).all()):
        raise EvaluationError(
            f"a margin of the model at scale {signature.scale}, step {signature.t}, lies below its "
            "bound"
        )


def attack(model, task, setting: Setting, bound: LeakBound, open_) -> Counterexample | None:
    """Search an instance that shows that ranges are open for a reason.

    All places but the known ones are filled with one token, each in turn.

    Args:
        model: the model as it is used.
        task, setting, bound: as above.
        open_: (signature, tuple of tokens, number of keys).
    """
    for signature, values, keys in open_[:TRIED]:
        for scale in _scales_from(task, signature, keys):
            for positions in list(shape_steps(setting, signature, scale))[::3]:
                found = _fill(model, task, setting, bound, scale, positions, values)
                if found is not None:
                    return found
    return None


def _scales_from(task, signature: Signature, keys: int) -> Iterator:
    """Yield some scales whose steps see about so many keys, and more."""
    size = max(sizes_of(signature.scale))
    if keys > FAR:
        return
    while task.has_scale(task.scale_of(size)) and task.length(task.scale_of(size)) <= keys:
        size += 1
    for more in (0, 2, 8, 50):
        if task.has_scale(task.scale_of(size + more)) and size + more <= 200:
            yield task.scale_of(size + more)


def _fill(model, task, setting, bound, scale, positions, values) -> Counterexample | None:
    names = [s for s in setting.segments for _ in range(s.count(sizes_of(scale)))]
    prompts = []
    for token in bound.others.tolist():
        line = [token if token in s.tokens else s.tokens[0] for s in names if not s.written]
        for at, value in zip(positions, values, strict=True):
            if at < len(line):
                line[at] = value
        prompts.append(line)
    lines = torch.tensor(prompts)
    batch = task.batch(lines, scale)
    met = (batch.tokens[:, list(positions)] == torch.tensor(values)).all(1)
    wrong = met & ~right_tokens(model, batch).all(1)
    for row in wrong.nonzero()[:1, 0].tolist():
        found = replay(model, task, lines[row], scale)
        if found is not None:
            return found
    return None


def largest_scale(task, keys: float) -> int:
    """Return the largest size n such that all scales up to n have at most so many keys, 0: none.

    >>> from lgcourse import tasks
    >>> largest_scale(tasks.get("copy"), 20.0), largest_scale(tasks.get("copy"), inf)
    (10, 1000000)
    """
    low, high = 0, LARGEST_SIZE
    while low < high:
        middle = (low + high + 1) // 2
        fits = task.has_scale(task.scale_of(middle))
        if fits and task.length(task.scale_of(middle)) - 1 <= keys:
            low = middle
        else:
            high = middle - 1
    return low
