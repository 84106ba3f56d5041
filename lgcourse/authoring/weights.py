"""How are the models made that come with the course? By the lessons themselves, told to train.

``python -m lgcourse.authoring.weights 1 11`` runs lessons 1 and 11 with ``TRAIN = True`` and writes
what they train to lgcourse/shipped/.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from lgcourse.errors import InputError
from lgcourse.lab import course_root
from lgcourse.training import shipped
from lgcourse.training.folder import RunFolder
from lgcourse.training.trainer import Run

from .cut import lesson
from .percent import parse

SWITCH = re.compile(r"^TRAIN = False\b", re.MULTILINE)


def train_lesson(number: int, folder: Path, wanted: Callable[[str], bool] = lambda name: True):
    """Run a lesson with its switch turned, and store the models that it would load otherwise.

    Args:
        number: of the lesson.
        folder: where the files go.
        wanted: which models are trained; the lesson ends where the first other one would be.

    Returns:
        The names of the models.

    Raises:
        InputError: the lesson has no line ``TRAIN = False``.
    """
    (path,) = (course_root() / "course/lessons").glob(f"{number:02}_*.py")
    cells = lesson(parse(path.read_text(encoding="utf-8"), path.name), path.name)
    code = "\n\n".join(cell.source for cell in cells if cell.kind == "code")
    if len(SWITCH.findall(code)) != 1:
        raise InputError(f"{path.name} has no line 'TRAIN = False': it loads no stored model")
    made: list[str] = []

    def train(name: str, model, train: Callable[[], Run], again: bool) -> Run:
        assert again
        if not wanted(name):
            raise Enough
        run = train()
        shipped.store(folder / f"{name}.safetensors", run)
        made.append(name)
        return run

    def run(name: str, settings, out: Path, again: bool):
        assert again
        if not wanted(name):
            raise Enough
        done = make_run(name, settings, out, again=True)
        (folder / name).mkdir(exist_ok=True)
        shutil.copyfile(out / name / "model.safetensors", folder / name / "model.safetensors")
        record = RunFolder(out / name).read()
        record["result"]["run"] = name  # not the path on this machine
        RunFolder(folder / name).write(record)
        made.append(name)
        return done

    make_run = shipped.load_or_run
    trained = SWITCH.sub("TRAIN = True", code)
    with patch.multiple(shipped, load_or_train=train, load_or_run=run), suppress(Enough):
        exec(compile(trained, path.name, "exec"), {"__name__": "lesson"})
    return made


class Enough(Exception):  # noqa: N818  it is no fault
    """The next model is not wanted."""


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(*train_lesson(int(argument), shipped.FOLDER), sep="\n")
