"""What a run learned: asked of models whose relation and strengths were set by hand."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
import torch
from untrained import run_of, with_cells

from lgcourse import embeddings, relations, tasks
from lgcourse.errors import InputError
from lgcourse.relations import CellRelation, Form
from lgcourse.theory import predict
from lgcourse.training import Settings, load_run
from lgcourse.training.explanation import (
    Reader,
    _short,
    agreement,
    explain,
    percent,
    predict_run,
    readers,
    share_at,
    words,
)
from lgcourse.training.runs import train_run

COPY = [(Form(1, -1, -1), 0)]
ADDITION = {  # position of a(t) is t - 1, of b(t) n + t, of s(t) 2n + 1 + t; the query is 2n + t
    "a": (Form(1, -1, -2), 1),
    "b": (Form(1, -1, -1), 0),
    "a before": (Form(1, -1, -2), 2),
    "b before": (Form(1, -1, -1), 1),
}


@torch.no_grad()
def by_hand(run, relation=None):
    """Give every id but "other" the same strength; or take another relation for it."""
    for position in run.model.positions:
        if relation is not None:
            position.relation = relation
        position.table.fill_(1.0)
        position.table[:, position.relation.other] = 0.0
    return run


# --- where attention goes -------------------------------------------------------------------------
@pytest.mark.parametrize(("task", "scales"), [("copy", [6, 20]), ("addition", [6, 20])])
def test_an_ideal_table_puts_all_attention_on_the_operands(task, scales):
    run = by_hand(run_of(task, "ideal-sh", tests=tuple(scales)))
    for scale in scales:
        share = share_at(run, scale)
        assert share.on_operands == [[pytest.approx(1.0, abs=1e-6)] * 4]
        assert share.first == [1.0] and share.first_anywhere == 1.0
        steps = run.task.circuit(scale)
        evenly = [len(set(step.inputs)) / step.output for step in steps]
        assert share.evenly == pytest.approx(sum(evenly) / len(evenly))
    assert task != "copy" or share.half == [1.0]


def test_another_tasks_relation_puts_little_on_them():
    run = by_hand(run_of("copy", "ideal-sh"), relations.build("ideal-sh", tasks.get("reverse")))
    share = share_at(run, 10)  # of even scale: no place is the mirror of itself
    assert max(share.on_operands[0]) < 1e-6
    assert (share.half, share.first, share.first_anywhere) == ([0.0], [0.0], 0.0)
    found = explain(run).agreement
    assert not found.agrees and found.besides[0].share > 0.9


@pytest.mark.parametrize("task", ["copy", "addition"])
def test_without_position_the_share_is_arity_over_keys(task):
    run = run_of(task, "none")
    for scale in (6, 20):
        steps = run.task.circuit(scale)
        counts = [len(set(step.inputs)) / step.output for step in steps]
        share = share_at(run, scale, samples=64)
        for value in share.on_operands[0]:  # content plays a part, not a large one on average
            assert value == pytest.approx(sum(counts) / len(counts), rel=0.35)
    with torch.no_grad():
        run.model.blocks[0].attention.project.weight[:32] = 0  # no content in queries and keys
    share = share_at(run, 20)
    assert share.on_operands[0] == pytest.approx([sum(counts) / len(counts)] * 4, rel=1e-5)
    assert share.half_anywhere == 0.0 and share.first_anywhere == 0.0


def test_long_scales_are_sampled_and_repeat():
    run = by_hand(run_of("copy", "ideal-sh", tests=(300,)))
    first, again, other = share_at(run, 300), share_at(run, 300), share_at(run, 300, seed=1)
    assert first.steps == 200 and first.samples == 16 and first == again
    assert first.evenly != other.evenly, "other steps were drawn"
    assert 200 / 601 < first.evenly * 200 < 200 / 301
    assert share_at(by_hand(run_of("copy", "ideal-sh", tests=(2000,))), 2000).samples == 4


def test_samples_must_be_a_number():
    with pytest.raises(InputError, match="samples"):
        share_at(run_of("copy", "none"), 3, samples=0)


# --- the relation that was learned ----------------------------------------------------------------
def test_a_learned_relation_for_copy_says_what_it_reads():
    run = with_cells(run_of("copy", "lbpe-sh"), [[], COPY, [(Form(1, -1, -1), 1)], []])
    told = words(run.model)
    assert [row["head"] for row in told] == [1, 2, 3, 4] and {r["layer"] for r in told} == {1}
    assert "i - j - n = 0" in told[1]["words"] and "i - j" not in told[0]["words"]
    found = explain(run)
    assert found.prediction.generalises
    (role,) = found.agreement.roles
    assert (role.operator, role.role, role.named) == ("take", "source", 1.0)
    assert [(n.place, n.id, n.share) for n in role.by] == [("layer 1 head 2", "i - j - n = 0", 1.0)]
    # head 3 names x(t - 1), which is there from the second step on
    steps = [t for n in range(1, 21) for t in range(1, n + 1)]
    (besides,) = found.agreement.besides
    assert (besides.place, besides.id) == ("layer 1 head 3", "i - j - n = 1")
    assert besides.share == pytest.approx(sum(t > 1 for t in steps) / len(steps))
    assert found.shares[0].on_operands[0][1] == pytest.approx(1.0, abs=1e-6)
    assert found.shares[0].on_operands[0][2] < 1e-6


def test_without_its_cell_copy_is_predicted_to_fail():
    run = with_cells(run_of("copy", "lbpe-sh"), [[], [], [(Form(1, -1, -1), 1)], []])
    assert predict_run(run).generalises is False
    (role,) = explain(run).agreement.unnamed
    assert role.role == "source" and role.by == []


@pytest.mark.parametrize("spread", ["one head", "heads", "layers"])
def test_all_heads_of_all_layers_count_together_for_addition(spread):
    cells = list(ADDITION.values())
    run = run_of("addition", "lbpe-sh", layers=2 if spread == "layers" else 1)
    layers = {
        "one head": [[cells, [], [], []]],
        "heads": [[[cell] for cell in cells]],
        "layers": [[cells[:2], [], [], []], [[], [], cells[2:], []]],
    }[spread]
    found = explain(with_cells(run, *layers))
    assert found.prediction.generalises and found.prediction.resolvable == {10: 1.0, 20: 1.0}
    assert found.agreement.agrees and len(found.agreement.roles) == 7
    by = {(role.operator, role.role): role.by for role in found.agreement.roles}
    for name, (form, value) in ADDITION.items():
        assert [n.id for n in by["column", name]] == [f"{form} = {value}"]
    places = {"one head": "layer 1 head 1", "heads": "layer 1 head 3", "layers": "layer 2 head 3"}
    assert by["column", "a before"][0].place == places[spread]
    itself = by["column", "s before"]  # the query, which every head keeps
    assert {(n.id, n.share) for n in itself} == {("i - j = 0", 1.0)} and len(itself) >= 4


@pytest.mark.parametrize("missing", ADDITION)
def test_with_one_cell_less_addition_is_predicted_to_fail(missing):
    cells = [[cell] if name != missing else [] for name, cell in ADDITION.items()]
    found = explain(with_cells(run_of("addition", "lbpe-sh"), cells))
    assert found.prediction.generalises is False
    assert {role.role for role in found.agreement.unnamed} == {missing}
    assert found.agreement.complete == 7 - (1 if "before" in missing else 2)
    assert f"`{missing}`" in found.prediction.reason


def test_a_cell_that_is_right_at_one_scale_only_is_found_out():
    """i - j = 6 is the operand of copy at scale 6; the relation without hint knows no other."""
    run = with_cells(run_of("copy", "lbpe"), [[(Form(1, -1), 3)], [], [], []])
    found = explain(run)
    (role,) = found.agreement.roles
    total = sum(range(1, 21))
    assert role.named == pytest.approx(3 / total) and not found.prediction.generalises
    assert not found.agreement.agrees and found.agreement.unnamed == []


def test_before_it_is_pruned_a_learned_relation_is_none():
    run = run_of("copy", "lbpe-sh")
    found = explain(run)
    assert readers(run.model) == [] and found.agreement is None
    assert found.prediction.verdict == "no prediction"
    assert "no finite relation" in "\n".join(found.lines()) and found.shares[0].on_operands


@pytest.mark.parametrize("seed", range(4))
def test_agreement_is_what_plain_loops_count(seed):
    draw = random.Random(seed)
    task = tasks.get(draw.choice(["addition", "successor", "shift", "multiply-digit"]))
    forms = [Form(1, -1), Form(1, -1, -1), Form(1, -1, -2), Form(0, 1), Form(1, 1, -2)]
    heads = [
        Reader(1, h, CellRelation([(draw.choice(forms), draw.randint(-1, 2)) for _ in range(3)]))
        for h in (1, 2)
    ]
    train, scales = range(1, 5), [2, 4, 7]

    def named(head, step, operand, scale):
        """Return the number of the cell that the operand has alone, or None."""
        cells = heads[head].relation.cells
        first = {}
        for key in range(step.output):
            hold = [k for k, (u, w) in enumerate(cells) if u(step.output - 1, key, scale) == w]
            first[key] = hold[0] if hold else None
        mine = first[operand]
        return mine if mine is not None and list(first.values()).count(mine) == 1 else None

    shown, steps, hits, by = set(), Counter(), Counter(), Counter()
    for n in train:
        for step in task.circuit(n):
            for name, operand in zip(step.operator.roles, step.inputs, strict=True):
                for head in (0, 1):
                    cells = heads[head].relation.cells
                    hold = [k for k, (u, w) in enumerate(cells) if u(step.query, operand, n) == w]
                    shown |= {(head, step.operator.name, name, hold[0])} if hold else set()
    for n in scales:
        for step in task.circuit(n):
            for name, operand in zip(step.operator.roles, step.inputs, strict=True):
                role, some = (step.operator.name, name), False
                for head in (0, 1):
                    id = named(head, step, operand, n)
                    if id is not None and (head, *role, id) in shown:
                        some, by[role, head, id] = True, by[role, head, id] + 1
                steps[role] += 1
                hits[role] += some
    found = agreement(heads, task, train, scales)
    got = {(r.operator, r.role): (r.steps, r.named) for r in found.roles}
    assert got == {role: (count, hits[role] / count) for role, count in steps.items()}
    shares = Counter()
    for r in found.roles:
        for n in r.by:
            shares[r.operator, r.role, n.place] += round(n.share * r.steps)
    want = Counter()
    for (role, head, _), count in by.items():
        want[(*role, f"layer 1 head {head + 1}")] += count
    assert shares == want and sum(want.values()) > 0


def test_ids_that_training_never_showed_do_not_count():
    """The distance of copy is n: each is shown at one training scale, that of 7 at none."""
    task = tasks.get("copy")
    heads = [Reader(None, None, relations.build("rpe", task))]
    found = agreement(heads, task, range(1, 7), range(1, 9))
    assert found.roles[0].named == pytest.approx(sum(range(1, 7)) / sum(range(1, 9)))
    assert found.besides == [] and found.roles[0].by[0].id == "i - j = 6"


@pytest.mark.parametrize(("name", "steps"), [("none", 0), ("t5", 2)])
def test_an_id_that_other_keys_have_too_names_nothing(name, steps):
    """Shift reads 1 back, then always n + 1 = 31 back: a bucket of T5 that begins there.

    At step 2 no key stands farther back; from step 3 on one does, and shares the bucket.
    """
    task, heads = tasks.get("shift"), [Reader(None, None, relations.build(name))]
    found = agreement(heads, task, range(1, 31), [30])
    assert found.roles[0].named == pytest.approx(steps / 30)
    assert found.besides == [], "there is no id that means other"


# --- all of it ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", embeddings.names())
def test_every_embedding_is_explained(name):
    task = "parity-cot-padded" if name == "ideal" else "parity-cot"
    run = run_of(task, name, tests=(5, 8), train_scale=5, layers=2, exact={"5": 1.0, "8": 0.25})
    found = explain(run, samples=3)
    assert [share.scale for share in found.shares] == [5, 8]
    assert all(len(share.on_operands) == 2 for share in found.shares)
    relation = run.model.embedding.relation
    assert (found.agreement is None) == (relation is None)
    if not isinstance(relation, list):
        want = predict(run.task, relation, range(1, 6), [5, 8])
        assert found.prediction == want == predict_run(run)
    lines = found.lines()
    assert len(lines) <= 45 and all(line == line.rstrip() for line in lines)
    text = "\n".join(lines)
    assert "1.000 at 5, 0.250 at 8" in text and f"{task}, {name}, trained on" in text
    assert ("no finite relation is stated" in text) == (relation is None)
    data = json.loads(json.dumps(found.to_json()))
    assert data["attention"].keys() == {"5", "8"} and data["prediction"]["verdict"] in text
    assert data["attention"]["8"]["on_operands"] == found.shares[1].on_operands


def test_the_strongest_ids_of_a_table_are_told():
    run = run_of("copy", "ideal-sh")
    with torch.no_grad():
        run.model.embedding.table[:] = torch.tensor([[0.5, 9.0]])
    assert {row["words"] for row in words(run.model)} == {
        "take source (0.50); other keys excluded"
    }, "the strength of what is excluded plays no part"
    run = run_of("copy", "rpe", layers=2)
    with torch.no_grad():
        run.model.positions[1].table[2, 7] = 3.0
    rows = [row for row in words(run.model) if row["words"].startswith("i - j = 7 (3.00), ")]
    assert [(row["layer"], row["head"], row["kind"]) for row in rows] == [(2, 3, "strengths")]


def test_layers_that_share_an_embedding_or_a_block_share_its_words():
    lines = explain(run_of("copy", "t5", layers=2), samples=2).lines()
    assert sum("bucket" in line for line in lines if line.startswith("  layer 2")) == 4
    run = with_cells(run_of("copy", "lbpe-sh", loops=3), [[], COPY, [], []])
    lines = [line for line in explain(run, samples=2).lines() if "head 2  " in line]
    assert [line[:16] for line in lines] == [f"  layer {k} head 2" for k in (1, 2, 3)]
    assert all(line.endswith("i - j - n = 0") for line in lines)


@pytest.mark.parametrize(
    ("task", "tests", "measured", "verdict"),
    [
        ("sort", (6,), 0, "not covered"),
        ("parity-direct", (6, 20), 1, "fails"),
        ("multiply-direct", (2, 6), 1, "fails"),
    ],
)
def test_what_cannot_be_measured_is_noted(task, tests, measured, verdict):
    found = explain(run_of(task, "rpe", tests=tests), samples=2)
    assert len(found.shares) == measured and found.prediction.verdict == verdict
    notes = [line for line in found.lines() if line.startswith("note: ")]
    assert len(notes) == 1 and task in notes[0]
    assert len(found.lines()) < 50
    json.dumps(found.to_json())


def test_two_sizes_and_many_roles():
    run = by_hand(run_of("addition-unequal", "ideal-sh", tests=((7, 4), (5, 8)), train_scale=4))
    found = explain(run, samples=2)
    assert [share.scale for share in found.shares] == [(4, 4), (7, 4), (5, 8)]
    assert all(min(share.on_operands[0]) > 1 - 1e-6 for share in found.shares)
    assert found.agreement.agrees and found.prediction.generalises
    assert "5x8" in found.to_json()["attention"]
    assert "19 of 19 roles" in "\n".join(found.lines())


def test_a_run_that_training_stored(tmp_path):
    settings = Settings(
        "copy", "ideal-sh", width=16, heads=4, steps=20, samples=5, train_scale=4, test_scales=(8,)
    )
    result = train_run(settings, tmp_path / "run")
    found = explain(load_run(tmp_path / "run"), samples=4)
    assert [share.scale for share in found.shares] == [4, 8]
    assert found.exact_match == result["exact_match"] and found.agreement.agrees
    assert min(found.shares[1].on_operands[0]) > found.shares[1].evenly


def test_shares_are_never_rounded_to_none_or_all():
    assert [percent(x) for x in (0.0, 1e-9, 0.5, 1 - 1e-9, 1.0)] == [
        "0 %", "0.1 %", "50.0 %", "99.9 %", "100 %",
    ]  # fmt: skip


def test_scales_are_written_shortly():
    assert _short([*range(1, 21), 50, 100]) == "1..20, 50, 100"
    assert _short([(1, 1), (20, 13)]) == "1x1, 20x13"
