"""Which submissions are there, and what code do they hold? Found and read, nothing is run.

A submission is a file, or a student's folder, or a zip file. Everything in it is untrusted: links
are not followed, sizes are bounded, nothing is unpacked onto the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.grading.sandbox.cells import Cell

KINDS = (".ipynb", ".py")
LARGEST = 50 << 20  # bytes of a file, and of all files of a zip
CODE = 2 << 20  # bytes of code in a file
MOST = 2_000  # files of a folder or zip
LEFT_OUT = (".", "__MACOSX", "__pycache__")


@dataclass(frozen=True)
class Program:
    """A notebook or script: its name, its code cells, and what keeps it from being read."""

    name: str
    cells: tuple[Cell, ...] = ()
    problem: str = ""

    @property
    def text(self) -> str:
        """All code."""
        return "\n".join(source for _, source in self.cells)


@dataclass(frozen=True)
class Submission:
    """What one student handed in: where it lies; it is read when it is needed.

    Args:
        id: its name in the gradebook.
        path: the file or folder.
        whole: whether it stands for a student's whole work, as a folder or zip does.
    """

    id: str
    path: Path
    whole: bool = False

    def programs(self) -> list[Program]:
        """Read its programs, in the order of their names."""
        made = (program(shown(name), data) for name, data in self.files())
        return sorted(made, key=lambda p: p.name)

    def digest(self) -> str:
        """Return a name for its content."""
        made = hashlib.sha256()
        for name, data in sorted(self.files()):
            content = data if isinstance(data, bytes) else data.encode()
            made.update(f"{len(name)} {name} {len(content)} ".encode(errors="replace") + content)
        return made.hexdigest()[:24]

    def files(self) -> Iterator[tuple[str, bytes | str]]:
        """Yield the name and content of each file, or why it has none."""
        if self.path.is_dir():
            yield from _folder_files(self.path)
        elif self.path.suffix.lower() == ".zip":
            yield from _zip_files(self.path)
        else:
            yield self.path.name, _read(self.path)


def find(paths: Sequence[str]) -> list[Submission]:
    """Return the submissions under some paths, in their order.

    Args:
        paths: notebooks, scripts, zip files, or folders that hold these or one folder per student.

    Raises:
        InputError: a path does not exist, or holds nothing that could be graded.
    """
    found: list[Submission] = []
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise InputError(f"there is no '{name}'; give notebooks, .py or .zip files, or folders")
        if path.is_dir():
            inside = [s for entry in sorted(path.iterdir()) if (s := _entry(entry)) is not None]
            if not inside:
                raise InputError(f"the folder '{name}' holds no notebook, .py, .zip or folder")
            found += inside
        elif path.suffix.lower() in (*KINDS, ".zip"):
            found.append(Submission(path.stem, path, path.suffix.lower() == ".zip"))
        else:
            raise InputError(f"'{name}' is no notebook, .py or .zip file and no folder")
    return _told_apart(found)


def _entry(path: Path) -> Submission | None:
    """Return what an entry of a folder of submissions is."""
    if path.is_symlink() or path.name.startswith(LEFT_OUT):
        return None
    if path.is_dir():
        return Submission(path.name, path, True)
    if path.suffix.lower() in (*KINDS, ".zip") and path.is_file():
        return Submission(path.stem, path, path.suffix.lower() == ".zip")
    return None


def _told_apart(found: list[Submission]) -> list[Submission]:
    """Give each submission an id of its own: the second of a name is called by its file, too."""
    seen: set[str] = set()
    result = []
    for submission in found:
        id, name = shown(submission.id), shown(submission.path.name)
        if id in seen:
            id = name
        number = 2
        while id in seen:
            id, number = f"{name} ({number})", number + 1
        seen.add(id)
        result.append(Submission(id, submission.path, submission.whole))
    return result


def shown(name: str) -> str:
    """Return a name as it may be printed and written: without control and broken characters.

    >>> shown("a\\nb\\x1b[2Jc"), shown("\\udcff")
    ('a?b?[2Jc', '?')
    """
    return "".join(c if c.isprintable() else "?" for c in name) or "?"


# --- files of a folder or zip ---------------------------------------------------------------------
def _folder_files(folder: Path) -> Iterator[tuple[str, bytes | str]]:
    count, total = 0, 0
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(LEFT_OUT))
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() not in KINDS or name.startswith(LEFT_OUT):
                continue
            count += 1
            data = _read(path) if count <= MOST else f"there are more than {MOST} files"
            total += len(data)
            shown = path.relative_to(folder).as_posix()
            yield shown, data if total <= LARGEST else "the folder holds more than 50 MB"
            if count > MOST or total > LARGEST:
                return


def _read(path: Path) -> bytes | str:
    """Return the content of a regular file, or why there is none; links are not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "it is no regular file"
            data = file.read(LARGEST + 1)
    except OSError as error:
        linked = path.is_symlink()
        return "it is a link, and links are not followed" if linked else str(error.strerror)
    return data if len(data) <= LARGEST else "it is larger than 50 MB"


def _zip_files(path: Path) -> Iterator[tuple[str, bytes | str]]:
    """Read the programs of a zip into memory; what its table says about sizes is not believed."""
    left = LARGEST
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST:
                yield path.name, f"the zip holds more than {MOST} entries"
                return
            for entry in entries:
                name = entry.filename
                parts = name.replace("\\", "/").split("/")
                if not name.lower().endswith(KINDS) or any(p.startswith(LEFT_OUT) for p in parts):
                    if ".." in parts and name.lower().endswith(KINDS):
                        yield name, "its path leads out of the zip"
                    continue
                if stat.S_ISLNK(entry.external_attr >> 16):
                    yield name, "it is a link, and links are not followed"
                    continue
                with archive.open(entry) as file:
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    yield name, "the zip unpacks to more than 50 MB"
                    return
                yield name, data
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, EOFError) as error:
        yield path.name, f"the zip cannot be read: {error}"
    except Exception as error:  # zlib.error, NotImplementedError and what a broken zip makes else
        yield path.name, f"the zip cannot be read: {type(error).__name__}"


# --- the code in a file ---------------------------------------------------------------------------
def program(name: str, data: bytes | str) -> Program:
    """Read the code of one file.

    >>> program("a.py", b"x = 1").cells
    ((1, 'x = 1'),)
    """
    if isinstance(data, str):
        return Program(name, problem=data)
    if not data.strip():
        return Program(name, problem="the file is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Program(name, problem="the file is no text in UTF-8")
    if "\0" in text:
        return Program(name, problem="the file is no text")
    if name.lower().endswith(".py"):
        cells = script_cells(text)
    else:
        try:
            cells = notebook_cells(json.loads(text))
        except json.JSONDecodeError as error:
            return Program(name, problem=f"the notebook is broken JSON: {error}")
        except (ValueError, RecursionError):
            return Program(name, problem="the notebook is broken JSON")
    if sum(len(json.dumps(source)) for _, source in cells) > CODE:  # as it crosses
        return Program(name, problem="there are more than 2 MB of code")
    if not cells:
        return Program(name, problem="there is no code in it")
    return Program(name, tuple(cells))


def notebook_cells(notebook: Any) -> list[Cell]:
    """Return the code cells of a notebook, numbered from 1; what is not one is left out."""
    sheets = [notebook] if isinstance(notebook, dict) else []
    for sheet in sheets[:1]:  # format 3 had sheets
        more = sheet.get("worksheets")
        sheets += [s for s in more if isinstance(s, dict)] if isinstance(more, list) else []
    found: list[Cell] = []
    for sheet in sheets:
        cells = sheet.get("cells")
        for cell in cells if isinstance(cells, list) else []:
            if not isinstance(cell, dict) or cell.get("cell_type") != "code":
                continue
            source = cell.get("source", cell.get("input", ""))
            if isinstance(source, list):
                source = "".join(part for part in source if isinstance(part, str))
            found.append((len(found) + 1, clean(source) if isinstance(source, str) else ""))
    return found


def script_cells(text: str) -> list[Cell]:
    """Return the cells of a script: between ``# %%`` lines, if it has any; text cells go."""
    parts = re.split(r"(?m)^(?=# %%)", text)
    code = [part for part in parts if part.strip() and not re.match(r"# %%.*\[markdown\]", part)]
    return [(number, clean(part)) for number, part in enumerate(code, 1)]


def clean(source: str) -> str:
    """Return text that can be encoded: half characters, as JSON allows them, go."""
    return source.encode("utf-8", "replace").decode()
