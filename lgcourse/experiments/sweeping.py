"""How are many runs made? Those that are missing, in parallel, each written down as it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from tqdm.auto import tqdm

from lgcourse.errors import InputError, whole_number
from lgcourse.experiments.plan import Plan, cell_key, run_key
from lgcourse.experiments.single import DONE, FAILED, REFUSED, predict_one, run_one
from lgcourse.experiments.store import Row, Store
from lgcourse.training import Settings
from lgcourse.training.runs import versions

WAIT = 20  # seconds for a scheduler to answer
Made = Iterator[tuple["Work", Row]]


@dataclass(frozen=True)
class Work:
    """One piece: the prediction of a cell, or a run; it can be sent to another machine."""

    kind: str
    settings: Settings
    factor: int
    device: str

    @property
    def key(self) -> str:
        """What tells this piece from others of its kind."""
        return run_key(self.settings) if self.kind == "run" else cell_key(self.settings)

    def do(self) -> Row:
        """Do it and return its row."""
        if self.kind == "run":
            return run_one(self.settings, self.device)
        return predict_one(self.settings, self.factor)


def sweep(
    plan: Plan,
    out: Any,
    resume: bool = False,
    jobs: int = 1,
    dask: str | None = None,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Make every run of a plan that is not stored yet, and write the table of results.

    Predictions come first. Work that failed is done again, work that was refused is not. Stopped at
    any moment and taken up again, on this machine or another, the table is the same but for the
    columns ``seconds`` and ``cpu_seconds``.

    Args:
        plan: the plan.
        out: the folder of the results.
        resume: go on with what the folder holds.
        jobs: processes on this machine, each with one thread; 1 uses this process.
        dask: address of a Dask scheduler, as ``"tcp://host:8786"``, whose workers do the work.
        say: what takes lines for people; None prints them on stderr.

    Returns:
        Counts of runs and predictions, as plain data.

    Raises:
        InputError: see `Store.open`; the scheduler does not answer.
        KeyboardInterrupt: after the table of what is there was written.
    """
    from lgcourse.experiments.results import result_table, write_table

    whole_number("jobs", jobs, 1, 1024)
    say = say or (lambda line: print(line, file=sys.stderr))
    with ExitStack() as stack:
        pool = stack.enter_context(_dask(dask) if dask else _local(jobs))  # before files are made
        store = Store(out)
        store.open(plan.data, resume)
        every = _work(plan)
        open_work = [piece for piece in every if piece.key not in _settled(store, piece.kind, plan)]
        say(f"{out}: {len(open_work)} pieces of work to do, {len(every) - len(open_work)} stored")
        _note_versions(store, say)
        try:
            with tqdm(
                total=len(every), initial=len(every) - len(open_work), file=sys.stderr, unit="run"
            ) as bar:
                for piece, row in pool(open_work):
                    store.add(row)
                    bar.set_postfix_str(_short(piece, row), refresh=False)
                    bar.update()
        finally:
            write_table(result_table(plan, store), store)
    return _counts(plan, store, out)


def _work(plan: Plan) -> list[Work]:
    """Return all work in the order in which it is done: whatever is there then says most.

    Predictions come first, then the first seed of every cell, then the second one, and so on;
    within a seed, embeddings come in the order of the sweep file.
    """
    seeds, pes = _places(run.seed for run in plan.runs), _places(run.pe for run in plan.runs)
    runs = sorted(plan.runs, key=lambda run: (seeds[run.seed], pes[run.pe]))
    pieces = [Work("predict", cell, plan.factor, plan.device) for cell in plan.cells]
    return pieces + [Work("run", run, plan.factor, plan.device) for run in runs]


def _places(values: Iterable[Any]) -> dict[Any, int]:
    """Return the place of each value among the distinct ones."""
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _settled(store: Store, kind: str, plan: Plan) -> set[str]:
    """Return the keys of work that need not be done again."""
    rows = store.latest(kind)
    if kind == "predict":
        rows = {key: row for key, row in rows.items() if row.get("factor") == plan.factor}
    return {key for key, row in rows.items() if row["status"] != FAILED}


def _note_versions(store: Store, say: Callable[[str], None]) -> None:
    others = {tuple(row["versions"].items()) for row in store.rows()} - {tuple(versions().items())}
    if others:
        shown = "; ".join(", ".join(f"{k} {v}" for k, v in other) for other in sorted(others))
        say(f"note: some stored rows were made with {shown}")


def _short(piece: Work, row: Row) -> str:
    what = f"{piece.settings.task}, {piece.settings.pe}"
    return f"{what}, seed {piece.settings.seed}" if piece.kind == "run" else f"predict {what}"


def _counts(plan: Plan, store: Store, out: Any) -> dict[str, Any]:
    rows = store.latest("run")
    mine = [rows[key] for key in map(run_key, plan.runs) if key in rows]
    of = {status: [r for r in mine if r["status"] == status] for status in (DONE, REFUSED, FAILED)}
    said = store.latest("predict")
    broken = [said[k] for k in map(cell_key, plan.cells) if said.get(k, {}).get("status") == FAILED]
    errors = dict.fromkeys(row["error"] for row in of[FAILED] + broken)
    return {
        "results": str(out),
        "runs": len(plan.runs),
        **{status: len(found) for status, found in of.items()},
        "failed_predictions": len(broken),
        "errors": list(errors)[:5],
        "seconds": round(sum(row["seconds"] for row in mine), 1),
    }


# --- where the work is done -----------------------------------------------------------------------
@contextmanager
def _local(jobs: int) -> Iterator[Callable[[list[Work]], Made]]:
    """Work in this process, or in some processes of their own."""
    if jobs == 1:
        yield lambda work: ((piece, piece.do()) for piece in work)
        return
    from joblib import parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield lambda work: _outlive(work, jobs)


@contextmanager
def _dask(address: str) -> Iterator[Callable[[list[Work]], Made]]:
    """Work on a Dask cluster."""
    try:
        from distributed import Client  # type: ignore
    except ImportError as error:
        raise InputError(
            "--dask needs the package distributed: install it with: pip install distributed"
        ) from error
    from joblib import parallel_config

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
            yield lambda work: _outlive(work, -1)
    finally:
        client.close()


def _outlive(work: list[Work], jobs: int) -> Made:
    """Do all work; when a process dies, go on with what is left.

    Which piece killed it is not known. If nothing was finished since the last death, the next piece
    is written down as failed, so that the others get their turn.
    """
    left = {(piece.kind, piece.key): piece for piece in work}
    while left:
        before = len(left)
        try:
            with closing(_parallel(list(left.values()), jobs)) as made:
                for place, row in made:
                    yield left.pop(place), row
        except _dead() as error:
            if len(left) == before:
                piece = left.pop(next(iter(left)))
                yield piece, _died(piece, error)


def _parallel(work: list[Work], jobs: int) -> Any:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    return pool(delayed(_do)(piece) for piece in work)


def _do(piece: Work) -> tuple[tuple[str, str], Row]:
    return (piece.kind, piece.key), piece.do()


def _dead() -> tuple[type[BaseException], ...]:
    """Return the errors that say that a process ended without an answer."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        from distributed.scheduler import KilledWorker  # type: ignore
    except ImportError:
        return (BrokenProcessPool,)
    return (BrokenProcessPool, KilledWorker)


def _died(piece: Work, error: BaseException) -> Row:
    why = f"{type(error).__name__}: the process ended without an answer, perhaps out of memory"
    row: Row = {"work": piece.kind, "key": piece.key, "status": FAILED, "error": why}
    if piece.kind == "run":
        row["plan"] = piece.settings.to_json()
    return {**row, "factor": piece.factor, "versions": versions(), "seconds": 0.0}
