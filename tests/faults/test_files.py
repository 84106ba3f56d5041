"""Files are whole or not there: cut at every length, on a full disk, in a read-only folder."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lgcourse import InputError, cli
from lgcourse.certify import Certificate
from lgcourse.experiments import Store, result_table
from lgcourse.experiments.plan import plan_of
from lgcourse.experiments.results import write_table
from lgcourse.grading.journal import Journal
from lgcourse.relations import saved
from lgcourse.training import folder as folder_module
from lgcourse.training import load_run
from lgcourse.training.folder import RunFolder, write_aside
from tests.grading.handing_in import RIGHT, notebook

SMALL = "--width 8 --heads 2 --layers 1 --steps 2 --samples 4 --train-scale 2 --test-scales 3"
TRAIN = ["train", "copy", "--pe", "lbpe-sh", *SMALL.split()]
SWEEP = {
    "tasks": ["copy"],
    "embeddings": ["none"],
    "seeds": 2,
    "train_scales": [2],
    "test_scales": [3],
    "settings": {"steps": 2, "width": 8, "heads": 2, "samples": 4, "hard_samples": 0},
}
TENSORS = {"a.weight": torch.arange(3.0), "step": torch.tensor(3)}
RECORD = {"status": "training", "settings": {"seed": 0}, "versions": {}}
TIMES = ["seconds", "cpu_seconds"]
ROW = {"work": "run", "key": "k", "status": "done", "error": "", "versions": {}, "seconds": 0.1}


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    assert cli.run([*TRAIN, "--out", str(folder)]) == 0
    return folder


# --- every prefix ---------------------------------------------------------------------------------
def whole_or_refused(path, read):
    """Cut a file at every length; return what `read` gives where it does not refuse."""
    data, given = path.read_bytes(), {}
    for length in range(len(data)):
        path.write_bytes(data[:length])
        try:
            given[length] = read()
        except InputError as error:
            assert "\n" not in str(error) and str(error)
    path.write_bytes(data)
    return data, given


def test_a_run_that_is_cut_anywhere_is_refused(run, tmp_path):
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    _, given = whole_or_refused(folder / "run.json", lambda: load_run(folder))
    # without the last line break the record is whole
    assert list(given) in ([], [(run / "run.json").stat().st_size - 1])


def test_weights_and_a_state_that_are_cut_anywhere_are_refused(tmp_path):
    folder = RunFolder(tmp_path)
    digest = folder.write_model(folder_module.save(TENSORS))
    model, state = tmp_path / "model.safetensors", tmp_path / "state.safetensors"
    assert whole_or_refused(model, lambda: folder.read_model(digest))[1] == {}
    folder.write_state(TENSORS)
    assert whole_or_refused(state, folder.read_state)[1] == {}
    assert folder.read_state().keys() == TENSORS.keys()


def test_a_flipped_byte_in_a_state_is_seen(tmp_path):
    folder, path = RunFolder(tmp_path), tmp_path / "state.safetensors"
    folder.write_state(TENSORS)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            state = folder.read_state()
        except InputError:
            continue
        # the header may be written in other ways that mean the same
        assert state.keys() == TENSORS.keys()
        assert all(
            torch.equal(state[k], v) and state[k].dtype == v.dtype for k, v in TENSORS.items()
        )


def test_lines_of_a_sweep_count_when_they_are_whole(tmp_path):
    store = Store(tmp_path / "s")
    store.open({}, False)
    for number in range(3):
        store.add({**ROW, "key": f"k{number}"})
    data, given = whole_or_refused(tmp_path / "s" / "runs.jsonl", store.rows)
    ends = [at for at, byte in enumerate(data) if byte == ord("\n")]  # of the rows themselves
    assert set(given) == set(range(len(data)))
    for length, rows in given.items():
        assert len(rows) == sum(end <= length for end in ends)
    for length in (0, 1, 20, len(data) // 2, len(data) - 1):
        (tmp_path / "s" / "runs.jsonl").write_bytes(data[:length])
        store.add({**ROW, "key": "new"})
        assert [row["key"] for row in store.rows()][-1] == "new", "it does not join the cut line"


def test_what_a_sweep_file_said_is_refused_when_it_is_cut(tmp_path):
    store = Store(tmp_path / "s")
    store.open(SWEEP, False)
    data, given = whole_or_refused(tmp_path / "s" / "sweep.json", store.data)
    assert set(given) <= {len(data) - 1} and all(said == SWEEP for said in given.values())


def test_results_of_grading_count_when_they_are_whole(tmp_path):
    path, made = tmp_path / "g.csv.results.jsonl", {"seed": 1}
    journal = Journal(path, made, False)
    for number in range(3):
        journal.add(f"k{number}", {"score": number})
    journal.close()
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        try:
            again = Journal(path, made, True)
        except InputError:
            assert length < data.index(b"\n")
            continue
        again.close()
        assert list(again.results) == [f"k{n}" for n in range(len(again.results))]
        assert len(again.results) >= data[:length].count(b"\n") - 1


@pytest.mark.parametrize("kind", ["relation", "certificate"])
def test_a_relation_and_a_certificate_that_are_cut_are_refused(run, tmp_path, kind):
    path = tmp_path / "written.json"
    if kind == "relation":
        assert cli.run(["explain", str(run), "--relation", str(path)]) == 0
        data, given = whole_or_refused(path, lambda: saved.load(path))
    else:
        assert cli.run(["certify", str(run), "--out", str(path)]) == 0
        data, given = whole_or_refused(path, lambda: Certificate.read(path))
    assert set(given) <= {len(data) - 1}


# --- a system that refuses ------------------------------------------------------------------------
def writers(run, folder):
    """Every writer of the library: the file, what writes it, and what stands there before."""
    store, own, plan = Store(folder / "sweep"), RunFolder(folder), plan_of(SWEEP)
    file = {name: folder / name for name in ("g.jsonl", "r.json", "f.png", "c.json", "new")}
    figure = ["src", "copy", "--scale", "3", "--figure", str(file["f.png"])]
    return {
        "record": (folder / "run.json", lambda: own.write(RECORD), b"old"),
        "weights": (folder / "model.safetensors", lambda: own.write_model(b"new"), b"old"),
        "state": (folder / "state.safetensors", lambda: own.write_state(TENSORS), b"old"),
        "plan": (store.path / "sweep.json", lambda: store.open(SWEEP, True), b"{}"),
        "table": (
            store.path / "results.csv",
            lambda: write_table(result_table(plan, store), store),
            b"old",
        ),
        "journal": (file["g.jsonl"], lambda: Journal(file["g.jsonl"], {}, True), b""),
        "relation": (
            file["r.json"],
            lambda: refused(["explain", str(run), "--relation", str(file["r.json"])]),
            None,
        ),
        "figure": (file["f.png"], lambda: refused(figure), None),
        "certificate": (
            file["c.json"],
            lambda: refused(["certify", str(run), "--out", str(file["c.json"])]),
            None,
        ),
        "claim": (folder / "run.json", lambda: own.claim(RECORD), None),
    }


def refused(arguments):
    if cli.run(arguments) == 2:
        raise InputError("the command line says so")


@pytest.mark.parametrize("step", ["fsync", "name"])
@pytest.mark.parametrize("name", writers(None, Path("x")))
def test_what_was_there_stays_when_the_system_refuses(run, tmp_path, monkeypatch, name, step):
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    path, write, old = writers(run, tmp_path)[name]
    if old is not None:
        path.write_bytes(old)
    before = contents(tmp_path)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    for function in ("replace", "link", "rename") if step == "name" else ("fsync",):
        monkeypatch.setattr(os, function, refuse)
    with pytest.raises(InputError):
        write()
    monkeypatch.undo()
    assert contents(tmp_path) == before, "old files stay, nothing lies aside"


def test_a_name_is_given_once(tmp_path):
    assert write_aside(tmp_path / "a", b"first", new=True) is True
    assert write_aside(tmp_path / "a", b"second", new=True) is False
    assert contents(tmp_path) == {Path("a"): b"first"}


def test_a_file_system_without_links_keeps_the_first_file(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    test_a_name_is_given_once(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="no hard links are made there")
def test_a_file_that_lay_aside_under_the_same_number_is_not_written_into(tmp_path):
    """A killed process may leave run.json and what it wrote aside as one file with two names."""
    (tmp_path / "run.json").write_bytes(b"whole")
    os.link(tmp_path / "run.json", tmp_path / f".run.json.{os.getpid()}.part")
    assert write_aside(tmp_path / "run.json", b"other", new=True) is False
    assert contents(tmp_path) == {Path("run.json"): b"whole"}


def test_what_a_killed_process_left_is_no_run_and_is_cleared(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.1.part").write_bytes(b"{")
    assert cli.run([*TRAIN, "--out", str(tmp_path / "run")]) == 0
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        *("curve.png", "model.safetensors", "run.json")
    ]


# --- a small disk ---------------------------------------------------------------------------------
class Disk:
    """A file system in memory that can be full or read only."""

    def __init__(self, place):
        self.place = place
        place.mkdir()
        self._mount("-t", "tmpfs", "-o", "size=256k", "tmpfs")

    def _mount(self, *options):
        command = ["mount", *options, str(self.place)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no small disk can be made here: {done.stderr.strip()}")

    def set(self, options):
        self._mount("-o", f"remount,{options}")

    def fill(self, leave):
        with open(self.place / "ballast", "wb") as file:
            free = os.statvfs(self.place)
            file.write(bytes(free.f_bavail * free.f_frsize - leave))

    def close(self):
        subprocess.run(["umount", "-l", str(self.place)], capture_output=True)


@pytest.fixture
def disk(tmp_path):
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("making a small disk needs Linux and root")
    made = Disk(tmp_path / "disk")
    yield made
    made.close()


def told(capsys, *arguments):
    """Run a command that must fail: return its only line about the error."""
    capsys.readouterr()
    assert cli.run([str(a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and err.splitlines()[-1] == lines[0]
    return lines[0]


@pytest.mark.parametrize("leave", [0, 4096, 3 * 4096, 6 * 4096])
def test_a_full_disk_stops_a_training_that_then_goes_on(run, disk, capsys, leave):
    disk.fill(leave)
    out = disk.place / "run"
    assert "No space left" in told(capsys, *TRAIN, "--out", out)
    assert not list(disk.place.rglob("*.part"))
    if out.exists() and (out / "run.json").exists():
        assert "is not finished" in told(capsys, "solve", out, "12=")
    (disk.place / "ballast").unlink()
    assert cli.run([*TRAIN, "--out", str(out), "--resume"]) == 0
    assert (out / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_a_full_disk_keeps_what_is_there(run, disk, capsys):
    kept = Path(shutil.copytree(run, disk.place / "run"))
    before = contents(kept)
    disk.fill(0)
    for arguments in (
        ["explain", kept, "--relation", disk.place / "r.json"],
        ["certify", kept, "--out", disk.place / "c.json"],
        ["predict", "copy", "--pe", "rpe", "--test-scales", "12", "--figure", disk.place / "f.png"],
        ["new-task", "mine", "--folder", disk.place / "mine"],
    ):
        assert "No space left" in told(capsys, *arguments)
    assert contents(kept) == before
    assert sorted(p.name for p in disk.place.iterdir()) == ["ballast", "run"]


def test_a_full_disk_stops_a_sweep_that_then_goes_on(disk, capsys, tmp_path):
    file = tmp_path / "s.toml"
    settings = SWEEP["settings"]
    lines = [f"{key} = {json.dumps(value)}" for key, value in SWEEP.items() if key != "settings"]
    lines += ["[settings]", *(f"{key} = {value}" for key, value in settings.items())]
    file.write_text("\n".join(lines), encoding="utf-8")
    disk.fill(4096)  # room for what the file says, not for rows
    out = disk.place / "swept"
    assert "No space left" in told(capsys, "sweep", file, "--out", out)
    (disk.place / "ballast").unlink()
    assert cli.run(["sweep", str(file), "--out", str(out), "--resume"]) == 0
    assert cli.run(["sweep", str(file), "--out", str(tmp_path / "whole")]) == 0
    plan = plan_of(SWEEP)
    one, two = (result_table(plan, Store(f)) for f in (out, tmp_path / "whole"))
    assert one.drop(columns=TIMES).equals(two.drop(columns=TIMES))


def test_a_file_may_grow_no_further(tmp_path):
    """Where no disk can be made: the system refuses files of more than 8 kB, in a real process."""
    resource = pytest.importorskip("resource", reason="POSIX limits")
    assert resource
    code = (
        "import resource, sys; from lgcourse import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); cli.main(sys.argv[1:])"
    )
    train = [*TRAIN, "--width", "32", "--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", code, *train], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: cannot write") and "File too large" in last
    assert "Traceback" not in done.stderr
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["run.json"]


# --- a folder that is read only -------------------------------------------------------------------
@pytest.fixture
def read_only(run, tmp_path, request):
    """A run in a folder that nobody may write to, root neither."""
    if os.name == "nt":
        pytest.skip("folders cannot be made read only by their mode there")
    if os.geteuid() == 0:
        disk = request.getfixturevalue("disk")
        shutil.copytree(run, disk.place / "run")
        disk.set("ro")
        return disk.place
    place = tmp_path / "closed"
    shutil.copytree(run, place / "run")
    for folder in (place / "run", place):
        folder.chmod(0o555)
    request.addfinalizer(lambda: [f.chmod(0o755) for f in (place, place / "run")])
    return place


def test_a_folder_that_is_read_only_is_named_and_stays(run, read_only, capsys, tmp_path):
    before = contents(read_only)
    kept = read_only / "run"
    file = tmp_path / "answer.ipynb"
    file.write_text(notebook(*RIGHT), encoding="utf-8")
    (tmp_path / "s.toml").write_text('tasks = ["copy"]\nembeddings = ["none"]', encoding="utf-8")
    for arguments in (
        [*TRAIN, "--out", read_only / "new"],
        [*TRAIN, "--seed", "1", "--out", kept, "--resume"],
        ["explain", kept, "--relation", read_only / "r.json"],
        ["certify", kept, "--out", read_only / "c.json"],
        ["sweep", tmp_path / "s.toml", "--out", read_only / "swept"],
        ["lrc", "band", "--scale", "3", "--figure", read_only / "f.png"],
        ["new-task", "mine", "--folder", read_only / "mine"],
        ["grade", file, "--csv", read_only / "g.csv"],
        ["grade", file, "--html", read_only / "pages"],
    ):
        line = told(capsys, *arguments)
        assert str(read_only) in line
    assert cli.run([*TRAIN, "--out", str(kept), "--resume"]) == 0, "a finished run is only read"
    assert cli.run(["solve", str(kept), "12="]) == 0
    assert contents(read_only) == before
