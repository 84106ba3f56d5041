"""How do the sources in course/ become notebooks, and how do we know that these are in step?

The only sources are ``course/lessons/NN_name.py`` and ``course/exercises/NN_name.py``:

==============================  ==============================================================
``course/lessons/NN_name.py``   ``notebooks/NN_name.ipynb``, run, with its outputs
``course/exercises/NN_name.py`` ``solutions/NN_name.ipynb``, run, with its outputs, and
                                ``exercises/NN_name.ipynb``, with stubs for what was cut
==============================  ==============================================================

`percent` says how a source is written, `cut` how a solution is marked and what a stub looks like.
"""

from __future__ import annotations

from .build import Problem, build, check
from .percent import Cell, parse

__all__ = ["Cell", "Problem", "build", "check", "parse"]
