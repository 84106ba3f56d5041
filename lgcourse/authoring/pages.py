"""Which pages for teachers does course/teachers/quiz.toml give?

``quiz.md`` is what a class gets; ``key.md`` has the right answers and what each wrong one shows;
``answers.csv`` is an empty table to type the answers into.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lgcourse.grading.quiz import UNKNOWN, Item, read_quiz

FOLDER = "course/teachers"
MADE = "<!-- Made of quiz.toml by `lgcourse build`: change it there. -->\n\n"


def pages(root: Path) -> dict[str, str]:
    """Return the text of each page, by its path relative to the root.

    Args:
        root: the folder that holds course/; without a quiz there is no page.

    Raises:
        InputError: if the quiz is not of the right form.
    """
    source = root / FOLDER / "quiz.toml"
    if not source.is_file():
        return {}
    quiz = read_quiz(source)
    return {
        f"{FOLDER}/quiz.md": _quiz(quiz),
        f"{FOLDER}/key.md": _key(quiz),
        f"{FOLDER}/answers.csv": _table(quiz),
    }


def _quiz(quiz: Sequence[Item]) -> str:
    lines = [
        "# Quiz of concepts",
        "",
        f"{len(quiz)} questions, about {2 * len(quiz)} minutes, no computer. It is given before "
        "the course and after it; it is not graded. Words that you do not know yet are no fault: "
        f"then choose {UNKNOWN}.",
    ]
    for number, item in enumerate(quiz, 1):
        lines += ["", f"**{number}.** {item.text}", ""]
        lines += [f"- {option.letter}. {option.text}" for option in item.options]
        lines += [f"- {UNKNOWN}. I do not know"]
    return MADE + "\n".join(lines) + "\n"


def _key(quiz: Sequence[Item]) -> str:
    lines = [
        "# Key to the quiz of concepts",
        "",
        "Each wrong answer is what a wrong program gives, one that the checks of the exercises "
        "reject. So it shows a way to think. Ask before you explain.",
    ]
    for number, item in enumerate(quiz, 1):
        lines += [
            "",
            f"**{number}.** ({item.id}; lesson {item.lesson}, section {item.section})",
            "",
        ]
        for option in item.options:
            shows = f"thinks that {option.thinks}" if option.thinks else "**right**"
            lines.append(f"- {option.letter}. {option.text}: {shows}")
    return MADE + "\n".join(lines) + "\n"


def _table(quiz: Sequence[Item]) -> str:
    return ",".join(["id", *(str(number) for number in range(1, len(quiz) + 1))]) + "\n"
