"""How do the sources in course/ become notebooks, and how do we know that these are in step?

The only sources stand in ``course/``:

==============================  ==============================================================
``course/lessons/NN_name.py``   ``notebooks/NN_name.ipynb``, run, with its outputs
``course/exercises/NN_name.py`` ``solutions/NN_name.ipynb``, run, with its outputs, and
                                ``exercises/NN_name.ipynb``, with stubs for what was cut
``course/teachers/quiz.toml``   the quiz for a class, its key and a table to fill, beside it
==============================  ==============================================================

`percent` says how a source is written, `cut` how a solution is marked and what a stub looks like,
`opening` with what every notebook opens.
"""

from __future__ import annotations

from .build import Problem, build, check
from .percent import Cell, parse

__all__ = ["Cell", "Problem", "build", "check", "parse"]
