"""Is an answer compared without broadcasting, in the stated order, and without asking it?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcourse.grading.comparison import Wrong, compare

REAL = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (REAL.tolist(), REAL, "expected a torch.Tensor, got a list"),
        (REAL.numpy(), REAL, "expected a torch.Tensor, got a ndarray"),
        (None, REAL, "got None"),
        (torch.nn.Parameter(REAL), REAL, "a subclass of torch.Tensor"),
        (REAL.double(), REAL, "expected dtype float32, got dtype float64"),
        (REAL.to("meta"), REAL, "expected device cpu, got device meta"),
        (REAL.to_sparse(), REAL, "expected layout torch.strided"),
        (REAL[:1], REAL, "expected shape (2, 3), got shape (1, 3)"),
        (REAL.T, REAL, "expected shape (2, 3), got shape (3, 2)"),
        (REAL[0, 0], REAL, "expected shape (2, 3), got shape ()"),
        (REAL, REAL[:1], "expected shape (1, 3), got shape (2, 3)"),
        (True, 1, "expected an int, got a bool"),
        (1, 1.0, "expected a float, got an int"),
        (np.int64(1), 1, "expected an int, got an int64"),
        ([1, 2], (1, 2), "expected a tuple, got a list"),
        ((1, 2, 3), (1, 2), "expected 2 entries, got 3"),
        ((1, 2.0), (1, 2), "entry 1: expected an int, got a float"),
        ((1, 3), (1, 2), "entry 1: got 3, expected 2"),
        ([[1], [2]], [[1], [3]], "entry 1: entry 0: got 2, expected 3"),
        ("yes", "no", "got 'yes', expected 'no'"),
        (math.nan, 1.0, "got nan, expected 1.0"),
    ],
)
def test_what_differs_is_named(answer, expected, words):
    with pytest.raises(Wrong) as wrong:
        compare(answer, expected)
    assert words in str(wrong.value)


def test_form_comes_before_values():
    wrong_in_all = torch.full((7,), 9.0, dtype=torch.float64)
    for expected, words in (
        (torch.zeros(2, dtype=torch.float32), "dtype"),
        (torch.zeros(2, dtype=torch.float64), "shape"),
        (torch.zeros(7, dtype=torch.float64), "entries differ"),
    ):
        with pytest.raises(Wrong, match=words):
            compare(wrong_in_all, expected)


def test_the_largest_difference_and_its_index_are_told():
    answer = REAL.clone()
    answer[0, 1], answer[1, 2] = 2.5, 5.0
    with pytest.raises(Wrong) as wrong:
        compare(answer, REAL, tolerance=0.1)
    assert str(wrong.value) == (
        "2 of 6 entries differ; the largest difference is 1 at index (1, 2): "
        "got 5.0, expected 6.0 (dtype float32, tolerance 0.1)"
    )


def test_the_tolerance_is_inclusive_and_holds_for_each_entry():
    compare(REAL + 0.5, REAL, tolerance=0.5)
    compare(1.25, 1.0, tolerance=0.25)
    with pytest.raises(Wrong):
        compare(REAL + 0.5, REAL, tolerance=0.49)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_tolerance_lets_infinity_or_not_a_number_through(bad):
    answer = REAL.clone()
    answer[1, 0] = bad
    with pytest.raises(Wrong, match=r"index \(1, 0\)"):
        compare(answer, REAL, tolerance=1e9)
    compare(answer, answer.clone())


def test_large_integers_are_compared_exactly():
    big = torch.tensor([2**60])
    with pytest.raises(Wrong, match="the largest difference is 1 "):
        compare(big + 1, big)


def test_parts_choose_the_values_but_not_the_form():
    compare((1, 9, 3), (1, 2, 3), parts=(0, 2))
    compare(REAL + 1, REAL, parts=())
    for parts in ((1,), None):
        with pytest.raises(Wrong, match="entry 1"):
            compare((1, 9, 3), (1, 2, 3), parts=parts)
    with pytest.raises(Wrong, match="entry 1"):
        compare((1, 9.0, 3), (1, 2, 3), parts=())


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=2),
    st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=2),
)
def test_tensors_pass_just_where_their_lists_are_equal(a, b):
    def passes(one, other):
        try:
            compare(torch.tensor(one), torch.tensor(other))
        except Wrong:
            return False
        return True

    assert passes(a, b) == (a == b)
    assert passes(a, a)


class Equal:
    """Claims to equal everything, and to be a tensor."""

    __class__ = torch.Tensor  # type: ignore[assignment]
    shape, dtype, device = REAL.shape, REAL.dtype, REAL.device

    def __eq__(self, other):
        return True

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self):
        return True

    def __getattr__(self, name):
        return lambda *_: REAL.flatten()


class EqualInt(int):
    def __eq__(self, other):
        return True

    __hash__ = None  # type: ignore[assignment]

    def __sub__(self, other):
        return 0


class EqualTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


def test_objects_that_equal_everything_do_not_pass():
    assert isinstance(Equal(), torch.Tensor) and Equal() == 3, "the attack is real"
    pairs = [(Equal(), REAL), (EqualInt(3), 4), ((EqualInt(3), 1), (4, 1)), ([Equal()], [1])]
    pairs.append((torch.zeros(2, 3).as_subclass(EqualTensor), REAL))
    for answer, expected in pairs:
        with pytest.raises(Wrong, match="expected an? "):
            compare(answer, expected)


def test_methods_hung_on_a_tensor_are_not_called():
    answer = torch.zeros(2, 3)
    for name in ("tolist", "flatten", "detach", "__eq__"):
        setattr(answer, name, lambda: REAL.flatten())
    with pytest.raises(Wrong, match="6 of 6 entries differ"):
        compare(answer, REAL)
