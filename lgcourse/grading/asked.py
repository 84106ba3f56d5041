"""Which questions is a submission asked? Those of the exercises that it belongs to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lgcourse.errors import InputError, unknown_name
from lgcourse.grading import bank
from lgcourse.grading.question import Question
from lgcourse.grading.submissions import Submission


def all_questions() -> tuple[tuple[int, Question], ...]:
    """Return every question of the course with the number of its exercise."""
    return tuple((n, question) for n in bank.exercises() for question in bank.questions(n))


def questions_of(submissions: Sequence[Submission], only: str | None) -> dict[str, list[Question]]:
    """Return what is asked in each submission, by its id.

    A file is asked the exercise whose checks it calls or whose functions it defines. A folder or
    zip stands for all of a student's work and is asked what any folder of the batch holds. A file
    in which nothing is found is asked what most of the batch is asked.

    Raises:
        InputError: there is no such question, or nothing of an exercise is found anywhere.
    """
    every = all_questions()
    if only is not None:
        chosen = [question for _, question in every if question.name == only]
        if not chosen:
            raise unknown_name("question", only, [question.name for _, question in every])
        return {s.id: chosen for s in submissions}
    found = {s.id: exercises_in(s) for s in submissions}
    counted = Counter(number for numbers in found.values() for number in numbers)
    if not counted:
        raise InputError("no exercise of this course is found in what was given")
    most = {counted.most_common(1)[0][0]}
    whole = set().union(*(found[s.id] for s in submissions if s.whole)) or most
    result = {}
    for s in submissions:
        numbers = whole if s.whole else found[s.id] or most
        result[s.id] = [question for number, question in every if number in numbers]
    return result


def exercises_in(submission: Submission) -> set[int]:
    """Return the exercises that a submission belongs to: by its checks, else by its functions."""
    known = {number for number, _ in all_questions()}
    text = "\n".join(
        data if isinstance(data, str) else data.decode("utf-8", "replace")
        for _, data in submission.files()
    )
    text = text.replace("\\n", "\n")  # as line ends stand in a notebook, broken ones too
    called = {int(n) for n in re.findall(r"\bchecks\(\s*(\d{1,4})\s*\)", text)} & known
    if called:
        return called
    names = set(re.findall(r"\bcheck_(\w+)", text)) or set(re.findall(r"\bdef\s+(\w+)", text))
    return {number for number, question in all_questions() if question.name in names}
