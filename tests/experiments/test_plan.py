"""A sweep file gives the same runs each time; wrong words get the nearest right one."""

from pathlib import Path

import pytest

from lgcourse import InputError
from lgcourse.experiments import read_plan
from lgcourse.experiments.plan import plan_of, run_key
from lgcourse.experiments.sweeping import _work

ROOT = Path(__file__).parents[2]
BASE = {"tasks": ["copy"], "embeddings": ["rpe"]}


def test_the_runs_are_the_product_in_a_fixed_order():
    data = {
        "tasks": ["copy", "addition-unequal"],
        "embeddings": ["rpe", "t5"],
        "seeds": [3, 1],
        "train_scales": [4, 6],
        "test_scales": [20, 8],
        "grid": {"width": [16, 32]},
    }
    runs = plan_of(data).runs
    assert len(runs) == 2 * 2 * 2 * 2 * 2
    found = [(r.task, r.pe, r.train_scale, r.width, r.seed) for r in runs]
    assert found == [
        (t, e, n, w, s)
        for t in data["tasks"]
        for e in data["embeddings"]
        for n in (4, 6)
        for w in (16, 32)
        for s in (3, 1)
    ]
    assert runs[0].test_scales == (4, 8, 20) and runs[4].test_scales == (6, 8, 20, 30)
    assert runs[16].test_scales == ((4, 4), (8, 8), (20, 20))
    assert len({run_key(r) for r in runs}) == len(runs) and plan_of(data).runs == runs
    assert len(plan_of(data).cells) == len(runs) / 2


def test_later_tables_win():
    plan = plan_of(
        {
            **BASE,
            "settings": {"steps": 1, "width": 8, "heads": 2, "layers": 1},
            "embedding": {"rpe": {"steps": 2, "width": 16}},
            "task": {"copy": {"steps": 3}},
            "grid": {"layers": [2]},
        }
    )
    run = plan.runs[0]
    assert (run.steps, run.width, run.heads, run.layers) == (3, 16, 2, 2)


BAD = [
    ({"taks": ["copy"]}, "did you mean 'tasks'"),
    ({"tasks": ["cpy"]}, "did you mean 'copy'"),
    ({"embeddings": ["ideal-h"]}, "did you mean 'ideal-sh'"),
    ({"tasks": []}, "at least one entry"),
    ({"tasks": ["copy", "copy"]}, "twice"),
    ({"train_scales": [0]}, "at least 1"),
    ({"test_scales": ["20y3"]}, "20x13"),
    ({"test_scales": ["20x13"]}, "one size"),
    ({"test_scales": [2.5]}, "whole number"),
    ({"seeds": 0}, "at least 1"),
    ({"seeds": [-1]}, "at least 0"),
    ({"factor": 1}, "at least 2"),
    ({"threshold": 0}, "above 0"),
    ({"device": "gpu"}, "cpu, cuda or auto"),
    ({"settings": {"step": 3}}, "did you mean 'steps'"),
    ({"settings": {"steps": "3"}}, "a whole number"),
    ({"settings": {"steps": True}}, "a whole number"),
    ({"settings": {"seed": 3}}, "unknown setting"),
    ({"settings": 3}, "[settings]"),
    ({"embedding": {"t5": {"steps": 3}}}, "'t5'"),
    ({"grid": {"width": 3}}, "list"),
    ({"grid": {"wdth": [3]}}, "did you mean 'width'"),
]


@pytest.mark.parametrize(("change", "hint"), BAD, ids=lambda v: str(v)[:40])
def test_wrong_files_get_one_clear_line(change, hint):
    with pytest.raises(InputError) as caught:
        plan_of({**BASE, **change})
    assert hint in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_plan(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("tasks = [")
    with pytest.raises(InputError, match="no TOML file"):
        read_plan(tmp_path / "bad.toml")


def test_the_quick_sweep_is_a_part_of_the_large_one():
    quick, whole = (read_plan(ROOT / "sweeps" / f"{name}.toml") for name in ("quick", "conjecture"))
    assert {run_key(run) for run in quick.runs} < {run_key(run) for run in whole.runs}
    assert quick.factor == whole.factor and quick.threshold == whole.threshold


def test_the_matrix_is_large_enough():
    plan = read_plan(ROOT / "sweeps" / "conjecture.toml")
    tasks, embeddings = {run.task for run in plan.runs}, {run.pe for run in plan.runs}
    assert len(tasks) >= 16 and len(embeddings) >= 14 and len({r.seed for r in plan.runs}) >= 5
    assert {run.test_scales for run in plan.runs} == {(10, 20, 50, 100)}


def test_what_is_done_first_says_most():
    data = {**BASE, "tasks": ["copy", "reverse"], "embeddings": ["t5", "rpe"], "seeds": [3, 1]}
    done = [(w.kind, w.settings.seed, w.settings.pe) for w in _work(plan_of(data))]
    assert [kind for kind, *_ in done] == ["predict"] * 4 + ["run"] * 8
    assert [place for _, *place in done[4::2]] == [[3, "t5"], [3, "rpe"], [1, "t5"], [1, "rpe"]]
