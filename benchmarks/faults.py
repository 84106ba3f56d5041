"""Does an interruption cost anything? Processes are killed, resumed, and held against a whole run.

`train`, `sweep` and `grade` are started as real processes that announce every step of a training
and every file that they open, rename or remove. At an event that a seed chooses the process gets
SIGKILL: either exactly there, while it waits ("held"), or while it goes on ("running"). The same
command with --resume must then leave the files of an undisturbed run, bit for bit, apart from
seconds.

    python benchmarks/faults.py            run what is missing, one at a time
    python benchmarks/faults.py --table    write the table of RESULTS.md
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import store

NAME = "faults"
MARKS = ("<!-- faults: begin -->", "<!-- faults: end -->")
KILLS = {"train": 25, "sweep": 15, "grade": 10}  # 50 in all
WAYS = ("held", "running")

# The program that is killed: the command line itself, with a look-out in front of it.
WATCHED = """
import os, sys

events = os.dup(1)
os.dup2(2, 1)
way, place, *arguments = sys.argv[1:]


def tell(text):
    os.write(events, (text + "\\n").encode())
    if way == "held" and not os.read(0, 1):
        os._exit(9)


def look(event, args):
    if event not in ("open", "os.rename", "os.link", "os.remove", "os.mkdir") or not args:
        return
    if isinstance(args[0], str) and args[0].startswith(place):
        if event != "open" or (args[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            tell(event + " " + os.path.basename(args[0]).replace(str(os.getpid()), "PID"))


from lgcourse import cli
from lgcourse.training import runs
from lgcourse.training.trainer import Trainer

update = Trainer.update


def counted(trainer):
    update(trainer)
    tell("step " + str(trainer.step))


runs.SAVE_EVERY, Trainer.update = 0.0, counted
sys.addaudithook(look)
cli.main(arguments)
"""

SWEEP = """
tasks = ["copy", "parity-cot"]
embeddings = ["none", "ideal-sh"]
seeds = 2
train_scales = [2]
test_scales = [3]
factor = 2
settings = {steps = 4, width = 8, heads = 2, samples = 8, hard_samples = 0}
"""
ANSWERS = {  # submissions of a class, from right to broken
    "anna.py": "def exact_match(guess, target):\n    return (guess == target).all(1)\n",
    "bert.py": "def exact_match(guess, target):\n    return (guess == target).any(1)\n",
    "cleo.py": "def exact_match(guess, target):\n    return guess @ target\n",
    "dora.ipynb": '{"cells": [',
}


def arguments(kind: str, folder: Path) -> list[str]:
    """Return the command of one kind; all that it writes lies in folder / "out"."""
    out = str(folder / "out")
    if kind == "train":
        small = "--steps 24 --width 16 --heads 2 --layers 2 --batch 16 --dropout 0.1 --samples 20"
        scales = "--train-scale 3 --test-scales 3,7 --seed 3"
        return [
            "train",
            "addition",
            "--pe",
            "lbpe-sh",
            *small.split(),
            *scales.split(),
            "--out",
            out,
        ]
    if kind == "sweep":
        (folder / "small.toml").write_text(SWEEP, encoding="utf-8")
        return ["sweep", str(folder / "small.toml"), "--out", out]
    (folder / "class").mkdir(exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    for name, text in ANSWERS.items():
        (folder / "class" / name).write_text(text, encoding="utf-8")
    book = ["--csv", f"{out}/grades.csv", "--html", f"{out}/pages"]
    return ["grade", str(folder / "class"), "--only", "exact_match", *book]


def environment() -> dict[str, str]:
    """Return the environment of a process: this package, one thread."""
    path = os.pathsep.join([str(store.ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def watched(way: str, kind: str, folder: Path) -> Iterator[str]:
    """Run a command to its end and yield its events; closed early, the process is killed."""
    command = [sys.executable, "-c", WATCHED, way, str(folder / "out"), *arguments(kind, folder)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            for line in process.stdout:
                yield line.strip()
                if way == "held":
                    process.stdin.write("g")
                    process.stdin.flush()
        finally:
            process.kill()


def kill(way: str, kind: str, folder: Path, at: int) -> str:
    """Kill a command at its event number `at`, from 1, and return this event."""
    seen = ""
    events = watched(way, kind, folder)
    for number, event in enumerate(events, start=1):
        seen = event
        if number == at:
            events.close()  # type: ignore[attr-defined]
            break
    return seen


def resume(kind: str, folder: Path) -> None:
    """Run the command again with --resume, in a process of its own."""
    command = [sys.executable, "-m", "lgcourse", *arguments(kind, folder), "--resume"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-500:]}")


TIMED = ("seconds", "cpu_seconds", "seal", "sum")  # a seal and a row's sum cover the seconds


def finals(folder: Path) -> dict[str, bytes]:
    """Return every file that a command has left in folder / "out", without its seconds.

    Of files to which lines are added as work ends, the order is left out.
    """
    out, found = folder / "out", {}
    for path in sorted(out.rglob("*")):
        if path.is_file():
            found[path.relative_to(out).as_posix()] = without_time(path, str(folder))
    return found


def without_time(path: Path, place: str) -> bytes:
    """Return the content of a file without what depends on time and place."""
    data = path.read_bytes()
    if path.name == "results.csv":
        import pandas as pd

        return pd.read_csv(path).drop(columns=["seconds", "cpu_seconds"]).to_csv().encode()
    if path.name == "run.json":
        return json.dumps(_timeless(json.loads(data)), sort_keys=True).replace(place, "").encode()
    if path.suffix == ".jsonl":
        lines = [
            json.dumps(_timeless(json.loads(line)), sort_keys=True) for line in data.splitlines()
        ]
        return "\n".join(sorted(set(lines))).encode()
    return data


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in TIMED}
    return value


def wanted(seeds: int) -> list[store.Row]:
    """Return the kills: of each kind as many as KILLS says."""
    return [
        {"kind": kind, "seed": seed, "way": WAYS[seed % 2]}
        for kind, count in KILLS.items()
        for seed in range(min(seeds, count))
    ]


def one(plan: store.Row) -> store.Row:
    """Kill one process, resume, and compare."""
    events, expected = undisturbed(plan["kind"])
    at = moment(events, plan["seed"])
    with tempfile.TemporaryDirectory() as place:
        event = kill(plan["way"], plan["kind"], Path(place), at)
        resume(plan["kind"], Path(place))
        differ = differences(expected, finals(Path(place)))
    facts = {"event": event, "number": at, "events": len(events), "files": len(expected)}
    return {**facts, "differ": differ, "versions": store.versions()}


@lru_cache
def undisturbed(kind: str) -> tuple[list[str], dict[str, bytes]]:
    """Return the events of a command that nobody kills, and its files."""
    with tempfile.TemporaryDirectory() as place:
        return list(watched("held", kind, Path(place))), finals(Path(place))


def moment(events: list[str], seed: int) -> int:
    """Return the number of an event, from 1: a step of a training, any event, or a rare one.

    Most events are steps and what each step writes. Folders are made and results written once.
    """
    often = Counter(map(_sort, events))
    every = list(range(1, len(events) + 1))
    steps = [number for number in every if _sort(events[number - 1]) == "step"]
    rare = [number for number in every if often[_sort(events[number - 1])] <= 2]
    return random.Random(f"moment {seed}").choice((steps or every, every, rare)[seed % 3])


def _sort(event: str) -> str:
    return "step" if event.startswith("step") else event


def differences(one: dict[str, bytes], two: dict[str, bytes]) -> list[str]:
    """Return the names of files that differ or that only one side has."""
    return [name for name in sorted({*one, *two}) if one.get(name) != two.get(name)]


def summary(rows: list[store.Row]) -> str:
    """Return the table: kills by command and way."""
    if not rows:
        return store.NOTHING
    lines = [
        "| command | killed | processes | at steps | at files | same files after --resume |",
        "|---|---|---|---|---|---|",
    ]
    for kind in KILLS:
        for way in WAYS:
            mine = [r for r in rows if (r["plan"]["kind"], r["plan"]["way"]) == (kind, way)]
            if mine:
                steps = sum(row["event"].startswith("step") for row in mine)
                same = sum(not row["differ"] for row in mine)
                where = "at the event" if way == "held" else "after it, while running"
                lines.append(
                    f"| {kind} | {where} | {len(mine)} | {steps} | {len(mine) - steps} "
                    f"| {same} of {len(mine)} |"
                )
    made = rows[-1]["versions"]
    return "\n".join(lines) + f"\n\ntorch {made['torch']}, Python {made['python']}, on Linux."


def say(row: store.Row) -> str:
    """Return a line about a row."""
    differ = f"differ: {', '.join(row['differ'])}" if row["differ"] else "same"
    return f"{row['plan']} killed at {row['number']} of {row['events']}, {row['event']}: {differ}"


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the table between its marks."""
    return store.between(text, MARKS, summary(rows))


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    store.command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, max(KILLS.values()))
