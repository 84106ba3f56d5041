"""How does a notebook run without Jupyter? Statement by statement; one that fails is told.

Magics and shell escapes are skipped. What comes after a statement that fails still runs, so that an
error in one cell does not cost the answers in others.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import re
from collections.abc import Callable, Sequence
from typing import Any

from lgcourse.grading.answers import place_of
from lgcourse.grading.sandbox.absent import stand_ins

Cell = tuple[int, str]  # its number among the code cells, from 1, and its source
MAGIC = re.compile(r"^\s*(%|!|\?)|\?\s*$|^\s*[\w.,\s]+=\s*(!|%\w)")
RUN_BODY = ("%%time", "%%timeit", "%%capture", "%%prun")
MOST = 20  # problems that are told


class Run:
    """A notebook that runs: its names, what went wrong, and what it defined more than once.

    Args:
        cells: the code cells.
        skip: (cell, statement) that are left out, since they ended an earlier process.
        names: the names that are watched for a second definition.
        at: called with (cell, statement) before each statement.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        skip: Sequence[tuple[int, int]],
        names: Sequence[str],
        at: Callable[[int, int], None],
    ):
        self.namespace: dict[str, Any] = {}
        self.problems: list[str] = []
        self.defined: dict[str, list[int]] = {name: [] for name in names}
        self._cells, self._skip, self._at = cells, {tuple(pair) for pair in skip}, at
        self._flags = 0

    def run(self) -> None:
        """Run all cells."""
        for number, source in self._cells:
            try:
                statements = parsed(source, cell_file(number))
            except Exception as error:  # SyntaxError, or what a text of NULs or deep nesting gives
                line = getattr(error, "lineno", None)
                where = f"cell {number}" + (f", line {line}" if line else "")
                self._tell(f"{where}: {type(error).__name__}: {getattr(error, 'msg', error)}")
                continue
            for index, statement in enumerate(statements):
                self._at(number, index)
                if (number, index) not in self._skip:
                    self._run(statement, number)

    def _run(self, statement: ast.stmt, number: int) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                self._flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
        try:
            module = ast.Module([statement], [])
            code = compile(module, cell_file(number), "exec", self._flags, dont_inherit=True)
            exec(code, self.namespace)
        except ModuleNotFoundError as error:
            package = str(error.name).split(".")[0]
            for name, stand_in in stand_ins(statement, package).items():
                self.namespace.setdefault(name, stand_in)
            self._tell(f"cell {number}: the package {package} is not installed here")
        except BaseException as error:  # SystemExit too: the rest is still graded
            place = place_of(error, None)
            words = " ".join(_words(error).split())[:200]
            self._tell(f"{place or f'cell {number}'}: {type(error).__name__}: {words}")
        for name in _defines(statement):
            if name in self.defined:
                self.defined[name].append(number)

    def _tell(self, problem: str) -> None:
        if len(self.problems) < MOST:
            self.problems.append(problem[:400])


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(no text)"


def _defines(statement: ast.stmt) -> list[str]:
    named = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    return [statement.name] if isinstance(statement, named) else []


def cell_file(number: int) -> str:
    """Return the file name that stands for a cell.

    >>> cell_file(3)
    '<cell 3>'
    """
    return f"<cell {number}>"


def parsed(source: str, file: str) -> list[ast.stmt]:
    """Return the statements of a cell, with ``pass`` for each magic.

    Only lines at which Python itself stops, and which look like a magic, are left out: ``% b)`` in
    a formula that goes on over lines stays.

    >>> len(parsed("%time\\nx = 1\\n!ls \\\\\\n -l\\ny = 2", "<cell 1>"))
    4

    Raises:
        SyntaxError: the rest is no Python.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        if lines[first].split()[0] not in RUN_BODY:
            return []
        lines[first] = ""
    linecache.cache[file] = (len(source), None, [line + "\n" for line in lines], file)
    for _ in lines:
        try:
            return ast.parse("\n".join(lines), file).body
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            if not 0 <= at < len(lines) or not MAGIC.search(lines[at]):
                raise
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            while lines[at].rstrip().endswith("\\") and at + 1 < len(lines):
                lines[at] = ""  # a shell command over several lines
                at += 1
            lines[at] = f"{indent}pass"
    return ast.parse("\n".join(lines), file).body
