"""The command line: bad input is one line and code 2, JSON is alone on stdout, --help is quick."""

import json
import os
import subprocess
import sys

import pytest

from lgcourse import cli


def call(capsys, *arguments):
    code = cli.run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


BAD = [
    (["train", "adition", "--pe", "rpe"], "did you mean 'addition'"),
    (["train", "copy", "--pe", "rpee"], "did you mean 'rpe'"),
    (["train", "copy", "--pe", "rpe", "--train-scale", "0"], "train_scale"),
    (["train", "copy", "--pe", "rpe", "--train-scale", "-3"], "train_scale"),
    (["train", "copy", "--pe", "rpe", "--train-scale", "ten"], "--train-scale"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "a,b"], "10,20,50"),
    (["train", "copy", "--pe", "rpe", "--test-scales", ""], "10,20,50"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "0"], "10,20,50"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "20x13"], "one size"),
    (["train", "addition-unequal", "--pe", "rpe", "--test-scales", "20x13x2"], "2 sizes"),
    (["train", "copy", "--pe", "ideal"], "ideal-sh"),
    (["train", "copy", "--pe", "none", "--other", "excluded"], "no id 'other'"),
    (["train", "copy", "--pe", "rpe", "--seed", "-1"], "seed"),
    (["train", "copy", "--pe", "rpe", "--device", "tpu"], "auto, cpu, cuda"),
    (["train", "copy", "--pe", "rpe", "--heads", "7"], "multiple of heads"),
    (["train", "copy", "--pe", "rpe", "--resume"], "--out"),
    (["train", "copy"], "--pe"),
    (["solve", "nowhere", "1+1="], "not a run folder"),
    (["sweep", "nowhere.toml"], "give a sweep file"),
    (["report", "nowhere"], "holds no sweep"),
    (["predict", "copy", "--pe", "rpee"], "did you mean 'rpe'"),
    (["predict", "copy", "--pe", "ideal"], "ideal-sh"),
    (["predict", "copy", "--pe", "rpe", "--test-scales", "100000"], "choose smaller scales"),
    (["src", "sort"], "not covered"),
    (["src", "copy", "--scale", "0"], "at least 1"),
    (["lrc", "bond"], "did you mean 'band'"),
    (["lrc", "band", "--kind", "size"], "rank"),
    (["nonsense"], "nonsense"),
    (["train", "copy", "--pe", "rpe", "--train-scale", "9" * 23], "at most"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "9" * 23], "10,20,50"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "9" * 5000], "10,20,50"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "100000"], "16,384"),
    (["train", "copy", "--pe", "rpe", "--test-scales", "100000000"], "at most 1,000,000"),
    (["train", "copy", "--pe", "rpe", "--layers", "1000000"], "at most 256"),
    (["train", "copy", "--pe", "rpe", "--learning-rate", "nan"], "learning_rate"),
    (["train", "copy", "--pe", "rpe", "--learning-rate", "1"], "below 1"),
    (["train", "copy", "--pe", "none", "--other", "foo"], "auto, soft or excluded"),
    (["train", "copy", "--pe", "rpe", "--steps", "1", "--out", "x" * 300], "cannot"),
    (["train", "copy", "--pe", "rpe", "--task-option", "width=3"], "no option 'width'"),
    (["train", "addition-padded", "--pe", "rpe", "--task-option", "wide"], "NAME=NUMBER"),
    (["train", "addition-padded", "--pe", "rpe", "--task-option", "width=3"], "width 3"),
    (["predict", "copy", "--pe", "rpe", "--train-scale", "9" * 23], "at most"),
]


@pytest.mark.parametrize(("arguments", "hint"), BAD, ids=lambda v: "_".join(v)[:60])
def test_bad_input_is_one_line_and_code_2(capsys, tmp_path, monkeypatch, arguments, hint):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("error: ") and hint in err
    assert list(tmp_path.iterdir()) == []  # nothing was made


def test_train_json_is_alone_on_stdout_and_solve_reads_the_run(capsys, tmp_path):
    run = tmp_path / "run"
    small = ["--steps", "20", "--width", "16", "--heads", "2", "--samples", "10"]
    code, out, err = call(
        capsys, "train", "addition", "--pe", "ideal-sh", "--train-scale", "3", *small,
        "--test-scales", "3,5", "--out", str(run), "--json",
    )  # fmt: skip
    result = json.loads(out)
    assert code == 0 and out.count("\n") == 1
    assert result["exact_match"].keys() == result["token_accuracy"].keys() == {"3", "5"}
    assert {"seconds", "seed", "device", "hard_exact_match"} <= result.keys()
    assert "step" in err

    code, out, err = call(capsys, "solve", str(run), "905+28=", "--json")
    result = json.loads(out)
    assert code == 0 and result["true"] == "933" and result["scale"] == "3"
    code, out, err = call(capsys, "solve", str(run), "905+28=")
    assert "zero-extended" in out and "true" in out

    code, out, err = call(capsys, "solve", str(run), "905-28=")
    assert code == 2 and "905+128=" in err and err.count("\n") == 1
    code, out, err = call(capsys, "train", "addition", "--pe", "ideal-sh", "--out", str(run))
    assert code == 2 and "holds a run already" in err and err.count("\n") == 1


def test_a_learned_relation_is_explained_written_and_predicted_from(capsys, tmp_path):
    run, file = tmp_path / "run", tmp_path / "found.json"
    code, _, err = call(
        capsys, "train", "copy", "--pe", "lbpe-sh", "--train-scale", "5", "--steps", "250",
        "--width", "32", "--heads", "2", "--test-scales", "5,30", "--samples", "20",
        "--out", str(run), "--json",
    )  # fmt: skip
    assert code == 0, err
    figure = str(tmp_path / "found.png")
    options = ["--relation", str(file), "--figure", figure]
    code, out, err = call(capsys, "explain", str(run), *options, "--json")
    found = json.loads(out)
    assert code == 0 and found["agreement"]["agrees"] and found["prediction"]["generalises"]
    assert {row["words"] for row in found["relation"]} == {"i - j - n = 0"}
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    for scales, generalises in (("30", True), ("30,400", True)):
        code, out, _ = call(
            capsys, "predict", "copy", "--pe", str(file), "--train-scale", "5",
            "--test-scales", scales, "--json",
        )  # fmt: skip
        assert code == 0 and json.loads(out)["generalises"] is generalises
    code, out, _ = call(capsys, "predict", "reverse", "--pe", str(file), "--json")
    assert json.loads(out)["generalises"] is False, "it is the relation of another task"
    code, out, err = call(capsys, "explain", str(run), "--relation", str(file))
    assert code == 2 and "exists already" in err and err.count("\n") == 1
    code, out, err = call(capsys, "explain", str(run), "--relation", str(tmp_path / "found.txt"))
    assert code == 2 and "found.json" in err
    code, out, _ = call(capsys, "explain", str(run))
    assert "i - j - n = 0" in out and "100.0 %" in out


def test_a_run_is_certified_checked_and_exported(capsys, tmp_path):
    run, proof, program = (str(tmp_path / name) for name in ("run", "proof.json", "copy.py"))
    code, out, err = call(
        capsys, "train", "copy", "--pe", "ideal-sh", "--train-scale", "5", "--steps", "600",
        "--width", "32", "--heads", "2", "--test-scales", "5,30", "--samples", "20",
        "--until-certified", "--out", run, "--json",
    )  # fmt: skip
    assert code == 0, err
    trained = json.loads(out)
    assert trained["certified"] is True and trained["steps"] < 600
    code, out, _ = call(capsys, "certify", run, "--out", proof, "--json")
    made = json.loads(out)
    keys = {"certified", "signatures", "tuples", "margin", "reason", "counterexample"}
    assert code == 0 and keys <= made.keys()
    assert made["certified"] is True and made["tuples"] >= 10 and made["margin"] > made["error"]
    code, out, _ = call(capsys, "check", proof, run)
    assert code == 0 and out.startswith("holds: ")
    code, out, _ = call(capsys, "export", run, program)
    assert code == 0 and "every scale" in out
    clean = [sys.executable, "-I", program, "31415926535="]
    answer = subprocess.run(clean, capture_output=True, text=True, check=True)
    assert answer.stdout.strip().endswith("31415926535")
    code, _, err = call(capsys, "certify", run, "--out", proof)
    assert code == 2 and "exists already" in err
    code, _, err = call(capsys, "check", str(tmp_path / "run" / "run.json"), run)
    assert code == 2 and "no certificate" in err and err.count("\n") == 1
    claim = json.loads((tmp_path / "proof.json").read_text())
    claim["sha256"]["weights"] = "0" * 64
    (tmp_path / "proof.json").write_text(json.dumps(claim))
    code, out, _ = call(capsys, "check", proof, run)
    assert code == 1 and out.startswith("no: ") and "weights" in out


def test_a_model_without_a_proof_is_not_exported(capsys, tmp_path):
    run = str(tmp_path / "run")
    small = ["--steps", "2", "--width", "16", "--heads", "2", "--samples", "4"]
    code, _, _ = call(
        capsys, "train", "copy", "--pe", "rpe", "--train-scale", "3", "--test-scales", "3",
        "--out", run, *small, "--json",
    )  # fmt: skip
    assert code == 0
    code, out, _ = call(capsys, "certify", run)
    assert code == 0 and "refused" in out and "because" in out
    code, _, err = call(capsys, "export", run, str(tmp_path / "copy.py"))
    assert code == 2 and err.count("\n") == 1 and not (tmp_path / "copy.py").exists()


def test_two_sizes_in_the_json_keys(capsys, tmp_path):
    small = ["--steps", "2", "--width", "16", "--heads", "2", "--samples", "4"]
    code, out, _ = call(
        capsys, "train", "addition-unequal", "--pe", "ideal-sh", "--test-scales", "4x2,3x5",
        "--out", str(tmp_path / "r"), "--json", "--train-scale", "3", *small,
    )  # fmt: skip
    assert code == 0 and json.loads(out)["exact_match"].keys() == {"4x2", "3x5"}
    code, out, _ = call(
        capsys, "predict", "addition-unequal", "--pe", "ideal-sh", "--train-scale", "3",
        "--test-scales", "4,5x3", "--json",
    )  # fmt: skip
    assert code == 0 and json.loads(out)["resolvable"] == {"4x4": 1.0, "5x3": 1.0}


def test_theory_on_the_command_line(capsys):
    _, out, _ = call(capsys, "predict", "copy", "--pe", "ideal-sh", "--test-scales", "20", "--json")
    result = json.loads(out)
    assert result["generalises"] is True and result["resolvable"] == {"20": 1.0}
    assert {"src_train", "src_test", "reason"} <= result.keys()
    _, out, _ = call(capsys, "predict", "copy", "--pe", "rpe", "--test-scales", "20", "--json")
    assert json.loads(out)["generalises"] is False
    _, out, _ = call(capsys, "predict", "sort", "--pe", "rpe", "--json")
    assert json.loads(out)["generalises"] is None
    _, out, _ = call(capsys, "predict", "parity-direct", "--pe", "ideal-sh", "--json")
    assert json.loads(out)["generalises"] is False
    _, out, _ = call(capsys, "src", "copy", "--scale", "4", "--pe", "ape", "--json")
    # copy at n reads key t - 1 for t = 1..n: with ids j there are n operators up to n
    assert json.loads(out) == {
        "src": {"1": 1, "2": 1, "3": 1, "4": 1},
        "induced": {"1": 1, "2": 2, "3": 3, "4": 4},
    }
    _, out, _ = call(capsys, "src", "addition-unequal", "--scale", "3", "--json")
    assert json.loads(out)["src"] == {"1": 2, "2": 5, "3": 6}
    _, out, _ = call(capsys, "lrc", "band", "--scale", "5", "--json")
    # distances 0, 1, 3 carry the band: the third operator first appears at scale 4
    assert json.loads(out) == {"lrc": {"1": 1, "2": 2, "3": 2, "4": 3, "5": 3}}


def test_list_names_everything(capsys):
    code, out, _ = call(capsys, "list", "--json")
    names = json.loads(out)
    assert code == 0 and "addition" in names["tasks"] and "ideal-sh" in names["embeddings"]
    assert "rpe-sh" in names["relations"] and "band" in names["targets"]


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["train", "--help"]])
def test_torch_is_not_imported_for_help_and_list(arguments):
    code = (
        "import sys\nfrom lgcourse.cli import run\n"
        f"assert run({arguments!r}) == 0\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_lab_prints_its_command_and_names_the_lessons(capsys):
    code, out, _ = call(capsys, "lab", "--dry")
    assert code == 0 and "jupyterlab" in out and "01_" in out
    code, _, err = call(capsys, "lab", "99", "--dry")
    assert code == 2 and "lessons here: 1" in err


def test_without_arguments_the_help_is_shown(capsys):
    code, out, _ = call(capsys)
    assert code == 0 and "train" in out and out.count("\n") > 5


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_behind_the_output_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lgcourse", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "space" in done.stderr


def test_a_text_that_starts_with_a_minus_is_a_text(capsys, tmp_path):
    small = ["--steps", "1", "--width", "16", "--heads", "2", "--samples", "2"]
    call(capsys, "train", "copy", "--pe", "none", "--out", str(tmp_path / "r"), *small)
    code, _, err = call(capsys, "solve", str(tmp_path / "r"), "-1+1=")
    assert code == 2 and "31415=" in err and err.count("\n") == 1


def test_a_fault_of_ours_is_not_called_bad_input(monkeypatch):
    from lgcourse.training import runs

    def broken(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr(runs, "train_run", broken)
    with pytest.raises(RuntimeError):
        cli.run(["train", "copy", "--pe", "rpe"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "copy", "--pe", "rpe", "--test-scales", "12"],
        ["predict", "sort", "--pe", "rpe"],
        ["src", "addition", "--scale", "6", "--pe", "ape"],
        ["lrc", "band", "--scale", "6"],
    ],
    ids=lambda a: "_".join(a[:2]),
)
def test_figures_are_new_png_files(capsys, tmp_path, arguments):
    path = tmp_path / "answer.png"
    code, out, _ = call(capsys, *arguments, "--json", "--figure", str(path))
    assert code == 0 and json.loads(out)
    assert path.read_bytes().startswith(b"\x89PNG") and b"Description" in path.read_bytes()
    code, _, err = call(capsys, *arguments, "--figure", str(path))
    assert code == 2 and "exists already" in err
    code, _, err = call(capsys, *arguments, "--figure", str(tmp_path / "answer.pdf"))
    assert code == 2 and "answer.png" in err
    assert [p.name for p in tmp_path.iterdir()] == ["answer.png"]


def test_an_interrupt_while_packages_are_imported_ends_the_process_at_once():
    """In a real process: the handler that `main` sets does not raise within an import."""
    code = (
        "import os, signal, sys\n"
        "from lgcourse import cli\n"
        "cli.run = lambda arguments: os.kill(os.getpid(), signal.SIGINT) or 0\n"
        "cli.main(['list'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130 and done.stderr == "\nstopped\n"


def test_a_run_of_the_command_line_has_its_picture(capsys, tmp_path):
    small = ["--steps", "1", "--width", "16", "--heads", "2", "--samples", "2"]
    call(capsys, "train", "copy", "--pe", "none", "--out", str(tmp_path / "r"), *small)
    picture = (tmp_path / "r" / "curve.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and b"Exact match over scale" in picture


SWEEP = """
tasks = ["copy"]
embeddings = ["none", "ideal-sh"]
seeds = 2
train_scales = [2]
test_scales = [3]
factor = 2
settings = {steps = 2, width = 8, heads = 2, samples = 4, hard_samples = 0}
"""


def test_a_sweep_is_stored_once_and_reported(capsys, tmp_path):
    file, out = tmp_path / "small.toml", tmp_path / "results"
    file.write_text(SWEEP, encoding="utf-8")
    code, stdout, _ = call(capsys, "sweep", str(file), "--out", str(out), "--json")
    said = json.loads(stdout)
    assert code == 0 and said["runs"] == said["done"] == 4 and said["failed"] == 0
    lines = (out / "runs.jsonl").read_bytes()
    again = call(capsys, "sweep", str(file), "--out", str(out))
    assert again[0] == 2 and "--resume" in again[2]
    assert call(capsys, "sweep", str(file), "--out", str(out), "--resume")[0] == 0
    assert (out / "runs.jsonl").read_bytes() == lines, "nothing is made twice"
    code, stdout, _ = call(capsys, "report", str(out))
    assert code == 0 and stdout.split() == [
        str(out / name) for name in ("matrix-1.png", "report.md", "report.html")
    ]
    assert "ideal-sh" in (out / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text, told",
    [
        (SWEEP.replace("tasks", "taks"), "tasks"),
        (SWEEP.replace("copy", "coppy"), "did you mean 'copy'"),
        (SWEEP.replace("[2]", "[0]"), "train_scales"),
        (SWEEP.replace("seeds = 2", "seeds ="), "no TOML file"),
    ],
)
def test_a_wrong_sweep_file_is_one_line(capsys, tmp_path, text, told):
    file = tmp_path / "wrong.toml"
    file.write_text(text, encoding="utf-8")
    code, out, err = call(capsys, "sweep", str(file))
    assert code == 2 and out == "" and told in err and "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wrong.toml"]


def test_dask_without_its_package_says_what_to_install(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    file, out = tmp_path / "small.toml", tmp_path / "results"
    file.write_text(SWEEP, encoding="utf-8")
    code, _, err = call(
        capsys, "sweep", str(file), "--out", str(out), "--dask", "tcp://127.0.0.1:9"
    )
    assert code == 2 and "pip install distributed" in err and not out.exists()
