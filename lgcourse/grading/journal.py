"""What was graded before an interruption? A file has a line per submission, written as it ends."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.training import folder


class Journal:
    """Results on disk; a result is whole or not there.

    Args:
        path: the file; None keeps nothing.
        made_with: what must be the same for results to be used again.
        resume: keep what the file holds.

    Raises:
        InputError: the file cannot be written, or holds results that were made otherwise.
    """

    def __init__(self, path: Path | None, made_with: dict[str, Any], resume: bool):
        self.path = path
        self.results: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        kept: list[str] = []
        if resume and path.exists():
            kept = self._read(path, made_with)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_aside(path, "".join([json.dumps({"made with": made_with}) + "\n", *kept]))
            self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115  open as long as we are
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror}") from error

    def _read(self, path: Path, made_with: dict[str, Any]) -> list[str]:
        """Read the lines that are whole."""
        kept = []
        try:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            head = json.loads(lines[0]) if lines else {}
            before = head["made with"] if head else made_with
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise InputError(f"'{path}' is no list of results; grade without --resume") from error
        if before != made_with:
            names = [k for k in made_with if before.get(k) != made_with[k]]
            raise InputError(
                f"the results in '{path}' were made with another {', another '.join(names)}; "
                "give the same, or grade anew without --resume"
            )
        for line in lines[1:]:
            try:
                row = json.loads(line)
                self.results[row["key"]] = row["result"]
            except (ValueError, KeyError, TypeError):  # the line that was being written
                continue
            kept.append(line if line.endswith("\n") else line + "\n")
        return kept

    def add(self, key: str, result: dict[str, Any]) -> None:
        """Keep a result; it is on the disk when this returns."""
        self.results[key] = result
        if self.path is not None:
            try:
                self._file.write(json.dumps({"key": key, "result": result}) + "\n")
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise folder.cannot("write", self.path, error) from error

    def close(self) -> None:
        """Close the file."""
        if self.path is not None:
            with suppress(OSError):  # what could not be written is still not
                self._file.close()


def write_aside(path: Path, text: str) -> None:
    """Write a file under another name first, so that it is whole whenever it is there."""
    folder.write_aside(path, text.encode("utf-8", "replace"))
