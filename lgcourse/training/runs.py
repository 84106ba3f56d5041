"""How is a run made, stored, and taken up again after an interruption?"""

from __future__ import annotations

import json
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

import lgcourse
from lgcourse.errors import InputError
from lgcourse.training.device import choose_device
from lgcourse.training.evaluation import Table, evaluate
from lgcourse.training.folder import RunFolder, write_aside
from lgcourse.training.numerics import notes
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
    picture: Callable[[Settings, Table], bytes] | None = None,
    check_for: Callable[..., Callable[[Trainer], bool]] | None = None,
) -> dict[str, Any]:
    """Train, evaluate and store one run.

    Args:
        settings: what to train.
        out: the run folder; None makes a new one under ``runs/``.
        resume: go on with the run that ``out`` holds; a finished one is returned as it is.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        progress: called with the `Trainer` after every step.
        testing: called with each scale before it is evaluated.
        picture: makes the PNG file that lies beside the run as curve.png; None makes none.
        check_for: makes, for a task, the check that ends a training with ``until_certified``:
            `lgcourse.certify.until_certified`.

    Returns:
        The scores and facts of the run, as plain data; ``"run"`` is the folder.

    Raises:
        InputError: ``out`` holds something else, or a run with other settings.
        KeyboardInterrupt: with the folder's name, after the state was saved there.
    """
    if settings.until_certified and check_for is None:
        raise InputError("until_certified needs check_for=lgcourse.certify.until_certified")
    choose_device(device)  # refuse a wrong one before a folder is made
    settings, task, model = build_model(settings)
    folder, finished = _open(settings, out, resume)
    if finished:
        result = load_run(folder.path).result
        folder.tidy(finished=True)
        return result
    saver = Saver(folder, progress)
    try:
        with saver.between_steps():
            run = fit(
                model,
                task,
                list(task.scales(task.scale_of(settings.train_scale))),
                settings.steps,
                settings.seed,
                on_check=_check(settings, task, check_for),
                batch=settings.batch,
                learning_rate=settings.learning_rate,
                precision=settings.precision,
                device=device,
                state=folder.read_state(),
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
        raise KeyboardInterrupt(str(folder.path)) from None
    fades = notes(model, task, settings.test_scales, task.scale_of(settings.train_scale))
    for note in fades:
        print(f"note: {note}", file=sys.stderr)
    if picture is not None:
        write_aside(folder.path / "curve.png", picture(settings, table))
    return _finish(folder, settings, task, model, run, table, fades)


def _check(settings: Settings, task, check_for):
    """Return the check of a training, or None."""
    if not settings.until_certified or check_for is None:
        return None
    if settings.add_counterexamples:
        return check_for(task, add_counterexamples=True)
    return check_for(task)


def load_run(path: str | Path) -> LoadedRun:
    """Read a finished run.

    Raises:
        InputError: the folder is no run, the run is not finished, or a file is damaged.
    """
    folder = RunFolder(path)
    record = folder.read()
    if record.get("status") != "finished":
        raise InputError(
            f"run '{path}' is not finished; go on with: lgcourse train ... --out {path} --resume"
        )
    try:
        settings = Settings.from_json(record["settings"])
        _, task, model = build_model(settings)
        model.load_state_dict(folder.read_model(record["model_sha256"]))
        result = {**record["result"], "run": str(path)}
    except (KeyError, TypeError, RuntimeError) as error:  # made by another version of the package
        version = record.get("versions", {}).get("lgcourse", "unknown")
        raise folder.damaged(f"it does not fit this version; it was made with {version}") from error
    return LoadedRun(settings, task, model.eval(), result)


class Saver:
    """Hands progress on, and stores the training state between two steps, never within one.

    Args:
        folder: where the state goes.
        progress: what is called after every step.
    """

    def __init__(self, folder: RunFolder, progress: Callable[[Trainer], None] | None):
        self.folder, self.progress = folder, progress
        self.last, self.asked_to_stop = time.monotonic(), False

    def __call__(self, trainer: Trainer) -> None:
        """Take note of a step that has ended."""
        try:
            if self.progress is not None:
                self.progress(trainer)
        except KeyboardInterrupt:
            self.asked_to_stop = True
        late = time.monotonic() - self.last > SAVE_EVERY
        if self.asked_to_stop or late or trainer.step == trainer.steps:
            self.folder.write_state(trainer.state())
            self.last = time.monotonic()
        if self.asked_to_stop:
            raise KeyboardInterrupt

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Let the first Ctrl-C wait for the end of the step; the second one acts at once.

        A state that is saved within a step has drawn its batch already and does not repeat.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # signals reach the main thread only
            return

        def ask(number, frame):
            if self.asked_to_stop:
                raise KeyboardInterrupt
            self.asked_to_stop = True

        before = signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _open(settings: Settings, out, resume: bool) -> tuple[RunFolder, bool]:
    """Make or enter the run folder; return it and whether its run is finished."""
    if resume and out is None:
        raise InputError("--resume goes on with a run folder: name it with --out")
    record = {"status": "training", "settings": settings.to_json(), "versions": versions()}
    if out is None:
        return _new_folder(settings, record), False
    folder = RunFolder(out)
    if folder.holds_something() and not folder.holds_run():
        raise InputError(f"'{out}' holds files that are no run; choose another --out")
    if not folder.holds_run():
        if resume:
            print(f"note: '{out}' holds no run yet; starting a new one", file=sys.stderr)
        if folder.claim(record):
            folder.tidy()
            return folder, False
    if not resume:
        raise InputError(
            f"'{out}' holds a run already; choose another --out, or go on with --resume"
        )
    stored = folder.read()
    _refuse_other(folder, settings, stored)
    if stored["status"] != "finished":
        folder.tidy()
        return folder, False
    return folder, True


def _new_folder(settings: Settings, record, root: str = "runs") -> RunFolder:
    """Claim a folder of its own, named after the task, the embedding and the seed."""
    stem = Path(root) / f"{settings.task}_{settings.pe}_seed{settings.seed}"
    number = 1
    while True:
        folder = RunFolder(stem if number == 1 else f"{stem}_{number}")
        if not folder.holds_something() and folder.claim(record):
            return folder
        number += 1


def _refuse_other(folder: RunFolder, settings: Settings, stored) -> None:
    try:  # settings that are newer than the run have their default value there
        before = Settings.from_json(stored["settings"])
    except (KeyError, TypeError) as error:
        raise folder.damaged("it does not fit this version") from error
    here, asked = (json.loads(json.dumps(one.to_json())) for one in (before, settings))
    for name, value in asked.items():
        if here.get(name) != value:
            raise InputError(
                f"'{folder.path}' holds a run with {name} {here.get(name)!r}, not {value!r}; "
                "give the same settings, or choose another --out"
            )


def _finish(folder: RunFolder, settings, task, model, run: Run, table: Table, fades: list[str]):
    result: dict[str, Any] = {
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
        "run": str(folder.path),
    }
    if settings.until_certified:
        result["certified"] = run.stopped
    if settings.add_counterexamples:
        result["counterexamples"] = run.counterexamples
    if fades:
        result["notes"] = fades
    weights = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
    digest = folder.write_model(save(weights))
    folder.write(
        {
            "status": "finished",
            "settings": settings.to_json(),
            "versions": versions(),
            "model_sha256": digest,
            "losses": run.losses,
            "result": result,
        }
    )
    folder.tidy(finished=True)
    return result


def versions() -> dict[str, str]:
    """Return what the run was made with."""
    return {
        "lgcourse": lgcourse.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
