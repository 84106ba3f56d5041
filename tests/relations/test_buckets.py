"""T5's buckets against an independent float-free definition and published values."""

import torch

from lgcourse import relations


def bucket(distance, buckets=32, maximum=128):
    """The largest bucket whose lower bound is not above the distance, in exact integers.

    Bucket e + k starts where (d / e)^e >= (maximum / e)^k, with e = buckets / 2.
    """
    exact = buckets // 2
    if distance < exact:
        return distance
    k = 0
    while k + 1 < exact and distance**exact * exact ** (k + 1) >= maximum ** (k + 1) * exact**exact:
        k += 1
    return exact + k


def test_all_distances_in_the_decoder_direction():
    phi = relations.build("t5")
    ids = phi(torch.tensor([1000]), torch.arange(1001), None)[0]
    assert ids.tolist() == [bucket(1000 - j) for j in range(1001)]


def test_published_values():
    distance = [0, 1, 15, 16, 18, 19, 20, 23, 31, 32, 63, 64, 91, 127, 128, 1000]
    want = [0, 1, 15, 16, 16, 17, 17, 18, 21, 21, 26, 26, 29, 31, 31, 31]
    phi = relations.build("t5")
    assert phi(torch.tensor([1000]), 1000 - torch.tensor(distance), None)[0].tolist() == want
