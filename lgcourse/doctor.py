"""Is this machine ready for the course, and if not, what mends it?

Each check catches its own failure and turns it into a line that says what to do. Nothing here
imports torch: a torch that cannot start, or that takes the whole process down, is asked in a
process of its own.
"""

from __future__ import annotations

import importlib.metadata as metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PYTHON_FLOOR = (3, 10)
MEMORY_WANTED = 2.0  # GiB, for training the lessons' models beside JupyterLab
DISK_WANTED = 1.0  # GiB, for run folders and figures
TORCH_START_LIMIT = 300  # seconds; a first start from a slow disk can take a minute

# The running Python by its path: "python" may be another one in the learner's terminal.
THIS_PYTHON = f'"{sys.executable}"' if " " in sys.executable else sys.executable
INSTALL = (
    f"in the folder of the course: {THIS_PYTHON} -m pip install -c constraints.txt -e '.[course]'"
)
EXTRA_OF_NOTEBOOKS = "course"


@dataclass(frozen=True)
class Check:
    """One line of the report: what was looked at, whether it will do, what was found.

    Args:
        name: what was looked at.
        ok: whether it will do.
        found: what was found, in a few words.
        mend: what to do about it; empty when nothing needs to be done.
        optional: whether the course's core works without it; then a check that is not ok is no
            fault, and its status is ``-``.

    >>> Check("numpy", False, "not installed", "install it").status
    'FAIL'
    >>> Check("jupyterlab", False, "not installed", "install it", optional=True).status
    '-'
    """

    name: str
    ok: bool
    found: str
    mend: str = ""
    optional: bool = False

    @property
    def status(self) -> str:
        """``OK``, ``FAIL``, or ``-`` for something that is absent and not needed by the core."""
        return "OK" if self.ok else "-" if self.optional else "FAIL"


def checks() -> list[Check]:
    """Look at everything that the course needs; takes the few seconds in which torch starts.

    Returns:
        The checks in the order of the report. No failure of what is looked at raises.
    """
    return [
        *_guarded("Python", check_python, "install Python 3.10 to 3.13"),
        *_guarded("packages", check_packages, INSTALL),
        *_guarded("torch", check_torch, f"install torch again: {INSTALL}"),
        *_guarded("Jupyter kernel", check_kernel, INSTALL),
        *_guarded("memory", check_memory, "close other programs"),
        *_guarded("free disk", check_disk, "delete what you no longer need"),
        *_guarded("current folder", check_folder, "start from a folder of your own"),
    ]


def report(checks: Sequence[Check]) -> str:
    """Write the checks as a table of plain text, with the mend below each one that is not ok.

    Args:
        checks: what `checks` returned.

    Returns:
        The lines of the table and one closing line, without a line break at the end.

    >>> print(report([Check("numpy", True, "2.4.6"), Check("torch", False, "2.0", "get 2.4")]))
    OK    numpy  2.4.6
    FAIL  torch  2.0
          mend: get 2.4
    1 of 2 checks failed.
    """
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<4}  {check.name:<{width}}  {check.found}".rstrip())
        if check.mend and not check.ok:
            lines.append(f"      mend: {check.mend}")
    failed = sum(check.status == "FAIL" for check in checks)
    lines.append(f"{failed} of {len(checks)} checks failed." if failed else "Ready.")
    return "\n".join(lines)


def exit_code(checks: Iterable[Check]) -> int:
    """Say how `lgcourse doctor` ends: 1 when a check has status FAIL, else 0.

    >>> exit_code([Check("jupyterlab", False, "not installed", "install it", optional=True)])
    0
    """
    return int(any(check.status == "FAIL" for check in checks))


def _guarded(name: str, look: Callable[[], list[Check]], mend: str) -> list[Check]:
    """Run a check; whatever it raises becomes a FAIL with the mend that is nearest to hand."""
    try:
        return look()
    except Exception as error:
        return [Check(name, False, f"{type(error).__name__}: {_first_line(error)}", mend)]


def _first_line(text: object) -> str:
    return next(iter(str(text).strip().splitlines()), "no message")


# Python and packages


def check_python() -> list[Check]:
    """Check the version of the running Python against the floor."""
    found = f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}, {sys.executable}"
    wanted = ".".join(map(str, PYTHON_FLOOR))
    ok = tuple(sys.version_info[:2]) >= PYTHON_FLOOR
    mend = f"install Python {wanted} or newer; then: make clean demo PYTHON=python3.12"
    return [Check("Python", ok, found, "" if ok else mend)]


def check_packages() -> list[Check]:
    """Check each package of the core and of the notebooks against the floor that we declare.

    The floors are read from the metadata of the installed `lgcourse`, so they stand in one place,
    pyproject.toml. A package of the notebooks that is absent is no fault; one that is too old is.

    Returns:
        One check for each package, the core's first; a single FAIL when lgcourse itself is not
        installed.
    """
    try:
        declared = metadata.requires("lgcourse") or []
    except metadata.PackageNotFoundError:
        return [Check("lgcourse", False, "not installed, only found in this folder", INSTALL)]
    rows = [row for row in map(read_requirement, declared) if row[2] in ("", EXTRA_OF_NOTEBOOKS)]
    return [
        check
        for row in sorted(rows, key=lambda row: row[2])
        for check in _guarded(row[0], partial(_one_package, *row), _pip_install(row[0], row[1]))
    ]


def _one_package(name: str, floor: str, extra: str) -> list[Check]:
    return [check_package(name, floor, extra)]


def check_package(name: str, floor: str, extra: str = "") -> Check:
    """Check the installed release of one package against a floor.

    Args:
        name: of the package, as the index spells it.
        floor: the lowest release that will do, or "" if any will.
        extra: the extra of lgcourse that asks for it, or "" for the core.

    Returns:
        The check. A package of an extra is optional when it is absent.
    """
    need = f"{floor} or newer" if floor else "any release"
    mend = _pip_install(name, floor)
    purpose = ", for notebooks" if extra else ""
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, False, f"not installed{purpose}", mend, optional=bool(extra))
    if release(found) >= release(floor):
        return Check(name, True, found)
    return Check(name, False, f"{found}, wanted: {need}", mend)


def _pip_install(name: str, floor: str) -> str:
    return (
        f"{THIS_PYTHON} -m pip install '{name}>={floor}'"
        if floor
        else f"{THIS_PYTHON} -m pip install {name}"
    )


def read_requirement(line: str) -> tuple[str, str, str]:
    """Split a requirement of the form that pyproject.toml uses for the core and the notebooks.

    Args:
        line: a line of the metadata: a name, perhaps ``>=release``, perhaps a marker.

    Returns:
        The name, the floor ("" if there is none), the extra ("" for the core).

    >>> read_requirement("torch>=2.4")
    ('torch', '2.4', '')
    >>> read_requirement('jupyterlab >=4.2 ; extra == "course"')
    ('jupyterlab', '4.2', 'course')
    """
    requirement, _, marker = line.partition(";")
    name = re.match(r"\s*([\w.-]+)", requirement)
    if name is None:
        raise ValueError(f"cannot read the requirement {line!r}")
    floor = re.search(r">=\s*([\w.]+)", requirement)
    extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
    return name[1], floor[1] if floor else "", extra[1] if extra else ""


def release(version: str) -> tuple[int, ...]:
    """Read the numbers of a version, for comparing; what follows them is left out.

    >>> release("2.13.0+cpu") == release("2.13") and release("2.13") > release("2.4")
    True
    """
    numbers = re.match(r"[0-9]+(\.[0-9]+)*", version)
    parts = [int(part) for part in numbers[0].split(".")] if numbers else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


# torch


PROBE = """
import json, torch
a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
product = (a @ a.T).tolist()
try:
    numpy = "" if (a.numpy() == a.tolist()).all() else "wrong values"
except Exception as error:
    numpy = str(error) or type(error).__name__
cuda = torch.cuda.is_available()
mps = getattr(torch.backends, "mps", None)
print(json.dumps({
    "version": torch.__version__,
    "product": product,
    "numpy": numpy,
    "cuda": torch.cuda.get_device_name(0) if cuda else "",
    "mps": bool(mps and mps.is_available()),
}))
"""


def check_torch() -> list[Check]:
    """Check that torch starts, is new enough, computes right, and say which device it will use.

    Returns:
        Three checks: torch starts, torch computes, device. When torch does not start, the other
        two say so and are no faults of their own.
    """
    try:
        answer = _ask_torch()
    except RuntimeError as error:
        mend = f"install torch again: {INSTALL}"
        rest = ("torch computes", "device")
        return [
            Check("torch starts", False, str(error), mend),
            *(Check(name, False, "torch does not start", optional=True) for name in rest),
        ]
    return [_torch_version(answer), _torch_computes(answer), _device(answer)]


def _ask_torch() -> dict:
    """Run the probe in a process of its own, since a broken torch can end the process it is in."""
    try:
        child = subprocess.run(
            [sys.executable, "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=TORCH_START_LIMIT,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer after {TORCH_START_LIMIT} s") from None
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"its process ended with status {child.returncode}: {last}")
    try:
        return json.loads(child.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise RuntimeError("gave no readable answer") from None


def _torch_version(answer: dict) -> Check:
    """The release that starts may not be the one of the metadata, when two are installed."""
    try:
        rows = map(read_requirement, metadata.requires("lgcourse") or [])
        floor = next((floor for name, floor, extra in rows if name == "torch" and not extra), "")
    except metadata.PackageNotFoundError:
        floor = ""
    found = answer["version"]
    if release(found) >= release(floor):
        return Check("torch starts", True, found)
    mend = _pip_install("torch", floor)
    return Check("torch starts", False, f"{found}, wanted: {floor} or newer", mend)


def _torch_computes(answer: dict) -> Check:
    """Compare a 2 x 3 times 3 x 2 product with the same sum of products in plain Python."""
    a = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    right = [[sum(x * y for x, y in zip(p, q, strict=True)) for q in a] for p in a]
    name, mend = "torch computes", f"install torch and numpy again: {INSTALL}"
    if answer["product"] != right:
        return Check(name, False, f"a product is {answer['product']}, right is {right}", mend)
    if answer["numpy"]:
        found = f"its way to numpy fails: {_first_line(answer['numpy'])}"
        return Check(name, False, found, mend)
    return Check(name, True, "a product is right, and so is the way to numpy")


def _device(answer: dict) -> Check:
    """Name the device that ``--device auto`` takes: CUDA if there is one, else the CPU."""
    found = f"cuda ({answer['cuda']})" if answer["cuda"] else "cpu"
    if answer["mps"]:
        found += "; mps is there but never chosen by itself: silently wrong results are reported"
    return Check("device", True, found)


# Jupyter


def check_kernel() -> list[Check]:
    """Check that the kernel of the notebooks, ``python3``, starts this same Python.

    Returns:
        One check. Without Jupyter it is no fault; a kernel of another Python is one.
    """
    check = partial(Check, "Jupyter kernel")
    mend = f"{THIS_PYTHON} -m ipykernel install --user"
    try:
        import ipykernel  # noqa: F401
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return [check(False, "Jupyter is not installed, for notebooks", INSTALL, optional=True)]
    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv
    except NoSuchKernel:
        return [check(False, "there is none", mend)]
    if _is_this_python(command[0]):
        return [check(True, "starts this Python")]
    mend += "; until then notebooks use that other Python"
    return [check(False, f"starts {command[0]}", mend)]


def _is_this_python(program: str) -> bool:
    """Tell whether a kernel's program is the running Python.

    Jupyter itself puts its own Python in the place of a bare ``python``. Otherwise the folders are
    compared, not the files: the Pythons of two environments can be links to one file.
    """
    path = Path(program)
    if not re.fullmatch(r"python[0-9.]*(\.exe)?", path.name, re.IGNORECASE):
        return False
    return path.name == program or path.parent.resolve() == Path(sys.executable).parent.resolve()


# The machine


def check_memory() -> list[Check]:
    """Check that enough memory is free; where the system does not tell, that is no fault."""
    memory = _memory()
    if memory is None:
        return [Check("memory", False, "unknown on this system", optional=True)]
    size, kind = memory
    ok = size >= MEMORY_WANTED
    mend = f"close other programs until {MEMORY_WANTED:g} GiB are free"
    return [Check("memory", ok, f"{size:.1f} GiB {kind}", "" if ok else mend)]


def _memory(meminfo: Path = Path("/proc/meminfo")) -> tuple[float, str] | None:
    """Read the memory that is free or, where only that is told, the memory in all, in GiB."""
    try:
        told = meminfo.read_text(encoding="ascii")
        line = re.search(r"^MemAvailable:\s+([0-9]+) kB", told, re.MULTILINE)
    except OSError:
        line = None
    if line:
        return int(line[1]) / 2**20, "free"
    for pages, kind in (("SC_AVPHYS_PAGES", "free"), ("SC_PHYS_PAGES", "in all")):
        try:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") / 2**30, kind
        except (AttributeError, OSError, ValueError):
            continue
    return None


def check_disk() -> list[Check]:
    """Check that the disk of the current folder has room for run folders."""
    free = shutil.disk_usage(".").free / 2**30
    ok = free >= DISK_WANTED
    mend = f"delete what you no longer need until {DISK_WANTED:g} GiB are free"
    return [Check("free disk", ok, f"{free:.1f} GiB", "" if ok else mend)]


def check_folder() -> list[Check]:
    """Check that files can be written in the current folder, by writing one."""
    try:
        with tempfile.TemporaryFile(dir=".") as file:
            file.write(b"x")
    except OSError as error:
        found = f"cannot write in {Path.cwd()}: {error.strerror or error}"
        return [Check("current folder", False, found, "start from a folder of your own")]
    return [Check("current folder", True, f"can be written: {Path.cwd()}")]
