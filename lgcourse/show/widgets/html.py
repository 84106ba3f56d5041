"""How does a notebook show a figure? As an HTML image with its text, static or changed in place."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from typing import Any

import ipywidgets
from IPython.display import HTML, display
from matplotlib.figure import Figure

from lgcourse.errors import InputError

DPI = 110
QUICK = {"compress_level": 1}  # a third of the time of the usual level, for some more bytes
STATIC = "lgcourse-static"
HIDDEN = "".join(
    f"<style>{area}:has(.jupyter-widgets.widget-vbox) .{STATIC} {{ display: none }}</style>"
    for area in (".jp-OutputArea", ".output")
)
FITS = ' style="max-width: 100%; height: auto"'  # a narrow page shrinks it, and keeps its shape


def image_html(figure: Figure, dpi: int = DPI) -> str:
    """Return a figure as an HTML img element that holds the picture and its alternative text.

    Notebook front ends read alternative texts from HTML only, not from the metadata of an image.

    Args:
        figure: a figure of `lgcourse.show`, with its text in ``figure.alt``.
        dpi: pixels per inch.

    Raises:
        InputError: the figure has no alternative text.

    >>> from lgcourse.show import curve_figure
    >>> image_html(curve_figure({"rpe": {10: 1.0}}, train_scale=10))[:36]
    '<img width="704" height="396" alt="E'
    """
    return _image(figure, dpi, {})


def _image(figure: Figure, dpi: int, options: dict[str, Any], style: str = "") -> str:
    alt = getattr(figure, "alt", "")
    if not alt:
        raise InputError("the figure has no text alternative; set figure.alt")
    width, height = (round(dpi * inches) for inches in figure.get_size_inches())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Description": alt}, pil_kwargs=options)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<img width="{width}" height="{height}" alt="{html.escape(alt)}" '
        f'src="data:image/png;base64,{data}"{style}>'
    )


def figure_html(figure: Figure, dpi: int = DPI) -> HTML:
    """Return a figure as a static picture for a notebook; the last line of a cell shows it.

    Args:
        figure: a figure of `lgcourse.show`, with its text in ``figure.alt``.
        dpi: pixels per inch.

    Raises:
        InputError: the figure has no alternative text.
    """
    return HTML(image_html(figure, dpi))


class Picture:
    """One HTML widget whose picture is changed in place, so that nothing flickers.

    The figures of a widget have one size, and the img element states it: nothing jumps either.

    Args:
        dpi: pixels per inch.

    >>> from lgcourse.show import curve_figure
    >>> picture = Picture()
    >>> picture.show(lambda: curve_figure({"rpe": {10: 1.0}}, train_scale=10))
    >>> picture.widget.value[:36]
    '<img width="640" height="360" alt="E'
    """

    def __init__(self, dpi: int = 100):
        self.dpi = dpi
        self.widget = ipywidgets.HTML(layout={"overflow": "auto"})

    def show(self, draw: Callable[[], Figure]) -> None:
        """Draw; what cannot be drawn is said in words, since a widget has nowhere to raise it."""
        try:
            self.widget.value = _image(draw(), self.dpi, QUICK, FITS)
        except InputError as error:
            self.widget.value = f'<p role="alert">{html.escape(str(error))}</p>'


def slider(name: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    """Return a slider that reports where it is let go, not every place on the way."""
    return ipywidgets.IntSlider(
        value=value,
        min=least,
        max=most,
        description=name,
        continuous_update=False,
        style={"description_width": "initial"},
        layout={"width": "320px"},
    )


def choice(name: str, value: Any, options: Any) -> ipywidgets.Dropdown:
    """Return a drop-down list."""
    return ipywidgets.Dropdown(
        options=options,
        value=value,
        description=name,
        style={"description_width": "initial"},
        layout={"width": "260px"},
    )


def limit(control: ipywidgets.IntSlider, most: int) -> bool:
    """Set the largest value of a slider; return whether that moved it, and so had it drawn."""
    before = control.value
    control.max = max(control.min, most)
    return control.value != before


class Box(ipywidgets.VBox):
    """A `VBox` that leaves a static picture in the notebook, for when no kernel answers.

    A front end that shows the widget hides the picture; one that cannot (a notebook that was saved,
    copied or exported) shows it. The rule is CSS, so that no script is needed.
    """

    def _ipython_display_(self, **options: Any) -> None:
        data = self._repr_mimebundle_(**options)
        display(data[0] if isinstance(data, tuple) else data, raw=True)
        pictures = [part.value for part in self.children if isinstance(part, ipywidgets.HTML)]
        display(HTML(f'<div class="{STATIC}">{"".join(pictures)}</div>{HIDDEN}'))


def box(controls: Any, *rest: Any) -> ipywidgets.VBox:
    """Return the controls in a row that may wrap, and below it the rest."""
    row = ipywidgets.HBox(list(controls), layout={"flex_flow": "row wrap", "grid_gap": "4px 16px"})
    return Box([row, *rest])
