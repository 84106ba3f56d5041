"""How is an answer made, token by token? By a circuit: a list of steps, each one unit operator.

After Chen, Liang and Lin (2025): a unit operator is a table from a tuple of tokens to a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from lgcourse.errors import InputError

LAST_POSITION = 10_000_000  # a later one is a slip of the keyboard


@dataclass(frozen=True, eq=False)
class Operator:
    """A unit operator: a total or partial function table from a tuple of tokens to one token.

    Two operators are equal when they have the same arity and the same table; names are for people.

    Args:
        name: what people call it.
        roles: one name per operand, in order; their number is the arity.
        table: tuple of token ids -> token id. A tuple that is missing never occurs.

    >>> xor = Operator.from_rule("xor", ("before", "bit"), lambda y, x: y ^ x, tokens=(0, 1))
    >>> xor(1, 1), xor.arity
    (0, 2)
    """

    name: str
    roles: tuple[str, ...]
    table: Mapping[tuple[int, ...], int] = field(repr=False)

    def __post_init__(self):
        for operands in self.table:
            if not isinstance(operands, tuple):
                raise InputError(
                    f"operator '{self.name}': keys of its table are tuples, one token per role; "
                    f"got {operands!r}"
                )
            if len(operands) != len(self.roles):
                raise InputError(
                    f"operator '{self.name}' has the {len(self.roles)} roles {self.roles}, but its "
                    f"table has the entry {operands}"
                )

    @classmethod
    def from_rule(
        cls,
        name: str,
        roles: Sequence[str],
        rule: Callable[..., int | None],
        tokens: Iterable[int] | Sequence[Iterable[int]],
    ) -> Operator:
        """Tabulate a Python function; where it returns None the operator is not defined.

        Args:
            name: what people call it.
            roles: one name per operand.
            rule: the function of as many tokens as there are roles.
            tokens: the tokens an operand can be; one collection for all roles, or one per role.
        """
        given = list(tokens)  # once: it may be a generator
        each = [tuple(t) for t in given if isinstance(t, Iterable)]
        alike = tuple(t for t in given if not isinstance(t, Iterable))
        per_role = [alike] * len(roles) if alike else each
        entries = ((operands, rule(*operands)) for operands in product(*per_role))
        return cls(name, tuple(roles), {k: v for k, v in entries if v is not None})

    @property
    def arity(self) -> int:
        """Number of operands."""
        return len(self.roles)

    @cached_property
    def key(self) -> tuple[int, frozenset]:
        """What makes the operator the same as another: its arity and its table."""
        return self.arity, frozenset(self.table.items())

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, Operator) and self.key == other.key

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self):
        return self._hash

    def __call__(self, *operands: int) -> int:
        if operands not in self.table:
            raise InputError(f"operator '{self.name}' is not defined for {operands}")
        return self.table[operands]


@dataclass(frozen=True)
class Step:
    """One step of a circuit: the token at ``output`` is ``operator`` of the tokens at ``inputs``.

    Args:
        output: position of the token that is made; it is predicted at the query ``output - 1``.
        operator: the unit operator.
        inputs: positions of the operands, one per role.
    """

    output: int
    operator: Operator
    inputs: tuple[int, ...]

    @property
    def query(self) -> int:
        """The position that predicts the output."""
        return self.output - 1


Circuit = Callable[..., list[Step]]


def validate(steps: Sequence[Step], length: int | None = None) -> None:
    """Refuse a list of steps that is no circuit, with the step that breaks it.

    Args:
        steps: the steps of one scale.
        length: the length of the sequence, if it should be checked.

    Raises:
        InputError: an input lies in the future of its step, two steps write one position, the
            number of inputs is not the operator's arity, or a position lies outside the sequence.
    """
    written: set[int] = set()
    for step in steps:
        where = f"step '{step.operator.name}' that writes position {step.output}"
        if len(step.inputs) != step.operator.arity:
            raise InputError(
                f"{where}: operator takes {step.operator.arity} inputs, got {len(step.inputs)}"
            )
        if not all(isinstance(p, int) for p in (step.output, *step.inputs)):
            raise InputError(f"{where}: positions are whole numbers, got {step.inputs}")
        if step.output > LAST_POSITION:
            raise InputError(f"{where}: positions go up to {LAST_POSITION:,}")
        if step.output < 1 or (length is not None and step.output >= length):
            raise InputError(
                f"{where}: outputs lie in 1..{'L - 1' if length is None else length - 1}"
            )
        for position in step.inputs:
            if not 0 <= position < step.output:
                raise InputError(
                    f"{where}: input {position} is not one of the earlier positions "
                    f"0..{step.output - 1}"
                )
        if step.output in written:
            raise InputError(f"{where}: another step writes this position already")
        written.add(step.output)


def execute(steps: Iterable[Step], tokens: Sequence[int], length: int) -> list[int]:
    """Run a circuit on a prompt in plain Python.

    Args:
        steps: the steps of the prompt's scale.
        tokens: the prompt's tokens.
        length: the length of the whole sequence.

    Returns:
        All tokens; positions that no step writes keep the prompt's token, or -1.
    """
    line = list(tokens) + [-1] * (length - len(tokens))
    for step in sorted(steps, key=lambda s: s.output):
        line[step.output] = step.operator(*(line[p] for p in step.inputs))
    return line
