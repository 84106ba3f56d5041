"""What do a teacher and a grading system read? A table, a CSV file, a Gradescope file, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.grading.grader import CANNOT, UNREADABLE
from lgcourse.grading.question import PASSED

Row = Mapping[str, Any]  # a graded submission
QUESTION_KEYS = ("name", "score", "max_score", "outcome", "message")


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the results as the JSON of `lgcourse grade --json`."""
    keys = ("id", "score", "max_score", "status")
    return {
        "submissions": [
            {
                **{key: row[key] for key in keys},
                "questions": [{key: q[key] for key in QUESTION_KEYS} for q in row["questions"]],
                **({"late_percent": row["late_percent"]} if "late_percent" in row else {}),
                "notes": row["notes"],
            }
            for row in rows
        ]
    }


def as_csv(rows: Sequence[Row]) -> str:
    """Return the gradebook: a row per student, a column per question.

    What could not be graded is an empty cell. Names that a table program would take for a formula
    get an apostrophe in front.
    """
    names = list(dict.fromkeys(q["name"] for row in rows for q in row["questions"]))
    late = any("late_percent" in row for row in rows)
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    head = ["id", "status", "score", "max_score"]
    writer.writerow([*head, *(["late_percent"] if late else []), *names])
    for row in rows:
        scores = {q["name"]: q["score"] for q in row["questions"]}
        values = [safe_cell(row["id"]), row["status"], row["score"], row["max_score"]]
        values += [row.get("late_percent", 0)] if late else []
        writer.writerow(_empty_if_none([*values, *(scores.get(name) for name in names)]))
    return made.getvalue()


def _empty_if_none(values: list[Any]) -> list[Any]:
    return ["" if value is None else value for value in values]


def safe_cell(text: str) -> str:
    """Return text that a table program does not take for a formula.

    >>> safe_cell("=1+1"), safe_cell("anna")
    ("'=1+1", 'anna')
    """
    flat = " ".join(text.split())
    return f"'{flat}" if flat[:1] in ("=", "+", "-", "@") else flat


def as_gradescope(row: Row) -> str:
    """Return Gradescope's results.json for one submission.

    Source: Gradescope, autograder specifications, "Output format". Gradescope adds the scores of
    the tests where there is no other; with none anywhere it shows that grading failed, which is
    what it did.
    """
    graded = row["score"] is not None
    tests = [
        {
            "name": q["name"],
            **({"score": q["score"], "max_score": q["max_score"]} if graded else {}),
            "status": "passed" if q["outcome"] == PASSED else "failed",
            "output": f"{q['outcome']}: {q['message']}",
        }
        for q in row["questions"]
        if q["outcome"] != CANNOT
    ]
    lost = [f"{q['name']}: {q['message']}" for q in row["questions"] if q["outcome"] == CANNOT]
    result: dict[str, Any] = {
        "output": "\n".join([*(f"{CANNOT}: {text}" for text in lost), *row["notes"]]),
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    if graded:
        result["score"] = row["score"]
    return json.dumps(result, indent=1)


def lines(rows: Sequence[Row]) -> list[str]:
    """Return the table that people read."""
    width = max((len(row["id"]) for row in rows), default=0)
    made = []
    for row in rows:
        score = "-" if row["score"] is None else f"{row['score']:g}"
        late = f", {row['late_percent']:g} % off for being late" if row.get("late_percent") else ""
        made.append(
            f"{row['id']:<{width}}  {score:>5} of {row['max_score']}  {row['status']}{late}"
        )
        for q in row["questions"]:
            if q["outcome"] != PASSED and row["status"] != UNREADABLE:  # the note says why
                words = in_short(q["message"])
                made.append(f"{'':<{width}}  {q['name']}: {q['outcome']}: {words}"[:160])
        made += [f"{'':<{width}}  note: {note}"[:160] for note in row["notes"]]
    return made


def in_short(message: str) -> str:
    """Return the line of a message that says what is wrong; the arguments of the call go.

    >>> in_short("order: called with n = 3:\\ngot 4, expected 5\\nlikely: count from 0")
    'order: got 4, expected 5'
    """
    first, *rest = message.splitlines() or [""]
    check, called, _ = first.partition(": called with ")
    return f"{check}: {rest[0]}" if called and rest else first


# --- lateness -------------------------------------------------------------------------------------
def read_late(file: str) -> dict[str, float]:
    """Read who was late: a CSV file with the columns ``id`` and ``percent``, to be taken off.

    Raises:
        InputError: the file is not of this form.
    """
    try:
        with open(file, encoding="utf-8-sig", newline="") as source:
            rows = list(csv.DictReader(source))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read '{file}': {error}") from error
    late: dict[str, float] = {}
    for number, row in enumerate(rows, 2):
        try:
            percent = float(row["percent"])
            name = row["id"].strip()
        except (KeyError, TypeError, ValueError, AttributeError):
            percent, name = -1.0, ""
        if not name or not 0 <= percent <= 100:
            raise InputError(
                f"'{file}', line {number}: expected the columns id and percent, a number from 0 to "
                "100 that is taken off, as in: anna,20"
            )
        late[name] = percent
    return late


def with_late(row: Row, late: Mapping[str, float] | None) -> dict[str, Any]:
    """Return a result with what is taken off for being late."""
    if late is None:
        return dict(row)
    percent = late.get(row["id"], 0.0)
    score = row["score"]
    if score is not None and percent:
        score = round(score * (100 - percent) / 100, 2)
    return {**row, "score": score, "late_percent": percent}


def check_place(path: str | None) -> Path | None:
    """Return where a file can be written, before any work is done.

    Raises:
        InputError: its folder is not there, or it is a folder itself.
    """
    if path is None:
        return None
    place = Path(path)
    if place.is_dir() or not place.parent.is_dir():
        raise InputError(f"cannot write '{path}': give a file in a folder that exists")
    return place
