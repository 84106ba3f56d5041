"""Why does a Transformer that learned short inputs fail on long ones, and what can be done?

Start with ``lgcourse.relations``: everything here that knows about position is a relation
phi(query, key, scale) -> id. Importing this package does not import torch; the rooms are
imported when they are first used.
"""

from importlib import import_module

__version__ = "0.1.0"

_ROOMS = (
    *("relations", "tasks", "theory", "embeddings", "model", "training"),
    *("certify", "experiments", "show", "grading", "authoring"),
)
_NAMES = {
    "InputError": "errors",
    "Transformer": "model",
    "fit": "training",
    "evaluate": "training",
}
__all__ = [*_ROOMS, *_NAMES, "__version__"]


def __getattr__(name):
    if name in _ROOMS:
        return import_module(f"lgcourse.{name}")
    if name in _NAMES:
        return getattr(import_module(f"lgcourse.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'lgcourse' has no attribute '{name}'")


def __dir__():
    return sorted(__all__)
