"""Does the picture of a run's attention show what the model does? Asked of what is drawn."""

from __future__ import annotations

import pytest
import torch
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from untrained import run_of, with_cells

from lgcourse.errors import InputError
from lgcourse.model.reading import attention_weights
from lgcourse.relations import Form
from lgcourse.show import png
from lgcourse.show.explanation import (
    MOST_KEYS,
    explanation_data,
    explanation_figure,
    explanation_text,
    tone,
)

HERE, BEFORE = (Form(1, -1, -1), 0), (Form(1, -1, -1), 1)


@pytest.fixture(scope="module")
def copied():
    """Head 2 of layer 1 reads the operand of copy, head 3 of layer 2 the key before it."""
    run = run_of("copy", "lbpe-sh", layers=2)
    return with_cells(run, [[], [HERE], [], []], [[], [], [BEFORE], []])


def axes_of(figure, start):
    """Return the axes whose title starts so."""
    (found,) = [axes for axes in figure.axes if axes.get_title("left").startswith(start)]
    return found


def letters(axes):
    """Return the letters that are drawn: (row, column) -> letter."""
    return {
        (int(y), int(x)): part.get_gid()
        for part in axes.collections
        if isinstance(part, PathCollection)
        for x, y in part.get_offsets()
    }


def frames(axes):
    """Return which cells have a black frame: (row, column) -> whether it is solid."""
    return {
        (int(y), int(x)): part.get_linestyle()[0][1] is None
        for part in axes.collections
        if isinstance(part, PolyCollection) and to_rgb(part.get_edgecolor()[0]) == (0, 0, 0)
        for x, y in (path.vertices.min(axis=0) for path in part.get_paths())
    }


def test_each_head_shows_its_weights_and_the_keys_that_it_names(copied):
    data = explanation_data(copied)
    assert [(p.layer, p.head) for p in data.panels] == [(a, b) for a in (1, 2) for b in range(1, 5)]
    assert data.writes == [7, 8, 9, 10, 11, 12] and data.keys == list(range(12))
    good, shifted, idle = data.panels[1], data.panels[6], data.panels[0]
    for row in range(6):
        assert float(good.weights[row, row]) == pytest.approx(1.0, abs=1e-6)
        assert good.named[row].nonzero().flatten().tolist() == [row]
        named = shifted.named[row].nonzero().flatten().tolist()
        assert named == ([row - 1] if row else [])
        assert float(idle.weights[row, row + 6]) == pytest.approx(1.0), "reads itself only"
    assert good.share == pytest.approx(1.0) and shifted.share < 1e-6 and not idle.named.any()
    assert "i - j - n = 0" in good.title and "i - j - n = 1" in shifted.title


def test_the_weights_are_those_of_the_sample_on_the_axes(copied):
    run = run_of("parity-cot", "rope")
    data = explanation_data(run, 4, seed=5)
    batch = run.task.sample(4, 1, torch.Generator().manual_seed(5))
    assert data.layout.tokens == [run.task.vocabulary[t] for t in batch.tokens[0].tolist()]
    weights = attention_weights(run.model, batch.tokens, 4)[:, 0]
    for panel in data.panels:
        for row, output in enumerate(data.writes):
            want = weights[panel.layer - 1, panel.head - 1, output - 1, data.keys]
            torch.testing.assert_close(panel.weights[row], want)
        assert panel.named is None and panel.words == ""


def test_letters_are_the_roles_and_frames_the_named_keys(copied):
    figure = explanation_figure(copied)
    ideal, good = axes_of(figure, "ideal relation"), axes_of(figure, "layer 1 head 2")
    shifted = axes_of(figure, "layer 2 head 3")
    for axes in (ideal, good, shifted):
        assert letters(axes) == {(row, row): "A" for row in range(6)}
    assert frames(ideal) == {}
    assert frames(good) == {(row, row): True for row in range(6)}
    assert frames(shifted) == {(row, row - 1): False for row in range(1, 6)}
    assert "100.0 % on operands" in good.get_title("left")
    assert [text.get_text() for text in good.get_yticklabels()] == [f"y{t}" for t in range(1, 7)]
    assert good.get_xticklabels()[6].get_text() == "="


def test_weights_are_seen_in_grey():
    """A greater weight is darker, so no colour has to be told apart."""

    def luminance(colour):
        parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light = [luminance(to_rgb(tone(k / 20))) for k in range(21)]
    assert all(a - b > 0.005 for a, b in zip(light, light[1:], strict=False))
    assert light[0] == 1.0 and light[-1] < 0.05


def test_the_text_says_what_is_drawn(copied):
    figure = explanation_figure(copied)
    text = figure.alt
    assert text == explanation_text(copied) and text.encode()[:40] in png(figure)
    assert "copy, lbpe-sh: attention at scale 6" in text and "A is take source" in text
    assert "The step that writes y1 reads x1 (A)" in text
    good = next(part for part in text.split("Layer ") if part.startswith("1 head 2"))
    assert "Mean weight on the operands 1.00: 1.00 on A. Named: 6 keys, 6 of them operands" in good
    shifted = next(part for part in text.split("Layer ") if part.startswith("2 head 3"))
    assert "operands 0.00. Named: 5 keys, 0 of them operands" in shifted


def test_what_every_block_knows_of_the_query_is_no_heads_doing(copied):
    for panel in explanation_data(copied).panels:
        assert not panel.named[range(6), range(6, 12)].any()


def test_long_rows_keep_the_keys_that_are_read():
    run = run_of("parity-cot-padded", "ideal", tests=(30,))
    data = explanation_data(run)
    read = {k for step in run.task.circuit(6) for k in step.inputs}
    assert read <= set(data.keys) and len(data.keys) <= MOST_KEYS
    assert len(data.operands) == sum(len(step.inputs) for step in run.task.circuit(6))
    assert f"{len(data.keys)} of {data.writes[-1]} keys are shown" in data.notes[0]
    assert data.notes[0] in explanation_text(run).replace("Keys", "keys")
    assert explanation_data(run_of("copy", "ideal-sh"), 6).notes == []


def test_the_scale_that_is_shown_fits(monkeypatch):
    assert len(explanation_data(run_of("copy", "t5", train_scale=3)).writes) == 3
    assert len(explanation_data(run_of("interleave", "t5")).writes) == 12
    long = explanation_data(run_of("copy", "none", layers=5), 30)
    assert len(long.writes) == 16 and len(long.panels) == 16
    assert any("16 of 30 rows" in note for note in long.notes)
    assert any("16 of 20 heads" in note for note in long.notes)
    with pytest.raises(InputError, match="scale"):
        explanation_data(run_of("copy", "none"), 0)
    monkeypatch.setattr("lgcourse.show.explanation.MOST_ROWS", 9)
    assert "scale 4" in explanation_data(run_of("interleave", "t5")).title


def test_a_task_without_a_circuit_has_weights_and_no_roles():
    run = run_of("sort", "rope")
    figure = explanation_figure(run)
    assert letters(axes_of(figure, "layer 1 head 1")) == {}
    assert "No ideal relation: task 'sort' is not covered" in figure.alt
    assert "operands" not in axes_of(figure, "layer 1 head 1").get_title("left")
