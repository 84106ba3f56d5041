"""How are the results of a sweep kept? One line of JSON per finished piece of work, added at once.

A folder holds ``sweep.json`` (what the sweep file said), ``runs.jsonl`` (one line per prediction
and per run, in the order in which they ended) and ``results.csv`` (the table in the order of the
plan). A line that was cut off by an interruption or has another checksum does not count; of two
lines about the same work the later one does.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.training.folder import RunFolder, cannot, write_aside

Row = dict[str, Any]
LINES, SAID = "runs.jsonl", "sweep.json"
NEEDED = {"work", "key", "status", "error", "versions", "seconds"}


class Store:
    """The folder of one sweep.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    def open(self, data: dict[str, Any], resume: bool) -> None:
        """Make the folder; one that holds results already is entered only to go on.

        Args:
            data: what the sweep file says.
            resume: go on with what is there.

        Raises:
            InputError: the folder holds results and ``resume`` was not asked for, or it holds
                other things, or it cannot be made.
        """
        try:
            held = RunFolder(self.path).holds_something()
            if held and not (self.path / SAID).exists():
                raise InputError(
                    f"'{self.path}' holds files that are no sweep; choose another --out"
                )
            if held and not resume:
                raise InputError(
                    f"'{self.path}' holds a sweep already; go on with --resume, or choose another "
                    "--out"
                )
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot("make", self.path, error) from error
        RunFolder(self.path).tidy()
        write_aside(self.path / SAID, (json.dumps(data, indent=1) + "\n").encode())

    def data(self) -> dict[str, Any]:
        """Return what the sweep file said."""
        try:
            said = json.loads((self.path / SAID).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(
                f"'{self.path}' holds no sweep: it has no {SAID}; `lgcourse sweep` makes one"
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"'{self.path / SAID}' cannot be read: {error}") from error
        if not isinstance(said, dict):
            raise InputError(f"'{self.path / SAID}' is not what a sweep wrote")
        return said

    def add(self, row: Row) -> None:
        """Add a line; when this returns, the line is on the disk."""
        path = self.path / LINES
        try:
            with path.open("a+b") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":  # the line before was cut off
                        file.write(b"\n")
                file.write((json.dumps({**row, "sum": _sum(row)}) + "\n").encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot("write", path, error) from error

    def rows(self) -> list[Row]:
        """Return all whole lines; one that is not as it was written does not count."""
        path = self.path / LINES
        if not path.exists():
            return []
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise InputError(f"'{path}' cannot be read: {error.strerror}") from error
        found = []
        for line in lines:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):  # cut off, or empty
                continue
            whole = isinstance(row, dict) and row.pop("sum", None) in (None, _sum(row))
            if whole and row.keys() >= NEEDED:
                found.append(row)
        return found

    def latest(self, work: str) -> dict[str, Row]:
        """Return the last line about each piece of work of one sort, ``"run"`` or ``"predict"``."""
        return {row["key"]: row for row in self.rows() if row["work"] == work}


def _sum(row: Row) -> int:
    return zlib.crc32(json.dumps(row).encode())
