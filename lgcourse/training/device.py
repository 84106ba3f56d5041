"""On what does a run compute? CUDA if it is there, else the CPU, with one thread per run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lgcourse.errors import InputError

DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of a name.

    ``auto`` is CUDA if there is one, else the CPU. Apple's MPS is never chosen: silently wrong
    results are reported for it in several releases of torch.

    Raises:
        InputError: the name is unknown, or CUDA is asked for and not there.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name not in DEVICES:
        raise InputError(f"device must be one of {', '.join(DEVICES)}, got {name!r}")
    found = torch.cuda.is_available()
    if name == "cuda" and not found:
        raise InputError("device 'cuda' was asked for, but torch finds no CUDA; use --device cpu")
    return torch.device("cuda" if found and name != "cpu" else "cpu")


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread inside a ``with`` block.

    Runs that go side by side then do not compete for the same cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
