"""Where are the notebooks, and how does JupyterLab open on one of them?"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from lgcourse.errors import InputError


def course_root(start: Path | None = None) -> Path:
    """Return the folder of the course: the current one or one above it, else the package's own.

    Raises:
        InputError: none of them holds notebooks/.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[1]):
        if (folder / "notebooks").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise InputError(f"no notebooks/ at '{here}' or above it; run this in a clone of the course")


def lesson_path(lesson: int, root: Path | None = None) -> Path:
    """Return the notebook of a lesson by its number."""
    root = root or course_root()
    lessons = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    for path in lessons:
        if int(path.name[:2]) == lesson:
            return path
    known = ", ".join(str(int(path.name[:2])) for path in lessons) or "none"
    raise InputError(f"there is no lesson {lesson}; lessons here: {known}")


def command(lesson: int = 1) -> list[str]:
    """Return the command that opens a lesson in JupyterLab."""
    path = lesson_path(lesson)
    options = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [sys.executable, "-m", "jupyterlab", *options, str(path)]


def start(lesson: int = 1) -> None:
    """Open a lesson in JupyterLab; returns when JupyterLab is closed."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise InputError("JupyterLab is not installed; run: pip install 'lgcourse[course]'")
    arguments = command(lesson)
    if os.name == "nt":  # exec does not replace a process there
        import subprocess

        subprocess.run(arguments, check=False)
        return
    os.execv(arguments[0], arguments)
