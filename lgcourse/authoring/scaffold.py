"""How does a learner start a task of their own? A folder that works at once, to be changed.

The files of the folder lie in ``capstone/`` beside this module as they are: a task named
``my-task`` that can be run, read, linted and type checked there. A new folder is a copy in which
that name is replaced.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from pathlib import Path

from lgcourse import tasks
from lgcourse.errors import InputError

TEMPLATES = Path(__file__).with_name("capstone")
FILES = ("README.md", "task.py", "run.py", "notes.md")
STANDS_FOR = "my-task"  # the name in the templates
LONGEST = 60  # characters of a name, which is that of a folder, too


def new_task(name: str, folder: str | Path | None = None) -> Path:
    """Make a folder with an example task to change, and the script that checks and reports it.

    The folder is written aside and renamed, so it is there as a whole or not at all.

    Args:
        name: the name of the task, in kebab-case, for instance ``"running-maximum"``.
        folder: the new folder; None makes one with the task's name in the working directory.

    Returns:
        The folder.

    Raises:
        InputError: the name is not in kebab-case or is that of a task of the course, the folder
            exists already, or the place cannot be written to.

    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> made = new_task("running-maximum", Path(place.name) / "mine")
    >>> sorted(path.name for path in made.iterdir())
    ['README.md', 'notes.md', 'run.py', 'task.py']
    >>> place.cleanup()
    """
    check_name(name)
    target = Path(name if folder is None else folder)
    if os.path.lexists(target):
        raise InputError(
            f"'{target}' exists already, and nothing in it is overwritten; choose another "
            f"{'name, or another --folder' if folder is None else '--folder'}"
        )
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        for file in FILES:
            text = (TEMPLATES / file).read_text(encoding="utf-8").replace(STANDS_FOR, name)
            (aside / file).write_text(text, encoding="utf-8", newline="\n")
        os.rename(aside, target)
    except OSError as error:
        from lgcourse.training.folder import cannot  # imports torch

        raise cannot("make", target, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # there only if something went wrong
    return target


def check_name(name: str) -> None:
    """Refuse a name that is not in kebab-case, or that a task of the course has.

    >>> check_name("RunningMaximum")
    Traceback (most recent call last):
        ...
    lgcourse.errors.InputError: the name of a task is kebab-case: up to 60 small letters and digits,
    single hyphens between words, a letter first; write 'running-maximum', not 'RunningMaximum'
    """
    near = kebab_case(name)
    if name != near:
        shown = name if len(name) <= 80 else name[:77] + "..."
        raise InputError(
            f"the name of a task is kebab-case: up to {LONGEST} small letters and digits, single "
            f"hyphens between words, a letter first; write '{near}', not '{shown}'"
        )
    if name in tasks.names():
        raise InputError(f"'{name}' is a task of the course; call yours 'my-{name}' for instance")


def kebab_case(text: str) -> str:
    """Return the nearest name in kebab-case; a name that is in kebab-case stays as it is.

    >>> [kebab_case(text) for text in ("my_task", "2 Sums", "ParityCoT", "été", "")]
    ['my-task', 'task-2-sums', 'parity-co-t', 'ete', 'my-task']
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", plain).lower()
    name = "-".join(re.findall("[a-z0-9]+", words))
    if not name:
        return STANDS_FOR
    return (name if name[0].isalpha() else f"task-{name}")[:LONGEST].rstrip("-")
