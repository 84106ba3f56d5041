"""Predictions for relations that are still to be learned: against every choice of cells."""

from itertools import combinations, product

import pytest

from lgcourse import embeddings, tasks
from lgcourse.embeddings.named import family_of, setting
from lgcourse.relations import CellRelation, Form
from lgcourse.tasks import Operator, Step
from lgcourse.theory import predict
from lgcourse.theory.family import CellFamily
from lgcourse.theory.merging import Merging
from lgcourse.theory.priorities import lines
from lgcourse.theory.views import Views

TRAIN, OWN = range(1, 5), (Form(1, -1), 0)
FORMS = [Form(1, -1), Form(1, -1, -1), Form(1, 1, -2), Form(0, 1, -1)]


def aligned_by_some_choice(task, forms, window, heads, far):
    """Try every set of cells in the family, whether or not an operand stands there."""
    merging = Merging()
    circuits = [(n, task.circuit(n)) for n in (*TRAIN, far)]
    for _, steps in circuits:
        merging.add_steps(steps)
    train, test = lines(circuits[:-1], merging), lines(circuits[-1:], merging)
    cells = list(product(forms, range(-window, window + 1)))
    for count in range(1, heads + 1):
        for chosen in combinations(cells, count):
            relations = [CellRelation([cell, OWN], parts=True) for cell in chosen]
            if Views(relations, train, test, merging, task).fault() is None:
                return True
    return False


@pytest.mark.parametrize("name", ["copy", "reverse", "shift", "parity-cot", "add-index-mod"])
@pytest.mark.parametrize("forms", [FORMS, FORMS[:1], FORMS[1:3]], ids=str)
def test_the_search_says_what_trying_every_choice_says(name, forms):
    task, window, heads, far = tasks.get(name), 1, 2, 7
    found = predict(task, CellFamily(forms, window, heads, parts=True), TRAIN, [far])
    growing = name == "add-index-mod"  # 4 of its 10 operators were shown
    assert (found.verdict == "generalises") == (
        aligned_by_some_choice(task, forms, window, heads, far) and not growing
    )


SAID = {
    "lbpe-sh": {
        "generalises": ["copy", "reverse", "interleave", "addition", "multiply-digit"],
        "fails": ["parity-cot-padded", "add-index-mod", "random-permutation-per-position"],
    },
    "lbpe": {
        "generalises": ["parity-cot-padded", "addition-padded"],
        "fails": ["copy", "reverse", "shift", "addition", "interleave"],
    },
}


@pytest.mark.parametrize(("pe", "verdict"), [*product(SAID, ["generalises", "fails"])])
def test_named_embeddings(pe, verdict):
    for name in SAID[pe][verdict]:
        found = setting(name, pe, 10, (20,)).predict()
        assert found.verdict == verdict, (name, found.reason)
        assert (found.resolvable[20] == 1.0) == (verdict == "generalises")


def test_the_reason_names_the_cells_and_what_is_missing():
    good = setting("reverse", "lbpe-sh", 10, (20,)).predict()
    assert "i + j - 2n = -1" in good.reason  # x(n+1-t) for y(t): (n+t) + (n-t) - 2n, and 0-based
    bad = setting("reverse", "lbpe", 10, (20,)).predict()
    assert "no relation that can be learned (j, i - j, i + j, i - 2j) aligns" in bad.reason


def test_too_few_heads_fail():
    task = tasks.get("addition")
    forms = embeddings.build("lbpe-sh", task, width=8, heads=4).forms
    said = [predict(task, CellFamily(forms, 3, h, True), range(1, 11), [20]) for h in (3, 4)]
    assert [one.verdict for one in said] == ["fails", "generalises"]
    assert "no choice of 3 cells or fewer" in said[0].reason


def test_a_cell_that_training_never_showed_does_not_count():
    swap = Operator.from_rule("not", ("x",), lambda x: 1 - x, (0, 1))

    def circuit(scale):  # two places back up to scale 4, and three places back after it
        return [Step(9, swap, (8 - (2 if scale <= 4 else 3),))]

    family = CellFamily([Form(1, -1)], 5, 8)
    assert predict(circuit, family, [3, 4], [5]).verdict == "fails"
    assert predict(circuit, family, [3, 4, 6], [5]).verdict == "fails"  # nothing tells them apart


def test_other_embeddings_have_no_family():
    task = tasks.get("copy")
    for name in ("none", "rope", "ideal-sh", "lbpe-mlp-sh"):
        assert family_of(embeddings.build(name, task, width=8, heads=2)) is None
