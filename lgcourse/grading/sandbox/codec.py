r"""What may cross between the process that grades and the one that runs student code? Plain data.

A message is a length, a JSON header and raw arrays. There is no pickle: reading a message runs no
code, whoever wrote it. A value that is not plain crosses as the name of its class.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib import import_module
from json import dumps, loads  # held by name: student code may replace what the module has
from typing import Any

import torch
from torch import Tensor

from lgcourse.grading.sandbox.wire import HEADER, LARGEST

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex64, torch.complex128),
    )
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
DEPTH, NODES, TEXT, BITS = 20, 100_000, 2 << 20, 1_000_000
KEYS = 5_000  # of a dict: a stranger may choose keys that collide
_KEYS = (bool, int, float, str, type(None))


class Garbled(Exception):  # noqa: N818  it is no fault of the program
    """Bytes are no message of this form."""


class Alien:
    """Stands for a value that cannot cross; its class has the name of the value's class."""


class Made:
    """An argument that each side makes for itself, because it is no plain data.

    Args:
        place: what makes it, ``"room:function"``.
        arguments: what that is called with, plain data.

    >>> Made("tasks:get", "copy").build().name
    'copy'
    """

    def __init__(self, place: str, *arguments: Any):
        self.place, self.arguments = place, arguments

    def build(self) -> Any:
        """Return the object."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"lgcourse.{module}"), name)(*self.arguments)

    def __repr__(self) -> str:
        call = self.place.replace(":", ".")
        return f"{call}({', '.join(map(repr, self.arguments))})"


def encode(value: Any) -> bytes:
    """Write a value as bytes.

    >>> decode(encode((1, [True, 0.5], torch.tensor([[1, 2]]))))
    (1, [True, 0.5], tensor([[1, 2]]))
    """
    arrays: list[bytes] = []
    header = dumps(_tree(value, arrays, [NODES], DEPTH)).encode()
    if len(header) > HEADER or sum(map(len, arrays)) > LARGEST:
        header, arrays = dumps(["alien", "value that is too large"]).encode(), []
    return b"".join([struct.pack("<I", len(header)), header, *arrays])


def _tree(value: Any, arrays: list[bytes], left: list[int], depth: int) -> list[Any]:
    """Return a value as lists that JSON can hold; `left` counts the parts that may still come."""
    kind = type(value)
    left[0] -= 1
    if left[0] < 0 or depth < 0:
        return ["alien", "value with too many parts"]
    if value is None or value is ...:
        return ["none" if value is None else "stub"]
    if kind is bool:
        return ["bool", value]
    if kind is int:
        return ["int", hex(value)] if value.bit_length() <= BITS else ["alien", "huge int"]
    if kind is float:
        return ["float", value.hex()]
    if kind is str:
        return ["str", value] if len(value) <= TEXT else ["alien", "huge str"]
    if kind is tuple or kind is list:
        return [kind.__name__, [_tree(entry, arrays, left, depth - 1) for entry in value]]
    if kind is dict and len(value) <= KEYS and all(map(_is_key, value)):
        return [
            "dict",
            [[_tree(part, arrays, left, depth - 1) for part in pair] for pair in value.items()],
        ]
    if kind is Made:
        parts = [_tree(a, arrays, left, depth - 1) for a in value.arguments]
        return ["made", value.place, parts]
    if kind is Tensor:
        return _tensor(value, arrays)
    name = str(type.__dict__["__name__"].__get__(kind))[:80]
    return ["alien", f"{name} (a subclass of torch.Tensor)" if issubclass(kind, Tensor) else name]


def _is_key(key: Any) -> bool:
    """Return whether a value may be a key: a number, a text, None, or a tuple of these."""
    return all(map(_is_key, key)) if type(key) is tuple else type(key) in _KEYS


def _tensor(value: Tensor, arrays: list[bytes]) -> list[Any]:
    if value.layout is not torch.strided or value.device.type != "cpu" or value.dtype not in NAMES:
        return ["alien", f"tensor ({value.layout}, {value.device.type}, {value.dtype})"]
    shape = [int(size) for size in value.shape]
    if value.numel() * value.element_size() > LARGEST:
        return ["alien", f"tensor of shape {tuple(shape)}"]
    flat = value.detach().resolve_conj().resolve_neg().reshape(-1).contiguous().clone()
    arrays.append(flat.view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    return ["tensor", NAMES[value.dtype], shape, len(arrays[-1])]


def decode(data: bytes, build: bool = False) -> Any:
    """Read a value from bytes.

    Args:
        data: what `encode` returned, or what an unknown process wrote.
        build: make the objects that `Made` names; only where the writer is trusted.

    Raises:
        Garbled: the bytes have another form.
    """
    try:
        (size,) = struct.unpack_from("<I", data)
        if size > min(HEADER, len(data) - 4):
            raise Garbled("the header is too long")
        arrays = _Arrays(data, 4 + size)
        value = _value(loads(data[4 : 4 + size].decode()), arrays, build, DEPTH + 2)
        if arrays.at != len(data):
            raise Garbled("bytes are left over")
        return value
    except Garbled:
        raise
    except Exception as error:  # whatever a stranger's bytes make json, struct or torch say
        raise Garbled(f"{type(error).__name__}") from None


class _Arrays:
    """The bytes behind the header, taken piece by piece."""

    def __init__(self, data: bytes, at: int):
        self.data, self.at = data, at

    def take(self, size: int) -> bytearray:
        if size < 0 or self.at + size > len(self.data):
            raise Garbled("an array ends too soon")
        self.at += size
        return bytearray(self.data[self.at - size : self.at])


def _value(tree: Any, arrays: _Arrays, build: bool, depth: int) -> Any:
    if depth < 0 or type(tree) is not list or not tree:
        raise Garbled("no value")
    kind, rest = tree[0], tree[1:]
    if kind in _PLAIN:
        return _PLAIN[kind](*rest)
    if kind in ("tuple", "list"):
        (parts,) = rest
        entries = [_value(entry, arrays, build, depth - 1) for entry in parts]
        return tuple(entries) if kind == "tuple" else entries
    if kind == "dict":
        (parts,) = rest
        if len(parts) > KEYS:
            raise Garbled("too many keys")
        pairs = [[_value(part, arrays, build, depth - 1) for part in pair] for pair in parts]
        if not all(_is_key(key) for key, _ in pairs):
            raise Garbled("a key that is no plain value")
        return dict(pairs)
    if kind == "made" and build:
        place, parts = rest
        return Made(_text(place), *[_value(a, arrays, build, depth - 1) for a in parts]).build()
    if kind == "tensor":
        dtype, shape, size = rest
        return _array(DTYPES[dtype], shape, size, arrays)
    raise Garbled("unknown kind of value")


def _array(dtype: torch.dtype, shape: list[int], size: int, arrays: _Arrays) -> Tensor:
    count = 1
    for n in shape:
        if type(n) is not int or n < 0:
            raise Garbled("no shape")
        count *= n
    if count * dtype.itemsize != size or len(shape) > 20:
        raise Garbled("shape and size disagree")
    data = arrays.take(size)
    if not count:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool and data.translate(None, b"\x00\x01"):
        raise Garbled("neither True nor False")
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Garbled("no text")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise Garbled("neither True nor False")
    return value


def _alien(name: Any) -> Any:
    """Return a stand-in whose class has a given name."""
    shown = "".join(c for c in _text(name)[:120] if c.isprintable()) or "?"
    return type(shown, (Alien,), {})()


_PLAIN: dict[str, Callable[..., Any]] = {
    "none": lambda: None,
    "stub": lambda: ...,
    "bool": _flag,
    "int": lambda digits: int(_text(digits), 16),
    "float": lambda digits: float.fromhex(_text(digits)),
    "str": _text,
    "alien": _alien,
}
