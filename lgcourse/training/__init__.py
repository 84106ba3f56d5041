"""Train a model on short inputs, evaluate it on long ones, store and resume runs."""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.training",
    {
        "fit": "trainer",
        "Run": "trainer",
        "evaluate": "evaluation",
        "Table": "evaluation",
        "right_tokens": "evaluation",
        "Settings": "settings",
        "build_model": "settings",
        "generator": "seeds",
        "seeded": "seeds",
        "choose_device": "device",
        "one_thread": "device",
        "load_run": "runs",
        "train_run": "runs",
        "explain": "explanation",
        "Explanation": "explanation",
        "predict_run": "explanation",
    },
)
