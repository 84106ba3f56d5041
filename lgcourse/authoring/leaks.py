"""Does a student's notebook hold a line of the solution, in whatever place?

The search reads the source by itself and does not use `cut`: a fault there must show here.
"""

from __future__ import annotations

import json
import re

from .texts import strings

SHORTEST = 12  # shorter lines, such as "return x", stand in many innocent places


def leaks(source: str, notebook: str) -> list[str]:
    r"""Return the lines of the solution that a student's notebook holds.

    A line counts if it has at least `SHORTEST` characters and does not occur in the part of the
    source that students see. Spaces, quotes and backslashes are ignored on both sides, so that a
    line is also found in a traceback, in HTML or in another layout.

    Args:
        source: the text of the exercise's source.
        notebook: the text of the student's notebook file, JSON or not.

    >>> source = "# %%\n### BEGIN SOLUTION\nanswer = 6 * 7  # why\n### END SOLUTION\nprint(1)"
    >>> leaks(source, '{"metadata": {"note": "answer = 6*7 # why"}}')
    ['answer = 6 * 7  # why']
    """
    hidden, visible = _split(source)
    try:
        texts = list(strings(json.loads(notebook)))
    except ValueError:
        texts = [notebook]
    shown = _squeeze("\n".join(visible))
    found = "\0".join(_squeeze(text) for text in texts)
    return [
        line
        for line in dict.fromkeys(hidden)
        if len(line) >= SHORTEST and _squeeze(line) not in shown and _squeeze(line) in found
    ]


def _split(source: str) -> tuple[list[str], list[str]]:
    """Return the lines of the solution and the other lines, without indentation."""
    hidden: list[str] = []
    visible: list[str] = []
    in_cell = in_block = in_text = False
    for line in source.splitlines():
        if line.startswith("# %%"):
            marker, _, tags = line.partition("tags=")
            in_cell, in_block, in_text = '"solution"' in tags, False, "[markdown]" in marker
        elif "### BEGIN SOLUTION" in line:
            in_block = True
            visible.append(line)  # a stub may stand in it
        elif "### END SOLUTION" in line:
            in_block = False
        elif in_cell or in_block:
            hidden.append((line.removeprefix("# ") if in_text else line).strip())
        else:
            visible.append(line)
    return hidden, visible


def _squeeze(text: str) -> str:
    return re.sub(r"[\s\\\"']", "", text)
