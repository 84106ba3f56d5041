"""Relations said in terms: the ids of plain loops, at every scale, and of the circuits they say."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.relations import Form, TermRelation
from lgcourse.relations.affine import Affine, N, T
from lgcourse.relations.forms import Term
from lgcourse.relations.terms import term_of


def said(name):
    """The ideal relation of three tasks, written as step families by hand."""
    copied = term_of(("take", "x"), query=N + T - 1, key=T - 1, first=Affine(1), last=N)
    if name == "copy":
        return [copied]
    if name == "reverse":
        return [term_of(("take", "x"), query=N + T - 1, key=N - T, first=Affine(1), last=N)]
    first = Term(("take", "x"), Form(1, -1, 0), 1, low=N, high=N)
    rest = term_of(("take", "x"), query=N + T - 1, key=T - 2, first=Affine(2), last=N)
    return [first, rest]


@pytest.mark.parametrize("name", ["copy", "reverse", "shift"])
def test_terms_give_the_ids_of_the_circuit(name):
    task = tasks.get(name)
    truth = relations.build("ideal-sh", task, max_scale=20)
    phi = TermRelation(said(name), name)
    for n in range(1, 21):
        at = torch.arange(task.length(n))
        reads = phi(at, at, n) != phi.other
        assert torch.equal(reads, truth(at, at, n) != truth.other)
        keys, _ = phi.named(at, n)
        found = torch.zeros_like(reads)
        for i in range(len(at)):
            found[i, keys[i][keys[i] >= 0]] = True
        assert torch.equal(found, reads)


def test_a_term_off_by_one_is_another_relation():
    wrong = term_of(("take", "x"), query=N + T - 1, key=T, first=Affine(1), last=N)
    at = torch.arange(9)
    right = TermRelation(said("copy"), "copy")(at, at, 4)
    assert not torch.equal(TermRelation([wrong], "wrong")(at, at, 4), right)


@pytest.mark.parametrize("name", ["rpe-sh"])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_terms_of_a_form_relation_say_its_ids(name, n):
    phi = relations.build(name, tasks.get("addition"))
    at = torch.arange(16)
    ids = phi(at, at, n)
    for i in range(16):
        for j in range(i + 1):
            holds = [t.id for t in phi.terms() if bool(t.hits(at[i], at[j], n))]
            assert holds == ([] if int(ids[i, j]) == phi.other else [int(ids[i, j])])


EXPRESSION = st.builds(
    Affine, st.integers(-5, 5), st.integers(-3, 3), st.tuples(st.integers(-3, 3))
)


@settings(max_examples=50)
@given(EXPRESSION, EXPRESSION, st.integers(-4, 4), st.integers(-9, 9), st.integers(1, 9))
def test_expressions_compute_as_their_values(f, g, by, t, n):
    def value(e):
        return e.constant + e.t_factor * t + e.factor(0) * n

    assert (f + g)(t, (n,)) == value(f) + value(g)
    assert (f - by * g)(t, (n,)) == value(f) - by * value(g)
    assert f.put(g)(t, (n,)) == f.constant + f.factor(0) * n + f.t_factor * value(g)


def test_a_form_without_the_key_and_a_query_that_stands_still_are_refused():
    with pytest.raises(InputError, match="does not depend on the key"):
        TermRelation([Term(0, Form(1, 0, -1), 0)], "none")
    with pytest.raises(InputError, match="does not move on"):
        term_of("x", query=N, key=T, first=Affine(1), last=N)
