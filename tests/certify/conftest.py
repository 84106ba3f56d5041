"""Small trained models, and the judge of every certificate: replay at many scales."""

import copy

import pytest

from lgcourse.certify.certificate import examine
from lgcourse.model.generation import next_tokens
from lgcourse.relations.affine import N, T
from lgcourse.tasks.base import Task
from lgcourse.tasks.circuit import Operator
from lgcourse.tasks.families import Segment, family
from lgcourse.training import Settings, build_model, fit, generator

SIZES = {  # width, heads, steps: enough to be right on every tuple
    "copy": (16, 2, 300),
    "parity-cot": (16, 2, 300),
    "shift": (16, 2, 400),
    "addition": (48, 6, 600),
}


def trained(task_name, pe="ideal-sh", **options):
    width, heads, steps = SIZES[task_name]
    settings = Settings(task_name, pe, width=width, heads=heads, steps=steps, **options)
    settings, task, model = build_model(settings)
    fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    return task, model.eval()


@pytest.fixture(scope="session")
def models():
    """Return a function: the name of a task -> the task and a copy of its trained model."""
    kept = {}

    def get(name):
        if name not in kept:
            kept[name] = trained(name)
        task, model = kept[name]
        return task, copy.deepcopy(model)

    return get


def first_error(model, task, scales=(*range(1, 51), 1000, 1001), samples=8):
    """Return a scale and a prompt that a model gets wrong under teacher forcing, or None."""
    source = generator(7, "judge")
    for size in scales:
        scale = task.scale_of(size)
        few = samples if size < 100 else 2
        for batch in (task.sample(scale, few, source), task.hard(scale, few, source)):
            if batch is None:
                continue
            at = batch.answer.nonzero()[:, 0]
            guess = next_tokens(model, batch.tokens, scale)[:, at - 1]
            wrong = (guess != batch.tokens[:, at]).any(1).nonzero()[:, 0]
            if len(wrong):
                return scale, batch.tokens[wrong[0]].tolist()
    return None


@pytest.fixture(scope="session")
def judge():
    return first_error


class Counting(Task):
    """x1..xn = y1..yn over bits, y_t = min(5, y_(t-1) + x_t): 5 is first met at scale 5."""

    name, example, vocabulary = "counting", "10110=", "012345="
    arity, chance = 2, 0.3

    def segments(self):
        return [Segment("x", N, (0, 1)), self.mark("="), Segment("y", N)]

    def families(self):
        x, y = self.places("x", "y")
        first = Operator.from_rule("start", ("x",), lambda x: x, (0, 1))
        later = Operator.from_rule(
            "count", ("before", "x"), lambda y, x: min(5, y + x), [range(6), (0, 1)]
        )
        return [family(first, y(T), [x(T)], 1), family(later, y(T), [y(T - 1), x(T)], 2, N)]

    def answer(self, prompt, scale):
        return prompt[:, :scale].cumsum(1).clamp(max=5)


@pytest.fixture(scope="session")
def examined(models):
    """Return a function: the name of a task -> task, model and what `examine` found of it."""
    kept = {}

    def get(name):
        if name not in kept:
            task, model = models(name)
            kept[name] = task, model, examine(model, task)
        return kept[name]

    return get


@pytest.fixture(scope="session")
def counting():
    """Return the counting task and a trained model of it."""
    from lgcourse import Transformer, embeddings
    from lgcourse.training import seeded

    task = Counting()
    with seeded(0, "weights"):
        pe = embeddings.build("ideal-sh", task, width=16, heads=2)
        model = Transformer(len(task.vocabulary), pe, 1, 16, 2)
    fit(model, task, range(1, 13), 600, seed=0, device="cpu")
    return task, model.eval()
