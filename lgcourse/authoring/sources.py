"""Which notebooks does course/ ask for, and which cells has each?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lgcourse.errors import InputError

from . import cut
from .opening import opened, project_address
from .percent import Cell, parse

# folder of sources -> (folder of notebooks, its version of the cells, is it run?)
FOLDERS: dict[str, list[tuple[str, Callable[[Sequence[Cell], str], list[Cell]], bool]]] = {
    "course/lessons": [("notebooks", cut.lesson, True)],
    "course/exercises": [("solutions", cut.solution, True), ("exercises", cut.student, False)],
}


@dataclass(frozen=True)
class Target:
    """One notebook to build.

    Paths are relative to the root, with forward slashes; `text` is the text of the source;
    `runs` says whether the notebook is stored with outputs.
    """

    source: str
    path: str
    text: str
    cells: list[Cell]
    runs: bool


def targets(root: Path) -> list[Target]:
    """Read all sources under root/course.

    Args:
        root: the folder that holds course/.

    Returns:
        The notebooks to build, lessons first, by number.

    Raises:
        InputError: with file and line, if there is no course/ or a source cannot be used.
    """
    if not any((root / folder).is_dir() for folder in FOLDERS):
        wanted = " and ".join(f"{folder}/" for folder in FOLDERS)
        raise InputError(f"no sources in {root}: expected the folders {wanted}")
    address = project_address(root)
    return [
        Target(source, path, text, opened(version(cells, source), path, address), runs)
        for folder, versions in FOLDERS.items()
        for source in _files(root, folder)
        for text in [_read(root, source)]
        for cells in [parse(text, source)]
        for out, version, runs in versions
        for path in [f"{out}/{Path(source).stem}.ipynb"]
    ]


def extra(root: Path, wanted: Sequence[Target]) -> list[str]:
    """Return the paths of notebooks, in the folders that are built, that no source asks for."""
    known = {target.path for target in wanted}
    outs = [out for versions in FOLDERS.values() for out, _, _ in versions]
    found = [
        path.relative_to(root) for out in outs for path in sorted((root / out).rglob("*.ipynb"))
    ]
    # Jupyter's own copies lie in folders whose names start with a dot.
    shown = [path for path in found if not any(part.startswith(".") for part in path.parts)]
    return [path.as_posix() for path in shown if path.as_posix() not in known]


def _files(root: Path, folder: str) -> list[str]:
    """Return the sources of a folder, ordered by number."""
    numbers: dict[str, str] = {}
    for path in sorted((root / folder).glob("*.py")):
        if path.name.startswith("."):
            continue
        if not re.fullmatch(r"\d\d_[a-z0-9_]+\.py", path.name):
            wanted = "NN_name.py: two digits, '_', small letters, digits and '_'"
            raise InputError(f"{folder}/{path.name}: a source is called {wanted}")
        number, source = path.name[:2], f"{folder}/{path.name}"
        if number in numbers:
            raise InputError(f"{source}: number {number} is already that of {numbers[number]}")
        numbers[number] = source
    return list(numbers.values())


def _read(root: Path, source: str) -> str:
    try:
        return (root / source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: the file is not UTF-8 text (byte {error.start})") from None
