"""What does the quiz of concepts ask, and what did a class answer?

A quiz is a TOML file of ``[[question]]`` tables, see course/teachers/quiz.toml. Each wrong answer
says what somebody thinks who chooses it. The answers of a class are a CSV file: a column ``id`` and
a column for each question, named by its number or its id; a cell holds the letter of the answer or
nothing.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError, unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LETTERS = "abcd"
UNKNOWN = "e"  # the letter of "I do not know"
Answers = Mapping[str, Mapping[str, str]]  # of a person: question -> letter


@dataclass(frozen=True)
class Option:
    """An answer to choose: `thinks` says what the choice shows, nothing for the right one.

    `exercise` and `mutant` name the wrong program that gives this answer.
    """

    letter: str
    text: str
    thinks: str = ""
    exercise: int = 0
    mutant: str = ""


@dataclass(frozen=True)
class Item:
    """A question of the quiz, with the section of the lesson that answers it."""

    id: str
    lesson: int
    section: int
    text: str
    options: tuple[Option, ...]

    @property
    def right(self) -> str:
        """The letter of the right answer."""
        return next(option.letter for option in self.options if not option.thinks)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read '{path}': {error}") from None


def read_quiz(path: str | Path) -> list[Item]:
    """Read the questions of a quiz; each has one right answer and three others.

    Raises:
        InputError: the file is not of this form.
    """
    try:
        items = [_item(entry) for entry in read_toml(path)["question"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"'{path}': a question lacks {error}") from None
    ids = [item.id for item in items]
    for item in items:
        texts = {option.text for option in item.options}
        if len(texts) != len(LETTERS) or ids.count(item.id) > 1:
            raise InputError(
                f"'{path}', {item.id}: a question has an id of its own, and one right and three "
                "wrong answers, all different"
            )
    return items


def _item(entry: Mapping[str, Any]) -> Item:
    lesson = entry["lesson"]
    right = Option("", entry["right"])
    wrong = [
        Option("", w["text"], w["thinks"], w.get("exercise", lesson), w["mutant"])
        for w in entry["wrong"]
    ]
    mixed = sorted([right, *wrong], key=lambda option: _rank(option.text, entry["id"]))
    options = tuple(
        replace(option, letter=letter) for letter, option in zip(LETTERS, mixed, strict=False)
    )
    text = " ".join(entry["text"].split())
    return Item(entry["id"], lesson, entry["section"], text, options)


def _rank(*parts: str) -> str:
    """Return what puts answers into an order that does not tell the right one."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_answers(path: str | Path, quiz: Sequence[Item]) -> Answers:
    """Read what a class answered.

    Returns:
        The letters of each person, by the ids of the questions; what was left empty is not in it.

    Raises:
        InputError: with the line, if the file is not of the form above.
    """
    named = {str(number): item.id for number, item in enumerate(quiz, 1)}
    named |= {item.id: item.id for item in quiz}
    try:
        with open(path, encoding="utf-8-sig", newline="") as source:
            reader = csv.DictReader(source)
            rows, head = list(reader), list(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read '{path}': {error}") from None
    columns = [name.strip() for name in head if name.strip() != "id"]
    if len(columns) == len(head):
        raise InputError(f"'{path}': a column 'id' is missing, which says whose answers these are")
    for name in columns:
        if name not in named:
            raise InputError(f"'{path}': {unknown_name('question', name, list(named))}")
    answers: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 2):
        cells = {str(k).strip(): str(v or "").strip() for k, v in row.items()}
        person = cells.pop("id", "")
        given = {named[k]: v.lower() for k, v in cells.items() if v and k in named}
        bad = [letter for letter in given.values() if letter not in (*LETTERS, UNKNOWN)]
        if not person or person in answers or bad or None in row:
            wanted = f"an id that no other line has, and letters from a to {UNKNOWN}"
            raise InputError(f"'{path}', line {number}: expected {wanted}")
        answers[person] = given
    return answers


def counts(item: Item, answers: Answers) -> Counter[str]:
    """Count how many people chose each letter of a question."""
    return Counter(given[item.id] for given in answers.values() if item.id in given)


def shares_right(quiz: Sequence[Item], answers: Answers) -> list[float]:
    """Return each person's share of right answers; an empty cell is not right."""
    return [
        sum(given.get(item.id) == item.right for item in quiz) / len(quiz)
        for given in answers.values()
    ]
