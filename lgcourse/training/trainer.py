"""How is a model trained? AdamW on the answer tokens, one scale per batch, drawn uniformly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lgcourse.embeddings.base import PositionEmbedding
from lgcourse.errors import InputError, whole_number
from lgcourse.model.generation import last_logits
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.tasks.base import Batch
from lgcourse.training.device import choose_device, one_thread
from lgcourse.training.seeds import generator

AVERAGE = 0.99  # decay of the running average of the weights, which is what a run returns
MOST_TESTS = 16  # scales that `Trainer.worst_loss` looks at
TABLE_RATE = 1e-2  # learning rate of the tables of position embeddings


@dataclass
class Run:
    """What training leaves.

    Args:
        model: the trained model, with averaged weights.
        steps: number of updates made.
        seconds: time of training, checks not included.
        losses: step -> loss, the first, every tenth and the last.
        stopped: whether ``on_check`` ended the run early.
        counterexamples: how many prompts joined the training data, see `Trainer.add`.
    """

    model: nn.Module
    steps: int = 0
    seconds: float = 0.0
    losses: dict[int, float] = field(default_factory=dict)
    stopped: bool = False
    counterexamples: int = 0


def fit(
    model: nn.Module,
    task: Any,
    train_scales: Iterable[Scale],
    steps: int = 1000,
    seed: int = 0,
    on_check: Callable[[Trainer], bool | None] | None = None,
    check_every: int = 100,
    batch: int = 64,
    learning_rate: float = 0.0,
    precision: str = "float32",
    device: str = "auto",
    state: dict[str, Tensor] | None = None,
    progress: Callable[[Trainer], None] | None = None,
) -> Run:
    """Train a model on a task; the loss is the cross-entropy of the scored tokens.

    Args:
        model: a `Transformer`; it is trained in place.
        task: the task.
        train_scales: the scales to draw from, each as likely as the others.
        steps: number of updates.
        seed: seed of the training data.
        on_check: called with the `Trainer` every ``check_every`` steps; True ends the training.
        check_every: steps between two checks.
        batch: sequences per update, all of one scale.
        learning_rate: peak rate of the weights; 0 takes what the embedding recommends.
        precision: ``"float32"``, or ``"bfloat16"`` for autocast.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        state: what `Trainer.state` returned at an earlier check; training goes on from there.
        progress: called with the `Trainer` after every step.

    Returns:
        A `Run`; its model has the running average of the weights.

    Raises:
        InputError: a number is out of bounds, the precision or device is unknown, or the state is
            not one of this model.

    >>> import lgcourse
    >>> from lgcourse import embeddings, tasks
    >>> task = tasks.get("copy")
    >>> pe = embeddings.build("ideal-sh", task, width=16, heads=2)
    >>> model = lgcourse.Transformer(len(task.vocabulary), pe, 1, 16, 2)
    >>> run = fit(model, task, range(1, 4), steps=3, seed=0)
    >>> run.steps, sorted(run.losses)
    (3, [1, 3])
    """
    for name, value in {"steps": steps, "batch": batch, "check_every": check_every}.items():
        whole_number(name, value, 1)
    scales = list(train_scales)
    if not scales:
        raise InputError("train_scales is empty; give at least one, for instance range(1, 11)")
    if precision not in ("float32", "bfloat16"):
        raise InputError(f"precision must be float32 or bfloat16, got {precision!r}")
    trainer = Trainer(model, task, scales, steps, seed, batch, learning_rate, precision, device)
    if state is not None:
        trainer.restore(state)

    def check() -> None:
        if on_check is not None and trainer.step and trainer.step % check_every == 0:
            trainer.stopped = bool(on_check(trainer))

    with one_thread():
        check()  # a state is stored before the check of its step
        while trainer.step < steps and not trainer.stopped:
            trainer.update()
            if progress is not None:
                progress(trainer)
            check()
    trainer.average.copy_to(model)
    found = sum(map(len, trainer.found.values()))
    return Run(model, trainer.step, trainer.seconds, trainer.losses, trainer.stopped, found)


class Trainer:
    """The state of one training: model, optimiser, weight average, random source and step."""

    def __init__(self, model, task, scales, steps, seed, batch, learning_rate, precision, device):
        self.model, self.task, self.scales, self.steps, self.batch = (
            model.to(choose_device(device)),
            task,
            scales,
            steps,
            batch,
        )
        self.device = next(model.parameters()).device
        self.positions = cast(list[PositionEmbedding], list(model.get_submodule("positions")))
        self.precision = precision
        self.rate = learning_rate or model.embedding.recommended["learning_rate"]
        self.optimiser = _optimiser(model, self.rate)
        self.average = Average(model)
        self.source = generator(seed, "data")
        self.seed, self.tests = seed, list[Batch]()
        self.step, self.seconds, self.stopped = 0, 0.0, False
        self.losses: dict[int, float] = {}
        self.found: dict[Scale, Tensor] = {}  # prompts that were answered wrongly, [k p]

    def update(self) -> None:
        """Make one update on a fresh batch of one scale."""
        start = time.perf_counter()
        self.model.train()
        pick = int(torch.randint(len(self.scales), (), generator=self.source))
        batch = self.with_found(self.task.sample(self.scales[pick], self.batch, self.source))
        self._set_rate()
        for position in self.positions:
            position.anneal(self.step / self.steps, self.source, self.worst_loss)
        loss = self.loss(batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1
        self.average.update(self.model, self.step)
        if self.step % 10 == 0 or self.step in (1, self.steps):
            self.losses[self.step] = loss.item()
        self.seconds += time.perf_counter() - start

    def add(self, scale: Scale, prompt: Tensor) -> bool:
        """Let a prompt join all later batches of its scale; return whether it is a new one.

        Prompts of scales that are not trained are left out: training stays on its scales.
        """
        known = self.found.get(scale, prompt.new_zeros(0, len(prompt)))
        if scale not in self.scales or bool((known == prompt).all(1).any()):
            return False
        self.found[scale] = torch.cat([known, prompt[None]])
        return True

    def with_found(self, batch: Batch) -> Batch:
        """Return a batch whose first rows, a quarter at most, are the newest found prompts."""
        found = self.found.get(batch.scale)
        if found is None:
            return batch
        rows = self.task.batch(found[-max(1, self.batch // 4) :], batch.scale).tokens
        tokens = torch.cat([rows, batch.tokens[len(rows) :]])
        return Batch(tokens, batch.answer, batch.scale)

    def loss(self, batch) -> Tensor:
        """Return the mean cross-entropy of the scored tokens, in nats."""
        return self.losses_of(batch).mean()

    def losses_of(self, batch) -> Float[Tensor, "b a"]:
        """Return the cross-entropy of each scored token, in nats."""
        tokens = batch.tokens.to(self.device)
        at = batch.answer.nonzero()[:, 0].to(self.device)
        low = self.precision == "bfloat16"
        seen = tokens.shape[1] - 1
        last = seen - int(at[0]) + 1  # from the query that predicts the first scored token on
        with torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            logits = last_logits(self.model, tokens[:, :-1], batch.scale, last)
        logits = logits[:, at - at[0]]  # b a v
        logits = logits.float().transpose(1, 2)  # b v a
        return nn.functional.cross_entropy(logits, tokens[:, at], reduction="none")

    @torch.no_grad()
    def worst_loss(self) -> float:
        """Return the loss at the worst place of an answer, over one batch per training scale.

        The loss at a place is the mean over a batch. The batches are always the same.
        """
        if not self.tests:
            source = generator(self.seed, "worst loss")
            order = torch.randperm(len(self.scales), generator=source)[:MOST_TESTS].tolist()
            self.tests = [self.task.sample(self.scales[k], self.batch, source) for k in order]
        training = self.model.training
        self.model.eval()
        worst = max(float(self.losses_of(batch).mean(0).max()) for batch in self.tests)
        self.model.train(training)
        return worst

    def _set_rate(self) -> None:
        """One cycle: a linear rise over the first tenth, then half a cosine down to zero."""
        share = (self.step + 0.5) / self.steps
        rise = min(1.0, share / 0.1)
        fall = 0.5 * (1 + math.cos(math.pi * max(0.0, share - 0.1) / 0.9))
        for group in self.optimiser.param_groups:
            group["lr"] = group["peak"] * rise * fall

    def state(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, as named tensors."""
        state = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        state |= {f"average.{k}": v for k, v in self.average.weights.items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimiser.state[parameter].items():
                state[f"adam.{name}.{key}"] = torch.as_tensor(value)
        state["random"] = self.source.get_state()
        state["step"] = torch.tensor(self.step)
        state["seconds"] = torch.tensor(self.seconds, dtype=torch.float64)
        state["loss.steps"] = torch.tensor(list(self.losses), dtype=torch.int64)
        state["loss.values"] = torch.tensor(list(self.losses.values()), dtype=torch.float64)
        for scale, prompts in self.found.items():
            state["found." + "x".join(map(str, sizes_of(scale)))] = prompts
        return {k: v.detach().cpu().clone().contiguous() for k, v in state.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go back to a state that `state` returned; another one is an `InputError`."""
        try:
            self._restore({k: v.clone() for k, v in state.items()})
        except (KeyError, RuntimeError, ValueError) as error:
            raise InputError("the saved state is not one of this model; train it anew") from error

    def _restore(self, state: dict[str, Tensor]) -> None:
        self.model.load_state_dict(_under(state, "model."))
        for name, value in _under(state, "average.").items():
            self.average.weights[name].copy_(value)
        for name, parameter in self.model.named_parameters():
            saved = _under(state, f"adam.{name}.")
            self.optimiser.state[parameter] = {
                key: value if key == "step" else value.to(self.device)
                for key, value in saved.items()
            }
        self.source.set_state(state["random"])
        self.step, self.seconds = int(state["step"]), float(state["seconds"])
        steps, values = state["loss.steps"].tolist(), state["loss.values"].tolist()
        self.losses = dict(zip(steps, values, strict=True))
        for name, prompts in _under(state, "found.").items():
            sizes = tuple(map(int, name.split("x")))
            self.found[sizes if len(sizes) > 1 else sizes[0]] = prompts


class Average:
    """A running average of the weights: w <- d w + (1 - d) new, d smaller in the first steps."""

    def __init__(self, model: nn.Module):
        self.weights = {k: v.detach().clone() for k, v in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Take in the weights after an update."""
        decay = min(AVERAGE, (1 + step) / (10 + step))
        old = list(self.weights.values())
        torch._foreach_lerp_(old, [p.detach() for p in model.parameters()], 1 - decay)

    @torch.no_grad()
    def copy_to(self, model: nn.Module) -> None:
        """Write the average into a model."""
        for name, parameter in model.named_parameters():
            parameter.copy_(self.weights[name])


def _optimiser(model: nn.Module, rate: float) -> torch.optim.AdamW:
    """AdamW with a rate of their own, and no decay, for the parameters of position embeddings."""
    positions = model.get_submodule("positions")
    ids = {id(p) for p in positions.parameters()}
    weights = [p for p in model.parameters() if id(p) not in ids]
    rates: dict[str, float] = model.get_submodule("positions.0").rates  # type: ignore[assignment]
    groups = [{"params": weights, "peak": rate, "weight_decay": 0.01}]
    tables: dict[float, list] = {TABLE_RATE: []}
    for name, parameter in positions.named_parameters():
        own = rates.get(name.split(".")[-1], TABLE_RATE)
        tables.setdefault(own, []).append(parameter)
    groups += [{"params": p, "peak": peak, "weight_decay": 0.0} for peak, p in tables.items()]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), foreach=True)


def _under(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
