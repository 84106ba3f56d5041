"""Circuits found from samples: the right inputs in every seed, and none where there are none."""

from itertools import product

import pytest
import torch

from lgcourse.errors import InputError
from lgcourse.relations import build
from lgcourse.tasks import Batch, Operator, Step, get
from lgcourse.theory.discovery import Discovery, discover
from lgcourse.theory.merging import src
from lgcourse.theory.prediction import predict

TASKS = ["copy", "reverse", "shift", "parity-cot", "modsum-cot", "compare-cot", "successor"]


def inputs_of(steps):
    return {step.output: set(step.inputs) for step in steps}


def varying(task, scale):
    """The circuit's inputs without separators: a token that never changes determines nothing."""
    layout = task.layout(scale)
    return {
        step.output: {p for p in step.inputs if layout[p] not in ("=", "?")}
        for step in task.circuit(scale)
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", TASKS)
def test_the_right_inputs_in_every_seed(name, seed):
    task = get(name)
    found = discover(task, scale=6, samples=20_000, seed=seed)
    assert found.found and found.answer == "found"
    assert inputs_of(found.steps) == varying(task, 6)
    assert found.samples == 20_000 and 0 < found.error <= 0.01


@pytest.mark.parametrize("name", TASKS)
def test_the_tables_are_those_of_the_circuit_as_far_as_they_go(name):
    task = get(name)
    separators = {p: task.vocabulary.index(c) for p, c in enumerate(task.layout(6)) if c in "=?"}
    true = {step.output: step for step in task.circuit(6)}
    for step in discover(task, scale=6).steps:
        for operands, token in step.operator.table.items():
            at = separators | dict(zip(step.inputs, operands, strict=True))
            assert true[step.output].operator(*(at[p] for p in true[step.output].inputs)) == token


@pytest.mark.parametrize("name", TASKS)
def test_src_can_be_estimated_from_samples(name):
    task = get(name)
    estimate = src(discover(task, scale=6).steps, 6)
    # the last digit of the successor reads "=" as a zero to be a digit like the others: unseen here
    assert estimate == src(task, 6) + (name == "successor")


@pytest.mark.parametrize("name", TASKS)
def test_fewest_inputs_where_sharing_is_off(name):
    task = get(name)
    found = discover(task, scale=5, share=False)
    for output, inputs in inputs_of(found.steps).items():
        true = varying(task, 5)[output]
        assert len(inputs) <= len(true)
        assert inputs == true or name == "successor"


def test_the_second_digit_of_the_successor_needs_two_inputs_and_shares_with_three():
    task = get("successor")
    fewest, shared = discover(task, scale=4, share=False), discover(task, scale=4)
    x1, x2, y1, y2 = 0, 1, 5, 6
    assert set(inputs_of(fewest.steps)[y2]) == {x2, y1} and fewest.ties[y2] == [(x1, x2)]
    assert set(inputs_of(shared.steps)[y2]) == {x1, x2, y1}
    assert (src(fewest.steps, 4), src(shared.steps, 4)) == (4, 3)


@pytest.mark.parametrize("scale", [4, 5, 8])
def test_parity_without_steps_has_none_of_arity_up_to_3(scale):
    for seed in range(5):
        found = discover(get("parity-direct"), scale=scale, seed=seed)
        assert found.answer == "none of arity <= 3"
        assert found.steps == [] and list(found.missing) == [scale + 1]


def test_parity_without_steps_is_found_with_as_many_inputs_as_it_has():
    assert inputs_of(discover(get("parity-direct"), scale=3).steps) == {4: {0, 1, 2}}
    assert inputs_of(discover(get("parity-direct"), max_arity=4, scale=4).steps) == {
        5: {0, 1, 2, 3}
    }


def test_tasks_that_depend_on_all_inputs_are_not_found():
    assert discover(get("majority"), scale=7, max_arity=2).answer == "none of arity <= 2"


# --- samples as the user has them -----------------------------------------------------------------


def sampler(rule, inputs, tokens):
    """Samples of `inputs` random tokens, a separator, and the outputs of a rule."""

    def draw(scale, batch, generator):
        x = torch.randint(tokens, (batch, inputs), generator=generator)
        y = torch.tensor([rule(*row) for row in x.tolist()])
        line = torch.cat([x, torch.full((batch, 1), tokens), y], dim=1)
        answer = torch.arange(line.shape[1]) > inputs
        return Batch(line, answer, scale)

    return draw


def test_a_function_or_a_batch_will_do():
    draw = sampler(lambda a, b, c: [(a + 2 * c) % 5, 3, b], 3, 5)
    by_function = discover(draw, scale=1, samples=8000)
    expected = {4: {0, 2}, 5: set(), 6: {1}}
    assert inputs_of(by_function.steps) == expected
    batch = draw(1, 8000, torch.Generator().manual_seed(3))
    assert inputs_of(discover(batch).steps) == expected
    constant = by_function.steps[1].operator
    assert constant.arity == 0 and constant() == 3


def test_the_same_seed_finds_the_same():
    def without_time(found):
        return found.steps, found.missing, found.ties, found.error

    runs = [discover(get("compare-cot"), scale=4, seed=7) for _ in range(2)]
    assert without_time(runs[0]) == without_time(runs[1])


def test_ties_are_listed_and_the_latest_positions_taken():
    found = discover(sampler(lambda a, b: [a, (a + b) % 5], 2, 5), scale=1)  # 0, 1, =, 3, 4
    assert found.steps[1].inputs == (1, 3)
    assert found.ties == {4: [(0, 1)]}


def test_all_equal_inputs_are_found_for_every_table_of_two_bits():
    for outputs in product((0, 1), repeat=4):
        found = discover(
            sampler(lambda a, b, o=outputs: [o[2 * a + b]], 2, 2), scale=1, samples=4000
        )
        needs_a = outputs[0] != outputs[2] or outputs[1] != outputs[3]
        needs_b = outputs[0] != outputs[1] or outputs[2] != outputs[3]
        assert inputs_of(found.steps) == {
            3: {p for p, needed in ((0, needs_a), (1, needs_b)) if needed}
        }


# --- false finds ----------------------------------------------------------------------------------


def test_random_outputs_are_not_explained():
    noise = torch.Generator().manual_seed(1)
    draw = sampler(lambda *x: [int(torch.randint(3, (), generator=noise))], 5, 3)
    for seed in range(5):
        assert not discover(draw, scale=1, samples=3000, seed=seed).found


def test_tokens_that_never_repeat_prove_nothing():
    # with 200 tokens hardly a pair occurs twice in 150 samples: pairs "fit", none is accepted
    draw = sampler(lambda *x: [sum(x) % 200], 4, 200)
    found = discover(draw, max_arity=2, scale=1, samples=150)
    assert found.steps == []
    assert found.answer.startswith("none of arity <= 2 with enough evidence")
    assert "draw more samples" in found.answer


def test_a_rare_exception_is_seen_or_the_error_is_bounded():
    # y = a, but for one of 1,000 triples (a, b, c): one input must not be accepted for it
    draw = sampler(lambda a, b, c: [0 if (a, b, c) == (9, 9, 9) else a], 3, 10)
    for seed in range(5):
        assert inputs_of(discover(draw, scale=1, seed=seed).steps) == {4: {0, 1, 2}}
    rare = sampler(lambda a, b: [0 if (a, b) == (99, 99) else a], 2, 100)
    found = discover(rare, max_arity=1, scale=1, samples=4000)
    assert found.error >= 1e-4  # the true error of the input a alone


# --- from data to predictions ---------------------------------------------------------------------


def test_prediction_from_samples_alone():
    task = get("shift")
    circuit = {n: discover(task.sample, scale=n, samples=4000).steps for n in (2, 3, 4, 6)}
    assert src(circuit, 6) == 1
    hinted = predict(circuit, build("rpe-sh", task), [2, 3, 4], [6])
    assert hinted.generalises
    assert not predict(circuit, build("rpe", task), [2, 3, 4], [6]).generalises


# --- bad input ------------------------------------------------------------------------------------


def test_bad_input():
    with pytest.raises(InputError, match="max_arity must lie in 0..6"):
        discover(get("copy"), max_arity=7)
    with pytest.raises(InputError, match="samples must be a whole number"):
        discover(get("copy"), samples=1)
    with pytest.raises(InputError, match="smaller max_arity"):
        discover(get("sort", width=400), scale=3, samples=100)
    with pytest.raises(InputError, match="discover takes a task"):
        discover(lambda scale, batch, generator: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="takes one size"):
        discover(get("copy"), scale=(3, 4))


def test_the_answer_is_the_first_reason():
    step = Step(3, Operator("f", (), {(): 0}), ())
    assert Discovery([step], {}).answer == "found"
    assert Discovery([], {4: "why"}).answer == "why"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: discover(get("copy"), scale=2, delta=0.0), "delta must lie between 0 and 1"),
        (lambda: discover(get("copy"), scale=2, max_error=0.0), "max_error must lie between"),
        (lambda: discover(Batch(torch.zeros(0, 3).long(), torch.ones(3).bool(), 3)), "tokens"),
        (lambda: discover(Batch(-torch.ones(4, 3).long(), torch.ones(3).bool(), 3)), "at least 0"),
    ],
    ids=["delta", "max_error", "empty", "negative"],
)
def test_unusable_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
