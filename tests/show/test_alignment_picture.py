"""Does the picture show the ids, operands and faults that there are? Asked of its data, by pairs.

What is drawn is compared with loops over pairs that are written out here, and with `predict`.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.relations import Table
from lgcourse.show.alignment import (
    DASHED,
    FAULTS,
    HEIGHT,
    WIDTH,
    alignment_data,
    alignment_figure,
    alignment_text,
    fill_of,
)
from lgcourse.show.curves import png
from lgcourse.tasks import Operator, Step
from lgcourse.theory import predict

COVERED = ["copy", "reverse", "shift", "parity-cot", "addition", "successor", "add-index-mod"]
NAMES = ["ape", "rpe", "t5", "rpe-sh", "ideal-sh"]

case = st.tuples(
    st.sampled_from(COVERED), st.sampled_from(NAMES), st.integers(1, 4), st.integers(1, 7)
)


def parts(name, relation, train, scale):
    task = tasks.get(name)
    phi = relations.build(relation, task, max_scale=max(train, scale))
    return task, phi, range(1, train + 1)


def one(phi, i, j, n):
    """The id of one pair, asked for alone."""
    return int(phi(torch.tensor([i]), torch.tensor([j]), n)[0, 0])


@settings(max_examples=20, deadline=None)
@given(case)
def test_every_key_of_every_step_has_its_id(drawn):
    task, phi, train = parts(*drawn)
    scale = drawn[-1]
    data = alignment_data(task, phi, train, scale)
    circuit = sorted(task.circuit(scale), key=lambda step: step.output)
    assert data.ids is not None and len(data.steps) == len(circuit)
    for row, step in enumerate(circuit):
        query = step.output - 1
        wanted = [one(phi, query, key, scale) for key in range(query + 1)]
        assert data.ids[row, : query + 1].tolist() == wanted
        assert (data.ids[row, query + 1 :] == -1).all(), "keys after the query have no id"
        read = [(o.key, o.role, o.id) for o in data.steps[row].operands]
        assert read == [
            (key, role, wanted[key])
            for key, role in zip(step.inputs, step.operator.roles, strict=True)
        ]
        assert data.names[step.output] == task.layout(scale)[step.output]


@settings(max_examples=20, deadline=None)
@given(case)
def test_what_training_taught_is_told_apart(drawn):
    task, phi, train = parts(*drawn)
    data = alignment_data(task, phi, train, drawn[-1])
    steps = [(n, step) for n in train for step in task.circuit(n)]
    assert data.learned == {one(phi, s.output - 1, key, n) for n, s in steps for key in s.inputs}
    assert data.met == {one(phi, s.output - 1, key, n) for n, s in steps for key in range(s.output)}


@settings(max_examples=30, deadline=None)
@given(case)
def test_the_marks_are_those_of_the_prediction(drawn):
    task, phi, train = parts(*drawn)
    scale = drawn[-1]
    data = alignment_data(task, phi, train, scale)
    share = sum(step.resolvable for step in data.steps) / len(data.steps)
    assert share == pytest.approx(predict(task, phi, train, [scale]).resolvable[scale])
    for step in data.steps:
        assert bool(step.reason) == bool(step.faults) == (not step.resolvable)
        assert set(step.faults) <= set(FAULTS)
        assert {o.fault for o in step.operands if o.fault} <= set(step.faults)


@settings(max_examples=20, deadline=None)
@given(case)
def test_a_new_id_is_one_that_its_role_never_had(drawn):
    task, phi, train = parts(*drawn)
    scale = drawn[-1]
    if task.name == "add-index-mod":  # its operators differ in their tables, not in their roles
        return
    had, used = set(), set()
    for n in train:
        for step in task.circuit(n):
            used.add(step.operator.name)
            for role, key in zip(step.operator.roles, step.inputs, strict=True):
                had.add((step.operator.name, role, one(phi, step.output - 1, key, n)))
    for step in alignment_data(task, phi, train, scale).steps:
        for o in step.operands:
            assert (o.fault == "new operator") == (step.operator not in used)
            if step.operator in used:
                assert (o.fault == "new id") == ((step.operator, o.role, o.id) not in had)


# --- each fault on its own ------------------------------------------------------------------------
TAKE = Operator.from_rule("take", ("source",), lambda x: x, range(2))
FLIP = Operator.from_rule("flip", ("source",), lambda x: 1 - x, range(2))
BOTH = Operator.from_rule("both", ("left", "right"), lambda x, y: x & y, range(2))


def faults(circuit, table, train, scale):
    phi = Table({n: page for n, page in table.items()}) if isinstance(table, dict) else Table(table)
    return [step.faults for step in alignment_data(circuit, phi, train, scale).steps]


def test_faults_of_operands():
    pages = {1: [[3, 3], [5, 7]], 2: [[3, 3], [7, 5]], 3: [[3, 3], [5, 9]]}
    first = {1: [Step(2, TAKE, (0,))], 2: [Step(2, TAKE, (1,))], 3: [Step(2, TAKE, (1,))]}
    assert faults(first, pages, [1], 2) == [()], "5 wins over 7 at both"
    assert faults(first, pages, [1, 2], 3) == [("new id",)], "9 is new, and not the operand's"
    again = {**first, 3: [Step(2, TAKE, (0,))]}
    assert faults(again, pages, [1, 2], 3) == [()]
    contrary = {1: [Step(2, TAKE, (0,))], 2: [Step(2, TAKE, (0,))]}
    assert faults(contrary, pages, [1, 2], 1) == [("no order",)], "5 over 7 over 5"
    alone = {1: [Step(1, TAKE, (0,))], 2: [Step(1, TAKE, (0,))], 3: [Step(2, TAKE, (0,))]}
    apart = {1: [[5, 0], [0, 0]], 2: [[7, 0], [0, 0]], 3: [[0, 0], [5, 7]]}
    assert faults(alone, apart, [1, 2], 3) == [("rival",)], "5 and 7 never met in training"
    new = {1: [Step(2, TAKE, (0,))], 2: [Step(2, FLIP, (0,))]}
    assert faults(new, pages, [1], 2) == [("new operator",)]


def test_faults_of_steps():
    pages = {n: [[0, 0, 0], [0, 0, 0], [0, 0, 0]] for n in (1, 2, 3)}
    pages[1][1][:2], pages[2][1][:2], pages[3][1][:2] = [1, 2], [3, 4], [1, 4]
    both = {n: [Step(2, BOTH, (0, 1))] for n in (1, 2, 3)}
    assert faults(both, pages, [1, 2], 3) == [("new tuple",)], "1 with 4 was never shown"
    clash = [Step(1, TAKE, (0,)), Step(2, FLIP, (1,))]
    assert faults(clash, [[5, 0], [6, 5]], [1], 2) == [("clash",), ("clash",)]
    assert faults(clash, [[5, 0], [6, 4]], [1], 2) == [(), ()]
    nothing = Operator("one", (), {(): 1})
    assert faults({1: [Step(1, TAKE, (0,))], 2: [Step(1, nothing, ())]}, [[5]], [1], 2) == [
        ("new operator",)
    ], "an operator without operands"


def test_an_operand_counts_as_found_if_one_of_several_relations_finds_it():
    task = tasks.get("copy")
    rpe, ideal = (relations.build(name, task, max_scale=8) for name in ("rpe", "ideal-sh"))
    data = [alignment_data(task, [rpe, ideal], range(1, 5), 8, shown) for shown in (0, 1)]
    assert all(step.resolvable for part in data for step in part.steps)
    assert [part.title.split(":")[0] for part in data] == [
        "copy, rpe (1 of 2 relations)",
        "copy, ideal-sh (2 of 2 relations)",
    ]
    assert data[0].ids is not None and not data[0].ids.equal(data[1].ids)
    alone = alignment_data(task, [rpe], range(1, 5), 8)
    assert not any(step.resolvable for step in alone.steps)


# --- what is drawn --------------------------------------------------------------------------------
def axes_of(*arguments):
    return alignment_figure(*arguments).axes[0]


def texts(axes, low, high):
    """What is written in the cells between two heights of a cell: (row, key) -> text."""
    found = {}
    for part in (c for c in axes.collections if isinstance(c, PathCollection)):
        for x, y in np.asarray(part.get_offsets()).tolist():
            if low < y % 1 < high:
                found[int(y), int(x)] = part.get_gid()
    return found


def cells(collection):
    """The cells that the boxes of a collection cover."""
    found = set()
    for path in collection.get_paths():
        (left, top), (right, bottom) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        found |= {
            (row, key)
            for row in range(int(top), int(np.ceil(bottom)))
            for key in range(int(left), int(np.ceil(right)))
        }
    return found


@pytest.mark.parametrize(
    ("name", "relation", "scale"),
    [
        ("copy", "rpe", 12),
        ("addition", "ape", 9),
        ("shift", "rpe-sh", 8),
        ("addition", "ideal-sh", 7),
    ],
)
def test_cells_carry_their_ids_and_operands_their_roles(name, relation, scale):
    task, phi, train = parts(name, relation, 5, scale)
    data, axes = alignment_data(task, phi, train, scale), axes_of(task, phi, train, scale)
    assert data.ids is not None
    pairs = {(r, k): i for r, row in enumerate(data.ids.tolist()) for k, i in enumerate(row)}
    operands = {(row, o.key): o for row, step in enumerate(data.steps) for o in step.operands}
    assert texts(axes, 0.4, 0.9) == {
        cell: data.shown[id].letter
        for cell, id in pairs.items()
        if id >= 0 and data.shown[id].letter
    }
    assert texts(axes, 0.1, 0.4) == {cell: str(o.number) for cell, o in operands.items()}
    mesh = next(c for c in axes.collections if isinstance(c, QuadMesh))
    for cell, id in pairs.items():
        colour = to_hex(np.asarray(mesh.get_array())[cell])
        wanted = fill_of(data, id, cell in operands) if id >= 0 else "#ffffff"
        assert colour == wanted.lower()
    hatched = next(c for c in axes.collections if c.get_hatch())
    unmet = {cell for cell, id in pairs.items() if id >= 0 and id not in data.met}
    assert cells(hatched) == unmet


def test_operands_that_are_found_and_lost_differ_without_colour():
    axes = axes_of("parity-cot-padded", "ape", range(1, 5), 6)
    data = alignment_data("parity-cot-padded", "ape", range(1, 5), 6)
    frames = {}
    for part in (c for c in axes.collections if isinstance(c, PolyCollection)):
        if part.get_edgecolor().tolist() == [[0, 0, 0, 1]] and part.get_linewidth()[0] > 0:
            frames[part.get_linestyle()[0][1] is None] = cells(part)
    assert frames == {
        good: {
            (row, o.key)
            for row, step in enumerate(data.steps)
            for o in step.operands
            if (not o.fault) == good
        }
        for good in (True, False)
    }
    assert frames[True] and frames[False] and DASHED[1]


def test_each_row_is_marked():
    axes = axes_of("add-index-mod", "ideal-sh", range(1, 9), 12)
    marks = {int(t.get_position()[1]): t.get_text() for t in axes.texts}
    wanted = {row: "✗ 1 new operator" if row in (8, 9) else "✓" for row in range(12)}
    assert {row: mark for row, mark in marks.items() if mark[0] in "✓✗"} == wanted


def test_equal_ids_look_equal_and_taught_ids_differ_from_others():
    data = alignment_data("copy", "rpe", range(1, 8), 9)
    looks = {id: (data.shown[id].letter, fill_of(data, id, False)) for id in data.shown}
    assert len(set(looks.values())) == len(looks)
    taught, other = ({looks[id][1] for id in looks if (id in data.learned) == t} for t in (1, 0))
    assert not taught & other


@pytest.mark.parametrize(
    ("relation", "unit", "letters"),
    [
        ("rpe", "i - j", {"0", "1", "11"}),
        ("ape", "j", {"0", "11"}),
        ("ape-sh", "j - n", {"-6", "0", "5"}),
        ("t5", "i - j", {"0", "11"}),
        ("ideal-sh", "", {"A", ""}),
        ("rpe-sh", "", {"C", "H", ""}),
    ],
)
def test_ids_are_written_as_people_know_them(relation, unit, letters):
    data = alignment_data("copy", relation, range(1, 4), 6)
    assert data.unit == unit
    assert letters <= {role.letter for role in data.shown.values()}
    assert all(role.label for role in data.shown.values())


def test_buckets_are_written_as_their_ids():
    data = alignment_data("copy", "t5", range(1, 4), 12)
    assert data.unit == "id" and {"0", "15", "17"} <= {r.letter for r in data.shown.values()}
    assert data.shown[17].label == "bucket 17"


def test_ids_of_a_table_are_written_as_their_numbers():
    phi = Table([[4, 0, 0], [2, 4, 0], [9, 2, 4]])
    data = alignment_data([Step(2, TAKE, (0,)), Step(3, TAKE, (1,))], phi, [1], 2)
    assert data.unit == "id" and {r.letter for r in data.shown.values()} == {"2", "4", "9"}
    assert data.names == ["0", "1", "2", "3"] and "circuit, table: scale 2" in data.title


@pytest.mark.parametrize("scale", [1, 20, 40])
def test_the_size_is_fixed_and_the_text_is_that_of_the_figure(scale):
    figure = alignment_figure("addition", "rpe", range(1, 5), scale)
    assert tuple(figure.get_size_inches()) == (WIDTH, HEIGHT)
    assert getattr(figure, "alt", "") == alignment_text("addition", "rpe", range(1, 5), scale)
    silent = alignment_figure("sort", "rpe", [1], 4)
    assert png(figure)[16:24] == png(silent)[16:24], "pixels of the PNG"


def test_scale_twenty_is_written_out_and_larger_cells_are_not():
    written = texts(axes_of("addition", "ape", range(1, 11), 20), 0.0, 1.0)
    assert len(written) == sum(range(42, 63))
    assert not texts(axes_of("addition", "ape", range(1, 3), 60), 0.0, 1.0)


# --- in words -------------------------------------------------------------------------------------
def test_the_text_counts_steps_and_pairs_and_gives_reasons():
    text = alignment_text("copy", "rpe", range(1, 11), 12)
    assert text.startswith(
        "Alignment of copy, rpe: scale 12 after training on 1..10: 0 of 12 steps are resolvable."
    )
    pairs = [12 + t - j for t in range(12) for j in range(13 + t)]  # i - j, by the layout
    learned, unmet = sum(1 <= d <= 10 for d in pairs), sum(d > 19 for d in pairs)
    assert f"Of {len(pairs)} pairs of a step and an earlier key, {learned} have an id" in text
    assert f"{len(pairs) - learned - unmet} another id that training showed, {unmet} an id" in text
    assert "The step that writes y1 reads x1 as source (i - j = 12, not found)." in text
    assert "7 of the 12 steps are left out here." in text
    assert (
        "new id (the operand's id is new in its role): y1, y2, y3, y4 and 8 more; at scale 12"
        in text
    )
    assert "a distance that training never showed (1..10)." in text


def test_a_text_without_faults_has_no_reason():
    text = alignment_text("shift", "rpe-sh", range(1, 11), 12)
    assert "12 of 12 steps are resolvable" in text
    assert "Not resolvable" not in text and "not found" not in text


@pytest.mark.parametrize(
    ("circuit", "relation", "scale", "words"),
    [
        ("sort", "rpe", 12, "not covered: task 'sort' has no circuit"),
        ("copy", None, 12, "no prediction: the embedding has no finite relation"),
        ("copy", [None, None], 12, "no prediction"),
        ("parity-direct", "ideal-sh", 40, "fails: the number of operators grows"),
        (None, "rpe", 12, "not covered"),
        (lambda n: [], relations.build("none"), 12, "no steps"),
    ],
)
def test_where_theory_is_silent_the_figure_says_so(circuit, relation, scale, words):
    figure = alignment_figure(circuit, relation, range(1, 11), scale)
    assert words in getattr(figure, "alt", "") and f"scale {scale}" in getattr(figure, "alt", "")
    assert not figure.axes and any(words in " ".join(t.get_text().split()) for t in figure.texts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("copy", "rpe", 10, 12), "train_scales is a collection of scales"),
        (("copy", "rpe", [], 12), "train_scales is empty"),
        (("copy", "rpe", [0], 12), "scale must be a whole number"),
        (("copy", "rpe", [1, 2], 0), "scale must be a whole number"),
        (("copy", "rpe", [1, 2], (3, 3)), "task 'copy' takes one size"),
        (("copi", "rpe", [1, 2], 3), "did you mean 'copy'"),
        (("copy", "rqe", [1, 2], 3), "unknown embedding or relation 'rqe'"),
        (("copy", relations.build("ape", positions=4), [1], 3), "build it with a larger max_scale"),
        (("copy", "rpe", [1, 2], 3, 1), "shown is one of 0..0, got 1"),
        (("copy", [], [1, 2], 3), "give at least one relation"),
        (("copy", "rpe", [1, 2], 500), "too many to draw; choose a smaller scale"),
        (([Step(1, TAKE, (4,))], relations.build("none"), [1], 2), "one of the earlier positions"),
        (([Step(1, TAKE, (0,))], "rpe", [1], 2), "for a circuit of your own give a Relation"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    for function in (alignment_figure, alignment_text):
        with pytest.raises(InputError) as caught:
            function(*arguments)
        assert message in str(caught.value) and "\n" not in str(caught.value)
