"""Is a model right on every tuple of tokens of a signature? It is run on all of them, in float64.

The model itself runs on real instances: sequences of the signature's smallest scale, with the
tokens of a tuple written over its places. Beside it `lgcourse.certify.rounding` computes the same
logits from the model's equations, at the query only, with a bound on rounding; both must agree.
Where there are very many tuples, the equations run on all and the model itself on a random part.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.certify.admission import unlike_terms
from lgcourse.certify.rounding import StepBound
from lgcourse.certify.signatures import Setting, Signature
from lgcourse.certify.tuples import Tuples
from lgcourse.training.seeds import generator

TOGETHER = 2**14  # tuples at once
REAL = 2**19  # token vectors that the model itself computes for one signature
AGREE = 1e-7  # how far the two ways to compute a logit may differ in float64


class EvaluationError(Exception):
    """The model cannot be evaluated as its description says."""


@dataclass
class Outcome:
    """What was found for one signature.

    Args:
        tuples: how many tuples there are; the equations ran on all.
        real: on how many of them the model itself ran.
        margin: smallest difference between the right logit and the best wrong one.
        error: largest bound on the rounding of such a difference.
        answers: the model's token for each tuple.
        failing: the tuples with a wrong answer or a tie, the worst first.
    """

    tuples: int
    real: int
    margin: float
    error: float
    answers: Int[Tensor, " t"]
    failing: list[int]


def run_tuples(
    model, task, setting: Setting, signature: Signature, table: Tuples, bound: StepBound
) -> Outcome:
    """Run a model of one layer on every tuple of a signature.

    Args:
        model: a `Transformer` in float64.
        task: its task.
        setting, signature, table: what to run.
        bound: the bound of the model.

    Raises:
        EvaluationError: logits are not finite, or the two ways to compute them differ.
    """
    biases = _biases(model, setting, signature)
    length = signature.positions[signature.shape.query] + 1
    share = min(1.0, REAL / (length * len(table.tokens)))
    source, parts = generator(0, "tuples"), []
    for tokens, expected in zip(
        table.tokens.split(TOGETHER), table.expected.split(TOGETHER), strict=True
    ):
        logits, errors = bound(signature.shape, tokens, biases, expected)
        rows = (torch.rand(len(tokens), generator=source) < share).nonzero()[:, 0]
        rows = rows if len(rows) else torch.tensor([0])
        real = logits_of(model, task, signature, tokens[rows])
        if not bool(torch.isfinite(real).all() and torch.isfinite(logits).all()):
            raise EvaluationError("logits are not finite")
        if not torch.allclose(real, logits[rows], rtol=AGREE, atol=AGREE):
            raise EvaluationError(
                f"the model differs from its equations at scale {signature.scale}, step "
                f"{signature.t}, by {float((real - logits[rows]).abs().max()):.2g}"
            )
        logits[rows] = real
        apart = logits.gather(1, expected[:, None]) - logits  # t v
        apart.scatter_(1, expected[:, None], float("inf"))
        errors.scatter_(1, expected[:, None], 0.0)
        parts.append((apart.amin(1), errors.amax(1), logits.argmax(1), torch.tensor([len(rows)])))
    margin, error, answers, run = (torch.cat(part) for part in zip(*parts, strict=True))
    wrong = (margin <= 0).nonzero()[:, 0]
    worst = wrong[margin[wrong].argsort()].tolist()
    return Outcome(
        len(margin), int(run.sum()), float(margin.min()), float(error.max()), answers, worst
    )


def logits_of(
    model, task, signature: Signature, tokens: Int[Tensor, "t p"]
) -> Float[Tensor, "t v"]:
    """Return the model's logits at the query, on instances that hold the tuples."""
    query = signature.positions[signature.shape.query]
    instance = task.sample(signature.scale, 1, generator(0, "instance")).tokens[0, : query + 1]
    rows = []
    with torch.inference_mode():
        for some in tokens.split(max(1, TOGETHER // len(instance))):
            line = instance.repeat(len(some), 1)
            line[:, list(signature.positions)] = some
            rows.append(model(line, signature.scale)[:, -1])
    return torch.cat(rows).clone()


def _biases(model, setting: Setting, signature: Signature) -> list[Tensor]:
    """Return per head the bias of the places that it reads, after a look at what else it reads."""
    embedding, shape = model.embedding, signature.shape
    query = torch.tensor([signature.positions[shape.query]])
    wrong = unlike_terms(embedding, setting.heads, query, signature.scale)
    if wrong is not None:
        raise EvaluationError(wrong)
    bias = embedding.bias(query, torch.arange(int(query) + 1), signature.scale).detach()[:, 0]
    return [
        bias[h, [signature.positions[place] for place, _ in reads]]
        for h, reads in enumerate(shape.reads)
    ]
