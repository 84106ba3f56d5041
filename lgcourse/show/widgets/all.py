"""Which widgets are there? One page for all of them, each made when it is chosen."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import ipywidgets

from lgcourse.errors import unknown_name


@dataclass(frozen=True)
class Entry:
    """One widget of the explorer.

    Args:
        title: what the list calls it.
        place: ``"module:function"`` in this package.
        words: what to try, in a sentence or two.
    """

    title: str
    place: str
    words: str

    def make(self) -> ipywidgets.VBox:
        """Make the widget as it is at first."""
        module, function = self.place.split(":")
        maker: Callable[[], ipywidgets.VBox] = getattr(
            import_module(f"lgcourse.show.widgets.{module}"), function
        )
        return maker()


ENTRIES = {
    "task": Entry(
        "Tasks: layout and ideal relation", "task:task_explorer",
        "What does a sequence look like, and what does each step read? Move the scale and see "
        "which lines move.",
    ),
    "step": Entry(
        "Steps: which tokens make the next one", "step:step_explorer",
        "Step through an answer. How many different operators are there, and which operand is "
        "farthest away?",
    ),
    "relation": Entry(
        "Relations: ids at two scales", "relation:relation_explorer",
        "Framed pairs are what a step reads. Does the same id stand there at both scales?",
    ),
    "lrc": Entry(
        "LRC: edit a target", "lrc:lrc_explorer",
        "Which targets need new operators at each scale, and which of them stay at a small rank?",
    ),
    "src": Entry(
        "SRC: edit a circuit", "src:src_explorer",
        "Unit operators of the circuit, and those that a relation induces. Which relation adds "
        "none?",
    ),
    "attention": Entry(
        "Attention of a trained model", "attention:attention_viewer",
        "A small model learned to reverse up to 6 digits. Does it look at the right place at 30?",
    ),
    "gates": Entry(
        "Gates of a learned relation", "gates:gates_viewer",
        "Twelve forms compete in each head. Move the update: when is it decided?",
    ),
    "hint": Entry(
        "A wrong Scale Hint", "hint:hint_explorer",
        "Tell the model one more or one less than the truth. Which keys does it read then?",
    ),
    "monitor": Entry(
        "Train and watch", "monitor:training_monitor",
        "Choose an embedding and train. Do far scales come later than near ones, or never?",
    ),
    "quiz": Entry(
        "Will it generalise? A quiz", "quiz:generalisation_quiz",
        "Guess first. Then see what theory says, and what five or ten trainings showed.",
    ),
}  # fmt: skip


def explorer(first: str = "task") -> ipywidgets.VBox:
    """Make a widget that shows all others, one at a time; each is made when it is first chosen.

    Args:
        first: the one shown first, a key of `ENTRIES`.

    Returns:
        A `VBox` with a drop-down list, a sentence, and the chosen widget.

    Raises:
        InputError: there is no such widget.

    >>> len(explorer("relation").children[2].children)
    1
    """
    if first not in ENTRIES:
        raise unknown_name("widget", first, ENTRIES)
    which = ipywidgets.Dropdown(
        options=[(entry.title, key) for key, entry in ENTRIES.items()],
        value=first,
        description="look at",
        layout={"width": "420px"},
    )
    words, place = ipywidgets.HTML(), ipywidgets.VBox()
    made: dict[str, ipywidgets.VBox] = {}

    def show(_=None) -> None:
        entry = ENTRIES[which.value]
        words.value = f"<p>{html.escape(entry.words)}</p>"
        if which.value not in made:
            place.children = [ipywidgets.HTML("<p>One moment ...</p>")]
            made[which.value] = entry.make()
        place.children = [made[which.value]]

    which.observe(show, "value")
    show()
    return ipywidgets.VBox([which, words, place])
