"""The first wrong token, the head that reads the wrong key, the condition that fails: by hand."""

from __future__ import annotations

import json

import pytest
import torch
from untrained import run_of, with_cells

from lgcourse import InputError, relations, tasks
from lgcourse.relations import Form
from lgcourse.tasks import Operator, Step
from lgcourse.theory.prediction import broken_condition
from lgcourse.training.answer import answer
from lgcourse.training.mistake import first_mistake

TEXT = "314159265="


@torch.no_grad()
def by_hand(run, relation=None):
    """Give every id but "other" the same strength; or take another relation for it."""
    for position in run.model.positions:
        if relation is not None:
            position.relation = relation
        position.table.fill_(2.0)
        position.table[:, position.relation.other] = 0.0
    return run


def test_the_first_wrong_token_is_that_of_greedy_generation():
    for seed in range(4):
        run = by_hand(run_of("copy", "ideal-sh", seed=seed))
        said, found = answer(run, TEXT), first_mistake(run, TEXT)
        first = next(
            k for k, (a, b) in enumerate(zip(said["answer"], said["true"], strict=True)) if a != b
        )
        assert (found.digit, found.of, found.place) == (first + 1, 9, f"y{first + 1}")
        assert (found.given, found.true) == (said["answer"][first], said["true"][first])


def test_a_model_that_reads_its_operand_is_wrong_behind_the_heads():
    found = first_mistake(by_hand(run_of("copy", "ideal-sh")), TEXT)
    (reading,) = found.readings
    assert (reading.role, reading.place) == ("source", f"x{found.digit}") and not reading.wrong
    assert reading.usual > 0.9 and reading.here > 0.9
    assert found.condition == 0 and "position is not at fault" in found.why
    assert any("layers behind the heads" in line for line in found.lines())


def test_a_head_that_mirrors_reads_the_key_at_the_other_end():
    mirror = relations.build("ideal-sh", tasks.get("reverse"))
    found = first_mistake(by_hand(run_of("copy", "ideal-sh"), mirror), TEXT)
    (reading,) = found.readings
    assert reading.wrong and reading.read == f"x{10 - found.digit}" and reading.read_weight > 0.9
    assert reading.read_token == TEXT[9 - found.digit]
    assert any("reads the wrong key" in line for line in found.lines())


def test_a_distance_that_training_never_showed():
    found = first_mistake(run_of("copy", "rpe"), TEXT)  # trained on 1..6, here 9 places back
    assert found.condition == 1 and "i - j = 9" in found.why
    shown = json.loads(json.dumps(found.to_json()))
    assert shown["right"] is False and shown["readings"][0]["role"] == "source"


def test_learned_relations_have_their_cells_looked_at():
    own = (Form(1, -1, 0), 0)
    heads = [[(Form(1, -1, -1), 1), own]] * 4  # one key too far back
    found = first_mistake(with_cells(run_of("copy", "lbpe-sh"), heads), TEXT)
    assert found.condition == 1 and "no head reads" in found.why
    heads = [[(Form(1, -1, -1), 0), own]] * 4
    assert first_mistake(with_cells(run_of("copy", "lbpe-sh"), heads), TEXT).condition == 0


def test_no_relation_and_no_circuit_are_said():
    found = first_mistake(run_of("copy", "none"), TEXT)
    assert found.condition is None and "no finite relation" in found.why and found.readings
    found = first_mistake(run_of("copy-repeat", "none"), "abbab=")
    assert found.condition is None and "no circuit" in found.why and not found.readings
    with pytest.raises(InputError, match="is not a prompt"):
        first_mistake(run_of("copy", "none"), "314")


def circuit(scale):
    """Four places back; at scale 3 another operator reads the same place."""
    same = Operator.from_rule("same", ("x",), lambda x: x, (0, 1))
    flip = Operator.from_rule("flip", ("x",), lambda x: 1 - x, (0, 1))
    back = {1: 4, 2: 4, 3: 4, 4: 5}[scale]
    return [Step(9, flip if scale == 3 else same, (8 - back,))]


@pytest.mark.parametrize(("train", "scale", "condition"), [
    ((1,), 2, 0), ((1,), 4, 1), ((1, 3), 2, 3), ((1, 4), 2, 2),
])  # fmt: skip
def test_each_condition_by_itself(train, scale, condition):
    rpe = relations.build("rpe", positions=10)
    assert broken_condition(circuit, rpe, train, scale, output=9)[0] == condition


def test_the_command_takes_a_text(tmp_path):
    from typer.testing import CliRunner

    from lgcourse.cli import app
    from lgcourse.training import Settings, train_run

    small = Settings("copy", "rpe", 2, (2, 9), steps=1, width=8, heads=2, layers=1, samples=4)
    train_run(small, tmp_path / "run", device="cpu")
    found = CliRunner().invoke(app, ["explain", str(tmp_path / "run"), TEXT, "--json"])
    said = json.loads(found.stdout)
    assert found.exit_code == 0 and said["digit"] >= 1 and said["condition"] == 1
