"""The CPU half of benchmarks/gpu_check.py: what it runs, what it says, and that it can fail."""

import importlib.util
import json
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch

from lgcourse.model import paths

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("gpu_check", ROOT / "benchmarks" / "gpu_check.py")
assert spec is not None and spec.loader is not None
gpu_check = importlib.util.module_from_spec(spec)
sys.modules["gpu_check"] = gpu_check  # its dataclass looks for its module
spec.loader.exec_module(gpu_check)

SMALL = ["--pe", "none,alibi,rpe-sh,cope", "--lengths", "16,40"]


@pytest.fixture(autouse=True)
def untyped():
    """Without the checks of shapes, which dynamo cannot trace; they run only under pytest."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_the_cpu_half(no_gpu, tmp_path, capsys):
    assert gpu_check.main([*SMALL, "--json", str(tmp_path / "result.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    done = {(row["embedding"], row["path"]) for row in result["checks"]}
    always = {"auto", "plain", "chunked", "sdpa", "cache", "gradients", "bfloat16"}
    assert {name for name, path in done if path == "gathered"} == {"rpe-sh"}
    assert {name for name, path in done if path == "flex"} == {"none", "alibi", "rpe-sh"}
    for name in ("none", "alibi", "rpe-sh", "cope"):
        assert {path for other, path in done if other == name} - {"gathered", "flex"} == always
    assert [(row["length"], row["path"]) for row in result["times"]] == [
        (length, path) for length in (16, 40) for path in ("plain", "sdpa", "flex")
    ]
    assert result["training"] is None and result["passed"] is True
    assert "torch finds no CUDA device" in result["unrun"][0]
    printed = capsys.readouterr().out
    assert "unrun: everything on a GPU, and the training" in printed and "passed" in printed


@pytest.mark.parametrize("fault", ["wrong", "broken"])
def test_a_path_that_is_wrong_or_breaks_is_found(no_gpu, fault, monkeypatch, tmp_path, capsys):
    def wrong(q, k, v, view):
        if fault == "broken":
            raise RuntimeError("no such kernel\nand more")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    monkeypatch.setattr(gpu_check, "time_paths", lambda *_: None)
    monkeypatch.setitem(paths.PATHS, "sdpa", wrong)
    assert gpu_check.main(["--pe", "alibi", "--json", str(tmp_path / "result.json")]) == 1
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    failed = [row for row in result["checks"] if not row["passed"]]
    assert [row["path"] for row in failed] == ["sdpa"] and result["passed"] is False
    printed = capsys.readouterr().out
    assert "FAILED" in printed
    assert ("RuntimeError: no such kernel\n" in printed) == (fault == "broken")


def test_a_training_that_fails_is_a_failure():
    report = gpu_check.Report("cpu", training={"exact_match": 0.98, "seconds": 1.0})
    assert not report.passed and "0.980 at 100 digits" in "\n".join(gpu_check.lines(report))
    report.training["exact_match"] = 0.99
    assert report.passed


@pytest.mark.gpu
def test_the_whole_on_a_gpu(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    assert gpu_check.main(["--json", str(tmp_path / "result.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["training"]["exact_match"] >= 0.99 and result["seconds"] < 300
