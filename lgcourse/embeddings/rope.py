"""What if position turns queries and keys? Pairs of coordinates, each turned by its own angle."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.embeddings.base import PositionEmbedding, fine, head_size, soft_only, wide
from lgcourse.errors import InputError, unknown_name, whole_number

PAIRINGS = ("half", "interleaved")


class RotaryEmbedding(PositionEmbedding):
    """RoPE: each pair m of coordinates is turned by the angle t base^(-2m/d), t the position.

    (x, y) -> (x cos - y sin, x sin + y cos), for queries at t = i and keys at t = j. A product of
    a turned query and a turned key depends on i - j only; lengths of vectors stay as they are.

    Source: Su et al. (2021), arXiv 2104.09864, section 3.2. The paper pairs neighbours, (0, 1),
    (2, 3), ...: ``"interleaved"``. Many codes pair the halves, (0, d/2), (1, d/2 + 1), ...:
    ``"half"``, the default. Both are the same model up to the order of coordinates, see
    `convert_pairing`.

    Trap: weights of one pairing run under the other without an error, and wrongly. Mixing the two
    within one formula leaves scores that do not depend on i - j alone, which shows from head size 6
    on. Angles are made in float64 and cast last: in bfloat16, position 257 is 256.

    Args:
        size: width d of a head, even.
        pairing: ``"half"`` or ``"interleaved"``.
        base: the base of the angles.

    Raises:
        InputError: the size is odd, the pairing is unknown, or the base is not above 1.

    >>> x = torch.tensor([1.0, 0.0])[None, None, None]  # b h l d
    >>> RotaryEmbedding(2).turn(x, torch.tensor([1])).squeeze()
    tensor([0.5403, 0.8415])
    """

    def __init__(self, size: int, pairing: str = "half", base=10_000.0):
        super().__init__()
        if whole_number("size", size, 1) % 2:
            raise InputError(
                f"rope turns pairs of coordinates: the head size must be even, got {size}; "
                "choose a width that is an even multiple of heads"
            )
        if pairing not in PAIRINGS:
            raise unknown_name("pairing", pairing, PAIRINGS)
        if isinstance(base, bool) or not isinstance(base, (int, float)) or not base > 1:
            raise InputError(f"base must be a number above 1, got {base!r}; RoPE has 10000")
        self.size, self.pairing, self.base = size, pairing, float(base)

    def rotate(self, q, k, query, key, context=None):
        return self.turn(q, query), self.turn(k, key)

    def turn(
        self, x: Float[Tensor, "b h l d"], positions: Int[Tensor, " l"]
    ) -> Float[Tensor, "b h l d"]:
        """Return vectors turned by their positions."""
        at = fine(positions)
        even = torch.arange(0, self.size, 2, device=at.device, dtype=at.dtype)
        angle = at[:, None] * self.base ** (-even / self.size)  # l d/2
        full = wide(x)
        cos, sin = angle.cos().to(full.dtype), angle.sin().to(full.dtype)
        if self.pairing == "half":
            first, second = full.chunk(2, dim=-1)
            turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
        else:
            first, second = full[..., 0::2], full[..., 1::2]
            pairs = [first * cos - second * sin, first * sin + second * cos]
            turned = torch.stack(pairs, dim=-1).flatten(-2)
        return turned.to(x.dtype)


def convert_pairing(weight: Tensor, heads: int, to: str) -> Tensor:
    """Reorder the outputs of a query or key projection from one pairing of RoPE to the other.

    With P = (0, 2, 4, ..., 1, 3, 5, ...) inside each head, half(x[P]) = interleaved(x)[P]. Convert
    the projections of q and of k, never that of v: then all scores are what they were.

    Args:
        weight: weight ``[(h d) w]`` or bias ``[(h d)]`` of the projection, in the other pairing.
        heads: number of heads h.
        to: the pairing that is wanted, ``"half"`` or ``"interleaved"``.

    Returns:
        The reordered weight.

    Raises:
        InputError: the pairing is unknown, or the rows do not make heads of an even size.

    >>> convert_pairing(torch.arange(8), heads=1, to="half").tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    >>> convert_pairing(torch.tensor([0, 2, 4, 6, 1, 3, 5, 7]), heads=1, to="interleaved").tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    if to not in PAIRINGS:
        raise unknown_name("pairing", to, PAIRINGS)
    rows = weight.shape[0]
    if rows % (2 * whole_number("heads", heads, 1)):
        raise InputError(
            f"{rows} rows do not make {heads} heads of an even size; give the weight of q, or k"
        )
    size = rows // heads
    order = torch.arange(size, device=weight.device).view(-1, 2).T.flatten()  # P
    order = order if to == "half" else order.argsort()
    return weight.unflatten(0, (heads, size))[:, order].flatten(0, 1)


def rope(
    name,
    task,
    width,
    heads,
    max_scale=None,
    positions=None,
    other="auto",
    pairing="half",
    base=10_000.0,
):
    """RoPE inside each head, with a ``pairing`` and a ``base``."""
    soft_only(name, other)
    return RotaryEmbedding(head_size(name, width, heads), pairing, base)
