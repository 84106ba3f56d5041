"""Will it generalise? Guess, then see what theory says and what was measured."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import ipywidgets

from lgcourse.errors import InputError, whole_number
from lgcourse.show.questions import Question, collect, load
from lgcourse.show.verdict import GUESSES, verdict_figure
from lgcourse.show.widgets.html import Picture, box


def generalisation_quiz(rows: Any = None, seed: int = 0) -> ipywidgets.VBox:
    """Make a widget: guess whether a training generalises, then see prediction and measurement.

    Args:
        rows: `Question`s, or stored rows as `lgcourse.show.questions.collect` takes them; without
            them, the questions of the course.
        seed: seed of the order.

    Returns:
        A `VBox` with buttons (generalises, fails, next question), the picture and the score.

    Raises:
        InputError: the rows hold no question.
    """
    questions = load() if rows is None else _questions(rows)
    if not questions:
        raise InputError(
            "the rows hold no question: of some task and embedding at least one run is needed that "
            "was tested at its training scale and at a larger one up to 50"
        )
    random.Random(whole_number("seed", seed, 0)).shuffle(questions)
    buttons = {guess: ipywidgets.Button(description=f"it {guess}") for guess in GUESSES}
    further = ipywidgets.Button(description="next question", disabled=True)
    score = ipywidgets.HTML()
    picture = Picture()
    place, told = 0, {"you": 0, "theory": 0, "asked": 0}

    def ask() -> None:
        picture.show(lambda: verdict_figure(questions[place]))

    def guessed(guess: str) -> None:
        question = questions[place]
        if question.measured in GUESSES:
            told["asked"] += 1
            told["you"] += guess == question.measured
            told["theory"] += question.predicted()[0] == question.measured
        for button in buttons.values():
            button.disabled = True
        further.disabled = False
        score.value = _score(told)
        picture.show(lambda: verdict_figure(question, guess))

    def go_on(_) -> None:
        nonlocal place
        place = (place + 1) % len(questions)
        for button in buttons.values():
            button.disabled = False
        further.disabled = True
        ask()

    for guess, button in buttons.items():
        button.on_click(lambda _, guess=guess: guessed(guess))
    further.on_click(go_on)
    score.value = _score(told)
    ask()
    return box([*buttons.values(), further], score, picture.widget)


def _questions(rows: Any) -> list[Question]:
    if not isinstance(rows, Iterable) or isinstance(rows, (str, dict)):
        raise InputError(f"rows are questions or stored rows, got {rows!r:.60}")
    rows = list(rows)
    if all(isinstance(row, Question) for row in rows):
        return rows
    return collect(rows, wanted=1)


def _score(told: dict[str, int]) -> str:
    """Say how many were right; cells that are not trained ask nothing.

    >>> _score({"you": 1, "theory": 2, "asked": 2})
    'Of 2 questions you had 1 right, theory 2.'
    """
    if not told["asked"]:
        return "No question answered yet. Cells that are not trained do not count."
    return f"Of {told['asked']} questions you had {told['you']} right, theory {told['theory']}."
