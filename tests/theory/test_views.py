"""What several heads see: checked against whole samples, by plain loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import tasks
from lgcourse.relations.cells import CellRelation
from lgcourse.relations.forms import Form
from lgcourse.relations.saved import as_data, from_data
from lgcourse.theory import predict
from lgcourse.theory.merging import Merging
from lgcourse.theory.priorities import lines
from lgcourse.theory.views import Views

OWN = (Form(1, -1, 0), 0)
NEEDED = {  # the cells that a task needs, found by hand
    "copy": [(Form(1, -1, -1), 0)],
    "reverse": [(Form(1, 1, -2), -1)],
    "shift": [(Form(1, -1, -1), 1), (Form(1, -1, 0), 1)],
    "parity-cot": [(Form(1, -1, -1), 0)],
    "addition": [
        (Form(1, -1, -1), 0),
        (Form(1, -1, -1), 1),
        (Form(1, -1, -2), 1),
        (Form(1, -1, -2), 2),
    ],
}
UNEQUAL = [
    (Form(1, -1, (-1, -1)), 1),
    (Form(1, -1, (-1, -1)), 2),
    (Form(1, -1, (0, -1)), 0),
    (Form(1, -1, (0, -1)), 1),
]
OWN2 = (Form(1, -1, (0, 0)), 0)
SMALL, LARGE = range(1, 7), (8, 11)


def heads_of(cells, parts=True, own=OWN):
    return [CellRelation([cell, own], parts=parts) for cell in cells]


def plain_view(task, heads, tokens, query, scale):
    """Return what stands at each cell: the token, and the number of marks before it."""
    words, names = set(task.vocabulary), task.layout(scale)
    seen = []
    for head in heads:
        for form, value in head.cells:
            sizes = scale if isinstance(scale, tuple) else (scale,)
            hint = sum(c * n for c, n in zip(form.factors, sizes, strict=True))
            for j in range(query + 1):
                if form.a * query + form.b * j + hint != value:
                    continue
                part = sum(name in words for name in names[:j]) if head.parts else 0
                seen.append((int(tokens[j]), part, names[j] in words))
            seen.append("|")
    return tuple(seen)


def conflicts(task, heads, scales, samples=60):
    """Count steps that see the same tokens as another one and write another token."""
    table, found = {}, 0
    for scale in scales:
        batch = task.sample(scale, samples, torch.Generator().manual_seed(7))
        for tokens in batch.tokens:
            for step in task.circuit(scale):
                key = plain_view(task, heads, tokens, step.output - 1, scale)
                found += table.setdefault(key, int(tokens[step.output])) != int(tokens[step.output])
    return found


def views(task, heads, train=SMALL, test=LARGE):
    merging = Merging()
    for n in (*train, *test):
        merging.add_steps(task.circuit(n))
    parts = [lines([(n, task.circuit(n)) for n in some], merging) for some in (train, test)]
    return Views(heads, *parts, merging, task)


@st.composite
def some_heads(draw):
    name = draw(st.sampled_from(sorted(NEEDED)))
    cells = NEEDED[name]
    if draw(st.booleans()):
        cells = draw(st.lists(st.sampled_from(cells), unique=True, max_size=len(cells)))
    form = st.builds(
        Form, st.integers(0, 1), st.sampled_from([1, -1, -2]), st.sampled_from([0, -1, -2])
    )
    more = draw(st.lists(st.tuples(form, st.integers(-2, 2)), max_size=3))
    return name, heads_of([*cells, *more, OWN], draw(st.booleans()))


@settings(max_examples=25, deadline=None)
@given(some_heads())
def test_where_nothing_is_missing_equal_tokens_mean_equal_outputs(drawn):
    name, heads = drawn
    task = tasks.get(name)
    found = views(task, heads)
    if found.fault() is None:
        assert all(bool(good.all()) for good in found.resolvable)
        assert conflicts(task, heads, (1, 2, 3, 5, 8), samples=20) == 0
    else:
        assert "scale" in found.fault()


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_the_needed_cells_serve_and_each_one_less_does_not(name):
    task, cells = tasks.get(name), NEEDED[name]
    found = views(task, heads_of(cells))
    assert found.fault() is None and all(bool(good.all()) for good in found.resolvable)
    for k in range(len(cells)):
        short = views(task, heads_of([*cells[:k], *cells[k + 1 :], OWN]))
        assert "no head reads operand" in short.fault()
        assert not any(bool(good.all()) for good in short.resolvable)


def test_operands_that_end_need_the_parts_of_the_input():
    task = tasks.get("addition-unequal")
    train = list(task.scales((4, 4)))
    told = predict(task, heads_of(UNEQUAL, True, OWN2), train, [(6, 3), (3, 7), (9, 9)])
    assert told.verdict == "generalises" and set(told.resolvable.values()) == {1.0}
    untold = predict(task, heads_of(UNEQUAL, False, OWN2), train, [(6, 3), (3, 7), (9, 9)])
    assert untold.verdict == "fails" and "nothing tells the two apart" in untold.reason
    scales = [(2, 4), (4, 2), (3, 3), (1, 4)]
    assert conflicts(task, heads_of(UNEQUAL, True, OWN2), scales) == 0
    assert conflicts(task, heads_of(UNEQUAL, False, OWN2), scales) > 0


def test_a_cell_at_a_distance_is_no_cell_with_a_hint():
    task = tasks.get("copy")
    distances = [(Form(1, -1, 0), d) for d in range(1, 7)]  # copy at scale n reads distance n
    said = predict(task, heads_of(distances), SMALL, [7, 12])
    assert said.verdict == "fails" and said.resolvable == {7: 0.0, 12: 0.0}
    assert "no head reads operand `x` of `copy`" in said.reason or "operand" in said.reason


def test_what_training_never_saw_is_told():
    task = tasks.get("copy")  # j = 8 stands beyond every training input, and within a test input
    heads = heads_of([*NEEDED["copy"], (Form(0, 1, 0), 8)])
    said = predict(task, heads, range(1, 4), [3, 20])
    assert said.resolvable[3] == 1.0 and said.resolvable[20] < 1.0
    assert "sees what no step of training" in said.reason


def test_one_head_keeps_the_rule_of_priorities():
    both = CellRelation([*NEEDED["copy"], OWN])
    assert predict(tasks.get("copy"), [both], SMALL, LARGE).generalises
    table = [CellRelation([*NEEDED["addition"], OWN])]  # one head, one id per operand
    assert predict(tasks.get("addition"), table, SMALL, LARGE).generalises


def test_parts_are_stored_with_a_relation():
    heads = heads_of(NEEDED["copy"], parts=True)
    data = as_data(heads)
    assert all(phi.parts for phi in from_data(data))
    for row in data["relations"]:
        del row["parts"]  # an older file
    assert not any(phi.parts for phi in from_data(data))
