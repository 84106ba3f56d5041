"""The code in README.md and CONTRIBUTING.md runs, and is the code that is tested elsewhere."""

import re
from pathlib import Path

import pytest

from lgcourse import tasks

ROOT = Path(__file__).resolve().parents[1]


def python_blocks(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture
def registry_as_before(monkeypatch):
    monkeypatch.setattr(tasks.registry, "_places", dict(tasks.registry._places))


def test_the_own_task_of_contributing(registry_as_before):
    (block,) = python_blocks("CONTRIBUTING.md")
    assert len([line for line in block.splitlines() if line.strip()]) < 30
    exec(compile(block, "CONTRIBUTING.md", "exec"), {})
    task = tasks.get("maximum-cot")
    assert task.solve("31415=") == "33445"
    for scale in range(1, 13):
        tasks.check_circuit(task, scale)


def test_the_example_of_the_readme(capsys):
    block, _ = python_blocks("README.md")
    assert "steps=1000" in block and "samples=50" in block
    short = block.replace("steps=1000", "steps=3").replace("samples=50", "samples=2")
    exec(compile(short, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{10: ")


def test_the_theory_of_the_readme(capsys):
    _, block = python_blocks("README.md")
    exec(compile(block, "README.md", "exec"), {})
    rank, reason, step = capsys.readouterr().out.splitlines()
    assert eval(rank) == dict.fromkeys(range(1, 9), 1)
    assert "operand" in reason
    # parity: y2 stands at position n + 2 and reads x2 and y1, here at scale 6
    assert "output=8" in step and "inputs=(1, 7)" in step


def test_the_commands_of_the_readme_exist():
    from typer.main import get_command

    from lgcourse.cli import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^lgcourse ([\w-]+)", text, flags=re.MULTILINE)) <= known
    assert set(re.findall(r"^make (\w+)", text, flags=re.MULTILINE)) <= set(
        re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
