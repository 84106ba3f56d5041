"""Do the named keys follow the hint, and the scores the model?"""

from __future__ import annotations

import pytest
from untrained import run_of

from lgcourse.errors import InputError
from lgcourse.show.hint import LONGEST, hint_data, hint_figure, hint_scores, hint_text
from lgcourse.show.trained import small_run


def test_with_the_truth_the_named_keys_are_the_needed_ones():
    run = run_of("copy", "ideal-sh", tests=(30,))
    for scale in (1, 5, 30):
        data = hint_data(run, scale, scale, {})
        assert set(data.named) == set(data.needed) == {(t, t) for t in range(scale)}


@pytest.mark.parametrize("off", [-2, -1, 1, 3])
def test_a_wrong_hint_moves_them(off):
    # copy reads i - j - n = 0: told n + off, the query i = n + t finds j = t - off
    run = run_of("copy", "ideal-sh", tests=(30,))
    scale = 8
    data = hint_data(run, scale, scale + off, {})
    assert not set(data.named) & set(data.needed)
    # steps are told by the hint, too: only queries that the told circuit has name a key
    assert set(data.named) <= {(t, t - off) for t in range(scale)}
    assert data.named


def test_the_small_run_is_right_with_the_truth_and_wrong_without():
    run, _ = small_run()
    scores = hint_scores(run, 12, [11, 12, 13])
    assert scores[12] > 0.9 and scores[11] < 0.1 and scores[13] < 0.1
    data = hint_data(run, 12, 12, scores)
    assert data.said == data.truth and set(data.named) == set(data.needed)
    assert hint_data(run, 12, 13, scores).said != data.truth


def test_bars_are_the_scores_and_the_chosen_one_stands_out():
    run = run_of("copy", "ideal-sh", tests=(30,))
    data = hint_data(run, 5, 6, {4: 0.25, 5: 1.0, 6: 0.5})
    bars = hint_figure(data).axes[0].patches
    assert [bar.get_height() for bar in bars] == [0.25, 1.0, 0.5]
    colours = [bar.get_facecolor() for bar in bars]
    assert colours[0] == colours[1] != colours[2]
    assert hint_figure(data).alt == hint_text(data)  # type: ignore[attr-defined]
    assert "told 6." in hint_text(data) and "0.50 if told 6" in hint_text(data)


def test_runs_without_a_hint_are_refused():
    with pytest.raises(InputError, match="this run has rpe"):
        hint_scores(run_of("copy", "rpe"), 3, [3])
    with pytest.raises(InputError, match=f"go up to {LONGEST}"):
        hint_data(run_of("copy", "ideal-sh", tests=(200,)), 200, 200, {})
