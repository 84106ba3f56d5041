"""Runs that were never trained, and learned relations that were set by hand, for tests."""

from __future__ import annotations

import torch

from lgcourse.embeddings.learned_relation import LearnedRelation
from lgcourse.training import Settings, build_model
from lgcourse.training.runs import LoadedRun


def run_of(task, pe, tests=(10, 20), exact=None, **options):
    """A run that was never trained: the model at its start, and scores of our own."""
    base = dict(width=16, heads=4, layers=1, train_scale=6, steps=1, learning_rate=1e-3)
    settings = Settings(task, pe, test_scales=tests, **{**base, **options})
    settings, task, model = build_model(settings)
    return LoadedRun(settings, task, model.eval(), {"exact_match": exact or {}})


@torch.no_grad()
def with_cells(run, *layers):
    """Set the cells of a learned relation, layer by layer and head by head, at strength 1."""
    for position, heads in zip(run.model.positions, layers, strict=True):
        assert isinstance(position, LearnedRelation)
        for share in (0.0, 0.5, 0.9):  # to the last stage, in which cells stay as they are
            position.anneal(share, torch.Generator().manual_seed(0))
        position.gates.zero_()
        position.table.zero_()
        position.kept.fill_(False)
        reach = position.kept.shape[2] // 2
        for head, cells in enumerate(heads):
            for form, value in cells:
                f = position.forms.index(form)
                position.kept[head, f, value + reach] = True
                position.table[head, f, value + reach] = float(len(position.forms))
        assert torch.allclose(position.strength()[position.kept], torch.tensor(1.0))
    return run
