"""Which trained model do pictures show if none is given? A small one, trained in seconds, once."""

from __future__ import annotations

from functools import lru_cache

from lgcourse.errors import whole_number
from lgcourse.show.gates import Gates, Recorder
from lgcourse.training.runs import LoadedRun
from lgcourse.training.settings import Settings, build_model
from lgcourse.training.trainer import fit

TRAIN_SCALE, TEST_SCALE = 6, 30
STEPS, BATCH, WIDTH, HEADS = 300, 16, 32, 4


@lru_cache(maxsize=4)
def small_run(
    task: str = "reverse", pe: str = "lbpe-sh", seed: int = 0, steps: int = STEPS
) -> tuple[LoadedRun, Gates]:
    """Train a small model whose relation is learned, and keep how its gates hardened.

    Args:
        task: a name in `lgcourse.tasks`.
        pe: ``"lbpe-sh"`` or ``"lbpe"``.
        seed: seed of everything.
        steps: number of updates.

    Returns:
        The run, for scales up to 30, and its gates; the same objects at the next call.

    Raises:
        InputError: the embedding has no gates, or a name or number is wrong.
    """
    settings = Settings(
        task,
        pe,
        train_scale=TRAIN_SCALE,
        test_scales=(TEST_SCALE,),
        seed=seed,
        steps=whole_number("steps", steps, 1),
        batch=BATCH,
        width=WIDTH,
        heads=HEADS,
    )
    settings, built, model = build_model(settings)
    recorder = Recorder(every=5)
    scales = list(built.scales(built.scale_of(TRAIN_SCALE)))
    fit(model, built, scales, steps, seed, batch=BATCH, device="cpu", progress=recorder)
    return LoadedRun(settings, built, model.eval(), {}), recorder.gates(f"{task}, {pe}")
