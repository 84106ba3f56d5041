"""Tasks for reproductions and contrast: attention can solve them by content, not by position.

Settings after Huang et al. (2024), arXiv 2410.02140: symbols without replacement for sorting and
unique copy, the letters a and b for repeated copy, 26 letters without ties for majority. Our layout
has no BOS and no EOS token, and the separator is ``=``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lgcourse.errors import InputError, whole_number
from lgcourse.tasks.base import Task, digits, numbered
from lgcourse.tasks.padding import refuse_wider
from lgcourse.tasks.words import Words


class Contrast(Task):
    """Base class of tasks that the theory of positions does not cover: they have no circuit.

    Attributes:
        why: why there is no position-only circuit that would say how the task generalises.
    """

    kind, arity = "not covered", None
    why: str

    def layout(self, scale):
        return [*numbered("x", scale), "=", *numbered("y", scale)]

    def close(self, x: Tensor) -> Tensor:
        """Put ``=`` behind the inputs [b n]."""
        return torch.cat([x, x.new_full((len(x), 1), self.vocabulary.index("="))], dim=1)

    def circuit(self, scale):
        raise InputError(f"task '{self.name}' is not covered by circuits: {self.why}")


class DistinctSymbols(Contrast, Words):
    """Base class of tasks on the symbols 0..W-1, of which an input has n different ones.

    Args:
        width: W, the number of symbols and so the largest scale.
    """

    example = "31 4 15 ="

    def __init__(self, width: int = 150):
        self.width = whole_number("width", width, 1)
        self.vocabulary = (*map(str, range(width)), "=")
        self.chance = 1 / width
        if width < 32:  # else the symbols of the example would not all exist
            self.example = " ".join([*reversed(self.vocabulary[: min(3, width)]), "="])

    def check_scale(self, scale):
        super().check_scale(scale)
        refuse_wider(self, scale)

    def word_form(self):
        return f"one of the symbols 0..{self.width - 1}"

    def prompt(self, scale, batch, generator):
        order = torch.rand(batch, self.width, generator=generator).argsort(dim=1)
        return self.close(order[:, :scale])

    def parse(self, text):
        prompt = super().parse(text)
        seen = prompt.tokens[:-1]
        twice = next((x for p, x in enumerate(seen) if x in seen[:p]), None)
        if twice is not None:
            raise self.not_mine(text, f"the symbol {self.vocabulary[twice]} occurs twice")
        return prompt


class Sort(DistinctSymbols):
    """Write different symbols in ascending order: y1 < y2 < .. < yn. No SRC: not covered.

    The next output is the smallest symbol above the one before: found by value, wherever it stands.
    """

    name = "sort"
    why = "which input is written next depends on the values of all inputs, not on positions"

    def answer(self, prompt, scale):
        return prompt[:, :scale].sort(dim=1).values

    def solve(self, text):
        self.parse(text)
        return " ".join(sorted(text.replace("=", " ").split(), key=int))


class CopyUnique(DistinctSymbols):
    """Copy an input of different symbols: x1..xn = x1..xn. No SRC: not covered.

    The symbol before occurs once, so the next one can be found by its content.
    """

    name = "copy-unique"
    why = (
        "it is meant to be solved by content (each symbol occurs once, so the one before tells "
        "which comes next); copying by position is task 'copy'"
    )

    def answer(self, prompt, scale):
        return prompt[:, :scale]

    def solve(self, text):
        self.parse(text)
        return " ".join(text.replace("=", " ").split())


class CopyRepeat(Contrast):
    """Copy an input of the letters a and b: x1..xn = x1..xn. No SRC: not covered.

    Symbols repeat, so the one before does not tell which place comes next.
    """

    name, example, vocabulary, chance = "copy-repeat", "abbab=", "ab=", 0.5
    why = (
        "it is the contrast to 'copy-unique', where repeated symbols mislead a search by content; "
        "copying by position is task 'copy'"
    )

    def prompt(self, scale, batch, generator):
        return self.close(digits(2, (batch, scale), generator))

    def answer(self, prompt, scale):
        return prompt[:, :scale]

    def solve(self, text):
        self.parse(text)
        return "".join(text.split())[:-1]


class Majority(Contrast):
    """Write the most frequent letter of the input: x1..xn = y. No SRC: not covered.

    Inputs with a tie for the first place are not drawn and not accepted.
    """

    name, example, chance = "majority", "abcab a=", 1 / 26
    vocabulary = "abcdefghijklmnopqrstuvwxyz="
    why = "its answer is a count over all inputs, which attention makes without naming positions"

    def layout(self, scale):
        return [*numbered("x", scale), "=", "y"]

    def prompt(self, scale, batch, generator):
        x = digits(26, (batch, scale), generator)
        while (tie := _tie(x)).any():
            x[tie] = digits(26, (int(tie.sum()), scale), generator)
        return self.close(x)

    def answer(self, prompt, scale):
        return _counts(prompt[:, :scale]).argmax(dim=1, keepdim=True)

    def parse(self, text):
        prompt = super().parse(text)
        if _tie(torch.tensor([prompt.tokens[:-1]])).any():
            raise self.not_mine(text, "two letters share the first place")
        return prompt

    def solve(self, text):
        self.parse(text)
        letters = "".join(text.split())[:-1]
        return max(sorted(set(letters)), key=letters.count)


def _counts(x: Tensor) -> Tensor:
    """Count the 26 letters in each row: [b n] -> [b 26]."""
    return torch.zeros(len(x), 26, dtype=torch.long).scatter_add_(1, x, torch.ones_like(x))


def _tie(x: Tensor) -> Tensor:
    """Return which rows have two letters that are most frequent, [b]."""
    best, second = _counts(x).topk(2, dim=1).values.T
    return best == second
