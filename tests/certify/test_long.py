"""Long sums are scored as if the model had written them, against addition done by hand."""

import long
import pytest
import store
import torch

from lgcourse.model import generate
from lgcourse.training import generator

DIGITS = (1, 2, 9, 30, 120)


@pytest.mark.parametrize("kind", long.KINDS)
@pytest.mark.parametrize("digits", DIGITS)
def test_addition_on_paper_is_that_of_python(kind, digits, models):
    task, _ = models("addition")
    prompts = long.PROMPTS[kind](task, digits, 20, generator(1, "paper"))
    for row in prompts.tolist():
        text = "".join(task.vocabulary[token] for token in row)
        a, b = (number[::-1] for number in text.removesuffix("=").split("+"))
        total, longest = long.on_paper(row[:digits], row[digits + 1 : -1])
        assert "".join(map(str, reversed(total))) == f"{int(a) + int(b):0{digits + 1}d}"
        made = [(int(a[-t:]) + int(b[-t:])) >= 10**t for t in range(1, digits + 1)]
        runs = "".join("x" if carry else " " for carry in made).split()
        assert longest == max(map(len, runs), default=0)


def test_carries_go_through_every_column(models):
    task, _ = models("addition")
    prompts = long.carries(task, 50, 3, generator(0, "carries"))
    assert task.decode(prompts[0].tolist()) == "9" * 50 + "+1="
    for row in prompts.tolist():
        assert long.on_paper(row[:50], row[51:-1])[1] >= 44


def spoil(model, how):
    """Change a model that is right, so that it is wrong on many, few or nearly no sums."""
    with torch.no_grad():
        if how == "noise":
            source = torch.Generator().manual_seed(0)
            weight = model.logits.weight
            weight += 1.5 * weight.std() * torch.randn(weight.shape, generator=source)
        elif how == "one answer":  # never says 7
            model.logits.weight[7] = 0
        elif how == "no carry":  # reads the column before no more
            model.embedding.table[:, 2:5] = -1
    return model


def first_wrong(right):
    """Return the place of the first digit that is wrong, sum by sum; their number if none is."""
    return [(row + [False]).index(False) for row in right.tolist()]


@pytest.mark.parametrize("how", ["right", "noise", "one answer", "no carry"])
def test_teacher_forcing_finds_the_first_error_of_generation(how, models, monkeypatch):
    """Sum by sum; the pieces are so small that a sum goes through several."""
    task, model = models("addition")
    model = spoil(model, how)
    exact = []
    for kind in long.KINDS:
        for digits in DIGITS:
            prompts = long.PROMPTS[kind](task, digits, 12, generator(2, kind))
            written = generate(model, prompts, digits, digits + 1)
            rows = prompts.tolist()
            true = [long.on_paper(row[:digits], row[digits + 1 : -1])[0] for row in rows]
            with monkeypatch.context() as small:
                small.setattr("lgcourse.model.transformer.PIECE", {"cpu": 50})
                forced, _ = long.right_digits(model, task, prompts, digits)
            found = first_wrong(written == torch.tensor(true))
            assert first_wrong(forced) == found
            exact += [place == digits + 1 for place in found]
    assert all(exact) if how == "right" else any(exact) and not all(exact)


def test_a_wrong_last_digit_of_a_long_sum_is_seen(models):
    """Of 5,000 digits, in several pieces: all are right but the last, and the sum is not exact."""
    task, model = models("addition")
    prompts = long.carries(task, 5000, 1, generator(0, "last"))
    assert long.score(model, task, prompts, 5000) == (1, 5000)
    with torch.no_grad():
        model.logits.weight[1] = 0  # 1 is said only at the end
    assert long.score(model, task, prompts, 5000) == (0, 5000)


# --- what is stored ------------------------------------------------------------------------------
def test_every_stored_row_is_exact_and_of_one_certified_model():
    rows = store.stored(long.NAME)
    assert [row["plan"] for row in rows if row["plan"] not in long.wanted(1)] == []
    assert {row["plan"]["digits"] for row in rows} == set(long.INSTANCES)
    for row in rows:
        assert row["exact"] == row["plan"]["instances"] and row["certificate"]["certified"]
        assert row["certificate"]["sha256"] == rows[0]["certificate"]["sha256"]
        assert row["peak_mib"] < 8 * 2**10 and row["seconds"] < 600
        if row["plan"]["kind"] == "carries":
            assert row["longest_carry"] == row["plan"]["digits"]


def test_the_table_tells_what_is_stored():
    text = "before\n" + "\n".join(long.MARKS) + "\nafter\n"
    proof = {"certified": True, "margin": 6.1, "sha256": {"weights": "a" * 64}}
    proof["sha256"]["certificate"] = "b" * 64
    rows = [
        {
            "plan": plan,
            "command": long.command(0),
            "exact": plan["instances"] - 1,
            "longest_carry": 7,
            "seconds": 1.0,
            "peak_mib": 2000,
            "certificate": proof,
        }
        for plan in reversed(long.wanted(1))
    ]
    table = long.with_table(text, rows)
    assert "| 10,000 | random | 99 of 100 | 7 | 1.0 | 2,000 |" in table
    assert table.index("10,000") < table.index("1,000,000") and table.endswith("after\n")
    assert table.count("certified for every length") == 1 and "a" * 16 in table
    assert "No run is stored" in long.with_table(text, [])
