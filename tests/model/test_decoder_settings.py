"""The options of the decoder and the embedding in settings, run folders and the command line."""

import json

import pytest
import torch

from lgcourse import embeddings, fit
from lgcourse.cli import parse_values, run
from lgcourse.training import Settings, build_model, load_run, train_run
from lgcourse.training.folder import RunFolder

SMALL = {"width": 16, "heads": 4, "train_scale": 3, "test_scales": (4,), "steps": 2, "samples": 5}
NEW = ("norm", "tied", "loops", "dropout", "pe_options")


def test_settings_reach_the_decoder_and_the_embedding():
    settings = Settings(
        "copy",
        "rope",
        norm="post",
        tied=True,
        loops=2,
        dropout=0.1,
        pe_options={"pairing": "interleaved", "base": 500.0},
        **SMALL,
    )
    model = build_model(settings)[2]
    assert (model.loops, model.dropout, model.logits) == (2, 0.1, None)
    assert {block.norm for block in model.blocks} == {"post"}
    assert (model.embedding.pairing, model.embedding.base) == ("interleaved", 500.0)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_random_weights_of_an_embedding_come_from_the_seed(monkeypatch):
    class Drawn(embeddings.PositionEmbedding):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3))

    def make(name, task, width, heads, max_scale=None, other="auto"):
        return Drawn()

    monkeypatch.setitem(embeddings.registry._places, "drawn", make)

    def weight(seed):
        return build_model(Settings("copy", "drawn", seed=seed, **SMALL))[2].embedding.weight

    first = weight(0)
    torch.rand(3)  # the global source plays no part
    assert torch.equal(first, weight(0)) and not torch.equal(first, weight(1))


def test_an_old_run_folder_still_loads(tmp_path):
    settings = Settings("copy", "ideal-sh", **SMALL)
    train_run(settings, tmp_path / "run", device="cpu")
    folder = RunFolder(tmp_path / "run")
    record = folder.read()
    assert {name: record["settings"].pop(name) for name in NEW} == {
        "norm": "pre",
        "tied": False,
        "loops": 1,
        "dropout": 0.0,
        "pe_options": {},
    }
    folder.write(record)
    assert load_run(tmp_path / "run").settings == build_model(settings)[0]


def test_a_run_with_every_option_is_stored_and_read_again(tmp_path, capsys):
    out = str(tmp_path / "run")
    sizes = "--width 16 --heads 4 --train-scale 3 --test-scales 4 --steps 3 --samples 5"
    options = "--norm post --tied --loops 2 --dropout 0.2 --pe-option base=100"
    line = f"train copy --pe rope {sizes} {options} --device cpu --json --out {out}"
    assert run(line.split()) == 0
    result = json.loads(capsys.readouterr().out)
    loaded = load_run(out)
    assert loaded.result["exact_match"] == result["exact_match"]
    assert loaded.settings.pe_options == {"base": 100} and loaded.model.embedding.base == 100.0
    assert (loaded.settings.tied, loaded.settings.loops, loaded.settings.dropout) == (True, 2, 0.2)


def test_training_with_dropout_resumes_to_the_same_weights():
    def weights(state=None, stop=None):
        states = []

        def halt(trainer):
            states.append(trainer.state())
            return trainer.step == stop

        settings = Settings("copy", "ideal-sh", dropout=0.3, **SMALL)
        _, task, model = build_model(settings)
        fit(model, task, [1, 2, 3], 12, 0, on_check=halt, check_every=1, batch=8, state=state)
        return torch.cat([p.detach().flatten() for p in model.parameters()]), states[-1]

    whole, _ = weights()
    _, halfway = weights(stop=5)
    assert torch.equal(weights(state=halfway)[0], whole)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--norm prae", "norm must be pre or post, got 'prae'"),
        ("--loops 0", "loops must be a whole number of at least 1, got 0"),
        ("--loops 9999", "loops must be at most 256"),
        ("--dropout 1", "dropout must be at least 0 and below 1, got 1.0"),
        ("--dropout nan", "dropout must be at least 0 and below 1, got nan"),
        ("--pe-option base", "is NAME=VALUE, such as pairing=half; got 'base'"),
        ("--pe-option base=", "is NAME=VALUE"),
        ("--pe-option base=1e4 --pe-option base=2e4", "'base' of the embedding is given twice"),
        ("--pe-option width=3", "'width' is no --pe-option: give --width"),
        ("--pe-option bas=3", "has no option 'bas'"),
        ("--pe-option pairing=quarter", "unknown pairing 'quarter'"),
        ("--pe-option base=inf", "base must be a number above 1, got 'inf'"),
    ],
)
def test_bad_options_get_one_line(option, message, tmp_path, capsys):
    line = f"train copy --pe rope {option} --steps 1 --device cpu --out {tmp_path / 'run'}"
    assert run(line.split()) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert not (tmp_path / "run").exists()


def test_values_are_read_simply():
    texts = ["a=1", "b=-2", "c=1e3", "d=0.5", "e=True", "f=false", "g=half", "h=nan", "i=1=2"]
    assert parse_values(texts) == {
        **{"a": 1, "b": -2, "c": 1000.0, "d": 0.5, "e": True, "f": False},
        **{"g": "half", "h": "nan", "i": "1=2"},
    }
