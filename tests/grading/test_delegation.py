"""Is an answer that only asks the library found, and an honest one left in peace?"""

from __future__ import annotations

import pytest
import torch
from torch import nn

import lgcourse
from lgcourse import relations, tasks
from lgcourse.embeddings.base import PositionEmbedding
from lgcourse.grading import questions
from lgcourse.grading.delegation import forbidden_uses
from lgcourse.grading.notebook import NotebookCheck
from lgcourse.grading.question import ROOMS
from lgcourse.relations import build
from lgcourse.show import layout_figure

TASK = tasks.get("copy")


def helper(n):
    return tasks.get("copy").length(n)


def through_helper(n):
    return helper(n)


def inside(n):
    from lgcourse.tasks import get

    return get("copy").length(n)


def inside_room(n):
    from lgcourse import tasks as room

    return room.get("copy").length(n)


class Derived(PositionEmbedding):
    pass


class Method(nn.Module):
    def forward(self, x):
        return relations.build("rpe")(x, x, 1)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda n: tasks.get("copy").length(n), ["lgcourse.tasks"]),
        (lambda n: [tasks.get("copy") for _ in range(n)], ["lgcourse.tasks"]),
        (lambda n: TASK.length(n), ["lgcourse.tasks"]),
        (lambda n: build("rpe"), ["lgcourse.relations"]),
        (lambda n: lgcourse.tasks.get("copy"), ["lgcourse.tasks"]),
        (through_helper, ["lgcourse.tasks"]),
        (inside, ["lgcourse.tasks"]),
        (inside_room, ["lgcourse.tasks"]),
        (tasks.get, ["lgcourse.tasks"]),
        (Derived, ["lgcourse.embeddings"]),
        (Method, ["lgcourse.relations"]),
        (lambda n: torch.arange(n), []),
        (lambda n: layout_figure, []),
        (lambda tasks: tasks.length, []),
        (nn.Linear, []),
        (3, []),
        (..., []),
    ],
)
def test_what_an_answer_uses_is_found(answer, found):
    names = forbidden_uses(answer, ROOMS)
    assert [n for n in names if n in found] == found and (found or not names)


def test_a_part_of_a_room_can_be_forbidden():
    assert forbidden_uses(Derived, ("embeddings.base",)) == ["lgcourse.embeddings.base"]
    assert forbidden_uses(Derived, ("embeddings.rope", "tasks")) == []


def test_the_notebook_warns_of_it(capsys):
    question = questions(1)[0]
    NotebookCheck(question, {})(lambda guess, target: tasks.get("copy") and guess)
    out = " ".join(capsys.readouterr().out.split())
    assert "note: it uses lgcourse.tasks, which is not there at grading; write it yourself" in out
    NotebookCheck(question, {})(lambda guess, target: guess)
    assert "note:" not in capsys.readouterr().out
