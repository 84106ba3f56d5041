"""Are modules, numbers, choices and trained models graded as functions are: by values alone?"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.grading import Made, Use
from lgcourse.grading.models import prompts, true_answers
from lgcourse.grading.notebook import NotebookCheck
from lgcourse.grading.question import (
    FAILED,
    NOT_ATTEMPTED,
    PASSED,
    RAISED,
    Check,
    Question,
    examine,
)


def question(kind, reference, *checks, **more):
    return Question("it", "what is it?", 1, 1, 1, ("a", "b", "c"), checks, reference, kind, **more)


def ends(asked, answer, seed=0):
    """Outcome, words and likely mistake with which an examination ends."""
    report = examine(asked, answer, seed)
    end = report.stopped_at
    return report.outcome, end.text if end else "", end.likely if end else ""


# --- modules --------------------------------------------------------------------------------------
class Table(nn.Module):
    """Row i of the output is table[ids[i]] times the scale that the module is made with."""

    def __init__(self, size, scale=1.0):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(size, 3))
        self.scale = scale

    def forward(self, ids):
        return torch.stack([self.table[i] * self.scale for i in ids.tolist()])

    def first(self, ids):
        return self.forward(ids)[0]


def uses(method="forward"):
    def draw(generator):
        weights = {"table": torch.randn(5, 3, generator=generator)}
        ids = torch.randint(5, (4,), generator=generator)
        return [Use({"ids": ids}, {"size": 5, "scale": 2.0}, weights, method)]

    return draw


MODULE = question(
    "module",
    Table,
    Check("form", "a row per id", "another form", uses(), parts=()),
    Check("rows", "rows of the table", "rows are mixed up", uses(), tolerance=1e-6),
    Check("first", "the first row", "not the first", uses("first"), tolerance=1e-6),
)


def module(forward=None, **members):
    def make(self, size, scale=1.0):
        nn.Module.__init__(self)
        self.table = nn.Parameter(torch.randn(size, 3))
        self.scale = scale

    def right(self, ids):
        return self.scale * self.table[ids]

    def first(self, ids):
        return self(ids)[0]

    parts = {"__init__": make, "forward": forward or right, "first": first, **members}
    return type("Mine", (nn.Module,), parts)


def two_tables(self, size, scale=1.0):
    nn.Module.__init__(self)
    self.table, self.more = (nn.Parameter(torch.randn(size, 3)) for _ in range(2))


def other_name(self, size, scale=1.0):
    nn.Module.__init__(self)
    self.rows = nn.Parameter(torch.randn(size, 3))


def other_shape(self, size, scale=1.0):
    nn.Module.__init__(self)
    self.table = nn.Parameter(torch.randn(3, size))


def test_a_module_is_graded_by_what_it_does_with_given_weights():
    made = module()
    assert ends(MODULE, made)[0] == PASSED
    assert ends(MODULE, lambda size, scale: made(size, scale))[0] == PASSED, "a maker will do"


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (module(lambda self, ids: self.table[ids]), FAILED, "size = 5, scale = 2.0, table = tens"),
        (
            module(lambda self, ids: 0 + self.table),
            FAILED,
            "expected shape (4, 3), got shape (5, 3)",
        ),
        (module(lambda self, ids: ...), NOT_ATTEMPTED, "still returns ..."),
        (module(lambda self, ids: self.nothing), RAISED, "AttributeError"),
        (module(__init__=two_tables), FAILED, "a parameter more too many; expected table"),
        (module(__init__=other_name), FAILED, "no parameter table; it has rows"),
        (module(__init__=other_shape), FAILED, "has shape (3, 5), expected (5, 3)"),
        (module(first=None), FAILED, "the module has no method first"),
        (module(first=lambda self, ids: self(ids)[-1]), FAILED, "3 of 3 entries differ"),
        (lambda size, scale: 3, FAILED, "expected an nn.Module, got int"),
        (module()(5, 2.0), RAISED, "TypeError"),
        (3, FAILED, "expected an nn.Module class, got an int; pass the module itself"),
    ],
)
def test_what_is_wrong_with_a_module_is_told(answer, outcome, words):
    found, text, _ = ends(MODULE, answer)
    assert found == outcome and words in text


def test_only_the_given_weights_count():
    class Learned(Table):
        def __init__(self, size, scale):
            super().__init__(size, scale)
            self.table.data.fill_(7.0)
            self.register_buffer("kept", self.table.data.clone())

        def forward(self, ids):
            return self.kept[ids] * self.scale

    assert ends(MODULE, Learned)[0] == FAILED


# --- numbers and choices --------------------------------------------------------------------------
NUMBER = question(
    "number",
    lambda: sum(1 for i in range(6) for j in range(6) if j <= i),
    Check("count", "pairs", "count again", mistakes=((36, "j must not exceed i"),)),
)
SHARE = question("number", lambda: 0.25, Check("share", "a share", "no", tolerance=1e-3))
CHOICE = question(
    "choice",
    lambda: "grows",
    Check("why", "what it does", "look again", mistakes=(("stays", "it does not stay"),)),
    choices=("grows", "stays", "shrinks"),
)


@pytest.mark.parametrize(
    ("asked", "answer", "end"),
    [
        (NUMBER, 21, (PASSED, "", "")),
        (NUMBER, 36, (FAILED, "36 is not right", "j must not exceed i")),
        (NUMBER, 20, (FAILED, "20 is not right", "count again")),
        (NUMBER, ..., (NOT_ATTEMPTED, "there is no answer yet", "")),
        (NUMBER, 21.0, (FAILED, "expected an int, got a float", "")),
        (NUMBER, torch.tensor(21), (FAILED, "expected an int, got a torch.Tensor", "")),
        (SHARE, 0.2505, (PASSED, "", "")),
        (SHARE, 1, (FAILED, "1.0 is not right", "no")),
        (SHARE, float("nan"), (FAILED, "nan is not right", "no")),
        (CHOICE, "grows", (PASSED, "", "")),
        (CHOICE, "stays", (FAILED, "'stays' is not right", "it does not stay")),
        (CHOICE, "shrinks", (FAILED, "'shrinks' is not right", "look again")),
    ],
)
def test_a_number_or_choice_ends_so(asked, answer, end):
    assert ends(asked, answer) == end


def test_an_option_that_is_none_is_told_with_the_options():
    outcome, text, likely = ends(CHOICE, "sinks")
    assert outcome == FAILED and "'grows', 'stays', 'shrinks'; got 'sinks'" in text and not likely


def test_the_right_number_is_never_printed(capsys):
    for asked, wrong, right in ((NUMBER, 20, "21"), (CHOICE, "stays", "grows")):
        NotebookCheck(asked, {})(wrong)
        assert right not in capsys.readouterr().out


# --- trained models -------------------------------------------------------------------------------
MODEL = question(
    "model",
    true_answers("copy"),
    Check("longer", "longer inputs", "it is wrong there", prompts("copy", [4, 9], 10), share=0.9),
)


class Oracle(nn.Module):
    """Copies by counting, and errs from a length on, as a model does that learned positions."""

    def __init__(self, longest=99):
        super().__init__()
        self.longest = longest

    def forward(self, tokens, scale):
        at = torch.arange(tokens.shape[1])
        read = (at - scale).clamp(min=0, max=self.longest)
        return torch.nn.functional.one_hot(tokens[:, read], len(tasks.get("copy").vocabulary))


def test_a_model_must_answer_long_prompts_by_itself():
    assert ends(MODEL, Oracle())[0] == PASSED
    assert ends(MODEL, lambda: Oracle())[0] == PASSED, "a function that trains one will do"
    outcome, text, likely = ends(MODEL, Oracle(longest=5))
    assert outcome == FAILED and "of 10 answers are right as a whole, expected 90%" in text
    assert likely == "it is wrong there" and "scale = 9" in text


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (lambda: ..., NOT_ATTEMPTED, "..."),
        (lambda: 3, FAILED, "expected a trained nn.Module, got int"),
        (lambda: nn.Linear(2, 2), RAISED, "TypeError"),
        (lambda: nn.Flatten(), FAILED, "expected logits of shape (10, 5, 'v')"),
    ],
)
def test_what_is_no_model_is_told(answer, outcome, words):
    if isinstance(answer(), nn.Flatten):
        flat = nn.Flatten()
        flat.forward = lambda tokens, scale: tokens.flatten()
        answer = flat
    found, text, _ = ends(MODEL, answer)
    assert found == outcome and words in text


# --- arguments that each side makes; a question's own faults --------------------------------------
def test_an_argument_may_be_an_object_of_the_library():
    asked = question(
        "function",
        lambda task, n: task.length(n),
        Check("a", "length", "no", lambda generator: [(Made("tasks:get", "copy"), 4)]),
    )
    assert ends(asked, lambda task, n: 2 * n + 1)[0] == PASSED
    outcome, text, _ = ends(asked, lambda task, n: 2 * n)
    assert outcome == FAILED and "called with task = tasks.get('copy'), n = 4" in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kind": "modul"}, "did you mean 'module'"),
        ({"kind": "number", "choices": ("a",)}, "choices belong to the kind choice"),
        ({"kind": "choice"}, "choices belong to the kind choice"),
        ({"forbids": ("task",)}, "did you mean 'tasks'"),
    ],
)
def test_a_question_that_is_not_well_formed_is_refused(more, words):
    with pytest.raises(InputError, match=words):
        Question("it", "t", 1, 1, 1, (), (), lambda: 1, **more)
