"""Stopped anywhere and taken up again, a sweep leaves the same results."""

import re

import pytest

from lgcourse import InputError, report
from lgcourse.experiments import (
    Cell,
    Store,
    cells_of,
    result_table,
    run_one,
    sweep,
    sweeping,
    tables,
)
from lgcourse.experiments.cells import so_far
from lgcourse.experiments.plan import plan_of
from lgcourse.experiments.results import without_time

DATA = {
    "tasks": ["copy"],
    "embeddings": ["none", "ideal", "ideal-sh"],
    "seeds": 2,
    "train_scales": [2],
    "test_scales": [4],
    "settings": {"steps": 3, "width": 8, "heads": 2, "samples": 8, "hard_samples": 0},
}


def contents(folder):
    import pandas as pd

    return without_time(pd.read_csv(folder / "results.csv")).to_csv()


def quiet(line):
    pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    sweep(plan_of(DATA), folder, say=quiet)
    return folder


@pytest.mark.parametrize("pieces", [0, 2, 5, 8])
def test_interrupted_and_resumed_the_results_are_the_same(whole, tmp_path, monkeypatch, pieces):
    add, count = Store.add, 0

    def stop_after(store, row):
        nonlocal count
        if count == pieces:
            raise KeyboardInterrupt
        count += 1
        add(store, row)

    plan, folder = plan_of(DATA), tmp_path / "part"
    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", stop_after)
        with pytest.raises(KeyboardInterrupt):
            sweep(plan, folder, say=quiet)
    with (folder / "runs.jsonl").open("ab") as file:
        file.write(b'{"work": "run", "key": "cut o')  # as a power cut leaves it
    with pytest.raises(InputError, match="--resume"):
        sweep(plan, folder, say=quiet)
    sweep(plan, folder, resume=True, say=quiet)
    assert contents(folder) == contents(whole)


def test_a_finished_sweep_does_nothing_more(whole, monkeypatch):
    before = (whole / "runs.jsonl").read_bytes()
    sweep(plan_of(DATA), whole, resume=True, say=quiet)
    assert (whole / "runs.jsonl").read_bytes() == before


def test_failures_are_rows_and_are_tried_again(whole, tmp_path, monkeypatch):
    def broken(settings, device):
        if settings.seed == 1:
            return {**run_one(settings), "status": "failed", "error": "RuntimeError: no"}
        return run_one(settings, device)

    plan = plan_of(DATA)
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "run_one", broken)
        first = sweep(plan, tmp_path / "s", say=quiet)
    assert (first["done"], first["refused"], first["failed"]) == (2, 1, 3)
    table = result_table(plan, Store(tmp_path / "s"))
    assert "RuntimeError: no" in set(table["error"])
    again = sweep(plan, tmp_path / "s", resume=True, say=quiet)
    assert (again["done"], again["refused"], again["failed"]) == (4, 2, 0)
    assert contents(tmp_path / "s") == contents(whole)


def test_the_columns_and_what_cannot_exist(whole):
    table = result_table(plan_of(DATA), Store(whole))
    wanted = {"task", "pe", "seed", "train_scale", "scale", "exact_match", "predicted", "measured"}
    assert wanted | {"versions", "seconds", "steps", "width"} <= set(table.columns)
    assert list(table["scale"][:3]) == ["2", "4", "10"]
    said = {(c.pe): (c.predicted, c.measured) for c in cells_of(plan_of(DATA), Store(whole))}
    assert said["ideal"] == ("refused", "refused") and said["none"][0] == "no prediction"
    assert said["ideal-sh"] == ("generalises", "not trained")


def test_a_run_of_a_sweep_is_the_run_that_train_makes(tmp_path):
    from lgcourse.training.runs import train_run

    settings = plan_of(DATA).runs[0]
    row, run = run_one(settings), train_run(settings, tmp_path / "run", device="cpu")
    assert row["exact_match"] == run["exact_match"] and row["loss"] == run["loss"]


def test_the_report_has_every_cell_and_a_figure_with_words(whole):
    files = report.write_page(str(whole))
    assert sorted(f.rsplit("/")[-1] for f in files) == ["matrix-1.png", "report.html", "report.md"]
    text, page = ((whole / f"report.{end}").read_text() for end in ("md", "html"))
    for shown in (text, page):
        assert "ideal-sh" in shown and "not trained" in shown
        assert "Predicted and measured length generalisation, 1 task by 3 embeddings" in shown
    with pytest.raises(InputError, match="holds no sweep"):
        report.write_page(str(whole.parent))


def test_a_report_of_a_part_judges_by_the_seeds_that_are_there(tmp_path, monkeypatch):
    add, count = Store.add, 0

    def stop_after_the_first_seed(store, row):
        nonlocal count
        count += 1
        if count > 6:  # three predictions, then seed 0 of three cells
            raise KeyboardInterrupt
        add(store, row)

    plan, folder = plan_of(DATA), tmp_path / "part"
    monkeypatch.setattr(Store, "add", stop_after_the_first_seed)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, folder, say=quiet)
    cells = cells_of(plan, Store(folder))
    assert [cell.measured for cell in cells] == ["unfinished", "refused", "unfinished"]
    assert [cell.measured for cell in so_far(cells)] == ["not trained", "refused", "not trained"]
    report.write_page(str(folder))
    text = (folder / "report.md").read_text()
    assert "not complete: 2 of 4 runs are there" in text


def test_progress_says_how_many_are_done_and_the_time_left(tmp_path, capsys):
    sweep(plan_of(DATA), tmp_path / "s", say=quiet)
    shown = capsys.readouterr().err
    assert "9/9" in shown and re.search(r"\[\d\d:\d\d<\d\d:\d\d", shown)  # elapsed < left


def test_differences_say_what_is_in_question():
    def cell(predicted, far, near=1.0):
        return Cell("copy", "rpe", 10, "constant", predicted, (near,) * len(far), far, len(far))

    said = [cell("fails", (1.0, 1.0)), cell("generalises", (1.0, 0.0, 0.0)),
            cell("generalises", (0.7, 0.0)), cell("generalises", (0.1, 0.0)),
            cell("fails", (0.0,), near=0.0)]  # fmt: skip
    found = tables.differences(said, 5)
    marks = ["only if", "1 of 3 seeds", "more training may do", "conjecture fails here"]
    assert len(found) == 4 and all(m in text for m, text in zip(marks, found, strict=True))
    head, rows = tables.agreement_table(said)
    by = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert by["all"]["cells"] == "4" and by["all, not trained counted as failing"]["cells"] == "5"
