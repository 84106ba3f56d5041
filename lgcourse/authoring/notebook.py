"""How do cells become a notebook whose bytes depend on the source alone?

The id of a cell is a hash of the source's path, the kind and the text of the cell; equal cells are
counted. So a rebuild gives no difference, and a new cell does not change the ids of the others.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError

from .percent import Cell

SETUP = "setup"  # the tag of the cell that `opening` puts into every notebook
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # No version: it would differ from one machine to the next.
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


def optional(module: str) -> Any:
    """Import a package of the `course` extra, or say how to install it.

    Args:
        module: the name to import.

    Returns:
        The module.

    Raises:
        InputError: if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = (error.name or module).split(".")[0]
        raise InputError(
            f"building notebooks needs {package}, which is not installed: "
            "pip install 'lgcourse[course]'"
        ) from None


def to_notebook(cells: Sequence[Cell], source: str) -> Any:
    """Make a notebook, never run, in format 4.5.

    Args:
        cells: the cells in order.
        source: the path of the source, relative to the root and with forward slashes.

    Returns:
        A `nbformat.NotebookNode`.

    Raises:
        InputError: if nbformat is not installed.
    """
    v4 = optional("nbformat.v4")
    make = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell}
    notebook = v4.new_notebook(metadata=optional("nbformat").from_dict(METADATA))
    notebook.nbformat_minor = 5
    for cell, name in zip(cells, cell_ids(cells, source), strict=True):
        metadata: dict[str, object] = {}
        if cell.tags:
            metadata["tags"] = list(cell.tags)
        if cell.title:
            metadata["title"] = cell.title
        if SETUP in cell.tags:
            metadata["jupyter"] = {"source_hidden": True}
        notebook.cells.append(make[cell.kind](source=cell.source, id=name, metadata=metadata))
    return notebook


def cell_ids(cells: Sequence[Cell], source: str) -> list[str]:
    """Return the id of each cell.

    Args:
        cells: the cells in order.
        source: the path of the source, relative to the root and with forward slashes.

    >>> one, two = cell_ids([Cell("code", "x"), Cell("code", "x")], "a.py")
    >>> cell_ids([Cell("code", "new"), Cell("code", "x")], "a.py")[1] == one != two
    True
    """
    seen: Counter[tuple[str, str]] = Counter()
    ids = []
    for cell in cells:
        key = (cell.kind, cell.source)
        ids.append(digest(source, *key, str(seen[key])))
        seen[key] += 1
    return ids


def digest(*parts: str, length: int = 16) -> str:
    """Return the first hexadecimal digits of the SHA-256 hash of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:length]


def to_text(notebook: Any) -> str:
    """Return the JSON text of a notebook: indented by 1, keys sorted, one line end at the end."""
    return optional("nbformat").writes(notebook).rstrip("\n") + "\n"


def read(path: Path) -> Any:
    """Return the notebook in a file, or None where there is none that can be read."""
    nbformat = optional("nbformat")
    try:
        notebook = optional("nbformat.v4").reads(path.read_text(encoding="utf-8"))
        nbformat.validate(notebook)
    except Exception:  # whatever is wrong with an old file, the answer is to write it anew
        return None
    return notebook


def edited(notebook: Any, source: str) -> int | None:
    """Return the index of the first cell that was not written by a build, or None.

    Args:
        notebook: the notebook on disk, or None.
        source: the path of its source, relative to the root.

    Returns:
        The index of the first cell whose id is not the hash of its text: it was changed or added
        by hand.
    """
    cells = [Cell(cell.cell_type, cell.source) for cell in notebook.cells] if notebook else []
    for index, name in enumerate(cell_ids(cells, source)):
        if notebook.cells[index].get("id") != name:
            return index
    return None


def code_cells(notebook: Any) -> list[Any]:
    """Return the cells of a notebook that a kernel runs."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def was_run(notebook: Any) -> bool:
    """Tell whether every code cell of a notebook has been run."""
    return all(cell.execution_count is not None for cell in code_cells(notebook))


def keep_outputs(new: Any, old: Any) -> bool:
    """Copy outputs, counts and widget state from the old notebook if no code cell has changed.

    Outputs depend on all cells before them, so they are kept together or not at all. The set-up
    cell does not count: where a notebook is built it does nothing.

    Args:
        new: the notebook just made; changed in place.
        old: the notebook on disk, or None.

    Returns:
        Whether they were kept.
    """
    if old is None or _code(_written(new)) != _code(_written(old)):
        return False
    same = _code(code_cells(new)) == _code(code_cells(old))
    part = code_cells if same else _written
    for cell, before in zip(part(new), part(old), strict=True):
        cell.outputs, cell.execution_count = before.outputs, before.execution_count
    if "widgets" in old.metadata:
        new.metadata.widgets = old.metadata.widgets
    if not same and all(cell.execution_count is not None for cell in _written(new)):
        _count(new)
    return True


def _count(notebook: Any) -> None:
    """Number the code cells of a notebook that was run from top to end."""
    for count, cell in enumerate(code_cells(notebook), 1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count


def _written(notebook: Any) -> list[Any]:
    """Return the code cells that stand in the source."""
    return [c for c in code_cells(notebook) if SETUP not in c.metadata.get("tags", ())]


def _code(cells: Sequence[Any]) -> list[tuple[str | None, str]]:
    return [(cell.get("id"), cell.source) for cell in cells]
