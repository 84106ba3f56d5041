"""Does the set-up cell install on Colab and Binder, do nothing elsewhere, and are badges right?"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lgcourse.authoring import build, check
from lgcourse.authoring.opening import opened, project_address
from lgcourse.authoring.percent import Cell, parse
from lgcourse.errors import InputError

ALL = ("notebooks/01_first.ipynb", "solutions/01_first.ipynb", "exercises/01_first.ipynb")
ADDRESS = "https://github.com/somebody/lgcourse"
URLS = f'[project]\nname = "x"\n[project.urls]\nDocs = "https://d.org"\nRepository = "{ADDRESS}"\n'


def cells_of(root: Path, path: str) -> list[dict[str, Any]]:
    return json.loads((root / path).read_text(encoding="utf-8"))["cells"]


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


class Place:
    """Runs the set-up cell at a made-up place and records what it would start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.patch, self.started = monkeypatch, []
        monkeypatch.delenv("BINDER_SERVICE_HOST", raising=False)
        monkeypatch.setattr(subprocess, "run", lambda *a, **k: self.started.append((a, k)))
        monkeypatch.setattr(subprocess, "Popen", None)

    def colab(self) -> None:
        self.patch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))

    def binder(self) -> None:
        self.patch.setenv("BINDER_SERVICE_HOST", "10.0.0.1")

    def lacks(self, *names: str) -> None:
        find = importlib.util.find_spec
        self.patch.setattr(importlib.util, "find_spec", lambda n: None if n in names else find(n))

    def run(self, address: str = "") -> list[list[str]]:
        """Run the cell; return the packages that each started pip was asked for."""
        (setup,) = [c for c in opened([], "notebooks/01_a.ipynb", address) if c.kind == "code"]
        exec(compile(setup.source, "setup", "exec"), {})
        asked = []
        for (command,), options in self.started:
            assert command[:5] == [sys.executable, "-m", "pip", "install", "--quiet"]
            assert options == {"check": True}
            asked.append(command[5:])
        return asked


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(monkeypatch)


@pytest.mark.parametrize("address", ["", ADDRESS])
@pytest.mark.parametrize("missing", [(), ("lgcourse",), ("lgcourse", "ipywidgets")])
def test_at_home_it_does_nothing_in_any_folder(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: Any, address: str
) -> None:
    place.lacks(*missing)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    assert place.run(address) == []
    assert set(sys.modules) == before and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", [Place.colab, Place.binder])
def test_where_nothing_is_missing_it_does_nothing(place: Place, where: Callable) -> None:
    where(place)
    place.lacks()
    assert place.run(ADDRESS) == []


@pytest.mark.parametrize("where", [Place.colab, Place.binder])
@pytest.mark.parametrize(
    ("missing", "asked"),
    [
        (("lgcourse",), [f"git+{ADDRESS}"]),
        (("ipywidgets",), ["ipywidgets"]),
        (("ipywidgets", "lgcourse"), [f"git+{ADDRESS}", "ipywidgets"]),
    ],
)
def test_what_is_missing_comes_from_the_address(
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: Callable,
    missing: tuple[str, ...],
    asked: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # a notebook that stands alone
    where(place)
    place.lacks(*missing)
    assert place.run(ADDRESS) == [asked]


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_a_copy_of_the_course_around_the_notebook_is_taken_first(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    (tmp_path / "lgcourse").mkdir()
    (tmp_path / "lgcourse/__init__.py").touch()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    place.binder()
    place.lacks("lgcourse")
    assert place.run(address) == [[str(tmp_path)]]


def test_without_a_copy_and_an_address_it_says_what_to_do(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    place.colab()
    place.lacks("lgcourse", "ipywidgets")
    assert place.run() == []
    assert "into a copy of the course" in capsys.readouterr().out


# --- in the built notebooks ----------------------------------------------------------------------


def test_every_notebook_opens_with_it_behind_the_title(course: Path) -> None:
    build(course)
    setups = []
    for path in ALL:
        first = cells_of(course, path)
        (setup,) = [c for c in first if c["metadata"].get("tags") == ["setup"]]
        assert first.index(setup) == 1 and text(first[0]).startswith("# ")
        assert not any("colab.research" in text(c) or "mybinder" in text(c) for c in first)
        setups.append(text(setup))
    assert len(set(setups)) == 1


def test_badges_stand_at_the_top_where_the_address_is_set(course: Path) -> None:
    (course / "pyproject.toml").write_text(URLS, encoding="utf-8")
    build(course)
    for path in ALL:
        badges, title, setup = cells_of(course, path)[:3]
        colab = f"https://colab.research.google.com/github/somebody/lgcourse/blob/main/{path}"
        file = path.replace("/", "%2F")
        binder = f"https://mybinder.org/v2/gh/somebody/lgcourse/main?labpath={file}"
        assert f"]({colab})" in text(badges) and f"]({binder})" in text(badges)
        assert text(title).startswith("# ") and f"git+{ADDRESS}" in text(setup)


def test_an_address_that_is_not_on_github_has_no_colab_badge() -> None:
    shown = opened([], "notebooks/01_a.ipynb", "https://gitlab.com/a/b")[0].source
    assert "colab" not in shown
    assert "/v2/git/https%3A%2F%2Fgitlab.com%2Fa%2Fb/main?labpath=" in shown


def test_outputs_stay_when_the_address_changes(course: Path, pretend_run: Any) -> None:
    build(course)
    for path in ALL[:2]:
        pretend_run(course / path)
    assert check(course) == []

    def outputs() -> list[Any]:
        return [c["outputs"] for c in cells_of(course, ALL[0]) if c["cell_type"] == "code"][1:]

    before = outputs()
    (course / "pyproject.toml").write_text(URLS, encoding="utf-8")
    assert {problem.kind for problem in check(course)} == {"stale"}
    build(course)
    assert check(course) == [] and outputs() == before
    counts = [c.get("execution_count") for c in cells_of(course, ALL[0])]
    assert counts[1:3] == [None, 1]  # badges, title, set-up
    assert counts[3:] == [2, 3]


@pytest.mark.parametrize(
    ("urls", "address"),
    [
        ("", ""),
        ('Documentation = "https://example.org/x/y"', ""),
        (f'repository = "{ADDRESS}/"', ADDRESS),
        (f'Homepage = "https://a.org/b/c"\nSource = "{ADDRESS}"', ADDRESS),
    ],
)
def test_where_the_address_comes_from(tmp_path: Path, urls: str, address: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[project.urls]\n{urls}\n", encoding="utf-8")
    assert project_address(tmp_path) == address


@pytest.mark.parametrize(
    "url", ["http://github.com/a/b", "https://github.com/a", "git@github.com:a/b.git", 'x"); bad("']
)
def test_an_address_that_is_no_repository_is_refused(tmp_path: Path, url: str) -> None:
    line = f"Repository = '{url}'"
    (tmp_path / "pyproject.toml").write_text(f"[project.urls]\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match="address of a repository"):
        project_address(tmp_path)


def test_an_author_cannot_write_a_set_up_cell() -> None:
    with pytest.raises(InputError, match="unknown tag"):
        parse('# %% tags=["setup"]\n1\n')
    assert opened([Cell("code", "1")], "exercises/01_a.ipynb", "")[0].tags == ("setup",)
