"""How long does a start take? Imports and commands beside `import torch`, in turn, in one session.

Processor time of a fresh process, so that other work on the machine counts little; each command is
run several times, and the table has medians.

    python benchmarks/start.py            measure again
    python benchmarks/start.py --table    write the table of RESULTS.md
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

import store

NAME = "start"
MARKS = ("<!-- start: begin -->", "<!-- start: end -->")
ROOMS = "from lgcourse import Transformer, fit, evaluate, embeddings, tasks, theory"
USED = f"{ROOMS}; theory.predict; tasks.get('copy'); embeddings.build; Transformer"
STARTS = {
    "import torch": ["-c", "import torch"],
    "import lgcourse": ["-c", "import lgcourse"],
    "import what a training needs": ["-c", USED],
    "lgcourse --help": ["-m", "lgcourse", "--help"],
    "lgcourse list": ["-m", "lgcourse", "list"],
}
TIMES = 11
LIMITS = {"import lgcourse": 1.15, "lgcourse --help": 0.5, "lgcourse list": 0.5}  # ratio; seconds


def seconds(arguments: list[str]) -> float:
    """Return the processor time of a fresh process."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=store.ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> None:
    """Run everything once unmeasured, then in turn, and keep one row per start."""
    for arguments in STARTS.values():
        seconds(arguments)
    made: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(TIMES):
        for name, arguments in STARTS.items():
            made[name].append(round(seconds(arguments), 3))
    for name, values in made.items():
        store.keep(NAME, {"plan": {"start": name}, "seconds": values, "versions": store.versions()})


def summary(rows: list[store.Row]) -> str:
    """Return the table, from the last row of each start."""
    if not rows:
        return store.NOTHING
    last = {row["plan"]["start"]: row for row in rows}
    medians = {name: statistics.median(row["seconds"]) for name, row in last.items()}
    lines = ["| start | processor time, s | of import torch |", "|---|---|---|"]
    for name in STARTS:
        ratio = medians[name] / medians["import torch"]
        lines.append(f"| `{name}` | {medians[name]:.2f} | {ratio:.2f} |")
    made = rows[-1]["versions"]
    return "\n".join(lines) + (
        f"\n\nMedians of {TIMES}, in turn. torch {made['torch']}, Python {made['python']}."
    )


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the table between its marks."""
    return store.between(text, MARKS, summary(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="only write the table")
    if not parser.parse_args().table:
        measure()
    page = store.ROOT / "benchmarks" / "RESULTS.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(with_table(text, store.stored(NAME)), encoding="utf-8")
