"""The gathered path gives what the dense path gives, and the fitted exponent is the right one."""

import linear_cost
import pytest
import store


@pytest.mark.parametrize("digits", [1, 2, 17, 200, 660])
def test_gathered_equals_dense_up_to_2000_tokens(digits):
    assert 0 <= linear_cost.difference(digits) <= 1e-5


def test_660_digits_are_nearly_2000_tokens():
    assert 1950 <= linear_cost.model_and_tokens(660)[1].tokens.shape[1] <= 2000


@pytest.mark.parametrize("power", [1.0, 1.1, 2.0])
def test_exponent_of_a_power_law(power):
    rows = [{"plan": {"digits": n}, "seconds": 3e-6 * n**power} for n in linear_cost.DIGITS]
    assert linear_cost.exponent(rows, "seconds") == pytest.approx(power)


def test_table_needs_its_marks_and_states_the_exponents():
    text = "before\n" + "\n".join(linear_cost.MARKS) + "\nafter\n"
    rows = [
        {
            "plan": {"digits": n, "seed": 0},
            "tokens": 3 * n + 3,
            "seconds": n / 1e3,
            "cpu_seconds": n**2 / 1e6,
            "added_mib": n**0.5,
        }
        for n in reversed(linear_cost.DIGITS)
    ]
    table = linear_cost.with_table(text, rows)
    assert "time 1.00 (between neighbours 1.00 to 1.00), CPU time 2.00" in table
    assert "memory 0.50" in table and table.endswith("after\n")
    assert table.index("| 1,000 |") < table.index("| 100,000 |")


def test_the_stored_rows_grow_linearly():
    rows = store.stored(linear_cost.NAME)
    assert len(rows) == len(linear_cost.DIGITS)
    for what in linear_cost.FITTED.values():
        assert linear_cost.exponent(rows, what) <= 1.1
