"""The independent checker: holds for honest certificates, fails for altered ones."""

import copy
import json
import math
from dataclasses import replace

import pytest
import torch

from lgcourse import InputError, tasks
from lgcourse.certify import certify, certify_run, check
from lgcourse.certify.certificate import Certificate, data_hash, term_data
from lgcourse.certify.checker import _World, at, check_model
from lgcourse.relations.affine import N
from lgcourse.relations.forms import Form, Term
from lgcourse.training import Settings
from lgcourse.training.runs import train_run


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A run folder of copy and its certificate file."""
    folder = tmp_path_factory.mktemp("certify")
    settings = Settings(
        "copy", "ideal-sh", test_scales=(12,), width=16, heads=2, steps=300, samples=4
    )
    train_run(settings, folder / "run", device="cpu")
    certify_run(folder / "run").write(folder / "certificate.json")
    return folder


def test_an_honest_certificate_holds(copied):
    report = check(copied / "certificate.json", copied / "run")
    made = Certificate.read(copied / "certificate.json")
    assert report["holds"], report["reason"]
    assert math.isclose(report["margin"], made.margin, abs_tol=1e-9)
    assert report["tuples"] == made.tuples == 110


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"certified": False}, "does not say"),
        ({"margin": 1.0}, "the certificate says 1"),
        ({"error": 1e3}, "is not above the stated rounding bound"),
        ({"sha256": {"weights": "0", "relation": "0"}}, "weights"),
        ({"relation": []}, "hash"),
    ],
)
def test_an_altered_certificate_fails(copied, tmp_path, change, words):
    data = json.loads((copied / "certificate.json").read_text())
    (tmp_path / "altered.json").write_text(json.dumps({**data, **change}))
    report = check(tmp_path / "altered.json", copied / "run")
    assert not report["holds"] and words in report["reason"], report["reason"]


def test_another_relation_fails_though_its_hash_fits(copied, tmp_path):
    data = json.loads((copied / "certificate.json").read_text())
    data["relation"][0][0]["value"] += 1
    data["sha256"]["relation"] = data_hash(data["relation"])
    (tmp_path / "altered.json").write_text(json.dumps(data))
    report = check(tmp_path / "altered.json", copied / "run")
    assert not report["holds"] and "not that of the model" in report["reason"]


def test_files_that_are_no_certificate(copied, tmp_path):
    (tmp_path / "half.json").write_text("{")
    for name in ("missing.json", "half.json"):
        with pytest.raises(InputError, match="no certificate"):
            check(tmp_path / name, copied / "run")
        with pytest.raises(InputError, match="no certificate"):
            Certificate.read(tmp_path / name)


def test_wrong_weights_fail_though_their_hash_fits(models):
    task, model = models("parity-cot")
    claim = certify(model, task).to_json()
    assert check_model(claim, model, task)["holds"]
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.logits.weight[[0, 1]] = broken.logits.weight[[1, 0]]
    claim["sha256"]["weights"] = certify(broken, task).sha256["weights"]
    report = check_model(claim, broken, task)
    assert not report["holds"] and report["margin"] < 0


def test_a_circuit_with_a_missing_step_fails(models):
    task, model = models("copy")
    claim = certify(model, task).to_json()
    task = copy.copy(task)
    (only,) = task.families()
    task.families = lambda: [replace(only, last=N - 1)]
    assert "every answer token" in check_model(claim, model, task)["reason"]


ODD = {
    "copy": [Term(0, Form(1, -2, 1), 3, unless=((Form(0, 1), 4),)), Term(1, Form(1, 1, -3), 2)],
    "shift": [Term(2, Form(1, -1), 2, low=N + 3, high=2 * N - 2, step=3, where=(N - 6,))],
    "interleave": [],
    "addition": [],
}


@pytest.mark.parametrize("name", ODD)
def test_no_kind_of_step_is_new_beyond_the_bound(name):
    task = tasks.get(name)
    world = _World(task, [[term_data(t) for t in (*task.terms(), *ODD[name])]], 1)
    (bound,) = world.bound()
    assert bound < 100

    def kinds(scales):
        return {world.step(k, t, (n,)).kind for n in scales for k, t in world.steps((n,))}

    assert kinds(range(bound + 1, bound + 9)) <= kinds(range(1, bound + 1))


def test_the_bound_follows_a_guard_far_away():
    task = tasks.get("copy")
    far = Term(0, Form(1, -1), 1, where=(N - 70,))
    world = _World(task, [[term_data(t) for t in (*task.terms(), far)]], 1)
    assert world.bound()[0] >= 70
    assert at((1, 2, 3), 4, (5,)) == 24
