"""What does a run leave on disk, and how does it go on after an interruption?

A run folder holds ``run.json`` (settings, versions, scores), ``model.safetensors`` (the trained
weights), ``curve.png`` (exact match over scale), and while training goes on ``state.safetensors``.
Nothing in it can run code.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

import lgcourse
from lgcourse.errors import InputError
from lgcourse.training.device import choose_device
from lgcourse.training.evaluation import Table, evaluate
from lgcourse.training.settings import Settings, build_model
from lgcourse.training.trainer import Run, Trainer, fit

SAVE_EVERY = 10.0  # seconds between two saved states


@dataclass
class LoadedRun:
    """A finished run, read from its folder: settings, task, trained model and scores."""

    settings: Settings
    task: Any
    model: Any
    result: dict[str, Any]


def train_run(
    settings: Settings,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    progress: Callable[[Trainer], None] | None = None,
    testing: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """Train, evaluate and store one run.

    Args:
        settings: what to train.
        out: the run folder; None makes a new one under ``runs/``.
        resume: go on with the run that ``out`` holds; a finished one is returned as it is.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        progress: called with the `Trainer` after every step.
        testing: called with each scale before it is evaluated.

    Returns:
        The scores and facts of the run, as plain data; ``"run"`` is the folder.

    Raises:
        InputError: ``out`` holds something else, or a run with other settings.
        KeyboardInterrupt: with the folder's name, after the state was saved there.
    """
    choose_device(device)  # refuse a wrong one before a folder is made
    settings, task, model = build_model(settings)
    folder, stored, state = _open(settings, out, resume)
    if stored.get("status") == "finished":
        return stored["result"]
    saver = _Saver(folder, progress)
    try:
        run = fit(
            model,
            task,
            list(task.scales(_train_scale(task, settings.train_scale))),
            settings.steps,
            settings.seed,
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            precision=settings.precision,
            device=device,
            state=state,
            progress=saver,
        )
        table = evaluate(
            model,
            task,
            settings.test_scales,
            settings.samples,
            settings.seed,
            settings.hard_samples,
            testing,
        )
    except KeyboardInterrupt:
        saver.save()
        raise KeyboardInterrupt(str(folder)) from None
    return _finish(folder, settings, task, model, run, table)


def load_run(folder: str | Path) -> LoadedRun:
    """Read a finished run.

    Raises:
        InputError: the folder is no run, the run is not finished, or a file is damaged.
    """
    folder = Path(folder)
    if not (folder / "run.json").is_file():
        raise InputError(f"'{folder}' is not a run folder: it has no run.json; train makes one")
    stored = _read_json(folder)
    if stored.get("status") != "finished":
        raise InputError(
            f"run '{folder}' is not finished; go on with: train ... --out {folder} --resume"
        )
    try:
        settings = Settings.from_json(stored["settings"])
        data = (folder / "model.safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != stored["model_sha256"]:
            raise ValueError("model.safetensors is not the file that training wrote")
        _, task, model = build_model(settings)
        model.load_state_dict(load(data))
        result = {**stored["result"], "run": str(folder)}
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise _damaged(folder, error) from error
    return LoadedRun(settings, task, model.eval(), result)


def new_folder(settings: Settings, root: str | Path = "runs") -> Path:
    """Return a folder that does not exist yet, named after the task, the embedding and the seed."""
    stem = Path(root) / f"{settings.task}_{settings.pe}_seed{settings.seed}"
    number = 1
    while (folder := stem if number == 1 else Path(f"{stem}_{number}")).exists():
        number += 1
    return folder


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
        raise InputError(
            f"cannot write '{path}': {error.strerror}; choose another --out"
        ) from error


class _Saver:
    """Hands progress on, and stores the training state every few seconds."""

    def __init__(self, folder: Path, progress):
        self.folder, self.progress = folder, progress
        self.trainer: Trainer | None = None
        self.last = time.monotonic()

    def __call__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        if time.monotonic() - self.last > SAVE_EVERY:
            self.save()
        if self.progress is not None:
            self.progress(trainer)

    def save(self) -> None:
        if self.trainer is not None:
            write_aside(self.folder / "state.safetensors", save(self.trainer.state()))
        self.last = time.monotonic()


def _open(settings, out, resume) -> tuple[Path, dict[str, Any], dict[str, Tensor] | None]:
    """Make or enter the run folder; return it with what it holds."""
    folder = new_folder(settings) if out is None else Path(out)
    if resume and out is None:
        raise InputError("--resume goes on with a run folder: name it with --out")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / "run.json").is_file():
            raise InputError(f"'{folder}' holds files that are no run; choose another --out")
        if not resume:
            raise InputError(
                f"'{folder}' holds a run already; choose another --out, or go on with --resume"
            )
        stored = _read_json(folder)
        _refuse_other(folder, settings, stored)
        state = folder / "state.safetensors"
        try:
            return folder, stored, load(state.read_bytes()) if state.is_file() else None
        except (OSError, SafetensorError) as error:
            raise _damaged(folder, error) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make '{folder}': {error.strerror}; choose another --out"
        ) from error
    stored = {"status": "training", "settings": settings.to_json(), "versions": versions()}
    _write_json(folder, stored)
    return folder, stored, None


def _refuse_other(folder, settings, stored) -> None:
    here, asked = stored.get("settings"), json.loads(json.dumps(settings.to_json()))
    if not isinstance(here, dict):
        raise _damaged(folder, "run.json has no settings")
    for name, value in asked.items():
        if here.get(name) != value:
            raise InputError(
                f"'{folder}' holds a run with {name} {here.get(name)!r}, not {value!r}; "
                "give the same settings, or choose another --out"
            )


def _finish(folder, settings, task, model, run: Run, table: Table) -> dict[str, Any]:
    result = {
        "task": settings.task,
        "pe": settings.pe,
        "seed": settings.seed,
        "train_scale": settings.train_scale,
        **table.to_json(),
        "samples": table.samples,
        "steps": run.steps,
        "loss": run.losses[run.steps],
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(run.seconds, 2),
        "device": next(model.parameters()).device.type,
        "run": str(folder),
    }
    weights = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
    data = save(weights)
    write_aside(folder / "model.safetensors", data)
    _draw(folder, settings, table)
    stored = {
        "status": "finished",
        "settings": settings.to_json(),
        "versions": versions(),
        "model_sha256": hashlib.sha256(data).hexdigest(),
        "losses": run.losses,
        "result": result,
    }
    _write_json(folder, stored)
    (folder / "state.safetensors").unlink(missing_ok=True)
    return result


def _draw(folder, settings, table) -> None:
    from lgcourse.show.curves import curve_figure, png  # drawing is needed here only

    rows = {f"{settings.task}, {settings.pe}": table.exact_match}
    write_aside(folder / "curve.png", png(curve_figure(rows, settings.train_scale)))


def versions() -> dict[str, str]:
    """Return what the run was made with."""
    return {
        "lgcourse": lgcourse.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }


def _train_scale(task, size: int):
    return size if task.sizes == 1 else (size,) * task.sizes


def _write_json(folder: Path, data) -> None:
    write_aside(folder / "run.json", (json.dumps(data, indent=1) + "\n").encode())


def _read_json(folder: Path) -> dict[str, Any]:
    try:
        data = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    if not isinstance(data, dict):
        raise _damaged(folder, "run.json holds no object")
    return data


def _damaged(folder, why) -> InputError:
    first = str(why).splitlines()[0] if str(why) else type(why).__name__
    return InputError(
        f"run folder '{folder}' is damaged ({first}); train it again with another --out"
    )
