"""How do long numbers come in and go out? As digit tensors, least digit first, and as usual text.

No number becomes a Python integer: ``torch.randint`` overflows above 18 digits and ``int(text)``
stops at 4,300. Answers by ordinary arithmetic use `decimal.Decimal`, which has no such limit.
"""

from __future__ import annotations

from decimal import Context

import torch
from torch import Tensor

from lgcourse.relations.base import Scale, sizes_of
from lgcourse.tasks.base import Prompt, Task


class Numerals(Task):
    """Base class of tasks on numbers: the tokens 0..9 are the digits, text is turned at the border.

    Attributes:
        sign: the character between two numbers.
        strip: whether `decode` drops leading zeros.
    """

    sign: str
    strip = True

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        """Lay out two digit tensors [b n] and [b m], least digit first, as a prompt a sign b =."""
        sign, equals = (a.new_full((len(a), 1), self.vocabulary.index(c)) for c in (self.sign, "="))
        return torch.cat([a, sign, b, equals], dim=1)

    def operands(self, prompt: Tensor, scale: Scale) -> tuple[Tensor, Tensor]:
        """Return the two digit tensors [b n] and [b m] of a prompt."""
        sizes = sizes_of(scale)
        n, m = sizes[0], sizes[-1]
        return prompt[:, :n], prompt[:, n + 1 : n + 1 + m]

    def encode(self, text):
        """Return the tokens of a text; every number is turned, least digit first."""
        super().encode(text)  # so that an error shows the text as it was typed
        return super().encode(turn("".join(text.split())))

    def decode(self, ids):
        """Return tokens as text: numbers the usual way round, without leading zeros."""
        return turn(super().decode(ids), strip=self.strip)

    def two_numbers(self, text: str) -> tuple[str, str]:
        """Return the two numbers of a prompt; a text of another form is an `InputError`."""
        compact = "".join(text.split())
        a, sign, rest = compact.partition(self.sign)
        b, equals, behind = rest.partition("=")
        if not (sign and equals and is_number(a) and is_number(b) and not behind):
            raise self.not_mine(text, f"it is not digits{self.sign}digits=")
        return a, b

    def equal_length(self, text: str) -> Prompt:
        """Read a prompt of two numbers; the shorter one is extended by zeros, as a note says."""
        a, b = self.two_numbers(text)
        scale, notes = max(len(a), len(b)), []
        if len(a) != len(b):
            a, b = a.zfill(scale), b.zfill(scale)
            notes = [f"zero-extended to {scale} digits each: {a}{self.sign}{b}="]
        return Prompt(self.join(row(a), row(b))[0].tolist(), scale, notes)


def turn(text: str, strip: bool = False) -> str:
    """Reverse every number in a text; with ``strip``, drop leading zeros of the result.

    >>> turn("905+128="), turn("3301", strip=True), turn("00", strip=True)
    ('509+821=', '1033', '0')
    """
    parts, number = [], ""
    for c in text + "\0":
        if c.isdigit():
            number += c
            continue
        if number:
            turned = number[::-1]
            parts.append((turned.lstrip("0") or "0") if strip else turned)
        parts.append(c)
        number = ""
    return "".join(parts)[:-1]


def is_number(text: str) -> bool:
    """Return whether a text is made of the digits 0..9 only."""
    return text.isascii() and text.isdigit()


def row(text: str) -> Tensor:
    """Return a number as a digit tensor [1 n], least digit first.

    >>> row("905")
    tensor([[5, 0, 9]])
    """
    return torch.tensor([[int(c) for c in reversed(text)]])


def exact(digits: int) -> Context:
    """Return a context for decimal arithmetic whose results have up to ``digits`` digits."""
    return Context(prec=digits)
