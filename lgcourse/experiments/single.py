"""What happens in one piece of a sweep? A run is trained and tested; a cell is predicted.

Both return plain data, whatever goes wrong: the process that asked writes it down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lgcourse.embeddings.named import family_of
from lgcourse.errors import InputError
from lgcourse.experiments.plan import cell_key, run_key, times
from lgcourse.theory import predict
from lgcourse.theory.circuits import covered
from lgcourse.training import Settings, build_model, evaluate, fit, one_thread
from lgcourse.training.runs import versions

Row = dict[str, Any]
DONE, REFUSED, FAILED = "done", "refused", "failed"  # refused: it cannot exist; failed: try again


def run_one(settings: Settings, device: str = "cpu") -> Row:
    """Train and test one model with one thread.

    Args:
        settings: the run.
        device: where it computes.

    Returns:
        Its row: ``status`` is ``"done"``, ``"refused"`` (there is no such run, for instance because
        the task has no such relation) or ``"failed"``, the last two with ``error``.

    >>> small = Settings("copy", "none", 2, (2, 10), steps=2, width=8, heads=2, samples=4)
    >>> row = run_one(small)
    >>> row["status"], list(row["exact_match"])
    ('done', ['2', '10'])
    """
    row = {"work": "run", "key": run_key(settings), "plan": settings.to_json()}
    return _guarded(row, lambda: _scores(settings, device))


def _scores(settings: Settings, device: str) -> Row:
    settings, task, model = build_model(settings)
    run = fit(
        model,
        task,
        list(task.scales(task.scale_of(settings.train_scale))),
        settings.steps,
        settings.seed,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        precision=settings.precision,
        device=device,
    )
    table = evaluate(
        model, task, settings.test_scales, settings.samples, settings.seed, settings.hard_samples
    )
    return {
        "filled": {name: getattr(settings, name) for name in ("steps", "layers", "learning_rate")},
        **table.to_json(),
        "loss": run.losses[run.steps],
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": next(model.parameters()).device.type,
    }


def predict_one(settings: Settings, factor: int) -> Row:
    """Predict one cell: from its training scales to the scale that decides its outcome.

    Args:
        settings: any run of the cell; the seed is ignored.
        factor: multiple of the training scale.

    Returns:
        Its row, with what `lgcourse.theory.Prediction` says and the kind of the task.

    >>> row = predict_one(Settings("copy", "rpe-sh"), 5)
    >>> row["verdict"], row["resolvable"], row["kind"]
    ('generalises', {'50': 1.0}, 'constant')
    """
    row = {"work": "predict", "key": cell_key(settings), "factor": factor}
    return _guarded(row, lambda: _prediction(settings, factor))


def _prediction(settings: Settings, factor: int) -> Row:
    task, decides = settings.build_task(), times(settings.task, settings.train_scale, factor)
    trained = list(task.scales(task.scale_of(settings.train_scale)))
    relation = None
    limit = getattr(task, "largest_circuit", None)  # beyond it, operators cannot be written down
    if covered(task) and (limit is None or factor * settings.train_scale <= limit):
        embedding = build_model(settings)[2].embedding
        relation = family_of(embedding) or embedding.relation
    elif covered(task):
        from lgcourse.relations import build

        relation = build("none")  # the answer does not depend on the relation
    return {"kind": task.kind, **predict(task, relation, trained, [decides]).to_json()}


def _guarded(row: Row, work: Callable[[], Row]) -> Row:
    """Do some work with one thread; what goes wrong becomes part of the row."""
    start, busy = time.perf_counter(), time.process_time()
    try:
        with one_thread():
            row = {**row, "status": DONE, "error": "", **work()}
    except InputError as error:
        row = {**row, "status": REFUSED, "error": _line(str(error))}
    except Exception as error:
        row = {**row, "status": FAILED, "error": _line(f"{type(error).__name__}: {error}")}
    took = {
        "seconds": round(time.perf_counter() - start, 2),  # more if other programs run, too
        "cpu_seconds": round(time.process_time() - busy, 2),
    }
    return {**row, "versions": versions(), **took}


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
