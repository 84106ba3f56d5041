"""How long does a class of 100 take to grade, and does the grading process stay small?

For each exercise 100 submissions are made from its solution by small edits: a third is right, a
third is filled in half, and in a third a number or an operator of each answer is changed. They are
graded two at a time, as by `lgcourse grade class/ --jobs 2`. Wall seconds say what a teacher waits
on an idle machine; processor seconds, of all processes together, say the same on a busy one.

    python benchmarks/grading.py --jobs 1    grade what is missing, one class after another
    python benchmarks/grading.py --table     write the table of RESULTS.md
"""

from __future__ import annotations

import ast
import copy
import json
import random
from pathlib import Path
from typing import Any

import store

NAME = "grading"
MARKS = ("<!-- grading: begin -->", "<!-- grading: end -->")
SUBMISSIONS, JOBS, FIRST = 100, 2, 10  # memory is read after FIRST submissions, and after all
KINDS = ("right", "half", "wrong")
Notebook = dict[str, Any]


def wanted(seeds: int) -> list[store.Row]:
    """Return what defines each run: a class for each exercise."""
    numbers = [int(path.name[:2]) for path in sorted((store.ROOT / "solutions").glob("*.ipynb"))]
    return [{"exercise": number, "seed": seed} for seed in range(seeds) for number in numbers]


# --- a class --------------------------------------------------------------------------------------
def hand_in(folder: Path, exercise: int, count: int, seed: int) -> dict[str, str]:
    """Write some submissions; return id -> how it was made."""
    solution, stub = (
        json.loads(next((store.ROOT / name).glob(f"{exercise:02d}_*.ipynb")).read_text("utf-8"))
        for name in ("solutions", "exercises")
    )
    made = {}
    for number in range(count):
        kind, name = KINDS[number % 3], f"student-{number:03d}"
        notebook = submission(kind, solution, stub, random.Random(f"{seed}/{exercise}/{number}"))
        first = code_cells(notebook)[0]
        first["source"] = [f"# {name}\n", *first["source"]]  # no two are the same
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        made[name] = kind
    return made


def submission(kind: str, solution: Notebook, stub: Notebook, chance: random.Random) -> Notebook:
    """Return a notebook that is right, filled in half, or wrong in each answer."""
    made = copy.deepcopy(solution)
    pairs = zip(code_cells(made), code_cells(stub), strict=True)  # a solution has more text alone
    answers = [pair for pair in pairs if pair[0]["source"] != pair[1]["source"]]
    for index, (mine, empty) in enumerate(answers):
        if kind == "half" and index >= len(answers) / 2:
            mine["source"] = empty["source"]
        if kind == "wrong":
            mine["source"] = [changed("".join(mine["source"]), chance)]
    return made


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """Return the code cells, themselves."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def changed(source: str, chance: random.Random) -> str:
    """Return code with one number or operator changed.

    >>> changed("x = 1", random.Random(0))
    'x = 2'
    """
    tree = ast.parse(source)
    places = [node for node in ast.walk(tree) if _change(node) is not None]
    if places:
        place = chance.choice(places)
        vars(place).update(_change(place) or {})
    return ast.unparse(tree)


def _change(node: ast.AST) -> dict[str, Any] | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return {"value": value + 1}
        case ast.BinOp(op=ast.Add()):
            return {"op": ast.Sub()}
        case ast.BinOp(op=ast.Sub() | ast.Mult()):
            return {"op": ast.Add()}
        case ast.Compare(ops=[ast.Eq()]):
            return {"ops": [ast.NotEq()]}
        case ast.Compare(ops=[ast.Lt() | ast.LtE()]):
            return {"ops": [ast.Gt()]}
    return None


# --- one run --------------------------------------------------------------------------------------
def one(plan: store.Row) -> store.Row:
    """Grade one class in this process."""
    import resource
    import tempfile
    import time

    from lgcourse.grading import Settings, grade

    def processor_seconds() -> float:
        used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    megabytes: dict[int, float] = {}

    def say(line: str) -> None:
        done = line.split(" of ")[0]
        if done.isdigit():
            megabytes[int(done)] = resident()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "class")
        folder.mkdir()
        made = hand_in(folder, plan["exercise"], SUBMISSIONS, plan["seed"])
        wall, processor = time.perf_counter(), processor_seconds()
        csv = str(Path(name, "grades.csv"))
        rows = grade([str(folder)], Settings(), csv=csv, jobs=JOBS, say=say)
        wall, processor = time.perf_counter() - wall, processor_seconds() - processor
    points: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for row in rows:
        points[made[row["id"]]].append(row["score"])
    return {
        "submissions": len(rows),
        "at_a_time": JOBS,
        "seconds": round(wall, 2),
        "processor_seconds": round(processor, 2),
        "megabytes": {str(FIRST): megabytes[FIRST], str(len(rows)): megabytes[len(rows)]},
        "points": {kind: [min(values), max(values)] for kind, values in points.items()},
        "max_points": rows[0]["max_score"],
        "graded": sum(row["status"] == "graded" for row in rows) / len(rows),
        "versions": store.versions(),
    }


def resident() -> float:
    """Return the megabytes of memory that this process holds."""
    import os

    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


# --- the table ------------------------------------------------------------------------------------
def summary(rows: list[store.Row]) -> str:
    """Return the table, a line per exercise."""
    if not rows:
        return store.NOTHING
    lines = [
        "| exercise | submissions | wall, s each | processor, s each | MB of the grading process "
        f"after {FIRST} | after all | graded | points of the right, the half, the wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row["plan"]["exercise"], row["plan"]["seed"])):
        count = row["submissions"]
        each = [f"{row[key] / count:.2f}" for key in ("seconds", "processor_seconds")]
        memory = [f"{row['megabytes'][str(n)]:.0f}" for n in (FIRST, count)]
        points = [
            f"{low}" if low == high else f"{low} to {high}"
            for low, high in (row["points"][kind] for kind in KINDS)
        ]
        cells = [str(row["plan"]["exercise"]), str(count), *each, *memory, f"{row['graded']:.3f}"]
        lines.append(f"| {' | '.join(cells)} | {', '.join(points)} of {row['max_points']} |")
    versions = rows[0]["versions"]
    slowest = max(row["seconds"] / row["submissions"] for row in rows)
    lines += [
        "",
        f"{JOBS} at a time; at most {slowest:.2f} s each. torch {versions['torch']}, "
        f"Python {versions['python']}.",
    ]
    return "\n".join(lines)


def say(row: store.Row) -> str:
    each = {k: round(row[k] / row["submissions"], 2) for k in ("seconds", "processor_seconds")}
    return f"{row['plan']} {each} {row['megabytes']} {row['points']} of {row['max_points']}"


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the table between its marks."""
    return store.between(text, MARKS, summary(rows))


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    store.command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, 1)
