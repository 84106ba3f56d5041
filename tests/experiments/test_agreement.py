"""Scores are those of their formulas, worked out by hand and in plain Python."""

import math
import random

import pytest

from lgcourse.experiments import Cell, compare
from lgcourse.experiments.agreement import by_kind, by_threshold

YES, NO = "generalises", "fails"


def cell(predicted, far, near=1.0, kind="constant", seeds=1):
    far = far if isinstance(far, tuple) else (far,) * seeds
    return Cell("copy", "rpe", 10, kind, predicted, (near,) * len(far), far, len(far))


def some(tp, fp, tn, fn):
    return (
        [cell(YES, 1.0)] * tp + [cell(YES, 0.0)] * fp + [cell(NO, 0.0)] * tn + [cell(NO, 1.0)] * fn
    )


def test_a_table_worked_out_by_hand():
    found = compare(some(8, 1, 9, 2))
    assert (found.tp, found.fp, found.tn, found.fn, found.cells) == (8, 1, 9, 2, 20)
    assert found.agreement == 17 / 20
    assert found.balanced_accuracy == pytest.approx((8 / 10 + 9 / 10) / 2)
    assert found.matthews == pytest.approx((72 - 2) / math.sqrt(9 * 10 * 10 * 11))
    assert (found.baseline_agreement, found.baseline_balanced) == (0.5, 0.5)


def test_matthews_is_the_correlation_of_zeros_and_ones():
    source = random.Random(0)
    for _ in range(30):
        counts = [source.randint(1, 9) for _ in range(4)]
        said = [1] * (counts[0] + counts[1]) + [0] * (counts[2] + counts[3])
        shown = [1] * counts[0] + [0] * (counts[1] + counts[2]) + [1] * counts[3]
        a, b = (sum(v) / len(v) for v in (said, shown))
        over = sum((x - a) * (y - b) for x, y in zip(said, shown, strict=True))
        under = math.sqrt(sum((x - a) ** 2 for x in said) * sum((y - b) ** 2 for y in shown))
        assert compare(some(*counts), draws=1).matthews == pytest.approx(over / under)


def test_most_seeds_decide_and_an_untrained_cell_is_counted_apart():
    assert cell(YES, (0.9, 0.95, 0.1)).measured == "generalises"
    assert cell(YES, (0.89, 0.95, 0.1)).measured == "fails"
    assert cell(YES, (1.0, 0.0)).measured == "fails"  # half is no majority
    assert cell(YES, (0.0, 0.0), near=0.5).measured == "not trained"
    found = compare([*some(1, 0, 1, 0), cell(YES, 0.0, near=0.1), cell("no prediction", 1.0)])
    assert found.cells == 2 and found.apart == {"no prediction": 1, "not trained": 1}


def test_a_missing_seed_leaves_a_cell_unfinished():
    assert Cell("copy", "rpe", 10, "constant", YES, (1.0,) * 2, (1.0,) * 2, 3).measured == (
        "unfinished"
    )


def test_intervals_enclose_the_score_repeat_and_shrink_with_more_cells():
    few, many = compare(some(4, 2, 4, 2), seed=3), compare(some(80, 40, 80, 40), seed=3)
    assert few == compare(some(4, 2, 4, 2), seed=3)
    assert few.balanced_interval[0] < few.balanced_accuracy < few.balanced_interval[1]
    width = [high - low for low, high in (few.balanced_interval, many.balanced_interval)]
    assert width[1] < width[0] / 3
    error = 1.96 * math.sqrt((2 / 3) * (1 / 3) / 240)  # of a share, by the normal approximation
    assert many.agreement_interval[0] == pytest.approx(2 / 3 - error, abs=0.01)


def test_one_sided_outcomes_have_no_balanced_accuracy():
    found = compare(some(3, 0, 0, 1))
    assert math.isnan(found.balanced_accuracy) and found.matthews == 0.0
    assert math.isnan(compare([]).agreement)


def test_scores_by_kind_and_by_threshold():
    cells = [cell(YES, 0.95), cell(NO, 0.5), cell(NO, 0.2, kind="grows")]
    assert {k: s.cells for k, s in by_kind(cells).items()} == {"constant": 2, "grows": 1}
    low, high = by_threshold(cells, (0.5, 0.99))
    assert (low.tp, low.fn, low.tn) == (1, 1, 1)
    assert (high.tp, high.fp, high.tn) == (0, 1, 2)
