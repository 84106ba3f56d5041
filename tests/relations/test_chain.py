"""Reading through a token that has read before: against plain loops over all three positions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import tasks
from lgcourse.relations import CellRelation, ChainRelation, Form
from lgcourse.relations.chain import chains
from lgcourse.relations.saved import as_data, from_data
from lgcourse.theory import predict

FORMS = st.builds(
    Form, st.integers(0, 1), st.sampled_from([1, -1, -2]), st.sampled_from([0, -1, -2])
)
CELLS = st.lists(st.tuples(FORMS, st.integers(-2, 3)), min_size=1, max_size=3)
OWN = (Form(1, -1, 0), 0)
A, B = (Form(1, -1, -1), 1), (Form(1, -1, -1), 0)  # a(t) is one digit and the sign before b(t)
A_BEFORE = (Form(1, -1, -2), 2)


def by_loops(last, first, query, key, n):
    """Return the pair of cells (r, r') by which the way leads from query to key, or None."""
    for r, (form, value) in enumerate(last):
        for s, (other, second) in enumerate(first):
            for j in range(query + 1):
                told = [k for k, (f, w) in enumerate(last) if f(query, j, n) == w]
                there = [k for k, (f, w) in enumerate(first) if f(j, key, n) == w]
                if told[:1] == [r] and there[:1] == [s] and key <= j:
                    assert form(query, j, n) == value and other(j, key, n) == second
                    return r * len(first) + s
    return None


@settings(max_examples=30, deadline=None)
@given(CELLS, CELLS, st.integers(1, 3))
def test_a_chain_is_two_steps(last, first, n):
    phi, length = ChainRelation(CellRelation(last), CellRelation(first)), 8
    ids = phi(torch.arange(length), torch.arange(length), n)
    keys, named = phi.named(torch.arange(length), n)
    for query in range(length):
        for key in range(query + 1):
            expected = by_loops(last, first, query, key, n)
            assert int(ids[query, key]) == (phi.other if expected is None else expected)
            slots = named[query][keys[query] == key].tolist()
            assert (min(slots) if slots else None) == expected


def addition(*layers):
    return [
        CellRelation([cell, OWN], f"layer {number} head {head}", layer=number)
        for number, cells in enumerate(layers, start=1)
        for head, cell in enumerate(cells, start=1)
    ]


@pytest.mark.parametrize(
    ("layers", "verdict"),
    [
        (([A], [B, A, A_BEFORE]), "generalises"),  # a(t) is read at b(t)
        (([B, A, A_BEFORE], [A]), "generalises"),  # a(t) is read at b(t - 1)
        (([A, B, A_BEFORE], []), "fails"),  # one layer: no token has read before
        (([], [B, A, A_BEFORE]), "fails"),  # a(t) is never read
        (([B], [B, A_BEFORE]), "fails"),
    ],
)
def test_a_later_layer_reads_what_an_earlier_one_has_read(layers, verdict):
    said = predict(tasks.get("addition"), addition(*layers), range(1, 9), [12, 30])
    assert said.verdict == verdict
    if verdict == "fails":
        assert "no head reads" in said.reason and max(said.resolvable.values()) < 1


def test_layers_outlast_the_file():
    heads = addition([A], [B, A_BEFORE])
    again = from_data(as_data(heads))
    assert [head.layer for head in again] == [1, 2, 2]
    names = ["layer 2 head 1 through layer 1 head 1", "layer 2 head 2 through layer 1 head 1"]
    assert [chain.name for chain in chains(again)] == names


def test_equal_heads_make_one_chain():
    heads = addition([A, A], [B, B, B], [B])
    assert len(chains(heads)) == 2  # A then B, and B then B
