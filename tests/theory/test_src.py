"""SRC: exact merging against brute force, and what must hold for every circuit."""

from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.errors import InputError
from lgcourse.relations import Table, build
from lgcourse.tasks import Operator, Step, get
from lgcourse.theory.colouring import EXACT_VERTICES, colour, largest_clique_found
from lgcourse.theory.merging import (
    Merging,
    compatible,
    induced_src,
    induced_src_curve,
    src,
    src_bounds,
    src_curve,
)


def partitions(items):
    """All ways to put items into unordered groups."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for groups in partitions(rest):
        yield [[first], *groups]
        for g in range(len(groups)):
            yield [*groups[:g], [first, *groups[g]], *groups[g + 1 :]]


def one_table_serves(operators):
    """Put all tables into one, entry by entry."""
    if len({op.arity for op in operators}) > 1:
        return False
    union: dict = {}
    return all(union.setdefault(k, v) == v for op in operators for k, v in op.table.items())


def least_by_brute_force(operators):
    return min(
        len(groups) for groups in partitions(operators) if all(map(one_table_serves, groups))
    )


def merge_with_first_that_fits(operators):
    """A known wrong version: each operator joins the first table that can serve it too."""
    tables: list[list[Operator]] = []
    for op in operators:
        fits = next((group for group in tables if one_table_serves([*group, op])), None)
        if fits is None:
            tables.append([op])
        else:
            fits.append(op)
    return len(tables)


def operators_of_graph(edges, vertices):
    """Operators that are compatible exactly where the graph has no edge: one tuple per edge."""
    tables = [{(vertices,): 0} for _ in range(vertices)]
    for code, (u, v) in enumerate(edges, start=vertices + 1):
        tables[u][code,], tables[v][code,] = 0, 1
    return [Operator(f"f{v}", ("x",), table) for v, table in enumerate(tables)]


def in_a_row(operators):
    """A circuit that uses one more operator at each scale."""
    return lambda n: [Step(t + 2, op, tuple(range(op.arity))) for t, op in enumerate(operators[:n])]


def mycielski(order):
    """Edges and size of a graph by Mycielski: no triangle, chromatic number = order."""
    edges, size = [(0, 1)], 2
    for _ in range(order - 2):
        copies = [(u, v + size) for u, v in edges] + [(u + size, v) for u, v in edges]
        edges = edges + copies + [(size + v, 2 * size) for v in range(size)]
        size = 2 * size + 1
    return edges, size


# rows (arity, table) that `operators_of` makes into operators
partial_tables = st.lists(
    st.tuples(
        st.sampled_from([1, 2]),
        st.dictionaries(st.integers(0, 3), st.integers(0, 1), max_size=4),
    ),
    min_size=1,
    max_size=6,
)


def operators_of(rows):
    return [
        Operator(
            f"f{number}",
            ("x", "y")[:arity],
            {divmod(k, 2)[2 - arity :]: v for k, v in table.items()},
        )
        for number, (arity, table) in enumerate(rows)
    ]


@given(partial_tables)
@settings(deadline=None)
def test_src_is_the_least_number_of_tables(rows):
    operators = operators_of(rows)
    circuit = in_a_row(operators)
    curve = src_curve(circuit, len(operators))
    for n in range(1, len(operators) + 1):
        assert curve[n] == src(circuit, n) == least_by_brute_force(operators[:n])
    assert src_bounds(circuit, len(operators)).exact


@given(partial_tables)
@settings(deadline=None)
def test_groups_are_served_by_one_table_each(rows):
    operators = operators_of(rows)
    merging = Merging()
    for op in operators:
        merging.add(op)
    groups = merging.groups()
    for group in set(groups):
        assert one_table_serves(
            [op for op, g in zip(merging.operators, groups, strict=True) if g == group]
        )
    assert len(set(groups)) == merging.bounds().upper


@given(partial_tables)
def test_compatible_means_one_table_serves_both(rows):
    operators = operators_of(rows)
    for one, other in product(operators, repeat=2):
        assert compatible(one, other) == one_table_serves([one, other])


def test_merging_with_the_first_that_fits_is_not_enough():
    crown = [(u, 2 * k + 1) for u in (0, 2, 4, 6) for k in range(4) if u != 2 * k]
    operators = operators_of_graph(crown, 8)
    assert merge_with_first_that_fits(operators) == 4
    assert src(in_a_row(operators), 8) == 2


@pytest.mark.parametrize("order", [3, 4, 5])
def test_exact_where_no_clique_shows_the_number(order):
    edges, size = mycielski(order)
    operators = operators_of_graph(edges, size)
    assert size <= EXACT_VERTICES
    assert src(in_a_row(operators), size) == order
    neighbours = [sum(1 << w for e in edges for w in e if v in e and w != v) for v in range(size)]
    assert len(largest_clique_found(neighbours)) == 2


@given(
    st.integers(2, 7).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(list(combinations(range(n), 2)))))
    )
)
@settings(deadline=None)
def test_colouring_is_proper_and_least(graph):
    size, edges = graph
    neighbours = [0] * size
    for u, v in edges:
        neighbours[u] |= 1 << v
        neighbours[v] |= 1 << u
    found = colour(neighbours)
    assert all(found.colours[u] != found.colours[v] for u, v in edges)
    least = next(
        k
        for k in range(1, size + 1)
        if any(all(c[u] != c[v] for u, v in edges) for c in product(range(k), repeat=size))
    )
    assert found.lower == found.upper == least


def test_beyond_the_stated_size_there_are_two_bounds():
    edges, size = mycielski(6)
    circuit = in_a_row(operators_of_graph(edges, size))
    assert size > EXACT_VERTICES
    bounds = src_bounds(circuit, size)
    assert 2 <= bounds.lower <= 6 <= bounds.upper
    assert not bounds.exact
    with pytest.warns(UserWarning, match="src_bounds gives both"):
        assert src(circuit, size) == bounds.upper


def test_many_operators_that_all_differ_are_counted_exactly():
    operators = [Operator("f", ("x",), {(0,): v}) for v in range(120)]
    assert src_curve(in_a_row(operators), 120) == {n: n for n in range(1, 121)}


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("copy", [1, 1, 1, 1, 1, 1]),
        ("reverse", [1, 1, 1, 1, 1, 1]),
        ("shift", [1, 1, 1, 1, 1, 1]),
        ("parity-cot", [1, 2, 2, 2, 2, 2]),
        ("addition", [2, 2, 2, 2, 2, 2]),
    ],
)
def test_tasks(name, curve):
    assert list(src_curve(get(name), 6).values()) == curve
    assert src(get(name), 6) == curve[-1]


def test_positionwise_tasks_saturate_and_grow():
    assert src_curve(get("add-index-mod"), 13) == {n: min(n, 10) for n in range(1, 14)}
    assert src(get("random-permutation-per-position"), 50) == 50


def test_a_padded_task_refuses_scales_beyond_its_width():
    with pytest.raises(InputError, match="width 5"):
        src(get("addition-padded", width=5), 6)


def test_two_sizes():
    twice = Operator("twice", ("x",), {(0,): 0, (1,): 2})
    other = Operator("other", ("x",), {(0,): 1})

    def circuit(scale):  # the second operator is needed only where the second size is larger
        return [Step(1, other if scale[1] > scale[0] else twice, (0,))]

    assert src(circuit, (3, 1)) == 1
    assert src(circuit, (1, 3)) == 2
    assert src(circuit, (3, 3)) == 2
    with pytest.raises(InputError, match="one whole number"):
        src_curve(circuit, (3, 3))


def test_two_size_task_takes_a_whole_number_for_all_sizes_up_to_it():
    task = get("addition-unequal")
    curve = src_curve(task, 3)
    for n in range(1, 4):
        steps = [task.circuit(sizes) for sizes in product(range(1, n + 1), repeat=2)]
        assert curve[n] == Merging(steps).bounds().upper == src(task, (n, n))


def test_circuits_may_be_lists_and_dictionaries():
    task = get("parity-cot")
    steps = {n: task.circuit(n) for n in (1, 2, 5)}
    assert src_curve(steps, 5) == {1: 1, 2: 2, 3: 2, 4: 2, 5: 2}
    assert src(task.circuit(1), 7) == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(1, Operator("f", ("x",), {}), (1,)), "earlier positions"),
        (Step(1, Operator("f", ("x",), {}), (0, 0)), "takes 1 inputs, got 2"),
        (Step(0, Operator("f", (), {}), ()), "outputs lie in"),
    ],
)
def test_circuits_that_are_none(step, message):
    with pytest.raises(InputError, match=message):
        src([step], 3)
    with pytest.raises(InputError, match="writes this position already"):
        src([Step(2, Operator("f", ("x",), {}), (0,))] * 2, 3)


def test_what_is_no_circuit_is_refused():
    with pytest.raises(InputError, match="a circuit is a task"):
        src(lambda n: ["step"], 2)  # type: ignore[list-item]
    with pytest.raises(InputError, match="whole number of at least 1"):
        src(get("copy"), 0)


# --- properties of every circuit --------------------------------------------------------------


@st.composite
def circuits(draw):
    """Operators as rows, and for each scale 1..5 up to n steps (operator, inputs before it)."""
    rows = draw(partial_tables)
    steps: dict[int, list] = {}
    for n in range(1, 6):
        steps[n] = []
        for output in range(n + 2, n + 2 + draw(st.integers(1, n))):
            number = draw(st.integers(0, len(rows) - 1))
            arity = rows[number][0]
            inputs = draw(
                st.lists(st.integers(0, n + 1), min_size=arity, max_size=arity, unique=True)
            )
            steps[n].append((output, number, inputs))
    return rows, steps


def circuit_of(drawn):
    rows, steps = drawn
    operators = operators_of(rows)
    return {
        n: [Step(output, operators[number], tuple(inputs)) for output, number, inputs in row]
        for n, row in steps.items()
    }


@given(circuits())
@settings(deadline=None)
def test_src_never_decreases_and_never_exceeds_the_number_of_steps(drawn):
    steps = circuit_of(drawn)
    curve = src_curve(steps, 5)
    assert all(curve[n] <= curve[n + 1] for n in range(1, 5))
    for n in range(1, 6):
        assert curve[n] == src(steps, n) <= sum(len(steps[m]) for m in range(1, n + 1))


@given(circuits(), st.permutations(range(4)))
@settings(deadline=None)
def test_src_does_not_depend_on_the_names_of_tokens(drawn, names):
    steps = circuit_of(drawn)

    def rename(op):
        table = {tuple(names[x] for x in k): names[v] for k, v in op.table.items()}
        return Operator(op.name, op.roles, table)

    renamed = {
        n: [Step(s.output, rename(s.operator), s.inputs) for s in row] for n, row in steps.items()
    }
    assert src_curve(renamed, 5) == src_curve(steps, 5)


@given(circuits(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
@settings(deadline=None)
def test_src_does_not_depend_on_the_names_of_positions(drawn, gaps):
    steps = circuit_of(drawn)
    place = [p + sum(gaps[: p + 1]) for p in range(12)]  # the same order, with room between
    renamed = {
        n: [Step(place[s.output], s.operator, tuple(place[p] for p in s.inputs)) for s in row]
        for n, row in steps.items()
    }
    assert src_curve(renamed, 5) == src_curve(steps, 5)


@given(circuits(), st.integers(0, 2**32 - 1), st.integers(1, 5))
@settings(deadline=None)
def test_induced_src_counts_distinct_pairs_and_is_at_least_src(drawn, seed, ids):
    steps = circuit_of(drawn)
    table = torch.randint(ids, (12, 12), generator=torch.Generator().manual_seed(seed))
    phi = Table(table)
    curve = induced_src_curve(steps, phi, 5)
    for n in range(1, 6):
        pairs = {
            (step.operator, tuple(int(table[step.output - 1, j]) for j in step.inputs))
            for m in range(1, n + 1)
            for step in steps[m]
        }
        assert curve[n] == induced_src(steps, phi, n) == len(pairs) >= src(steps, n)


def test_induced_src_stays_with_an_aligning_relation_and_grows_with_absolute_positions():
    task = get("parity-cot")
    hinted = induced_src_curve(task, build("ideal-sh", task, max_scale=12), 12)
    absolute = induced_src_curve(task, build("ape", task, max_scale=12), 12)
    assert list(hinted.values()) == [1] + [2] * 11
    assert all(absolute[n] < absolute[n + 1] for n in range(1, 12))


def test_induced_src_of_several_relations_tells_at_least_as_much_apart():
    task = get("shift")
    one, other = build("rpe", task, max_scale=8), build("rpe-sh", task)
    both = induced_src(task, [one, other], 8)
    assert both >= max(induced_src(task, one, 8), induced_src(task, other, 8))
