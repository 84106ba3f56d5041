"""What defines a run? One flat set of settings, from which task, embedding and model are built."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lgcourse import embeddings, tasks
from lgcourse.errors import InputError, whole_number
from lgcourse.model.transformer import NORMS, Transformer
from lgcourse.relations.base import LARGEST_SIZE, Scale, sizes_of
from lgcourse.training.seeds import seeded

LONGEST = 16_384  # tokens; attention holds one score per head and pair of them
BOUNDS = {  # a number outside is a slip of the keyboard
    "train_scale": (1, LARGEST_SIZE),
    "batch": (1, 65_536),
    "width": (1, 65_536),
    "heads": (1, 1_024),
    "samples": (1, 1_000_000),
    "seed": (0, 2**63 - 1),
    "steps": (0, 100_000_000),
    "layers": (0, 256),
    "loops": (1, 256),
    "hard_samples": (0, 1_000_000),
}
GIVEN = {  # what the embedding gets from other settings
    "name": "give --pe",
    "task": "it is the task of the run",
    "width": "give --width",
    "heads": "give --heads",
    "max_scale": "it is the largest scale of training and test",
    "other": "give --other",
}


@dataclass(frozen=True)
class Settings:
    """Everything that decides the outcome of a run.

    Args:
        task, pe: names in `lgcourse.tasks` and `lgcourse.embeddings`.
        train_scale: sizes are drawn uniformly from 1..train_scale.
        test_scales: scales of the evaluation; an int, or a tuple of ints for several sizes.
        seed: seed of weights, data and evaluation.
        steps, batch: number of updates, and sequences per update.
        layers, width, heads: size of the model.
        learning_rate: peak learning rate of the weights.
        other: ``"soft"``, ``"excluded"`` or ``"auto"``, see `RelationTable`.
        precision: ``"float32"``, or ``"bfloat16"`` for autocast in training.
        samples, hard_samples: sequences per scale in the evaluation.
        task_options: options of the task, for instance ``{"width": 100}``.
        norm, tied, loops, dropout: options of the decoder, see `Transformer`.
        pe_options: options of the embedding, for instance ``{"pairing": "interleaved"}``.
        until_certified: whether training ends with the first certificate, see `lgcourse.certify`.

        add_counterexamples: whether instances of training scales that the certificate shows to be
            wrong join the training data; only with ``until_certified``.

    Where ``steps``, ``layers`` or ``learning_rate`` is 0, the embedding's ``recommended`` value is
    taken.
    """

    task: str
    pe: str
    train_scale: int = 10
    test_scales: tuple[Scale, ...] = (10, 20, 50, 100)
    seed: int = 0
    steps: int = 0
    batch: int = 64
    layers: int = 0
    width: int = 64
    heads: int = 8
    learning_rate: float = 0.0
    other: str = "auto"
    precision: str = "float32"
    samples: int = 200
    hard_samples: int = 50
    task_options: dict[str, Any] = field(default_factory=dict)
    norm: str = "pre"
    tied: bool = False
    loops: int = 1
    dropout: float = 0.0
    pe_options: dict[str, Any] = field(default_factory=dict)
    until_certified: bool = False
    add_counterexamples: bool = False

    def __post_init__(self):
        for name, (least, most) in BOUNDS.items():
            whole_number(name, getattr(self, name), least, most)
        if not 0 <= self.learning_rate < 1:
            raise InputError(
                f"learning_rate must be at least 0 and below 1, got {self.learning_rate!r}"
            )
        if self.other not in ("auto", "soft", "excluded"):
            raise InputError(f"other must be auto, soft or excluded, got {self.other!r}")
        if self.precision not in ("float32", "bfloat16"):
            raise InputError(f"precision must be float32 or bfloat16, got {self.precision!r}")
        if self.norm not in NORMS:
            raise InputError(f"norm must be {' or '.join(NORMS)}, got {self.norm!r}")
        if not isinstance(self.dropout, (int, float)) or not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout!r}")
        for name in self.pe_options:
            if name in GIVEN:
                raise InputError(f"'{name}' is no --pe-option: {GIVEN[name]}")
        if self.add_counterexamples and not self.until_certified:
            raise InputError(
                "add_counterexamples needs until_certified: a certificate finds the counterexamples"
            )
        if not self.test_scales:
            raise InputError("test_scales is empty; give at least one scale, for instance 10,20")
        for scale in self.test_scales:
            sizes_of(scale)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Settings:
        """Read settings that `to_json` wrote."""
        scales = tuple(tuple(s) if isinstance(s, list) else s for s in data["test_scales"])
        return cls(**{**data, "test_scales": scales})

    @property
    def largest(self) -> Scale:
        """The scale whose sizes are the largest that this run trains or tests."""
        rows = [sizes_of(scale) for scale in self.test_scales]
        count = max(map(len, rows))
        sizes = tuple(
            max([self.train_scale, *(row[i] for row in rows if i < len(row))]) for i in range(count)
        )
        return sizes if count > 1 else sizes[0]

    def build_task(self):
        """Return the task; a padded one gets the width of the largest scale by default."""
        task = tasks.get_for(self.task, max(sizes_of(self.largest)), **self.task_options)
        for scale in self.test_scales:
            task.check_scale(scale)
        length = task.length(self.largest)
        if length > LONGEST:
            raise InputError(
                f"task '{self.task}' at scale {self.largest} has {length:,} tokens; training and "
                f"testing go up to {LONGEST:,}: choose smaller scales"
            )
        return task


def build_model(settings: Settings) -> tuple[Settings, Any, Transformer]:
    """Build the task and the untrained model of some settings; the seed decides the weights.

    Returns:
        The settings with recommended values filled in, the task, and the model.

    >>> settings, task, model = build_model(Settings("copy", "rpe", test_scales=(20,)))
    >>> settings.layers, task, sum(p.numel() for p in model.parameters())
    (2, <task copy>, 101648)
    """
    task = settings.build_task()
    with seeded(settings.seed, "positions"):
        embedding = embeddings.build(
            settings.pe,
            task,
            width=settings.width,
            heads=settings.heads,
            max_scale=settings.largest,
            other=settings.other,
            **settings.pe_options,
        )
    open_ones = {k: v for k, v in embedding.recommended.items() if not getattr(settings, k)}
    settings = replace(settings, **open_ones)
    with seeded(settings.seed, "weights"):
        model = Transformer(
            len(task.vocabulary),
            embedding,
            settings.layers,
            settings.width,
            settings.heads,
            settings.norm,
            settings.tied,
            settings.loops,
            settings.dropout,
        )
    return settings, task, model
