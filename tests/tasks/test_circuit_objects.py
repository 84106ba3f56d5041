"""Operators, steps, validation and execution, on circuits that are written by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.errors import InputError
from lgcourse.tasks.circuit import Operator, Step, execute, validate

NO_DEADLINE = settings(deadline=None)  # machines differ
XOR = Operator.from_rule("xor", ("x", "y"), lambda x, y: x ^ y, (0, 1))
TAKE = Operator.from_rule("take", ("x",), lambda x: x, (0, 1))


def test_operators_are_equal_when_their_tables_are_whatever_their_names():
    other = Operator.from_rule("add", ("left", "right"), lambda x, y: (x + y) % 2, (0, 1))
    assert other == XOR and hash(other) == hash(XOR)
    assert len({XOR, other, TAKE}) == 2
    both = Operator.from_rule("and", ("x", "y"), lambda x, y: x & y, (0, 1))
    assert both != XOR and both != "and"


def test_operators_of_different_arity_or_domain_differ():
    assert Operator("a", ("x",), {}) != Operator("a", ("x", "y"), {})
    partial = Operator.from_rule("xor", ("x", "y"), lambda x, y: None if x else y, (0, 1))
    assert partial != XOR and set(partial.table) == {(0, 0), (0, 1)}


@NO_DEADLINE
@given(st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(0, 3)))
def test_equality_does_not_depend_on_the_order_of_entries(table):
    forwards = Operator("f", ("x", "y"), table)
    backwards = Operator("b", ("x", "y"), dict(reversed(table.items())))
    assert forwards == backwards and hash(forwards) == hash(backwards)
    if table:
        operands = next(iter(table))
        assert forwards != Operator("f", ("x", "y"), {**table, operands: table[operands] + 1})


def test_partial_tables_say_where_they_are_not_defined():
    half = Operator.from_rule("half", ("x",), lambda x: None if x % 2 else x // 2, range(4))
    assert half(2) == 1
    with pytest.raises(InputError, match=r"operator 'half' is not defined for \(3,\)"):
        half(3)
    with pytest.raises(InputError, match=r"'half' is not defined for \(2, 2\)"):
        half(2, 2)


def test_tokens_may_be_given_per_role_or_by_a_generator():
    choose = Operator.from_rule("choose", ("x", "y"), lambda x, y: y, [range(2), (7, 9)])
    assert set(choose.table) == {(0, 7), (0, 9), (1, 7), (1, 9)}
    squares = Operator.from_rule("take", ("x",), lambda x: x, (n * n for n in range(3)))
    assert dict(squares.table) == {(0,): 0, (1,): 1, (4,): 4}


def test_an_entry_of_the_wrong_arity_is_refused():
    with pytest.raises(InputError, match=r"has the 2 roles .* but its table has the entry \(1,\)"):
        Operator("bad", ("x", "y"), {(1,): 0})


def test_the_query_of_a_step_is_the_position_before_its_output():
    assert Step(5, TAKE, (2,)).query == 4


def test_a_right_circuit_is_valid_and_runs_in_the_order_of_its_outputs():
    steps = [Step(4, XOR, (3, 1)), Step(3, TAKE, (0,))]  # written out of order
    validate(steps, length=5)
    assert execute(steps, [1, 1, 0], length=5) == [1, 1, 0, 1, 0]


def test_positions_that_no_step_writes_stay_open():
    assert execute([Step(4, TAKE, (0,))], [1, 0], length=6) == [1, 0, -1, -1, 1, -1]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(3, XOR, (0,)), "'xor' that writes position 3: operator takes 2 inputs, got 1"),
        (Step(3, XOR, (0, 3)), "input 3 is not one of the earlier positions 0..2"),
        (Step(3, XOR, (0, 4)), "input 4 is not one of the earlier positions 0..2"),
        (Step(3, XOR, (0, -1)), "input -1 is not one of the earlier positions 0..2"),
        (Step(5, XOR, (0, 1)), "outputs lie in 1..4"),
        (Step(0, XOR, (0, 1)), "outputs lie in 1..4"),
        (Step(2, XOR, (0, 1)), "another step writes this position already"),
    ],
)
def test_what_is_no_circuit_is_refused_with_the_step_that_breaks_it(step, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        validate([Step(2, TAKE, (1,)), step], length=5)


def test_without_a_length_only_the_lower_end_is_checked():
    validate([Step(500, XOR, (0, 499))])
    with pytest.raises(InputError, match=r"outputs lie in 1..L - 1"):
        validate([Step(0, TAKE, (0,))])


def test_running_into_an_undefined_tuple_is_an_error_not_a_token():
    with pytest.raises(InputError, match=r"operator 'xor' is not defined for \(2, 1\)"):
        execute([Step(2, XOR, (0, 1))], [2, 1], length=3)
