"""What does a student read after grading? One page that needs no server and runs no script."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from lgcourse.grading.grader import CANNOT
from lgcourse.grading.question import FAILED, NOT_ATTEMPTED, NOT_RUN, PASSED, RAISED

MARKS = {PASSED: "ok", FAILED: "wrong", RAISED: "error", NOT_RUN: "not run"}
HEAD = "<tr>" + "".join(f'<th scope="col">{x}</th>' for x in ("result", "check", "idea")) + "</tr>"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem; border-top: 1px solid #bbb;
  padding-top: 1rem }
pre { background: #f3f3f3; padding: .7rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere }
table { border-collapse: collapse } td, th { text-align: left; padding: .15rem .8rem .15rem 0;
  vertical-align: top }
.passed { color: #00603c } .failed { color: #a02c00 } .other { color: #444 }
"""


def page(row: Mapping[str, Any]) -> str:
    """Return the page of one submission.

    Args:
        row: a graded submission. Its texts come from the student's own code and are only shown.
    """
    score = "not graded" if row["score"] is None else f"{row['score']:g} of {row['max_score']}"
    late = f" ({row['late_percent']:g} % off for being late)" if row.get("late_percent") else ""
    parts = [f"<h1>{escape(row['id'])}: {score} points{late}</h1>"]
    if row["status"] != "graded":
        parts.append(f"<p>{escape(row['status'])}</p>")
    if row["notes"]:
        items = "".join(f"<li>{escape(note)}</li>" for note in row["notes"])
        parts.append(f"<p>While the cells ran:</p><ul>{items}</ul>")
    parts += [_question(question) for question in row["questions"]]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(row['id'])}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _question(question: Mapping[str, Any]) -> str:
    outcome = question["outcome"]
    kind = {PASSED: "passed", FAILED: "failed"}.get(outcome, "other")
    score = "-" if question["score"] is None else question["score"]
    parts = [
        f"<h2>{escape(question['name'])}: {score} of {question['max_score']} points, "
        f'<span class="{kind}">{escape(outcome)}</span></h2>'
    ]
    if outcome not in (PASSED, NOT_ATTEMPTED, CANNOT) or question["details"]:
        parts.append(f"<pre>{escape(question['message'])}</pre>")
    elif outcome != PASSED or "\n" in question["message"]:
        parts.append(f"<p>{escape(question['message'])}</p>")
    if question["details"]:
        parts.append(f"<p>In that visible case:</p><pre>{escape(question['details'])}</pre>")
    if question["where"]:
        parts.append(f"<p>Your answer: <code>{escape(question['where'])}</code></p>")
    if question["checks"]:
        rows = "".join(
            f"<tr><td>{MARKS.get(end, escape(end))}</td><td>{escape(id)}</td>"
            f"<td>{escape(idea)}</td></tr>"
            for id, idea, end in question["checks"]
        )
        parts.append(f"<table>{HEAD}{rows}</table>")
    return "".join(parts)


def file_name(id: str) -> str:
    """Return a file name for a student's page: readable, and its own for each id.

    >>> file_name("anna"), file_name("../b c")
    ('anna.html', 'b-c-dfb10b05.html')
    """
    simple = re.sub(r"[^A-Za-z0-9_-]+", "-", id).strip("-")[:60]
    if simple == id and id.lower() not in ("index", "con", "nul", "aux", "prn"):
        return f"{simple}.html"
    return f"{simple or 'submission'}-{hashlib.sha256(id.encode()).hexdigest()[:8]}.html"
