"""What does a sequence of a task look like at other scales? Choose a task and a scale."""

from __future__ import annotations

import ipywidgets

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.show.layout import layout_figure
from lgcourse.show.widgets.html import Picture, box, choice, limit, slider

LARGEST = 12  # largest scale of the explorer
LONGEST = 120  # tokens of its longest sequence: more would be neither quick nor readable


def explorable() -> list[str]:
    """Return the tasks that the explorer offers: those with a circuit at each of its scales."""
    return [name for name in tasks.names() if _has_circuits(name)]


def _has_circuits(name: str) -> bool:
    task = task_named(name)
    try:
        task.circuit(task.scale_of(largest(task)))
    except InputError:
        return False
    return True


def task_named(name: str, size: int = LARGEST):
    """Return a task; a padded one has one width at all scales, no larger than can be read."""
    return tasks.get_for(name, size)


def largest(task, most: int = LARGEST, longest: int = LONGEST) -> int:
    """Return the largest scale at which a sequence of a task is no longer than can be shown.

    >>> largest(task_named("copy", 30), 30), largest(task_named("multiply-scratchpad"), 30)
    (30, 6)
    """
    sizes = range(most, 0, -1)
    return next(
        (n for n in sizes if task.has_scale(task.scale_of(n)) and _fits(task, n, longest)), 1
    )


def _fits(task, size: int, longest: int) -> bool:
    return task.length(task.scale_of(size)) <= longest


def check_task(widget: str, name: object, names: list[str]) -> None:
    """Refuse a task that a widget does not offer."""
    if name not in names:
        raise InputError(f"the {widget} has no task '{name}'; it has {', '.join(names)}")


def check_scale(widget: str, name: str, scale: object, most: int) -> None:
    """Refuse what is no scale that a widget shows."""
    if isinstance(scale, bool) or not isinstance(scale, int) or not 1 <= scale <= most:
        raise InputError(f"the {widget} shows {name} 1..{most}, got {scale!r}")


def task_explorer(task: str = "addition", scale: int = 3) -> ipywidgets.VBox:
    """Make a widget: choose a task and a scale, see a sequence, its layout and the ideal relation.

    One HTML widget holds the picture and is changed in place; its size is fixed, so nothing jumps.

    Args:
        task: the task shown first.
        scale: the scale shown first, 1..12; a task with several sizes gets this one for each.

    Returns:
        A `VBox` with a drop-down list, a slider and the picture.

    Raises:
        InputError: the task is not offered, or the scale lies outside.

    >>> box = task_explorer("copy", 2)
    >>> "Task copy, scale 2" in box.children[-1].value
    True
    """
    names = explorable()
    check_task("explorer", task, names)
    check_scale("explorer", "scales", scale, LARGEST)
    which, size = choice("task", task, names), slider("scale n", scale, 1, LARGEST)
    picture = Picture()

    def draw(_=None) -> None:
        chosen = task_named(which.value)
        picture.show(lambda: layout_figure(chosen, chosen.scale_of(size.value)))

    def choose(_) -> None:
        if not limit(size, largest(task_named(which.value))):
            draw()

    size.max = largest(task_named(task))
    which.observe(choose, "value")
    size.observe(draw, "value")
    draw()
    return box([which, size], picture.widget)
