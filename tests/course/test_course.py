"""Is the built course in step with its sources, and does what a learner runs hold together?"""

from __future__ import annotations

import ast
import re
import socket
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import lgcourse
from lgcourse import tasks
from lgcourse.authoring import check, parse
from lgcourse.authoring.cut import lesson, solution, student
from lgcourse.grading import exercises, questions
from lgcourse.grading.question import PASSED, examine

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "course/lessons").glob("*.py"))
EXERCISES = sorted((ROOT / "course/exercises").glob("*.py"))


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def cells(path, version):
    return version(parse(path.read_text(encoding="utf-8"), path.name), path.name)


def run(path, version):
    """Run the code cells of an exercise in one namespace, as its notebook does."""
    space: dict = {"__name__": "exercise"}
    for cell in cells(path, version):
        if cell.kind == "code":
            exec(compile(cell.source, path.name, "exec"), space)
    return space


def test_the_notebooks_are_in_step_and_students_see_no_solution():
    assert [str(problem) for problem in check(ROOT)] == []


def test_there_is_an_exercise_for_each_lesson_and_questions_for_each_exercise():
    assert [path.name for path in LESSONS] == [path.name for path in EXERCISES]
    assert [int(path.name[:2]) for path in EXERCISES] == exercises()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Stand in an empty folder without a network; nothing may be left in the folder."""

    def refuse(*_):
        raise OSError("there is no network here")

    monkeypatch.chdir(tmp_path)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    yield
    assert list(tmp_path.iterdir()) == []


@named([path for path in LESSONS if path.stem[:2] in ("01", "03", "04", "05", "11")])
def test_a_lesson_without_long_training_runs_anywhere(path, elsewhere):
    run(path, lesson)


@named(LESSONS)
def test_a_lesson_names_no_file_beside_it(path):
    code = "\n".join(cell.source for cell in cells(path, lesson) if cell.kind == "code")
    assert not re.search(r"\bopen\(|Path\(\"|getcwd|chdir|\.\./|https?://|urlopen|requests", code)
    assert "mkdtemp" in code or "Path(" not in code


@named(EXERCISES)
def test_an_unfilled_exercise_runs_to_its_end(path, capsys, elsewhere):
    run(path, student)
    out = capsys.readouterr().out
    asked = questions(int(path.name[:2]))
    for question in asked:
        assert f"{question.name}: not attempted (the function still returns ...)\n" in out
    assert f"for 0 of {sum(q.points for q in asked)} points" in out
    assert out.rstrip().endswith(f"next: {asked[0].name}")


@named(EXERCISES)
def test_the_solutions_get_full_marks_at_other_seeds_too(path, capsys, elsewhere):
    space = run(path, solution)
    out = capsys.readouterr().out
    assert "nothing left to do here" in out and "WRONG" not in out
    for question in questions(int(path.name[:2])):
        for seed in (1, 2, 3):
            assert examine(question, space[question.name], seed).outcome == PASSED


@named(EXERCISES)
def test_the_text_states_what_the_question_says(path):
    text = path.read_text(encoding="utf-8")
    for number, q in enumerate(questions(int(path.name[:2])), 1):
        stated = f"{q.points} points, {q.minutes} minutes, difficulty {q.difficulty} of 5"
        assert f"# ## {number}. `{q.name}` ({stated})" in text
        assert f"ex.check_{q.name}({q.name})" in text
        assert f"# ex.check_{q.name}.hint(1)" in text
    total = sum(q.points for q in questions(int(path.name[:2])))
    assert f"{total} points" in text


def test_exercise_one_takes_the_time_that_it_states():
    assert sum(question.minutes for question in questions(1)) == 30  # "about half an hour"


@named(LESSONS)
def test_the_prose_of_a_lesson_states_no_measured_share(path):
    for cell in cells(path, lesson):
        if cell.kind == "markdown":
            found = re.findall(r"(?<![\w.])[01]?\.\d+|\d ?%", cell.source)
            assert not found, f"{path.name}:{cell.line}: {found}: print it in a cell"


def test_a_cell_that_trains_has_its_seconds_stated_before_it():
    training: Counter[str] = Counter()
    for path in LESSONS:
        before = None
        for cell in cells(path, lesson):
            if cell.kind == "code" and re.search(r"^train\(", cell.source, re.MULTILINE):
                training[path.stem] += 1
                stated = before is not None and re.search(r"about \d+ seconds", before.source)
                assert stated, f"{path.name}:{cell.line}"
            before = cell
    assert {"01_length_generalization", "10_learned_position_embeddings"} <= set(training)


class Noisy(nn.Module):
    """A model that knows the next token, except at some places: a made-up truth to measure."""

    def __init__(self, vocabulary):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.vocabulary = vocabulary
        self.blocks = [SimpleNamespace(attention=SimpleNamespace(heads=1))]

    def wrong(self, sample, position):
        return sample % 3 == 0 and position % 4 == 0

    def forward(self, tokens, scale):
        following = tokens.roll(-1, 1)
        for sample in range(len(tokens)):
            for position in range(tokens.shape[1]):
                if self.wrong(sample, position):
                    following[sample, position] = (following[sample, position] + 1) % 10
        return nn.functional.one_hot(following, self.vocabulary).float()


def test_lesson_one_measures_what_the_library_measures():
    task = tasks.get("copy")
    batch = task.sample(6, 30, torch.Generator().manual_seed(0))
    fixed = SimpleNamespace(sample=lambda *_: batch)
    tree = ast.parse(LESSONS[0].read_text(encoding="utf-8"))
    measure = next(
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "measure"
    )
    space: dict = {"torch": torch, "task": fixed}
    exec(compile(ast.Module([measure], []), "lesson", "exec"), space)
    model = Noisy(len(task.vocabulary))
    table = lgcourse.evaluate(model, fixed, [6], samples=30)
    assert space["measure"](model, 6) == (table.token_accuracy[6], table.exact_match[6])
    # every third sample is wrong, at the query 8 among the answer's queries 6..11
    assert table.exact_match[6] == pytest.approx(20 / 30)
    assert table.token_accuracy[6] == pytest.approx(1 - 10 / 180)
