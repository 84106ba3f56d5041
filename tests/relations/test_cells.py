"""A relation made of single cells gives the ids that plain loops give, and names the same keys."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.errors import InputError
from lgcourse.relations import CellRelation, Form

FORM = st.builds(
    Form, st.integers(0, 1), st.sampled_from([-2, -1, 1]), st.sampled_from([0, -1, -2])
)
CELLS = st.lists(st.tuples(FORM, st.integers(-3, 3)), max_size=4)


def plain(cells, i, j, n):
    for id, (form, value) in enumerate(cells):
        if form.a * i + form.b * j + form.c * n == value:
            return id
    return len(cells)


@settings(max_examples=60, deadline=None)
@given(CELLS, st.integers(1, 6))
def test_ids_and_named_keys_are_those_of_plain_loops(cells, n):
    phi, at = CellRelation(cells), torch.arange(12)
    ids = phi(at, at, n)
    keys, slots = phi.named(at, n)
    for i in range(12):
        truth = {j: plain(cells, i, j, n) for j in range(i + 1)}
        assert [int(ids[i, j]) for j in range(i + 1)] == list(truth.values())
        named = {int(k): int(r) for k, r in zip(keys[i], slots[i], strict=True) if k >= 0}
        assert named == {j: id for j, id in truth.items() if id != phi.other}


def test_a_form_without_the_key_is_refused():
    with pytest.raises(InputError, match="does not depend on the key"):
        CellRelation([(Form(1, 0, -1), 0)])
