"""How is the explorer started, and what is said where it cannot be?"""

from __future__ import annotations

import json
import os

import pytest

from lgcourse import cli, explore


def test_dry_prints_the_command(capsys):
    assert cli.run(["explore", "--dry", "--port", "8901", "--no-browser"]) == 0
    line = capsys.readouterr().out
    assert "-m voila" in line and "--port=8901" in line and "--no-browser" in line
    assert "explorer.ipynb" in line and "JUPYTER_PATH=" in line


def test_the_notebook_of_the_explorer_is_valid_and_was_never_run():
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(explore.NOTEBOOK, 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert "explorer()" in code[0].source and all(not cell.outputs for cell in code)


def test_without_voila_one_line_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(explore.importlib.util, "find_spec", lambda name: None)
    assert cli.run(["explore"]) == 2
    assert capsys.readouterr().err == f"error: {explore.MISSING}\n"


@pytest.mark.parametrize("port", ["0", "70000"])
def test_a_port_that_is_none(port, capsys):
    assert cli.run(["explore", "--port", port]) == 2
    assert "port must be" in capsys.readouterr().err


def test_our_template_comes_first_on_the_path(monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", "elsewhere")
    assert explore.environment()["JUPYTER_PATH"] == f"{explore.TEMPLATES}{os.pathsep}elsewhere"
    monkeypatch.delenv("JUPYTER_PATH")
    assert explore.environment()["JUPYTER_PATH"] == str(explore.TEMPLATES)
    folder = explore.TEMPLATES / "voila" / "templates" / "lgcourse"
    assert json.loads((folder / "conf.json").read_text())["base_template"] == "lab"
