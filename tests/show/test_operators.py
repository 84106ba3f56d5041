"""Do cells carry the number of their operator, and differences their mark? Asked of the data."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex

from lgcourse import relations
from lgcourse.errors import InputError
from lgcourse.show.curves import png
from lgcourse.show.operators import (
    GREY,
    HEIGHT,
    LARGEST,
    NEITHER,
    WIDTH,
    ZERO,
    operators_data,
    operators_figure,
    operators_text,
    shade,
    show_operator,
    text_size,
)
from lgcourse.theory import POLA, CodedPOLA


def pairs(n):
    return [(i, j) for i in range(n) for j in range(i + 1)]


def band(i, j):
    return {0: 1, 1: -0.5, 3: 2}.get(i - j, 0)


def numbers(axes):
    """The numbers in the squares of a triangle, as (i, j) -> text."""
    drawn = {}
    for texts in axes.collections:
        if isinstance(texts, PathCollection):
            for x, y in np.asarray(texts.get_offsets()).tolist():
                drawn[int(y), int(x)] = texts.get_gid()
    return drawn


def colours(axes):
    """The colours of the squares, as (i, j) -> hex; one mesh per row."""
    found = {}
    for mesh in (c for c in axes.collections if isinstance(c, QuadMesh)):
        row = round(mesh.get_coordinates()[0, 0, 1])
        for j, colour in enumerate(np.asarray(mesh.get_array())[0].tolist()):
            found[row, j] = to_hex(colour).upper()
    return found


def marked(axes):
    """The cells with a black corner."""
    corners = (c for c in axes.collections if isinstance(c, PolyCollection))
    shapes = [path.vertices.mean(axis=0) for c in corners for path in c.get_paths()]
    return {(int(y), int(x)) for x, y in shapes}


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
def test_the_band_has_its_three_operators_where_they_belong(scale):
    data = operators_data("band", scale)
    number = {1: 0, -0.5: 1, 2: 2, 0: ZERO}  # in order of appearance, by hand
    assert {(i, j): data.ids[i, j] for i, j in pairs(scale)} == {
        (i, j): number[band(i, j)] for i, j in pairs(scale)
    }
    assert (data.ids[~np.tri(scale, dtype=bool)] == ZERO).all()
    assert data.operators[:, 0, 0].tolist() == [1, -0.5, 2][: 1 + (scale > 1) + (scale > 3)]


small = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(-2, 2), min_size=n, max_size=n), min_size=n, max_size=n
    ).map(
        lambda rows: [[v if j <= i else 0 for j, v in enumerate(row)] for i, row in enumerate(rows)]
    )
)


@settings(max_examples=25, deadline=None)
@given(small)
def test_equal_operators_and_only_those_share_number_and_colour(rows):
    n = len(rows)
    data = operators_data(rows, n)
    axes = operators_figure(rows, n).axes[0]
    written, filled = numbers(axes), colours(axes)
    assert set(filled) == set(pairs(n)), "nothing above the diagonal"
    assert set(written) == {(i, j) for i, j in pairs(n) if rows[i][j] != 0}
    for i, j in pairs(n):
        if rows[i][j] == 0:
            assert data.ids[i, j] == ZERO and filled[i, j] == "#FFFFFF"
            continue
        assert written[i, j] == str(data.ids[i, j] + 1)
        assert data.operators[data.ids[i, j]] == rows[i][j]
        for k, m in pairs(n):
            same = rows[i][j] == rows[k][m]
            assert (written.get((i, j)) == written.get((k, m))) == same
            assert (filled[i, j] == filled[k, m]) == same


def test_an_operator_keeps_its_number_when_the_scale_grows():
    small, large = operators_data("decay", 4), operators_data("decay", 9)
    assert (large.ids[:4, :4] == small.ids).all()


def test_numbers_count_operators_of_smaller_scales_too():
    data = operators_data(lambda i, j, n: n, 3)
    assert data.present == [2] and len(data.operators) == 3
    assert "1 operator besides zero. Operator 3 = 3 at 6 pairs" in operators_text(
        lambda i, j, n: n, 3
    )


@pytest.mark.parametrize(
    ("target", "relation"), [("band", "ape"), ("half", "rpe"), ("decay", "rpe"), ("band", "rpe")]
)
def test_differences_are_those_of_the_coefficients(target, relation):
    phi = relations.build(relation, positions=12)
    pola = POLA(phi, 1, 1).fit(target, range(1, 7)).pola
    data = operators_data(target, 12, pola)
    wanted = {
        "band": band,
        "half": lambda i, j: int(j == i // 2),
        "decay": lambda i, j: 0.8 ** (i - j),
    }
    weight = pola.weight[:, 0, 0].tolist()
    assert data.differs is not None and data.fitted_ids is not None
    for i, j in pairs(12):
        value, right = weight[j if relation == "ape" else i - j], wanted[target](i, j)
        assert data.differs[i, j] == (abs(value - right) > 1e-3), (i, j)
        if abs(value) < 1e-6:
            assert data.fitted_ids[i, j] == ZERO
        elif data.fitted_ids[i, j] == NEITHER:
            assert all(abs(value - v.item()) > 1e-5 for v in data.operators)
        else:
            assert abs(value - data.operators[data.fitted_ids[i, j]].item()) < 1e-3
    axes = operators_figure(target, 12, pola).axes[1]
    assert marked(axes) == {(i, j) for i, j in pairs(12) if data.differs[i, j]}
    assert numbers(axes) == {
        (i, j): str(data.fitted_ids[i, j] + 1) for i, j in pairs(12) if data.fitted_ids[i, j] >= 0
    }


def test_a_value_that_is_no_operator_is_grey_and_written_out():
    pola = POLA(relations.build("none"), 1, 1)
    with torch.no_grad():
        pola.weight.fill_(0.25)
    figure = operators_figure("band", 3, pola)
    assert set(colours(figure.axes[1]).values()) == {GREY}
    assert [t.get_text() for t in figure.axes[1].texts].count(".25") == 6


def test_a_wrong_operator_of_the_target_shows_its_number():
    pola = POLA(relations.build("none"), 1, 1)
    with torch.no_grad():
        pola.weight.fill_(2.0)
    data = operators_data("band", 4, pola)
    assert data.fitted_ids is not None and data.differs is not None
    assert (data.fitted_ids[np.tril_indices(4)] == 2).all()
    assert np.argwhere(~data.differs & np.tri(4, dtype=bool)).tolist() == [[3, 0]]


def test_the_tolerance_is_a_share_of_the_largest_entry():
    pola = POLA(relations.build("rpe", positions=4), 1, 1).fit("band", range(1, 5)).pola
    with torch.no_grad():
        pola.weight[0] += 0.01  # the largest entry is 2
    for tolerance, count in ((0.004, 4), (0.006, 0)):
        assert operators_data("band", 4, pola, tolerance).differs.sum() == count  # type: ignore


def test_a_fit_and_its_model_give_the_same_picture_with_matrices_too():
    def code(query, key, scale):
        return (query[:, None] - key == torch.arange(2)[:, None, None]).permute(1, 2, 0).float()

    fit = CodedPOLA(code, 2, 2).fit("fresh-matrices", range(1, 4))
    data = operators_data("fresh-matrices", 5, fit)
    assert (data.fitted == operators_data("fresh-matrices", 5, fit.pola).fitted).all()
    assert data.differs is not None
    assert np.argwhere(data.differs).tolist() == [[i, j] for i, j in pairs(5) if 2 <= i - j < 4], (
        "the code has no place for distances 2 and 3"
    )
    assert data.fitted_name == "code"


@pytest.mark.parametrize("with_pola", [False, True])
def test_the_size_is_fixed_and_the_text_is_that_of_the_figure(with_pola):
    pola = POLA(relations.build("rpe", positions=LARGEST), 1, 1) if with_pola else None
    first = png(operators_figure("band", 1, pola))[16:24]
    for scale in (5, LARGEST):
        figure = operators_figure("band", scale, pola)
        assert tuple(figure.get_size_inches()) == (WIDTH, HEIGHT)
        assert getattr(figure, "alt", "") == operators_text("band", scale, pola)
    assert png(figure)[16:24] == first, "pixels of the PNG"


def test_numbers_are_left_out_where_they_do_not_fit():
    assert numbers(operators_figure("half", 20).axes[0])
    assert not numbers(operators_figure("random-dense", LARGEST).axes[0])
    assert text_size("123", 5.0, 5.0) == 0
    assert text_size("1", 12.0, 12.0) > text_size("123", 12.0, 12.0) > 0


def test_the_key_lists_operators_and_says_what_it_leaves_out():
    words = [t.get_text() for t in operators_figure("random-dense", 9).axes[1].texts]
    listed = [w for w in words if w.startswith("= ")]
    assert f"... and {45 - len(listed)} more" in words and len(listed) > 15
    words = [t.get_text() for t in operators_figure("band", 9).axes[1].texts]
    assert [w for w in words if w.startswith("= ")] == ["= 1", "= -0.5", "= 2"]
    assert "zero operator" in words and not any("more" in w for w in words)


@pytest.mark.parametrize("target", ["half", "position-weighted", "band", "random-dense"])
@pytest.mark.parametrize("scale", [2, 7, 12, 16, 40])
def test_the_key_beside_a_fitted_model_is_whole_and_covers_no_cell(target, scale):
    fit = POLA(relations.build("rpe", positions=LARGEST), 1, 1).fit(target, range(1, 9))
    figure = operators_figure(target, scale, fit)
    figure.savefig(io.BytesIO(), dpi=80)
    width, height = figure.bbox.width, figure.bbox.height
    for axes in figure.axes:
        key = [t for t in axes.texts if t.get_transform() == axes.transAxes]
        for text in key:
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height
            # the last cell of row i ends at j = i + 1: the key stands right of it
            left, bottom = axes.transData.inverted().transform((box.x0, box.y0))
            assert bottom > scale or left > int(bottom) + 1, text.get_text()


def test_the_text_counts_pairs_and_names_the_first_difference():
    fit = POLA(relations.build("rpe", positions=16), 1, 1).fit("half", range(1, 9))
    text = operators_text("half", 16, fit)
    assert (
        "a triangle of 136 pairs" in text and "Operator 1 = 1 at 16 pairs: (0, 0), (1, 0)" in text
    )
    assert "differs at 77 of 136 pairs: (0, 0), (1, 0)" in text
    assert "The first one is 0.222 there instead of 1." in text
    many = operators_text("random-dense", 6)
    assert many.count("Operator ") == 6 and "15 operators are left out here." in many


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (np.array([[3]]), "3"),
        (np.array([[0.12345]]), "0.123"),
        (np.array([[Fraction(1, 3)]], dtype=object), "1/3"),
        (np.array([[1, 2], [0, -1]]), "[1 2; 0 -1]"),
        (np.eye(4), "a 4 x 4 matrix with first entry 1"),
    ],
)
def test_operators_are_written_shortly(operator, text):
    assert show_operator(operator) == text


def test_colours_of_neighbouring_numbers_differ():
    assert len({shade(id) for id in range(14)}) == 14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("band", 0), "scale must be a whole number"),
        (("band", LARGEST + 1), f"scales up to {LARGEST}, got {LARGEST + 1}"),
        (("bandd", 4), "did you mean 'band'"),
        (([[1, 2], [0, 1]], 2), "zero for j > i"),
        (([[1, 0], [0, 1]], 3), "defined up to scale 2"),
        (("band", 4, "rpe"), "pola is a fitted POLA or CodedPOLA, got str"),
        (("band", 4, POLA(relations.build("none"), 2, 2)), "are 1 x 1, those of the model 2 x 2"),
        (("band", 9, POLA(relations.build("rpe", positions=8), 1, 1)), "build it with a larger"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    for function in (operators_figure, operators_text):
        with pytest.raises(InputError) as caught:
            function(*arguments)
        assert message in str(caught.value) and "\n" not in str(caught.value)
