"""How is a lesson written as a Python file?

A source is a list of cells. Each starts with a marker line::

    # %%                                              code
    # %% Train the model tags=["nbval-check-output"]  code, with a title and a tag
    # %% [markdown]                                   text: every line below starts with "# "
    # %% Why it works [markdown] tags=["solution"]    text, with a title and a tag

Before the first marker only blank lines, comments and one docstring may stand; they tell an author
what the file is for and reach no notebook. Blank lines at both ends of a cell do not count.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lgcourse.errors import InputError, unknown_name

TAGS = (
    "solution",  # the cell stands in solutions/ only
    "student",  # the cell stands in exercises/ only
    "nbval-check-output",
    "nbval-ignore-output",
    "nbval-skip",
    "raises-exception",
    "hide-input",
)


@dataclass(frozen=True)
class Cell:
    """One cell of a source; `line` is the line of the file on which its text starts."""

    kind: Literal["code", "markdown"]
    source: str
    tags: tuple[str, ...] = ()
    title: str = ""
    line: int = field(default=0, compare=False)


def parse(text: str, name: str = "source") -> list[Cell]:
    r"""Split the text of a source into its cells.

    Args:
        text: the text of a percent-format file; all kinds of line ends are accepted.
        name: what error messages call the file, in general its path.

    Returns:
        The cells in order. `render` is the inverse, up to line ends and blank lines around cells.

    Raises:
        InputError: with file and line, for a marker that cannot be read, an unknown tag, a line of
            text without "# ", or code before the first marker.

    >>> parse('# %% [markdown]\n# # Copy\n\n# %% tags=["nbval-check-output"]\n1 + 1\n')
    ... # doctest: +NORMALIZE_WHITESPACE
    [Cell(kind='markdown', source='# Copy', tags=(), title='', line=2),
     Cell(kind='code', source='1 + 1', tags=('nbval-check-output',), title='', line=5)]
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [index for index, line in enumerate(lines) if re.match(r"#\s*%%", line)]
    _check_header(lines[: starts[0]] if starts else lines, name)
    if not starts:
        raise InputError(f"{name}:1: no cell found; a cell starts with a line '# %%'")
    ends = [*starts[1:], len(lines)]
    return [_cell(lines, start, end, name) for start, end in zip(starts, ends, strict=True)]


def render(cells: Sequence[Cell]) -> str:
    r"""Write cells as the text of a source.

    Args:
        cells: the cells in order.

    Returns:
        The text; `parse` gives the cells back.

    >>> print(render([Cell("markdown", "Two\n\nlines", title="Say it"), Cell("code", "1 + 1")]))
    # %% Say it [markdown]
    # Two
    #
    # lines
    <BLANKLINE>
    # %%
    1 + 1
    <BLANKLINE>
    """
    return "\n".join(_render(cell) for cell in cells)


def _render(cell: Cell) -> str:
    kind = "[markdown]" if cell.kind == "markdown" else ""
    tags = f"tags={json.dumps(cell.tags)}" if cell.tags else ""
    lines = cell.source.split("\n") if cell.source else []
    if cell.kind == "markdown":
        lines = [f"# {line}" if line else "#" for line in lines]
    marker = " ".join(part for part in ("# %%", cell.title, kind, tags) if part)
    return "\n".join([marker, *lines]) + "\n"


def _check_header(lines: list[str], name: str) -> None:
    """Allow comments and a docstring before the first cell, and nothing that would be lost."""
    wanted = "before the first '# %%' only comments and one docstring may stand"
    try:
        module = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{name}:{getattr(error, 'lineno', None) or 1}: {wanted}") from None
    has_docstring = ast.get_docstring(module) is not None
    for statement in module.body[int(has_docstring) :]:
        raise InputError(f"{name}:{statement.lineno}: {wanted}")


def _cell(lines: list[str], start: int, end: int, name: str) -> Cell:
    """Read the cell whose marker is lines[start] and whose text ends before lines[end]."""
    kind, title, tags = _marker(lines[start], f"{name}:{start + 1}")
    body = lines[start + 1 : end]
    if kind == "markdown":
        body = [_text(line, f"{name}:{start + 2 + index}") for index, line in enumerate(body)]
    filled = [index for index, line in enumerate(body) if line.strip()]
    if not filled:
        return Cell(kind, "", tags, title, line=start + 1)
    first, last = filled[0], filled[-1]
    return Cell(kind, "\n".join(body[first : last + 1]), tags, title, line=start + 2 + first)


def _text(line: str, where: str) -> str:
    """Take the comment sign from a line of a markdown cell."""
    if line.startswith("# "):
        return line[2:]
    if line.strip() in ("", "#"):
        return ""
    raise InputError(f"{where}: a line of a markdown cell starts with '# ', got {line!r}")


def _marker(line: str, where: str) -> tuple[Literal["code", "markdown"], str, tuple[str, ...]]:
    """Read ``# %% title [markdown] tags=[...]``."""
    if line.rstrip() != "# %%" and not line.startswith("# %% "):
        raise InputError(f"{where}: a cell starts with '# %%' and a space, got {line!r}")
    rest, tagged, tags = line[len("# %%") :].partition("tags=")
    before, text, after = rest.partition("[markdown]")
    title = f"{before.strip()} {after.strip()}".strip()
    if "[" in title or "]" in title:
        raise InputError(f"{where}: the only cell type to name is [markdown], got {line!r}")
    if re.search(r"\w=", title):
        raise InputError(f"{where}: the only option of a cell is tags=[...], got {line!r}")
    return ("markdown" if text else "code"), title, _tags(tags, where) if tagged else ()


def _tags(listed: str, where: str) -> tuple[str, ...]:
    """Read the list after ``tags=``; a misspelt tag would show a solution, so it is refused."""
    try:
        tags = json.loads(listed)
    except ValueError:
        tags = None
    if not (isinstance(tags, list) and tags and all(isinstance(tag, str) for tag in tags)):
        wanted = 'tags=["one", "two"] at the end of the line'
        raise InputError(f"{where}: tags are written {wanted}, got 'tags={listed}'")
    for tag in tags:
        if tag not in TAGS:
            raise InputError(f"{where}: {unknown_name('tag', tag, TAGS)}")
    if len(set(tags)) < len(tags):
        raise InputError(f"{where}: a tag stands twice in tags={listed}")
    return tuple(tags)
