"""Where does randomness come from? From one seed, split into streams that do not touch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lgcourse.errors import InputError


def number(seed: int, purpose: str) -> int:
    """Return a seed for one purpose; different seeds or purposes give unrelated numbers.

    >>> number(0, "data") != number(0, "weights") != number(1, "weights")
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}")
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big")


def generator(seed: int, purpose: str) -> torch.Generator:
    """Return a CPU generator for one purpose."""
    return torch.Generator().manual_seed(number(seed, purpose))


@contextmanager
def seeded(seed: int, purpose: str) -> Iterator[None]:
    """Seed torch's global generator inside a ``with`` block, and restore it afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(number(seed, purpose))
        yield
