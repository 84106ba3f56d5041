"""What a certificate says, how it is stored, and which models it is for."""

import json

import pytest
import torch

from lgcourse import Transformer, embeddings, tasks
from lgcourse.certify import Certificate, certify, until_certified
from lgcourse.certify.admission import broken_promise, unlike_terms
from lgcourse.certify.certificate import weights_hash
from lgcourse.certify.parts import parts
from lgcourse.certify.signatures import MalformedError, Setting
from lgcourse.embeddings.table import RelationTable
from lgcourse.training import Settings, build_model, fit


def test_json_has_the_promised_fields_and_comes_back(examined, tmp_path):
    made = examined("copy")[-1].certificate
    data = made.to_json()
    kinds = {"certified": bool, "signatures": int, "tuples": int, "margin": float, "reason": str}
    assert {name: type(data[name]) for name in kinds} == kinds
    assert data["counterexample"] is None and data["verdict"] == "certified"
    made.write(tmp_path / "file.json")
    assert Certificate.read(tmp_path / "file.json") == made
    assert json.loads((tmp_path / "file.json").read_text()) == data
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_lines_name_what_was_found(examined):
    text = "\n".join(examined("addition")[-1].certificate.lines())
    assert "addition: certified, every scale" in text
    assert "20,000 tuples" in text and "20,300 tuples" in text
    assert "20,200 of 20,200 table entries" in text
    assert "over-approximated" in text and "sha256 of the weights" in text


def test_a_certificate_is_the_same_again_and_its_hash_sees_one_bit(models):
    task, model = models("copy")
    first, second = certify(model, task), certify(model, task)
    assert (first.margin, first.error, first.sha256) == (second.margin, second.error, second.sha256)
    before = weights_hash(model)
    with torch.no_grad():
        weight = model.blocks[0].mlp[0].bias
        weight[0] = torch.nextafter(weight[0], torch.tensor(9.0))
    assert weights_hash(model) != before


def test_too_many_tuples_are_tested_and_not_certified(models):
    task, model = models("copy")
    made = certify(model, task, limit=50)
    assert made.verdict == "tested, not certified" and not made.certified
    assert "the limit is 50" in made.reason and f"right on {made.samples} samples" in made.reason


@pytest.mark.parametrize("options", [{"norm": "post"}, {"tied": True}])
def test_other_decoders_are_certified_too(options):
    settings = Settings("parity-cot", "ideal-sh", width=16, heads=2, steps=400, **options)
    settings, task, model = build_model(settings)
    fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    made = certify(model, task)
    assert made.certified, made.reason


def test_training_ends_with_the_first_certificate():
    settings = Settings("parity-cot", "ideal-sh", width=16, heads=2, steps=600)
    settings, task, model = build_model(settings)
    run = fit(
        model, task, range(1, 11), 600, on_check=until_certified(task), check_every=100,
        device="cpu",
    )  # fmt: skip
    assert run.stopped and run.steps < 600
    assert certify(run.model, task).certified


def test_two_layers_are_tested():
    settings = Settings("parity-cot", "ideal-sh", width=16, heads=2, layers=2, steps=300)
    settings, task, model = build_model(settings)
    fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    made = certify(model, task)
    assert not made.certified and "2 layers" in made.reason
    assert made.verdict in ("tested, not certified", "wrong")


def test_the_learned_relation_of_each_head_is_read():
    settings = Settings("copy", "lbpe-sh", width=32, heads=4, steps=600)
    settings, task, model = build_model(settings)
    fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    made = certify(model, task)
    assert len(made.relation) == 4 and made.tuples >= 110
    assert made.certified or made.counterexample, made.reason


def test_the_part_of_a_token_must_follow_from_its_place():
    task = tasks.get("addition-unequal")
    pe = embeddings.build("lbpe-sh", task, width=8, heads=1)
    assert parts(Setting.of(task, []), pe) == [0, 0, 1, 1, 2, 2]
    pe.segments.marks = torch.tensor([3, 10, 11])  # a digit that counts as a mark
    with pytest.raises(MalformedError, match="marks"):
        parts(Setting.of(task, []), pe)


def test_a_bias_that_drifts_with_the_scale_breaks_the_promise():
    task = tasks.get("copy")
    honest = embeddings.build("ideal-sh", task, width=8, heads=1).double()

    class Drifting(RelationTable):
        def bias(self, query, key, scale, context=None):
            return super().bias(query, key, scale, context) + 1e-5 * scale

    drifting = Drifting(honest.relation, 1, other="excluded").double()
    heads = [task.terms()]
    assert broken_promise(honest, heads, task) is None
    assert unlike_terms(drifting, heads, torch.arange(7), 3) is None
    assert "is not constant" in broken_promise(drifting, heads, task)


def test_another_model_class_and_task_are_refused():
    task = tasks.get("copy")

    class Own(Transformer):
        pass

    pe = embeddings.build("ideal-sh", task, width=8, heads=1)
    assert "not a lgcourse.Transformer" in certify(Own(11, pe, 1, 8, 1), task).reason
    sort = tasks.get("sort")
    assert certify(Transformer(len(sort.vocabulary), pe, 1, 8, 1), sort).verdict == "refused"
