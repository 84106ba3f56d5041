"""How does a run folder stay whole? Files are written aside and renamed, and checked when read.

A run folder holds ``run.json`` (settings, versions, scores), ``model.safetensors`` (the trained
weights), ``curve.png`` (exact match over scale), and while training goes on ``state.safetensors``.
Nothing in it can run code.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from lgcourse.errors import InputError


class RunFolder:
    """One folder with one run.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    def holds_something(self) -> bool:
        """Return whether the folder exists and is not empty; a path that cannot be is an error."""
        try:
            return self.path.is_dir() and any(self.path.iterdir())
        except OSError as error:
            raise cannot("use", self.path, error) from error

    def holds_run(self) -> bool:
        """Return whether the folder has a run.json."""
        return (self.path / "run.json").is_file()

    def claim(self, record: dict[str, Any]) -> bool:
        """Make the folder and its first run.json; return False if somebody else was quicker."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with open(self.path / "run.json", "xb") as file:
                file.write(_sealed(record))
        except FileExistsError:
            if self.path.is_dir():
                return False
            raise InputError(f"'{self.path}' is a file; choose another --out") from None
        except OSError as error:
            raise cannot("make", self.path, error) from error
        return True

    def write(self, record: dict[str, Any]) -> None:
        """Write run.json."""
        write_aside(self.path / "run.json", _sealed(record))

    def read(self) -> dict[str, Any]:
        """Read run.json; one that is not as it was written is an `InputError`."""
        if not self.holds_run():
            raise InputError(
                f"'{self.path}' is not a run folder: it has no run.json; train makes one"
            )
        try:
            record = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
            seal = record.pop("seal")
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise self.damaged("run.json cannot be read") from error
        if seal != _digest(_canonical(record)):
            raise self.damaged("run.json is not what training wrote")
        return record

    def write_model(self, data: bytes) -> str:
        """Write the weights and return their digest."""
        write_aside(self.path / "model.safetensors", data)
        return _digest(data)

    def read_model(self, digest: str) -> dict[str, Tensor]:
        """Read the weights that have this digest."""
        try:
            data = (self.path / "model.safetensors").read_bytes()
        except OSError as error:
            raise self.damaged(f"model.safetensors: {error.strerror}") from error
        if _digest(data) != digest:
            raise self.damaged("model.safetensors is not what training wrote")
        return load(data)

    def read_state(self) -> dict[str, Tensor] | None:
        """Read the state of an unfinished training, or return None if none was saved yet."""
        path = self.path / "state.safetensors"
        if not path.exists():
            return None
        try:
            return load(path.read_bytes())
        except (OSError, SafetensorError) as error:
            raise self.damaged("state.safetensors cannot be read") from error

    def damaged(self, why: str) -> InputError:
        """Make the error for a folder whose files are not whole."""
        return InputError(
            f"run folder '{self.path}' is damaged ({why}); train it again with another --out"
        )


def write_aside(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never half of it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise cannot("write", path, error) from error


def new_file(path: str | Path, ending: str, what: str) -> Path:
    """Return a path that may be written: it has the ending, and nothing stands there.

    Args:
        path: what a user asked for.
        ending: for instance ``".png"``.
        what: what is written, a plural, for the error.

    Raises:
        InputError: the path has another ending, or exists.

    >>> new_file("curve.png", ".png", "figures").name
    'curve.png'
    """
    file = Path(path)
    if file.suffix.lower() != ending:
        raise InputError(
            f"{what} end in {ending}; write '{file.with_suffix(ending)}', not '{path}'"
        )
    if file.exists():
        raise InputError(f"'{path}' exists already; choose another name")
    return file


def cannot(do: str, path: Path, error: OSError) -> InputError:
    """Make the error for a place that the system refuses."""
    shown = str(path) if len(str(path)) <= 80 else str(path)[:77] + "..."
    return InputError(f"cannot {do} '{shown}': {error.strerror}; choose another place")


def _canonical(record: dict[str, Any]) -> bytes:
    plain = json.loads(json.dumps(record))  # as it is read again: keys are texts, tuples are lists
    return json.dumps(plain, sort_keys=True).encode()


def _sealed(record: dict[str, Any]) -> bytes:
    whole = {**record, "seal": _digest(_canonical(record))}
    return (json.dumps(whole, indent=1) + "\n").encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
