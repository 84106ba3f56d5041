"""Exact integer reasoning against brute force."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.certify.integers import System, add, feasible, least, point

BOX = 5  # brute force looks at -BOX..BOX; every variable is bounded by it


def value(row, x):
    return row[0] + sum(a * v for a, v in zip(row[1:], x, strict=False))


def solutions(system, count):
    found = list(product(range(-BOX, BOX + 1), repeat=count))
    for row in system.zero:
        found = [x for x in found if value(row, x) == 0]
    for row in system.positive:
        found = [x for x in found if value(row, x) >= 0]
    return found


def box(count):
    rows = []
    for k in range(count):
        unit = tuple(int(i == k) for i in range(count))
        rows += [(BOX, *unit), (BOX, *(-c for c in unit))]
    return rows


def systems(count):
    factor = st.integers(-5, 5)
    row = st.tuples(st.integers(-12, 12), *[factor] * count)
    return st.builds(
        lambda positive, zero: System((*box(count), *positive), tuple(zero)),
        st.lists(row, max_size=4),
        st.lists(row, max_size=2),
    )


@given(systems(2))
@settings(max_examples=200, deadline=None)
def test_two_variables_against_brute_force(system):
    assert feasible(system) == bool(solutions(system, 2))


@given(systems(3))
@settings(max_examples=60, deadline=None)
def test_three_variables_against_brute_force(system):
    assert feasible(system) == bool(solutions(system, 3))


@given(systems(2), st.tuples(st.integers(-5, 5), st.integers(-4, 4), st.integers(-4, 4)))
@settings(max_examples=60, deadline=None)
def test_least_values_against_brute_force(system, row):
    found = solutions(system, 2)
    if found:
        assert least(system, row, -200) == min(value(row, x) for x in found)
        unit = [((BOX, 1, 0), 0), ((BOX, 0, 1), 0)]
        assert tuple(v - BOX for v in point(system, unit)) == min(found)


def test_a_system_whose_real_solutions_hold_no_whole_one():
    # Pugh's example: 27 <= 11 x + 13 y <= 45, -10 <= 7 x - 9 y <= 4 has real solutions only
    rows = ((-27, 11, 13), (45, -11, -13), (10, 7, -9), (4, -7, 9))
    assert not feasible(System(rows))
    assert feasible(System(((-26 + 2, 11, 13), *rows[1:])))  # x = y = 1 comes in


@pytest.mark.parametrize("far", [999, 1_000_000, 10**15])
def test_far_points_are_found_without_walking_there(far):
    system = System(positive=((-far, 3), (0, 0, 1), (-1, -2, 5)))
    x, y = point(system, [((0, 1), 0), ((0, 0, 1), 0)])
    assert x == -(-far // 3)
    assert y == -(-(2 * x + 1) // 5)


def test_open_systems():
    assert feasible(System())
    assert feasible(System(positive=((-5, 2, -3),)))
    assert not feasible(System(zero=((1, 2, 4),)))  # an even number is never odd
    assert feasible(System(zero=((1, 2, 3),)))
    assert not feasible(System(positive=((-1,),)))
    assert feasible(System(zero=((0, 6, -4), (-3, 0, 1))))  # 6 x = 4 y, y = 3: x = 2
    assert not feasible(System(zero=((0, 6, -4), (-4, 0, 1))))


def test_rows_of_different_length_add():
    assert add((1,), (0, 2), (0, 0, 3), by=-1) == (1, 2, -3)
