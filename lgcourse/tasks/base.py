"""What is a task? A vocabulary, a layout, a sampler, text in and out, and the circuit of it.

To add one, subclass `Task` and write ``vocabulary``, ``layout``, ``prompt``, ``answer`` and
``circuit``; everything else follows from these. Or say layout and circuit for all scales at once
with ``segments`` and ``families``; then ``layout``, ``prompt`` and ``circuit`` follow as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.relations.affine import Affine
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.relations.forms import Term
from lgcourse.tasks.circuit import Operator, Step
from lgcourse.tasks.families import (
    Family,
    Place,
    Segment,
    circuit_of,
    layout,
    length_of,
    place,
    uniform,
)


@dataclass(frozen=True)
class Batch:
    """Samples of one scale.

    Args:
        tokens: the whole sequences, prompt and answer.
        answer: True at the positions that are scored; token p is predicted by ``logits[p - 1]``.
        scale: the scale of all samples.
    """

    tokens: Int[Tensor, "b l"]
    answer: Bool[Tensor, " l"]
    scale: Scale


@dataclass(frozen=True)
class Prompt:
    """A prompt that was read from text: tokens, scale, and notes on what was changed to fit."""

    tokens: list[int]
    scale: Scale
    notes: list[str] = field(default_factory=list)


DIGITS = tuple(range(10))
CORNERS = 1 / 8  # share of samples with few different digits, see `with_corners`


class Task:
    """Base class of all tasks.

    Attributes:
        name: the name in `lgcourse.tasks.names`.
        vocabulary: one character per token; the token id is its index. Where tokens are words
            (`lgcourse.tasks.words`), a tuple of them.
        sizes: how many sizes a scale has (1, or 2 for operands of different length).
        arity: bound k on the arity of a step, part of the definition of SRC; None without a bound
            or without a circuit.
        kind: how the operators grow with the scale, ``"constant"``, ``"saturates"`` or ``"grows"``,
            or ``"not covered"`` (no position-only circuit).
        example: a prompt as people type it.
        chance: share of answer tokens that blind guessing gets right.
    """

    name: str
    vocabulary: Sequence[str]
    sizes: int = 1
    arity: int | None
    kind: str = "constant"
    example: str
    chance: float
    padded: bool = False  # whether the layout has one width at all scales, the option ``width``
    fill: str = "0"  # the token behind the answer in padded layouts

    def __init_subclass__(cls, **options):
        """Let layout and circuit follow from what the class says, unless it writes them itself."""
        super().__init_subclass__(**options)
        own = vars(cls)
        if "segments" in own and "layout" not in own:
            cls.layout = _layout_of_segments  # type: ignore[method-assign]
        if "families" in own and "circuit" not in own:
            cls.circuit = _circuit_of_families  # type: ignore[method-assign]

    # --- what a task must say -------------------------------------------------------------------
    def answer(self, prompt: Int[Tensor, "b p"], scale: Scale) -> Int[Tensor, "b a"]:
        """Return the true answers of the prompts, as tokens."""
        raise NotImplementedError

    def segments(self) -> list[Segment] | None:
        """Return the layout of all scales as a row of segments, or None if it is none.

        The segment ``=`` ends the prompt. What the circuit writes stands right behind it.
        """
        return None

    def families(self) -> list[Family] | None:
        """Return the circuit of all scales as families of steps, or None if it is none.

        Ids of the ideal relation are numbered in the order of families and of their roles.
        """
        return None

    # --- instead of segments and families, scale by scale ----------------------------------------
    def layout(self, scale: Scale) -> list[str]:
        """Return the name of each position, for instance ``["x1", "x2", "=", "y1", "y2"]``."""
        raise NotImplementedError

    def circuit(self, scale: Scale) -> list[Step]:
        """Return the steps that make the answer of an instance of this scale."""
        raise NotImplementedError

    def prompt(self, scale: Scale, batch: int, generator: torch.Generator) -> Int[Tensor, "b p"]:
        """Draw random prompts, tokens up to and with ``=``; with segments, uniform tokens."""
        segments = self._told_segments()
        if segments is None:
            raise NotImplementedError
        end = [segment.letter for segment in segments].index("=")
        return uniform(segments[: end + 1], scale, batch, generator)

    # --- words for segments and families --------------------------------------------------------
    def mark(self, word: str) -> Segment:
        """Return the segment of one position where always the same word stands."""
        return Segment(word, Affine(1), (self.vocabulary.index(word),), start=None)

    def places(self, *letters: str) -> list[Place]:
        """Return for each letter x the function that gives the position of x_k.

        >>> from lgcourse.relations.affine import N, T
        >>> from lgcourse.tasks import get
        >>> x, y = get("copy").places("x", "y")  # x1..xn = y1..yn
        >>> x(1), y(T), x(N + 1)  # counts on: "=" stands where x_(n+1) would
        (0, n + t, n)
        """
        segments = self.segments()
        if segments is None:
            raise InputError(f"task '{self.name}' does not say its layout as segments")
        return [place(segments, letter) for letter in letters]

    # --- what follows from it -------------------------------------------------------------------
    def _told_segments(self) -> list[Segment] | None:
        """Return the segments if the layout follows from them, else None."""
        return self.segments() if _is(self.layout, _layout_of_segments) else None

    @property
    def in_families(self) -> bool:
        """Whether the circuit is that of `families`, and not one that was written later by hand."""
        told = _is(self.circuit, _circuit_of_families) and _is(self.reads, Task.reads)
        return told and self.families() is not None

    def terms(self) -> list[Term] | None:
        """Return the ideal relation as terms, or None if the circuit is not made of families.

        >>> from lgcourse.tasks import get
        >>> get("copy").terms()
        [i - j - n = 0 for n <= i <= 2n - 1: id ('take', 'source')]
        """
        families = self.families() if self.in_families else None
        if families is None:
            return None
        return [term for family in families for term in family.terms(self.sizes)]

    def prompt_length(self, scale: Scale) -> int:
        """Number of tokens up to and with ``=``."""
        segments = self._told_segments()
        if segments is None:
            return self.layout(scale).index("=") + 1
        self.check_scale(scale)
        return place(segments, "=")()(sizes=sizes_of(scale)) + 1

    def answer_length(self, scale: Scale) -> int:
        """Number of tokens that are scored."""
        segments = self._told_segments()
        if segments is None:
            return self.length(scale) - self.prompt_length(scale)
        self.check_scale(scale)
        return length_of(segments, scale, written=True)

    def length(self, scale: Scale) -> int:
        """Number of tokens of a whole sequence, L(n)."""
        self.check_scale(scale)
        segments = self._told_segments()
        return len(self.layout(scale)) if segments is None else length_of(segments, scale)

    def check_scale(self, scale: Scale) -> None:
        """Refuse a scale that the task does not have."""
        if len(sizes_of(scale)) != self.sizes or isinstance(scale, int) != (self.sizes == 1):
            wanted = (
                "one size, for instance 20" if self.sizes == 1 else f"{self.sizes} sizes, 20x13"
            )
            raise InputError(f"task '{self.name}' takes {wanted}; got scale {scale!r}")

    def has_scale(self, scale: Scale) -> bool:
        """Return whether a scale is one of the task's; a padded layout ends at its width.

        >>> from lgcourse.tasks import get
        >>> task = get("addition-padded", width=5)
        >>> task.has_scale(5), task.has_scale(6)
        (True, False)
        """
        try:
            self.check_scale(scale)
        except InputError:
            return False
        return True

    def scale_of(self, size: int) -> Scale:
        """Return the scale at which every size of the task is ``size``.

        >>> from lgcourse.tasks import get
        >>> get("copy").scale_of(7), get("addition-unequal").scale_of(7)
        (7, (7, 7))
        """
        return size if self.sizes == 1 else (size,) * self.sizes

    def scales(self, largest: Scale) -> Iterator[Scale]:
        """Yield every scale up to the largest one (each size from 1 on)."""
        self.check_scale(largest)
        if self.sizes == 1:
            yield from range(1, sizes_of(largest)[0] + 1)
        else:
            yield from product(*(range(1, size + 1) for size in sizes_of(largest)))

    def sample(self, scale: Scale, batch: int, generator: torch.Generator) -> Batch:
        """Draw samples of one scale.

        Args:
            scale: the scale n; for tasks with several sizes a tuple.
            batch: number of sequences b.
            generator: the source of all randomness.

        Returns:
            A `Batch`.

        Raises:
            InputError: the scale is not one of the task's.

        >>> import lgcourse
        >>> task = lgcourse.tasks.get("copy")
        >>> batch = task.sample(3, 2, torch.Generator().manual_seed(0))
        >>> batch.tokens.shape, batch.answer.tolist()
        (torch.Size([2, 7]), [False, False, False, False, True, True, True])
        """
        self.check_scale(scale)
        return self.batch(self.prompt(scale, batch, generator), scale)

    def hard(self, scale: Scale, batch: int, generator: torch.Generator) -> Batch | None:
        """Draw the hardest samples of a scale, or return None where none is harder than another."""
        return None

    def batch(self, prompt: Int[Tensor, "b p"], scale: Scale) -> Batch:
        """Complete prompts to whole sequences with their true answers."""
        tokens = torch.cat([prompt, self.answer(prompt, scale)], dim=1)
        rest = self.length(scale) - tokens.shape[1]
        if rest:
            fill = self.vocabulary.index(self.fill)
            tokens = torch.nn.functional.pad(tokens, (0, rest), value=fill)
        return Batch(tokens, self.scored(scale), scale)

    def scored(self, scale: Scale) -> Bool[Tensor, " l"]:
        """Return which positions are scored."""
        position = torch.arange(self.length(scale))
        start = self.prompt_length(scale)
        return (position >= start) & (position < start + self.answer_length(scale))

    def reads(self, scale: Scale) -> list[tuple[int, int, Hashable]]:
        """Return what the circuit reads, for ideal relations: (query, key, (operator, role))."""
        return [
            (step.query, position, (step.operator.name, role))
            for step in self.circuit(scale)
            for role, position in zip(step.operator.roles, step.inputs, strict=True)
        ]

    def steps(
        self, scale: Scale, rows: Sequence[tuple[str, Operator, Sequence[str]]]
    ) -> list[Step]:
        """Turn rows of (output, operator, inputs), written with the layout's names, into steps."""
        self.check_scale(scale)
        at = {name: p for p, name in enumerate(self.layout(scale))}
        return [Step(at[out], op, tuple(at[name] for name in inputs)) for out, op, inputs in rows]

    # --- text -----------------------------------------------------------------------------------
    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text.

        >>> import lgcourse
        >>> lgcourse.tasks.get("addition").encode("12+34=")
        [2, 1, 10, 4, 3, 11]
        """
        compact = "".join(text.split())
        wrong = next((c for c in compact if c not in self.vocabulary), None)
        if wrong is not None:
            raise self.not_mine(text, f"the character '{wrong}' is not one of '{self.vocabulary}'")
        return [self.vocabulary.index(c) for c in compact]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, as people write it."""
        for id in ids:
            if not 0 <= int(id) < len(self.vocabulary):
                raise InputError(
                    f"token {int(id)} is not one of 0..{len(self.vocabulary) - 1} of '{self.name}'"
                )
        return "".join(self.vocabulary[int(id)] for id in ids)

    def parse(self, text: str) -> Prompt:
        """Read a prompt that a person typed.

        Returns:
            A `Prompt` with tokens, scale and notes on what was changed (for instance zeros added).

        Raises:
            InputError: the text is not a prompt of this task.
        """
        tokens = self.encode(text)
        equals = self.vocabulary.index("=")
        if len(tokens) < 2 or tokens[-1] != equals or equals in tokens[:-1]:
            raise self.not_mine(text, "a prompt ends with its only '='")
        return Prompt(tokens, len(tokens) - 1)

    def solve(self, text: str) -> str:
        """Return the true answer of a prompt, computed without the model."""
        prompt = self.parse(text)
        tokens = torch.tensor([prompt.tokens])
        return self.decode(self.answer(tokens, prompt.scale)[0].tolist())

    def not_mine(self, text: str, why: str) -> InputError:
        """Make the error for a text that is not a prompt of this task."""
        shown = " ".join(text.split())  # messages are one line
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        return InputError(
            f"'{shown}' is not a prompt of task '{self.name}': {why}; "
            f"write it like '{self.example}'"
        )

    def __repr__(self) -> str:
        return f"<task {self.name}>"


def _layout_of_segments(self: Task, scale: Scale) -> list[str]:
    """Return the name of each position, for instance ``["x1", "x2", "=", "y1", "y2"]``."""
    self.check_scale(scale)
    segments = self.segments()
    assert segments is not None
    return layout(segments, scale)


def _circuit_of_families(self: Task, scale: Scale) -> list[Step]:
    """Return the steps that make the answer of an instance of this scale."""
    self.check_scale(scale)
    families = self.families()
    assert families is not None
    return circuit_of(families, scale)


def _is(method, function) -> bool:
    """Return whether a method is a function, not one that a subclass or an object has put there."""
    return getattr(method, "__func__", None) is function


def numbered(letter: str, count: int) -> list[str]:
    """Return ["x1", ..., "xn"] for the letter x.

    >>> numbered("x", 3)
    ['x1', 'x2', 'x3']
    """
    return [f"{letter}{t}" for t in range(1, count + 1)]


@lru_cache
def identity(tokens: int) -> Operator:
    """The operator that hands on its only operand, for the tokens 0..tokens-1."""
    return Operator.from_rule("take", ("source",), lambda x: x, range(tokens))


def digits(high: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw random tokens 0..high-1."""
    return torch.randint(high, shape, generator=generator)


def with_corners(high: int, parts: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
    """Redraw one in eight rows from one to three tokens only, the same for all parts of a row.

    Uniform digits hardly ever show a step whose operands are all equal: (9, 9, 9, 9, 9) makes up
    one in twenty thousand columns of an addition, and a model can be right everywhere else.

    Args:
        high: tokens are 0..high-1.
        parts: tensors ``[b n]`` of uniform tokens; the n may differ.
        generator: the source of all randomness.
    """
    batch = parts[0].shape[0]
    few = torch.rand((batch, 1), generator=generator) < CORNERS
    alphabet = torch.randint(high, (batch, 3), generator=generator)
    count = torch.randint(1, 4, (batch, 1), generator=generator)
    picks = [torch.randint(6, part.shape, generator=generator) % count for part in parts]
    return [
        torch.where(few, alphabet.gather(1, pick), part)
        for pick, part in zip(picks, parts, strict=True)
    ]
