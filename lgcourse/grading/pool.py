"""Where are submissions graded? In this process, in threads beside each other, or on a cluster.

Each worker has processes of its own for student code. Results come as they end, in any order.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from typing import Any

from lgcourse.errors import InputError
from lgcourse.grading.grader import Grader, Settings, not_graded
from lgcourse.grading.question import Question
from lgcourse.grading.submissions import Submission

Work = tuple[Submission, list[Question]]
Results = Iterator[dict[str, Any]]
WAIT = 20  # seconds for a scheduler to answer


@contextmanager
def here(settings: Settings, jobs: int, first: Grader) -> Iterator[Callable[[list[Work]], Results]]:
    """Grade on this machine, in some threads; the student code has processes of its own.

    Args:
        settings: how is graded.
        jobs: number of threads.
        first: a grader that is there already; the others are made when they are needed.
    """
    graders, free, lock = [first], [first], threading.Lock()

    def grade(submission: Submission, questions: list[Question]) -> dict[str, Any]:
        with lock:
            if not free:
                free.append(Grader(settings))
                graders.append(free[-1])
            grader = free.pop()
        try:
            return grader.grade(submission.id, submission.programs(), questions)
        finally:
            with lock:
                free.append(grader)

    def run(work: list[Work]) -> Results:
        if jobs == 1:
            yield from (grade(*piece) for piece in work)
            return
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(grade, *piece) for piece in work]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

    try:
        yield run
    finally:
        for grader in graders[1:]:
            grader.close()


@contextmanager
def cluster(
    settings: Settings, address: str, say: Callable[[str], None]
) -> Iterator[Callable[[list[Work]], Results]]:
    """Grade on the workers of a Dask scheduler, through joblib.

    Args:
        settings: how is graded.
        address: of the scheduler, such as ``"tcp://host:8786"``.
        say: takes lines for people.
    """
    try:
        from distributed import Client  # type: ignore
        from joblib import parallel_config
    except ImportError as error:
        raise InputError(
            "--dask needs the packages joblib and distributed: pip install joblib distributed"
        ) from error
    try:
        client = Client(address, timeout=WAIT, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        raise InputError(
            f"no Dask scheduler answers at '{address}'; start one with `dask scheduler` and give "
            "its address, as tcp://127.0.0.1:8786"
        ) from error
    try:
        if not client.scheduler_info()["workers"]:
            raise InputError(
                f"the Dask scheduler at '{address}' has no workers; start one with "
                f"`dask worker {address} --nthreads 1`"
            )
        with parallel_config(backend="dask", client=client):
            yield lambda work: _outlive(settings, work, say)
    finally:
        client.close()


def _outlive(settings: Settings, work: list[Work], say: Callable[[str], None]) -> Results:
    """Grade on a cluster; what a worker had when it ended is graded by another.

    Dask gives up on a piece of work after some workers have ended with it, and does not say on
    which. If nothing was graded since the last time, the next submission could not be graded.
    """
    from distributed import KilledWorker  # type: ignore

    left = {submission.id: (submission, questions) for submission, questions in work}
    said: set[str] = set()
    while left:
        before = len(left)
        try:
            with closing(_parallel(settings, list(left.values()))) as made:
                for result, off in made:
                    for line in off:
                        if line not in said:
                            said.add(line)
                            say(f"on a worker of the cluster, {line}")
                    del left[result["id"]]
                    yield result
        except KilledWorker:
            if len(left) == before:
                submission, questions = left.pop(next(iter(left)))
                why = "the workers of the cluster that had it ended, perhaps out of memory"
                yield not_graded(submission.id, questions, why)


def _parallel(settings: Settings, work: list[Work]) -> Any:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
    return pool(delayed(_grade_there)(settings, *_sendable(piece)) for piece in work)


def _sendable(piece: Work) -> tuple[Any, ...]:
    """Return what a worker elsewhere needs: the code itself, and where questions are found."""
    submission, questions = piece
    return submission.id, submission.programs(), [question.name for question in questions]


_there: dict[Settings, Grader] = {}
_turn = threading.Lock()


def _grade_there(
    settings: Settings, id: str, programs: Any, names: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """Grade on a worker; its process keeps a grader from one submission to the next."""
    from lgcourse.grading.asked import all_questions

    with _turn:
        if settings not in _there:
            _there[settings] = Grader(settings)
            atexit.register(_there[settings].close)
        known = {question.name: question for _, question in all_questions()}
        grader = _there[settings]
        result = grader.grade(id, programs, [known[name] for name in names])
        return result, grader.protections_off()
