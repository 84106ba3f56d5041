"""The ideal relation against the circuit it is derived from, and where it does not exist."""

import pytest
import torch

from lgcourse import InputError, relations, tasks
from lgcourse.relations import CircuitRelation, Table
from lgcourse.relations.affine import Affine, M, N, T
from lgcourse.tasks.base import DIGITS, Task, identity
from lgcourse.tasks.families import Segment, family

COVERED = [
    "copy",
    "reverse",
    "shift",
    "parity-cot",
    "addition",
    "parity-cot-padded",
    "addition-padded",
]


def make(name):
    return tasks.get(name, **({"width": 12} if name.endswith("padded") else {}))


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("scale", [1, 2, 3, 8, 12])
def test_hinted_ideal_labels_exactly_the_operands(name, scale):
    task = make(name)
    phi = relations.build("ideal-sh", task, max_scale=12)
    at = torch.arange(task.length(scale))
    ids = phi(at, at, scale)
    want = torch.full_like(ids, phi.other)
    for step in task.circuit(scale):
        for role, position in zip(step.operator.roles, step.inputs, strict=True):
            want[step.output - 1, position] = phi.roles[step.operator.name, role]
    assert torch.equal(ids, want)


@pytest.mark.parametrize("name", ["copy", "reverse", "shift", "parity-cot", "addition"])
def test_scale_free_ideal_is_refused_where_operands_move(name):
    with pytest.raises(InputError, match=r"pair \(query \d+, key \d+\).* at scale \d+ .*ideal-sh"):
        relations.build("ideal", make(name), max_scale=10)


def test_the_refusal_names_a_true_conflict():
    # copy: y_t is predicted at n + t - 1 and reads t - 1: query 3 reads key 1 at n = 2, 0 at n = 3
    with pytest.raises(InputError) as error:
        relations.build("ideal", make("copy"), max_scale=5)
    assert "(query 3, key 0)" in str(error.value)
    assert "scale 2" in str(error.value) and "scale 3" in str(error.value)


@pytest.mark.parametrize("name", ["parity-cot-padded", "addition-padded"])
def test_scale_free_ideal_of_a_padded_layout_agrees_with_the_hinted_one_at_every_step(name):
    task = make(name)
    free = relations.build("ideal", task, max_scale=12)
    hinted = relations.build("ideal-sh", task, max_scale=12)
    assert not free.uses_scale
    for scale in (1, 5, 12):
        at = torch.arange(task.length(scale))
        queries = torch.tensor([step.query for step in task.circuit(scale)])
        free_labels = [free.label(int(i)) for i in free(queries, at).flatten()]
        assert free_labels == [hinted.label(int(i)) for i in hinted(queries, at, scale).flatten()]


class Wide(Task):
    """x1..x9 = y1..y9 at every scale (n, m), with families that tests put in."""

    name, sizes, vocabulary, example = "wide", 2, "0123456789=", "1="

    def __init__(self, *guarded):
        self.guarded = guarded

    def segments(self):
        nine = Affine(9)
        return [Segment("x", nine, DIGITS), self.mark("="), Segment("y", nine)]

    def families(self):
        x, y = self.places("x", "y")
        return [
            family(identity(10), y(T), [x(T + move)], 1, last, where=where)
            for move, last, where in self.guarded
        ]


@pytest.mark.parametrize(
    "families",
    [
        [(0, N, ())],
        [(0, N, (N - M,))],  # at some scales only
        [(0, N, (M - N,))],
        [(0, N, (4 - N,))],  # up to a scale
        [(0, N, (N - 2,))],  # from a scale on
        [(0, N, (Affine(-1),))],  # nowhere
        [(0, 4 - N, ())],  # shrinks
    ],
)
@pytest.mark.parametrize("largest", [(3, 3), (4, 2), (2, 5), (6, 6)])
def test_scale_free_ideal_of_guarded_families_is_the_union_of_all_scales(families, largest):
    task = Wide(*families)
    at = torch.arange(task.length(largest))
    scales = list(task.scales(largest))
    union = CircuitRelation(task.reads, scales, hinted=False, name="ideal")
    phi = relations.build("ideal", task, max_scale=largest)
    assert not phi.uses_scale
    named = phi(at, at) != phi.other
    assert torch.equal(named, union(at, at) != union.other)
    hinted = relations.build("ideal-sh", task, max_scale=largest)
    for scale in scales:
        assert (named | (hinted(at, at, scale) == hinted.other)).all()


@pytest.mark.parametrize("largest", [(3, 3), (4, 2), (2, 5)])
def test_scale_free_ideal_of_families_that_disagree_is_refused(largest):
    task = Wide((0, N, (N - M,)), (1, N, (M - N - 1,)))  # x_t or x_(t+1), as n and m compare
    with pytest.raises(InputError, match=r"query 9, key 0\) is .*take.* and 'other' at scale"):
        relations.build("ideal", task, max_scale=largest)


def test_a_refusal_looks_no_further_than_the_conflict():
    seen = []

    def reads(n):
        seen.append(n)
        return tasks.get("copy").reads(n)

    with pytest.raises(InputError, match="at scale 2 and .* at scale 3"):
        CircuitRelation(reads, range(1, 1_000_000), hinted=False, name="ideal")
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("name", ["ideal", "ideal-sh"])
def test_a_padded_relation_of_a_million_places_has_no_table(name):
    width = 1_000_000
    phi = relations.build(name, tasks.get("parity-cot-padded", width=width))
    keys, ids = phi.named(torch.tensor([5, width, width + 7, 2 * width - 1]), width)
    found = [
        {(int(key), phi.label(int(id))) for key, id in zip(*row, strict=True) if key >= 0}
        for row in zip(keys, ids, strict=True)
    ]
    assert found[0] == set() and found[1] == {(0, "take source")}
    assert found[2] == {(width + 7, "add before"), (7, "add next")}
    assert found[3] == {(2 * width - 1, "add before"), (width - 1, "add next")}


def test_a_largest_scale_that_a_task_does_not_have_is_refused():
    for name in ("ideal", "ideal-sh"):
        with pytest.raises(InputError, match="made for width 12, got scale 13"):
            relations.build(name, make("addition-padded"), max_scale=13)
        with pytest.raises(InputError, match="takes one size"):
            relations.build(name, make("copy"), max_scale=(3, 3))


def test_part_of_the_square_equals_the_whole():
    task = make("addition")
    phi = relations.build("ideal-sh", task)
    at = torch.arange(task.length(6))
    whole = phi(at, at, 6)
    query, key = torch.tensor([19, 14, 3]), torch.tensor([0, 13, 2, 20])
    part = phi(query, key, 6)
    causal = key[None, :] <= query[:, None]
    assert torch.equal(part[causal], whole[query][:, key][causal])
    assert (part[~causal] == phi.other).all()


def test_two_roles_for_one_pair_are_refused():
    with pytest.raises(InputError, match="reads position 0 as 'x' and as 'y'"):
        CircuitRelation(lambda n: [(3, 0, "x"), (3, 0, "y")], [1], hinted=True, name="double")


def test_a_role_that_appears_only_later_is_an_error():
    reads = lambda n: [(n, 0, "late" if n > 50 else "early")]  # noqa: E731
    phi = CircuitRelation(reads, range(1, 5), hinted=True, name="growing")
    with pytest.raises(InputError, match="no role 'late'"):
        phi(torch.arange(60), torch.arange(60), 55)


def test_ideal_needs_a_task():
    with pytest.raises(InputError, match="give a task"):
        relations.build("ideal-sh")


def test_table_relation():
    phi = Table({2: [[0, 1], [1, 0]], 3: [[0, 0, 0]] * 3}, other=4)
    assert phi.size == 5 and phi.uses_scale
    assert phi(torch.arange(2), torch.arange(2), 2).tolist() == [[0, 4], [1, 0]]
    for bad, message in [([[0, 1]], "square"), ([[-1]], "at least 0")]:
        with pytest.raises(InputError, match=message):
            Table(bad)
    with pytest.raises(InputError, match="no table for scale 5"):
        phi(torch.arange(2), torch.arange(2), 5)
