"""Do learned relations find the alignment by themselves? Ten seeds per task, one set of defaults.

Each row is one run of ``lgcourse train`` (its command is stored in the row) with what `explain`,
`predict` and `certify` say of the model, and its exact match on longer inputs. The run folders stay
under runs/learned_relations/; a run that is there is not trained again.

    python benchmarks/learned_relations.py            run what is missing, two runs at a time
    python benchmarks/learned_relations.py --jobs 1   one at a time: so were the 2-layer runs timed
    python benchmarks/learned_relations.py --seeds 2  seeds 0 and 1 only
    python benchmarks/learned_relations.py --again    explain and predict kept runs anew
    python benchmarks/learned_relations.py --table    write the tables of README.md and RESULTS.md
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import store

NAME = "learned_relations"
MARKS = ("<!-- learned relations: begin -->", "<!-- learned relations: end -->")
SEEDS = 10
SAMPLES, LONG_SAMPLES = 200, 50
MOVES = ("copy", "reverse", "shift", "parity-cot", "modsum-cot")
OTHERS = ("multiply-digit", "interleave", "permutation-cot-s3", "compare-cot", "successor")
PERMUTATIONS = ("permutation-cot-s3", "permutation-cot-s5")
SHORT, LONG = (10, 20, 50, 100), (1000,)
KEPT = store.ROOT / "runs" / NAME
TOLD = ("certified", "verdict", "reason", "signatures", "tuples", "margin", "error", "seconds")


def plan(task: str, pe: str = "lbpe-sh", scales=SHORT, long=LONG, **settings: Any) -> store.Row:
    """Return what defines a run, but for its seed; scales are written as the command line does."""
    return {
        "task": task,
        "pe": pe,
        "scales": ",".join(map(str, scales)),
        "long": ",".join(map(str, long)),
        **settings,
    }


UNEQUAL = plan(
    "addition-unequal",
    scales=("10x10", "30x10", "100x100", "100x37"),
    long=("1000x500", "1000x1000"),
)
PARTS = {
    "main": [
        *(plan(task) for task in MOVES),
        plan("addition"),
        plan("addition", layers=2),
        UNEQUAL,
        *(plan(task) for task in OTHERS),
    ],
    "deep": [plan("addition", layers=3), plan("addition", layers=4)],
    "no hint": [
        plan("parity-cot-padded", "lbpe", (10, 20, 30), (), task_options={"width": 30}),
        plan("addition-padded", "lbpe", (10, 15, 20), (), task_options={"width": 20}),
        plan("copy", "lbpe", (10, 20, 50), ()),
        plan("copy", "lbpe", (10, 20, 50), (), layers=2),
    ],
    "by hand": [plan("addition", "ideal-sh")],
    "contrast": [
        *(plan(task, "lbpe-mlp-sh", (10, 20, 50), ()) for task in ("copy", "addition")),
        *(plan(task, "rpe-sh", (10, 20, 50), ()) for task in ("copy", "reverse", "addition")),
    ],
    "proofs": [
        *(plan(task, "ideal-sh") for task in (*MOVES, "multiply-digit", *PERMUTATIONS)),
        plan("permutation-cot-s5"),
    ],
}

TITLES = {
    "deep": "More layers",
    "no hint": "LBPE without a hint: padded layouts, and unpadded copy, where it must fail",
    "by hand": "The ideal relation, 10 to 1,000 digits",
    "contrast": "Contrast: a relation without a form (lbpe-mlp-sh), and a fixed one with learned "
    "numbers (rpe-sh)",
    "proofs": "More models that were tried for a certificate",
}


def wanted(part: str, seeds: int) -> Iterator[store.Row]:
    """Yield the runs of a part, seed by seed."""
    for seed in range(seeds):
        for row in PARTS[part]:
            yield {"part": part, **row, "seed": seed}


def every_part(seeds: int) -> Iterator[store.Row]:
    """Yield all runs, the main part first."""
    for part in PARTS:
        yield from wanted(part, seeds)


def one(row: store.Row) -> store.Row:
    """Train, test and explain one run."""
    from lgcourse.certify import certify_run
    from lgcourse.cli import parse_scales
    from lgcourse.training import Settings, evaluate, load_run, train_run

    given = {k: v for k, v in row.items() if k not in ("part", "scales", "long")}
    short, long = parse_scales(row["scales"]), parse_scales(row["long"]) if row["long"] else ()
    settings = Settings(**given, test_scales=short, samples=SAMPLES, hard_samples=SAMPLES)
    start, cpu = time.perf_counter(), time.process_time()
    folder = KEPT / slug(row)
    result = train_run(settings, folder, resume=True, device="cpu")
    run = load_run(folder)
    whole, used = time.perf_counter() - start, time.process_time() - cpu
    scores, hard = result["exact_match"], result.get("hard_exact_match", {})
    if long:
        table = evaluate(run.model, run.task, long, LONG_SAMPLES, row["seed"], LONG_SAMPLES)
        scores |= table.to_json()["exact_match"]
        hard |= table.to_json().get("hard_exact_match", {})
    stored_settings = run.settings.to_json()
    proof = None
    if run.settings.layers == 1:
        made = certify_run(folder).to_json()
        proof = {name: made[name] for name in TOLD}
    return {
        "command": command(row),
        "exact_match": scores,
        "hard_exact_match": hard,
        "samples": {"short": SAMPLES, "long": LONG_SAMPLES},
        "seconds": result["seconds"],
        "cpu_share": round(used / whole, 2),  # below 1: other work ran beside it
        **judged_by_theory(run, (*short, *long)),
        "certificate": proof,
        "settings": stored_settings,
        "versions": store.versions(),
    }


def judged_by_theory(run, scales) -> store.Row:
    """Return the relation of a run in words, its agreement with the ideal one, and a prediction."""
    from lgcourse.training.explanation import explain

    run.settings = replace(run.settings, test_scales=scales)
    found = explain(run)
    return {
        "relation": [f"layer {e['layer']} head {e['head']}: {e['words']}" for e in found.heads],
        "agrees": None if found.agreement is None else found.agreement.agrees,
        "predicted": found.prediction.to_json(),
    }


def again(row: store.Row) -> store.Row | None:
    """Return what theory says of a kept run now."""
    from lgcourse.cli import parse_scales
    from lgcourse.training import load_run

    folder = KEPT / slug(row)
    if not folder.exists():
        return None
    scales = ",".join(part for part in (row["scales"], row["long"]) if part)
    return judged_by_theory(load_run(folder), parse_scales(scales))


def slug(row: store.Row) -> str:
    """Return the name of the folder of a run."""
    layers = f"-{row['layers']}-layers" if "layers" in row else ""
    return f"{row['part']}-{row['task']}-{row['pe']}{layers}-seed-{row['seed']}".replace(" ", "-")


def command(row: store.Row) -> str:
    """Return the command that trains the same run."""
    options = f"--pe {row['pe']} --test-scales {row['scales']} --samples {SAMPLES}"
    options += f" --hard-samples {SAMPLES} --seed {row['seed']}"
    if "layers" in row:
        options += f" --layers {row['layers']}"
    for name, value in row.get("task_options", {}).items():
        options += f" --task-option {name}={value}"
    return f"lgcourse train {row['task']} {options}"


# --- the table ------------------------------------------------------------------------------------
def table(rows: list[store.Row], part: str) -> str:
    """Return a Markdown table: for every task the worst to best of its seeds."""
    lines = [
        "| task | embedding | layers | seeds | training, s | exact match, worst to best seed "
        "| predicted as measured | proved exact at every length |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in PARTS[part]:
        mine = [r for r in rows if kind.items() <= r["plan"].items() and r["plan"]["part"] == part]
        mine = [r for r in mine if r["plan"].get("layers") == kind.get("layers")]
        if mine:
            lines.append(line(kind, mine))
    return "\n".join(lines)


def line(kind: store.Row, mine: list[store.Row]) -> str:
    """Return the line of one task."""
    scales = list(mine[0]["exact_match"])
    scores = {s: [r["exact_match"][s] for r in mine] for s in scales}
    alike = [s for s in scales if min(scores[s]) == max(scores[s]) == 1]
    parts = [f"1.000 at {', '.join(alike)}"] if alike else []
    parts += [store.spread(f"at {s}", scores[s]) for s in scales if s not in alike]
    longest = list(mine[0]["hard_exact_match"])[-1:]
    parts += [
        store.spread(f"hard at {s}", [r["hard_exact_match"][s] for r in mine]) for s in longest
    ]
    seconds = [r["seconds"] for r in mine]
    return (
        f"| {kind['task']} | {kind['pe']} | {mine[0]['settings']['layers']} | {len(mine)} "
        f"| {min(seconds):.0f} to {max(seconds):.0f} | {'; '.join(parts)} | {judged(mine)} "
        f"| {proved(mine)} |"
    )


def judged(mine: list[store.Row]) -> str:
    """Say in how many runs theory, given the relation that was found, said what was measured."""
    said = [r["predicted"]["generalises"] for r in mine]
    if None in said:
        return "no prediction"
    return f"{sum(s == generalised(r) for s, r in zip(said, mine, strict=True))} of {len(mine)}"


def proved(mine: list[store.Row]) -> str:
    """Say how many runs have a certificate, with the smallest margin of these."""
    tried = [r["certificate"] for r in mine if r["certificate"]]
    good = [c["margin"] for c in tried if c["certified"]]
    if not tried or not mine[0]["predicted"]["resolvable"]:
        return "not tried" if not tried else "refused: no finite relation"
    return f"{len(good)} of {len(tried)}" + (f", margin {min(good):.1f} or more" if good else "")


def generalised(row: store.Row) -> bool:
    """Whether exact match stayed at 0.98 or more at every scale."""
    return min(row["exact_match"].values()) >= 0.98


def summary(rows: list[store.Row]) -> str:
    """Return the main table with a note on how it was made."""
    counted = [r for r in rows if r["plan"]["part"] == "main"]
    if not counted:
        return store.NOTHING
    agreed = sum(bool(r["agrees"]) for r in counted)
    note = (
        f"Training on sizes 1 to 10; {SAMPLES} fresh samples per scale ({LONG_SAMPLES} from 500 "
        "on); hard: the task's hardest samples, such as carries over the whole length. In "
        f"{agreed} of {len(counted)} runs the learned relation names every operand by an id of its "
        f"own. {machine(counted)}"
    )
    return f"{table(rows, 'main')}\n\n{note}"


def details(rows: list[store.Row]) -> str:
    """Return the tables of the other parts."""
    others = [r for r in rows if r["plan"]["part"] != "main"]
    if not others:
        return store.NOTHING
    known = [part for part in TITLES if any(r["plan"]["part"] == part for r in others)]
    tables = [f"**{TITLES[part]}**\n\n{table(rows, part)}" for part in known]
    return "\n\n".join([*tables, machine(others)])


def machine(rows: list[store.Row]) -> str:
    """Say how the seconds were taken."""
    versions, slow = rows[0]["versions"], min(r["cpu_share"] for r in rows)
    alone = {(r["plan"]["task"], r["settings"]["layers"]) for r in rows if r.get("jobs") == 1}
    told = [f"{task} with {layers} layers" for task, layers in sorted(alone)]
    return (
        "Seconds: training on one thread, two runs at a time"
        + (f" ({' and '.join(told)}: one)" if told else "")
        + f"; each run had at least {100 * min(1, slow):.0f} % of a core. torch "
        f"{versions['torch']}, Python {versions['python']}, {versions['machine']}."
    )


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return README.md with the main table between its marks."""
    return store.between(text, MARKS, summary(rows))


def with_details(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the other tables between their marks."""
    return store.between(text, MARKS, details(rows))


def say(row: store.Row) -> str:
    return f"{row['seconds']:5.1f} s  {row['exact_match']}  {row['command']}"


if __name__ == "__main__":
    tables = {"README.md": with_table, "benchmarks/RESULTS.md": with_details}
    store.command_line(__doc__.splitlines()[0], NAME, every_part, one, say, tables, SEEDS, again)
