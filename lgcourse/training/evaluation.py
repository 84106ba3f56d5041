"""How long can inputs get before the model fails? Exact match of whole answers, scale by scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jaxtyping import Bool
from torch import Tensor

from lgcourse.errors import whole_number
from lgcourse.model.generation import next_tokens
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.tasks.base import Batch
from lgcourse.training.seeds import generator


@dataclass
class Table:
    """Scores by scale.

    Args:
        exact_match: share of samples whose whole answer is right.
        token_accuracy: share of answer tokens that are right.
        hard_exact_match: exact match on the task's hardest samples, where it has any.
        samples: number of samples per scale.
    """

    exact_match: dict[Scale, float] = field(default_factory=dict)
    token_accuracy: dict[Scale, float] = field(default_factory=dict)
    hard_exact_match: dict[Scale, float] = field(default_factory=dict)
    samples: int = 0

    def to_json(self) -> dict[str, dict[str, float]]:
        """Return the scores with scales as text ("20", or "20x13")."""
        names = ["exact_match", "token_accuracy"]
        names += ["hard_exact_match"] if self.hard_exact_match else []
        return {
            name: {scale_name(s): value for s, value in getattr(self, name).items()}
            for name in names
        }


def scale_name(scale: Scale) -> str:
    """Return a scale as text.

    >>> scale_name(20), scale_name((20, 13))
    ('20', '20x13')
    """
    return "x".join(map(str, sizes_of(scale)))


def evaluate(
    model,
    task,
    scales: Iterable[Scale],
    samples: int = 200,
    seed: int = 0,
    hard_samples: int = 0,
    progress=None,
) -> Table:
    """Measure a model on fresh samples by teacher forcing.

    If every arg-max under teacher forcing is right, greedy generation writes the same answer, and
    if one is wrong, the first wrong one is wrong in generation too: exact match is the same, and
    needs one pass.

    Args:
        model: a `Transformer`.
        task: the task.
        scales: the scales to test.
        samples: fresh samples per scale.
        seed: seed of the samples.
        hard_samples: samples from ``task.hard`` per scale, where the task has hard ones.
        progress: called with each scale before it is tested.

    Returns:
        A `Table` with scores keyed by scale.

    Raises:
        InputError: a scale is not one of the task's.
    """
    whole_number("samples", samples, 1)
    whole_number("hard_samples", hard_samples, 0)
    table = Table(samples=samples)
    for scale in scales:
        if progress is not None:
            progress(scale)
        source = generator(seed, f"test at {scale_name(scale)}")
        right = right_tokens(model, task.sample(scale, samples, source))
        table.exact_match[scale] = right.all(dim=1).double().mean().item()
        table.token_accuracy[scale] = right.double().mean().item()
        hard = task.hard(scale, hard_samples, source) if hard_samples else None
        if hard is not None:
            table.hard_exact_match[scale] = (
                right_tokens(model, hard).all(dim=1).double().mean().item()
            )
    return table


def right_tokens(model, batch: Batch) -> Bool[Tensor, "b a"]:
    """Return which answer tokens a model gets right under teacher forcing.

    Args:
        model: a `Transformer`, or any module with ``forward(tokens, scale)``.
        batch: samples of one scale.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> import torch
    >>> task = tasks.get("copy")
    >>> model = Transformer(11, embeddings.build("none", width=16, heads=2), 1, 16, 2)
    >>> right_tokens(model, task.sample(3, 5, torch.Generator().manual_seed(0))).shape
    torch.Size([5, 3])
    """
    at = batch.answer.nonzero()[:, 0]
    tokens = batch.tokens.to(next(model.parameters()).device)
    start = int(at[0]) - 1
    guess = next_tokens(model, tokens, batch.scale, last=tokens.shape[1] - start)
    return (guess[:, at - 1 - start] == tokens[:, at]).cpu()
