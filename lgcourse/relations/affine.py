"""How does a position or a length depend on the scale? As an integer-linear expression in t and n.

t is the number of a step, n (or n1, n2, ...) are the sizes of a scale. Expressions like these say
where something stands at every scale at once, so that a program can reason about all scales.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Affine:
    """An expression constant + t_factor t + factors[0] n1 + factors[1] n2 + ...

    Expressions add, subtract, and multiply by whole numbers; a whole number stands for itself.

    Args:
        constant: the constant part.
        t_factor: the factor of t.
        factors: the factors of the sizes; trailing zeros are dropped.

    >>> 2 * N + T - 1
    2n + t - 1
    >>> (2 * N + T - 1)(t=4, sizes=(10,))
    23
    """

    constant: int = 0
    t_factor: int = 0
    factors: tuple[int, ...] = ()

    def __post_init__(self):
        factors = tuple(self.factors)
        while factors and factors[-1] == 0:
            factors = factors[:-1]
        object.__setattr__(self, "factors", factors)

    @staticmethod
    def of(value: Affine | int) -> Affine:
        """Return an expression as it is, a whole number as a constant one."""
        return value if isinstance(value, Affine) else Affine(value)

    def factor(self, size: int) -> int:
        """Return the factor of a size, 0-based."""
        return self.factors[size] if size < len(self.factors) else 0

    @property
    def slope(self) -> tuple[int, ...]:
        """All factors: of t, then of the sizes."""
        return (self.t_factor, *self.factors)

    @property
    def is_constant(self) -> bool:
        """Whether the value is the same for all t and n."""
        return not self.t_factor and not self.factors

    def __call__(self, t=0, sizes=()):
        """Return the value for a number or tensor t and the sizes of a scale."""
        if len(self.factors) > len(sizes):
            raise ValueError(f"{self} needs {len(self.factors)} sizes, got {len(sizes)}")
        value = self.constant + sum(c * n for c, n in zip(self.factors, sizes, strict=False))
        return value + self.t_factor * t if self.t_factor else value

    def put(self, t: Affine | int) -> Affine:
        """Return the expression with another one in place of t."""
        return Affine(self.constant, 0, self.factors) + self.t_factor * Affine.of(t)

    def __add__(self, other: Affine | int) -> Affine:
        other = Affine.of(other)
        count = max(len(self.factors), len(other.factors))
        factors = tuple(self.factor(k) + other.factor(k) for k in range(count))
        return Affine(self.constant + other.constant, self.t_factor + other.t_factor, factors)

    def __mul__(self, by: int) -> Affine:
        return Affine(self.constant * by, self.t_factor * by, tuple(c * by for c in self.factors))

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -Affine.of(other)

    def __rsub__(self, other: int) -> Affine:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        several = len(self.factors) > 1
        names = [f"n{k + 1}" if several else "n" for k in range(len(self.factors))]
        parts = [*zip(self.factors, names, strict=True), (self.t_factor, "t"), (self.constant, "")]
        return signed_sum(parts) or "0"


def signed_sum(parts: list[tuple[int, str]]) -> str:
    """Return a sum of factors and letters as text; zero factors are left out.

    >>> signed_sum([(1, "i"), (-2, "n"), (0, "j"), (3, "")])
    'i - 2n + 3'
    """
    text = ""
    for factor, letter in parts:
        if factor:
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            text += sign + ("" if abs(factor) == 1 and letter else str(abs(factor))) + letter
    return text


T = Affine(t_factor=1)
N = Affine(factors=(1,))
M = Affine(factors=(0, 1))
