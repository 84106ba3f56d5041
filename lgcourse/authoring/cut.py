"""Which part of an exercise is the solution, and what does a student find in its place?

A solution stands between two lines of a code cell::

    def relative(query, key):
        \"\"\"Return the id of each pair.\"\"\"
        ### BEGIN SOLUTION
        return query - key
        ### END SOLUTION

The student's notebook has one line instead, at the indentation of the first marker::

    def relative(query, key):
        \"\"\"Return the id of each pair.\"\"\"
        return ...  # your code here

The convention is that ``...`` (Ellipsis) means "not attempted": a stub returns it, a check that
gets it says so and does not raise, and an unfilled notebook runs to its end. The stub is

- ``return ...`` inside a function,
- ``...`` where no value can be returned: in ``__init__``, in a class body, outside functions,
- what the author writes after AS: ``### BEGIN SOLUTION AS weights = ...`` leaves
  ``weights = ...  # your code here``. Use it when later cells need the name.

A cell tagged "solution" is cut as a whole; a cell tagged "student" stands in exercises/ only.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lgcourse.errors import InputError

from .percent import Cell

BEGIN = re.compile(r"(?P<indent>\s*)### BEGIN SOLUTION(?: AS (?P<stub>\S.*?))?\s*")
END = re.compile(r"\s*### END SOLUTION\s*")
# Wider than the two: a marker with a slip in it must stop the build, not show the solution.
NEARLY = re.compile(r"###\s*(?:begin|end)\b|#\s*(?:begin|end)[\s_-]*sol", re.IGNORECASE)
HINT = "  # your code here"


@dataclass(frozen=True)
class Block:
    """A marked solution: lines[begin] and lines[end] of the cell are the markers."""

    begin: int
    end: int
    indent: str
    stub: str


def lesson(cells: Sequence[Cell], name: str) -> list[Cell]:
    """Return the cells of a lesson.

    Args:
        cells: the cells of the source.
        name: what error messages call the file.

    Raises:
        InputError: with file and line, if it holds a solution or code that does not compile.
    """
    for cell in cells:
        marked = _blocks(cell, name)
        if marked or {"solution", "student"} & set(cell.tags):
            line = cell.line + (marked[0].begin if marked else 0)
            raise InputError(f"{name}:{line}: a lesson has no solution; write it as an exercise")
        _check_code(cell, name)
    return list(cells)


def solution(cells: Sequence[Cell], name: str) -> list[Cell]:
    """Return the cells of a notebook with solutions: the markers and the student's cells are gone.

    Args:
        cells: the cells of the source.
        name: what error messages call the file.

    Raises:
        InputError: with file and line, for markers without a pair or code that does not compile.

    >>> source = "### BEGIN SOLUTION AS w = ...\\nw = 3\\n### END SOLUTION\\nw"
    >>> solution([Cell("code", source)], "01_a.py")[0].source
    'w = 3\\nw'
    """
    return [
        _without_blocks(cell, name, stubs=False)
        for cell in _checked(cells, name)
        if "student" not in cell.tags
    ]


def student(cells: Sequence[Cell], name: str) -> list[Cell]:
    """Return the cells of a student's notebook: stubs stand for solutions.

    Args:
        cells: the cells of the source.
        name: what error messages call the file.

    Raises:
        InputError: with file and line, for markers without a pair or code that does not compile.

    >>> source = "### BEGIN SOLUTION AS w = ...\\nw = 3\\n### END SOLUTION\\nw"
    >>> student([Cell("code", source)], "01_a.py")[0].source
    'w = ...  # your code here\\nw'
    """
    return [
        _without_blocks(cell, name, stubs=True)
        for cell in _checked(cells, name)
        if "solution" not in cell.tags
    ]


def _checked(cells: Sequence[Cell], name: str) -> Sequence[Cell]:
    for cell in cells:
        if {"solution", "student"} <= set(cell.tags):
            raise InputError(f"{name}:{cell.line}: a cell is for solution or student, not both")
    return cells


def _without_blocks(cell: Cell, name: str, stubs: bool) -> Cell:
    """Take the markers from a cell, and with `stubs` what stands between them."""
    blocks = _blocks(cell, name)
    # Before cutting, so that a mistake in the source is not reported as one of the stub.
    _check_code(cell, name)
    lines = cell.source.split("\n")
    for block in reversed(blocks):
        body = lines[block.begin + 1 : block.end]
        if stubs:
            body = [block.indent + _stub(cell, block, name) + HINT]
        lines[block.begin : block.end + 1] = body
    result = replace(cell, source="\n".join(lines))
    if blocks:
        _check_code(result, name, "with the stub or without the markers ")
    return result


def _blocks(cell: Cell, name: str) -> list[Block]:
    """Find the marked solutions of a cell."""
    blocks: list[Block] = []
    begin: tuple[int, re.Match[str]] | None = None
    for index, line in enumerate(cell.source.split("\n")):
        if not NEARLY.search(line):
            continue
        where = f"{name}:{cell.line + index}"
        opens, closes = BEGIN.fullmatch(line), END.fullmatch(line)
        if cell.kind == "markdown":
            raise InputError(f'{where}: text is cut by the cell; tag it tags=["solution"]')
        if not opens and not closes:
            wanted = "'### BEGIN SOLUTION', with or without ' AS name = ...', or '### END SOLUTION'"
            raise InputError(f"{where}: a marker is {wanted}, got {line.strip()!r}")
        if opens and begin:
            raise InputError(f"{where}: a solution starts inside one that is still open")
        if closes and not begin:
            raise InputError(f"{where}: END SOLUTION without a BEGIN SOLUTION before it")
        if opens:
            begin = index, opens
        elif begin:
            blocks.append(Block(begin[0], index, begin[1]["indent"], begin[1]["stub"] or ""))
            begin = None
    if begin:
        raise InputError(f"{name}:{cell.line + begin[0]}: BEGIN SOLUTION without an END SOLUTION")
    return blocks


def _stub(cell: Cell, block: Block, name: str) -> str:
    """Return the statement that stands for a block."""
    body = cell.source.split("\n")[block.begin + 1 : block.end]
    code = [index for index, line in enumerate(body) if not re.fullmatch(r"\s*(#.*)?", line)]
    if not code:
        raise InputError(f"{name}:{cell.line + block.begin}: the solution holds no code")
    return block.stub or ("return ..." if _returns(cell, block.begin + 2 + code[0]) else "...")


def _returns(cell: Cell, line: int) -> bool:
    """Tell whether ``return`` with a value may stand on a line of a cell, counted from 1."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    scopes = [
        node
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, (*functions, ast.ClassDef))
        and node.lineno < line <= (node.end_lineno or 0)
    ]
    innermost = max(scopes, key=lambda node: node.lineno, default=None)
    return isinstance(innermost, functions) and innermost.name != "__init__"


def _check_code(cell: Cell, name: str, when: str = "") -> None:
    """Refuse code that does not compile: a stub in the wrong place, a magic, a slip."""
    if cell.kind == "markdown":
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are shown where the cell runs
            compile(cell.source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = cell.line + (getattr(error, "lineno", None) or 1) - 1
        reason = getattr(error, "msg", error)
        raise InputError(f"{name}:{line}: {when}this is not Python: {reason}") from None
