"""Widgets: controls choose data, a figure shows it. Needs ipywidgets (the extra ``course``).

Each name below but the first two makes a `VBox`: controls, and one picture that is changed in
place. `explorer` shows them all, one at a time.
"""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.show.widgets",
    {
        "figure_html": "html",
        "image_html": "html",
        "task_explorer": "task",
        "step_explorer": "step",
        "relation_explorer": "relation",
        "lrc_explorer": "lrc",
        "src_explorer": "src",
        "attention_viewer": "attention",
        "training_monitor": "monitor",
        "generalisation_quiz": "quiz",
        "gates_viewer": "gates",
        "hint_explorer": "hint",
        "explorer": "all",
    },
)
