"""How does T5 put distances into buckets? Exactly for near keys, logarithmically for far ones."""

from __future__ import annotations

import math

import torch

from lgcourse.relations.base import Relation


class BucketRelation(Relation):
    """T5's buckets of the distance d = i - j, decoder direction (keys do not come after the query).

    With B buckets and maximal distance D: phi = d for d < B/2, otherwise
    B/2 + floor(log(d / (B/2)) / log(D / (B/2)) * B/2), at most B - 1.

    Source: Raffel et al. (2020), arXiv 1910.10683, section 2.1; the bucket bounds follow its code
    (32 buckets, distance 128).

    Args:
        buckets: number of buckets B, even.
        distance: distance D from which on all keys share the last bucket.

    >>> phi = BucketRelation()
    >>> phi(torch.tensor([1000]), 1000 - torch.tensor([0, 15, 16, 19, 64, 1000]))
    tensor([[ 0, 15, 16, 17, 26, 31]])
    """

    name = "t5"

    def __init__(self, buckets: int = 32, distance: int = 128):
        self.size, self.distance = buckets, distance

    def ids(self, query, key, scale):
        distance = (query - key).clamp(min=0)
        exact = self.size // 2
        # float64: in float32 the logarithm can fall just below a whole number
        ratio = (distance.double() / exact).clamp(min=1).log() / math.log(self.distance / exact)
        far = (exact + (ratio * (self.size - exact)).long()).clamp(max=self.size - 1)
        return torch.where(distance < exact, distance, far)

    def label(self, id):
        return f"i - j = {id}" if id < self.size // 2 else f"bucket {id}"


def t5(task=None, max_scale=None, positions=None, buckets=32, distance=128) -> Relation:
    """T5's buckets of i - j."""
    return BucketRelation(buckets, distance)
