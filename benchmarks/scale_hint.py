"""What does a Scale Hint save? Addition with the hint against zero-padded addition without it.

Both models have the same sizes, the same learner and the ideal relation of their layout: `ideal-sh`
on unpadded addition, the scale-free `ideal` on addition padded to W digits. Both are tested every
25 steps. Wrong hints are the negative control, in testing and in training.

    python benchmarks/scale_hint.py            run what is missing, two runs at a time
    python benchmarks/scale_hint.py --table    write the table of RESULTS.md
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import store

NAME = "scale_hint"
MARKS = ("<!-- scale hint: begin -->", "<!-- scale hint: end -->")
SEEDS, STEPS, EVERY, SAMPLES = 5, 500, 25, 100
TRAINED, WIDTH = 10, 30  # training sizes 1..10; padded to 30 digits, which is also the longest test
LAYOUTS: dict[str, tuple[str, str, dict]] = {
    "hint": ("addition", "ideal-sh", {}),
    "padded": ("addition-padded", "ideal", {"width": WIDTH}),
}
GOAL = 0.99
TOLD: dict[str, Callable[[int, int], int]] = {  # what the model is told, from n and a random size
    "n": lambda n, other: n,
    "n + 1": lambda n, other: n + 1,
    "n - 1": lambda n, other: max(1, n - 1),
    "always 10": lambda n, other: TRAINED,
    "n of another sample": lambda n, other: other,
}
TRAINED_WRONG = ("always 10", "n of another sample")  # n unknown, and n without meaning


def wanted(seeds: int) -> Iterator[store.Row]:
    """Yield what defines each run."""
    for seed in range(seeds):
        for kind in LAYOUTS:
            yield {"kind": kind, "seed": seed}
        for told in ("n", *TRAINED_WRONG):
            yield {"kind": "wrong hints", "seed": seed, "trained with": told}


def one(plan: store.Row) -> store.Row:
    """Make one run."""
    if plan["kind"] == "wrong hints":
        result = wrong_hints(plan["seed"], plan["trained with"])
    else:
        result = curve(plan["kind"], plan["seed"])
    return {**result, "versions": store.versions()}


# --- accuracy against tokens and FLOPs ------------------------------------------------------------
def curve(kind: str, seed: int) -> store.Row:
    """Train one layout and measure exact match on the way."""
    import torch

    from lgcourse.training import Settings, build_model, evaluate, fit

    name, pe, options = LAYOUTS[kind]
    settings, task, model = build_model(
        Settings(name, pe, seed=seed, test_scales=(TRAINED, WIDTH), task_options=options)
    )
    scales, scores = list(range(1, TRAINED + 1)), {}

    def check(trainer) -> None:
        current = [p.detach().clone() for p in model.parameters()]
        trainer.average.copy_to(model)
        table = evaluate(model, task, [TRAINED, WIDTH], SAMPLES, seed)
        scores[trainer.step] = table.to_json()["exact_match"]
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), current, strict=True):
                parameter.copy_(value)

    tokens = statistics.mean(settings.batch * (task.length(n) - 1) for n in scales)
    cost = statistics.mean(flops(model, task, n, settings.batch) for n in scales)
    rate = settings.learning_rate
    fit(model, task, scales, STEPS, seed, check, EVERY, learning_rate=rate, device="cpu")
    return {
        "exact_match": scores,
        "tokens_per_step": tokens,
        "flops_per_step": cost,
        "settings": settings.to_json(),
    }


def flops(model, task, scale: int, batch: int) -> int:
    """Count the floating-point operations of one update, forwards and backwards, by PyTorch."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    drawn = task.sample(scale, batch, torch.Generator().manual_seed(0))
    last = drawn.tokens.shape[1] - int(drawn.answer.nonzero()[0])
    with FlopCounterMode(display=False) as counter:
        model(drawn.tokens[:, :-1], scale, last=last).sum().backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


# --- wrong hints ----------------------------------------------------------------------------------
class Told:
    """A task whose samples are right and whose hint is not."""

    def __init__(self, task: Any, rule: str, seed: int):
        import torch

        self.task, self.rule = task, TOLD[rule]
        self.source = torch.Generator().manual_seed(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def sample(self, scale, batch, generator):
        import torch

        other = int(torch.randint(1, 2 * TRAINED, (), generator=self.source))
        other += other >= scale  # any scale up to 20, except the right one
        drawn = self.task.sample(scale, batch, generator)
        return replace(drawn, scale=self.rule(scale, other))


def wrong_hints(seed: int, trained_with: str) -> store.Row:
    """Train with one hint, and test with all of them."""
    from lgcourse.training import Settings, build_model, evaluate, fit

    settings, task, model = build_model(
        Settings("addition", "ideal-sh", seed=seed, test_scales=(TRAINED, 2 * TRAINED))
    )
    task_told = Told(task, trained_with, seed)
    rate = settings.learning_rate
    fit(model, task_told, range(1, 11), settings.steps, seed, learning_rate=rate, device="cpu")
    scores = {}
    for rule in TOLD:
        tested = Told(task, rule, seed + 1)
        table = evaluate(model, tested, (TRAINED, 2 * TRAINED), SAMPLES, seed)
        scores[rule] = table.to_json()["exact_match"]
    return {"exact_match": scores, "settings": settings.to_json()}


# --- the table ------------------------------------------------------------------------------------
def reached(row: store.Row, scale: str) -> int | None:
    """Return the first step from which on exact match stays at the goal, None if there is none."""
    steps = [int(step) for step in row["exact_match"]]
    below = [step for step in steps if row["exact_match"][str(step)][scale] < GOAL]
    after = [step for step in steps if step > max(below, default=0)]
    return min(after, default=None)


def score_at(row: store.Row, amount: float, unit: str, scale: str) -> float:
    """Return exact match when so many tokens or FLOPs were spent; 0 before the first test."""
    steps = [step for step in row["exact_match"] if int(step) * row[f"{unit}_per_step"] <= amount]
    return row["exact_match"][steps[-1]][scale] if steps else 0.0


def summary(rows: list[store.Row]) -> str:
    """Return the tables and what follows from them."""
    if not rows:
        return store.NOTHING
    curves = {k: [r for r in rows if r["plan"]["kind"] == k] for k in LAYOUTS}
    hint, padded = curves["hint"], curves["padded"]
    far = str(WIDTH)
    lines = [
        f"| layout | tokens per update | GFLOP per update | updates until {GOAL} at {far} digits "
        "| GFLOP until then |",
        "|---|---|---|---|---|",
    ]
    spent = {}
    for kind, mine in curves.items():
        tokens, cost = mine[0]["tokens_per_step"], mine[0]["flops_per_step"] / 1e9
        steps = [reached(r, far) for r in mine]
        known = [s for s in steps if s is not None]
        missed = f" (not reached in {len(steps) - len(known)})" if len(known) < len(steps) else ""
        spent[kind] = statistics.median(known) * cost if known else float("nan")
        lines.append(
            f"| {'unpadded, with hint' if kind == 'hint' else f'padded to {far}, without'} "
            f"| {tokens:,.0f} | {cost:.2f} | {min(known)} to {max(known)}{missed} "
            f"| {spent[kind]:.0f} |"
        )
    parts = []
    for unit in ("tokens", "flops"):
        # as much as the hinted model has spent when all its seeds are at the goal
        amount = max(reached(r, far) or STEPS for r in hint) * hint[0][f"{unit}_per_step"]
        low, high = (
            store.spread("", [score_at(r, amount, unit, far) for r in mine]).removeprefix(": ")
            for mine in (hint, padded)
        )
        name = "tokens" if unit == "tokens" else "FLOPs"
        parts.append(f"at equal {name} {low} with the hint and {high} padded")
    saved = 1 - spent["hint"] / spent["padded"]
    lines += [
        "",
        f"Exact match at {far} digits: {', '.join(parts)}. At equal accuracy the hint saves "
        f"{100 * saved:.0f} % of the FLOPs (medians of the seeds that got there within {STEPS} "
        "updates).",
        "",
        *wrong_table([r for r in rows if r["plan"]["kind"] == "wrong hints"]),
    ]
    return "\n".join(lines)


def wrong_table(rows: list[store.Row]) -> list[str]:
    """Return the table of wrong hints: exact match, worst to best seed."""
    lines = [
        f"| trained with | tested with | exact match at {TRAINED} | at {2 * TRAINED} |",
        "|---|---|---|---|",
    ]
    for trained in ("n", *TRAINED_WRONG):
        mine = [r for r in rows if r["plan"]["trained with"] == trained]
        for rule in TOLD:
            if trained != "n" and rule not in ("n", trained):
                continue
            cells = [
                store.spread("", [r["exact_match"][rule][str(n)] for r in mine]).removeprefix(": ")
                for n in (TRAINED, 2 * TRAINED)
            ]
            lines.append(f"| {trained} | {rule} | {cells[0]} | {cells[1]} |")
    return lines


def say(row: store.Row) -> str:
    return str(row["plan"])


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the tables between their marks."""
    return store.between(text, MARKS, summary(rows))


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    store.command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, SEEDS)
