"""Which trained models come with the course, so that a lesson opens without waiting?

They lie in lgcourse/shipped/: a safetensors file, whose header has the facts of the training that
made it, or a run folder. `load_or_train` and `load_or_run` take what is stored, or train when they
are told to; a training on the same kind of machine gives the same weights again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import nn

from lgcourse.errors import InputError, unknown_name
from lgcourse.training.folder import write_aside
from lgcourse.training.runs import LoadedRun, load_run, train_run
from lgcourse.training.settings import Settings, build_model
from lgcourse.training.trainer import Run

FOLDER = Path(__file__).resolve().parents[1] / "shipped"


def shipped_names() -> list[str]:
    """Return the names of the stored models."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def load_or_train(
    name: str, model: nn.Module, train: Callable[[], Run], again: bool = False
) -> Run:
    """Put the stored weights into a model, or train it.

    Args:
        name: of the stored weights, for instance ``"01-copy-rpe"``.
        model: the untrained model; changed in place.
        train: trains the model.
        again: train, and leave the stored weights where they are.

    Returns:
        The facts of the training: of the one just made, or of the one that made the stored weights.

    Raises:
        InputError: no weights of this name are stored, or they do not fit the model.
    """
    if again:
        return train()
    if name not in shipped_names():
        raise unknown_name("stored model", name, shipped_names())
    path = FOLDER / f"{name}.safetensors"
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads(file.metadata()["run"])
        model.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the stored model {name} cannot be used ({type(error).__name__}); train it again"
        ) from None
    model.eval()
    losses = {facts["steps"]: facts["loss"]}
    return Run(model, facts["steps"], facts["seconds"], losses, facts["stopped"])


def load_or_run(name: str, settings: Settings, out: Path, again: bool = False) -> LoadedRun:
    """Read a stored run, or make it.

    Args:
        name: of the stored run, for instance ``"11-copy-lbpe"``.
        settings: what is trained.
        out: the folder in which a new run folder of this name is made.
        again: train, and leave the stored run where it is.

    Raises:
        InputError: no run of this name is stored, or it was made with other settings.
    """
    if again:
        train_run(settings, out / name, device="cpu")
        return load_run(out / name)
    names = sorted(path.parent.name for path in FOLDER.glob("*/run.json"))
    if name not in names:
        raise unknown_name("stored run", name, names)
    run = load_run(FOLDER / name)
    if run.settings != build_model(settings)[0]:
        raise InputError(f"the stored run {name} was made with other settings; train it again")
    return run


def store(path: str | Path, run: Run) -> None:
    """Write the weights of a training with its facts to a file that `load_or_train` can read.

    Args:
        path: the file.
        run: what `lgcourse.fit` returned.
    """
    facts = {
        "steps": run.steps,
        "seconds": round(run.seconds, 1),
        "loss": run.losses[max(run.losses)],
        "stopped": run.stopped,
        "torch": torch.__version__,
    }
    weights = {k: v.detach().cpu().contiguous() for k, v in run.model.state_dict().items()}
    write_aside(Path(path), save(weights, {"run": json.dumps(facts)}))
