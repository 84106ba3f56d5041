"""Does the record of gates hold what the learned relation was, update by update?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection
from untrained import run_of

from lgcourse.errors import InputError
from lgcourse.show.gates import Recorder, gates_figure, gates_text
from lgcourse.show.trained import small_run
from lgcourse.training import fit


@pytest.fixture(scope="module")
def learned():
    """The small run that pictures show, and its gates."""
    return small_run()


def test_shares_sum_to_one_and_harden(learned):
    _, gates = learned
    assert torch.allclose(gates.shares.sum(2), torch.ones(gates.shares.shape[:2]), atol=1e-5)
    first, last = gates.shares[0].amax(1), gates.shares[-1].amax(1)
    assert (first < 0.2).all() and (last > 0.95).all()


def test_stages_come_in_order_and_cells_get_fewer(learned):
    _, gates = learned
    assert list(gates.stage) == sorted(gates.stage) and set(gates.stage) == {0, 1, 2}
    counts = gates.kept.flatten(1).sum(1).tolist()
    assert counts == sorted(counts, reverse=True)
    assert gates.strength[~gates.kept].eq(0).all()


def test_the_last_row_is_the_trained_relation(learned):
    run, gates = learned
    position = run.model.positions[0]
    assert torch.equal(gates.kept[-1], position.kept)
    assert gates.steps[0] == 1 and gates.steps[-1] == run.settings.steps


def test_the_small_run_answers_far_beyond_its_training(learned):
    from lgcourse.training import evaluate

    run, _ = learned
    assert evaluate(run.model, run.task, [30], 50).exact_match[30] > 0.9
    assert small_run() is learned  # trained once


def test_the_update_before_is_shown(learned):
    _, gates = learned
    assert [gates.steps[gates.at(step)] for step in (0, 1, 4, 5, 9, 10**6)] == [
        *(1, 1, 1, 5, 5),
        gates.steps[-1],
    ]


def test_the_figure_shows_the_shares_and_frames_what_may_be_read(learned):
    _, gates = learned
    figure = gates_figure(gates, 2, gates.steps[-1])
    left, right = figure.axes
    lines = [line for line in left.lines if len(line.get_xdata()) == len(gates.steps)]
    assert len(lines) == len(gates.forms)
    drawn = sorted(tuple(np.asarray(line.get_ydata()).tolist()) for line in lines)
    assert np.allclose(drawn, sorted(map(tuple, gates.shares[:, 1].T.tolist())))
    frames = sum(len(c.get_paths()) for c in right.collections if isinstance(c, PolyCollection))
    assert frames == 2 * int(gates.kept[-1, 1].sum())  # a light and a dark line each
    assert figure.alt == gates_text(gates, 2, gates.steps[-1])  # type: ignore[attr-defined]


def test_one_size_for_all(learned):
    _, gates = learned
    sizes = {tuple(gates_figure(gates, h, s).get_size_inches()) for h in (1, 4) for s in (1, 300)}
    assert len(sizes) == 1


def test_an_embedding_without_gates_is_refused():
    run = run_of("copy", "rpe")
    with pytest.raises(InputError, match="layer 1 has ShawEmbedding|layer 1 has"):
        fit(run.model, run.task, [2], steps=1, device="cpu", progress=Recorder())


def test_what_is_not_there_is_refused(learned):
    _, gates = learned
    with pytest.raises(InputError, match="head must be at most 4"):
        gates_text(gates, 5, 1)
    with pytest.raises(InputError, match="nothing was recorded"):
        Recorder().gates()
