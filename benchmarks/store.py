"""How are results kept? One JSON line per run, added as it ends; a table is made from the lines.

An interrupted benchmark goes on where it stopped: a run that has a line is not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def stored(name: str) -> list[Row]:
    """Return the rows of results/NAME.jsonl; a last line that was cut off does not count."""
    path = RESULTS / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines[:-1]]


def keep(name: str, row: Row) -> None:
    """Add a row to results/NAME.jsonl."""
    path = RESULTS / f"{name}.jsonl"
    RESULTS.mkdir(exist_ok=True)
    if path.exists() and not path.read_bytes().endswith(b"\n"):  # cut off while it was written
        whole = path.read_bytes().rpartition(b"\n")
        path.write_bytes(whole[0] + whole[1])
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def run_missing(
    name: str,
    wanted: Iterable[Row],
    one: Callable[[Row], Row],
    jobs: int,
    say: Callable[[Row], str],
) -> None:
    """Make every wanted run that has no row yet, some at a time, and keep each as it ends.

    Args:
        name: of the results.
        wanted: what defines each run, plain data; its row has it under ``"plan"``.
        one: makes a run, in a process of its own; a function of a module.
        jobs: runs at a time.
        say: a short text about a finished row.
    """
    done = [row["plan"] for row in stored(name)]
    plans = list(wanted)
    missing = [plan for plan in plans if plan not in done]
    print(f"{name}: {len(missing)} runs to make, {len(plans) - len(missing)} stored", flush=True)
    start = time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(one, plan): plan for plan in missing}
        for count, future in enumerate(as_completed(futures), start=1):
            row = {"plan": futures[future], "jobs": jobs, **future.result()}
            keep(name, row)
            left = (time.perf_counter() - start) / count * (len(missing) - count)
            print(f"[{count}/{len(missing)}, {left / 60:.0f} min left] {say(row)}", flush=True)


def judge_again(name: str, again: Callable[[Row], Row | None]) -> None:
    """Replace what was said of runs whose folders are there; what was measured stays.

    Args:
        name: of the results.
        again: returns the parts of a row that are new, None if the run's folder is not there.
    """
    rows, count = stored(name), 0
    for row in rows:
        new = again(row["plan"])
        count += new is not None
        row.update(new or {})
    aside = RESULTS / f"{name}.jsonl.new"
    aside.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    aside.replace(RESULTS / f"{name}.jsonl")
    print(f"{name}: judged {count} of {len(rows)} runs again", flush=True)


def command_line(
    title: str,
    name: str,
    wanted: Callable[[int], Iterable[Row]],
    one: Callable[[Row], Row],
    say: Callable[[Row], str],
    tables: dict[str, Callable[[str, list[Row]], str]],
    seeds: int,
    again: Callable[[Row], Row | None] | None = None,
) -> None:
    """Run a benchmark from its command line: make what is missing, then write the tables.

    Args:
        title: what ``--help`` says.
        name: of the results.
        wanted: what defines each run, for seeds 0..N-1.
        one, say: see `run_missing`.
        tables: file -> what puts the tables between its marks.
        seeds: how many there are if nobody asks for fewer.
        again: see `judge_again`; None if runs are not kept.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--table", action="store_true", help="only write the tables")
    parser.add_argument("--seeds", type=int, default=seeds, help="seeds 0..N-1")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    if again is not None:
        parser.add_argument("--again", action="store_true", help="judge the kept runs again")
    chosen = parser.parse_args()
    if again is not None and chosen.again:
        judge_again(name, again)
    elif not chosen.table:
        run_missing(name, wanted(chosen.seeds), one, chosen.jobs, say)
    for file, make in tables.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        (ROOT / file).write_text(make(text, stored(name)), encoding="utf-8")


def versions() -> dict[str, str]:
    """Return what a result may depend on, as run folders state it."""
    from lgcourse.training.runs import versions as of_run

    return of_run()


def between(text: str, marks: tuple[str, str], table: str) -> str:
    """Return a text with a table between its two marks."""
    before, rest = text.split(marks[0])
    _, after = rest.split(marks[1])
    return f"{before}{marks[0]}\n{table}\n{marks[1]}{after}"


NOTHING = "No run is stored yet."


def spread(label: str, values: list[float]) -> str:
    """Return the lowest and highest of some scores, or the one value that all share."""
    low, high = min(values), max(values)
    return f"{label}: {low:.3f}" if low == high else f"{label}: {low:.3f} to {high:.3f}"
