"""Counterexamples that join training: they are in later batches, and resuming changes nothing."""

import pytest
import torch

from lgcourse import InputError
from lgcourse.certify import until
from lgcourse.training import Settings, build_model, fit
from lgcourse.training.runs import train_run
from lgcourse.training.trainer import Trainer

PROMPT = torch.tensor([7, 7, 7, 10])  # 777= of copy: one of a thousand, so not drawn by chance


def model_of(**options):
    settings = Settings("copy", "ideal-sh", width=16, heads=2, **options)
    return build_model(settings)[1:]


@pytest.fixture
def batches(monkeypatch):
    """Record the tokens of every batch that a training learns from."""
    seen, usual = [], Trainer.loss

    def loss(trainer, batch):
        seen.append((trainer.step + 1, batch.scale, batch.tokens.clone()))
        return usual(trainer, batch)

    monkeypatch.setattr(Trainer, "loss", loss)
    return seen


def rows_equal(tokens, prompt):
    return (tokens[:, : len(prompt)] == prompt).all(1).sum().item()


def adding(trainer):
    if trainer.step == 20:
        assert trainer.add(3, PROMPT) and not trainer.add(3, PROMPT)
        assert not trainer.add(9, torch.zeros(10).long())  # no scale of the training
    return False


def test_a_found_prompt_is_in_every_later_batch_of_its_scale(batches):
    task, model = model_of()
    run = fit(model, task, [2, 3], 60, seed=0, on_check=adding, check_every=10, batch=8)
    before = [rows_equal(t, PROMPT) for step, scale, t in batches if scale == 3 and step <= 20]
    after = [rows_equal(t, PROMPT) for step, scale, t in batches if scale == 3 and step > 20]
    assert len(after) > 10 and set(before) == {0} and set(after) == {1}
    assert all(len(tokens) == 8 for *_, tokens in batches)
    assert all(t[:, 4:].equal(t[:, :3]) for _, scale, t in batches if scale == 3)  # true answers
    assert run.counterexamples == 1


def test_found_prompts_are_a_quarter_of_a_batch_at_most(batches):
    task, model = model_of()

    def many(trainer):
        for digit in range(9):
            trainer.add(3, torch.tensor([digit, digit, digit, 10]))

    fit(model, task, [3], 12, seed=0, on_check=many, check_every=6, batch=8)
    newest = [rows_equal(t, torch.tensor([8, 8, 8, 10])) for *_, t in batches[6:]]
    oldest = [rows_equal(t, torch.tensor([1, 1, 1, 10])) for *_, t in batches[6:]]
    assert min(newest) == 1 and max(oldest) == 0


@pytest.mark.parametrize("at", [17, 20, 33])
def test_resuming_is_bit_for_bit_the_same(at):
    def train(state=None, stop=None):
        task, model = model_of()
        kept = {}

        def progress(trainer):  # as `Saver` does: before the check of the step
            if trainer.step == stop:
                kept.update(trainer.state())
                raise KeyboardInterrupt

        arguments = dict(on_check=adding, check_every=10, batch=8, state=state, progress=progress)
        try:
            fit(model, task, [2, 3], 45, seed=0, **arguments)
        except KeyboardInterrupt:
            return kept
        return model.state_dict()

    whole, resumed = train(), train(train(stop=at))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    task, model = model_of()
    fit(model, task, [2, 3], 45, seed=0, batch=8)
    other = model.state_dict()
    assert not all(torch.equal(whole[name], other[name]) for name in whole)


def test_what_the_certificate_finds_joins(monkeypatch):
    task, model = model_of()
    monkeypatch.setattr(until, "right_tokens", lambda model, batch: torch.ones(1, dtype=torch.bool))
    found = []

    def watch(trainer):
        stopped = check(trainer)
        found.append({scale: prompts.tolist() for scale, prompts in trainer.found.items()})
        return stopped

    for add in (False, True):
        check = until.until_certified(task, add_counterexamples=add)
        fit(model, task, [1, 2, 3], 2, seed=0, on_check=watch, check_every=2, batch=4)
    assert found[0] == {}
    ((scale, (prompt,)),) = found[1].items()
    assert scale in (1, 2, 3) and prompt[-1] == 10 and len(prompt) == scale + 1


def test_settings_and_run_folders(tmp_path):
    with pytest.raises(InputError, match="needs until_certified"):
        Settings("copy", "ideal-sh", add_counterexamples=True)
    settings = Settings(
        "parity-cot", "ideal-sh", width=16, heads=2, steps=400, samples=4, test_scales=(12,),
        until_certified=True, add_counterexamples=True,
    )  # fmt: skip
    result = train_run(settings, tmp_path / "run", check_for=until.until_certified, device="cpu")
    assert result["certified"] and result["counterexamples"] >= 0 and result["steps"] < 400
