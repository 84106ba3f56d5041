"""What fades at long inputs is said: low precision, a bias that saturates, spread attention."""

import math

import pytest
import torch

from lgcourse import Transformer, embeddings, tasks
from lgcourse.embeddings import PositionEmbedding
from lgcourse.training.numerics import notes, precision, saturation
from lgcourse.training.runs import train_run
from lgcourse.training.settings import Settings


class Fixed(PositionEmbedding):
    """A bias of our own: a function of distance, for every head."""

    def __init__(self, rule):
        super().__init__()
        self.rule = rule

    def bias(self, query, key, scale, context=None):
        return self.rule((query[:, None] - key[None, :]).float(), query[:, None].float())


def model_with(rule, layers=1):
    torch.manual_seed(0)
    return Transformer(11, Fixed(rule), layers, 16, 2)


def previous(gap):
    """Prefer the key before by a gap that may depend on the number of keys."""
    return lambda distance, query: gap(query + 1) * (distance == 1)


TASK = tasks.get("copy")


def test_a_fixed_gap_spreads_and_one_that_grows_with_log_keys_does_not():
    """The first key has 1 / (1 + (keys - 1) exp(-gap)) of the weight, up to content scores."""
    fixed = notes(model_with(previous(lambda keys: 6.0 + 0 * keys)), TASK, [10, 2000])
    grows = notes(model_with(previous(lambda keys: 8 * torch.log(keys + 1))), TASK, [10, 2000])
    assert len(fixed) == 1 and "attention spreads" in fixed[0] and "scale 2000, layer 1" in fixed[0]
    told = float(fixed[0].split(" of the weight")[0].split()[-1])
    assert told == pytest.approx(1 / (1 + 3000 * math.exp(-6)), abs=0.15)
    assert grows == []


def test_where_nothing_was_sharp_nothing_spreads():
    assert notes(model_with(lambda distance, query: 0 * distance), TASK, [10, 500]) == []


def test_distances_that_share_a_bucket_are_said():
    """T5's buckets: all distances from 128 on have the same number."""
    torch.manual_seed(0)
    t5 = embeddings.build("t5", TASK, width=16, heads=2)
    for parameter in t5.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    found = notes(Transformer(11, t5, 1, 16, 2), TASK, [10, 1000])
    assert len(found) == 1 and "the bias saturates" in found[0]
    assert "94 % of the keys" in found[0], "of 2,001 queries the last sees 128 keys apart"
    assert notes(Transformer(11, t5, 1, 16, 2), TASK, [10, 30]) == []


def test_an_id_that_most_keys_have_from_the_start_is_no_saturation():
    torch.manual_seed(0)
    pe = embeddings.build("ideal-sh", TASK, width=16, heads=2, other="soft")
    assert notes(Transformer(11, pe, 1, 16, 2), TASK, [10, 500]) == []


@pytest.mark.parametrize("largest, said", [(1e3, False), (1e5, False), (1e6, True), (1e30, True)])
def test_a_bias_that_swallows_scores_is_said(largest, said):
    """At 1e6 neighbouring float32 numbers are 1/16 apart; at 1e5 1/128."""
    row = torch.linspace(0, largest, 50)[None]
    step = float(torch.nextafter(row.max(), torch.tensor(math.inf)) - row.max())
    assert (step > 0.01) is said
    assert (
        any("what scores add is lost" in text for text in saturation(row[:, :5] * 0, row)) is said
    )


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_bias_that_is_no_number_is_said(value):
    assert "no number" in saturation(torch.zeros(1, 3), torch.tensor([[0.0, value]]))[0]
    assert saturation(torch.zeros(1, 3), torch.tensor([[0.0, -math.inf]])) == []


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_numbers_of_16_bits_are_said(kind):
    model = model_with(lambda distance, query: 0 * distance)
    assert precision(model) == [] == precision(model.double())
    assert str(kind).removeprefix("torch.") in precision(model.to(kind))[0]


def test_two_layers_and_two_sizes():
    task = tasks.get("addition-unequal")
    torch.manual_seed(0)
    rule = previous(lambda keys: 6.0 + 0 * keys)
    model = Transformer(len(task.vocabulary), Fixed(rule), 2, 16, 2)
    found = notes(model, task, [(3, 3), (400, 300)])
    assert ["layer 1" in found[0], "layer 2" in found[1]] == [True, True] and "400x300" in found[0]


def test_training_says_it_and_stores_it(tmp_path, capsys):
    base = dict(width=8, heads=2, layers=1, steps=30, samples=2, train_scale=5, hard_samples=0)
    result = train_run(Settings("copy", "t5", test_scales=(5, 1000), **base), tmp_path / "t5")
    saturates = [note for note in result.get("notes", []) if "saturates" in note]
    err = capsys.readouterr().err
    assert all(f"note: {note}" in err for note in result.get("notes", []))
    assert len(saturates) == 1 and "at scale 1000" in saturates[0]
    good = train_run(Settings("copy", "ideal-sh", test_scales=(5, 50), **base), tmp_path / "good")
    assert "notes" not in good and "note:" not in capsys.readouterr().err
