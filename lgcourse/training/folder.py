"""How does a run folder stay whole? Files are written aside and renamed, and checked when read.

A run folder holds ``run.json`` (settings, versions, scores), ``model.safetensors`` (the trained
weights), ``curve.png`` (exact match over scale), and while training goes on ``state.safetensors``.
Nothing in it can run code. What a killed process was writing lies aside, as ``.NAME.PID.part``, and
is never read.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, tensor, uint8

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
            return self.path.is_dir() and any(not _left(path) for path in self.path.iterdir())
        except OSError as error:
            raise cannot("use", self.path, error) from error

    def tidy(self, finished: bool = False) -> None:
        """Remove what killed processes left: files lying aside, the state of a finished run."""
        state = [self.path / "state.safetensors"] if finished else []
        for path in (*filter(_left, self.path.glob(".*.part")), *state):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def holds_run(self) -> bool:
        """Return whether the folder has a run.json."""
        return (self.path / "run.json").is_file()

    def claim(self, record: dict[str, Any]) -> bool:
        """Make the folder and its first run.json; return False if somebody else was quicker."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise InputError(f"'{self.path}' is a file; choose another --out") from None
        except OSError as error:
            raise cannot("make", self.path, error) from error
        return write_aside(self.path / "run.json", _sealed(record), new=True)

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

    def write_state(self, state: dict[str, Tensor]) -> None:
        """Write the state of a training that goes on, with a digest of itself."""
        seal = tensor(list(hashlib.sha256(save(state)).digest()), dtype=uint8)
        write_aside(self.path / "state.safetensors", save({**state, "seal": seal}))

    def read_state(self) -> dict[str, Tensor] | None:
        """Read the state of an unfinished training, or return None if none was saved yet."""
        path = self.path / "state.safetensors"
        if not path.exists():
            return None
        try:
            state = load(path.read_bytes())
            seal = bytes(state.pop("seal").tolist())
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise self.damaged("state.safetensors cannot be read") from error
        if hashlib.sha256(save(state)).digest() != seal:
            raise self.damaged("state.safetensors is not what training wrote")
        return state

    def damaged(self, why: str) -> InputError:
        """Make the error for a folder whose files are not whole."""
        return InputError(
            f"run folder '{self.path}' is damaged ({why}); train it again with another --out"
        )


def write_aside(path: Path, data: bytes, new: bool = False) -> bool:
    """Write a file so that a reader sees the old content or the new, never half of it.

    Args:
        path: the file.
        data: its content.
        new: leave a file that is there already as it is.

    Returns:
        Whether the file was written.

    Raises:
        InputError: the system refuses.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.unlink(missing_ok=True)  # a killed process of this number may have left one
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if new:
            return _name_first(aside, path)
        os.replace(aside, path)
    except OSError as error:
        raise cannot("write", path, error) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return True


def _name_first(aside: Path, path: Path) -> bool:
    """Give a file its name unless there is one of that name; of several processes one succeeds."""
    try:
        os.rename(aside, path) if os.name == "nt" else os.link(aside, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        os.replace(aside, path)
    return True


def _left(path: Path) -> bool:
    """Return whether a file is one that `write_aside` makes and renames."""
    return path.name.startswith(".") and path.name.endswith(".part")


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
        right = file.with_suffix(ending) if file.name else f"NAME{ending}"
        raise InputError(f"{what} end in {ending}; write '{right}', not '{path}'")
    if os.path.lexists(file):
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
