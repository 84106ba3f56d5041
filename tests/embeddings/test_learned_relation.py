"""LBPE: its bias in each stage is the equation, it ends in a finite relation, and it is learned."""

import copy
import math

import pytest
import torch

import lgcourse
from lgcourse import embeddings, tasks
from lgcourse.embeddings.learned_relation import FIX_AT, LearnedRelation, candidate_forms
from lgcourse.errors import InputError
from lgcourse.relations import Form
from lgcourse.theory import predict

N, LENGTH = 4, 12


def filled(share, seed=0):
    """An embedding with random tables at a share of its training."""
    source = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    made = LearnedRelation(candidate_forms(), heads=3)
    with torch.no_grad():
        made.table.normal_(generator=source)
        made.gates.normal_(generator=source)
    for step in (0.0, 0.5, share):
        if step <= share:
            made.anneal(step, source)
    return made.eval()


def plain_strength(made, head, i, j):
    """Return the strength of a pair and whether a kept cell holds it, by plain loops."""
    temperature = float(made.temperature)
    powers = [math.exp(g / temperature) for g in made.gates[head].tolist()]
    total, inside = 0.0, False
    for f, form in enumerate(made.forms):
        value = form.a * i + form.b * j + form.c * N
        if abs(value) <= 3 and (int(made.stage) == 0 or bool(made.kept[head, f, value + 3])):
            total += powers[f] / sum(powers) * made.table[head, f, value + 3].item()
            inside = True
    return total, inside


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_bias_of_each_stage_is_the_equation(share):
    made, at = filled(share), torch.arange(LENGTH)
    bias = made.bias(at, at, N)
    for head in range(3):
        for i in range(LENGTH):
            factor = 27.0 if share > FIX_AT else 8 * math.log(i + 2)
            for j in range(i + 1):
                strength, inside = plain_strength(made, head, i, j)
                left_out = share >= 0.5 and not inside and i != j
                want = -math.inf if left_out else factor * strength
                assert float(bias[head, i, j]) == pytest.approx(want, abs=1e-3)


def test_a_late_pair_does_not_stand_for_the_first_one():
    made, one = filled(0.2), torch.zeros(1, dtype=torch.long)
    late = made.bias(one + 9, one + 9, N)
    first = made.bias(one, one, N)
    again = filled(0.2)
    assert torch.equal(first, again.bias(one, one, N))
    assert torch.equal(late, again.bias(one + 9, one + 9, N)) and not torch.equal(late, first)


def test_the_named_keys_are_all_that_the_bias_leaves():
    made, at = filled(0.9), torch.arange(LENGTH)
    keys, values = made.named(at, N)
    whole = torch.full((3, LENGTH, LENGTH + 1), -math.inf)
    place = torch.where(keys < 0, LENGTH, keys)
    assert all(len(set(row[row >= 0].tolist())) == (row >= 0).sum() for row in keys.flatten(0, 1))
    whole.scatter_(2, place, values)
    causal = at[None, :] > at[:, None]
    dense = made.bias(at, at, N).masked_fill(causal, -math.inf)
    torch.testing.assert_close(whole[:, :, :LENGTH], dense)


def test_the_relation_is_readable_and_survives_copies():
    made = filled(0.9)
    phi = made.relation
    own = (Form(1, -1), 0)  # the query itself stays in every head
    assert len(phi) == 3 and all(r.cells.count(own) == 1 for r in phi)
    for head, r in enumerate(phi):
        assert {*r.cells} == {*made.cells(head), own} and r.size == len(r.cells) + 1
    assert made.words()[0].startswith("head 1: ")
    loaded = LearnedRelation(candidate_forms(), heads=3)
    loaded.load_state_dict(made.state_dict())
    assert loaded.words() == made.words() == copy.deepcopy(made).words()
    assert filled(0.2).relation is None and filled(0.2).named(torch.arange(2), 1) is None


def test_cells_are_chosen_once_by_their_strength_and_gates_stop_then():
    made, source = filled(0.2), torch.Generator().manual_seed(1)
    made.anneal(0.45, source)
    strength = torch.softmax(made.gates / 0.1, dim=1)[:, :, None] * made.table * 8
    want = strength > 0.1
    assert torch.equal(made.kept, want) and 0 < int(want.sum()) < want.numel()
    with torch.no_grad():
        made.table.neg_()
    made.anneal(0.55, source)
    assert torch.equal(made.kept, want), "a cell that gets weak stays for now, and none comes back"
    at = torch.arange(LENGTH)
    made.bias(at, at, N).nan_to_num(neginf=0.0).sum().backward()
    assert made.gates.grad is None and made.table.grad is not None
    with torch.no_grad():
        made.table.neg_()
    made.anneal(0.6, source)
    assert torch.equal(made.kept, strength > 0.5), "what is weak at the end is dropped"


def test_two_sizes_choose_from_more_forms_and_get_more_steps():
    one, two = (
        embeddings.build("lbpe-sh", tasks.get(name), width=16, heads=2)
        for name in ("addition", "addition-unequal")
    )
    assert len(two.forms) == 3 * len(one.forms)
    assert two.recommended == one.recommended | {"steps": 2 * one.recommended["steps"]}


def test_without_a_hint_a_cell_can_name_any_distance_of_the_layout():
    task = tasks.get("parity-cot-padded", width=30)
    made = embeddings.build("lbpe", task, width=16, heads=2, max_scale=30)
    assert made.window == task.length(30) - 1
    assert embeddings.build("lbpe-sh", task, width=16, heads=2).window == 3


def test_a_missing_scale_and_a_soft_rest_are_refused():
    with pytest.raises(InputError, match="Scale Hint"):
        filled(0.2).bias(torch.arange(2), torch.arange(2), None)
    with pytest.raises(InputError, match="excluded"):
        embeddings.build("lbpe", tasks.get("copy"), width=16, heads=2, other="soft")
    with pytest.raises(InputError, match="use other='auto', not 'sotf'"):  # no advice to use soft
        embeddings.build("lbpe-sh", tasks.get("copy"), width=16, heads=2, other="sotf")


@pytest.fixture(scope="module")
def trained():
    task = tasks.get("copy")
    torch.manual_seed(0)
    made = embeddings.build("lbpe-sh", task, width=32, heads=4)
    model = lgcourse.Transformer(len(task.vocabulary), made, 1, 32, 4)
    lgcourse.fit(model, task, range(1, 7), steps=500, seed=0, device="cpu")
    return task, model


def test_copy_finds_its_form_by_itself_and_is_right_at_ten_times_the_length(trained):
    task, model = trained
    assert any("i - j - n = 0" in line for line in model.embedding.words())
    assert lgcourse.evaluate(model, task, [6, 60], 50, 0).exact_match == {6: 1.0, 60: 1.0}


def test_training_goes_on_after_an_evaluation():
    task = tasks.get("copy")
    made = embeddings.build("lbpe-sh", task, width=16, heads=2)
    model = lgcourse.Transformer(len(task.vocabulary), made, 1, 16, 2)
    lgcourse.evaluate(model, task, [1, 2, 3], 4, 0)
    assert lgcourse.fit(model, task, range(1, 4), steps=6, seed=0, device="cpu").steps == 6


def test_theory_predicts_from_the_relation_that_was_found(trained):
    task, model = trained
    assert predict(task, model.embedding.relation, range(1, 7), [60]).generalises


def test_without_the_hint_no_relation_is_found_that_reaches_further():
    task = tasks.get("copy")
    torch.manual_seed(0)
    made = embeddings.build("lbpe", task, width=32, heads=4)
    model = lgcourse.Transformer(len(task.vocabulary), made, 1, 32, 4)
    lgcourse.fit(model, task, range(1, 7), steps=500, seed=0, device="cpu")
    assert lgcourse.evaluate(model, task, [50], 50, 0).exact_match[50] <= 0.05
    assert not predict(task, model.embedding.relation, range(1, 7), [50]).generalises


def test_cells_that_can_be_spared_are_dropped_the_weakest_first():
    made, source = filled(0.5), torch.Generator().manual_seed(3)
    left = made.strength().detach() * 8 > 0.5
    strong = {tuple(c) for c in (made.kept & left).nonzero().tolist()}
    needed, seen = set(sorted(strong)[::5]), []

    def loss():
        """High as soon as a needed cell is missing; the first call is before any is dropped."""
        kept = {tuple(c) for c in made.kept.nonzero().tolist()}
        seen.append(kept)
        return 0.1 + 0.5 * len(needed - kept) + 0.001 * len(strong - kept)

    made.anneal(0.7, source, loss)
    assert {tuple(c) for c in made.kept.nonzero().tolist()} == needed
    assert seen[0] == strong, "what is weak goes before the measuring"
    strength = made.strength().detach()
    tried = [next(iter(a - b)) for a, b in zip(seen, seen[1:], strict=False) if len(a - b) == 1]
    assert [float(strength[c]) for c in tried] == sorted(float(strength[c]) for c in tried)
    again = made.kept.clone()
    made.anneal(0.8, source, lambda: 1 / 0)
    assert torch.equal(made.kept, again), "once only"
