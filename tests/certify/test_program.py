"""The exported program: equal to the model on test instances, and runnable without torch."""

import subprocess
import sys

import pytest
import torch

from lgcourse import InputError, tasks
from lgcourse.certify import export_run
from lgcourse.certify.certificate import examine
from lgcourse.certify.program import program
from lgcourse.model.generation import generate
from lgcourse.training import Settings, generator
from lgcourse.training.runs import train_run


def loaded(whole, task, model):
    names: dict = {"__name__": "exported"}
    exec(compile(program(whole, task, model.embedding), "exported.py", "exec"), names)
    return names


@pytest.mark.parametrize("name", ["copy", "parity-cot", "shift", "addition"])
def test_equal_to_the_model_on_test_instances(name, examined):
    task, model, whole = examined(name)
    names = loaded(whole, task, model)
    for scale in (1, 2, 3, 7, 20, 60):
        prompt = task.prompt(scale, 6, generator(scale, "program"))
        hard = task.hard(scale, 3, generator(scale, "program"))
        if hard is not None:
            prompt = torch.cat([prompt, hard.tokens[:, : prompt.shape[1]]])
        answers = generate(model, prompt, scale, task.answer_length(scale)).tolist()
        assert [names["write"](line, (scale,)) for line in prompt.tolist()] == answers
        assert all(names["sizes"](line) == (scale,) for line in prompt.tolist())


def test_the_table_is_the_model_s_and_not_the_task_s(models):
    task, model = models("copy")
    whole = examine(model, task)
    signature, table, outcome = whole.found[-1]
    outcome.answers[(table.tokens[:, 0] == 3)] = 7  # as if the model had said so
    names = loaded(whole, task, model)
    assert names["write"]([1, 3, 3, 10], (3,)) == [1, 7, 7]


def test_a_model_that_is_not_certified_is_not_exported(models):
    task, model = models("copy")
    with torch.no_grad():
        model.logits.weight[[3, 4]] = model.logits.weight[[4, 3]]
    with pytest.raises(InputError, match="only a certified model is exported; this one is wrong"):
        program(examine(model, task), task, model.embedding)


def test_text_goes_in_and_out_as_in_the_task(examined):
    task, model, whole = examined("addition")
    names = loaded(whole, task, model)
    for text in ("905+128=", "7+99995=", "0+0=", "9" * 50 + "+1="):
        assert names["main"](text) == task.solve(text)
    with pytest.raises(SystemExit, match="905"):
        names["main"]("12=")
    assert len(program(whole, task, model.embedding).splitlines()) < 500


def test_the_file_runs_without_the_package(tmp_path):
    settings = Settings(
        "parity-cot", "ideal-sh", test_scales=(12,), width=16, heads=2, steps=300, samples=4
    )
    train_run(settings, tmp_path / "run", device="cpu")
    file = tmp_path / "parity.py"
    assert export_run(tmp_path / "run", file).certified
    command = [sys.executable, "-I", "-S", str(file), "1101100111="]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == tasks.get("parity-cot").solve("1101100111="), done.stderr
    with pytest.raises(InputError, match="exists already"):
        export_run(tmp_path / "run", file)
    with pytest.raises(InputError, match="Python file"):
        export_run(tmp_path / "run", tmp_path / "parity.txt")
