"""Do the circuits compute their tasks, and do wrong ones fail the same check?"""

from itertools import product
from typing import Any

import pytest
import torch

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.tasks.circuit import Operator, Step, execute, validate

NAMES = tasks.names()


def make(name, **options) -> Any:
    return tasks.get(name, **options)


COVERED = [n for n in NAMES if tasks.get(n).kind != "not covered"]
ONE_SIZE = [n for n in NAMES if tasks.get(n).sizes == 1]
PAIRS = [*product(range(1, 11), repeat=2), (30, 7), (8, 25), (30, 1), (1, 30), (17, 17), (18, 17)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def samples(task, scale):
    """A few random samples and, where there are, hard ones."""
    yield task.sample(scale, 6, generator())
    if (hard := task.hard(scale, 6, generator())) is not None:
        yield hard


def agree(task, scale, truth):
    """Compare truth, sampled answer and executed circuit at one scale."""
    start, stop = task.prompt_length(scale), task.prompt_length(scale) + task.answer_length(scale)
    length = task.length(scale)
    assert len(task.layout(scale)) == length == len(set(task.layout(scale)))
    covered = task.kind != "not covered" and scale_of(scale) <= circuit_limit(task)
    steps = task.circuit(scale) if covered else []
    validate(steps, length)
    for batch in samples(task, scale):
        assert batch.tokens.shape == (6, length)
        assert batch.answer.tolist() == [start <= p < stop for p in range(length)]
        for line in batch.tokens.tolist():
            right = truth(task.name, line[:start], scale)
            assert line[start:stop] == right
            if covered:
                assert execute(steps, line[:start], length)[start:stop] == right


def scale_of(scale):
    return max(scale) if isinstance(scale, tuple) else scale


def circuit_limit(task):
    return getattr(task, "largest_circuit", 30)


@pytest.mark.parametrize("name", ONE_SIZE)
def test_sampled_answers_and_circuits_equal_the_truth_at_scales_1_to_30(name, truth):
    for scale in range(1, 31):
        agree(tasks.get(name), scale, truth)


@pytest.mark.parametrize("name", ["addition-unequal", "multiply-scratchpad"])
def test_sampled_answers_and_circuits_equal_the_truth_at_pairs_of_sizes(name, truth):
    for scale in PAIRS:
        agree(tasks.get(name), scale, truth)


@pytest.mark.parametrize("name", COVERED)
def test_steps_respect_the_stated_arity_bound(name):
    task = tasks.get(name)
    largest = min(12, circuit_limit(task))
    scales = list(task.scales(largest if task.sizes == 1 else (5, 5)))
    arities = {step.operator.arity for n in scales for step in task.circuit(n)}
    if task.arity is None:
        assert max(arities) >= largest  # no bound: the arity grows with the scale
    else:
        assert max(arities) == task.arity


# |U(C, n)|: distinct operators on scales <= n, counted by hand from the definitions
OPERATORS = {
    "copy": [1, 1, 1, 1],
    "reverse": [1, 1, 1, 1],
    "shift": [1, 1, 1, 1],
    "interleave": [1, 1, 1, 1],
    "parity-cot": [1, 2, 2, 2],
    "parity-cot-padded": [1, 2, 2, 2],
    "modsum-cot": [1, 2, 2, 2],
    "permutation-cot": [1, 2, 2, 2],
    "permutation-cot-s3": [1, 2, 2, 2],
    "permutation-cot-s5": [1, 2, 2, 2],
    "compare-cot": [1, 2, 2, 2],
    "successor": [2, 2, 2, 2],
    "addition": [2, 2, 2, 2],
    "addition-padded": [2, 2, 2, 2],
    "addition-unequal": [2, 5, 6, 6],
    "multiply-digit": [2, 2, 2, 2],
    "multiply-scratchpad": [4, 8, 8, 8],
    "add-index-mod": [1, 2, 3, 10],
    "random-permutation-per-position": [1, 2, 3, 12],
    "parity-direct": [1, 2, 3, 12],
    "multiply-direct": [2, 5],
}


@pytest.mark.parametrize("name", COVERED)
def test_the_number_of_distinct_operators_is_the_stated_one(name):
    task = tasks.get(name)
    for largest, count in zip((1, 2, 3, 12), OPERATORS[name], strict=False):
        scales = task.scales(largest if task.sizes == 1 else (largest, largest))
        assert len({s.operator for n in scales for s in task.circuit(n)}) == count


GROWING = {"random-permutation-per-position", "parity-direct", "multiply-direct"}
NOT_COVERED = {"sort", "majority", "copy-unique", "copy-repeat"}


@pytest.mark.parametrize("name", NAMES)
def test_the_kind_is_the_one_of_the_table_of_tasks(name):
    kind = "grows" if name in GROWING else "not covered" if name in NOT_COVERED else "constant"
    assert make(name).kind == ("saturates" if name == "add-index-mod" else kind)


def test_add_index_mod_saturates_at_ten_operators():
    task = tasks.get("add-index-mod")
    counts = [len({s.operator for s in task.circuit(n)}) for n in (8, 9, 10, 11, 40)]
    assert counts == [8, 9, 10, 10, 10]


def test_random_permutations_are_distinct_and_depend_on_the_seed_only():
    first, again, other = (make("random-permutation-per-position", seed=s) for s in (0, 0, 1))
    tables = [first.table(t) for t in range(1, 1001)]
    assert len(set(tables)) == 1000
    assert all(sorted(table) == list(range(10)) for table in tables)
    assert tables == [again.table(t) for t in range(1, 1001)]
    assert tables[:5] != [other.table(t) for t in range(1, 6)]


@pytest.mark.parametrize("name", COVERED)
def test_tables_stay_small_and_labels_of_operators_do_not_clash(name):
    task = tasks.get(name)
    scales = task.scales(min(12, circuit_limit(task)) if task.sizes == 1 else (4, 4))
    operators = {step.operator for n in scales for step in task.circuit(n)}
    assert sum(len(operator.table) for operator in operators) < 200_000
    assert len({operator.name for operator in operators}) == len(operators)


@pytest.mark.parametrize("name", sorted(NOT_COVERED))
def test_tasks_that_are_not_covered_say_why(name):
    with pytest.raises(InputError, match=f"task '{name}' is not covered by circuits: .{{20}}"):
        tasks.get(name).circuit(3)


@pytest.mark.parametrize("name", ["parity-direct", "multiply-direct"])
def test_circuits_without_bound_end_where_their_tables_do(name):
    task = make(name)
    assert task.circuit(task.largest_circuit)
    with pytest.raises(InputError, match=f"got {task.largest_circuit + 1}: .*entries"):
        task.circuit(task.largest_circuit + 1)


# --- tables hold the tuples that occur, and only these ------------------------------------------


def occurring(task, scale, prompts):
    """Run the circuit on prompts and collect operator name -> operand tuples."""
    met: dict[str, set] = {}
    steps, length = task.circuit(scale), task.length(scale)
    for prompt in prompts:
        line = execute(steps, prompt, length)
        for step in steps:
            met.setdefault(step.operator.name, set()).add(tuple(line[p] for p in step.inputs))
    return met


def digit_prompts(sizes, sign, equals, lowest=range(10)):
    """All prompts over numbers of some sizes; lowest digits from a smaller set, to save time."""
    columns = [lowest if k == 0 else range(10) for n in sizes for k in range(n)]
    for ds in product(*columns):
        prompt, start = [], 0
        for k, n in enumerate(sizes):
            prompt += [*ds[start : start + n], equals if k == len(sizes) - 1 else sign]
            start += n
        yield prompt


@pytest.mark.parametrize(
    ("name", "scale", "prompts"),
    [
        ("successor", 3, lambda: digit_prompts([3], 0, 10)),
        ("compare-cot", 2, lambda: digit_prompts([2, 2], 10, 11)),
        ("multiply-digit", 3, lambda: digit_prompts([3, 1], 10, 11)),
        ("permutation-cot", 3, lambda: ([*g, 6] for g in product(range(6), repeat=3))),
        ("addition-unequal", (4, 2), lambda: digit_prompts([4, 2], 10, 11, lowest=(0, 5))),
    ],
)
def test_tables_hold_exactly_the_tuples_that_occur(name, scale, prompts):
    task = tasks.get(name)
    met = occurring(task, scale, prompts())
    whole = {step.operator.name: set(step.operator.table) for step in task.circuit(scale)}
    for operator in whole.keys() - {"first"}:  # "first" reads the lowest digits, not all are tried
        if (name, operator) == ("addition-unequal", "column"):
            continue  # needs three columns of two digits; see below
        assert met[operator] == whole[operator], operator


def test_the_column_table_of_addition_holds_exactly_the_tuples_that_occur():
    task = tasks.get("addition")
    columns = task.circuit(3)
    met = set()
    for a1, (a2, b2, a3, b3) in product((0, 5), product(range(10), repeat=4)):
        line = execute(columns, [a1, a2, a3, 10, a1, b2, b3, 11], 12)
        met |= {tuple(line[p] for p in column.inputs) for column in columns[2:]}
    assert met == set(columns[2].operator.table)


# --- known wrong versions -----------------------------------------------------------------------


def rewired(name, change, **options):
    """A task whose circuit is changed, step by step (None drops a step)."""
    base: Any = type(make(name, **options))

    class Wrong(base):
        def circuit(self, scale):
            changed = [change(step) for step in super().circuit(scale)]
            return [step for step in changed if step is not None]

    return Wrong(**options)


def swap(operator, i, k):
    """Swap two inputs of the steps that use an operator."""

    def change(step):
        if step.operator.name != operator:
            return step
        inputs = list(step.inputs)
        inputs[i], inputs[k] = inputs[k], inputs[i]
        return Step(step.output, step.operator, tuple(inputs))

    return change


SWAPS = [
    ("permutation-cot", "compose", 0, 1),
    ("permutation-cot-s5", "compose", 0, 1),
    ("compare-cot", "first", 0, 1),
    ("compare-cot", "compare", 0, 1),
    ("successor", "digit", 0, 1),
    ("successor", "digit", 1, 2),
    ("addition", "column", 0, 2),
    ("addition", "column", 3, 4),
    ("addition-padded", "column", 1, 3),
    ("addition-unequal", "just ended", 0, 1),
    ("addition-unequal", "alone", 0, 1),
    ("addition-unequal", "last alone", 0, 1),
    ("multiply-digit", "times column", 0, 1),
    ("multiply-digit", "times column", 1, 2),
    ("multiply-scratchpad", "times column", 0, 1),
    ("multiply-scratchpad", "column", 1, 3),
    ("multiply-scratchpad", "just ended", 0, 1),
]


@pytest.mark.parametrize(("name", "operator", "i", "k"), SWAPS)
def test_a_swapped_role_is_caught(name, operator, i, k):
    scale = 6 if tasks.get(name).sizes == 1 else (6, 3)
    with pytest.raises(InputError):
        tasks.check_circuit(rewired(name, swap(operator, i, k)), scale)
    tasks.check_circuit(tasks.get(name), scale)


@pytest.mark.parametrize("name", ["parity-cot", "modsum-cot", "interleave", "copy", "shift"])
def test_an_operand_one_place_off_is_caught(name):
    def change(step):
        return Step(step.output, step.operator, tuple(max(p - 1, 0) for p in step.inputs))

    with pytest.raises(InputError):
        tasks.check_circuit(rewired(name, change), 6)


@pytest.mark.parametrize("name", ["add-index-mod", "random-permutation-per-position"])
def test_one_operator_for_all_places_is_caught(name):
    operator = make(name).operator(1)
    with pytest.raises(InputError, match="circuit makes y2 = "):
        wrong = rewired(name, lambda step: Step(step.output, operator, step.inputs))
        tasks.check_circuit(wrong, 6)


def test_a_wrong_table_is_caught_with_position_and_prompt():
    def change(step):
        table = {k: 1 - v for k, v in step.operator.table.items()}
        return Step(step.output, Operator("not", step.operator.roles, table), step.inputs)

    wrong = rewired("parity-direct", change)
    with pytest.raises(
        InputError, match=r"scale 4: the circuit makes y = '[01]' .*prompt '[01]+='"
    ):
        tasks.check_circuit(wrong, 4)


def test_a_missing_step_and_one_too_many_are_caught():
    drop = rewired("copy", lambda step: None if step.output == 6 else step)
    with pytest.raises(InputError, match="position y3 is scored but no step writes it"):
        tasks.check_circuit(drop, 3)
    padded = tasks.get("parity-cot-padded", width=5)
    wide = rewired("parity-cot-padded", lambda step: step, width=5)
    wide.answer_length = lambda scale: 2
    wide.answer = lambda prompt, scale: padded.answer(prompt, scale)[:, :2]
    with pytest.raises(InputError, match="position y3 is written but not scored"):
        tasks.check_circuit(wide, 3)


def test_a_wrong_sampler_is_caught():
    class Wrong(type(tasks.get("addition"))):  # type: ignore[misc]
        def answer(self, prompt, scale):
            return (super().answer(prompt, scale) // 2) * 2

    with pytest.raises(InputError, match="where the answer is"):
        tasks.check_circuit(Wrong(), 8)
