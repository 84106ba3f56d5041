"""Training repeats, resumes and learns; evaluation equals real generation."""

import pytest
import torch

from lgcourse import InputError, evaluate, fit, tasks
from lgcourse.model import generate
from lgcourse.training import Settings, build_model
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.trainer import Trainer


def small(pe="ideal-sh", task="copy", seed=0, **options):
    options = {"width": 16, "heads": 4, "layers": 1, "test_scales": (6,), **options}
    return build_model(Settings(task, pe, seed=seed, train_scale=4, **options))


def train(seed=0, steps=30, **options):
    _, task, model = small(seed=seed)
    return fit(model, task, range(1, 5), steps=steps, seed=seed, batch=16, **options)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_the_same_seed_gives_the_same_numbers_to_the_last_digit():
    one, two = train(), train()
    assert one.losses == two.losses
    assert torch.equal(weights(one.model), weights(two.model))


def test_seeds_0_and_1_differ_in_weights_data_and_loss():
    assert not torch.equal(weights(small(seed=0)[2]), weights(small(seed=1)[2]))
    trainers = []
    for seed in (0, 1):
        _, task, model = small(seed=0)
        trainers.append(Trainer(model, task, [1, 2, 3, 4], 5, seed, 16, 0.0, "float32", "cpu"))
    first, second = (trainer.task.sample(3, 16, trainer.source).tokens for trainer in trainers)
    assert not torch.equal(first, second)
    assert train(seed=0).losses != train(seed=1).losses


def test_a_global_seed_is_neither_used_nor_changed():
    torch.manual_seed(5)
    before = torch.rand(3)
    torch.manual_seed(5)
    train(steps=2)
    assert torch.equal(torch.rand(3), before)


@pytest.mark.parametrize("stop", [1, 10, 29])
def test_going_on_from_a_state_equals_an_undisturbed_run(stop):
    whole = train(seed=3)
    states = []

    def halt(trainer):
        states.append(trainer.state())
        return trainer.step >= stop

    train(seed=3, on_check=halt, check_every=1)
    _, task, model = small(seed=7)  # other initial weights: all of it must come from the state
    rest = fit(model, task, range(1, 5), steps=30, seed=3, batch=16, state=states[-1])
    assert torch.equal(weights(rest.model), weights(whole.model))
    assert rest.losses.keys() == whole.losses.keys()
    assert all(rest.losses[s] == whole.losses[s] for s in whole.losses)


def test_check_ends_the_run_early():
    run = train(on_check=lambda trainer: trainer.step >= 20, check_every=10)
    assert run.stopped and run.steps == 20


def test_the_average_is_the_average_of_the_weights():
    _, task, model = small()
    trainer = Trainer(model, task, [2], 5, 0, 8, 0.0, "float32", "cpu")
    want = weights(model).double()
    for step in range(1, 6):
        trainer.update()
        decay = min(0.99, (1 + step) / (10 + step))
        want = decay * want + (1 - decay) * weights(model).double()
    trainer.average.copy_to(model)
    torch.testing.assert_close(weights(model).double(), want, atol=1e-6, rtol=1e-5)


def test_the_loss_is_the_cross_entropy_of_the_answer_only():
    _, task, model = small()
    trainer = Trainer(model, task, [3], 5, 0, 8, 0.0, "float32", "cpu")
    batch = task.sample(3, 8, torch.Generator().manual_seed(0))
    logits = model(batch.tokens, 3).double().log_softmax(-1)
    terms = [
        -logits[b, p - 1, batch.tokens[b, p]] for b in range(8) for p in range(7) if batch.answer[p]
    ]
    assert len(terms) == 8 * 3
    assert trainer.loss(batch).item() == pytest.approx(sum(terms).item() / len(terms), rel=1e-5)


@pytest.mark.parametrize("task_name", ["copy", "addition"])
def test_exact_match_equals_that_of_real_generation_sample_by_sample(task_name):
    """Half-trained, so that some answers are right and some wrong."""
    _, task, model = build_model(
        Settings(task_name, "ideal-sh", train_scale=3, test_scales=(6,), width=32, heads=4, seed=2)
    )

    def between(trainer):
        return 0.2 < evaluate(trainer.model, task, [3], samples=100).exact_match[3] < 0.8

    fit(model, task, [1, 2, 3], 400, seed=2, on_check=between, check_every=5, learning_rate=2e-3)
    batch = task.sample(3, 300, torch.Generator().manual_seed(9))
    forced = right_tokens(model, batch).all(dim=1)
    start, count = task.prompt_length(3), task.answer_length(3)
    written = generate(model, batch.tokens[:, :start], 3, count)
    real = (written == batch.tokens[:, start : start + count]).all(dim=1)
    assert torch.equal(forced, real)
    assert 0 < real.sum() < 300


def test_evaluate_is_keyed_by_scale_and_fresh():
    _, task, model = small()
    table = evaluate(model, task, [1, 5], samples=40, seed=0)
    assert list(table.exact_match) == [1, 5]
    assert table == evaluate(model, task, [1, 5], samples=40, seed=0)
    assert table.to_json()["exact_match"].keys() == {"1", "5"}
    assert "hard_exact_match" not in table.to_json()
    addition = build_model(Settings("addition", "none", test_scales=(4,), width=16, heads=2))
    assert evaluate(*addition[:0:-1], [4], samples=5, hard_samples=6).hard_exact_match.keys() == {4}


def test_a_model_that_is_right_scores_one_and_a_wrong_one_zero():
    task = tasks.get("copy")

    class Oracle(torch.nn.Module):
        def __init__(self, shift):
            super().__init__()
            self.shift = shift
            self.blocks = [torch.nn.Module()]
            self.blocks[0].attention = torch.nn.Module()
            self.blocks[0].attention.heads = 1
            self.one = torch.nn.Parameter(torch.zeros(1))

        def forward(self, tokens, scale):
            future = torch.roll(tokens, -1, dims=1)
            return torch.nn.functional.one_hot((future + self.shift) % 11, 11).float()

    assert evaluate(Oracle(0), task, [3], samples=20).exact_match == {3: 1.0}
    wrong = evaluate(Oracle(1), task, [3], samples=20)
    assert wrong.exact_match == {3: 0.0} and wrong.token_accuracy == {3: 0.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_scale": 0}, "train_scale"),
        ({"batch": 0}, "batch"),
        ({"seed": -1}, "seed"),
        ({"steps": -5}, "steps"),
        ({"learning_rate": 2.0}, "learning_rate"),
        ({"precision": "float16"}, "precision"),
        ({"test_scales": ()}, "test_scales"),
        ({"test_scales": (0,)}, "at least 1"),
    ],
)
def test_bad_settings_are_named(change, message):
    with pytest.raises(InputError, match=message):
        Settings("copy", "rpe", **change)


def test_cuda_that_is_not_there_is_an_error():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(InputError, match="finds no CUDA"):
        train(steps=1, device="cuda")


def test_short_training_reaches_far_with_the_ideal_relation_and_not_with_a_wrong_hint():
    _, task, model = build_model(Settings("copy", "ideal-sh", train_scale=5, test_scales=(40,)))
    fit(model, task, range(1, 6), steps=200, seed=0)
    assert evaluate(model, task, [5, 40], samples=100).exact_match == {5: 1.0, 40: 1.0}

    class WrongHint(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.blocks = model, model.blocks

        def forward(self, tokens, scale):
            return self.model(tokens, scale - 1)

    assert evaluate(WrongHint(), task, [40], samples=100).exact_match[40] <= 0.05
