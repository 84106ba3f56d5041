"""Products of permutations with chain of thought: the running result lives in a whole group."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.relations.affine import N, T
from lgcourse.tasks.base import identity
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.tasks.words import Words


@lru_cache
def group(points: int) -> tuple[str, ...]:
    """Return all permutations of 1..points in one-line notation, the identity first.

    >>> group(3)
    ('123', '132', '213', '231', '312', '321')
    """
    return tuple("".join(map(str, p)) for p in permutations(range(1, points + 1)))


def after(h: str, g: str) -> str:
    """Return "h after g": each point goes through g first, then through h.

    >>> after("231", "213")
    '321'
    """
    return "".join(h[int(image) - 1] for image in g)


@lru_cache
def compose(points: int) -> Operator:
    """The operator h, g -> h after g on the tokens of `group`."""
    words = group(points)
    ids = {word: id for id, word in enumerate(words)}
    return Operator.from_rule(
        "compose",
        ("before", "next"),
        lambda h, g: ids[after(words[h], words[g])],
        range(len(words)),
    )


@lru_cache
def composition(points: int) -> Tensor:
    """Return the table [h g] -> h after g, found on arrays of images and not from the words."""
    images = torch.tensor(list(permutations(range(points))))  # g points
    products = images[:, images]  # h g points: the image under h of the image under g
    place = points ** torch.arange(points)
    index = torch.empty(points**points, dtype=torch.long)
    index[(images * place).sum(-1)] = torch.arange(len(images))
    return index[(products * place).sum(-1)]


def prefix_products(table: Int[Tensor, "h g"], factors: Int[Tensor, "b n"]) -> Tensor:
    """Return the products of the first 1, 2, .., n factors, [b n], in log2(n) rounds.

    After r rounds place t holds the product of the last 2^r factors up to t, or of all of them: so
    a round multiplies each place by what stands 2^r before. The order stays, and brackets do not
    matter, since composing is associative.

    >>> prefix_products(composition(3), torch.tensor([[3, 3, 3, 1]]))  # 231 turns three points
    tensor([[3, 4, 0, 1]])
    """
    products, back = factors, 1
    while back < factors.shape[1]:
        joined = table[products[:, :-back], products[:, back:]]
        products = torch.cat([products[:, :back], joined], dim=1)
        back *= 2
    return products


class PermutationCoT(Words):
    """g1..gn = h1..hn with h_t = h_(t-1) after g_t: g_t acts first, then the product so far.

    One token per permutation, written in one-line notation: 231 sends 1 to 2, 2 to 3 and 3 to 1.
    Arity 2: a step needs the product before and the next factor; the first one takes its factor.
    SRC 2 from scale 2 on (take, compose), 1 at scale 1: the group is fixed, only n grows.

    Args:
        points: the number of points that are permuted, 3 (6 elements), 4 (24) or 5 (120).
    """

    name, example = "permutation-cot", "231 321 ="
    arity = 2

    def __init__(self, points: int = 3):
        if points not in (3, 4, 5):
            raise InputError(f"points must be 3, 4 or 5, got {points!r}")
        self.points = points
        self.vocabulary = (*group(points), "=")
        self.chance = 1 / len(group(points))
        self.example = f"{group(points)[3]} {group(points)[-1]} ="

    def word_form(self):
        points = "".join(map(str, range(1, self.points + 1)))
        return f"a permutation of {points} in one-line notation"

    def segments(self):
        g = Segment("g", N, tuple(range(len(group(self.points)))))
        return [g, self.mark("="), Segment("h", N)]

    def families(self):
        g, h = self.places("g", "h")
        return [
            family(identity(len(group(self.points))), h(T), [g(T)], 1),
            family(compose(self.points), h(T), [h(T - 1), g(T)], 2, N),
        ]

    def answer(self, prompt, scale):
        return prefix_products(composition(self.points), prompt[:, :scale])

    def solve(self, text):
        self.parse(text)
        first, *rest = text.replace("=", " ").split()
        products = [first]
        for g in rest:
            products.append(after(products[-1], g))
        return " ".join(products)


class PermutationCoTS3(PermutationCoT):
    """Products in S3, the 6 permutations of three points; a solvable group."""

    name = "permutation-cot-s3"

    def __init__(self):
        super().__init__(3)


class PermutationCoTS5(PermutationCoT):
    """Products in S5, the 120 permutations of five points; not solvable, the hard case."""

    name, example = "permutation-cot-s5", "12453 54321 ="

    def __init__(self):
        super().__init__(5)
