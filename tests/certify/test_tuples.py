"""The tuples of a signature hold every tuple that whole instances lead to."""

import pytest
import torch

from lgcourse import tasks
from lgcourse.certify.signatures import Setting, shape_at, signatures
from lgcourse.certify.tuples import TupleLimitError, tuples
from lgcourse.relations.forms import Form, Term
from lgcourse.training import generator

EXTRA = [Term(0, Form(1, -1, -1), 0), Term(1, Form(1, -1), 1), Term(2, Form(1, -1, -1), 2)]


def met(task, setting, sizes, lines):
    """Yield (pattern, tuple) for every step of instances, read off the sequences."""
    scale = sizes if len(sizes) > 1 else sizes[0]
    tokens = task.batch(lines, scale).tokens
    for number, family in enumerate(setting.families):
        if any(bound(sizes=sizes) < 0 for bound in family.where):
            continue
        for t in range(family.first(sizes=sizes), family.last(sizes=sizes) + 1, family.step):
            shape, positions = shape_at(setting, number, t, sizes)
            output = tokens[:, family.output(t, sizes)]
            for row in torch.cat([tokens[:, list(positions)], output[:, None]], 1).unique(dim=0):
                yield shape.pattern, tuple(row.tolist())


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        *(("parity-cot", False), ("modsum-cot", False), ("successor", False), ("addition", False)),
        *(("parity-cot", True), ("shift", True), ("compare-cot", True)),
    ],
)
def test_no_tuple_that_occurs_is_missing(name, extra):
    task = tasks.get(name)
    setting = Setting.of(task, [[*task.terms()], EXTRA if extra else []])
    listed = {}
    for signature in signatures(setting):
        table = tuples(setting, signature.shape, 3_000_000)
        rows = torch.cat([table.tokens, table.expected[:, None]], 1).tolist()
        listed.setdefault(signature.shape.pattern, set()).update(map(tuple, rows))
    found = {}
    for n in range(1, 5):
        lines = task.prompt(n, 300, generator(n, "tuples"))
        for pattern, row in met(task, setting, (n,), lines):
            found.setdefault(pattern, set()).add(row)
    assert set(found) <= set(listed)
    for pattern, rows in found.items():
        assert rows <= listed[pattern]
    if name == "parity-cot" and not extra:
        assert found == listed


def test_the_operands_of_an_earlier_step_restrict_its_output():
    task = tasks.get("copy")  # the head reads x_t, and x_(t-1): y_(t-1) is known from it
    terms = [Term(0, Form(1, -1, -1), 0), Term(1, Form(1, -1, -1), 1)]
    setting = Setting.of(task, [terms])
    later = signatures(setting)[-1]
    table = tuples(setting, later.shape, 10_000)
    assert len(table.tokens) == 100 and table.loose == ()
    alone = Setting.of(task, [terms[:1]])
    assert tuples(alone, signatures(alone)[-1].shape, 10_000).loose == (1,)


def test_addition_has_twenty_thousand_columns():
    task = tasks.get("addition")
    setting = Setting.of(task, [task.terms()])
    assert [len(tuples(setting, s.shape, 10**5).tokens) for s in signatures(setting)] == [
        100,
        200,
        20_000,
    ]


def test_too_many_tuples_are_refused_before_they_are_made():
    task = tasks.get("shift")
    many = [Term(k, Form(0, 1), k) for k in range(3)]
    setting = Setting.of(task, [many])
    with pytest.raises(TupleLimitError, match="tuples"):
        for signature in signatures(setting):
            tuples(setting, signature.shape, 1_000)
