"""Alignment: the rule in plain Python, pair by pair, against the library; the table of shares."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.errors import InputError
from lgcourse.relations import Form, FormRelation, Relation, Table, build
from lgcourse.tasks import Operator, Step, get
from lgcourse.theory.alignment import Alignment
from lgcourse.theory.merging import Merging
from lgcourse.theory.prediction import predict
from lgcourse.theory.priorities import Lines, closure, lines

# --- the definition, as slowly as it is written ---------------------------------------------------
# A step is (query, operator, inputs); a relation is a function phi(i, j, n); `circuit` is a
# function of n. Operators are names here: different names are incompatible.


def slow_orders(circuit, phi, train):
    """For each role the pairs (above, below) that training forces, or None if there is no order."""
    seen, beats, broken = defaultdict(set), defaultdict(set), set()
    for n in train:
        for query, op, inputs in circuit(n):
            for r, j in enumerate(inputs):
                seen[op, r].add(phi(query, j, n))
    for n in train:
        for query, op, inputs in circuit(n):
            for r, operand in enumerate(inputs):
                wanted = phi(query, operand, n)
                for j in range(query + 1):
                    id = phi(query, j, n)
                    if id == wanted and j != operand:
                        broken.add((op, r))
                    elif id != wanted and id in seen[op, r]:
                        beats[op, r].add((wanted, id))
    orders = {}
    for role in seen:
        above = set(beats[role])
        while True:
            more = {(a, d) for a, b in above for c, d in above if b == c} - above
            if not more:
                break
            above |= more
        cyclic = any(a == b for a, b in above)
        orders[role] = None if cyclic or role in broken else (seen[role], above)
    return orders


def slow_finds(order, phi, query, operand, n):
    """Whether the highest-priority id at the query belongs to the operand and to no other key."""
    if order is None:
        return False
    known, above = order
    wanted = phi(query, operand, n)
    if wanted not in known:
        return False
    for j in range(query + 1):
        id = phi(query, j, n)
        if j != operand and (id == wanted or (id in known and (wanted, id) not in above)):
            return False
    return True


def slow_resolvable(circuit, relations, train, test):
    """The share of test steps that meet the three conditions, per test scale."""
    orders = [slow_orders(circuit, phi, train) for phi in relations]

    def ids(query, inputs, n):
        return tuple(tuple(phi(query, j, n) for phi in relations) for j in inputs)

    met, users = defaultdict(set), defaultdict(set)
    for n in [*train, *test]:
        for query, op, inputs in circuit(n):
            if n in train:
                met[op].add(ids(query, inputs, n))
            users[ids(query, inputs, n)].add(op)
    shares = {}
    for n in test:
        good = []
        for query, op, inputs in circuit(n):
            mine = ids(query, inputs, n)
            finds = [
                [
                    slow_finds(order.get((op, r)), phi, query, j, n)
                    for order, phi in zip(orders, relations, strict=True)
                ]
                for r, j in enumerate(inputs)
            ]
            shown = any(
                all(
                    any(f and a == b for f, a, b in zip(finds[r], mine[r], other[r], strict=True))
                    for r in range(len(inputs))
                )
                for other in met[op]
            )
            good.append(shown and users[mine] == {op})
        shares[n] = sum(good) / len(good)
    return shares


# --- the table: seven layouts, four relations -----------------------------------------------------
# Positions and steps are written out here by hand, 0-based, from the layouts alone.


def copy(n):
    return [(n + t - 1, "take", [t - 1]) for t in range(1, n + 1)]


def reverse(n):
    return [(n + t - 1, "take", [n - t]) for t in range(1, n + 1)]


def shift(n):
    return [(n + t - 1, "take", [n - 1 if t == 1 else t - 2]) for t in range(1, n + 1)]


def parity(n, width=None):
    start = (width or n) + 1  # where y1 stands
    steps = [(start - 1, "take", [0])]
    return steps + [(start + t - 2, "add", [start + t - 2, t - 1]) for t in range(2, n + 1)]


def addition(n, width=None):
    b, s = (width or n) + 1, 2 * (width or n) + 2  # where b1 and s1 stand
    steps = [(s - 1, "first", [0, b])]
    for t in range(2, n + 1 if width else n + 2):  # unpadded, s(n+1) reads "+" and "="
        reads = [t - 1, b + t - 1, t - 2, b + t - 2, s + t - 2]
        steps.append((s + t - 2, "column", reads))
    return steps


def ape(i, j, n):
    return i, j


def rpe(i, j, n):
    return i - j


def rpe_sh(i, j, n):
    offsets = [(abs(i - j - a * n), a, i - j - a * n) for a in (0, 1, 2)]
    distance, a, offset = min(offsets)
    return (a, offset) if distance <= 2 else "other"


def sum_sh(i, j, n):
    value = (i + 1) + (j + 1) - 2 * n
    return value if -2 <= value <= 2 else "other"


TABLE = {
    "parity with CoT, padded": (lambda n: parity(n, 24), [0.65, 1, 0, 0]),
    "parity with CoT, unpadded": (parity, [0, 0, 1, 0]),
    "copy, unpadded": (copy, [0, 0, 1, 0]),
    "addition, padded": (lambda n: addition(n, 25), [0.65, 1, 0, 0]),
    "addition, unpadded": (addition, [0, 0, 1, 0]),
    "reverse, unpadded": (reverse, [0, 0, 0, 1]),
    "shift, unpadded": (shift, [0, 0, 1, 0]),
}
TASKS = {
    "parity with CoT, padded": ("parity-cot-padded", {"width": 24}),
    "parity with CoT, unpadded": ("parity-cot", {}),
    "copy, unpadded": ("copy", {}),
    "addition, padded": ("addition-padded", {"width": 24}),
    "addition, unpadded": ("addition", {}),
    "reverse, unpadded": ("reverse", {}),
    "shift, unpadded": ("shift", {}),
}
TEST = range(11, 21)


class Pairs(Relation):
    """Absolute positions with one id per pair (i, j), as the table wants it."""

    name = "pairs"

    def __init__(self, positions):
        self.positions, self.size = positions, positions**2

    def ids(self, query, key, scale):
        return query * self.positions + key


def four_relations(task):
    return [
        Pairs(task.length(20)),
        build("rpe", task, max_scale=20),
        build("rpe-sh", task),
        FormRelation([Form(1, 1, -2)], -4, 0, "sum-sh"),  # 1-based -2..2 is 0-based -4..0
    ]


def pooled(shares, circuit):
    """The share over the steps of all test scales together."""
    counts = {n: len(circuit(n)) for n in shares}
    return sum(shares[n] * counts[n] for n in shares) / sum(counts.values())


def first_steps(task):
    """The steps t = 1..n: padded addition has one more, which the table does not count."""
    return lambda n: task.circuit(n)[:n] if task.name == "addition-padded" else task.circuit(n)


@pytest.mark.parametrize("row", TABLE)
def test_table_by_the_slow_definition(row):
    circuit, expected = TABLE[row]
    found = [
        pooled(slow_resolvable(circuit, [phi], range(3, 11), TEST), circuit)
        for phi in (ape, rpe, rpe_sh, sum_sh)
    ]
    assert [round(share, 2) for share in found] == expected


@pytest.mark.parametrize("start", [1, 3])
@pytest.mark.parametrize("row", TABLE)
def test_table_by_the_library(row, start):
    name, options = TASKS[row]
    task = get(name, **options)
    circuit = first_steps(task)
    found = [
        pooled(predict(circuit, phi, range(start, 11), TEST).resolvable, circuit)
        for phi in four_relations(task)
    ]
    assert [round(share, 2) for share in found] == TABLE[row][1]


def test_padded_addition_with_its_last_step_has_another_share():
    task = get("addition-padded", width=24)
    shares = predict(task, Pairs(task.length(20)), range(3, 11), TEST).resolvable
    assert pooled(shares, task.circuit) == pytest.approx(110 / 165)  # 11 of n + 1 steps at each n
    assert pooled(shares, task.circuit) != pytest.approx(100 / 155, abs=0.01)


# --- library against definition on random circuits and relations ------------------------------
SIZE = 9  # positions


@st.composite
def settings_of_chance(draw):
    """A pool of steps (output, operator, inputs), which of them each scale 1..4 has, and tables.

    Scales share steps and most ids, or nearly nothing would be resolved.
    """
    arities = draw(st.lists(st.sampled_from([1, 2]), min_size=1, max_size=3))
    pool = []
    for output in sorted(draw(st.sets(st.integers(2, SIZE - 1), min_size=2, max_size=4))):
        op = draw(st.integers(0, len(arities) - 1))
        places = st.integers(0, output - 1)
        inputs = draw(st.lists(places, min_size=arities[op], max_size=arities[op], unique=True))
        pool.append((output, op, inputs))
    chosen = st.sets(st.integers(0, len(pool) - 1), min_size=1)
    steps = {n: [pool[k] for k in sorted(draw(chosen))] for n in range(1, 5)}
    seeds = st.tuples(st.integers(0, 10**6), st.sampled_from([3, 6, 12, 24]))
    return arities, steps, draw(st.lists(seeds, min_size=1, max_size=3))


def random_pages(seed, ids):
    """A table of random ids per scale; one cell in twenty differs from scale to scale."""
    generator = torch.Generator().manual_seed(seed)
    base, *others = torch.randint(ids, (5, SIZE, SIZE), generator=generator)
    changed = torch.rand((4, SIZE, SIZE), generator=generator) < 0.05
    pages = [torch.where(c, other, base) for c, other in zip(changed, others, strict=True)]
    return {n: page.tolist() for n, page in enumerate(pages, start=1)}


def unpack(drawn):
    """The circuit, with operators that are all incompatible; relations, also as plain functions."""
    arities, raw, seeds = drawn
    operators = [
        Operator(f"f{k}", ("x", "y")[:arity], {(0,) * arity: k}) for k, arity in enumerate(arities)
    ]
    circuit = {
        n: [Step(output, operators[op], tuple(inputs)) for output, op, inputs in row]
        for n, row in raw.items()
    }
    slow = {n: [(output - 1, op, inputs) for output, op, inputs in row] for n, row in raw.items()}
    pages = [random_pages(seed, ids) for seed, ids in seeds]
    plain = [lambda i, j, n, page=page: page[n][i][j] for page in pages]
    return circuit, slow.__getitem__, [Table(page) for page in pages], plain


@given(settings_of_chance(), st.integers(1, 3))
@settings(deadline=None, max_examples=200)
def test_shares_are_those_of_the_definition(drawn, last):
    circuit, slow, tables, plain = unpack(drawn)
    train, test = range(1, last + 1), range(last, 5)
    for table, phi in zip(tables, plain, strict=True):
        found = predict(circuit, table, train, test).resolvable
        assert found == pytest.approx(slow_resolvable(slow, [phi], train, test))
    found = predict(circuit, tables, train, test).resolvable
    assert found == pytest.approx(slow_resolvable(slow, plain, train, test))


@given(settings_of_chance(), st.integers(1, 3))
@settings(deadline=None)
def test_more_relations_never_resolve_less(drawn, last):
    circuit, _, tables, _ = unpack(drawn)
    train, test = range(1, last + 1), range(1, 5)
    shares = [
        predict(circuit, tables[:count], train, test).resolvable
        for count in range(1, len(tables) + 1)
    ]
    for fewer, more in pairwise(shares):
        assert all(more[n] >= fewer[n] for n in test)


# --- each condition by itself ---------------------------------------------------------------------
TAKE = Operator("take", ("x",), {(0,): 0, (1,): 1})
FLIP = Operator("flip", ("x",), {(0,): 1, (1,): 0})
BOTH = Operator("both", ("x", "y"), {(0, 0): 0, (1, 1): 1})


def row_table(*rows):
    """A table whose row i has the ids given for query i; rows before the first given are zero."""
    size = len(rows[-1])
    page = torch.zeros(size, size, dtype=torch.long)
    for number, row in enumerate(rows):
        page[size - len(rows) + number, : len(row)] = torch.tensor(row)
    return page


def one_step(output, operator, inputs):
    return [Step(output, operator, tuple(inputs))]


def test_priority_is_what_training_forces_and_its_transitive_closure():
    # training: 1 beats 2, and 2 beats 3; the test has 1 and 3 together
    steps = {n: one_step(2, TAKE, [0]) for n in (1, 2, 3)}
    ids = {1: [1, 2], 2: [2, 3], 3: [1, 3]}
    phi = Table({n: row_table(row) for n, row in ids.items()})
    assert predict(steps, phi, [1, 2], [3]).resolvable == {3: 1.0}


def test_ids_that_training_never_compared_are_not_resolved():
    steps = {n: one_step(2, TAKE, [0]) for n in (1, 2, 3)}
    ids = {1: [1, 0], 2: [2, 0], 3: [1, 2]}
    phi = Table({n: row_table(row) for n, row in ids.items()})
    prediction = predict(steps, phi, [1, 2], [3])
    assert prediction.resolvable == {3: 0.0}
    assert "training never compared the two" in prediction.reason


def test_ids_that_no_operand_of_the_role_had_do_not_matter():
    steps = {n: one_step(2, TAKE, [0]) for n in (1, 2)}
    phi = Table({1: row_table([1, 5]), 2: row_table([1, 6])})
    assert predict(steps, phi, [1], [2]).verdict == "generalises"


def test_priority_that_points_the_other_way():
    steps = {n: one_step(2, TAKE, [0]) for n in (1, 2, 3)}
    ids = {1: [1, 2], 2: [2, 0], 3: [2, 1]}
    phi = Table({n: row_table(row) for n, row in ids.items()})
    prediction = predict(steps, phi, [1, 2], [3])
    assert not prediction.generalises and "training taught it to win" in prediction.reason


def test_contrary_priorities_leave_no_order():
    steps = {n: one_step(3, TAKE, [0]) for n in (1, 2, 3, 4)}
    ids = {1: [1, 2, 0], 2: [2, 3, 0], 3: [3, 1, 0], 4: [1, 0, 0]}
    phi = Table({n: row_table(row) for n, row in ids.items()})
    prediction = predict(steps, phi, [1, 2, 3], [4])
    assert prediction.resolvable == {4: 0.0}
    assert "contrary priorities" in prediction.reason
    assert prediction.reason.count(" over ") == 3
    assert predict(steps, phi, [1, 2], [4]).generalises  # without the third there is an order


def test_an_id_on_two_keys_singles_out_nothing():
    steps = {n: one_step(3, TAKE, [0]) for n in (1, 2)}
    once, twice = row_table([1, 0, 0]), row_table([1, 1, 0])
    in_training = predict(steps, Table({1: twice, 2: once}), [1], [2])
    assert not in_training.generalises and "2 keys have its id" in in_training.reason
    at_test = predict(steps, Table({1: once, 2: twice}), [1], [2])
    assert not at_test.generalises and "2 keys have its id" in at_test.reason


def test_keys_behind_the_query_are_not_present():
    steps = {n: one_step(1, TAKE, [0]) for n in (1, 2)}
    page = torch.tensor([[1, 1], [1, 1]])
    assert predict(steps, Table(page), [1], [2]).generalises


def test_ids_must_have_been_met_together():
    steps = {n: one_step(2, BOTH, [0, 1]) for n in (1, 2, 3)}
    ids = {1: [1, 3], 2: [2, 4], 3: [1, 4]}
    phi = Table({n: row_table(row) for n, row in ids.items()})
    prediction = predict(steps, phi, [1, 2], [3])
    assert prediction.resolvable == {3: 0.0}
    assert "never showed together" in prediction.reason


def test_incompatible_operators_need_different_ids():
    steps = {n: [Step(2, TAKE, (0,)), Step(3, FLIP, (0,))] for n in (1, 2)}
    told_apart = Table(row_table([1, 0], [2, 0, 0]))
    assert predict(steps, told_apart, [1], [2]).generalises
    alike = Table(row_table([1, 0], [1, 0, 0]))
    prediction = predict(steps, alike, [1], [2])
    assert prediction.resolvable == {2: 0.0}
    assert "nothing tells the two apart" in prediction.reason


def test_operators_that_read_different_tokens_may_share_ids():
    low, high = Operator("low", ("x",), {(0,): 1}), Operator("high", ("x",), {(1,): 1})
    steps = {n: [Step(2, low, (0,)), Step(3, high, (0,))] for n in (1, 2)}
    assert predict(steps, Table(row_table([1, 0], [1, 0, 0])), [1], [2]).generalises


def test_a_clash_in_training_alone_is_a_fault_too():
    steps = {
        1: [Step(2, TAKE, (0,)), Step(3, FLIP, (0,))],
        2: one_step(4, BOTH, [0, 1]),
        3: one_step(4, BOTH, [0, 1]),
    }
    phi = Table(row_table([1, 0], [1, 0, 0], [1, 2, 0, 0]))
    prediction = predict(steps, phi, [1, 2], [3])
    assert prediction.resolvable == {3: 1.0} and prediction.verdict == "fails"


def test_steps_without_inputs_and_scales_without_steps():
    constant = Operator("zero", (), {(): 0})
    steps = {1: one_step(2, constant, []), 2: one_step(2, constant, []), 3: []}
    assert predict(steps, build("none"), [1], [2, 3]).resolvable == {2: 1.0, 3: 1.0}


def test_two_heads_find_what_neither_finds_alone():
    task = get("parity-cot")
    before = FormRelation([Form(1, -1)], 0, 0, "the last token")
    next_one = FormRelation([Form(1, -1, -1)], 0, 0, "n back")
    alone = [predict(task, phi, range(1, 11), [20]) for phi in (before, next_one)]
    together = predict(task, [before, next_one], range(1, 11), [20])
    assert not any(prediction.generalises for prediction in alone)
    assert together.generalises and together.resolvable == {20: 1.0}


def test_every_square_of_the_relation_is_asked_for_a_few_times_only():
    calls = []

    class Counting(FormRelation):
        def __call__(self, query, key, scale=None):
            calls.append(len(query) * len(key))
            return super().__call__(query, key, scale)

    phi = Counting([Form(1, -1), Form(1, -1, -1)], -2, 2, "counting")
    assert predict(get("copy"), phi, range(1, 6), [400]).generalises
    assert len(calls) < 50  # no loop over queries or pairs
    assert sum(calls) < 4 * 400 * 800


@given(
    st.integers(1, 7).flatmap(
        lambda k: st.sets(st.tuples(st.integers(0, k - 1), st.integers(0, k - 1))).map(
            lambda e: (k, e)
        )
    )
)
def test_closure_is_that_of_repeated_products(graph):
    size, edges = graph
    beats = np.zeros((size, size), dtype=bool)
    for a, b in edges:
        beats[a, b] = a != b
    reach = beats.copy()
    for _ in range(size):
        reach |= (reach.astype(int) @ beats.astype(int)) > 0
    above, cycle = closure(beats)
    if reach.diagonal().any():
        assert len(cycle) >= 2
        assert all(beats[a, b] for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    else:
        assert cycle == [] and (above == reach).all()


def test_lines_know_roles_and_names():
    steps = get("parity-cot").circuit(3)
    (line,) = lines([(3, steps)], Merging([steps]))
    assert isinstance(line, Lines)
    assert line.query.tolist() == [3, 4, 5]
    assert line.inputs.tolist() == [[0, -1], [4, 1], [5, 2]]
    assert line.operand(1, 0) == "operand `before` of `add`"
    roles = {role: rows.tolist() for role, rows in line.roles(slice(0, None))}
    assert sorted(roles.values()) == [[0], [1, 2], [1, 2]]


def test_alignment_tells_which_steps_are_resolved():
    task = get("parity-cot-padded", width=24)
    circuits = {n: task.circuit(n) for n in (10, 12)}
    merging = Merging(circuits.values())
    train, test = (lines([(n, circuits[n])], merging) for n in (10, 12))
    (resolved,) = Alignment([Pairs(task.length(12))], train, test, merging).resolvable
    assert resolved.tolist() == [True] * 10 + [False] * 2


def test_a_relation_made_for_fewer_positions_is_refused():
    task = get("copy")
    with pytest.raises(InputError, match="larger max_scale"):
        predict(task, build("rpe", task, max_scale=10), range(1, 11), [20])
