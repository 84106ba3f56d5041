"""How does a notebook show pictures? As HTML images with their texts; widgets choose the data.

The only file of this room that needs ipywidgets (the extra ``course``).
"""

from __future__ import annotations

import base64
import html

import ipywidgets
from IPython.display import HTML
from matplotlib.figure import Figure

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.show.curves import png
from lgcourse.show.layout import layout_figure

LARGEST = 12  # largest scale of the explorer
LONGEST = 120  # tokens of its longest sequence: more would be neither quick nor readable
DPI = 110


def image_html(figure: Figure, dpi: int = DPI) -> str:
    """Return a figure as an HTML img element that holds the picture and its alternative text.

    Notebook front ends read alternative texts from HTML only, not from the metadata of an image.

    Args:
        figure: a figure of this room, with its text in ``figure.alt``.
        dpi: pixels per inch.

    Raises:
        InputError: the figure has no alternative text.

    >>> from lgcourse.show import curve_figure
    >>> image_html(curve_figure({"rpe": {10: 1.0}}, train_scale=10))[:36]
    '<img width="704" height="396" alt="E'
    """
    alt = getattr(figure, "alt", "")
    if not alt:
        raise InputError("the figure has no text alternative; set figure.alt")
    width, height = (round(dpi * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(png(figure, dpi)).decode()
    return (
        f'<img width="{width}" height="{height}" alt="{html.escape(alt)}" '
        f'src="data:image/png;base64,{data}">'
    )


def figure_html(figure: Figure, dpi: int = DPI) -> HTML:
    """Return a figure as a static picture for a notebook; the last line of a cell shows it.

    Args:
        figure: a figure of this room, with its text in ``figure.alt``.
        dpi: pixels per inch.

    Raises:
        InputError: the figure has no alternative text.
    """
    return HTML(image_html(figure, dpi))


def explorable() -> list[str]:
    """Return the tasks that the explorer offers: those with a circuit at each of its scales."""
    return [name for name in tasks.names() if _has_circuits(name)]


def _has_circuits(name: str) -> bool:
    task = _task(name)
    try:
        task.circuit(task.scale_of(_largest(task)))
    except InputError:
        return False
    return True


def _task(name: str):
    # a padded task has one width at all scales; the usual 100 would be too wide to read
    return tasks.get_for(name, LARGEST)


def _largest(task) -> int:
    """Return the largest scale at which the explorer shows a task."""
    sizes = range(LARGEST, 0, -1)
    return next(size for size in sizes if task.length(task.scale_of(size)) <= LONGEST)


def task_explorer(task: str = "addition", scale: int = 3) -> ipywidgets.VBox:
    """Make a widget: choose a task and a scale, see a sequence, its layout and the ideal relation.

    One HTML widget holds the picture and is changed in place; its size is fixed, so nothing jumps.

    Args:
        task: the task shown first.
        scale: the scale shown first, 1..12; a task with several sizes gets this one for each.

    Returns:
        A `VBox` with a drop-down list, a slider and the picture.

    >>> box = task_explorer("copy", 2)
    >>> "Task copy, scale 2" in box.children[-1].value
    True
    """
    names = explorable()
    if task not in names:
        raise InputError(f"the explorer has no task '{task}'; it has {', '.join(names)}")
    if isinstance(scale, bool) or not isinstance(scale, int) or not 1 <= scale <= LARGEST:
        raise InputError(f"the explorer shows scales 1..{LARGEST}, got {scale!r}")
    choice = ipywidgets.Dropdown(options=names, value=task, description="task")
    slider = ipywidgets.IntSlider(
        value=scale, min=1, max=LARGEST, description="scale n", continuous_update=False
    )
    picture = ipywidgets.HTML(layout={"min_height": "860px", "overflow": "auto"})

    def draw(_=None) -> None:
        chosen = _task(choice.value)
        picture.value = image_html(layout_figure(chosen, chosen.scale_of(slider.value)))

    def choose(_) -> None:
        before = slider.value
        slider.max = _largest(_task(choice.value))  # a smaller one moves the slider, which draws
        if slider.value == before:
            draw()

    slider.max = _largest(_task(task))
    choice.observe(choose, "value")
    slider.observe(draw, "value")
    draw()
    return ipywidgets.VBox([ipywidgets.HBox([choice, slider]), picture])
