"""Which embedding carries short training to long inputs? The command line, over five seeds.

Every row is one call of ``lgcourse train ... --json``; its answer is stored as one line of
results/first_slice.jsonl as it ends, so that an interrupted benchmark goes on where it stopped.

    python benchmarks/first_slice.py            run what is missing, two runs at a time
    python benchmarks/first_slice.py --table    write the table of README.md from the stored rows
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import store
from store import ROOT, between, spread

RESULTS = store.RESULTS / "first_slice.jsonl"
MARKS = ("<!-- first slice: begin -->", "<!-- first slice: end -->")
SEEDS = range(5)
MOVES = ("copy", "reverse", "shift", "parity-cot")
ONE_LAYER = "--layers 1 --learning-rate 0.006 --steps 1000"  # fixed distances need no more
PLANS = [  # task, embedding, test scales, further options
    ("addition", "ideal-sh", "10,20,50,100", ""),
    *((task, "ideal-sh", "10,50,100,200", "") for task in MOVES),
    *((task, pe, "10,50", "") for task in (*MOVES, "addition") for pe in ("ape-learned", "rpe")),
    ("parity-cot-padded", "rpe", "10,20,30", ONE_LAYER),
    ("addition-padded", "rpe", "10,20,30", ONE_LAYER),
]


def arguments(task: str, pe: str, scales: str, options: str, seed: int) -> list[str]:
    """Return the arguments of one run."""
    row = ["train", task, "--pe", pe, "--test-scales", scales, "--seed", str(seed)]
    return [*row, *options.split(), "--json"]


def stored() -> list[dict]:
    """Return the rows that are there."""
    return store.stored("first_slice")


def run_missing(jobs: int) -> None:
    """Run every plan and seed that has no row yet."""
    done = {row["command"] for row in stored()}
    wanted = [arguments(*plan, seed) for plan in PLANS for seed in SEEDS]
    missing = [a for a in wanted if "lgcourse " + " ".join(a) not in done]
    lock = Lock()
    RESULTS.parent.mkdir(exist_ok=True)

    def one(row: list[str]) -> None:
        command = "lgcourse " + " ".join(row)
        with tempfile.TemporaryDirectory() as folder:
            out = subprocess.run(
                [sys.executable, "-m", "lgcourse", *row, "--out", f"{folder}/run"],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
            ).stdout
            stored_run = json.loads(Path(folder, "run", "run.json").read_text(encoding="utf-8"))
        result = json.loads(out)
        del result["run"]
        line = {"command": command, **result, "settings": stored_run["settings"]}
        line["versions"] = stored_run["versions"]
        with lock, RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{result['seconds']:6.1f} s  {result['exact_match']}  {command}", flush=True)

    print(f"{len(missing)} runs to make, {len(wanted) - len(missing)} stored")
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, missing))


def table(rows: list[dict]) -> str:
    """Return the Markdown table: per task and embedding the worst, median and best seed."""
    lines = [
        "| task | embedding | steps | training, s | exact match by scale, worst to best of seeds |",
        "|---|---|---|---|---|",
    ]
    for task, pe, scales, options in PLANS:
        mine = [r for r in rows if (r["task"], r["pe"]) == (task, pe)]
        if not mine:
            continue
        parts = [spread(f"at {s}", [r["exact_match"][s] for r in mine]) for s in scales.split(",")]
        if "hard_exact_match" in mine[0] and pe == "ideal-sh":
            last = scales.split(",")[-1]
            parts.append(spread(f"hard at {last}", [r["hard_exact_match"][last] for r in mine]))
        seconds = statistics.median(r["seconds"] for r in mine)
        failed = sum(r["exact_match"]["10"] < 0.9 for r in mine)
        note = f" (not trained in {failed} of {len(mine)} seeds)" if failed else ""
        note += f" ({mine[0]['settings']['layers']} layer)" if options else ""
        lines.append(
            f"| {task} | {pe}{note} | {mine[0]['steps']} | {seconds:.0f} | {', '.join(parts)} |"
        )
    counts = sorted({sum(r["task"] == t and r["pe"] == p for r in rows) for t, p, *_ in PLANS})
    versions = rows[0]["versions"]
    lines.append(
        f"\nSeeds per row: {'/'.join(map(str, counts))}. Training on scales 1 to 10; "
        f"{rows[0]['samples']} fresh samples per scale, 50 hard ones for addition (carry chains). "
        f"Seconds are the median of one thread, two runs at a time. torch {versions['torch']}, "
        f"Python {versions['python']}, {versions['machine']}."
    )
    return "\n".join(lines)


def with_table(readme: str, rows: list[dict]) -> str:
    """Return the README with the table between its two marks."""
    return between(readme, MARKS, table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="only write the table of README.md")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    chosen = parser.parse_args()
    if not chosen.table:
        run_missing(chosen.jobs)
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), stored()), encoding="utf-8")


if __name__ == "__main__":
    main()
