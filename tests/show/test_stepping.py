"""Does each step make the token that the task's own answer has there, from what it reads?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.show.stepping import step_data, step_figure, step_text


@pytest.mark.parametrize("name", ["addition", "reverse", "permutation-cot", "multiply-digit"])
def test_the_value_of_each_step_is_the_token_of_the_answer(name):
    task = tasks.get(name)
    for scale in (1, 4):
        tokens = task.sample(scale, 1, torch.Generator().manual_seed(3)).tokens[0].tolist()
        for number, step in enumerate(task.circuit(scale), start=1):
            data = step_data(task, scale, number, seed=3)
            assert data.value == data.tokens[data.output] == task.vocabulary[tokens[step.output]]
            assert [read.position for read in data.reads] == list(step.inputs)


def test_operators_are_counted_up_to_the_step():
    task = tasks.get("addition")
    assert [step_data(task, 4, number).operators for number in (1, 2, 5)] == [1, 2, 2]


def written(figure):
    return [word for c in figure.axes[0].collections for word in getattr(c, "words", ())]


def test_later_tokens_are_not_given_away():
    task = tasks.get("copy")
    figure = step_figure(task, 5, 2)
    assert written(figure).count("·") == 3  # y3, y4, y5
    assert "y3" not in step_text(task, 5, 2)
    assert (
        step_figure(task, 5, 5).axes[0].texts and written(step_figure(task, 5, 5)).count("·") == 0
    )


def test_the_figure_has_one_size_for_short_and_long():
    sizes = {
        tuple(step_figure(tasks.get(name), scale, 1).get_size_inches())
        for name, scale in (("copy", 1), ("addition", 30), ("multiply-scratchpad", (3, 3)))
    }
    assert len(sizes) == 1


def test_the_text_of_the_figure():
    task = tasks.get("addition")
    assert step_figure(task, 3, 2).alt == step_text(task, 3, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "scale", "step", "message"),
    [
        ("copy", 3, 0, "the steps 1..3"),
        ("copy", 3, 4, "the steps 1..3"),
        ("copy", 3, True, "the steps 1..3"),
        ("copy", 100, 1, "room for 160 tokens"),
        ("sort", 3, 1, "circuit"),
    ],
)
def test_what_cannot_be_drawn_is_refused(name, scale, step, message):
    with pytest.raises(InputError, match=message):
        step_data(tasks.get(name), scale, step)
