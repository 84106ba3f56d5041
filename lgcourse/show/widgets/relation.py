"""Which ids do operands have at two scales? Choose a relation, a task, and the scales."""

from __future__ import annotations

from typing import Any

import ipywidgets

from lgcourse import relations
from lgcourse.errors import unknown_name
from lgcourse.relations.base import Relation
from lgcourse.show.pairs import relation_figure
from lgcourse.show.widgets.html import Picture, box, choice, limit, slider
from lgcourse.show.widgets.task import check_scale, check_task, explorable, largest, task_named

LARGEST = 30  # largest scale
LONGEST = 120  # tokens of the longest sequence


def relation_explorer(
    relation: Any = "rpe", task: str = "copy", left: int = 3, right: int = 5
) -> ipywidgets.VBox:
    """Make a widget: choose a relation, a task and two scales, see all ids side by side.

    Args:
        relation: the relation shown first: a name in `lgcourse.relations`, or a `Relation` of your
            own, which then is one more of the list.
        task: the task shown first.
        left, right: the scales shown first, 1..30; a task with several sizes gets them for each.

    Returns:
        A `VBox` with two drop-down lists, two sliders and the picture.

    Raises:
        InputError: the relation is unknown, the task is not offered, or a scale lies outside.

    >>> "Scale 3: 28 pairs" in relation_explorer().children[-1].value
    True
    """
    known: dict[str, Any] = {name: name for name in relations.names()}
    if isinstance(relation, Relation):
        known[f"yours: {relation.name}"] = relation
    elif relation not in known:
        raise unknown_name("relation", relation, known)
    names = explorable()
    check_task("relation explorer", task, names)
    for scale in (left, right):
        check_scale("relation explorer", "scales", scale, LARGEST)
    of = choice("relation", relation, list(known.items()))
    which = choice("task", task, names)
    sizes = [slider("left scale", left, 1, LARGEST), slider("right scale", right, 1, LARGEST)]
    picture = Picture()
    busy = False

    def draw(_=None) -> None:
        if busy:
            return
        made = task_named(which.value, LARGEST)
        scales = [made.scale_of(size.value) for size in sizes]
        picture.show(lambda: relation_figure(of.value, made, scales))

    def choose(_=None) -> None:
        nonlocal busy
        busy = True  # both sliders may move: one picture is enough
        most = largest(task_named(which.value, LARGEST), LARGEST, LONGEST)
        for size in sizes:
            limit(size, most)
        busy = False
        draw()

    which.observe(choose, "value")
    for control in (of, *sizes):
        control.observe(draw, "value")
    choose()
    return box([of, which, *sizes], picture.widget)
