"""Do the circuits and counts that lesson 6 builds agree with the library's?"""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest

from lgcourse import relations, tasks, theory

NAME = "06_sequential_representation_complexity.py"
LESSON = Path(__file__).resolve().parents[2] / "course/lessons" / NAME
FUNCTIONS = {
    "parity_steps", "direct_steps", "run", "consistent", "merge", "count_operators",
    "count_induced",
}  # fmt: skip


def built():
    """Return what the lesson defines under these names, without running the rest of it."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    wanted = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in FUNCTIONS]
    for node in tree.body:
        names = [ast.unparse(one) for one in getattr(node, "targets", [])]
        if set(names) & {*("take", "xor", "EQUALS")}:
            wanted.append(node)
    space: dict = {"product": product}
    exec(compile(ast.Module(wanted, []), "lesson", "exec"), space)
    assert set(space) >= FUNCTIONS
    return space


SPACE = built()
CIRCUITS = {"parity-cot": "parity_steps", "parity-direct": "direct_steps"}


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_circuits_are_the_librarys(name):
    for n in range(1, 7):
        mine = SPACE[CIRCUITS[name]](n)
        library = tasks.get(name).circuit(n)
        assert [(o, t, r) for o, t, r in mine] == [
            (s.output, dict(s.operator.table), s.inputs) for s in library
        ]


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_circuits_compute_the_tasks(name):
    task = tasks.get(name)
    for bits in product((0, 1), repeat=5):
        text = "".join(map(str, bits)) + "="
        written = SPACE["run"](SPACE[CIRCUITS[name]](5), [*bits, SPACE["EQUALS"]])
        assert "".join(map(str, written)) == task.solve(text)


@pytest.mark.parametrize("name", [*CIRCUITS, "multiply-scratchpad", "add-index-mod", "addition"])
def test_the_counts_are_the_librarys(name):
    task = tasks.get(name)
    if name in CIRCUITS:
        assert SPACE["count_operators"](SPACE[CIRCUITS[name]], 6) == theory.src(task, 6)
    scales = task.scales((3, 3) if task.sizes == 2 else 6)
    operators = {s.operator: None for n in scales for s in task.circuit(n)}
    merged = SPACE["merge"]([operator.table for operator in operators])
    assert len(merged) == theory.src(task, 3 if task.sizes == 2 else 6)


@pytest.mark.parametrize("name", ["ape", "rpe"])
def test_the_induced_counts_are_the_librarys(name):
    ways = {"ape": lambda i, j, n: j, "rpe": lambda i, j, n: i - j}
    task = tasks.get("parity-cot")
    for n in (1, 4, 7):
        counted = SPACE["count_induced"](SPACE["parity_steps"], ways[name], n)
        assert counted == theory.induced_src(task, relations.build(name, task), n)
