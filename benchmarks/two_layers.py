"""Do two layers hold on long inputs where attention leaks to other keys, and where it does not?

Two-layer models of addition with the ideal relation, once with leaking attention ("soft"), once
with all other keys excluded. Both fit training. The soft one is then tested as it is, and with the
attention of layer 1 changed at the queries of the prompt, without any training: they see only as
many keys as the longest training input had. Nothing else is touched. Where exact match is lost and
this brings it back, these queries were the cause: nothing tells them what to read, so what they
collect changes with the length, and layer 2 reads it.

    python benchmarks/two_layers.py            run what is missing, two runs at a time
    python benchmarks/two_layers.py --table    write the table of RESULTS.md
"""

from __future__ import annotations

from typing import Any

import store

NAME = "two_layers"
MARKS = ("<!-- two layers: begin -->", "<!-- two layers: end -->")
SEEDS, STEPS, SAMPLES = 5, 1000, 100
TRAINED, LONGEST = 10, 100
CHANGES = ("none", "layer 1, prompt", "layer 1, answer", "layer 2, prompt")


def wanted(seeds: int) -> list[store.Row]:
    """Return what defines each run."""
    return [{"other": o, "seed": s} for s in range(seeds) for o in ("soft", "excluded")]


def one(plan: store.Row) -> store.Row:
    """Train one model; test it as it is and with each change."""
    from lgcourse.training import Settings, build_model, evaluate, fit

    settings, task, model = build_model(
        Settings(
            "addition",
            "ideal-sh",
            seed=plan["seed"],
            layers=2,
            steps=STEPS,
            other=plan["other"],
            test_scales=(LONGEST,),
        )
    )
    rate = settings.learning_rate
    run = fit(model, task, range(1, 11), STEPS, plan["seed"], learning_rate=rate, device="cpu")
    scores: dict[str, dict[str, float]] = {}
    for change in CHANGES if plan["other"] == "soft" else CHANGES[:1]:
        changed = limited(model, task, change)
        table = evaluate(changed, task, (TRAINED, LONGEST), SAMPLES, plan["seed"])
        scores[change] = table.to_json()["exact_match"]
    return {
        "exact_match": scores,
        "seconds": run.seconds,
        "last_loss": list(run.losses.values())[-1],
        "settings": settings.to_json(),
        "versions": store.versions(),
    }


def limited(model: Any, task: Any, change: str) -> Any:
    """Return a copy of a model in which some queries of one layer see no more than in training.

    Such a query sees the last keys before it, as many as a training input of its part had at most,
    with the length factor of that many keys.
    """
    import copy

    import torch

    from lgcourse.embeddings.base import PositionEmbedding

    changed = copy.deepcopy(model)
    if change == "none":
        return changed
    layer, part = int(change[6]) - 1, change.split(", ")[1]
    inner = changed.positions[layer]
    most = {"prompt": task.prompt_length(TRAINED), "answer": task.length(TRAINED)}[part]

    class Limited(PositionEmbedding):
        def bias(self, query, key, scale, context=None):
            bias = inner.bias(query, key, scale, context)
            start = task.prompt_length(scale)
            mine = (query < start - 1) == (part == "prompt")  # "=" writes the first answer token
            far = query[:, None] - key[None, :] >= most
            factor = torch.log(query.clamp(max=most - 1) + 2.0) / torch.log(query + 2.0)
            short = bias * factor[:, None]
            named = inner.relation(query, key, scale) != inner.relation.other
            short = short.masked_fill(far & ~named, float("-inf"))
            return torch.where(mine[:, None], short, bias)

    changed.positions[layer] = Limited()
    return changed


def summary(rows: list[store.Row]) -> str:
    """Return the table, worst to best seed."""
    if not rows:
        return store.NOTHING
    lines = [
        f"| other keys | changed after training | exact match at {TRAINED} | at {LONGEST} |",
        "|---|---|---|---|",
    ]
    for other in ("soft", "excluded"):
        mine = [r for r in rows if r["plan"]["other"] == other]
        for change in mine[0]["exact_match"] if mine else ():
            cells = [
                store.spread("", [r["exact_match"][change][str(n)] for r in mine]).removeprefix(
                    ": "
                )
                for n in (TRAINED, LONGEST)
            ]
            lines.append(f"| {other} | {change} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def say(row: store.Row) -> str:
    return f"{row['plan']} {row['exact_match']}"


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the table between its marks."""
    return store.between(text, MARKS, summary(rows))


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    store.command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, SEEDS)
