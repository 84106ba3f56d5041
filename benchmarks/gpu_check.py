"""Does everything that runs on the CPU run on a GPU, with the same result, and how fast?

    python benchmarks/gpu_check.py                  check, time and train on the GPU
    python benchmarks/gpu_check.py --json FILE      and write the results into a file

It checks every position embedding on every attention path against the plain path on the CPU, times
the paths plain, sdpa and flex at growing lengths, and trains addition with ideal-sh, in under five
minutes: a part that takes longer stops and says what is unrun. Where there is no GPU, the first two
parts run on the CPU with small sizes, and the rest is unrun. The exit code is 0 if everything that
ran was right.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from lgcourse import InputError, Transformer, embeddings, evaluate, fit, tasks
from lgcourse.embeddings import PositionEmbedding
from lgcourse.model import Cache, View
from lgcourse.model.paths import PATHS
from lgcourse.training import Settings, build_model

SCALE, WIDTH, HEADS = 30, 64, 8
LENGTHS = {"cuda": (128, 512, 2048, 8192, 16_384), "cpu": (128, 256, 512)}
TIMED = ("plain", "sdpa", "flex")
TOLERANCE = {"cuda": 1e-4, "cpu": 1e-5}  # of logits of size about 1, in float32
SECONDS = {"checks": 120, "times": 100}  # a part that takes longer stops and says what is unrun


@dataclass
class Report:
    """What was found: rows of checks and times, the training, and what could not be run."""

    device: str
    checks: list[dict[str, Any]] = field(default_factory=list)
    times: list[dict[str, Any]] = field(default_factory=list)
    training: dict[str, Any] | None = None
    unrun: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether all that ran was right."""
        trained = self.training is None or self.training["exact_match"] >= 0.99
        return trained and all(row["passed"] for row in self.checks)


def model_of(name: str) -> tuple[Any, Transformer]:
    """Return a task and a model with random tables; `ideal` needs a task of one length."""
    for task_name in ("addition", "addition-padded"):
        task = tasks.get_for(task_name, SCALE)
        try:
            made = embeddings.build(name, task, width=WIDTH, heads=HEADS, max_scale=SCALE)
        except InputError as error:
            refused = error
            continue
        torch.manual_seed(0)
        model = Transformer(len(task.vocabulary), made, 2, WIDTH, HEADS).eval()
        with torch.no_grad():  # tables start at zero
            for parameter in model.positions.parameters():
                parameter.normal_(std=0.3)
        return task, model
    raise refused


def check_embeddings(names: list[str], device: str, report: Report) -> None:
    """Compare every embedding on every path, with a cache and in its gradients, with the CPU."""
    end = time.monotonic() + SECONDS["checks"]
    for name in names:
        if time.monotonic() > end:
            report.unrun.append(f"checks of {name}: out of time")
            continue
        task, model = model_of(name)
        tokens = task.sample(SCALE, 4, torch.Generator().manual_seed(0)).tokens
        want, slopes = plain_on_cpu(model, tokens)
        model.to(device)
        here = tokens.to(device)
        for path in ("auto", *PATHS, "cache", "gradients", "bfloat16"):
            row = {"embedding": name, "path": path}
            try:
                row |= compare(model, here, path, want, slopes)
            except InputError as error:
                if path in ("gathered", "flex"):  # not every embedding offers what these need
                    continue
                row |= {"difference": None, "passed": False, "error": str(error)}
            except Exception as error:  # the other rows are worth knowing, too
                first = (str(error).splitlines() or [""])[0]
                row |= {"difference": None, "passed": False}
                row["error"] = f"{type(error).__name__}: {first}"
            report.checks.append(row)


def compare(model: Transformer, tokens, path: str, want, slopes) -> dict[str, Any]:
    """Return how far one path lies from what is wanted, relative to the largest number there."""
    allowed = TOLERANCE[tokens.device.type]
    if path == "gradients":
        got, want, allowed = gradients(model, tokens), slopes, 10 * allowed
    elif path == "bfloat16":
        got, allowed = low_precision(model, tokens), 0.05
    else:
        got = run_path(model, tokens, path)
    gap = (got.float().cpu() - want).abs()
    gap = gap.mean() if path == "bfloat16" else gap.max()
    difference = gap.item() / max(1.0, want.abs().max().item())
    return {"difference": difference, "passed": difference <= allowed}


def plain_on_cpu(model: Transformer, tokens) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits and gradients of the plain path on the CPU."""
    model.path = "plain"
    slopes = gradients(model, tokens)
    with torch.no_grad():
        logits = model(tokens, SCALE)
    model.path = "auto"
    return logits, slopes


def gradients(model: Transformer, tokens) -> torch.Tensor:
    """Return the gradients of a loss for all parameters that have one."""
    model.zero_grad()
    model(tokens, SCALE).log_softmax(-1)[..., 0].mean().backward()
    slopes = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return torch.cat(slopes).float().cpu()


@torch.no_grad()
def run_path(model: Transformer, tokens, path: str) -> torch.Tensor:
    """Return the logits of one path, or of the automatic one in parts, with a cache."""
    torch.compiler.reset()  # one compiled kernel per embedding
    if path == "cache":
        cache = Cache(capacity=tokens.shape[1])
        parts = tokens.split([40, 1, 1, tokens.shape[1] - 42], dim=1)
        return torch.cat([model(part, SCALE, cache) for part in parts], dim=1)
    model.path = path
    try:
        return model(tokens, SCALE)
    finally:
        model.path = "auto"


@torch.no_grad()
def low_precision(model: Transformer, tokens) -> torch.Tensor:
    """Return the logits under bfloat16 autocast."""
    with torch.autocast(tokens.device.type, torch.bfloat16):
        return model(tokens, SCALE)


def time_paths(lengths: tuple[int, ...], device: str, report: Report) -> None:
    """Time one attention with ALiBi: milliseconds, and on a GPU the memory that it takes."""
    end = time.monotonic() + SECONDS["times"]
    position = embeddings.build("alibi", width=WIDTH, heads=HEADS).to(device)
    for length in lengths:
        for path in TIMED:
            if time.monotonic() > end:
                report.unrun.append(f"time of {path} at {length:,} tokens: out of time")
                continue
            try:
                row = time_path(position, length, path, device)
            except torch.OutOfMemoryError:
                report.unrun.append(f"time of {path} at {length:,} tokens: out of memory")
                continue
            report.times.append({"length": length, "path": path, **row})


@torch.no_grad()
def time_path(position: PositionEmbedding, length: int, path: str, device: str) -> dict[str, Any]:
    """Return the quickest of some passes; compiling is not counted."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, HEADS, length, WIDTH // HEADS, device=device).unbind()
    at = torch.arange(length, device=device)
    view = View(position, at, at, None)
    torch.compiler.reset()
    PATHS[path](q, k, v, view)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() if device == "cuda" else 0
    quickest = float("inf")
    for _ in range(5):
        wait(device)
        start = time.perf_counter()
        PATHS[path](q, k, v, view)
        wait(device)
        quickest = min(quickest, time.perf_counter() - start)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if device == "cuda" else None
    return {"milliseconds": 1e3 * quickest, "megabytes": peak}


def wait(device: str) -> None:
    """Wait until the GPU has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def train(report: Report) -> None:
    """Train addition on 1 to 10 digits with ideal-sh, and test it at 100."""
    settings, task, model = build_model(Settings("addition", "ideal-sh", test_scales=(10, 100)))
    start = time.perf_counter()
    run = fit(model, task, range(1, 11), settings.steps, device="cuda")
    scores = evaluate(model, task, [100], samples=200).exact_match
    whole = time.perf_counter() - start
    report.training = {"exact_match": scores[100], "seconds": run.seconds, "with_test": whole}


def lines(report: Report) -> list[str]:
    """Return the report as text."""
    paths = list(dict.fromkeys(row["path"] for row in report.checks))
    text = [f"device: {report.device}", "", "largest difference from the plain path on the CPU"]
    text.append(f"{'embedding':16}" + "".join(f"{path:>11}" for path in paths))
    for name in dict.fromkeys(row["embedding"] for row in report.checks):
        mine = {r["path"]: r for r in report.checks if r["embedding"] == name}
        cells = [_cell(mine.get(path)) for path in paths]
        text.append(f"{name:16}" + "".join(f"{cell:>11}" for cell in cells))
    text += ["(mean for bfloat16; '-': not offered by the embedding; '!': too large)", ""]
    text.append("one attention, 8 heads of 8, ALiBi: milliseconds (MiB)")
    text.append(f"{'length':>8}" + "".join(f"{path:>20}" for path in TIMED))
    for length in dict.fromkeys(row["length"] for row in report.times):
        times = {r["path"]: r for r in report.times if r["length"] == length}
        row = "".join(f"{_time(times.get(path)):>20}" for path in TIMED)
        text.append(f"{length:8,}{row}")
    if report.training is not None:
        text.append(
            f"\ntraining, addition with ideal-sh: {report.training['seconds']:.1f} s, exact match "
            f"{report.training['exact_match']:.3f} at 100 digits (wanted: at least 0.99)"
        )
    failed = [row for row in report.checks if "error" in row]
    text += ["", *(f"{row['embedding']}, {row['path']}: {row['error']}" for row in failed)]
    text += [f"unrun: {what}" for what in report.unrun]
    text.append(f"{'passed' if report.passed else 'FAILED'}, {report.seconds:.0f} s in all")
    return text


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if row["difference"] is None:
        return "error!"
    return f"{row['difference']:.1e}{'' if row['passed'] else '!'}"


def _time(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    memory = "" if row["megabytes"] is None else f" ({row['megabytes']:,.0f})"
    return f"{row['milliseconds']:.2f}{memory}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the results into this file, too")
    parser.add_argument("--pe", help="embeddings to check, with commas; default: all")
    parser.add_argument("--lengths", help="lengths to time, with commas")
    chosen = parser.parse_args(arguments)
    names = chosen.pe.split(",") if chosen.pe else embeddings.names()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lengths = LENGTHS[device]
    if chosen.lengths:
        lengths = tuple(int(length) for length in chosen.lengths.split(","))
    start = time.perf_counter()
    report = Report(torch.cuda.get_device_name() if device == "cuda" else platform.machine())
    if device == "cuda":
        train(report)
    else:
        report.unrun.append("everything on a GPU, and the training: torch finds no CUDA device")
    time_paths(lengths, device, report)
    check_embeddings(names, device, report)
    report.seconds = time.perf_counter() - start
    print("\n".join(lines(report)))
    if chosen.json:
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        data = {**asdict(report), "passed": report.passed, "versions": versions}
        Path(chosen.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
