"""The main job in minutes: train on additions of up to 10 digits, add numbers of 100 digits."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from lgcourse import report
from lgcourse.training.answer import answer
from lgcourse.training.runs import load_run, train_run
from lgcourse.training.settings import Settings

STEPS = {"ape-learned": 1500, "rpe": 1500, "ideal-sh": 1000}
SCALES = (10, 20, 50, 100)
TRAINED = 0.9  # exact match at the training scale from which we call a model trained


def main(scales=SCALES, steps: int = 0, seed: int = 0) -> None:
    """Train, compare, and let the best model answer.

    Args:
        scales: the scales to test; the last one is the length of the two numbers.
        steps: updates per model; 0 takes `STEPS`.
        seed: seed of everything.
    """
    print(
        "Three Transformers learn to add numbers of 1 to 10 digits. They differ in how they are\n"
        "told where a token stands (the third is smaller, too: one layer, fewer updates).\n"
        "Then they meet longer numbers.\n"
    )
    results = {pe: _train(pe, scales, steps, seed) for pe in STEPS}
    print("\n".join(comparison(results)))
    best = max(results.values(), key=lambda r: list(r["exact_match"].values())[-1])
    source = random.Random(seed)
    a, b = (str(source.randrange(10 ** (scales[-1] - 1), 10 ** scales[-1])) for _ in range(2))
    print(f"\nThe best model is {best['pe']}. It adds two numbers of {scales[-1]} digits:\n")
    print(f"       {a.rjust(scales[-1] + 1)}\n     + {b.rjust(scales[-1] + 1)}")
    print("\n".join(report.answer_lines(answer(load_run(best["run"]), f"{a}+{b}="))))
    print(
        f'\nNext: ask it yourself         {program()} solve {best["run"]} "905+128="\n'
        f"      see all commands        {program()} --help\n"
        "      open the first lesson   make lab"
    )


def program() -> str:
    """Return how to call ``lgcourse`` from the current folder."""
    installed = Path(sys.executable).with_name("lgcourse")
    return os.path.relpath(installed) if installed.exists() else "lgcourse"


def _train(pe: str, scales, steps: int, seed: int):
    settings = Settings(
        "addition", pe, test_scales=tuple(scales), steps=steps or STEPS[pe], seed=seed
    )
    with report.Progress(f"addition, {pe}") as bar:
        return train_run(
            settings, progress=bar.step, testing=bar.testing, picture=report.curve_picture
        )


def comparison(results) -> list[str]:
    """Return the table of exact match, with a word on models that are not trained."""
    scales = list(next(iter(results.values()))["exact_match"])
    head = ["exact match at", *(f"{scale} digits" for scale in scales), "training", ""]
    rows = []
    for pe, result in results.items():
        scores = result["exact_match"]
        trained = scores[scales[0]] >= TRAINED
        rows.append(
            [
                pe,
                *(f"{v:.3f}" for v in scores.values()),
                f"{result['seconds']:.0f} s",
                "" if trained else "not trained: says nothing about length",
            ]
        )
    return report.text_table(head, rows)
