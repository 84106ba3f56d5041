"""Which earlier tokens determine the next one? A circuit found from samples alone.

With it SRC can be estimated, and generalisation predicted, for a task that is given only as data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.relations.base import Scale
from lgcourse.tasks.base import Batch, Task
from lgcourse.tasks.circuit import Operator, Step

Sampler = Callable[[Scale, int, torch.Generator], Batch]
CELLS = 1 << 22  # table entries and samples that are worked on together
ENTRIES = 1 << 25  # largest table that is tried
SHARED = 0.5  # least share of samples that must meet known entries for two steps to share a table
STAGES = (256, 2048)  # most candidates fail on a few samples; only survivors see all of them


@dataclass(frozen=True)
class Discovery:
    """A circuit that was found from samples of one scale.

    Args:
        steps: the steps found, by their outputs; the tables hold what the samples show.
        missing: output position -> why no step was found for it.
        ties: output position -> other sets of inputs that fit all samples and are no larger.
        error: with probability 1 - delta over the samples, no step found errs on a larger share of
            the cases whose inputs its table knows.
        samples: number of samples used.
        seconds: how long it took.
    """

    steps: list[Step]
    missing: dict[int, str]
    ties: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    error: float = 0.0
    samples: int = 0
    seconds: float = 0.0

    @property
    def found(self) -> bool:
        """Whether there is a step for every scored position."""
        return not self.missing

    @property
    def answer(self) -> str:
        """The result in words: ``"found"``, or why not."""
        return "found" if self.found else next(iter(self.missing.values()))


def discover(
    task_or_sampler: Task | Sampler | Batch,
    max_arity: int = 3,
    scale: Scale = 6,
    samples: int = 20_000,
    seed: int = 0,
    delta: float = 1e-3,
    max_error: float = 0.01,
    share: bool = True,
) -> Discovery:
    """Find for each scored position the fewest earlier tokens that determine it.

    Sets of earlier positions are tried by size, 0 (a constant) to ``max_arity``. A set fits if
    equal tokens at its positions always go with equal outputs. Of several sets of the smallest size
    that fits, the one whose table other steps use is taken, or else the one with the latest
    positions; the others are listed as ties. Last, a step whose table is used nowhere else takes
    more inputs if it can then share the table of other steps: SRC counts operators, not inputs. (In
    ``successor``, y2 follows from x2 and y1 alone, but with x1 it is a digit like the others.)
    Inputs are listed in the order of their positions. A position whose token is always the same,
    such as "=", determines nothing and is never an input.

    Against false finds: the first half of the samples makes a table, the second half tests it. A
    set whose table errs on a share e of what it predicts passes m tests without an error with
    probability (1 - e)^m <= exp(-e m). With C sets tried in all, every accepted set has
    e <= log(C / delta) / m with probability 1 - delta; a set for which this bound exceeds
    ``max_error`` (its tokens hardly ever repeat) is not accepted.

    Args:
        task_or_sampler: a task; a function (scale, batch, generator) -> `Batch`; or one `Batch`.
        max_arity: the largest number of inputs that is tried.
        scale: the scale that is sampled.
        samples: number of samples (a `Batch` is taken as it is).
        seed: seed of the samples.
        delta: chance that an accepted set errs more often than stated.
        max_error: the largest error bound that is accepted.
        share: whether steps take more inputs than they need in order to share a table.

    Returns:
        A `Discovery`; ``answer`` is ``"none of arity <= 3"`` where nothing fits.

    Raises:
        InputError: the first argument is none of these, or a number is out of its range.

    >>> from lgcourse.tasks import get
    >>> copy = discover(get("copy"), scale=3, samples=4000)
    >>> [(step.output, step.inputs) for step in copy.steps]
    [(4, (0,)), (5, (1,)), (6, (2,))]
    >>> discover(get("parity-direct"), scale=4, samples=2000).answer
    'none of arity <= 3'
    """
    start = time.perf_counter()
    if not 0 <= max_arity <= 6:
        raise InputError(f"max_arity must lie in 0..6, got {max_arity}")
    for name, value in {"delta": delta, "max_error": max_error}.items():
        if not 0 < value < 1:
            raise InputError(f"{name} must lie between 0 and 1, got {value!r}")
    batch = _draw(task_or_sampler, scale, samples, seed)
    if batch.answer.shape != batch.tokens.shape[1:] or not batch.tokens.numel():
        raise InputError(
            f"a batch has tokens [b l] and answer [l], got {list(batch.tokens.shape)} and "
            f"{list(batch.answer.shape)}"
        )
    if batch.tokens.min() < 0:
        raise InputError(f"tokens are at least 0, got {int(batch.tokens.min())}")
    outputs = batch.answer.nonzero()[:, 0].tolist()
    data = _Data(batch.tokens)
    if data.base**max_arity > ENTRIES:
        raise InputError(
            f"{data.base} tokens in sets of {max_arity} make tables of {data.base**max_arity} "
            f"entries, more than {ENTRIES}; take a smaller max_arity"
        )
    tried = sum(data.candidates(p, k) for p in outputs for k in range(max_arity + 1))
    needed = math.log(max(1, tried) / delta)
    fits, missing = {}, {}
    for p in outputs:
        fits[p], most = data.smallest(p, max_arity, needed / max_error)
        if not fits[p]:
            few = f" with enough evidence ({most} tests); draw more samples" if most >= 0 else ""
            missing[p] = f"none of arity <= {max_arity}{few}"
    choice = _Sharing(data, {p: sets for p, sets in fits.items() if sets}).choose()
    if share:
        choice.widen(max_arity, needed / max_error)
    steps = [
        Step(p, data.operator(p, inputs), inputs) for p, inputs in sorted(choice.taken.items())
    ]
    ties = {p: [one for one in fits[p] if one != choice.taken[p]] for p in choice.taken}
    tests = [data.tests(inputs) for inputs in choice.taken.values()]
    return Discovery(
        steps=steps,
        missing=missing,
        ties={p: others for p, others in ties.items() if others},
        error=needed / min(tests) if tests else 0.0,
        samples=len(batch.tokens),
        seconds=time.perf_counter() - start,
    )


def _draw(source, scale, samples: int, seed: int) -> Batch:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise InputError(f"samples must be a whole number of at least 2, got {samples!r}")
    generator = torch.Generator().manual_seed(seed)
    if isinstance(source, Batch):  # the two halves must not differ in kind
        mixed = torch.randperm(len(source.tokens), generator=generator)
        return Batch(source.tokens[mixed], source.answer, source.scale)
    draw = source.sample if isinstance(source, Task) else source
    batch = draw(scale, samples, generator) if callable(draw) else None
    if not isinstance(batch, Batch):
        raise InputError(
            "discover takes a task, a function (scale, batch, generator) -> Batch, or a Batch; got "
            f"{source!r}"
        )
    return batch


class _Data:
    """Samples, with the tests that candidates for the inputs of a position must pass."""

    def __init__(self, tokens: Int[Tensor, "b l"]):
        self.columns = tokens.T.contiguous()  # l b
        self.base = int(tokens.max()) + 1
        self.varies = (self.columns != self.columns[:, :1]).any(1)  # a constant tells nothing

    def earlier(self, position: int) -> list[int]:
        """Return the earlier positions whose tokens vary, the latest first."""
        return self.varies[:position].nonzero()[:, 0].flip(0).tolist()

    def candidates(self, position: int, arity: int) -> int:
        """Count the sets of inputs of one size."""
        return math.comb(len(self.earlier(position)), arity)

    def smallest(
        self, position: int, max_arity: int, needed: float
    ) -> tuple[list[tuple[int, ...]], int]:
        """Return the smallest sets that fit with enough tests; the most tests (-1: none fits)."""
        most = -1
        for arity in range(max_arity + 1):
            tests = {inputs: self.tests(inputs) for inputs in self._fitting(position, arity)}
            enough = [inputs for inputs, number in tests.items() if number >= needed]
            if enough:
                return enough, max(tests.values())
            most = max([most, *tests.values()])
        return [], most

    def _fitting(self, position: int, arity: int) -> Iterator[tuple[int, ...]]:
        """Yield the sets of inputs of one size that fit all samples, the latest positions first."""
        sets = list(combinations(self.earlier(position), arity))
        left = torch.tensor(sets, dtype=torch.long).reshape(len(sets), arity)
        for count in (*STAGES, self.columns.shape[1]):
            chunk = max(1, CELLS // max(self.base**arity, count))
            keep = [self._functional(part, position, count) for part in left.split(chunk)]
            left = left[torch.cat(keep)] if keep else left
        for row in left.tolist():
            yield tuple(reversed(row))

    def _functional(
        self, sets: Int[Tensor, "c k"], position: int, count: int
    ) -> Bool[Tensor, " c"]:
        """Return for which sets equal tokens always go with equal outputs, on the first samples.

        Each sample writes its output into the table cell of its tokens; the set is a function if
        every sample then reads its own output back, whichever sample wrote last.
        """
        code = self.code(sets, count)  # c b
        output = self.columns[position, :count].expand_as(code)
        table = torch.empty(len(sets), self.base ** sets.shape[1], dtype=torch.long)
        table.scatter_(1, code, output)
        return (table.gather(1, code) == output).all(1)

    def code(self, sets: Int[Tensor, "c k"], count: int | None = None) -> Int[Tensor, "c b"]:
        """Return the tokens at the positions of each set as one number per sample."""
        columns = self.columns[:, :count]
        code = torch.zeros(len(sets), columns.shape[1], dtype=torch.long)
        for positions in sets.T:
            code = code * self.base + columns[positions]
        return code

    def tests(self, inputs: tuple[int, ...]) -> int:
        """Count the samples of the second half whose tokens occur in the first half."""
        code = self.code(torch.tensor([inputs], dtype=torch.long))[0]
        half = len(code) // 2
        return int(torch.isin(code[half:], code[:half]).sum())

    def operator(self, position: int, inputs: tuple[int, ...]) -> Operator:
        """Return the table that the samples show."""
        code = self.code(torch.tensor([[*inputs, position]]))[0].unique()
        places = [self.base**k for k in reversed(range(len(inputs) + 1))]
        rows = torch.stack([code // place % self.base for place in places], dim=1).tolist()
        roles = tuple(f"input {r + 1}" for r in range(len(inputs)))
        return Operator(
            f"of position {position}", roles, {tuple(row[:-1]): row[-1] for row in rows}
        )


@dataclass(eq=False)
class _Table:
    """A table that one or more positions use: output by code of the inputs, -1 where not known."""

    arity: int
    entries: Int[Tensor, " codes"]
    users: list[int]


class _Sharing:
    """Choose inputs so that steps share tables.

    Two steps share a table if no sample contradicts it and at least half of the samples of the one
    (`SHARED`) meet entries that the other has shown too. Without the second condition tables with
    no entry in common would count as the same.
    """

    def __init__(self, data: _Data, fits: dict[int, list[tuple[int, ...]]]):
        self.data, self.fits = data, fits
        self.taken: dict[int, tuple[int, ...]] = {}
        self.tables: list[_Table] = []

    def choose(self) -> _Sharing:
        """Take the only fit of a position where there is one, then break the ties of the others."""
        for position, sets in sorted(self.fits.items(), key=lambda item: len(item[1]) > 1):
            best = self._best(position, torch.tensor(sets, dtype=torch.long))
            self._take(position, *(best or (sets[0], None)))
        return self

    def widen(self, max_arity: int, needed: float) -> None:
        """Let a step whose table serves no other take more inputs, if it can then share one."""
        for position, inputs in list(self.taken.items()):
            own = next(table for table in self.tables if position in table.users)
            for arity in range(len(inputs) + 1, max_arity + 1 if len(own.users) == 1 else 0):
                best = self._best(position, self._supersets(position, inputs, arity), least=2)
                if best and self.data.tests(best[0]) >= needed:
                    self.tables.remove(own)
                    self._take(position, *best)
                    break

    def _supersets(self, position: int, inputs: tuple[int, ...], arity: int) -> Tensor:
        more = [p for p in self.data.earlier(position) if p not in inputs]
        sets = [sorted((*inputs, *new)) for new in combinations(more, arity - len(inputs))]
        return torch.tensor(sets, dtype=torch.long).reshape(len(sets), arity)

    def _best(
        self, position: int, sets: Int[Tensor, "c k"], least: int = 1
    ) -> tuple[tuple[int, ...], _Table] | None:
        """Return the set that meets most of a table without contradiction, and the table."""
        best, found = SHARED, None
        for table in self.tables:
            if table.arity != sets.shape[1] or len(table.users) < least:
                continue
            for part in sets.split(max(1, CELLS // self.data.columns.shape[1])):
                expected = table.entries[self.data.code(part)]
                right = (expected < 0) | (expected == self.data.columns[position])
                known = torch.where(right.all(1), (expected >= 0).double().mean(1), 0)
                if len(part) and known.max() >= best + 1e-9 * (found is not None):
                    best, row = float(known.max()), int(known.argmax())
                    found = tuple(part[row].tolist()), table
        return found

    def _take(self, position: int, inputs: tuple[int, ...], table: _Table | None) -> None:
        self.taken[position] = inputs
        if table is None:
            size = self.data.base ** len(inputs)
            table = _Table(len(inputs), torch.full((size,), -1), [])
            self.tables.append(table)
        code = self.data.code(torch.tensor([inputs], dtype=torch.long).reshape(1, -1))[0]
        table.entries[code] = self.data.columns[position]
        table.users.append(position)
