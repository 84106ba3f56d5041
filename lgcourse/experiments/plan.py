"""Which runs does a sweep file ask for? The same file always gives the same runs, in one order."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from lgcourse import embeddings, tasks
from lgcourse.errors import InputError, unknown_name, whole_number
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.training.settings import Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FACTOR, THRESHOLD = 5, 0.9  # generalises: exact match of 0.9 or more at 5 times the training scale
MOST = 100_000  # runs; more are a slip of the keyboard
OWN = ("task", "pe", "seed", "train_scale", "test_scales")  # said elsewhere
UNTIL = ("until_certified", "add_counterexamples")  # a sweep trains every run to its last step
FREE = tuple(f.name for f in fields(Settings) if f.name not in OWN + UNTIL)
KEYS = (
    *("tasks", "embeddings", "seeds", "train_scales", "test_scales"),
    *("factor", "threshold", "device", "settings", "grid", "embedding", "task"),
)


@dataclass(frozen=True)
class Plan:
    """The runs of a sweep.

    Args:
        data: what the file says, as plain data.
        runs: the settings of every run: tasks, then embeddings, train scales, the grid, seeds.
        factor: a model generalises if it is right at this multiple of the training scale.
        threshold: least exact match that counts as right.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``; runs on a CPU repeat to the last digit.
    """

    data: dict[str, Any]
    runs: list[Settings] = field(repr=False)
    factor: int = FACTOR
    threshold: float = THRESHOLD
    device: str = "cpu"

    @property
    def cells(self) -> list[Settings]:
        """One run of each cell: the settings that differ in nothing but the seed."""
        first: dict[str, Settings] = {}
        for run in self.runs:
            first.setdefault(cell_key(run), run)
        return list(first.values())


def read_plan(path: str | Path) -> Plan:
    """Read a sweep file.

    Args:
        path: a TOML file, see `plan_of` for its keys.

    Raises:
        InputError: the file cannot be read, or says something that cannot be done.
    """
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}; give a sweep file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"'{path}' is no TOML file: {error}") from error
    return plan_of(data)


def plan_of(data: Mapping[str, Any]) -> Plan:
    """Make the runs that a sweep file asks for.

    Args:
        data: the content of the file. ``tasks`` and ``embeddings``: lists of names; ``seeds``: a
            list, or N for 0..N-1; ``train_scales`` and ``test_scales``: lists of numbers (a test
            scale may be ``"20x13"``); ``factor``, ``threshold``, ``device``: see `Plan`. Tables:
            ``[settings]`` for all runs, ``[embedding.NAME]`` and ``[task.NAME]`` for some, and
            ``[grid]`` with lists, each combination of which is a set of runs. Their keys are
            fields of `lgcourse.training.Settings`; later tables win over earlier ones.
            Each run is also tested at its training scale and at ``factor`` times it.

    Raises:
        InputError: a key, name, scale or value is wrong; the message names the nearest right one.

    >>> plan = plan_of({"tasks": ["copy"], "embeddings": ["rpe", "t5"], "seeds": 2,
    ...                 "settings": {"steps": 100}, "embedding": {"t5": {"steps": 50}}})
    >>> [(run.pe, run.seed, run.steps, run.test_scales) for run in plan.runs][1:3]
    [('rpe', 1, 100, (10, 20, 50, 100)), ('t5', 0, 50, (10, 20, 50, 100))]
    """
    for key in data:
        if key not in KEYS:
            raise unknown_name("key of a sweep file", key, KEYS)
    names = {
        "tasks": _names(data, "tasks", "task", tasks.names()),
        "embeddings": _names(data, "embeddings", "position embedding", embeddings.names()),
    }
    seeds = _seeds(data.get("seeds", 5))
    trained = _numbers(data, "train_scales", [10])
    tested = [_scale(value) for value in _list(data, "test_scales", [20, 50, 100])]
    factor = whole_number("factor", data.get("factor", FACTOR), 2)
    threshold = data.get("threshold", THRESHOLD)
    if not _is(threshold, float) or not 0 < threshold <= 1:
        raise InputError(f"threshold must be above 0 and at most 1, got {threshold!r}")
    device = data.get("device", "cpu")
    if device not in ("cpu", "cuda", "auto"):
        raise InputError(f"device must be cpu, cuda or auto, got {device!r}")
    common, grid = _settings(data, "settings"), list(_grid(data))
    own = {
        kind: _tables(data, kind, names[many])
        for kind, many in (("embedding", "embeddings"), ("task", "tasks"))
    }
    many = len(names["tasks"]) * len(names["embeddings"]) * len(seeds) * len(trained) * len(grid)
    whole_number("the number of runs", many, 1, MOST)
    runs = []
    for task, pe in product(names["tasks"], names["embeddings"]):
        chosen = {**common, **own["embedding"].get(pe, {}), **own["task"].get(task, {})}
        for scale, point in product(trained, grid):
            one = Settings(
                task,
                pe,
                **{**chosen, **point},
                train_scale=scale,
                test_scales=_tested(task, scale, tested, factor),
            )
            runs += [replace(one, seed=seed) for seed in seeds]
    for scale in trained:  # refuse wrong scales and options of tasks before anything runs
        for task in names["tasks"]:
            next(r for r in runs if r.task == task and r.train_scale == scale).build_task()
    return Plan(dict(data), runs, factor, float(threshold), device)


def run_key(settings: Settings) -> str:
    """Return what tells a run from all others, as text."""
    return _key(settings.to_json())


def cell_key(settings: Settings) -> str:
    """Return what the runs of a cell share: everything but the seed."""
    return _key({**settings.to_json(), "seed": None})


def _key(settings: dict[str, Any]) -> str:
    # what is younger than stored rows and the same in each of them is left out: old rows stay known
    return json.dumps({k: v for k, v in settings.items() if k != UNTIL[1]}, sort_keys=True)


def times(task: str, scale: int, factor: int = 1) -> Scale:
    """Return a multiple of a training scale, as the task writes it: all sizes are equal.

    >>> times("copy", 10, 5), times("addition-unequal", 10, 5)
    (50, (50, 50))
    """
    sizes = getattr(tasks.registry.load(task), "sizes", 1)
    return factor * scale if sizes == 1 else (factor * scale,) * sizes


# --- parts of the file ----------------------------------------------------------------------------
def _list(data: Mapping[str, Any], key: str, default: list | None = None) -> list:
    value = data.get(key, default)
    if value is None:
        raise InputError(f"the sweep file has no key '{key}'; give a list, as {key} = [...]")
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(f"{key} must be a list with at least one entry, got {value!r}")
    for k, entry in enumerate(value):
        if entry in value[:k]:
            raise InputError(f"{key} has {entry!r} twice; remove one of them")
    return list(value)


def _names(data, key: str, kind: str, known: list[str]) -> list[str]:
    names = _list(data, key)
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def _numbers(data, key: str, default: list[int]) -> list[int]:
    return [whole_number(f"each of {key}", n, 1, 10**6) for n in _list(data, key, default)]


def _seeds(value: Any) -> list[int]:
    if isinstance(value, list):
        seeds = _list({"seeds": value}, "seeds")
        return [whole_number("each of seeds", seed, 0) for seed in seeds]
    return list(range(whole_number("seeds (a list, or how many)", value, 1, 10**6)))


def _scale(value: Any) -> Scale:
    if isinstance(value, str):
        sizes = value.split("x")
        if not all(s.isascii() and s.isdigit() and 0 < int(s) < 10**6 for s in sizes):
            raise InputError(f'a test scale is a number or a text like "20x13", got {value!r}')
        return tuple(map(int, sizes)) if len(sizes) > 1 else int(sizes[0])
    return whole_number("each of test_scales", value, 1, 10**6)


def _tested(task: str, trained: int, tested: list[Scale], factor: int) -> tuple[Scale, ...]:
    """Return the test scales of a run in ascending order, with those that decide its outcome."""
    asked = [times(task, n) if isinstance(n, int) else n for n in tested]
    found = {times(task, trained), times(task, trained, factor), *asked}
    return tuple(sorted(found, key=lambda n: (sum(sizes_of(n)), sizes_of(n))))


def _tables(data, kind: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of the tables [embedding.NAME] or [task.NAME]."""
    tables = _table(data, kind)
    for name in tables:
        if name not in names:
            raise unknown_name(f"{kind} in [{kind}.{name}]", name, names)
    return {name: _settings(tables, name, f"{kind}.{name}") for name in tables}


def _settings(data, key: str, shown: str = "") -> dict[str, Any]:
    table = _table(data, key)
    for name, value in table.items():
        _check(f"[{shown or key}]", name, value)
    return table


def _grid(data) -> Iterator[dict[str, Any]]:
    """Yield every combination of the lists in [grid]."""
    table = _table(data, "grid")
    for name in table:
        for value in _list(table, name):
            _check("[grid]", name, value)
    whole_number("combinations in [grid]", prod(map(len, table.values())), 1, MOST)
    for values in product(*table.values()):
        yield dict(zip(table, values, strict=True))


def _table(data, key: str) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, Mapping):
        raise InputError(f"'{key}' is a table of the sweep file, written [{key}]; got {table!r}")
    return dict(table)


def _check(where: str, name: str, value: Any) -> None:
    """Refuse a setting that is none, or whose value is of another kind than its default."""
    if name not in FREE:
        raise unknown_name(f"setting in {where}", name, FREE)
    one = next(f for f in fields(Settings) if f.name == name)
    wanted = type(one.default if one.default is not MISSING else {})
    if not _is(value, wanted):
        words = {int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}
        raise InputError(f"{name} in {where} must be {words.get(wanted, 'a text')}, got {value!r}")


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
