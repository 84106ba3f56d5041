"""Whatever is typed or lies in a file: exit code 0 or 2, one clear line, nothing overwritten.

2,000 cases in all; they are the same in every run. The last 50 are real processes.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import lgcourse
from lgcourse import cli
from lgcourse.experiments import sweeping
from lgcourse.training.runs import train_run, versions
from tests.faults import mutations
from tests.grading.handing_in import RIGHT, notebook

CASES = {
    **{"command lines": 900, "prompts": 400, "sweep files": 240, "damaged runs": 150},
    **{"damaged states": 40, "damaged sweeps": 100, "files of JSON": 70, "submissions": 50},
    "processes": 50,
}
ROOT = Path(lgcourse.__file__).parents[1]
SMALL = "--width 8 --heads 2 --layers 1 --samples 4 --hard-samples 0 --train-scale 2 --batch 4"
SMALL += " --test-scales 3 --steps"
SWEEP = {
    "tasks": ["copy", "addition-padded"],
    "embeddings": ["none", "ideal-sh"],
    "seeds": 2,
    "train_scales": [2],
    "test_scales": [3],
    "factor": 2,
    "device": "cpu",
    "settings": {"steps": 2, "width": 8, "heads": 2, "samples": 4, "hard_samples": 0},
    "grid": {"layers": [1, 2]},
    "embedding": {"none": {"steps": 1}},
    "task": {"copy": {"batch": 4}},
}
TARGETS = """
import numpy as np
def good(i, j, n): return (i == j) * 1.0
def bad(i, j, n): raise RuntimeError("two\\nlines")
def none(i, j, n): return None
"""


def times(name):
    return settings(
        max_examples=CASES[name],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # what is drawn is small already
        print_blob=False,
    )


def test_there_are_2000_cases():
    assert sum(CASES.values()) == 2000 and CASES["processes"] == 50


# --- the folder in which all of it happens --------------------------------------------------------
@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A working folder with runs, a sweep, files of every kind, and somebody's notes."""
    place = tmp_path_factory.mktemp("here")
    before = Path.cwd()
    os.chdir(place)
    with pytest.MonkeyPatch.context() as patch, quiet():
        patch.setitem(sys.modules, "distributed", None)  # nothing is looked for in a network
        patch.setattr(sweeping, "run_one", not_made)
        make(place)
        yield place
    os.chdir(before)


def make(place):
    train = ["train", "addition", "--pe", "ideal-sh", *SMALL.split(), "3"]
    assert cli.run([*train, "--out", "run"]) == 0
    learned = ["train", "copy", "--pe", "lbpe-sh", *SMALL.split(), "3"]
    assert cli.run([*learned, "--out", "learned"]) == 0
    half = lgcourse.training.load_run("run").settings
    with contextlib.suppress(KeyboardInterrupt):
        train_run(half, "half", progress=stop)
    assert cli.run(["explain", "learned", "--relation", "found.json"]) == 0
    assert cli.run(["certify", "run", "--out", "proof.json"]) == 0
    assert cli.run(["src", "copy", "--scale", "3", "--figure", "drawn.png"]) == 0
    Path("small.toml").write_text(mutations.toml_file(SWEEP), encoding="utf-8")
    assert cli.run(["sweep", "small.toml", "--out", "swept"]) == 0
    assert cli.run(["report", "swept"]) == 0
    Path("notes.txt").write_text("mine", encoding="utf-8")
    Path("answer.py").write_text("def exact_match(g, t):\n    return g", encoding="utf-8")
    Path("mine.py").write_text(TARGETS, encoding="utf-8")
    Path("loop").symlink_to("loop")


def stop(trainer):
    if trainer.step == 2:
        raise KeyboardInterrupt


def not_made(settings, device="cpu"):
    """The row of a run that failed at once: plans are fuzzed, not trainings."""
    row = {"work": "run", "key": sweeping.run_key(settings), "plan": settings.to_json()}
    return {**row, "status": "failed", "error": "no", "versions": versions(), "seconds": 0.0}


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def files(place):
    """Every file that is there with its content, by its path below a folder."""
    found = {}
    for path in place.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found[path.relative_to(place)] = path.read_bytes()
    return found


def clear(place, kept):
    """Take away what a command has made."""
    for path in sorted(place.rglob("*"), reverse=True):
        if path.relative_to(place) not in kept:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def paths(place):
    return {path.relative_to(place) for path in place.rglob("*")}


def one_line(code, out, err):
    """The property: code 0 or 2; an error is one line that says so, the last one."""
    assert code in (0, 2), (code, err)
    assert "Traceback" not in err and "Traceback" not in out
    errors = [line for line in err.split("\n") if line.startswith("error: ")]
    if code == 2:
        assert err.endswith("\n") and err.split("\n")[-2:] == [*errors, ""], err
        assert len(errors[0]) > len("error: ") + 5
    else:
        assert not errors


def called(arguments, place, changes=()):
    """Run the command line here; check the property; return code, stdout, stderr."""
    before, held = files(place), paths(place)
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.run(arguments)
        one_line(code, out.getvalue(), err.getvalue())
        after = files(place)
        lost = [str(p) for p in before if before[p] != after.get(p) and p.parts[0] not in changes]
        assert not lost, f"{lost} changed"
        new = [len(after[p]) for p in after.keys() - before.keys()]
        assert sum(new) < 20_000_000, "what is written is bounded"
    finally:
        clear(place, held)
        for path, data in before.items():
            if not (place / path).is_file() or (place / path).read_bytes() != data:
                (place / path).write_bytes(data)
    return code, out.getvalue(), err.getvalue()


def owned(arguments):
    """Return the folders that a command may go on writing in."""
    if arguments[0] in ("train", "sweep") and "--resume" in arguments:
        return ("half", "swept")
    return ("swept",) if arguments[0] == "report" else ()


# --- the cases ------------------------------------------------------------------------------------
@times("command lines")
@given(arguments=mutations.command_lines())
def test_command_lines(here, arguments):
    called(arguments, here, owned(arguments))


@times("prompts")
@given(run=st.sampled_from(["run", "learned"]), text=mutations.PROMPTS, dashes=st.booleans())
def test_prompts(here, run, text, dashes):
    code, out, _ = called(["solve", run, *(["--"] if dashes else []), text], here)
    assert out if code == 0 else not out


@times("sweep files")
@given(data=st.data())
def test_sweep_files(here, data):
    text = mutations.toml_file(data.draw(mutations.changed(SWEEP)))
    content = text.encode()
    if data.draw(st.booleans()):
        content = data.draw(mutations.damage(mutations.toml_file(SWEEP).encode()))
    Path("fuzzed.toml").write_bytes(content)
    try:
        called(["sweep", "fuzzed.toml", "--out", "fuzzed"], here)
    finally:
        Path("fuzzed.toml").unlink()


@times("damaged runs")
@given(data=st.data(), run=st.sampled_from(["run", "learned"]))
def test_damaged_runs(here, data, run):
    """Damage is seen, or it makes no difference."""
    name = data.draw(st.sampled_from(["run.json", "run.json", "model.safetensors"]))
    prompt = "1+2=" if run == "run" else "12="
    right = called(["solve", run, prompt], here)
    folder = Path(shutil.copytree(run, "fuzzed"))
    try:
        (folder / name).write_bytes(data.draw(mutations.damage((folder / name).read_bytes())))
        command = data.draw(st.sampled_from(["solve", "explain", "certify", "export", "check"]))
        arguments = {
            "solve": ["solve", "fuzzed", prompt],
            "export": ["export", "fuzzed", "new.py"],
            "check": ["check", "proof.json", "fuzzed"],
        }.get(command, [command, "fuzzed"])
        code, _, err = called(arguments, here) if command != "check" else checked(arguments, here)
        if code == 0:
            assert right[0] == 0 and called(["solve", "fuzzed", prompt], here)[:2] == right[:2]
        elif command != "export":
            assert "damaged" in err or "not a run folder" in err
    finally:
        shutil.rmtree("fuzzed")


def checked(arguments, place):
    """`check` says no with code 1; what it refuses has code 2."""
    before = files(place)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run(arguments)
    assert files(place) == before
    one_line(0 if code == 1 else code, out.getvalue(), err.getvalue())
    assert code != 1 or out.getvalue().startswith("no: ")
    return (0 if code == 1 else code), out.getvalue(), err.getvalue()


@times("damaged states")
@given(data=st.data())
def test_damaged_states(here, data):
    """A training goes on to the weights that it always has, or not at all."""
    name = data.draw(st.sampled_from(["state.safetensors"] * 3 + ["run.json"]))
    folder = Path(shutil.copytree("half", "fuzzed"))
    try:
        (folder / name).write_bytes(data.draw(mutations.damage((folder / name).read_bytes())))
        again = ["train", "addition", "--pe", "ideal-sh", *SMALL.split(), "3", "--resume"]
        before = files(here)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.run([*again, "--out", "fuzzed"])
        one_line(code, out.getvalue(), err.getvalue())
        if code == 0:
            weights = [(Path(f) / "model.safetensors").read_bytes() for f in ("fuzzed", "run")]
            assert weights[0] == weights[1]
        else:
            assert files(here) == before
    finally:
        shutil.rmtree("fuzzed")


@times("damaged sweeps")
@given(data=st.data())
def test_damaged_sweeps(here, data):
    name = data.draw(st.sampled_from(["runs.jsonl", "sweep.json"]))
    folder = Path(shutil.copytree("swept", "fuzzed"))
    try:
        (folder / name).write_bytes(data.draw(mutations.damage((folder / name).read_bytes())))
        resume = ["sweep", "small.toml", "--out", "fuzzed", "--resume"]
        command = data.draw(st.sampled_from([["report", "fuzzed"], resume]))
        called(command, here, ("fuzzed",))
    finally:
        shutil.rmtree("fuzzed")


@times("files of JSON")
@given(data=st.data(), kind=st.sampled_from(["found", "proof"]))
def test_files_of_json(here, data, kind):
    text = Path(f"{kind}.json").read_bytes()
    if data.draw(st.booleans()):
        text = data.draw(mutations.damage(text))
    else:
        text = json.dumps(data.draw(mutations.changed(json.loads(text)))).encode()
    Path("fuzzed.json").write_bytes(text)
    try:
        if kind == "found":
            scales = ["--train-scale", "2", "--test-scales", "3"]
            called(["predict", "copy", "--pe", "fuzzed.json", *scales], here)
        else:
            checked(["check", "fuzzed.json", "run"], here)
    finally:
        Path("fuzzed.json").unlink()


def test_submissions(here, tmp_path):
    """Notebooks with damage, graded together: each gets a row, none stops the others."""
    from lgcourse.grading.answers import CannotGrade
    from lgcourse.grading.grader import CANNOT, GRADED, UNREADABLE, Grader, Settings

    try:
        with Grader(Settings()) as grader:
            grader.zygote()
    except CannotGrade as why:
        pytest.skip(f"no process for student code here: {why}")
    drawn = []

    @times("submissions")
    @given(data=st.data())
    def draw(data):
        text = notebook(*RIGHT)
        if data.draw(st.booleans()):
            drawn.append(data.draw(mutations.damage(text.encode())))
        else:
            drawn.append(json.dumps(data.draw(mutations.changed(json.loads(text)))).encode())

    draw()
    assert len(drawn) >= CASES["submissions"] * 0.9
    handed_in = tmp_path / "class"
    handed_in.mkdir()
    for number, content in enumerate(drawn):
        (handed_in / f"s{number:03d}.ipynb").write_bytes(content)
    (handed_in / "whole.ipynb").write_text(notebook(*RIGHT), encoding="utf-8")
    before = files(handed_in)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run(
            ["grade", str(handed_in), "--json", "--only", "exact_match", "--timeout", "5"]
        )
    assert code in (0, 1) and "Traceback" not in err.getvalue()
    rows = {row["id"]: row for row in json.loads(out.getvalue())["submissions"]}
    assert len(rows) == len(drawn) + 1 and rows["whole"]["score"] == rows["whole"]["max_score"]
    assert all(row["status"] in (GRADED, UNREADABLE, CANNOT) for row in rows.values())
    assert files(handed_in) == before


@pytest.mark.skipif(os.name == "nt", reason="arguments there are no bytes")
@times("processes")
@given(arguments=mutations.command_lines())
def test_processes(here, arguments):
    """The same as real processes: nothing that a test runner would hide."""
    before, held = files(here), paths(here)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "lgcourse",
                *(a.encode("utf-8", "surrogateescape") for a in arguments),
            ],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
        one_line(done.returncode, out, err)
        after, mine = files(here), owned(arguments)
        assert all(before[p] == after.get(p) for p in before if p.parts[0] not in mine)
    finally:
        clear(here, held)
        for name, content in before.items():
            (here / name).write_bytes(content)
