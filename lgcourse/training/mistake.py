"""Where does a run first go wrong on a text, which head read the wrong key, and what says theory?

The first wrong token of an answer is looked at: its step, the operands, and for each operand the
head that reads it in training. Three reasons are told apart: the head reads another key there (and
which condition of alignment the step breaks says why), or all operands are read and the layers
behind the heads are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lgcourse.errors import InputError
from lgcourse.model.reading import attention_weights
from lgcourse.relations.base import Scale
from lgcourse.tasks.circuit import Step
from lgcourse.theory.circuits import covered, steps_at
from lgcourse.theory.prediction import broken_condition
from lgcourse.training.evaluation import scale_name
from lgcourse.training.explanation import readers
from lgcourse.training.seeds import generator

SAMPLES = 8
CONDITIONS = {
    1: "an operand has an id, or the operands have ids together, that training never showed",
    2: "the ids and the priorities that training leaves do not single out the operand",
    3: "nothing tells this step from one that needs another operator",
}
Weights = dict[tuple[str, int], Float[Tensor, "layer h"]]


@dataclass(frozen=True)
class Reading:
    """How an operand of the step is read.

    Args:
        role: the operand's name in its operator.
        place, token: where it stands, as the layout names it, and what it is.
        layer, head: the head that reads it in training, from 1.
        usual: that head's attention on this operand in training, mean over steps and samples.
        here: its attention on the operand at this step.
        read, read_token: the key that it attends to most here.
        read_weight: its attention on that key.
    """

    role: str
    place: str
    token: str
    layer: int
    head: int
    usual: float
    here: float
    read: str
    read_token: str
    read_weight: float

    @property
    def wrong(self) -> bool:
        """Whether the head attends most to another key than the operand."""
        return self.read != self.place


@dataclass(frozen=True)
class Mistake:
    """The first wrong token of an answer; ``place`` is empty where the answer is right.

    Args:
        text: the prompt.
        scale: its scale.
        place: the name of the wrong token's position.
        digit: which token of the answer it is, from 1.
        of: number of tokens of the answer.
        given, true: the model's token and the right one.
        operator: the operator of its step; empty where the task has no circuit.
        readings: one per operand.
        condition: 1, 2 or 3, the condition of alignment that the step breaks; 0 where it meets all
            three; None where the embedding states no finite relation or the task has no circuit.
        why: the same in words.
    """

    text: str
    scale: str
    place: str = ""
    digit: int = 0
    of: int = 0
    given: str = ""
    true: str = ""
    operator: str = ""
    readings: tuple[Reading, ...] = ()
    condition: int | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rows = [{**asdict(reading), "wrong": reading.wrong} for reading in self.readings]
        return {**asdict(self), "right": not self.place, "readings": rows}

    def lines(self) -> list[str]:
        """Return all of it in plain words."""
        if not self.place:
            return [f"{self.text} (scale {self.scale}): all {self.of} tokens of the answer right"]
        lines = [
            f"{self.text} (scale {self.scale}): token {self.digit} of {self.of} is the first wrong "
            f"one; at {self.place} the model writes {self.given}, right is {self.true}"
        ]
        if self.operator:
            lines.append(f"its step is `{self.operator}`:")
        lines += [f"  {self._of(reading)}" for reading in self.readings]
        if self.readings and not any(reading.wrong for reading in self.readings):
            lines.append("every operand is read; the layers behind the heads are wrong here")
        head = "no condition of alignment is broken" if self.condition == 0 else ""
        if self.condition:
            head = f"condition {self.condition} fails: {CONDITIONS[self.condition]}"
        return [*lines, f"theory: {head}{'; ' if head and self.why else ''}{self.why}"]

    @staticmethod
    def _of(r: Reading) -> str:
        found = (
            f"operand `{r.role}` is {r.token} at {r.place}; layer {r.layer} head {r.head} gives it "
            f"{r.here:.2f} of its attention ({r.usual:.2f} in training)"
        )
        if not r.wrong:
            return f"{found}, more than any other key"
        return f"{found} and reads the wrong key, {r.read_token} at {r.read} ({r.read_weight:.2f})"


def first_mistake(run, text: str, samples: int = SAMPLES, seed: int = 0) -> Mistake:
    """Find the first wrong token that a run writes for a text, and what its heads read there.

    Args:
        run: a `LoadedRun`.
        text: a prompt of the run's task.
        samples: sequences of the largest training scale that tell which head reads what.
        seed: seed of these sequences.

    Returns:
        A `Mistake`.

    Raises:
        InputError: the text is not a prompt of the task, or longer than the model's tables.
    """
    task, model = run.task, run.model
    prompt = task.parse(text)
    scale = prompt.scale
    tokens = torch.tensor([prompt.tokens])
    tokens = torch.cat([tokens, task.answer(tokens, scale)], dim=1)
    start, of = len(prompt.tokens), task.answer_length(scale)
    tokens = tokens[:, : start + of]
    device = next(model.parameters()).device
    try:
        with torch.inference_mode():
            said = model(tokens[:, :-1].to(device), scale).argmax(-1)[0, start - 1 :].cpu()
    except InputError as error:  # a learned table has an end
        raise InputError(
            f"this run was made for scales up to {scale_name(run.settings.largest)}, the text has "
            f"scale {scale_name(scale)}; train one with it among the --test-scales"
        ) from error
    shown = "".join(text.split())
    wrong = (said != tokens[0, start:]).nonzero()[:, 0].tolist()
    if not wrong:
        return Mistake(shown, scale_name(scale), of=of)
    output, names = start + wrong[0], task.layout(scale)
    step = _step(task, scale, output)
    return Mistake(
        text=shown,
        scale=scale_name(scale),
        place=names[output],
        digit=wrong[0] + 1,
        of=of,
        given=task.vocabulary[int(said[wrong[0]])],
        true=task.vocabulary[int(tokens[0, output])],
        operator="" if step is None else step.operator.name,
        readings=() if step is None else _readings(run, tokens, scale, step, samples, seed),
        **_theory(run, scale, step),
    )


def _step(task, scale: Scale, output: int) -> Step | None:
    if not covered(task):
        return None
    try:
        return next(step for step in steps_at(task, scale) if step.output == output)
    except InputError:  # too large to be written down
        return None


def _readings(run, tokens, scale: Scale, step: Step, samples: int, seed: int):
    """Return how each operand of a step is read, by the head that reads it in training."""
    at = torch.tensor([step.query])
    here = attention_weights(run.model, tokens, scale, at)[:, 0, :, 0]  # layer h k
    usual, names = _usual(run, samples, seed), run.task.layout(scale)
    rows = []
    for role, key in enumerate(step.inputs):
        mean = usual.get((step.operator.name, role))
        chosen = here[:, :, key] if mean is None else mean  # new operators: who reads it here
        layer, head = divmod(int(chosen.argmax()), chosen.shape[1])
        weights = here[layer, head]
        read = int(weights.argmax())
        rows.append(
            Reading(
                role=str(step.operator.roles[role]),
                place=names[key],
                token=run.task.vocabulary[int(tokens[0, key])],
                layer=layer + 1,
                head=head + 1,
                usual=0.0 if mean is None else float(mean[layer, head]),
                here=float(weights[key]),
                read=names[read],
                read_token=run.task.vocabulary[int(tokens[0, read])],
                read_weight=float(weights[read]),
            )
        )
    return tuple(rows)


def _usual(run, samples: int, seed: int) -> Weights:
    """Return each head's mean attention on each operand, at the largest scale of training."""
    task = run.task
    scale = task.scale_of(run.settings.train_scale)
    batch = task.sample(scale, samples, generator(seed, "mistake"))
    try:
        steps: Sequence[Step] = steps_at(task, scale)
    except InputError:
        return {}
    query = torch.tensor([step.query for step in steps])
    weights = attention_weights(run.model, batch.tokens, scale, query).mean(1)  # layer h q k
    found: dict[tuple[str, int], list[Tensor]] = {}
    for row, step in enumerate(steps):
        for role, key in enumerate(step.inputs):
            found.setdefault((step.operator.name, role), []).append(weights[:, :, row, key])
    return {place: torch.stack(parts).mean(0) for place, parts in found.items()}


def _theory(run, scale: Scale, step: Step | None) -> dict[str, Any]:
    """Return which condition of alignment a step breaks, from the relation that the run has."""
    if step is None:
        return {"why": "the task has no circuit made of positions, so there is no step to look at"}
    relations = list({id(r.relation): r.relation for r in readers(run.model)}.values())
    if not relations:
        return {"why": "the embedding has no finite relation, so alignment is not defined for it"}
    trained = list(run.task.scales(run.task.scale_of(run.settings.train_scale)))
    condition, why = broken_condition(run.task, relations, trained, scale, step.output)
    if condition == 0:
        why = "so position is not at fault: training is too short, or too few cases were met"
    return {"condition": condition, "why": why}
