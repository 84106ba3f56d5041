"""Your own task in under 30 lines, as CONTRIBUTING.md shows it.

The largest digit so far, one answer token per input. Four methods say what the task is; text,
batches, scales, relations and predictions follow from them.

>>> import torch
>>> from lgcourse import tasks
>>> from lgcourse.tasks.base import Task, digits, identity, numbered
>>> from lgcourse.tasks.circuit import Operator
>>> LARGER = Operator.from_rule("larger", ("before", "next"), max, range(10))
>>> class MaximumCoT(Task):
...     '''x1..xn = y1..yn with y_t = max(y_(t-1), x_t): arity 2, SRC 2 from scale 2 on.'''
...
...     name, example, vocabulary = "maximum-cot", "31415=", "0123456789="
...     arity, chance = 2, 0.1
...
...     def layout(self, scale):
...         return [*numbered("x", scale), "=", *numbered("y", scale)]
...
...     def prompt(self, scale, batch, generator):
...         x = digits(10, (batch, scale), generator)
...         return torch.cat([x, torch.full((batch, 1), 10)], dim=1)
...
...     def answer(self, prompt, scale):
...         return prompt[:, :scale].cummax(dim=1).values
...
...     def circuit(self, scale):
...         rows = [("y1", identity(10), ["x1"])]
...         rows += [(f"y{t}", LARGER, [f"y{t-1}", f"x{t}"]) for t in range(2, scale + 1)]
...         return self.steps(scale, rows)
>>> tasks.register("maximum-cot", MaximumCoT)
>>> task = tasks.get("maximum-cot")
>>> task.solve("31415=")
'33445'
>>> for scale in range(1, 31):
...     tasks.check_circuit(task, scale)
"""

import doctest
from typing import Any

import pytest
import torch

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.tasks.circuit import execute, validate


def snippet():
    return doctest.DocTestParser().get_doctest(__doc__, {}, "own task", __file__, 0)


@pytest.fixture
def own_task():
    """Run the snippet above and return what it registered."""
    runner = doctest.DocTestRunner()
    assert runner.run(snippet(), out=lambda text: None, clear_globs=False).failed == 0
    return tasks.get("maximum-cot")


def test_the_snippet_is_shorter_than_30_lines():
    lines = [line for e in snippet().examples for line in e.source.splitlines() if line.strip()]
    assert 15 < len(lines) < 30


def test_an_own_task_equals_the_truth(own_task):
    for scale in range(1, 31):
        steps, length = own_task.circuit(scale), own_task.length(scale)
        validate(steps, length)
        batch = own_task.sample(scale, 6, torch.Generator().manual_seed(scale))
        for line in batch.tokens.tolist():
            right = [max(line[: t + 1]) for t in range(scale)]
            assert line[scale + 1 :] == right
            assert execute(steps, line[: scale + 1], length)[scale + 1 :] == right


def test_an_own_task_is_one_of_the_tasks(own_task):
    assert "maximum-cot" in tasks.names()
    assert own_task.decode(own_task.encode("31415=")) == "31415="
    assert relations.build("ideal-sh", own_task, max_scale=20).size == 4  # three roles and "other"
    with pytest.raises(InputError, match="'maximum-cot' exists already"):
        tasks.register("maximum-cot", type(own_task))


def test_an_own_task_with_a_wrong_circuit_is_caught(own_task):
    base: Any = type(own_task)

    class Minimum(base):
        def answer(self, prompt, scale):
            return prompt[:, :scale].cummin(dim=1).values

    with pytest.raises(InputError, match="the circuit makes y"):
        tasks.check_circuit(Minimum(), 9)


def test_names_registered_in_one_test_are_gone_in_the_next():
    assert "maximum-cot" not in tasks.names()
