"""What of the library may student code import? A copy without questions and forbidden rooms.

What is not copied is not there, wherever the process looks. The trusted side lays the copy out.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import lgcourse

ROOM = '''"""Stands in for the room of questions while a submission is graded."""

from lgcourse.grading.sandbox.absent import Absent
from lgcourse.grading.sandbox.absent import Quiet as checks


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"lgcourse.grading.{name}")
'''
BASE = ("__init__.py", "errors.py", "registry.py", "grading/answers.py", "grading/comparison.py")
CHILD = (
    "__init__",
    "absent",
    "cells",
    "child",
    "codec",
    "limits",
    "linux",
    "use",
    "wire",
    "zygote",
)
PACKAGE = Path(lgcourse.__file__).resolve().parent
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/proc", "/sys", "/etc/alternatives")
SINGLE = ("/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/zero", "/dev/urandom")


def lay_out(folder: Path, rooms: Sequence[str], forbids: Sequence[str]) -> None:
    """Copy what a process that grades needs, and the rooms that are open.

    Args:
        folder: where to; ``folder/lgcourse`` is made.
        rooms: all rooms that may be open.
        forbids: rooms, or parts of them such as ``"embeddings.rope"``, that are left out.
    """
    package = folder / "lgcourse"
    (package / "grading" / "sandbox").mkdir(parents=True)
    for name in (*BASE, *(f"grading/sandbox/{name}.py" for name in CHILD)):
        shutil.copyfile(PACKAGE / name, package / name)
    (package / "grading" / "__init__.py").write_text(ROOM, encoding="utf-8")
    for room in rooms:
        if room not in forbids:
            parts = [name.partition(".")[2] for name in forbids if name.startswith(f"{room}.")]
            hidden = [f"{part.replace('.', '/')}.py" for part in parts]
            shutil.copytree(
                PACKAGE / room,
                package / room,
                ignore=shutil.ignore_patterns("__pycache__", *hidden),
            )
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def shown() -> list[str]:
    """Return the folders of Python and of the system that the process needs, outer ones first."""
    folders = [sys.prefix, sys.base_prefix, *(str(Path(p).resolve()) for p in (sys.prefix,))]
    folders += [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    found: list[str] = []
    for path in sorted({*SYSTEM, *folders}, key=len):
        if not any(path == outer or path.startswith(f"{outer}/") for outer in found):
            found.append(path)
    return found + list(SINGLE)


def hidden() -> list[str]:
    """Return the folders that must not be seen: the library itself, and a clone's solutions."""
    installed = [str(Path(path) / "lgcourse") for path in sys.path if path]
    clone = [str(PACKAGE.parent / name) for name in ("course", "solutions", "tests", "exercises")]
    return sorted({str(PACKAGE), *installed, *clone})
