"""Predictions: verdicts, numbers and reasons for known cases, and properties of every circuit."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse.errors import InputError
from lgcourse.relations import CircuitRelation, Form, FormRelation, build
from lgcourse.tasks import Operator, Step, Task, get
from lgcourse.tasks import names as task_names
from lgcourse.theory.merging import Merging, src
from lgcourse.theory.prediction import predict

TRAIN = range(1, 11)


def predicted(name, relation, train=TRAIN, test=(20,), **options):
    task = get(name, **options)
    largest = max(test)
    return predict(task, build(relation, task, max_scale=largest), train, test)


# --- what is predicted to generalise, and what is not ---------------------------------------------


@pytest.mark.parametrize("name", ["copy", "reverse", "shift", "parity-cot", "addition"])
def test_ideal_with_scale_hint_generalises(name):
    prediction = predicted(name, "ideal-sh", test=(11, 20, 50))
    assert prediction.verdict == "generalises" and prediction.generalises is True
    assert prediction.resolvable == {11: 1.0, 20: 1.0, 50: 1.0}
    assert prediction.src_train == prediction.src_test == src(get(name), 10)


CONTROLS = [
    ("copy", "rpe"),
    ("copy", "ape"),
    ("copy", "none"),
    ("copy", "t5"),
    ("reverse", "rpe"),
    ("reverse", "rpe-sh"),
    ("shift", "rpe"),
    ("shift", "ape"),
    ("parity-cot", "rpe"),
    ("parity-cot", "none"),
    ("addition", "rpe"),
    ("addition", "ape"),
    ("addition", "none"),
    ("random-permutation-per-position", "ideal-sh"),
    ("random-permutation-per-position", "rpe-sh"),
    ("parity-direct", "rpe"),
    ("multiply-direct", "rpe"),
]


@pytest.mark.parametrize(("name", "relation"), CONTROLS)
def test_negative_controls_fail(name, relation):
    prediction = predicted(name, relation)
    assert prediction.verdict == "fails" and prediction.generalises is False
    assert prediction.reason


@pytest.mark.parametrize("name", ["parity-cot-padded", "addition-padded"])
def test_padding_makes_relative_positions_suffice_and_absolute_ones_not(name):
    assert predicted(name, "rpe", width=24).generalises
    assert predicted(name, "ideal", width=24).generalises
    absolute = predicted(name, "ape", width=24)
    assert not absolute.generalises and 0 < absolute.resolvable[20] < 1


def test_adding_the_place_fails_from_8_and_succeeds_from_12():
    from_8 = predicted("add-index-mod", "ideal-sh", range(1, 9))
    assert from_8.verdict == "fails" and (from_8.src_train, from_8.src_test) == (8, 10)
    assert from_8.resolvable == {20: 0.8}  # 16 of 20 places need an operator that training showed
    assert "grows from 8 to 10" in from_8.reason
    from_12 = predicted("add-index-mod", "ideal-sh", range(1, 13))
    assert from_12.verdict == "generalises" and (from_12.src_train, from_12.src_test) == (10, 10)
    # the same relation that serves copy cannot tell the operators apart
    hinted = predicted("add-index-mod", "rpe-sh", range(1, 13))
    assert hinted.verdict == "fails" and "nothing tells the two apart" in hinted.reason


def test_growing_operators_fail_whatever_the_relation():
    prediction = predicted("random-permutation-per-position", "ideal-sh")
    assert (prediction.src_train, prediction.src_test) == (10, 20)
    assert prediction.resolvable == {20: 0.5}


def test_tables_that_cannot_be_written_down_fail_with_a_reason():
    prediction = predicted("parity-direct", "rpe")
    assert prediction.src_test is None and prediction.resolvable == {}
    assert "arity has no bound" in prediction.reason
    written = predicted("parity-direct", "rpe", range(1, 5), (6,))
    assert (written.src_train, written.src_test) == (4, 5)
    assert written.resolvable == {6: 0.0}


def test_two_sizes():
    task = get("addition-unequal")
    scales = [(n, m) for n in range(1, 7) for m in range(1, 7)]
    prediction = predict(
        task, build("ideal-sh", task, max_scale=(20, 13)), scales, [(20, 13), (9, 20)]
    )
    assert prediction.generalises
    assert prediction.to_json()["resolvable"] == {"20x13": 1.0, "9x20": 1.0}


# --- answers of their own -------------------------------------------------------------------------


def test_no_finite_relation_is_no_prediction():
    task = get("addition")
    for relation in (None, [], [None], [build("none"), None]):
        prediction = predict(task, relation, TRAIN, [20])
        assert prediction.verdict == "no prediction" and prediction.generalises is None
        assert prediction.resolvable == {}
        assert prediction.src_train == prediction.src_test == src(get("addition"), 10)


@pytest.mark.parametrize("name", ["sort", "majority", "copy-unique", "copy-repeat"])
def test_tasks_without_a_circuit_are_not_covered(name):
    prediction = predict(get(name), build("none"), TRAIN, [20])
    assert prediction.verdict == "not covered" and prediction.generalises is None
    assert name in prediction.reason
    assert prediction.src_train is None


def test_a_task_that_has_not_written_its_circuit_is_not_covered():
    class Bare(Task):
        name, arity = "bare", None

    assert predict(Bare(), build("none"), TRAIN, [20]).verdict == "not covered"
    assert predict(None, build("none"), TRAIN, [20]).verdict == "not covered"


def test_json_has_exactly_the_agreed_keys():
    keys = {"verdict", "generalises", "resolvable", "src_train", "src_test", "reason"}
    for prediction in (predicted("copy", "rpe"), predict(get("sort"), None, [1], [2])):
        plain = json.loads(json.dumps(prediction.to_json()))
        assert set(plain) == keys
    assert predicted("copy", "rpe").to_json()["resolvable"] == {"20": 0.0}
    assert predict(get("copy"), None, [1], [2]).to_json()["generalises"] is None


# --- reasons --------------------------------------------------------------------------------------


def test_a_new_distance_is_named_with_what_training_showed():
    digit = Operator("column", ("b before",), {(x,): x for x in range(10)})
    circuit = {n: [Step(2 * n + 2, digit, (n + 1,))] for n in range(1, 12)}  # n positions back
    reason = predict(circuit, build("rpe", positions=25), TRAIN, [11]).reason
    assert reason == (
        "at scale 11 operand `b before` of `column` stands at i - j = 11, a distance that training "
        "never showed (1..10)"
    )
    gaps = predict(circuit, build("rpe", positions=25), [1, 2, 3, 5, 8], [11]).reason
    assert gaps.endswith("(1..3, 5, 8)")
    absolute = predict(circuit, build("ape", positions=25), TRAIN, [11]).reason
    assert absolute.endswith("stands at j = 12, a position that training never showed (2..11)")


def test_reasons_name_what_training_cannot_settle():
    assert predicted("copy", "none").reason == (
        "training cannot single out operand `source` of `take`: at scale 1, 2 keys have its id "
        "'any'"
    )
    contrary = predicted("reverse", "rpe", test=(10,)).reason
    assert "contrary priorities among the ids of operand `source` of `take`" in contrary
    several = predict(get("copy"), [build("none"), build("rpe")], TRAIN, [20]).reason
    assert several.startswith("none of the 2 relations finds an operand; for 'none': ")


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (10, [20], "train_scales is a collection of scales"),
        ([10], 20, "test_scales is a collection of scales"),
        ([], [20], "train_scales is empty"),
        ([10], [], "test_scales is empty"),
        ([0], [20], "whole number of at least 1"),
        ([10], [(20, 13)], "takes one size"),
    ],
)
def test_bad_scales(train, test, message):
    with pytest.raises(InputError, match=message):
        predict(get("copy"), build("rpe-sh"), train, test)


def test_faults_of_a_circuit_are_not_taken_for_missing_ones():
    with pytest.raises(InputError, match="earlier positions"):
        predict([Step(1, Operator("f", ("x",), {}), (3,))], build("none"), [1], [2])
    with pytest.raises(InputError, match="no steps for scale 3"):
        predict({1: [], 2: []}, build("none"), [1], [3])
    with pytest.raises(InputError, match="width 5"):
        predict(get("addition-padded", width=5), build("rpe"), [1, 2], [6])


# --- every circuit --------------------------------------------------------------------------------


@st.composite
def chance(draw):
    """Rows of small partial tables, and steps (output, operator, inputs) at scales 1..5."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(1, 2),
                st.dictionaries(st.integers(0, 3), st.integers(0, 1), min_size=1, max_size=3),
            ),
            min_size=1,
            max_size=4,
        )
    )
    steps: dict[int, list] = {}
    for n in range(1, 6):
        steps[n] = []
        for output in sorted(draw(st.sets(st.integers(2, 7), min_size=1, max_size=3))):
            number = draw(st.integers(0, len(rows) - 1))
            arity = rows[number][0]
            places = st.lists(
                st.integers(0, output - 1), min_size=arity, max_size=arity, unique=True
            )
            steps[n].append((output, number, draw(places)))
    return rows, steps


@given(chance(), st.integers(1, 4))
@settings(deadline=None, max_examples=100)
def test_the_ideal_relation_generalises_exactly_if_src_does_not_grow(drawn, last):
    rows, raw = drawn
    operators = [
        Operator(
            f"f{k}", ("x", "y")[:arity], {divmod(c, 2)[2 - arity :]: v for c, v in table.items()}
        )
        for k, (arity, table) in enumerate(rows)
    ]
    steps = {
        n: [Step(output, operators[k], tuple(inputs)) for output, k, inputs in row]
        for n, row in raw.items()
    }
    merging = Merging(steps.values())
    group = merging.groups()

    def reads(n):  # the ideal relation labels (operator, role), operators as they are merged
        return [
            (step.query, j, (group[merging.index[step.operator]], r))
            for step in steps[n]
            for r, j in enumerate(step.inputs)
        ]

    ideal = CircuitRelation(reads, range(1, 6), hinted=True, name="ideal-sh")
    prediction = predict(steps, ideal, range(1, last + 1), range(1, 6))
    assert prediction.src_train == src(steps, last) and prediction.src_test == src(steps, 5)
    assert prediction.generalises == (prediction.src_train == prediction.src_test)
    if prediction.generalises:
        assert set(prediction.resolvable.values()) == {1.0}


@pytest.mark.parametrize("name", [n for n in task_names() if get(n).kind == "constant"])
def test_ideal_with_scale_hint_generalises_on_every_constant_task(name):
    task = get(name)
    train = list(task.scales((5,) * task.sizes if task.sizes > 1 else 5))
    largest = (8,) * task.sizes if task.sizes > 1 else 8
    prediction = predict(task, build("ideal-sh", task, max_scale=largest), train, [largest])
    assert prediction.generalises, prediction.reason


def test_windows_that_contain_another_never_resolve_less():
    task = get("addition")
    shares = []
    for count in range(1, 4):
        forms = [[Form(1, -1), 0, 0], [Form(1, -1, -1), 0, 1], [Form(1, -1, -2), 1, 2]][:count]
        relations = [FormRelation([form], low, high, f"{form}") for form, low, high in forms]
        shares.append(predict(task, relations, TRAIN, [20]).resolvable[20])
    assert shares == sorted(shares) and shares[-1] == 1.0
