"""Does an output hold something that is true on one machine or in one run only?

Such an output differs at every build, and a path shows readers whose machine it was.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .texts import strings

PATH = (
    r"(?<![\w.~-])/(?:home|Users|root|tmp|var|private|usr|opt|mnt|srv|etc)/[^\s'\"<>]+"
    r"|\b[A-Za-z]:\\+(?:Users|Windows|Program|Temp|Python)[^\s'\"<>]*"
)
PROCESS = (
    r"ipykernel_\d+|\bpid\b\W{0,3}\d+|\bprocess id\W{0,3}\d+"
    r"|^[IWEF]\d{4} \d\d:\d\d:\d\d\S* +\d+"  # the head of a line that a C++ library logs
)
ADDRESS = r"\bat 0x[0-9a-f]{6,}"


def traces(notebook: Any, root: Path) -> Iterator[tuple[int | None, str]]:
    """Find paths, process ids and memory addresses in the outputs of a notebook.

    Args:
        notebook: a notebook with outputs.
        root: the folder that holds course/; its own path is one of those that must not be shown.

    Returns:
        Pairs of the cell's index, None for the saved widgets, and what it holds, in words.
    """
    kinds = {
        "this machine's path": re.compile(f"{_places(root)}|{PATH}"),
        "a process id": re.compile(PROCESS, re.IGNORECASE | re.MULTILINE),
        "a memory address": re.compile(ADDRESS, re.IGNORECASE),
    }
    parts = [(index, cell.get("outputs", [])) for index, cell in enumerate(notebook.cells)]
    for index, part in [*parts, (None, notebook.metadata.get("widgets", {}))]:
        texts = list(strings(part))
        for kind, pattern in kinds.items():
            match = next((found for text in texts if (found := pattern.search(text))), None)
            if match:
                yield index, f"{kind}, {match[0]!r}"


def _places(root: Path) -> str:
    """Match the folders of this machine by name: the course, the home, Python, temporary files."""
    named = {str(root.resolve()), str(Path.home()), sys.prefix, sys.base_prefix}
    named.add(tempfile.gettempdir())
    # The root of a file system is the beginning of every path: too short to tell anything.
    names = [re.escape(name) for name in sorted(named) if name != Path(name).anchor]
    escaped = [name.replace("\\\\", r"\\{1,2}") for name in names]  # repr doubles backslashes
    return rf"(?<![\w.~-])(?:{'|'.join(escaped)})(?![\w-])[^\s'\"<>]*"
