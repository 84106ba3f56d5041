"""How is a whole class graded? The reference first, then each submission, written as it ends."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

import lgcourse
from lgcourse.errors import InputError, unknown_name
from lgcourse.grading import bank, feedback, gradebook, pool
from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.asked import questions_of
from lgcourse.grading.grader import CANNOT, Grader, Settings, not_graded
from lgcourse.grading.journal import Journal, write_aside
from lgcourse.grading.question import Question
from lgcourse.grading.reference import check_reference
from lgcourse.grading.sandbox import linux
from lgcourse.grading.submissions import Submission, find


def grade(
    paths: Sequence[str],
    settings: Settings,
    csv: str | None = None,
    gradescope: str | None = None,
    html: str | None = None,
    late: Mapping[str, float] | None = None,
    jobs: int = 1,
    dask: str | None = None,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Grade submissions.

    Args:
        paths: what to grade, see `lgcourse.grading.submissions.find`.
        settings: seed, limits and the like.
        csv, gradescope, html: files and folder to write, or None.
        late: percent to take off, by id.
        jobs: submissions that are graded at the same time.
        dask: address of a Dask scheduler, instead.
        resume: use the results that an interrupted run has left.
        say: takes lines for people.

    Returns:
        The graded submissions, in the order of `find`.

    Raises:
        InputError: something of what was given cannot be used.
        CannotGrade: the reference itself does not get full marks.
    """
    submissions = find(paths)
    if gradescope and len(submissions) != 1:
        raise InputError(f"--gradescope takes one submission at a time, got {len(submissions)}")
    asked = questions_of(submissions, settings.only)
    if late:
        for name in late:
            if name not in {s.id for s in submissions}:
                raise unknown_name("id in the list of those who were late", name, asked)
    book, scope, pages = (
        gradebook.check_place(csv),
        gradebook.check_place(gradescope),
        _folder(html),
    )
    kept = _journal_place(book, scope, pages, resume)
    if not (resume and kept is not None and kept.exists()):
        _refuse_overwriting(book, scope, pages, kept)
    journal = Journal(kept, _made_with(settings), resume)
    digests = {s.id: _key(s, asked[s.id]) for s in submissions}
    left = [s for s in submissions if digests[s.id] not in journal.results]
    if len(left) < len(submissions):
        say(f"{len(submissions) - len(left)} of {len(submissions)} are graded already")
    try:
        if left:
            _grade_left(left, asked, settings, jobs, dask, journal, digests, pages, late, say)
    finally:
        journal.close()
    rows = [gradebook.with_late(journal.results[digests[s.id]], late) for s in submissions]
    if resume:
        _remove_halves([book, scope, kept], pages)
    for row in rows:
        _write_page(pages, row)
    if book is not None:
        write_aside(book, gradebook.as_csv(rows))
    if scope is not None:
        write_aside(scope, gradebook.as_gradescope(rows[0]))
    written = [str(path) for path in (book, scope, pages) if path is not None]
    if written:
        say(f"written: {', '.join(written)}")
    lost = sum(row["status"] == CANNOT for row in rows)
    if lost:
        again = "mend what it says and grade again" + (", with --resume" if written else "")
        say(f"{lost} of {len(rows)} could not be graded, so without a score: {again}")
    return rows


def _remove_halves(files: Sequence[Path | None], pages: Path | None) -> None:
    """Remove what a killed process was writing beside its results."""
    halves = list(pages.glob(".*.html.*.part")) if pages is not None else []
    for file in filter(None, files):
        halves += file.parent.glob(f".{escape(file.name)}.*.part")
    for half in halves:
        half.unlink(missing_ok=True)


def _grade_left(left, asked, settings, jobs, dask, journal, digests, pages, late, say) -> None:
    """Grade what has no result yet, and keep each result as it comes."""
    work = [(s, asked[s.id]) for s in left]
    if sys.platform == "linux":
        linux.hide_memory()
    with ExitStack() as stack:
        grader = stack.enter_context(Grader(settings))
        if dask is None:
            run = stack.enter_context(pool.here(settings, jobs, grader))
        else:
            run = stack.enter_context(pool.cluster(settings, dask, say))
        try:
            grader.zygote()
        except CannotGrade as why:
            say(str(why))
            if dask is None:
                for submission, questions in work:  # not kept: they are graded again
                    result = not_graded(submission.id, questions, str(why))
                    journal.results[digests[submission.id]] = result
                return
        else:
            for line in grader.protections_off():
                say(line)
            check_reference(grader, asked.values(), say)
        for done, result in enumerate(run(work), 1):
            keep = journal.add if result["status"] != CANNOT else journal.results.__setitem__
            keep(digests[result["id"]], result)
            _write_page(pages, gradebook.with_late(result, late))
            score = "-" if result["score"] is None else result["score"]
            say(f"{done} of {len(work)}: {result['id']}: {score} of {result['max_score']}")


# --- what is written ------------------------------------------------------------------------------
def _folder(html: str | None) -> Path | None:
    if html is None:
        return None
    try:
        Path(html).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{html}': {error.strerror}") from error
    return Path(html)


def _refuse_overwriting(*places: Path | None) -> None:
    """Refuse files that are there, and a folder that holds something: only --resume goes on."""
    for place in places:
        if place is not None and (any(place.iterdir()) if place.is_dir() else place.exists()):
            raise InputError(
                f"'{place}' is there already and is not overwritten; choose another name, or go on "
                "with --resume where grading left it"
            )


def _write_page(pages: Path | None, row: dict[str, Any]) -> None:
    if pages is not None:
        write_aside(pages / feedback.file_name(row["id"]), feedback.page(row))


def _journal_place(
    book: Path | None, scope: Path | None, pages: Path | None, resume: bool
) -> Path | None:
    """Return where results are kept as they come: beside what is written at the end."""
    for path in (book, scope):
        if path is not None:
            return path.with_name(f"{path.name}.results.jsonl")
    if pages is not None:
        return pages / "results.jsonl"
    if resume:
        raise InputError("--resume needs --csv, --gradescope or --html, where results are kept")
    return None


def _made_with(settings: Settings) -> dict[str, Any]:
    limits = asdict(settings.limits)
    return {
        "seed": settings.seed,
        "timeout": limits["seconds"],
        "memory": limits["megabytes"],
        "only": settings.only,
        "version": lgcourse.__version__,
        "questions": _bank_digest(),
    }


@cache
def _bank_digest() -> str:
    """Return a name for the questions as they are now."""
    made = hashlib.sha256()
    for path in sorted(Path(bank.__file__).parent.glob("*.py")):
        made.update(path.read_bytes())
    return made.hexdigest()[:16]


def _key(submission: Submission, questions: Sequence[Question]) -> str:
    names = ",".join(question.name for question in questions)
    return f"{submission.id}/{submission.digest()}/{hashlib.sha256(names.encode()).hexdigest()[:8]}"
