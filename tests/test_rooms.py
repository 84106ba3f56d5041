"""A room imports only rooms above it, and its public names can be seen and imported."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import lgcourse

ROOMS = ["relations", "tasks", "theory", "embeddings", "model", "training", "certify"]
ROOMS += ["experiments", "show", "grading"]
ROOT = Path(lgcourse.__file__).parent


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it(room):
    below = set(ROOMS[ROOMS.index(room) + 1 :]) | {"cli", "demo", "report", "authoring"}
    found = set()
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                if parts[0] == "lgcourse":
                    names = parts[1:2] or [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [a.name.split(".")[1] for a in node.names if a.name.startswith("lgcourse.")]
            found |= {(path.relative_to(ROOT).as_posix(), n) for n in names if n in below}
    assert found == set()


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_exists_and_is_no_module(room):
    module = import_module(f"lgcourse.{room}")
    assert module.__all__ and set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert not isinstance(getattr(module, name), type(ast)), name
