"""Relations made of integer forms against plain Python on every causal pair."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcourse import InputError, relations, tasks
from lgcourse.relations import Form, FormRelation, sizes_of

LENGTH = 24


def square(relation, scale, length=LENGTH):
    at = torch.arange(length)
    return relation(at, at, scale)


def pairs(length=LENGTH):
    return [(i, j) for i in range(length) for j in range(i + 1)]


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("none", lambda i, j, n: 0),
        ("ape", lambda i, j, n: j),
        ("rpe", lambda i, j, n: i - j),
        ("ape-sh", lambda i, j, n: j - n + LENGTH - 1),
    ],
)
@pytest.mark.parametrize("scale", [1, 3, 7])
def test_ids_are_the_equation(name, truth, scale):
    relation = relations.build(name, positions=LENGTH)
    ids = square(relation, scale)
    assert all(ids[i, j] == truth(i, j, scale) for i, j in pairs())
    assert ids.min() >= 0 and ids.max() < relation.size


@pytest.mark.parametrize("scale", [1, 2, 5, 9])
@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_rpe_sh_takes_the_nearest_form_and_the_smaller_factor_in_a_tie(scale, window):
    relation = relations.build("rpe-sh", window=window)
    ids = square(relation, scale)
    for i, j in pairs():
        near = [(abs(i - j - a * scale), a) for a in (0, 1, 2) if abs(i - j - a * scale) <= window]
        if near:
            _, a = min(near)
            want = a * (2 * window + 1) + (i - j - a * scale) + window
        else:
            want = relation.other
        assert ids[i, j] == want


def test_rpe_sh_of_two_sizes_has_a_form_for_each_combination():
    relation = relations.build("rpe-sh", tasks.get("addition-unequal"), window=0)
    labels = {relation.label(id) for id in range(relation.size)}
    assert {"i - j = 0", "i - j - n1 = 0", "i - j - n1 - 2n2 = 0", "other"} <= labels
    assert relation(torch.tensor([20]), torch.tensor([20 - 3 - 2 * 5]), (3, 5)) == next(
        id for id in range(relation.size) if relation.label(id) == "i - j - n1 - 2n2 = 0"
    )


@given(
    a=st.integers(-2, 2),
    b=st.integers(-2, 2),
    c=st.integers(-3, 3),
    i=st.integers(0, 99),
    j=st.integers(0, 99),
    n=st.integers(1, 50),
)
def test_form_is_the_sum(a, b, c, i, j, n):
    assert Form(a, b, c)(i, j, n) == a * i + b * j + c * n
    assert Form(a, b, (c, 1))(i, j, (n, 2)) == a * i + b * j + c * n + 2


def test_hinted_and_scale_free():
    assert not relations.build("rpe").uses_scale
    assert relations.build("rpe-sh").uses_scale
    same = relations.build("rpe", positions=LENGTH)
    assert torch.equal(square(same, 2), square(same, 9))
    with pytest.raises(InputError, match="give the scale"):
        relations.build("rpe-sh")(torch.arange(3), torch.arange(3))


@pytest.mark.parametrize("bad", [0, -1, True, (2, 0)])
def test_bad_scale_is_named(bad):
    with pytest.raises(InputError, match="whole number of at least 1"):
        sizes_of(bad)


@pytest.mark.parametrize("name", ["ape", "rpe", "ape-sh"])
def test_beyond_the_last_position_is_an_error_not_a_wrap(name):
    relation = relations.build(name, positions=8)
    at = torch.arange(10)  # ape-sh: j - n, one more than the others
    with pytest.raises(InputError, match="larger max_scale"):
        relation(at, at, 1)


def test_sizes_follow_the_task():
    task = tasks.get("addition")
    assert relations.build("ape", task, max_scale=7).size == task.length(7) == 3 * 7 + 3


def test_unknown_relation_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'rpe-sh'"):
        relations.build("rpesh")


def test_wrong_form_size_is_an_error():
    with pytest.raises(InputError, match="takes 2 size"):
        FormRelation([Form(1, -1, (-1, 0))], -1, 1, "two")(torch.arange(3), torch.arange(3), 4)
