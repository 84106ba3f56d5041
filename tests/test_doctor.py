"""Does the doctor find each fault, name its mend, and survive whatever it looks at?

Faults are simulated: missing and old packages in the metadata, broken copies of torch that a real
second process starts, kernels of other Pythons, full disks.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from lgcourse import doctor
from lgcourse.doctor import Check

DECLARED = [
    "torch>=2.4",
    "einops>=0.8",
    'jupyterlab>=4.2; extra == "course"',
    'pandas>=2.2; extra == "sweep"',
    "tomli>=2.0; python_version < '3.11' and extra == 'sweep'",
]
INSTALLED = {"torch": "2.13.0+cpu", "einops": "0.8.2", "jupyterlab": "4.6.6"}


@pytest.fixture
def installed(monkeypatch):
    """Stand-in metadata; a test changes the dictionary that it gets."""
    versions = dict(INSTALLED)

    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: list(DECLARED))
    return versions


def by_name(checks):
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def make_torch(folder: Path, text: str) -> None:
    """Put a torch into the folder; a process started there finds it before the real one."""
    (folder / "torch.py").write_text(text)


# The report


def test_a_fault_is_reported_with_its_mend_and_its_exit_code():
    checks = [Check("a", True, "1"), Check("bcd", False, "2", "do this")]
    assert doctor.report(checks).splitlines() == [
        "OK    a    1",
        "FAIL  bcd  2",
        "      mend: do this",
        "1 of 2 checks failed.",
    ]
    assert doctor.exit_code(checks) == 1


def test_something_optional_that_is_absent_is_no_fault():
    checks = [Check("a", True, "1"), Check("b", False, "absent", "get it", optional=True)]
    assert doctor.report(checks).splitlines()[1:] == [
        "-     b  absent",
        "      mend: get it",
        "Ready.",
    ]
    assert doctor.exit_code(checks) == 0


def test_looking_does_not_import_torch_here():
    code = "import sys, lgcourse.doctor as d; d.checks(); print('torch' in sys.modules)"
    root = str(Path(doctor.__file__).parent.parent)
    child = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert child.stdout.strip() == "False", child.stderr


def test_every_check_of_this_very_environment_is_reported():
    checks = by_name(doctor.checks())
    wanted = {"Python", "torch starts", "torch computes", "device", "Jupyter kernel"}
    wanted |= {"memory", "free disk", "current folder"}
    assert wanted <= set(checks)
    assert checks["torch starts"].ok and checks["torch computes"].ok
    assert all(check.ok or check.found for check in checks.values())


@pytest.mark.parametrize(
    "name", ["python", "packages", "torch", "kernel", "memory", "disk", "folder"]
)
def test_a_check_that_breaks_becomes_a_fault_and_the_others_still_run(monkeypatch, name):
    def broken():
        raise OSError("no such\nthing")

    for other in ("python", "packages", "torch", "kernel", "memory", "disk", "folder"):
        monkeypatch.setattr(doctor, f"check_{other}", lambda: [])
    monkeypatch.setattr(doctor, f"check_{name}", broken)
    (check,) = doctor.checks()
    assert check.status == "FAIL" and check.found == "OSError: no such" and check.mend


# Python and packages


@pytest.mark.parametrize("version, status", [((3, 9, 18), "FAIL"), ((3, 10, 0), "OK")])
def test_an_old_python_fails(monkeypatch, version, status):
    with monkeypatch.context() as patch:
        patch.setattr(doctor.sys, "version_info", version)
        (check,) = doctor.check_python()
    assert check.status == status and check.found.startswith(".".join(map(str, version)))
    assert ("3.10" in check.mend) == (status == "FAIL")


def test_a_full_set_of_packages_passes_and_other_extras_are_not_asked_for(installed):
    checks = doctor.check_packages()
    assert [check.name for check in checks] == ["torch", "einops", "jupyterlab"]
    assert [check.found for check in checks] == list(INSTALLED.values())
    assert doctor.exit_code(checks) == 0


def test_a_missing_package_of_the_core_fails(installed):
    del installed["einops"]
    checks = by_name(doctor.check_packages())
    assert checks["einops"].status == "FAIL"
    assert checks["einops"].found == "not installed"
    assert "pip install 'einops>=0.8'" in checks["einops"].mend
    assert checks["torch"].ok and checks["jupyterlab"].ok


def test_a_missing_package_of_the_notebooks_does_not(installed):
    del installed["jupyterlab"]
    check = by_name(doctor.check_packages())["jupyterlab"]
    assert check.status == "-" and "pip install 'jupyterlab>=4.2'" in check.mend


def test_a_package_at_its_floor_passes(installed):
    installed["torch"] = "2.4.0"
    assert by_name(doctor.check_packages())["torch"].ok


@pytest.mark.parametrize("name, old", [("torch", "2.3.1"), ("jupyterlab", "4.1.99")])
def test_a_package_below_its_floor_fails_even_in_an_extra(installed, name, old):
    installed[name] = old
    check = by_name(doctor.check_packages())[name]
    assert check.status == "FAIL" and old in check.found and "pip install" in check.mend


def test_metadata_that_cannot_be_read_costs_one_line_only(installed):
    installed["einops"] = None
    checks = by_name(doctor.check_packages())
    assert checks["einops"].status == "FAIL" and checks["einops"].mend
    assert checks["torch"].ok and checks["jupyterlab"].ok


def test_a_course_that_was_never_installed_fails(monkeypatch):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "requires", requires)
    (check,) = doctor.check_packages()
    assert check.status == "FAIL" and "pip install" in check.mend


@pytest.mark.parametrize(
    "low, high",
    [
        ("2.4", "2.13"),  # as text, 2.4 is the larger
        ("2.9.9", "2.10"),
        ("1.26", "2.0.0rc1"),
        ("", "0.1"),
        ("2.13", "2.13.1+cu130"),
    ],
)
def test_versions_compare_by_number(low, high):
    assert doctor.release(low) < doctor.release(high)


@pytest.mark.parametrize("same", ["2.4", "2.4.0", "2.4.0+cpu", "2.4.0.post1"])
def test_what_follows_the_numbers_of_a_version_does_not_count(same):
    assert doctor.release(same) == doctor.release("2.4")


def test_a_requirement_without_a_name_is_an_error_in_our_words():
    with pytest.raises(ValueError, match="cannot read the requirement"):
        doctor.read_requirement(">=2.4")


# torch, in a second process


def test_a_torch_that_is_absent_fails_once_and_what_hangs_on_it_does_not(tmp_path, monkeypatch):
    make_torch(tmp_path, "raise ModuleNotFoundError(\"No module named 'torch'\")")
    monkeypatch.chdir(tmp_path)
    starts, computes, device = doctor.check_torch()
    assert starts.status == "FAIL" and "No module named 'torch'" in starts.found and starts.mend
    assert computes.status == device.status == "-"


def test_a_torch_that_takes_its_process_down_fails(tmp_path, monkeypatch):
    make_torch(tmp_path, "import os; os._exit(132)")
    monkeypatch.chdir(tmp_path)
    assert doctor.check_torch()[0].status == "FAIL"


def test_a_torch_that_ends_its_process_in_silence_fails(tmp_path, monkeypatch):
    make_torch(tmp_path, "import os; os._exit(0)")
    monkeypatch.chdir(tmp_path)
    assert doctor.check_torch()[0].status == "FAIL"


def test_a_torch_that_never_starts_fails(monkeypatch):
    def run(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(doctor.subprocess, "run", run)
    starts = doctor.check_torch()[0]
    assert starts.status == "FAIL" and "no answer" in starts.found


RIGHT = [[14.0, 32.0], [32.0, 77.0]]  # by hand: 1 + 4 + 9, 4 + 10 + 18, 16 + 25 + 36


def answer(**changes):
    """What the second process prints, with some of it changed."""
    known = {"version": "2.13.0", "product": RIGHT, "numpy": "", "cuda": "", "mps": False}
    return json.dumps({**known, **changes})


@pytest.fixture
def answering(monkeypatch, installed):
    """Let the second process print a given answer, after a line of noise."""

    def answering(text):
        process = namedtuple("process", "returncode stdout stderr")
        monkeypatch.setattr(
            doctor.subprocess, "run", lambda *a, **k: process(0, f"a warning\n{text}\n", "")
        )
        return by_name(doctor.check_torch())

    return answering


def test_a_healthy_torch_passes(answering):
    checks = answering(answer())
    assert all(check.ok for check in checks.values())
    assert checks["device"].found == "cpu"


def test_an_old_torch_that_starts_fails_against_the_floor(answering):
    check = answering(answer(version="2.3.1"))["torch starts"]
    assert check.status == "FAIL" and "2.3.1" in check.found and "2.4" in check.mend


def test_a_torch_at_the_floor_passes(answering):
    assert answering(answer(version="2.4.0"))["torch starts"].ok


def test_a_wrong_product_fails(answering):
    check = answering(answer(product=[[14.0, 32.0], [32.0, 76.0]]))["torch computes"]
    assert check.status == "FAIL" and "76.0" in check.found and check.mend


def test_a_torch_that_cannot_reach_numpy_fails(answering):
    check = answering(answer(numpy="Numpy is not available"))["torch computes"]
    assert check.status == "FAIL" and "Numpy is not available" in check.found


def test_cuda_is_the_device_where_it_is(answering):
    assert answering(answer(cuda="Some GPU"))["device"].found == "cuda (Some GPU)"


def test_mps_is_named_and_not_chosen(answering):
    check = answering(answer(mps=True))["device"]
    assert check.ok and check.found.startswith("cpu;") and "never chosen" in check.found


# Jupyter


def kernel_starts(monkeypatch, program):
    """Let the kernel python3 start a given program."""
    jupyter = pytest.importorskip("jupyter_client.kernelspec")
    spec = jupyter.KernelSpec(argv=[program, "-m", "ipykernel_launcher"])
    monkeypatch.setattr(jupyter.KernelSpecManager, "get_kernel_spec", lambda self, name: spec)
    (check,) = doctor.check_kernel()
    return check


@pytest.mark.parametrize("program", [sys.executable, "python", "python3", "python3.12"])
def test_a_kernel_of_this_python_passes(monkeypatch, program):
    assert kernel_starts(monkeypatch, program).ok


def test_a_kernel_of_another_environment_fails_even_when_both_link_to_one_python(
    monkeypatch, tmp_path
):
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    try:
        other.symlink_to(Path(sys.executable).resolve())
    except OSError:
        pytest.skip("no links on this system")
    check = kernel_starts(monkeypatch, str(other))
    assert check.status == "FAIL" and str(other) in check.found
    assert "-m ipykernel install --user" in check.mend and "other Python" in check.mend


def test_a_kernel_that_is_no_python_fails(monkeypatch):
    program = str(Path(sys.executable).parent / "ark")
    assert kernel_starts(monkeypatch, program).status == "FAIL"


def test_no_kernel_fails(monkeypatch):
    jupyter = pytest.importorskip("jupyter_client.kernelspec")

    def missing(self, name):
        raise jupyter.NoSuchKernel(name)

    monkeypatch.setattr(jupyter.KernelSpecManager, "get_kernel_spec", missing)
    (check,) = doctor.check_kernel()
    assert check.status == "FAIL" and "-m ipykernel install --user" in check.mend


@pytest.mark.parametrize("package", ["ipykernel", "jupyter_client.kernelspec"])
def test_no_jupyter_is_no_fault(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # an import of it now fails
    (check,) = doctor.check_kernel()
    assert check.status == "-" and "pip install" in check.mend


# The machine


def test_free_memory_is_read_in_gib(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000000 kB\nMemFree: 1 kB\nMemAvailable:  3145728 kB\n")
    assert doctor._memory(meminfo) == (3.0, "free")


@pytest.mark.parametrize(
    "known, expected",
    [
        ({"SC_AVPHYS_PAGES": 2**18, "SC_PHYS_PAGES": 2**20}, (1.0, "free")),
        ({"SC_PHYS_PAGES": 2**20}, (4.0, "in all")),
        ({}, None),
    ],
)
def test_where_there_is_no_meminfo_the_system_is_asked(tmp_path, monkeypatch, known, expected):
    known = {**known, "SC_PAGE_SIZE": 4096}

    def sysconf(name):
        if name not in known:
            raise ValueError("unrecognized configuration name")
        return known[name]

    monkeypatch.setattr(doctor.os, "sysconf", sysconf, raising=False)
    assert doctor._memory(tmp_path / "absent") == expected


@pytest.mark.parametrize(
    "memory, status", [((1.9, "free"), "FAIL"), ((2.0, "in all"), "OK"), (None, "-")]
)
def test_too_little_memory_fails_and_an_unknown_amount_does_not(monkeypatch, memory, status):
    monkeypatch.setattr(doctor, "_memory", lambda: memory)
    (check,) = doctor.check_memory()
    assert check.status == status and bool(check.mend) == (status == "FAIL")


@pytest.mark.parametrize("free, status", [(2**30 - 1, "FAIL"), (2**30, "OK")])
def test_a_full_disk_fails(monkeypatch, free, status):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage(2**40, 0, free))
    (check,) = doctor.check_disk()
    assert check.status == status and bool(check.mend) == (status == "FAIL")


def test_a_folder_that_can_be_written_passes_and_stays_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (check,) = doctor.check_folder()
    assert check.ok and str(tmp_path) in check.found
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_fails(monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    (check,) = doctor.check_folder()
    assert check.status == "FAIL" and "Permission denied" in check.found and check.mend
