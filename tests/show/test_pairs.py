"""Are the ids of a relation those of its definition, and the framed pairs those of the circuit?"""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.show.pairs import LONGEST, relation_data, relation_figure, relation_text


def test_the_ids_are_distances_and_later_keys_have_none():
    data = relation_data("rpe", tasks.get("copy"), (2, 4))
    for triangle, length in zip(data.triangles, (5, 9), strict=True):
        truth = [[i - j if j <= i else -1 for j in range(length)] for i in range(length)]
        assert triangle.ids.tolist() == truth
    assert data.unit == "i - j" and data.shown[3].letter == "3"


@pytest.mark.parametrize("name", ["copy", "reverse", "addition", "parity-cot"])
def test_the_framed_pairs_are_what_the_steps_read(name):
    task = tasks.get(name)
    data = relation_data("ideal-sh", task, (3, 6))
    for triangle in data.triangles:
        wanted = {(s.output - 1, k) for s in task.circuit(triangle.scale) for k in s.inputs}
        assert set(triangle.operands) == wanted
        # the ideal relation names exactly these pairs
        named = (triangle.ids >= 0) & (triangle.ids != data.other)
        assert {tuple(pair) for pair in named.nonzero().tolist()} == wanted


def test_ids_that_are_kept():
    reverse = tasks.get("reverse")
    assert relation_data("rpe", reverse, (3, 5)).kept == [1, 3, 5]
    assert relation_data("ideal-sh", tasks.get("copy"), (3, 5)).kept == [0]
    assert relation_data("rpe", tasks.get("copy"), (3, 5)).kept == []


def test_equal_ids_have_equal_colours_at_both_scales():
    data = relation_data("ape", tasks.get("copy"), (3, 5))
    figure = relation_figure("ape", tasks.get("copy"), (3, 5))
    for axes, triangle in zip(figure.axes, data.triangles, strict=False):
        drawn = np.asarray(axes.images[0].get_array())
        for (i, j), id in np.ndenumerate(triangle.ids.numpy()):
            wanted = to_rgb(data.shown[id].colour) if id >= 0 else (1, 1, 1)
            assert drawn[i, j] == pytest.approx(wanted)


def test_the_figure_has_one_size_and_says_the_same():
    task = tasks.get("copy")
    figures = [
        relation_figure(name, task, s) for name in ("rpe", "none") for s in ((2, 3), (9, 30))
    ]
    assert len({tuple(figure.get_size_inches()) for figure in figures}) == 1
    assert figures[0].alt == relation_text("rpe", task, (2, 3))  # type: ignore[attr-defined]


def test_a_task_without_a_circuit_has_no_frames():
    data = relation_data("rpe", tasks.get("sort"), (2, 3))
    assert not data.triangles[0].operands
    assert "no circuit" in relation_text("rpe", tasks.get("sort"), (2, 3))


def test_your_own_relation_is_drawn():
    own = relations.FormRelation([relations.Form(1, -1, -1)], -1, 1, "mine")
    assert "Relation mine" in relation_text(own, tasks.get("copy"), (2, 3))


@pytest.mark.parametrize(
    ("relation", "scales", "message"),
    [
        ("rpee", (2, 3), "did you mean 'rpe'"),
        (7, (2, 3), "a relation is a Relation or its name, got int"),
        ("rpe", (2,), "two scales"),
        ("rpe", 3, "two scales"),
        ("rpe", (2, 0), "at least 1"),
        ("rpe", (2, 200), f"go up to {LONGEST}"),
    ],
)
def test_what_cannot_be_drawn_is_refused(relation, scales, message):
    with pytest.raises(InputError, match=message):
        relation_data(relation, tasks.get("copy"), scales)
