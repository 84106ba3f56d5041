"""Which notebooks are out of step with course/, and how are they brought back into step?

`build` and `check` make the same text for each notebook; one writes it, the other compares it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from lgcourse.errors import InputError

from .execute import execute as run
from .leaks import leaks
from .notebook import code_cells, edited, keep_outputs, read, to_notebook, to_text, was_run
from .pages import pages
from .portable import traces
from .sources import Target, extra, targets


@dataclass(frozen=True)
class Problem:
    """What is wrong with one notebook; `path` is relative to the root."""

    path: str
    kind: str  # "missing", "stale", "extra", "not run", "machine" or "leak"
    message: str

    def __str__(self) -> str:
        """Return the one line to print."""
        return f"{self.path}: {self.message}"


def build(
    root: str | Path,
    execute: bool = False,
    force: bool = False,
    overwrite: bool = False,
    echo: Callable[[str], object] | None = None,
) -> list[str]:
    """Write the notebooks that course/ asks for, and the pages for teachers.

    The outputs of a notebook are kept if none of its code cells has changed, and dropped otherwise.
    All sources are read before the first notebook is written; each notebook is written aside and
    then put in place; none is ever deleted.

    Args:
        root: the folder that holds course/.
        execute: run the lessons and solutions that have no outputs. Exercises are never run here.
        force: with `execute`, run them all.
        overwrite: also replace notebooks with cells that were changed or added by hand.
        echo: gets one line of text before a notebook runs and one when it is done, with seconds.

    Returns:
        The paths of the files that changed, relative to the root.

    Raises:
        InputError: with file and line, if a source cannot be used, a cell fails, or an output holds
            a path, process id or memory address; if a notebook would lose work done by hand; if a
            package of the `course` extra is missing.
    """
    if force and not execute:
        raise InputError("force=True runs every notebook again, so it needs execute=True")
    root, say = Path(root), echo or (lambda line: None)
    wanted = targets(root)
    if not overwrite:
        for target in wanted:
            _refuse_edited(root, target)
    changed = []
    for place, text in pages(root).items():
        changed += [place] if _write(root / place, text) else []
    for target in wanted:
        start = perf_counter()
        path, notebook = root / target.path, _expected(root, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        done = ""
        if execute and target.runs and (force or not was_run(notebook)):
            say(f"{target.path}: running, code cells: {len(code_cells(notebook))}")
            fresh = to_notebook(target.cells, target.source)
            notebook = run(fresh, target.cells, target.source, path.parent, root)
            done = "ran, "
        elif target.runs and not was_run(notebook):
            done = "not run, "
        new = _write(path, to_text(notebook))
        changed += [target.path] if new else []
        done += "written" if new else "unchanged"
        say(f"{target.path}: {done}, {perf_counter() - start:.1f} s")
    return changed


def check(root: str | Path) -> list[Problem]:
    """Say what a rebuild would change, and what else must not be published.

    Outputs, execution counts and widget state are not compared: they come from a run.

    Args:
        root: the folder that holds course/.

    Returns:
        The problems, none if all is well: notebooks that are missing, differ from what their source
        gives, have no source, were never run, hold a path, process id or memory address in an
        output, or show a line of the solution to students.

    Raises:
        InputError: with file and line, if a source cannot be used.
    """
    root = Path(root)
    wanted = targets(root)
    problems = [problem for target in wanted for problem in _problems(root, target)]
    for path, text in pages(root).items():
        if not (root / path).is_file() or (root / path).read_bytes() != text.encode():
            problems.append(Problem(path, "stale", "differs from what quiz.toml gives; build it"))
    for path in extra(root, wanted):
        problems.append(Problem(path, "extra", "no source in course/ asks for it; delete it"))
    return problems


def _expected(root: Path, target: Target) -> Any:
    """Make a notebook, with the outputs of the one on disk if they may be kept."""
    notebook = to_notebook(target.cells, target.source)
    if target.runs:
        keep_outputs(notebook, read(root / target.path))
    return notebook


def _refuse_edited(root: Path, target: Target) -> None:
    """Stop before a build that would lose somebody's answers or notes."""
    index = edited(read(root / target.path), target.source)
    if index is not None:
        raise InputError(
            f"{target.path}: cell {index + 1} was changed by hand and would be lost; move the "
            f"notebook elsewhere, or write the change in {target.source} and build with overwrite"
        )


def _problems(root: Path, target: Target) -> Iterator[Problem]:
    """Compare one notebook with what its source gives."""
    path = root / target.path
    if not path.is_file():
        yield Problem(target.path, "missing", f"missing; build it from {target.source}")
        return
    data = path.read_bytes()
    if data != to_text(_expected(root, target)).encode():
        yield Problem(target.path, "stale", f"differs from what {target.source} gives; build it")
    if target.runs:
        old = read(path)
        if old is not None and not was_run(old):
            yield Problem(target.path, "not run", "was never run; build it with execute")
        for index, found in traces(old, root) if old is not None else ():
            place = "the saved widgets" if index is None else f"the output of cell {index + 1}"
            yield Problem(target.path, "machine", f"{place} holds {found}")
    else:
        for line in leaks(target.text, data.decode(errors="replace")):
            yield Problem(target.path, "leak", f"shows a line of the solution: {line!r}")


def _write(path: Path, text: str) -> bool:
    """Put text in a file, whole or not at all; return whether that changed it."""
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    from lgcourse.training.folder import write_aside  # imports torch

    return write_aside(path, data)
