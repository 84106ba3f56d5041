"""Small models with every registered position embedding, their tables filled at random."""

import jaxtyping
import pytest
import torch

from lgcourse import InputError, Transformer, embeddings, tasks

WIDTH, HEADS, MAX_SCALE = 12, 3, 12


def build_embedding(name, width=WIDTH, heads=HEADS, max_scale=MAX_SCALE, **options):
    """Return a task and an embedding for it; the scale-free `ideal` needs a padded one."""
    for task_name in ("multiply-digit", "parity-cot-padded"):
        task = tasks.get_for(task_name, max_scale)
        try:
            return task, embeddings.build(
                name, task, width=width, heads=heads, max_scale=max_scale, **options
            )
        except InputError as error:
            refused = error
    raise refused


def build_model(name, layers=2, options=None, seed=0, **decoder):
    """Return a task and a model for it; tables start at zero, so they are randomised."""
    task, embedding = build_embedding(name, **(options or {}))
    torch.manual_seed(seed)
    model = Transformer(len(task.vocabulary), embedding, layers, WIDTH, HEADS, **decoder)
    with torch.no_grad():
        for parameter in model.positions.parameters():
            parameter.normal_(std=0.5)
    return task, model.eval()


@pytest.fixture(scope="session")
def make_model():
    return build_model


@pytest.fixture(scope="session")
def make_tokens():
    """Return random tokens of a task's vocabulary, [batch, length]; also senseless sequences."""

    def make(task, batch, length, seed=1):
        source = torch.Generator().manual_seed(seed)
        return torch.randint(len(task.vocabulary), (batch, length), generator=source)

    return make


@pytest.fixture
def untyped():
    """Without the checks of shapes, which dynamo cannot trace; they run only under pytest."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
