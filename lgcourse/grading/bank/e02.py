"""Exercise 2: sines, relative biases, T5's buckets, ALiBi and RoPE.

The references compute one number at a time with Python's math; the solutions that learners see
compute with tensors.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
NEAR = 1e-4  # float32 angles


def _some(count: int, below: int, generator: Generator) -> Tensor:
    """Return distinct positions, in any order."""
    return torch.randperm(below, generator=generator)[:count]


# --- sinusoidal -----------------------------------------------------------------------------------
def reference_sinusoidal(positions: Tensor, width: int) -> Tensor:
    """Return p[2m] = sin(j / 10000^(2m/d)), p[2m+1] = cos of the same, number by number."""
    rows = []
    for j in positions.tolist():
        angles = [j / 10000 ** (2 * (c // 2) / width) for c in range(width)]
        rows.append([math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)])
    return torch.tensor(rows)


SINUSOIDAL = Question(
    name="sinusoidal",
    title="absolute positions as sines and cosines",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Write down the vector of position 0 for width 4. Which entries are sines, which cosines?",
        "Pair m has the angle j / 10000^(2m/d). Make a matrix [l, d/2] of all angles first.",
        "angle = positions[:, None] / 10000 ** (torch.arange(0, width, 2) / width); then "
        "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).",
    ),
    checks=(
        Check(
            "one-vector-each",
            "a float32 vector of the given width for each position",
            "one row per position and one column per entry: each angle gives two entries, so the "
            "d / 2 angles make d columns",
            lambda g: [(torch.arange(5), 8)],
            parts=(),
        ),
        Check(
            "sines-and-cosines-alternate",
            "sine, cosine, sine, cosine: position 0 is 0, 1, 0, 1, ...",
            "each pair stands together, its sine at 2m and its cosine at 2m + 1; cat puts all "
            "sines first, and stack needs dim=-1",
            lambda g: [(torch.tensor([0]), 6), (torch.tensor([0]), 10)],
            tolerance=NEAR,
        ),
        Check(
            "first-pair-turns-fastest",
            "the first pair has the angle j itself",
            "the exponent of pair 0 is 0, so its angle is j; check that you divide by the power of "
            "10000, and that pairs count from 0",
            lambda g: [(torch.arange(1, 7), 2)],
            tolerance=NEAR,
        ),
        Check(
            "frequencies",
            "pair m has the angle j / 10000^(2m/d)",
            "the exponent is 2m/d with d the whole width, m the number of the pair: not m/d, and "
            "not 4m/d",
            lambda g: [(torch.arange(1, 40), 6), (torch.arange(1, 9), 16)],
            tolerance=NEAR,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in, not arange(len(positions))",
            lambda g: [(20 + _some(5, 100, g), 8)],
            tolerance=NEAR,
        ),
    ),
    reference=reference_sinusoidal,
)


# --- relative_bias --------------------------------------------------------------------------------
def reference_relative_bias(query: Tensor, key: Tensor, table: Tensor) -> Tensor:
    """Return table[h][min(max(i - j, 0), c)], number by number."""
    last = table.shape[1] - 1
    rows = [
        [[row[min(max(i - j, 0), last)] for j in key.tolist()] for i in query.tolist()]
        for row in table.tolist()
    ]
    return torch.tensor(rows)


def _table(heads: int, size: int, generator: Generator) -> Tensor:
    return torch.randn(heads, size, generator=generator)


RELATIVE_BIAS = Question(
    name="relative_bias",
    title="a learned number per head and distance",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Make the matrix of distances i - j first. Which shape has it?",
        "The distance chooses the column of the table. Distances beyond the last column use the "
        "last one, negative ones the column 0.",
        "distance = (query[:, None] - key[None, :]).clamp(0, table.shape[1] - 1); table[:, "
        "distance] has a head, a query and a key dimension.",
    ),
    checks=(
        Check(
            "head-query-key",
            "one float32 number per head, query and key",
            "the shape is [heads, queries, keys]: table[:, distance] puts the heads first, "
            "table[distance] does not",
            lambda g: [(torch.arange(4, 7), torch.arange(5), _table(2, 9, g))],
            parts=(),
        ),
        Check(
            "looks-back",
            "the distance is i - j",
            "the query comes first: i - j counts how far back the key stands; j - i is negative "
            "there",
            lambda g: [(torch.arange(4, 7), torch.arange(5), _table(2, 9, g))],
        ),
        Check(
            "far-keys-share",
            "distances beyond the table use its last number",
            "clamp the distance to the last column, table.shape[1] - 1; a remainder (%) or a bias "
            "of 0 is something else",
            lambda g: [(torch.arange(20, 23), torch.arange(20), _table(3, 5, g))],
        ),
        Check(
            "later-keys",
            "keys after their query use distance 0, and do no harm",
            "a negative index counts from the end of the table: clamp at 0 as well; abs gives "
            "later keys the number of earlier ones",
            lambda g: [(torch.arange(4), torch.arange(7), _table(2, 9, g))],
        ),
        Check(
            "given-positions",
            "works with a query in the middle, and with keys in any order",
            "use the positions: with a cache, the only query may stand at 30, so row 0 is not "
            "position 0",
            lambda g: [(torch.tensor([30]), 25 + _some(4, 6, g), _table(2, 9, g))],
        ),
    ),
    reference=reference_relative_bias,
)


# --- t5_bucket ------------------------------------------------------------------------------------
def reference_t5_bucket(distance: Tensor) -> Tensor:
    """Return the bucket of each distance: count the bounds of buckets that it has reached.

    Bucket 16 + m starts at 16 * 8^(m/16), and d >= that bound iff d^16 >= 16^16 * 8^m.
    """
    buckets = [
        d if d < 16 else 16 + sum(d**16 >= 16**16 * 8**m for m in range(1, 16))
        for d in distance.flatten().tolist()
    ]
    return torch.tensor(buckets).reshape(distance.shape)


T5_BUCKET = Question(
    name="t5_bucket",
    title="T5's buckets of distances",
    points=3,
    minutes=20,
    difficulty=4,
    hints=(
        "Treat the two halves apart: what is the bucket of 7? Of 16? Of 128, and of 1000?",
        "From 16 on the bucket is 16 + floor(16 log(d / 16) / log(128 / 16)), at most 31. "
        "torch.where joins the halves.",
        "far = (16 + (16 * (distance.clamp(min=16) / 16).log() / math.log(8)).long())"
        ".clamp(max=31); then torch.where(distance < 16, distance, far).",
    ),
    checks=(
        Check(
            "whole-numbers",
            "a bucket (int64) for each distance, in the shape of the input",
            "buckets are ids: turn the floored logarithm into int64 with .long(), and return a "
            "tensor",
            lambda g: [(torch.arange(6).reshape(2, 3),), (torch.tensor([20, 40]),)],
            parts=(),
        ),
        Check(
            "near-keys-exact",
            "distances below 16 have a bucket of their own",
            "in a decoder all keys lie behind, so the exact half has 16 of the 32 buckets, not 8",
            lambda g: [(torch.randperm(16, generator=g),)],
        ),
        Check(
            "far-keys-logarithmic",
            "from 16 on, buckets grow with the distance",
            "the logarithm is of d / 16, divided by log(128 / 16), times 16; round down, and add "
            "the 16 exact buckets",
            lambda g: [(torch.tensor([16, 17, 19, 21, 25, 31, 40, 50, 63, 70, 80, 91, 110, 127]),)],
        ),
        Check(
            "last-bucket",
            "all distances from 128 on share bucket 31",
            "the formula goes on to 32 and more; there are 32 buckets, so clamp at 31",
            lambda g: [(128 + torch.randint(2000, (6,), generator=g),), (torch.tensor([128]),)],
        ),
    ),
    reference=reference_t5_bucket,
)


# --- alibi_bias -----------------------------------------------------------------------------------
def reference_alibi_bias(query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Return -2^(-8 (h + 1) / H) (i - j), number by number."""
    return torch.tensor(
        [
            [[-math.pow(2, -8 * h / heads) * (i - j) for j in key.tolist()] for i in query.tolist()]
            for h in range(1, heads + 1)
        ]
    )


ALIBI_BIAS = Question(
    name="alibi_bias",
    title="a penalty that grows with the distance",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "There are two factors: a slope per head, and a distance per pair. Which shapes have they?",
        "The slopes are 2^(-8 (h + 1) / H) for h = 0 .. H - 1; the bias is -slope times (i - j).",
        "slope = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads); -slope[:, None, None] * "
        "(query[:, None] - key[None, :]).",
    ),
    checks=(
        Check(
            "head-query-key",
            "one float32 number per head, query and key",
            "the slope needs two more dimensions before it meets the distances: slope[:, None, "
            "None]",
            lambda g: [(torch.arange(4, 7), torch.arange(5), 2)],
            parts=(),
        ),
        Check(
            "far-keys-weigh-less",
            "a key in the past gets a negative bias, more so the farther it is",
            "mind the sign: the score of a far key must fall, so the bias is minus slope times "
            "(i - j); one head has the slope 2^-8",
            lambda g: [(torch.arange(5, 8), torch.arange(5), 1)],
            tolerance=NEAR,
        ),
        Check(
            "slopes",
            "the heads have the slopes 2^(-8 (h + 1) / H)",
            "with 8 heads these are 1/2, 1/4, .. 1/256. The exponent depends on the number of "
            "heads, and h counts from 0 while the first slope is not 1",
            lambda g: [(torch.arange(5, 8), torch.arange(5), heads) for heads in (8, 4, 2)],
            tolerance=NEAR,
        ),
        Check(
            "given-positions",
            "works with a query in the middle, and with keys in any order",
            "use the positions: with a cache, the only query may stand at 30, so row 0 is not "
            "position 0",
            lambda g: [(torch.tensor([30]), _some(6, 30, g), 8)],
            tolerance=NEAR,
        ),
    ),
    reference=reference_alibi_bias,
)


# --- rope -----------------------------------------------------------------------------------------
def reference_rope(x: Tensor, positions: Tensor) -> Tensor:
    """Multiply each pair, as a complex number, by e^(i angle), number by number."""
    d = x.shape[1]
    rows = []
    for row, t in zip(x.tolist(), positions.tolist(), strict=True):
        out = []
        for m in range(d // 2):
            angle = t / 10000 ** (2 * m / d)
            turned = complex(row[2 * m], row[2 * m + 1]) * complex(math.cos(angle), math.sin(angle))
            out += [turned.real, turned.imag]
        rows.append(out)
    return torch.tensor(rows)


def _vectors(length: int, width: int, generator: Generator) -> Tensor:
    return torch.randn(length, width, generator=generator)


ROPE = Question(
    name="rope",
    title="turn pairs of coordinates by their position",
    points=3,
    minutes=20,
    difficulty=4,
    hints=(
        "Start with width 2: one pair (x, y), turned by the angle t. What is (1, 0) at t = 1?",
        "(x, y) -> (x cos - y sin, x sin + y cos) for each pair (0, 1), (2, 3), ...; pair m has "
        "the angle t / 10000^(2m/d).",
        "first, second = x[:, 0::2], x[:, 1::2]; stack the two new halves with dim=-1 and flatten "
        "the last two dimensions.",
    ),
    checks=(
        Check(
            "same-form",
            "vectors of the same shape and dtype",
            "each pair gives a pair: stack both new coordinates and flatten, so that the width "
            "stays d; angles in float64 must be cast back",
            lambda g: [(_vectors(5, 6, g), torch.arange(5))],
            parts=(),
        ),
        Check(
            "start-stays",
            "position 0 turns nothing",
            "at position 0 all angles are 0, so the vector must come out as it went in; if the "
            "coordinates changed places, the halves were joined in another order than split",
            lambda g: [(_vectors(3, 6, g), torch.zeros(3, dtype=torch.long))],
            tolerance=NEAR,
        ),
        Check(
            "one-pair",
            "a single pair is turned by the angle t, counter-clockwise",
            "(x, y) -> (x cos t - y sin t, x sin t + y cos t): check the sign of each sine, and "
            "that the second line uses the old x",
            lambda g: [(_vectors(4, 2, g), torch.arange(1, 5))],
            tolerance=NEAR,
        ),
        Check(
            "neighbours-are-pairs",
            "the pairs are (0, 1), (2, 3), ..., each with its own angle",
            "here neighbours are paired, as in the paper; many codes pair the halves, (0, d/2). "
            "And pair m has the angle t / 10000^(2m/d)",
            lambda g: [
                (_vectors(5, 6, g), torch.arange(1, 6)),
                (_vectors(3, 10, g), torch.arange(3)),
            ],
            tolerance=NEAR,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in, not arange(len(x))",
            lambda g: [(_vectors(5, 8, g), 20 + _some(5, 100, g))],
            tolerance=NEAR,
        ),
    ),
    reference=reference_rope,
)

QUESTIONS = (SINUSOIDAL, RELATIVE_BIAS, T5_BUCKET, ALIBI_BIAS, ROPE)
