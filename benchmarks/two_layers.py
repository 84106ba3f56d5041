"""Do two layers hold on long inputs where attention leaks to other keys, and where it does not?

Two-layer models of addition with a learned and with the ideal relation, once with leaking attention
to the end ("soft"), once with all other keys excluded. Both fit training. The soft ones are then
tested as they are, and with the leaks of one layer cut: after training, and without any further
training, each head of this layer keeps the query itself and the keys above half of the usual
strength. That also cuts operands which a head prefers less, so a fall at a scale of training does
not show that the model uses what leaks in.

    python benchmarks/two_layers.py            run what is missing, two runs at a time
    python benchmarks/two_layers.py --table    write the table of RESULTS.md
"""

from __future__ import annotations

from typing import Any

import store

NAME = "two_layers"
MARKS = ("<!-- two layers: begin -->", "<!-- two layers: end -->")
SEEDS, STEPS, SAMPLES = 10, 700, 50
TRAINED, LONGER, LONGEST = 10, 100, 500
CHANGES = ("none", "leaks of layer 1 cut", "leaks of layer 2 cut")
PREFERRED = 0.5  # strength from which on a key counts as one that the head prefers


def wanted(seeds: int) -> list[store.Row]:
    """Return what defines each run."""
    return [
        {"pe": pe, "other": other, "seed": seed}
        for seed in range(seeds)
        for pe in ("lbpe-sh", "ideal-sh")
        for other in ("soft", "excluded")
    ]


def one(plan: store.Row) -> store.Row:
    """Train one model; test it as it is and with each change."""
    from lgcourse.training import Settings, build_model, evaluate, fit

    learned = plan["pe"] == "lbpe-sh"
    settings, task, model = build_model(
        Settings(
            "addition",
            plan["pe"],
            seed=plan["seed"],
            layers=2,
            steps=STEPS,
            other="auto" if learned else plan["other"],
            test_scales=(LONGEST,),
        )
    )
    if learned and plan["other"] == "soft":
        for position in model.positions:
            stay_soft(position)
    rate = settings.learning_rate
    run = fit(model, task, range(1, 11), STEPS, plan["seed"], learning_rate=rate, device="cpu")
    scores: dict[str, dict[str, float]] = {}
    for change in CHANGES if plan["other"] == "soft" else CHANGES[:1]:
        table = evaluate(
            cut(model, change), task, (TRAINED, LONGER, LONGEST), SAMPLES, plan["seed"]
        )
        scores[change] = table.to_json()["exact_match"]
    return {
        "exact_match": scores,
        "seconds": run.seconds,
        "last_loss": list(run.losses.values())[-1],
        "settings": settings.to_json(),
        "versions": store.versions(),
    }


def stay_soft(position: Any) -> None:
    """Let a learned relation compete by its gates, and never choose cells."""
    from lgcourse.embeddings.learned_relation import CHOOSE_AT, COLDEST

    def anneal(share, source, loss=None):
        position.temperature.fill_(COLDEST ** min(1.0, share / CHOOSE_AT))

    position.anneal = anneal


def cut(model: Any, change: str) -> Any:
    """Return a copy of a model in which the heads of one layer read only what they prefer."""
    import copy

    import torch

    from lgcourse.embeddings.base import PositionEmbedding
    from lgcourse.embeddings.table import EXCLUDED, STRENGTH

    changed = copy.deepcopy(model)
    if change == "none":
        return changed
    layer = int(change.split()[3]) - 1
    inner = changed.positions[layer]

    class Cut(PositionEmbedding):
        def embed(self, x, positions, context=None):
            return inner.embed(x, positions, context)

        def bias(self, query, key, scale, context=None):
            bias = inner.bias(query, key, scale, context)
            preferred = bias > STRENGTH * PREFERRED * torch.log(query + 2.0)[:, None]
            return bias.masked_fill(~preferred & (query[:, None] != key), EXCLUDED)

    changed.positions[layer] = Cut()
    return changed


def summary(rows: list[store.Row]) -> str:
    """Return the table, worst to best seed."""
    if not rows:
        return store.NOTHING
    lines = [
        f"| embedding | other keys | changed after training | exact match at {TRAINED} "
        f"| at {LONGER} | at {LONGEST} | seeds with 0.99 or more at {LONGEST} |",
        "|---|---|---|---|---|---|---|",
    ]
    for pe, other in (("lbpe-sh", "soft"), ("lbpe-sh", "excluded"), ("ideal-sh", "soft"),
                      ("ideal-sh", "excluded")):  # fmt: skip
        mine = [r for r in rows if (r["plan"]["pe"], r["plan"]["other"]) == (pe, other)]
        for change in mine[0]["exact_match"] if mine else ():
            scores = {
                n: [r["exact_match"][change][str(n)] for r in mine]
                for n in (TRAINED, LONGER, LONGEST)
            }
            cells = [store.spread("", values).removeprefix(": ") for values in scores.values()]
            held = sum(value >= 0.99 for value in scores[LONGEST])
            lines.append(
                f"| {pe} | {other} | {change} | {' | '.join(cells)} | {held} of {len(mine)} |"
            )
    return "\n".join(lines)


def say(row: store.Row) -> str:
    return f"{row['plan']} {row['exact_match']}"


def with_table(text: str, rows: list[store.Row]) -> str:
    """Return RESULTS.md with the table between its marks."""
    return store.between(text, MARKS, summary(rows))


if __name__ == "__main__":
    tables = {"benchmarks/RESULTS.md": with_table}
    store.command_line(__doc__.splitlines()[0], NAME, wanted, one, say, tables, SEEDS)
