"""Which tokens make the next one? Step through the circuit of a task, token by token."""

from __future__ import annotations

import ipywidgets

from lgcourse.errors import whole_number
from lgcourse.show.stepping import step_figure
from lgcourse.show.widgets.html import Picture, box, choice, limit, slider
from lgcourse.show.widgets.task import check_scale, check_task, explorable, largest, task_named

LARGEST = 30  # largest scale
LONGEST = 120  # tokens of the longest sequence


def step_explorer(task: str = "addition", scale: int = 3, step: int = 1) -> ipywidgets.VBox:
    """Make a widget: choose a task, a scale and a step, see which tokens the step reads.

    Args:
        task: the task shown first.
        scale: the scale shown first, 1..30; a task with several sizes gets this one for each.
        step: the step shown first, from 1.

    Returns:
        A `VBox` with a drop-down list, two sliders, a sample's number and the picture.

    Raises:
        InputError: the task is not offered, or a number lies outside.

    >>> "step 2 of 3" in step_explorer("copy", 3, 2).children[-1].value
    True
    """
    names = explorable()
    check_task("stepper", task, names)
    check_scale("stepper", "scales", scale, LARGEST)
    which, size = choice("task", task, names), slider("scale n", scale, 1, LARGEST)
    number, sample = slider("step", 1, 1, 1), slider("sample", 0, 0, 20)
    picture = Picture()

    def chosen():
        made = task_named(which.value, LARGEST)
        return made, made.scale_of(size.value)

    def draw(_=None) -> None:
        made, scale = chosen()
        picture.show(lambda: step_figure(made, scale, number.value, sample.value))

    def resize(_=None) -> None:
        made, scale = chosen()
        if not limit(number, len(made.circuit(scale))):
            draw()

    def choose(_=None) -> None:
        if not limit(size, largest(task_named(which.value, LARGEST), LARGEST, LONGEST)):
            resize()

    limit(size, largest(task_named(task, LARGEST), LARGEST, LONGEST))
    made, start = chosen()
    number.max = len(made.circuit(start))
    number.value = whole_number("step", step, 1, number.max)
    which.observe(choose, "value")
    size.observe(resize, "value")
    for control in (number, sample):
        control.observe(draw, "value")
    draw()
    return box([which, size, number, sample], picture.widget)
