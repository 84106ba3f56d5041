"""How does a training go? Start it, watch loss and far scales, stop it."""

from __future__ import annotations

import atexit
import copy
import threading
import time
from collections.abc import Callable
from typing import Any

import ipywidgets

from lgcourse import embeddings, tasks
from lgcourse.errors import InputError, unknown_name, whole_number
from lgcourse.show.progress import training_figure
from lgcourse.show.widgets.html import Picture, box, choice, slider
from lgcourse.training.evaluation import evaluate
from lgcourse.training.settings import Settings, build_model
from lgcourse.training.trainer import Trainer, fit

FACTORS = (1, 2, 5)  # tested scales, as multiples of the training scale
LARGEST, LEAST_STEPS, MOST_STEPS = 10, 50, 3000
CHECKS = 12  # how often exact match is measured
SAMPLES = 40
PAUSE = 0.4  # seconds between two pictures of a training


class Training:
    """One training in a thread of its own, so that a notebook stays usable.

    Args:
        settings: what to train; its test scales are measured on the way.
        changed: called from the thread, now and then and at the end, after something changed.

    Attributes:
        losses, scores: what there is so far, see `training_figure`.
        error: what went wrong, in words, or nothing.
        stopped: whether `stop` ended it.
    """

    def __init__(self, settings: Settings, changed: Callable[[Training], None]):
        self.settings, self.task, self.model = build_model(settings)
        self.changed = changed
        self.losses: dict[int, float] = {}
        self.scores: dict[int, dict[Any, float]] = {}
        self.error, self.stopped = "", False
        self._stop, self._last = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        atexit.register(self._leave)  # a thread within torch must not outlive the interpreter
        self._thread.start()

    def _leave(self) -> None:
        self.stop()
        self.wait(5)

    def stop(self) -> None:
        """Ask the training to end after its present update."""
        self._stop.set()

    def wait(self, seconds: int | float | None = None) -> bool:
        """Wait until the training has ended; return whether it has."""
        self._thread.join(seconds)
        return not self.running

    @property
    def running(self) -> bool:
        """Whether the training goes on."""
        return self._thread.is_alive() and threading.current_thread() is not self._thread

    def _run(self) -> None:
        try:
            scales = list(self.task.scales(self.task.scale_of(self.settings.train_scale)))
            fit(
                self.model,
                self.task,
                scales,
                self.settings.steps,
                self.settings.seed,
                on_check=self._check,
                check_every=1,
                batch=self.settings.batch,
                device="cpu",
            )
        except Exception as error:  # nobody else would hear of it
            self.error = str(error)
        self._tell()
        atexit.unregister(self._leave)

    def _check(self, trainer: Trainer) -> bool:
        """Take note of an update; return whether to end."""
        stop = self._stop.is_set()
        if trainer.step in trainer.losses:
            self.losses[trainer.step] = trainer.losses[trainer.step]
        every = max(1, self.settings.steps // CHECKS)
        if stop or trainer.step % every == 0 or trainer.step == self.settings.steps:
            self.scores[trainer.step] = self._measure(trainer)
            self._tell()
        elif time.monotonic() - self._last > PAUSE:
            self._tell()
        self.stopped = stop and trainer.step < self.settings.steps
        return stop

    def _measure(self, trainer: Trainer) -> dict[Any, float]:
        """Measure what the training would return now: the model with averaged weights."""
        model = copy.deepcopy(trainer.model)
        trainer.average.copy_to(model)
        model.eval()
        return evaluate(model, self.task, self.settings.test_scales, SAMPLES).exact_match

    def _tell(self) -> None:
        self._last = time.monotonic()
        self.changed(self)

    def figure(self, note: str = ""):
        """Draw what there is so far."""
        s = self.settings
        title = f"{s.task}, {s.pe}, seed {s.seed}{': ' + note if note else ''}"
        return training_figure(dict(self.losses), dict(self.scores), s.steps, s.train_scale, title)


def settings_for(task: str, pe: str, train_scale: int, steps: int, seed: int) -> Settings:
    """Return small settings that train in seconds to a minute, tested at 1, 2 and 5 times N.

    >>> settings_for("copy", "rpe", 4, 100, 0).test_scales
    (4, 8, 20)
    """
    sizes = [factor * train_scale for factor in FACTORS]
    built = tasks.get_for(task, max(sizes))
    scales = tuple(built.scale_of(size) for size in sizes)
    return Settings(
        task, pe, train_scale=train_scale, test_scales=scales, seed=seed, steps=steps, batch=32,
        width=32, heads=4,
    )  # fmt: skip


def training_monitor(
    task: str = "copy",
    pe: str = "lbpe-sh",
    train_scale: int = 5,
    steps: int = 400,
    seed: int = 0,
    start: bool = False,
) -> ipywidgets.VBox:
    """Make a widget: train a small model and watch its loss and its far scales; stop at any time.

    Nothing is trained before the button is pressed, so running the cell does not take long.

    Args:
        task: the task chosen first.
        pe: the position embedding chosen first.
        train_scale: training shows scales up to this one, 1..10; 2 and 5 times it are tested, too.
        steps: number of updates, 50..3000.
        seed: seed of everything.
        start: whether to begin at once. ``box.training`` is the `Training` that was last begun.

    Returns:
        A `VBox` with drop-down lists, sliders, the buttons train and stop, and the picture.

    Raises:
        InputError: a name is unknown, or a number lies outside.

    >>> training_monitor(steps=100).children[-1].value.split('"')[5][:40]
    'Training, 0 of 100 updates, on scales up'
    """
    if task not in tasks.names():
        raise unknown_name("task", task, tasks.names())
    if pe not in embeddings.names():
        raise unknown_name("position embedding", pe, embeddings.names())
    whole_number("train_scale", train_scale, 1, LARGEST)
    whole_number("steps", steps, LEAST_STEPS, MOST_STEPS)
    which, of = choice("task", task, tasks.names()), choice("embedding", pe, embeddings.names())
    n = slider("training up to", train_scale, 1, LARGEST)
    count = slider("updates", steps, LEAST_STEPS, MOST_STEPS)
    count.step = 50
    number = slider("seed", whole_number("seed", seed, 0, 20), 0, 20)
    begin = ipywidgets.Button(description="train")
    halt = ipywidgets.Button(description="stop", disabled=True)
    picture = Picture()
    choosers = (which, of, n, count, number)

    def blank(_=None) -> None:
        title = f"{which.value}, {of.value}, seed {number.value}: not started, scales 1..{n.value}"
        picture.show(lambda: training_figure({}, {}, count.value, n.value, title))

    def free(idle: bool) -> None:
        for control in (*choosers, begin):
            control.disabled = not idle
        halt.disabled = idle

    def changed(training: Training) -> None:
        ended = training.error or training.stopped or max([0, *training.scores]) == count.value
        note = "stopped" if training.stopped else "finished" if ended else "training"
        if training.error:
            picture.show(lambda: _raise(training.error))
        else:
            picture.show(lambda: training.figure(note))
        if ended:
            free(True)

    def train(_=None) -> None:
        try:
            settings = settings_for(which.value, of.value, n.value, count.value, number.value)
            whole.training = Training(settings, changed)
        except InputError as error:
            text = str(error)
            picture.show(lambda: _raise(text))
            return
        free(False)
        whole.training.start()

    def stop(_) -> None:
        whole.training.stop()

    begin.on_click(train)
    halt.on_click(stop)
    for control in choosers:
        control.observe(blank, "value")
    blank()
    whole = box([*choosers, begin, halt], picture.widget)
    whole.training = None
    if start:
        train()
    return whole


def _raise(text: str):
    raise InputError(text)
