"""Do the controls of a widget change what is shown? Asked of its data, without a kernel."""

from __future__ import annotations

import base64
import html
import re

import pytest
from matplotlib.figure import Figure

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.show.curves import curve_figure
from lgcourse.show.layout import layout_figure, layout_text

ipywidgets = pytest.importorskip("ipywidgets")

from lgcourse.show.widgets import figure_html, image_html, task_explorer  # noqa: E402
from lgcourse.show.widgets.task import LARGEST, LONGEST, explorable  # noqa: E402


def parts(box):
    controls, picture = box.children
    return (*controls.children, picture)


def first(pattern, value):
    found = re.search(pattern, value)
    assert found is not None
    return found[1]


def alt(value):
    return html.unescape(first('alt="([^"]*)"', value))


def test_an_image_carries_its_text_and_a_png():
    figure = curve_figure({'a "b" <c>': {10: 1.0}}, train_scale=10)
    value = image_html(figure)
    assert alt(value) == getattr(figure, "alt", "") and "<c>" in alt(value)
    data = base64.b64decode(first('base64,([^"]+)', value))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    size = [int.from_bytes(data[at : at + 4], "big") for at in (16, 20)]
    assert value.startswith(f'<img width="{size[0]}" height="{size[1]}" ')


def test_a_static_figure_is_displayed_as_that_image():
    figure = layout_figure(tasks.get("copy"), 2)
    assert figure_html(figure).data == image_html(figure)


def test_a_figure_without_a_text_is_refused():
    with pytest.raises(InputError, match="no text alternative"):
        figure_html(Figure())


def test_each_control_changes_the_picture_in_place():
    box = task_explorer("copy", 3)
    choice, slider, picture = parts(box)
    assert alt(picture.value) == layout_text(tasks.get("copy"), 3)
    seen = {picture.value}
    slider.value = 5
    assert alt(picture.value) == layout_text(tasks.get("copy"), 5)
    seen.add(picture.value)
    choice.value = "reverse"
    assert alt(picture.value) == layout_text(tasks.get("reverse"), 5)
    seen.add(picture.value)
    assert len(seen) == 3 and parts(box)[2] is picture
    assert len({first("^(<img width=.*? height=.*? )", value) for value in seen}) == 1


def test_the_static_figure_says_what_the_widget_starts_with():
    picture, static = (
        parts(task_explorer("addition", 3))[2],
        layout_figure(tasks.get("addition"), 3),
    )
    assert alt(picture.value) == alt(image_html(static))


def test_a_padded_task_has_one_width_at_all_scales():
    _, slider, picture = parts(task_explorer("parity-cot-padded", 2))
    length = first(r"one sequence of (\d+) tokens", picture.value)
    slider.value = LARGEST
    assert f"one sequence of {length} tokens" in picture.value


def test_long_tasks_stop_at_a_readable_length():
    choice, slider, picture = parts(task_explorer("copy", LARGEST))
    choice.value = "multiply-scratchpad"
    task = tasks.get("multiply-scratchpad")
    size = slider.max
    assert slider.value == size < LARGEST
    assert task.length((size, size)) <= LONGEST < task.length((size + 1, size + 1))
    assert f"scale {size}x{size}" in picture.value
    choice.value = "copy"
    assert slider.max == LARGEST and f"Task copy, scale {size}:" in picture.value


def test_the_widget_is_made_for_keyboards_and_quiet():
    choice, slider, picture = parts(task_explorer())
    assert slider.continuous_update is False and (slider.min, slider.max) == (1, LARGEST)
    assert choice.description and slider.description
    assert type(picture) is ipywidgets.HTML


def test_the_list_has_the_tasks_with_a_circuit():
    names = explorable()
    assert {"copy", "addition", "addition-padded", "parity-direct"} <= set(names)
    assert not {"sort", "majority", "copy-unique", "copy-repeat"} & set(names)


@pytest.mark.parametrize(("task", "scale"), [("sort", 3), ("none", 3), ("copy", 0), ("copy", 13)])
def test_what_cannot_be_explored_is_refused(task, scale):
    with pytest.raises(InputError, match="the explorer"):
        task_explorer(task, scale)
