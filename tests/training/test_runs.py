"""Run folders: nothing is lost or overwritten, damage is named, an interruption costs nothing."""

import json
import os
import signal
import subprocess
import sys

import pytest

from lgcourse import InputError
from lgcourse.report import curve_picture
from lgcourse.training import Settings, build_model, load_run
from lgcourse.training import folder as folder_module
from lgcourse.training.answer import answer
from lgcourse.training.runs import train_run
from lgcourse.training.trainer import Trainer


def settings(**change):
    base = dict(
        width=16, heads=4, layers=1, steps=25, samples=20, train_scale=4, test_scales=(4, 8)
    )
    return Settings("addition", "ideal-sh", **{**base, **change})


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "one"
    train_run(settings(), folder, picture=curve_picture)
    return folder


def copy_of(folder, tmp_path):
    import shutil

    return shutil.copytree(folder, tmp_path / "copy")


def test_a_run_can_be_read_again_and_answers(run_folder):
    run = load_run(run_folder)
    assert run.settings == settings(
        learning_rate=run.settings.learning_rate, other=run.settings.other
    )
    assert run.result["exact_match"].keys() == {"4", "8"}
    result = answer(run, "5+128=")
    assert result["true"] == "133" and result["scale"] == "3"
    assert result["agree"] == (result["answer"] == "133")
    assert "005+128" in result["notes"][0]


def test_a_run_leaves_a_picture_with_words_and_no_state(run_folder):
    assert sorted(p.name for p in run_folder.iterdir()) == [
        "curve.png",
        "model.safetensors",
        "run.json",
    ]
    assert b"Exact match over scale" in (run_folder / "curve.png").read_bytes()


def test_a_second_run_is_refused_and_resume_returns_the_first(run_folder):
    before = {p.name: p.read_bytes() for p in run_folder.iterdir()}
    with pytest.raises(InputError, match="holds a run already"):
        train_run(settings(), run_folder)
    with pytest.raises(InputError, match="seed 0, not 1"):
        train_run(settings(seed=1), run_folder, resume=True)
    result = train_run(settings(), run_folder, resume=True)
    assert result["exact_match"] == load_run(run_folder).result["exact_match"]
    assert before == {p.name: p.read_bytes() for p in run_folder.iterdir()}


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds files that are no run"):
        train_run(settings(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_bad_settings_make_no_folder(tmp_path):
    with pytest.raises(InputError):
        train_run(settings(other="hard"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_without_out_each_run_gets_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [train_run(settings(steps=1, samples=2))["run"] for _ in range(2)]
    assert folders == [
        os.path.join("runs", "addition_ideal-sh_seed0"),
        os.path.join("runs", "addition_ideal-sh_seed0_2"),
    ]


@pytest.mark.parametrize("name", ["model.safetensors", "run.json"])
@pytest.mark.parametrize("harm", ["flip", "cut", "empty"])
def test_damage_is_named(run_folder, tmp_path, name, harm):
    folder = copy_of(run_folder, tmp_path)
    data = bytearray((folder / name).read_bytes())
    if harm == "flip":
        data[len(data) // 2 if name.startswith("model") else 1] ^= 0xFF
    (folder / name).write_bytes({"flip": data, "cut": data[: len(data) // 2], "empty": b""}[harm])
    with pytest.raises(InputError, match="damaged"):
        load_run(folder)


def test_a_missing_model_and_a_missing_run(run_folder, tmp_path):
    folder = copy_of(run_folder, tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="damaged"):
        load_run(folder)
    with pytest.raises(InputError, match="not a run folder"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text", ["", "1+", "1+2", "one+two=", "1-2=", "1+2=3", "1+2==", "+1=", "²+1="]
)
def test_text_that_is_not_the_tasks_is_refused(run_folder, text):
    with pytest.raises(InputError, match="not a prompt of task 'addition'.*905"):
        answer(load_run(run_folder), text)


def test_interrupt_leaves_a_state_and_resume_gives_the_undisturbed_numbers(run_folder, tmp_path):
    folder = tmp_path / "stopped"

    def stop(trainer):
        if trainer.step == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(settings(), folder, progress=stop)
    assert (folder / "state.safetensors").is_file()
    with pytest.raises(InputError, match="not finished"):
        load_run(folder)
    train_run(settings(), folder, resume=True)
    assert (folder / "model.safetensors").read_bytes() == (
        run_folder / "model.safetensors"
    ).read_bytes()
    one, two = (json.loads((f / "run.json").read_text()) for f in (folder, run_folder))
    assert one["losses"] == two["losses"]
    assert one["result"]["exact_match"] == two["result"]["exact_match"]


def test_ctrl_c_within_a_step_waits_for_its_end(run_folder, tmp_path, monkeypatch):
    """A state saved within a step would have drawn its batch already."""
    folder, loss = tmp_path / "stopped", Trainer.loss

    def interrupted(self, batch):
        if self.step == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(self, batch)

    monkeypatch.setattr(Trainer, "loss", interrupted)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        train_run(settings(), folder)
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    train_run(settings(), folder, resume=True)
    whole = (run_folder / "model.safetensors").read_bytes()
    assert (folder / "model.safetensors").read_bytes() == whole


def test_interrupt_while_testing_loses_no_training(run_folder, tmp_path):
    folder = tmp_path / "stopped"

    def stop(scale):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(settings(), folder, testing=stop)
    steps = []
    train_run(settings(), folder, resume=True, progress=lambda trainer: steps.append(trainer.step))
    assert steps == []
    whole = (run_folder / "model.safetensors").read_bytes()
    assert (folder / "model.safetensors").read_bytes() == whole


def test_a_folder_is_claimed_by_one_run_only(tmp_path):
    record = {"status": "training"}
    folders = [folder_module.RunFolder(tmp_path / "same") for _ in range(2)]
    assert [folder.claim(record) for folder in folders] == [True, False]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["settings"].update(task="reverse"),
        lambda record: record["settings"].pop("seed"),
        lambda record: record["settings"].update(layers=10**6),
        lambda record: record.update(result={}),
        lambda record: record.pop("result"),
        lambda record: record.pop("seal"),
    ],
    ids=["task", "seed", "layers", "scores", "no scores", "no seal"],
)
@pytest.mark.parametrize("how", ["load", "resume"])
def test_a_changed_record_is_named(run_folder, tmp_path, change, how):
    folder = copy_of(run_folder, tmp_path)
    record = json.loads((folder / "run.json").read_text())
    change(record)
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="damaged"):
        load_run(folder) if how == "load" else train_run(settings(), folder, resume=True)


def test_a_finished_run_without_its_model_is_not_called_whole(run_folder, tmp_path):
    folder = copy_of(run_folder, tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="damaged"):
        train_run(settings(), folder, resume=True)


def test_a_state_of_another_model_and_a_folder_in_its_place_are_named(run_folder, tmp_path):
    for name, make in {
        "other": lambda path: path.write_bytes((run_folder / "model.safetensors").read_bytes()),
        "folder": lambda path: path.mkdir(),
    }.items():
        folder = tmp_path / name
        with pytest.raises(KeyboardInterrupt):
            train_run(settings(), folder, progress=interrupt)
        (folder / "state.safetensors").unlink()
        make(folder / "state.safetensors")
        with pytest.raises(InputError, match="damaged|not one of this model"):
            train_run(settings(), folder, resume=True)


def interrupt(trainer):
    raise KeyboardInterrupt


def test_a_copied_run_names_its_own_folder(run_folder, tmp_path):
    folder = copy_of(run_folder, tmp_path)
    assert train_run(settings(), folder, resume=True)["run"] == str(folder)


def test_a_text_beyond_a_learned_table_is_answered_with_what_the_run_knows(tmp_path):
    base = dict(width=16, heads=4, layers=1, steps=2, samples=2, train_scale=2, test_scales=(3,))
    train_run(Settings("copy", "ape-learned", **base), tmp_path / "ape")
    with pytest.raises(InputError, match="scales up to 3, the text has scale 5"):
        answer(load_run(tmp_path / "ape"), "12345=")


def test_a_damaged_state_is_named(tmp_path):
    folder = tmp_path / "stopped"

    def stop(trainer):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(settings(), folder, progress=stop)
    (folder / "state.safetensors").write_bytes(b"half")
    with pytest.raises(InputError, match="damaged"):
        train_run(settings(), folder, resume=True)


def test_an_unwritable_place_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="cannot make .*choose another place"):
        train_run(settings(), blocked / "run")


def test_writing_aside_keeps_the_old_file_when_the_disk_is_full(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module.os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        folder_module.write_aside(path, b"new")
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_killed_process_goes_on_to_the_same_weights(name, tmp_path):
    """A real process, killed at a step that its own output announces."""
    folder = tmp_path / "run"
    arguments = [
        sys.executable,
        "-m",
        "lgcourse",
        "train",
        "copy",
        "--pe",
        "ideal-sh",
        "--steps",
        "60",
    ]
    arguments += ["--width", "16", "--heads", "2", "--train-scale", "3", "--test-scales", "5"]
    arguments += ["--samples", "10", "--json"]
    slow = (
        "import sys, lgcourse.training.runs as r, lgcourse.cli as c\n"
        "r.SAVE_EVERY = 0.0\n"
        "keep = r.Saver.__call__\n"
        "def call(self, trainer):\n"
        "    keep(self, trainer)\n"
        "    if trainer.step == 30:\n"
        "        print('step 30', flush=True)\n"
        "        sys.stdin.read()\n"
        "r.Saver.__call__ = call\n"
        "c.main(sys.argv[1:])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow, *arguments[3:], "--out", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "step 30\n"
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=120)
    if name == "SIGINT":
        assert process.returncode == 130 and "--resume" in errors and "Traceback" not in errors
    assert (folder / "state.safetensors").is_file()
    done = [
        subprocess.run(
            [*arguments, "--out", str(f), *more], capture_output=True, text=True, check=True
        )
        for f, more in ((folder, ["--resume"]), (tmp_path / "whole", []))
    ]
    one, two = (json.loads(d.stdout) for d in done)
    assert one["exact_match"] == two["exact_match"] and one["loss"] == two["loss"]
    assert (folder / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_a_run_from_before_a_setting_existed_goes_on(tmp_path):
    settings, _, _ = build_model(Settings("copy", "none", train_scale=2, test_scales=(2,), steps=2))
    known = settings.to_json()
    del known["until_certified"]  # as a version wrote it that did not know this setting
    record = {"status": "training", "settings": known, "versions": {}}
    assert folder_module.RunFolder(tmp_path / "run").claim(record)
    assert train_run(settings, tmp_path / "run", resume=True)["steps"] == 2
