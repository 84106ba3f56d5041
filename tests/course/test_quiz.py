"""Is each wrong answer of the quiz what a known wrong program gives, and the right one right?"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest
import torch

from lgcourse.grading import exercises, questions
from lgcourse.grading.classreport import Places
from lgcourse.grading.quiz import read_quiz, read_toml

ROOT = Path(__file__).resolve().parents[2]
TEACHERS = ROOT / "course/teachers"
QUIZ = read_quiz(TEACHERS / "quiz.toml")
OPTIONS = [(item, option) for item in QUIZ for option in item.options]
t = torch.tensor


@cache
def mistakes(exercise: int) -> dict:
    """Return MISTAKES of tests/grading/test_eNN.py: name -> question, check, wrong program."""
    path = ROOT / f"tests/grading/test_e{exercise:02}.py"
    spec = importlib.util.spec_from_file_location(f"mistakes_{exercise}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MISTAKES


def four_answers():
    target = torch.arange(16).reshape(4, 4) % 10
    guess = target.clone()
    guess[2, 0], guess[3, 3] = 9, 9
    return guess, target


def same_number(bias):
    """Say which of the pairs in the options has the number of the query 7 with the key 3."""
    table = torch.arange(10.0)[None]

    def number(i, j):
        return bias(t([i]), t([j]), table).item()

    pairs = [(9, 5), (3, 7), (17, 3)]
    same = [f"query {i}, key {j}" for i, j in pairs if number(i, j) == number(7, 3)]
    return [pair for pair in same if pair != "query 9, key 5"] or same


def named_apart(ids):
    """Say what a relation that names all operators of a target by its rule tells apart."""
    found = ids(torch.ones(3, 3, 1, 1))
    apart = len(found[torch.tril_indices(3, 3).unbind()].unique()) > 1
    return ["none: each pair of positions has a number of its own"] if apart else []


def three_wishes():
    ids = t([[0, 1, 1], [0, 1, 1], [1, 1, 0]])
    wanted = t([[2.0, 0, 0], [2, 0, 0], [0, 0, 5]])[..., None, None]
    return ids, wanted, [3], 2


def own_and_before():
    own, before = torch.eye(5) * 3, torch.diag(torch.full((4,), -3.0), -1)
    return ((own + before)[..., None, None],)


def copies(n):
    return {n + k - 1: {k - 1: "source"} for k in range(1, n + 1)}


def reversals():
    steps = [(n + k - 1, n - k, n) for n in (3, 5) for k in range(1, n + 1)]
    return tuple(map(t, zip(*steps, strict=True)))


def places(right):
    found = [str(k) for k, good in enumerate(right.tolist(), 1) if good]
    return {1: "{} alone", 2: "{} and {}", 3: "{}, {} and {}"}[len(found)].format(*found)


def conflict(pair):
    """Name the option that starts with the pair found, the least one of several."""
    return {
        (-1, -1): "none",
        (3, 0): "query 3 with key 0, and query 3 with key 1",
        (3, 1): "query 3 with key 1 alone",
        (2, 0): "query 2 with key 0, and others",
    }[pair]


def equation(form):
    b, c, value = form
    n = {0: "", 1: " - n", 2: " - 2n"}[c]
    return f"i {'+' if b > 0 else '-'} j{n} = {value}"


STEPS = {(0, 0): 0, (0, 1): 1}
# quiz -> question, the arguments of the case that the text describes, how an answer is written
CASES = {
    "whole-answers": ("exact_match", four_answers(), lambda a: f"{a.double().mean().item():g}"),
    "one-name-one-operator": ("mean_operators", three_wishes(), lambda a: f"{a[0].item():g}"),
    "counting-operators": ("lrc_operators", own_and_before(), str),
    "names-never-trained": (
        "right_pairs",
        (t([0, 0]), t([2.0, 2.0]), t([0, 0, 1, 1, 2]), t([2.0, 4.0, 2.0, 0.0, 0.0])),
        places,
    ),
    "unit-operators": (
        "least_tables",
        ([{(0,): 0, (1,): 1}, STEPS, {(1, 0): 1, (1, 1): 0}, dict(STEPS)],),
        str,
    ),
    "why-a-hint": ("first_conflict", (copies(2), copies(3)), conflict),
    "met-in-training": (
        "met_share",
        (t([[3, 5], [1, 7]]), t([[3, 7], [7, 1], [1, 7], [3, 5], [5, 3]])),
        lambda share: f"{5 * share:g}",
    ),
    "one-equation": ("fit_form", reversals(), equation),
    "values-never-trained": ("new_values", ((0, 1, 0), 5, 10), lambda share: f"{share:g}"),
    "reading-a-cell": ("key_of", ((1, 1, -2, -1), 5, 4), lambda j: "at none" if j < 0 else str(j)),
    "proof-or-sample": (
        "smallest_margin",
        (t([[5.0, 3, 1], [3, 2, 2], [4, 4.5, 1]]), t([0, 0, 0])),
        lambda margin: f"{margin:.2g}",
    ),
}


def answer(item, program):
    name, case, written = CASES[item.id]
    return written(program(*case))


@pytest.mark.parametrize(
    ("item", "option"), OPTIONS, ids=[f"{i.id}-{o.letter}" for i, o in OPTIONS]
)
def test_each_answer_is_what_a_program_gives(item, option):
    if item.id == "names-of-pairs":  # it asks which pairs are alike, not for a value
        reference = {q.name: q for q in questions(2)}["relative_bias"].reference
        if not option.thinks:
            assert same_number(reference) == [option.text]
            return
        name, _, program = mistakes(option.exercise)[option.mutant]
        told = named_apart(program) if name == "ideal_ids" else same_number(program)
        assert told == [option.text]
        return
    name = CASES[item.id][0]
    if option.thinks:
        question, _, program = mistakes(option.exercise)[option.mutant]
        assert question == name
    else:
        program = {q.name: q for q in questions(item.lesson)}[name].reference
    assert answer(item, program) == option.text


def test_the_conflict_with_two_pairs_has_no_third():
    two, three = copies(2), copies(3)
    shared = set(two) & set(three)
    apart = {(i, j) for i in shared for j in range(i + 1) if two[i].get(j) != three[i].get(j)}
    assert apart == {(3, 0), (3, 1)}


def test_there_is_a_question_for_each_lesson_and_the_right_letters_vary():
    assert [item.lesson for item in QUIZ] == exercises()
    letters = [item.right for item in QUIZ]
    assert all(letters.count(letter) <= 6 for letter in "abcd") and len(set(letters)) > 2


def test_every_question_has_a_section_of_its_lesson():
    sections = read_toml(TEACHERS / "sections.toml")
    found = Places(ROOT, sections)
    assert {name: list(there) for name, there in sections.items()} == {
        f"lesson-{n:02}": [q.name for q in questions(n)] for n in exercises()
    }
    for name in found.sections:
        assert re.fullmatch(r'lesson \d+, section \d+, ".+"', found.of_question(name))
    for item in QUIZ:
        assert found.section(item.lesson, item.section)


def test_the_plan_states_the_times_and_points_of_the_course():
    text = (TEACHERS / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| (\d+) \| (\d+) \| (\d+) \|", text, re.MULTILINE)
    wanted = []
    for n in exercises():
        (lesson,) = (ROOT / "course/lessons").glob(f"{n:02}_*.py")
        stated = re.search(r"# Time: about (\d+) minutes", lesson.read_text(encoding="utf-8"))
        asked = questions(n)
        minutes, points = sum(q.minutes for q in asked), sum(q.points for q in asked)
        wanted.append((str(n), stated[1], str(minutes), str(points)))
    assert rows == wanted
