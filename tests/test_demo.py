"""The demo tells what it did, with the numbers of its own runs, and names untrained models."""

import json
from pathlib import Path

from lgcourse import demo


def test_the_demo_trains_three_models_and_adds_with_the_best(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo.main(scales=(3, 6), steps=8)
    out = capsys.readouterr().out
    rows = {
        line.split()[0]: line.split()
        for line in out.splitlines()
        if line.startswith(tuple(demo.STEPS))
    }
    for pe in demo.STEPS:
        run = json.loads((tmp_path / "runs" / f"addition_{pe}_seed0" / "run.json").read_text())
        assert rows[pe][1:3] == [f"{v:.3f}" for v in run["result"]["exact_match"].values()]
        assert "not trained" in " ".join(rows[pe])
    best = max(rows, key=lambda pe: float(rows[pe][2]))
    assert f"The best model is {best}. It adds two numbers of 6 digits" in out
    true = next(line.split()[1] for line in out.splitlines() if line.startswith("true"))
    plus = next(
        index
        for index, line in enumerate(out.splitlines())
        if " + " in line and line[:5] == "     "
    )
    lines = out.splitlines()
    a, b = lines[plus - 1].strip(), lines[plus].replace("+", "").strip()
    assert len(a) == len(b) == 6 and int(a) + int(b) == int(true)


def test_a_trained_model_is_not_called_untrained():
    result = {"exact_match": {"10": 0.95, "20": 0.0}, "seconds": 1.0}
    assert "not trained" not in demo.comparison({"rpe": result})[1]
    result["exact_match"]["10"] = 0.5
    assert "not trained" in demo.comparison({"rpe": result})[1]


def test_the_program_is_named_as_it_can_be_called(monkeypatch):
    assert demo.program() == "lgcourse" or Path(demo.program()).exists()
