"""Which misconceptions do the wrong answers of a class show, and what should it read again?

Taken are what `lgcourse grade --json` writes, and answers to the quiz. Only numbers of students and
texts of the course are returned: no name, and nothing that a student wrote.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.grading.asked import all_questions
from lgcourse.grading.question import NOT_ATTEMPTED, PASSED, Check, Question
from lgcourse.grading.quiz import Answers, Item, counts, shares_right

VISIBLE = re.compile(r"([\w-]+): ")  # how the message of a failed question begins
HIDDEN = re.compile(r"the visible cases pass, but not other cases of ([\w-]+) \(")
RAISED = "the code raised an error, or gave a value of the wrong kind"
UNDEFINED = "it was not defined after the cells had run"
Part = tuple[str, Any]  # a heading with sentences, or with the head and rows of a table


@dataclass(frozen=True)
class Finding:
    """A misconception: how many of how many students show it, where, and what to read again."""

    where: str
    thought: str
    students: int
    of: int
    reread: str

    @property
    def share(self) -> float:
        """The share of the students who were asked."""
        return self.students / self.of if self.of else 0.0


class Places:
    """Says which section of a lesson answers a question.

    Args:
        root: the folder that holds course/.
        sections: "lesson-NN" -> question -> number of the section, as in sections.toml.
    """

    def __init__(self, root: Path, sections: Mapping[str, Mapping[str, int]]):
        self.root = root
        self.sections = {
            name: (int(lesson.rpartition("-")[2]), number)
            for lesson, numbers in sections.items()
            for name, number in numbers.items()
        }

    def of_question(self, name: str) -> str:
        """Return where the lesson answers a question of an exercise."""
        return self.section(*self.sections[name])

    def section(self, lesson: int, number: int) -> str:
        """Return the words for a section of a lesson.

        Raises:
            InputError: there is no such lesson or section.
        """
        for path in (self.root / "course/lessons").glob(f"{lesson:02}_*.py"):
            text = path.read_text(encoding="utf-8")
            heading = re.search(rf"^# ## {number}\. (.+)$", text, re.MULTILINE)
            if heading:
                return f'lesson {lesson}, section {number}, "{heading[1]}"'
        raise InputError(f"there is no section {number} in lesson {lesson}")


def read_grades(path: str | Path) -> list[dict[str, str]]:
    """Read what `lgcourse grade --json` wrote.

    Returns:
        For each submission the outcomes by the names of questions: "passed", "not attempted", the
        id of the check that failed, with " *" behind it where no likely mistake was named, or
        "not defined". What could not be graded is left out.

    Raises:
        InputError: the file is not of this form.
    """
    known = {question.name: question for _, question in all_questions()}
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))["submissions"]
        return [
            {
                asked["name"]: end
                for asked in row["questions"]
                if asked["name"] in known and (end := _end(known[asked["name"]], asked))
            }
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"cannot read '{path}' as what `lgcourse grade ... --json > FILE` writes: "
            f"{type(error).__name__}: {error}"
        ) from None


def _end(question: Question, asked: Mapping[str, Any]) -> str:
    outcome, message = asked["outcome"], asked["message"]
    if outcome in (PASSED, NOT_ATTEMPTED):
        return outcome
    if outcome != "failed":
        return ""
    found = HIDDEN.match(message) or VISIBLE.match(message)
    if found and found[1] in {check.id for check in question.checks}:
        return found[1] + ("" if "\nlikely: " in message else " *")
    return "not defined"


def of_exercises(grades: Sequence[Mapping[str, str]], places: Places) -> list[Finding]:
    """Return what failed checks show, the most frequent first."""
    found = []
    for _, question in all_questions():
        ends = Counter(row[question.name] for row in grades if question.name in row)
        tried = sum(ends.values()) - ends[NOT_ATTEMPTED]
        for end, students in ends.items():
            if end in (PASSED, NOT_ATTEMPTED):
                continue
            thought = _thought(question, end)
            where = f"{question.name}, check {end.removesuffix(' *')}"
            where = question.name if end == "not defined" else where
            reread = places.of_question(question.name)
            found.append(Finding(where, thought, students, tried, reread))
    return _sorted(found)


def _thought(question: Question, end: str) -> str:
    if end == "not defined":
        return UNDEFINED
    check: Check = next(c for c in question.checks if c.id == end.removesuffix(" *"))
    return f"{RAISED} (the check: {check.idea})" if end.endswith(" *") else check.message


def of_quiz(quiz: Sequence[Item], answers: Answers, places: Places) -> list[Finding]:
    """Return what wrong answers to a quiz show, the most frequent first."""
    found = []
    for number, item in enumerate(quiz, 1):
        chosen = counts(item, answers)
        for option in item.options:
            if option.thinks and chosen[option.letter]:
                where = f"quiz {number}, answer {option.letter}"
                reread = places.section(item.lesson, item.section)
                total = sum(chosen.values())
                found.append(Finding(where, option.thinks, chosen[option.letter], total, reread))
    return _sorted(found)


def _sorted(found: list[Finding]) -> list[Finding]:
    return sorted(found, key=lambda f: (-f.share, -f.students, f.where))


# --- the page -------------------------------------------------------------------------------------
def parts(
    grades: Sequence[Mapping[str, str]],
    quiz: Sequence[Item],
    rounds: Mapping[str, Answers],
    places: Places,
) -> list[Part]:
    """Return the headings of a class report, each with sentences or with a table.

    Args:
        grades: see `read_grades`; empty if no exercise was graded.
        quiz: the questions.
        rounds: name of a file of answers -> the answers, in the order in which they were given.
        places: where lessons answer what.
    """
    last = list(rounds.values())[-1] if rounds else {}
    exercises, answers = of_exercises(grades, places), of_quiz(quiz, last, places)
    first = [f for f in _sorted([*exercises, *answers]) if f.students > 1 or f.share >= 0.5][:8]
    made: list[Part] = [
        ("To talk about first", [_sentence(f) for f in first] or ["Nothing that two share."])
    ]
    if grades:
        made.append(("Questions of the exercises", _questions(grades)))
        made.append(("Checks that failed", _table(exercises)))
    if rounds:
        made.append(("Quiz", _rounds(quiz, rounds)))
        made.append(("Answers to the quiz", _choices(quiz, rounds, places)))
    return [*made, ("What this does not show", _limits(bool(grades), bool(rounds)))]


def _sentence(f: Finding) -> str:
    return f"{f.students} of {f.of} ({f.where}): {f.thought}. Read again: {f.reread}."


def _table(found: Sequence[Finding]) -> Any:
    rows = [(f.where, f"{f.students} of {f.of}", f.thought, f.reread) for f in found]
    return ("question and check", "students", "the likely mistake", "read again"), rows


def _questions(grades: Sequence[Mapping[str, str]]) -> Any:
    rows = []
    for number, question in all_questions():
        ends = [row[question.name] for row in grades if question.name in row]
        if ends:
            passed, idle = ends.count(PASSED), ends.count(NOT_ATTEMPTED)
            failed = len(ends) - passed - idle
            rows.append((str(number), question.name, *map(str, (passed, failed, idle))))
    return ("exercise", "question", "passed", "failed", "not attempted"), rows


def _rounds(quiz: Sequence[Item], rounds: Mapping[str, Answers]) -> Any:
    rows = []
    for name, answers in rounds.items():
        shares = shares_right(quiz, answers)
        mean = f"{sum(shares) / len(shares):.2f}" if shares else "-"
        rows.append((name, str(len(shares)), mean))
    if len(rounds) > 1:
        (_, before), *_, (_, after) = rounds.items()
        both = [person for person in before if person in after]
        one = shares_right(quiz, {p: before[p] for p in both})
        two = shares_right(quiz, {p: after[p] for p in both})
        if both:
            gain = sum(b - a for a, b in zip(one, two, strict=True)) / len(both)
            rows.append(("change, who answered both", str(len(both)), f"{gain:+.2f}"))
    return ("answers", "students", "mean share of right answers"), rows


def _choices(quiz: Sequence[Item], rounds: Mapping[str, Answers], places: Places) -> Any:
    rows = []
    for number, item in enumerate(quiz, 1):
        chosen = [counts(item, answers) for answers in rounds.values()]
        for option in item.options:
            numbers = [str(c[option.letter]) for c in chosen]
            if option.thinks and not any(c[option.letter] for c in chosen):
                continue
            shows = option.thinks or "right"
            reread = places.section(item.lesson, item.section) if option.thinks else ""
            rows.append((str(number), f"{option.letter}: {option.text}", shows, *numbers, reread))
    return ("quiz", "answer", "what it shows", *rounds, "read again"), rows


def _limits(graded: bool, asked: bool) -> list[str]:
    said = [
        "A wrong answer shows one way to think. A student may have come to it by another one, or "
        "by a slip of the pen: ask before you explain.",
        "With few students a number here says little.",
    ]
    if graded:
        said.insert(1, "Checks run in order and stop at the first that fails: later ones are open.")
    if asked:
        said.append("The same questions before and after: part of a gain may be memory of them.")
    return said
