"""Which trainings can one guess the outcome of? Stored runs, one question per task and embedding.

``questions.json`` beside this file is made from the stored rows of benchmarks/results by `collect`;
a test compares them. Rows of your own will do, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lgcourse.embeddings.named import setting
from lgcourse.errors import InputError
from lgcourse.experiments.cells import Cell
from lgcourse.training.folder import write_aside

FILE = Path(__file__).with_name("questions.json")
SOURCES = ("first_slice.jsonl", "learned_relations.jsonl")
FARTHEST = 50  # the far scale of a question is the largest measured one up to here
WANTED = 5  # seeds that a question needs


@dataclass(frozen=True)
class Question:
    """One question: does this training lead to length generalisation?

    Args:
        task, pe: names in `lgcourse.tasks` and `lgcourse.embeddings`.
        layers, steps: of the model and its training.
        train_scale: training showed every scale up to this one.
        scale: the far scale.
        near: exact match of each seed at the largest training scale.
        far: exact match of each seed at the far scale.
    """

    task: str
    pe: str
    layers: int
    steps: int
    train_scale: int
    scale: int
    near: tuple[float, ...]
    far: tuple[float, ...]

    @property
    def measured(self) -> str:
        """What the runs showed, by the rule of `lgcourse.experiments`: most seeds decide.

        >>> Question("copy", "rpe", 2, 10, 5, 20, (1.0,), (0.0,)).measured
        'fails'
        """
        wanted = len(self.far)
        return Cell(
            self.task, self.pe, self.train_scale, "", "", self.near, self.far, wanted
        ).measured

    def predicted(self) -> tuple[str, str]:
        """Return what theory says before training, and why: generalises, fails, no prediction.

        >>> Question("copy", "rpe", 2, 10, 5, 20, (1.0,), (0.0,)).predicted()[0]
        'fails'
        """
        asked = setting(self.task, self.pe, self.train_scale, (self.scale,)).predict()
        return asked.verdict, asked.reason


def collect(rows: Iterable[Mapping[str, Any]], wanted: int = WANTED) -> list[Question]:
    """Make questions from stored rows, in their order; seeds of equal settings belong together.

    Args:
        rows: rows with ``settings`` and ``exact_match`` (scale as text -> score). Of several
            depths of a model the smallest is taken; tasks with two sizes are left out.
        wanted: how many seeds a question needs at least.

    Returns:
        The questions.

    Raises:
        InputError: a row lacks one of the two.
    """
    groups: dict[tuple, list[Mapping[str, Any]]] = {}
    for row in rows:
        if not {"settings", "exact_match"} <= set(row):
            raise InputError(f"a row has settings and exact_match, got {sorted(row)}")
        s = row["settings"]
        groups.setdefault((s["task"], s["pe"], s["train_scale"], s["layers"]), []).append(row)
    questions: dict[tuple, Question] = {}
    for (task, pe, train, layers), members in sorted(groups.items(), key=lambda g: g[0][3]):
        scores = members[0]["exact_match"]
        far = [int(n) for n in scores if n.isdecimal() and train < int(n) <= FARTHEST]
        if len(members) < wanted or str(train) not in scores or not far:
            continue
        at = [tuple(row["exact_match"][str(n)] for row in members) for n in (train, max(far))]
        steps = members[0]["settings"]["steps"]
        questions.setdefault(
            (task, pe, train), Question(task, pe, layers, steps, train, max(far), *at)
        )
    return [questions[key] for key in sorted(questions)]


def read_rows(folder: str | Path) -> list[dict[str, Any]]:
    """Return the stored rows that the questions of the course are made from.

    Args:
        folder: benchmarks/results of the course.
    """
    texts = ((Path(folder) / name).read_text(encoding="utf-8") for name in SOURCES)
    return [json.loads(line) for text in texts for line in text.splitlines()]


def load() -> list[Question]:
    """Return the questions of the course.

    >>> questions = load()
    >>> len(questions) > 20, {question.measured for question in questions} >= {"fails"}
    (True, True)
    """
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return [
        Question(**{**row, "near": tuple(row["near"]), "far": tuple(row["far"])}) for row in rows
    ]


def save(questions: Iterable[Question], file: str | Path = FILE) -> None:
    """Write questions, one per line."""
    lines = ",\n".join(json.dumps(asdict(question)) for question in questions)
    write_aside(Path(file), f"[\n{lines}\n]\n".encode())
