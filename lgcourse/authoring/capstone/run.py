"""Check the task, predict, train, measure, and write report.md, all at once: python run.py

This works from any folder, with the path before run.py. It takes about half a minute on one core.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from task import MyTask

from lgcourse import tasks
from lgcourse.certify import certify
from lgcourse.embeddings.named import setting
from lgcourse.errors import InputError
from lgcourse.report import Progress
from lgcourse.show.curves import curve_figure, png
from lgcourse.training import Settings, load_run, train_run
from lgcourse.training.evaluation import scale_name
from lgcourse.training.folder import write_aside

# What do you expect, before you run this: will the model be right at ten times the training scale?
EXPECTED: dict[str, bool | None] = {"ideal-sh": None, "rpe": None}  # embedding: True or False

TRAIN_SCALE = 5  # training shows scales 1 to this one; tests are at 1, 2 and 10 times it
SETTINGS: dict[str, Any] = {"steps": 1000, "width": 48, "heads": 4, "samples": 200, "seed": 0}
CHECKED = 12  # the circuit is run on samples of scales 1 to this one
RIGHT = 0.9  # least exact match that counts as right
FOLDER = Path(__file__).resolve().parent


def main() -> None:
    """Do all of it, in the order of a good experiment."""
    for pe, expected in EXPECTED.items():
        if expected not in (None, True, False):
            raise InputError(f"EXPECTED['{pe}'] must be True, False or None, got {expected!r}")
    tasks.register(MyTask.name, MyTask)
    task = tasks.get_for(MyTask.name, 10 * TRAIN_SCALE)
    for scale in range(1, CHECKED + 1):
        tasks.check_circuit(task, task.scale_of(scale))
    print(f"the circuit computes the answers at scales 1 to {CHECKED}")
    scales = tuple(task.scale_of(times * TRAIN_SCALE) for times in (1, 2, 10))
    said = {pe: setting(task.name, pe, TRAIN_SCALE, scales).predict() for pe in EXPECTED}
    for pe, prediction in said.items():
        print(f"{pe}: theory says {prediction.verdict}, because {prediction.reason}")
    measured = {pe: measure(task, pe, scales) for pe in EXPECTED}
    report(task, scales, said, measured)
    print(f"report: {FOLDER / 'report.md'}")


def measure(task, pe: str, scales) -> dict[str, Any]:
    """Train one model, test it, and try to prove it; return its scores and facts."""
    settings = Settings(task.name, pe, TRAIN_SCALE, scales, hard_samples=0, **SETTINGS)
    with TemporaryDirectory() as folder, Progress(f"{task.name}, {pe}") as bar:
        result = train_run(settings, Path(folder) / "run", False, "cpu", bar.step, bar.testing)
        run = load_run(result["run"])
    scores = [result["exact_match"][scale_name(scale)] for scale in scales]
    if scores[-1] >= RIGHT:
        outcome = "generalises"
    else:
        outcome = "fails" if scores[0] >= RIGHT else "not trained"
    proof = certify(run.model, run.task)
    return {**result, "layers": run.settings.layers, "outcome": outcome, "proof": proof}


def report(task, scales, said, measured) -> None:
    """Write report.md and its figure; every number in them comes from this run."""
    curves = {
        pe: {scale: one["exact_match"][scale_name(scale)] for scale in scales}
        for pe, one in measured.items()
    }
    figure = curve_figure(curves, TRAIN_SCALE, task.name)
    write_aside(FOLDER / "exact-match.png", png(figure))
    notes = FOLDER / "notes.md"
    parts = [
        "<!-- Each run writes this page anew: write your own words into notes.md. -->",
        f"# {task.name}",
        inspect.cleandoc(type(task).__doc__ or ""),
        f"For example `{task.example}` gives `{task.solve(task.example)}`. The circuit computes "
        f"the answers of random samples at scales 1 to {CHECKED}.",
        "## Predicted",
        *predicted(said),
        "## Measured",
        *results([scale_name(scale) for scale in scales], measured),
        f"![{figure.alt}](exact-match.png)",  # type: ignore[attr-defined]
        "## Compared",
        "\n".join(
            f"- {pe}: {compare(EXPECTED[pe], said[pe].generalises, one['outcome'])}"
            for pe, one in measured.items()
        ),
        "## What this does not show",
        "These are single runs; another seed may differ. Where there is no proof, a score is what "
        "these samples showed. A proof is about this model and this circuit. The prediction asks "
        "whether heads read the operands themselves: a model of several layers can pass a token "
        "on, so it may be right where the prediction says no.",
    ]
    if notes.is_file():
        parts += ["## Notes", notes.read_text(encoding="utf-8").strip()]
    write_aside(FOLDER / "report.md", ("\n\n".join(filter(None, parts)) + "\n").encode())


def predicted(said) -> list[str]:
    """Return the paragraphs that say what was expected before the training, and why."""
    words = {None: "nothing", True: "generalises", False: "fails"}
    rows = [[pe, words[EXPECTED[pe]], one.verdict] for pe, one in said.items()]
    reasons = [f"- {pe}, theory: {one.reason}." for pe, one in said.items()]
    return [table(["embedding", "I said", "theory says"], rows), "\n".join(reasons)]


def results(names: list[str], measured) -> list[str]:
    """Return the paragraphs that say what was trained, measured and proved."""
    first = (
        f"One model for each embedding, trained on scales 1 to {TRAIN_SCALE} with seed "
        f"{SETTINGS['seed']}, tested on {SETTINGS['samples']} new samples of each scale. An exact "
        f"match of {RIGHT:g} or more counts as right, and scale {names[-1]} decides; a model that "
        f"is not right at scale {names[0]} either is called not trained."
    )
    head = ["embedding", "layers", "updates", "seconds"]
    head += [f"exact match at {name}" for name in names] + ["measured", "proof"]
    rows, reasons = [], []
    for pe, one in measured.items():
        facts = [pe, one["layers"], one["steps"], f"{one['seconds']:.0f}"]
        scores = [f"{one['exact_match'][name]:.3f}" for name in names]
        proof = one["proof"]
        verdict = f"{proof.verdict}, {proof.scales}" if proof.certified else proof.verdict
        rows.append([*facts, *scores, one["outcome"], verdict])
        reasons.append(f"- {pe}, proof: {proof.reason}.")
    return [first, table(head, rows), "\n".join(reasons)]


def compare(expected: bool | None, theory: bool | None, outcome: str) -> str:
    """Say whether what I and theory said agrees with the outcome."""
    if outcome == "not trained":
        return "not trained, which says nothing about length; try more updates."
    right = outcome == "generalises"
    verdicts = {None: "is silent", right: "agrees", not right: "said otherwise"}
    mine = {None: "I wrote no prediction", right: "I was right", not right: "I was wrong"}
    return f"{outcome}, and theory {verdicts[theory]}. {mine[expected]}."


def table(head: list[str], rows: list[list[Any]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
