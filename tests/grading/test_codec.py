"""Does plain data cross unchanged, all else as a name, and can no message run code or cost much?"""

from __future__ import annotations

import json
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.grading.comparison import compare
from lgcourse.grading.sandbox.codec import DTYPES, Alien, Garbled, Made, decode, encode

KEYS = st.text(max_size=5) | st.integers() | st.tuples(st.integers(), st.integers())
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def same(one, other):
    """Equal in type and value, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    return one == other


@given(PLAIN)
def test_plain_data_cross_unchanged(value):
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3,), (2, 3)])
def test_tensors_cross_bit_by_bit(name, shape):
    tensor = torch.randint(0, 2, shape).to(DTYPES[name])
    for made in (tensor, tensor.T if tensor.dim() == 2 else tensor):
        back = decode(encode(made))
        assert (back.dtype, back.shape) == (made.dtype, made.shape) and torch.equal(back, made)


def test_special_numbers_and_the_stub_cross():
    values = torch.tensor([float("nan"), float("inf"), -0.0])
    back = decode(encode([values, float("-inf"), 10**4400, ...]))
    assert back[0].view(torch.int32).tolist() == values.view(torch.int32).tolist()
    assert back[1] == float("-inf") and back[2] == 10**4400 and back[3] is ...


class Own:
    def __reduce__(self):
        raise AssertionError("it was pickled")


class OwnInt(int):
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Own(), "Own"),
        (OwnInt(3), "OwnInt"),
        ({torch.zeros(1): 2}, "dict"),
        ({i: 0 for i in range(6000)}, "dict"),
        (torch.nn.Parameter(torch.zeros(2)), "Parameter (a subclass of torch.Tensor)"),
        (torch.zeros(2).to_sparse(), "tensor (torch.sparse_coo, cpu, torch.float32)"),
        (lambda: 1 << 2_000_000, "huge int"),
        (torch.zeros(1).expand(1 << 26), f"tensor of shape ({1 << 26},)"),
    ],
)
def test_what_is_not_plain_crosses_as_a_name(value, name):
    value = value() if callable(value) else value  # pytest would print the digits
    back = decode(encode([value]))[0]
    assert isinstance(back, Alien) and type(back).__name__ == name


def test_a_stand_in_equals_nothing_that_is_expected():
    for expected in (3, "x", (1,), torch.zeros(2)):
        with pytest.raises(Exception, match="expected an? .*, got an? Own"):
            compare(decode(encode(Own())), expected)


def test_a_value_that_is_too_large_as_a_whole_crosses_as_that():
    for value in ([torch.zeros(1 << 23, dtype=torch.float64)] * 2, ["x" * 90_000] * 100):
        assert type(decode(encode(value))).__name__ == "value that is too large"


def test_a_loop_or_a_deep_nest_ends():
    loop: list = []
    loop.append(loop)
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    for value in (loop, deep, [[0] * 1000] * 1000):
        assert len(encode(value)) < 4_000_000


def frame(tree, blob=b""):
    header = json.dumps(tree).encode() if not isinstance(tree, bytes) else tree
    return struct.pack("<I", len(header)) + header + blob


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 4,
        b"\x80\x04cos\nsystem\n",
        frame(b"{"),
        frame(b"[" * 100_000),
        frame({"a": 1}),
        frame([]),
        frame(["int", "3"], b"left over"),
        frame(["int", 3]),
        frame(["int", "0x" + "f" * 3, "more"]),
        frame(["bool", 1]),
        frame(["unknown"]),
        frame(["dict", [[1, ["none"]]]]),
        frame(["dict", [[["list", []], ["none"]]]]),
        frame(["dict", [[["alien", "x"], ["none"]]]]),
        frame(["dict", [[["none"], ["none"], ["none"]]]]),
        frame(["dict", [[["int", hex(i)], ["none"]] for i in range(6000)]]),
        frame(["tensor", "float32", [2], 8], b"1234"),
        frame(["tensor", "float32", [3], 8], b"12345678"),
        frame(["tensor", "float32", [-2], 8], b"12345678"),
        frame(["tensor", "float32", [1 << 62, 1 << 62], 8], b"12345678"),
        frame(["tensor", "object", [1], 8], b"12345678"),
        frame(["tensor", "bool", [2], 2], b"\x02\x00"),
        frame(["tensor", "float32", [2]], b"12345678"),
        frame(["made", "os:system", [["str", "true"]]]),
        frame(b"1" * 5000),
        struct.pack("<I", 1 << 31) + b"x" * 100,
    ],
)
def test_a_message_of_another_form_is_refused(data):
    with pytest.raises(Garbled):
        decode(data)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_decode_or_are_refused(data):
    for bytes_ in (data, frame(data)):
        try:
            decode(bytes_)
        except Garbled:
            continue


def test_only_a_trusted_writer_makes_objects():
    data = encode([Made("tasks:get", "copy")])
    assert decode(data, build=True)[0].name == "copy"
    with pytest.raises(Garbled):
        decode(data)
