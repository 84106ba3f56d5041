"""How much quicker does a model write with a key-value cache? Addition of long numbers, greedily.

    python benchmarks/generation.py                       ideal-sh, 1,000 digits
    python benchmarks/generation.py --pe rope --digits 500

Both ways write the whole answer, in one process and on one thread; the tokens must be equal. The
weights are random, since time does not depend on them. A line is added to results/generation.jsonl.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

import lgcourse
from lgcourse.model import generate
from lgcourse.training import Settings, build_model, generator, one_thread

RESULTS = Path(__file__).resolve().parent / "results" / "generation.jsonl"


def measure(pe: str, digits: int, path: str = "auto", seed: int = 0) -> dict[str, Any]:
    """Generate one answer with and without a cache, and return the seconds and their ratio.

    Args:
        pe: a position embedding.
        digits: digits of the two numbers.
        path: the attention path of both.
        seed: seed of the weights and of the numbers.
    """
    settings, task, model = build_model(
        Settings("addition", pe, seed=seed, test_scales=(digits,), train_scale=1)
    )
    source = generator(seed, "tables")
    with torch.no_grad():  # tables start at zero: tokens would hardly change
        for parameter in model.positions.parameters():
            parameter.normal_(std=0.3, generator=source)
    model.path = path
    prompt = task.sample(digits, 1, source).tokens[:, : task.prompt_length(digits)]
    count = task.answer_length(digits)
    generate(model, prompt, digits, 2)  # what is kept per scale is made before the clock runs
    seconds, answers = {}, {}
    for cache in (True, False):
        start = time.perf_counter()
        answers[cache] = generate(model, prompt, digits, count, cache=cache)
        seconds[cache] = time.perf_counter() - start
    return {
        "pe": pe,
        "digits": digits,
        "path": path,
        "seed": seed,
        "layers": settings.layers,
        "width": settings.width,
        "prompt_tokens": prompt.shape[1],
        "new_tokens": count,
        "seconds_with_cache": round(seconds[True], 3),
        "seconds_without": round(seconds[False], 3),
        "ratio": round(seconds[False] / seconds[True], 1),
        "equal_tokens": bool(torch.equal(answers[True], answers[False])),
        "different_tokens": int(answers[True].unique().numel()),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pe", default="ideal-sh")
    parser.add_argument("--digits", type=int, default=1000)
    parser.add_argument("--path", default="auto", help="attention path of both")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    with one_thread():
        row = measure(chosen.pe, chosen.digits, chosen.path, chosen.seed)
    row["versions"] = {
        "lgcourse": lgcourse.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(
        f"{row['pe']}, {row['digits']:,} digits, path {row['path']}: {row['new_tokens']:,} tokens "
        f"behind {row['prompt_tokens']:,} in {row['seconds_with_cache']} s with a cache, in "
        f"{row['seconds_without']} s without: {row['ratio']} times as quick; tokens "
        f"{'equal' if row['equal_tokens'] else 'NOT EQUAL'}"
    )
    return 0 if row["equal_tokens"] else 1


if __name__ == "__main__":
    sys.exit(main())
