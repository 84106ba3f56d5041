"""Does the picture of a task say what its circuit says? Asked of what is drawn, not of pixels."""

from __future__ import annotations

import colorsys
import re

import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_rgb

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.show.curves import COLOURS, png
from lgcourse.show.layout import (
    HEIGHT,
    LETTERS,
    WIDTH,
    _lighter,
    ink,
    layout_data,
    layout_figure,
    layout_text,
)

COVERED = ["copy", "reverse", "shift", "interleave", "parity-cot", "addition", "successor"]


def get(name):
    return tasks.get(name, width=6) if name.endswith("-padded") else tasks.get(name)


@pytest.mark.parametrize("name", [*COVERED, "parity-cot-padded", "addition-padded"])
@pytest.mark.parametrize("scale", [1, 2, 5])
def test_every_operand_has_its_role_and_nothing_else_has_one(name, scale):
    task = get(name)
    data = layout_data(task, scale)
    expected = {}
    for step in task.circuit(scale):
        for role, position in zip(step.operator.roles, step.inputs, strict=True):
            expected[step.output - 1, position] = f"{step.operator.name} {role}"
    found = {
        (query, key): role.label
        for query in range(len(data.tokens))
        for key, role in data.reads(query)
    }
    assert found == expected
    assert data.ids is not None
    marked = {
        (i, j)
        for i, row in enumerate(data.ids.tolist())
        for j, id in enumerate(row)
        if id in data.roles
    }
    assert marked == set(expected), "also not among the keys that come after their query"
    assert data.writes == {step.output - 1: step.output for step in task.circuit(scale)}


def test_the_copy_of_scale_three_written_out():
    data = layout_data(tasks.get("copy"), 3)
    assert data.names == ["x1", "x2", "x3", "=", "y1", "y2", "y3"]
    assert data.tokens[4:] == data.tokens[:3] and data.tokens[3] == "="
    assert data.scored == [False] * 4 + [True] * 3 and data.prompt_length == 4
    assert [data.reads(query) for query in (0, 1, 2, 6)] == [[], [], [], []]
    assert [[key for key, _ in data.reads(query)] for query in (3, 4, 5)] == [[0], [1], [2]]


def test_the_sample_depends_on_the_seed_alone():
    task = tasks.get("addition")
    assert layout_data(task, 9, seed=3).tokens == layout_data(task, 9, seed=3).tokens
    assert layout_data(task, 9, seed=3).tokens != layout_data(task, 9, seed=4).tokens


@pytest.mark.parametrize(
    ("name", "scale"), [("addition", 8), ("multiply-scratchpad", (3, 2)), ("parity-direct", 12)]
)
def test_roles_of_one_picture_have_letters_of_their_own(name, scale):
    roles = list(layout_data(tasks.get(name), scale).roles.values())
    assert len({role.letter for role in roles}) == len(roles) > 1
    assert len({(role.letter, role.colour) for role in roles}) == len(roles)


def test_a_role_keeps_letter_and_colour_when_the_scale_changes():
    task = tasks.get("addition")
    shown = [{r.label: r for r in layout_data(task, n).roles.values()} for n in (2, 3, 9)]
    assert shown[0] == shown[1] == shown[2]


def test_letters_can_be_told_apart_and_read():
    assert len(set(LETTERS)) == len(LETTERS) and not set(LETTERS) & set("Il0Oo1i")
    for colour in [*COLOURS, *map(_lighter, COLOURS)]:
        linear = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)
        ]
        light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        contrast = 1.05 / (light + 0.05) if ink(colour) == "white" else (light + 0.05) / 0.05
        assert contrast >= 4.5, colour
    assert colorsys.rgb_to_hls(*to_rgb(_lighter("#0072B2")))[1] > 0.5


def words(figure):
    singles = [text.get_text() for axes in figure.axes for text in axes.texts]
    return singles + [
        word
        for axes in figure.axes
        for texts in axes.collections
        for word in getattr(texts, "words", ())
    ]


@pytest.mark.parametrize(
    ("name", "scale"), [("copy", 1), ("addition", 12), ("addition", 40), ("sort", 4)]
)
def test_every_figure_has_the_same_size_and_its_text(name, scale):
    task = tasks.get(name)
    figure = layout_figure(task, scale)
    assert tuple(figure.get_size_inches()) == (WIDTH, HEIGHT)
    assert getattr(figure, "alt", "") == layout_text(task, scale)
    assert png(figure)[16:24] == png(layout_figure(tasks.get("copy"), 2))[16:24], (
        "pixels of the PNG"
    )


def test_up_to_scale_twenty_all_is_written_out():
    data, shown = (
        layout_data(tasks.get("addition"), 20),
        words(layout_figure(tasks.get("addition"), 20)),
    )
    for position, name in enumerate(data.names):
        assert name in shown and str(position) in shown
    assert {f"◀ writes s{t}" for t in range(1, 22)} <= set(shown)


@pytest.mark.parametrize(("scale", "drawn"), [(3, True), (20, True), (80, False)])
def test_letters_are_dropped_where_squares_are_too_small(scale, drawn):
    triangle = layout_figure(tasks.get("addition"), scale).axes[1]
    sets = [c for c in triangle.collections if type(c) is PathCollection]
    # one set for each role in the squares, and one for each line of the key
    assert len(sets) == len(layout_data(tasks.get("addition"), scale).roles) * (2 if drawn else 1)


def test_squares_have_the_colour_of_their_role_and_rows_of_steps_are_darker():
    data = layout_data(tasks.get("addition"), 3)
    count = len(data.tokens)
    mesh = next(
        c
        for c in layout_figure(tasks.get("addition"), 3).axes[1].collections
        if isinstance(c, QuadMesh)
    )
    squares = np.asarray(mesh.get_array()).reshape(count, count, 3)
    for query in range(count):
        roles = dict(data.reads(query))
        for key in range(count):
            colour = tuple(float(part) for part in squares[query, key])
            if key > query:
                assert colour == (1, 1, 1)
            elif key in roles:
                assert colour == pytest.approx(to_rgb(roles[key].colour))
            else:
                assert (colour[0] < 0.88) == (query in data.writes)
                assert colour[0] == colour[1] == colour[2] < 1


def test_prompt_answer_and_padding_differ_without_colour():
    boxes = layout_figure(get("parity-cot-padded"), 2).axes[0].patches
    style = [(box.get_linewidth(), box.get_linestyle()) for box in boxes]
    data = layout_data(get("parity-cot-padded"), 2)
    kinds = ["given" if p < data.prompt_length else data.scored[p] for p in range(len(data.tokens))]
    assert len(set(zip(kinds, style, strict=True))) == len(set(kinds)) == len(set(style)) == 3


def test_the_text_tells_tokens_steps_and_padding():
    text = layout_text(get("parity-cot-padded"), 2)
    data = layout_data(get("parity-cot-padded"), 2)
    for position, (name, token) in enumerate(zip(data.names, data.tokens, strict=True)):
        assert f"{position} {name} is '{token}'" in text
    assert "Answer, scored: 7 y1" in text and "Padding, not scored: 9 y3" in text
    assert "the query at 7 (y1) writes y2 and reads x2 (C: add next) and y1 (B: add before)" in text


def test_a_long_text_leaves_steps_out_and_says_how_many():
    text = layout_text(tasks.get("copy"), 30)
    told = re.findall(r"writes y(\d+)", text)
    assert told == ["1", "2", "3", "4", "30"]
    assert f"{30 - len(told)} of the 30 steps are left out here." in text


def test_a_task_without_a_circuit_is_drawn_with_the_reason():
    data = layout_data(tasks.get("sort"), 4)
    assert data.ids is None and data.roles == {} and data.writes == {}
    assert "No ideal relation: task 'sort' is not covered" in layout_text(tasks.get("sort"), 4)
    assert any("not covered" in line for line in words(layout_figure(tasks.get("sort"), 4)))


@pytest.mark.parametrize("scale", [0, -1, (2, 2)])
def test_a_scale_that_the_task_has_not_is_refused(scale):
    with pytest.raises(InputError):
        layout_figure(tasks.get("copy"), scale)
