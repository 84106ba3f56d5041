"""Does the proved addition model add numbers of 10,000 digits, and of a million? Every digit of it.

    python benchmarks/long.py            run what is missing
    python benchmarks/long.py --table    write the table of RESULTS.md

The model learns from additions of at most 10 digits and gets its certificate; then it is tested by
teacher forcing on the gathered path, on random numbers and on numbers whose carry goes through
every column (the first is 99...9 + 1). Whether an answer is right is decided by a loop over digits,
as one adds on paper. Each run is a process of its own, so that its peak memory is its own; one
thread. All runs train the same model: the hashes of the certificate say so.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import store
from store import NOTHING, Row, between

NAME = "long"
MARKS = ("<!-- long: begin -->", "<!-- long: end -->")
INSTANCES = {10_000: 100, 1_000_000: 1}
KINDS = {"random": "random", "carries": "carry through every column, or nearly"}


def wanted(seeds: int) -> list[Row]:
    """Return what defines each run."""
    return [
        {"digits": digits, "kind": kind, "instances": count, "seed": seed}
        for seed in range(seeds)
        for digits, count in INSTANCES.items()
        for kind in KINDS
    ]


def command(seed: int) -> str:
    """Return the command that trains the same model."""
    return f"lgcourse train addition --pe ideal-sh --train-scale 10 --seed {seed}"


def one(plan: Row) -> Row:
    """Make a run in a fresh process: a peak never falls, and a pool keeps its processes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, plan).result()


def measure(plan: Row) -> Row:
    """Train the model, certify it, and test it on long numbers."""
    from lgcourse.certify.certificate import certify_run, data_hash
    from lgcourse.training import Settings, generator, load_run, one_thread, train_run

    settings = Settings("addition", "ideal-sh", train_scale=10, seed=plan["seed"])
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        trained = train_run(settings, Path(folder) / "run", device="cpu")
        proof = certify_run(Path(folder) / "run").to_json()
        run = load_run(Path(folder) / "run")
        source = generator(plan["seed"], f"long {plan['kind']} at {plan['digits']}")
        prompts = PROMPTS[plan["kind"]](run.task, plan["digits"], plan["instances"], source)
        start, cpu = time.perf_counter(), time.process_time()
        exact, longest = score(run.model, run.task, prompts, plan["digits"])
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    lasting = {name: value for name, value in proof.items() if name != "seconds"}
    return {
        "command": command(plan["seed"]),
        "exact": exact,
        "longest_carry": longest,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "training_seconds": trained["seconds"],
        "peak_mib": round(peak()),
        "certificate": {
            "certified": proof["certified"],
            "margin": proof["margin"],
            "sha256": {"certificate": data_hash(lasting), **proof["sha256"]},
        },
        "settings": run.settings.to_json(),
        "versions": store.versions(),
    }


def peak() -> float:
    """Return the peak memory of this process in MiB (Linux counts in KiB, macOS in bytes)."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# --- the numbers, as digits, least digit first ---------------------------------------------------
def random_numbers(task: Any, digits: int, count: int, source: Any) -> Any:
    """Draw prompts as training does, [b p]."""
    return task.sample(digits, count, source).tokens[:, : task.prompt_length(digits)]


def carries(task: Any, digits: int, count: int, source: Any) -> Any:
    """Draw prompts with long carries, [b p]; the first is 99...9 + 1."""
    prompts = task.hard(digits, count, source).tokens[:, : task.prompt_length(digits)]
    prompts[0, :digits], prompts[0, digits + 1 : -1] = 9, 0
    prompts[0, digits + 1] = 1
    return prompts


PROMPTS = {"random": random_numbers, "carries": carries}


def on_paper(a: list[int], b: list[int]) -> tuple[list[int], int]:
    """Add digit by digit; return the digits and through how many columns a carry went at most.

    >>> on_paper([9, 9, 5], [1, 0, 1])
    ([0, 0, 7, 0], 2)
    """
    digits, carry, length, longest = [], 0, 0, 0
    for x, y in zip(a, b, strict=True):
        carry, digit = divmod(x + y + carry, 10)
        digits.append(digit)
        length = length + 1 if carry else 0
        longest = max(longest, length)
    return [*digits, carry], longest


def score(model: Any, task: Any, prompts: Any, digits: int) -> tuple[int, int]:
    """Return how many sums a model gets right to the last digit, and the longest carry."""
    right, longest = right_digits(model, task, prompts, digits)
    return int(right.all(dim=1).sum()), longest


def right_digits(model: Any, task: Any, prompts: Any, digits: int) -> tuple[Any, int]:
    """Return which digits of each sum a model gets right, ``[b a]``, and the longest carry.

    The model is told the true digits before each one that it has to say (teacher forcing): its
    answers are all right if and only if it writes the whole sum by itself.

    Args:
        model: a `Transformer` that names its keys.
        task: addition.
        prompts: a + b =, ``[b p]``.
        digits: of a and of b.
    """
    import torch

    from lgcourse.tasks.base import Batch
    from lgcourse.training.evaluation import right_tokens

    sums, longest = [], 0
    for row in prompts.tolist():
        total, length = on_paper(row[:digits], row[digits + 1 : -1])
        sums.append(total)
        longest = max(longest, length)
    tokens = torch.cat([prompts, torch.tensor(sums)], dim=1)
    answer = torch.arange(tokens.shape[1]) >= prompts.shape[1]
    before, model.path = model.path, "gathered"
    right = right_tokens(model, Batch(tokens, answer, digits))
    model.path = before
    return right, longest


# --- the table -----------------------------------------------------------------------------------
def with_table(text: str, rows: list[Row]) -> str:
    """Return the text of RESULTS.md with the table of stored rows between its marks."""
    if not rows:
        return between(text, MARKS, NOTHING)
    lines = [
        "| digits | numbers | exact | longest carry, columns | seconds | peak memory, MiB |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: wanted(row["plan"]["seed"] + 1).index(row["plan"])):
        plan = row["plan"]
        lines.append(
            f"| {plan['digits']:,} | {KINDS[plan['kind']]} | {row['exact']} of {plan['instances']} "
            f"| {row['longest_carry']:,} | {row['seconds']:.1f} | {row['peak_mib']:,} |"
        )
    lines.append("")
    for proof in {row["command"]: row["certificate"] for row in rows}.items():
        lines.append(told(*proof))
    return between(text, MARKS, "\n".join(lines))


def told(command: str, proof: Row) -> str:
    """Return a sentence about the model of some rows."""
    verdict = "certified for every length" if proof["certified"] else "not certified"
    return (
        f"The model: `{command}`, {verdict}, smallest margin {proof['margin']:.1f}; SHA-256 of its "
        f"weights {proof['sha256']['weights'][:16]}..., of its certificate "
        f"{proof['sha256']['certificate'][:16]}..."
    )


def say(row: Row) -> str:
    """Return a short text about a finished row."""
    plan = row["plan"]
    return (
        f"{plan['digits']:,} digits, {plan['kind']}: {row['exact']} of {plan['instances']} exact, "
        f"{row['seconds']} s, {row['peak_mib']:,} MiB"
    )


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    store.command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, seeds=1)
