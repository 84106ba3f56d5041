"""How do time and memory of the gathered path grow with length? Addition, 1,000 to 100,000 digits.

    python benchmarks/linear_cost.py

One pass over a whole sequence, no gradients, logits of every token; each length in a process of
its own, so that its peak memory is its own. The weights are random, since the cost does not depend
on them. The exponent p of cost = c * digits^p is a least-squares fit of the logarithms; memory
counts what the pass adds to the process before it.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import torch
from store import NOTHING, Row, between, command_line, versions

from lgcourse.training import Settings, build_model, generator, one_thread

NAME = "linear_cost"
DIGITS = (1_000, 3_000, 10_000, 30_000, 100_000)
FITTED = {"time": "seconds", "CPU time": "cpu_seconds", "added memory": "added_mib"}
MARKS = ("<!-- linear cost: begin -->", "<!-- linear cost: end -->")


def model_and_tokens(digits: int, seed: int = 0) -> tuple[Any, Any]:
    """Return a model with a random relation table, "other" excluded, and a batch of one."""
    _, task, model = build_model(
        Settings("addition", "ideal-sh", seed=seed, test_scales=(2,), train_scale=1)
    )
    source = generator(seed, "linear cost")
    with torch.no_grad():  # tables start at zero: all keys would weigh the same
        for parameter in model.positions.parameters():
            parameter.normal_(std=0.3, generator=source)
    return model.eval(), task.sample(digits, 1, source)


def peak() -> float:
    """Return the peak memory of this process in MiB (Linux counts in KiB, macOS in bytes)."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def difference(digits: int) -> float:
    """Return the largest difference of logits between the gathered and the dense path."""
    model, batch = model_and_tokens(digits)
    logits = {}
    with torch.no_grad():
        for model.path in ("gathered", "plain"):
            logits[model.path] = model(batch.tokens, digits)
    return float((logits["gathered"] - logits["plain"]).abs().max())


def one(plan: Row) -> Row:
    """Measure one length in a fresh process: a peak never falls, and a pool keeps its processes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, plan).result()


def measure(plan: Row) -> Row:
    """Measure one length: the best of some passes, and the peak memory that they add.

    Short inputs get more passes, so that all lengths have had time to warm up.
    """
    model, batch = model_and_tokens(plan["digits"], plan["seed"])
    model.path = "gathered"
    before, seconds, cpu = peak(), [], []
    with one_thread(), torch.no_grad():
        for _ in range(max(3, DIGITS[-1] // plan["digits"])):
            start, used = time.perf_counter(), time.process_time()
            model(batch.tokens, plan["digits"])
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
    return {
        "tokens": batch.tokens.shape[1],
        "seconds": round(min(seconds), 4),
        "cpu_seconds": round(min(cpu), 4),
        "added_mib": round(peak() - before, 1),
        "peak_mib": round(peak(), 1),
        "versions": versions(),
    }


def exponent(rows: list[Row], what: str) -> float:
    """Return p of value = c * digits^p by least squares of the logarithms."""
    x = [math.log(row["plan"]["digits"]) for row in rows]
    y = [math.log(max(row[what], 1e-9)) for row in rows]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return above / sum((a - mx) ** 2 for a in x)


def with_table(text: str, rows: list[Row]) -> str:
    """Return the text of RESULTS.md with the table of stored rows between its marks."""
    rows = sorted(rows, key=lambda row: row["plan"]["digits"])
    if not rows:
        return between(text, MARKS, NOTHING)
    lines = [
        "| digits | tokens | seconds | CPU seconds | added memory, MiB |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['plan']['digits']:,} | {r['tokens']:,} | {r['seconds']:.3f} "
        f"| {r['cpu_seconds']:.3f} | {r['added_mib']} |"
        for r in rows
    ]
    if len(rows) > 1:
        told = []
        for name, what in FITTED.items():
            steps = [exponent(list(two), what) for two in pairwise(rows)]
            told.append(
                f"{name} {exponent(rows, what):.2f} (between neighbours {min(steps):.2f} to "
                f"{max(steps):.2f})"
            )
        lines += ["", f"Fitted exponents: {', '.join(told)}."]
    return between(text, MARKS, "\n".join(lines))


def wanted(seeds: int) -> list[Row]:
    """Return every length with every seed."""
    return [{"digits": digits, "seed": seed} for seed in range(seeds) for digits in DIGITS]


def say(row: Row) -> str:
    """Return a short text about a finished row."""
    digits = row["plan"]["digits"]
    return f"{digits:,} digits: {row['seconds']} s, {row['added_mib']} MiB added"


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, seeds=1)
