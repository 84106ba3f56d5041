"""Pictures: pure functions from data to a figure, each with a text that says the same."""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.show",
    {
        "curve_figure": "curves",
        "curve_text": "curves",
        "png": "curves",
        "layout_figure": "layout",
        "layout_text": "layout",
        "layout_data": "layout",
        "alignment_data": "alignment",
        "alignment_figure": "alignment",
        "alignment_text": "alignment",
        "complexity_figure": "complexity",
        "complexity_text": "complexity",
        "explanation_data": "explanation",
        "explanation_figure": "explanation",
        "explanation_text": "explanation",
        "matrix_figure": "matrix",
        "matrix_text": "matrix",
        "operators_data": "operators",
        "operators_figure": "operators",
        "operators_text": "operators",
        "task_explorer": "widgets",
        "figure_html": "widgets",
        "image_html": "widgets",
    },
)
