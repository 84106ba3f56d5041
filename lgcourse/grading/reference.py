"""Does the reference itself get full marks here? Asked before anybody else is graded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.grading.answers import CannotGrade, Case
from lgcourse.grading.asked import all_questions
from lgcourse.grading.grader import Grader, remembered
from lgcourse.grading.question import PASSED, Question, examine_by
from lgcourse.grading.sandbox.codec import decode, encode
from lgcourse.grading.submissions import program
from lgcourse.lab import course_root


def check_reference(
    grader: Grader, asked: Iterable[Sequence[Question]], say: Callable[[str], None]
) -> None:
    """Grade the course's own solutions, or where they are not there, its references.

    Raises:
        CannotGrade: they miss a point.
    """
    wanted = {question.name: question for questions in asked for question in questions}
    for number in dict.fromkeys(n for n, question in all_questions() if question.name in wanted):
        questions = [q for n, q in all_questions() if n == number and q.name in wanted]
        solution = _solution(number)
        if solution is None:
            _check_functions(questions, grader.settings.seed)
            continue
        handed_in = [program(solution.name, solution.read_bytes())]
        for row in grader.grade("solution", handed_in, questions)["questions"]:
            if row["outcome"] != PASSED:
                raise CannotGrade(
                    f"our own solution of {row['name']} ({solution.name}) does not pass, so "
                    f"nothing is graded: {row['outcome']}: {row['message']}"
                )
    count = "1 question" if len(wanted) == 1 else f"{len(wanted)} questions"
    say(f"our own solutions get full marks ({count})")


def _solution(number: int) -> Path | None:
    try:
        found = sorted((course_root() / "solutions").glob(f"{number:02d}_*.ipynb"))
    except InputError:
        return None
    return found[0] if found else None


def _check_functions(questions: Sequence[Question], seed: int) -> None:
    for question in questions:

        def itself(case: Case, question: Question = question) -> Any:
            return decode(encode(question.expected(case)))

        report = examine_by(question, itself, seed, remembered)
        if report.outcome != PASSED:
            end = report.stopped_at
            raise CannotGrade(f"our own reference of {question.name} does not pass: {end}")
