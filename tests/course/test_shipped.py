"""Are the models that come with the course what their trainings leave, and do scores hold?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import lgcourse
from lgcourse.authoring.weights import train_lesson
from lgcourse.errors import InputError
from lgcourse.training import Settings, shipped
from lgcourse.training.folder import RunFolder
from lgcourse.training.runs import load_run
from lgcourse.training.trainer import Run

ROOT = Path(__file__).resolve().parents[2]
RUNS = sorted(path.parent.name for path in shipped.FOLDER.glob("*/run.json"))
NAMES = shipped.shipped_names()


def used(number):
    """Return the beginnings of names that a lesson asks for."""
    (path,) = (ROOT / "course/lessons").glob(f"{number:02}_*.py")
    text = path.read_text(encoding="utf-8")
    return re.findall(r"shipped\.load_or_\w+\(\s*f\"(\d\d-)", text), text


def test_every_stored_model_is_asked_for_by_its_lesson_and_training_is_one_switch():
    assert NAMES and RUNS
    for name in [*NAMES, *RUNS]:
        asked, text = used(int(name[:2]))
        assert asked == [name[:3]]
        assert len(re.findall(r"^TRAIN = False\b", text, re.MULTILINE)) == 1
        assert "again=TRAIN" in text


def test_the_files_are_small_and_hold_weights_alone():
    files = [path for path in shipped.FOLDER.rglob("*") if path.is_file()]
    assert {path.name for path in files if path.parent != shipped.FOLDER} <= {
        "run.json",
        "model.safetensors",
    }
    assert all(path.stat().st_size < 500_000 for path in files)
    assert sum(path.stat().st_size for path in files) < 3_000_000
    for path in files:
        if path.suffix == ".json":
            assert not re.search(r"/(home|root|tmp|Users)/", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RUNS)
def test_stored_scores_are_those_of_the_stored_weights(name):
    run = load_run(shipped.FOLDER / name)
    s = run.settings
    scales = [n for n in s.test_scales if n <= 20]
    table = lgcourse.evaluate(run.model, run.task, scales, s.samples, s.seed)
    stored = {int(n): value for n, value in run.result["exact_match"].items()}
    for scale in scales:
        assert table.exact_match[scale] == pytest.approx(stored[scale], abs=1.5 / s.samples)


@pytest.mark.parametrize("number", sorted({int(name[:2]) for name in [*NAMES, *RUNS]}))
def test_a_lesson_prints_what_is_stored(number):
    """What the built lesson says of its trainings is what the files say."""
    (path,) = (ROOT / "notebooks").glob(f"{number:02}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    printed = "".join("".join(o.get("text", "")) for c in cells for o in c.get("outputs", ()))
    for name in (n for n in RUNS if int(n[:2]) == number):
        facts = RunFolder(shipped.FOLDER / name).read()["result"]
        assert f"{facts['task']}, {facts['pe']}: {facts['steps']} updates\n" in printed
    for name in (n for n in NAMES if int(n[:2]) == number):
        with safe_open(shipped.FOLDER / f"{name}.safetensors", "pt") as file:
            facts = json.loads(file.metadata()["run"])
        assert f": {facts['steps']} updates, last loss {facts['loss']:.4f}\n" in printed


@pytest.mark.slow
def test_training_again_gives_the_figures_that_are_stored(tmp_path):
    """The first run of lesson 11, from nothing: the same scores, and the same cells are read."""
    (first, *_) = train_lesson(11, tmp_path, wanted=lambda name: name == "11-reverse-lbpe-sh")
    new, old = load_run(tmp_path / first), load_run(shipped.FOLDER / first)
    assert new.result["exact_match"] == old.result["exact_match"]
    kept = [run.model.embedding.kept for run in (new, old)]
    read = [
        {str(cell) for head in range(len(k)) for cell in run.model.embedding.cells(head)}
        for k, run in zip(kept, (new, old), strict=True)
    ]
    assert read[0] == read[1] != set()


# --- the mechanism -------------------------------------------------------------------------------
@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    return tmp_path


def trained(model, loss=0.5):
    return Run(model, steps=7, seconds=1.25, losses={1: 2.0, 7: loss}, stopped=False)


def test_what_is_stored_comes_back_and_training_again_is_asked_for(place):
    made, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    shipped.store(place / "a.safetensors", trained(made))
    run = shipped.load_or_train("a", other, lambda: pytest.fail("it trained"))
    assert torch.equal(other.weight, made.weight) and torch.equal(other.bias, made.bias)
    assert (run.model, run.steps, run.losses, run.stopped) == (other, 7, {7: 0.5}, False)
    again = trained(other)
    assert shipped.load_or_train("a", other, lambda: again, again=True) is again
    assert load_file(place / "a.safetensors").keys() == {"weight", "bias"}


@pytest.mark.parametrize("damage", [b"", b"{}", b"x" * 100])
def test_a_damaged_file_and_a_wrong_model_are_told(place, damage):
    shipped.store(place / "a.safetensors", trained(torch.nn.Linear(3, 2)))
    with pytest.raises(InputError, match="a cannot be used"):
        shipped.load_or_train("a", torch.nn.Linear(4, 2), lambda: None)
    (place / "a.safetensors").write_bytes(damage)
    with pytest.raises(InputError, match="train it again"):
        shipped.load_or_train("a", torch.nn.Linear(3, 2), lambda: None)
    with pytest.raises(InputError, match="stored model 'b'"):
        shipped.load_or_train("b", torch.nn.Linear(3, 2), lambda: None)


def test_a_run_with_other_settings_is_refused(tmp_path):
    name = RUNS[0]
    settings = load_run(shipped.FOLDER / name).settings
    assert shipped.load_or_run(name, settings, tmp_path).settings == settings
    other = Settings(settings.task, settings.pe, test_scales=(10, 20), samples=200, hard_samples=0)
    with pytest.raises(InputError, match="other settings"):
        shipped.load_or_run(name, other, tmp_path)
    with pytest.raises(InputError, match="unknown stored run"):
        shipped.load_or_run("11-nothing", settings, tmp_path)
    assert list(tmp_path.iterdir()) == []
