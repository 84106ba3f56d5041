"""Does the set-up hold: pins against floors, the Makefile from nothing, no address of any machine?

The Makefile runs here in full, in a copy, with a stand-in for Python that writes down what it was
asked to do. So every path through it is seen and nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from lgcourse import doctor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
DECLARED = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


# Floors and pins


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def applies(requirement: Requirement, python: str) -> bool:
    where = {"python_version": python, "python_full_version": f"{python}.5", "extra": ""}
    return requirement.marker is None or requirement.marker.evaluate(where)


def pinned(python: str) -> dict[str, Version]:
    """The release of each package that constraints.txt gives to one version of Python."""
    found: dict[str, Version] = {}
    for pin in pins():
        if applies(pin, python):
            (only,) = pin.specifier
            name = canonicalize_name(pin.name)
            assert only.operator == "==", f"{pin} is no exact release"
            assert name not in found, f"{name} has two pins for Python {python}"
            found[name] = Version(only.version)
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_each_requirement_has_one_pin_and_the_pin_is_at_or_above_the_floor(python):
    releases = pinned(python)
    wanted = [Requirement(line) for line in DECLARED]
    wanted = [one for one in wanted if applies(one, python) and one.name != PROJECT["name"]]
    assert len(wanted) > 15
    for requirement in wanted:
        name = canonicalize_name(requirement.name)
        assert name in releases, f"{name} has no pin for Python {python}"
        assert releases[name] in requirement.specifier, f"{requirement}, pin {releases[name]}"


def test_the_check_of_pins_can_fail():
    too_high = Requirement("torch>=99")
    assert pinned("3.12")["torch"] not in too_high.specifier


def test_declared_requirements_are_floors_and_nothing_else():
    for line in DECLARED:
        requirement = Requirement(line)
        if requirement.name != PROJECT["name"]:
            assert [one.operator for one in requirement.specifier] == [">="], line


def test_the_doctor_reads_each_requirement_that_it_checks():
    checked = [("", line) for line in PROJECT["dependencies"]]
    checked += [("course", f'{line}; extra == "course"') for line in EXTRAS["course"]]
    for extra, line in checked:
        requirement = Requirement(line)
        (floor,) = requirement.specifier
        assert doctor.read_requirement(line) == (requirement.name, floor.version, extra)


def test_the_core_asks_for_nothing_but_what_models_and_theory_need():
    core = {Requirement(line).name for line in PROJECT["dependencies"]}
    models = {"torch", "numpy", "einops", "jaxtyping", "safetensors"}
    assert core == models | {"matplotlib", "typer", "rich", "tqdm"}


def test_python_is_stated_once():
    low = ".".join(map(str, doctor.PYTHON_FLOOR))
    assert PROJECT["requires-python"] == f">={low}"
    assert all(Version(python) in SpecifierSet(PROJECT["requires-python"]) for python in PYTHONS)
    assert PYTHONS[0] == low


# What a reader of the repository must not find: where it was written


HOSTS = ["pypi" + ".org", "python" + "hosted.org", "download." + "pytorch.org", "npm" + "js.org"]
INDEX_OPTION = re.compile(r"--(extra-)?index-" + r"url|--find-" + r"links")
MACHINE_PATH = re.compile(r"(?<![\w.:/~+$}-])/(home|root|work|Users)/(?!some(body|one)\b)\w")


def text_files() -> list[Path]:
    """The files under version control, or all of a copy without it; binary files left out."""
    if (ROOT / ".git").exists():
        list_files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(list_files, cwd=ROOT, capture_output=True, check=True).stdout
        paths = [ROOT / name for name in listed.decode().split("\0") if name]
    else:
        made = re.compile(r"/(\.(?!ci|git)[^/]*|__pycache__|runs|[^/]*\.egg-info)(/|$)")
        paths = [p for p in ROOT.rglob("*") if not made.search(f"/{p.relative_to(ROOT)}")]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


def machine_marks(text: str) -> list[str]:
    """The hosts of registries, options that name one, and absolute paths of somebody's folders."""
    found = [host for host in HOSTS if host in text]
    return found + [m[0] for p in (INDEX_OPTION, MACHINE_PATH) for m in p.finditer(text)]


def test_no_file_names_a_registry_or_a_folder_of_somebodys_machine():
    paths = text_files()
    assert ROOT / "pyproject.toml" in paths and ROOT / ".ci" / "run" in paths
    marked = {
        str(path.relative_to(ROOT)): marks
        for path in paths
        if (marks := machine_marks(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert marked == {}


@pytest.mark.parametrize(
    "text",
    ["see " + HOSTS[0], "pip install --index-" + "url X", '"/home' + '/me/x"', "/work" + "/a"],
)
def test_a_mark_of_a_machine_is_found(text):
    assert len(machine_marks(text)) == 1


@pytest.mark.parametrize(
    "text", ["a/home/b", "https://example.com/work/x", "~/work/x", "/home" + "/someone/x"]
)
def test_other_text_is_not_taken_for_one(text):
    assert machine_marks(text) == []


# .ci/run


@pytest.fixture
def copy(tmp_path) -> Path:
    """The files of the set-up in a folder of their own, with a space in its name."""
    folder = tmp_path / "a copy"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    return folder


@pytest.mark.skipif(os.name == "nt", reason="no execute permission on Windows")
def test_ci_run_can_be_executed():
    assert (ROOT / ".ci" / "run").stat().st_mode & stat.S_IXUSR


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("status", [0, 2, 5])
def test_ci_run_is_make_test_with_its_exit_status_and_no_input(copy, tmp_path, status):
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(f'#!/bin/sh\necho "$PWD|$@|$(cat)"\nexit {status}\n')
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{make.parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(
        [shutil.which("bash") or "bash", str(copy / ".ci" / "run")],
        capture_output=True,
        text=True,
        input="unread",
        env=environment,
        cwd=tmp_path,
    )
    assert run.stdout.strip() == f"{copy}|test|", run.stderr
    assert run.returncode == status


# The Makefile, with a stand-in for Python


STAND_IN = """#!/bin/sh
# Writes down its arguments; answers the question for the version; "makes" an environment.
echo "$0 $*" >> "$LOG"
case "$*" in
  *"-m venv "*) for last; do :; done
      rm -rf "$last"; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
  "-c import sys; sys.exit"*) exit "${TOO_OLD:-0}" ;;
  "--version") echo "Python 3.9.0" ;;
  *"$BREAK"*) test -z "$BREAK" || exit "${STATUS:-1}" ;;
esac
"""

needs_make = pytest.mark.skipif(
    os.name == "nt" or shutil.which("make") is None, reason="needs make and a POSIX shell"
)


class Make:
    """Runs make in a copy and tells what its Pythons were asked to do."""

    def __init__(self, folder: Path, python: Path, log: Path):
        self.folder, self.python, self.log = folder, python, log

    def __call__(self, *targets: str, **environment: str) -> subprocess.CompletedProcess:
        self.log.write_text("")
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run(
            ["make", *targets, f"PYTHON={self.python}"],
            cwd=self.folder,
            env={**outer, "LOG": str(self.log), **environment},
            capture_output=True,
            text=True,
        )

    def asked(self, words: str) -> int:
        """How often a Python was asked for something that holds these words."""
        return sum(words in line for line in self.log.read_text().splitlines())


@pytest.fixture
def make(copy, tmp_path) -> Make:
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    for name in ("notebooks", "solutions"):
        (copy / name).mkdir()
    return Make(copy, python, tmp_path / "log")


TARGETS = {
    "demo": "-m lgcourse demo",
    "lab": "-m lgcourse lab",
    "notebooks": "-m lgcourse build --execute",
    "test": "-m pytest ",
}


@needs_make
def test_make_alone_lists_every_target_and_installs_nothing(make):
    run = make()
    assert run.returncode == 0
    for target in (*TARGETS, "help", "clean"):
        assert re.search(rf"^make {target}\s+\w", run.stdout, re.MULTILINE), target
    assert make.asked("pip install") == 0


@needs_make
@pytest.mark.parametrize("target", TARGETS)
def test_each_target_can_be_the_first_and_a_second_call_installs_nothing(make, target):
    assert make(target).returncode == 0
    assert make.asked("pip install") == make.asked(TARGETS[target]) == 1
    assert make.asked("-c constraints.txt -e .[course,sweep,dev]") == 1
    assert make(target).returncode == 0
    assert make.asked("pip install") == make.asked("-m venv") == 0
    assert make.asked(TARGETS[target]) == 1


@needs_make
def test_make_test_runs_each_tool_and_only_the_notebook_folders_that_exist(make):
    assert make("test").returncode == 0
    for tool in ("ruff check", "ruff format --check", "mypy", "pytest"):
        assert make.asked(f"-m {tool}") == 1, tool
    (line,) = [line for line in make.log.read_text().splitlines() if "-m pytest" in line]
    assert line.endswith(" tests lgcourse notebooks solutions")
    for option in ("--dist loadfile", "--doctest-modules", "--nbval-lax", "--nbval-current-env"):
        assert option in line
    assert "--nbval-cell-timeout 120" in line


@needs_make
@pytest.mark.parametrize(
    "tool, status", [("-m ruff check", 1), ("-m mypy", 1), ("-m pytest", 1), ("-m pytest", 5)]
)
def test_a_tool_that_fails_makes_make_test_fail_and_so_does_a_run_without_tests(make, tool, status):
    assert make("test", BREAK=tool, STATUS=str(status)).returncode != 0


@needs_make
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed_into_the_same_environment(make, name):
    make("demo")
    stamp = (make.folder / ".venv" / ".installed").stat().st_mtime
    os.utime(make.folder / name, (stamp + 10, stamp + 10))
    assert make("demo").returncode == 0
    assert make.asked("pip install") == 1 and make.asked("-m venv") == 0


@needs_make
def test_an_interrupted_installation_is_made_anew(make):
    assert make("demo", BREAK="pip install").returncode != 0
    assert make.asked(TARGETS["demo"]) == 0
    left = make.folder / ".venv" / "left"
    left.write_text("half an installation")
    assert make("demo").returncode == 0
    assert make.asked("-m venv --clear") == make.asked("pip install") == 1
    assert not left.exists()


@needs_make
def test_an_interrupted_update_is_made_anew(make):
    make("demo")
    stamp = (make.folder / ".venv" / ".installed").stat().st_mtime
    os.utime(make.folder / "pyproject.toml", (stamp + 10, stamp + 10))
    assert make("demo", BREAK="pip install").returncode != 0
    assert make("demo").returncode == 0
    assert make.asked("-m venv --clear") == 1


@needs_make
@pytest.mark.parametrize("fault", ["no python", "moved"])
def test_an_environment_that_no_longer_works_is_made_anew(make, fault):
    make("demo")
    if fault == "moved":
        make.folder = make.folder.rename(make.folder.with_name("elsewhere"))
    else:
        (make.folder / ".venv" / "bin" / "python").unlink()
    assert make("demo").returncode == 0
    assert make.asked("-m venv --clear") == make.asked("pip install") == 1


@needs_make
def test_an_unfit_python_is_named_before_anything_is_made(make):
    run = make("lab", TOO_OLD="1")
    assert run.returncode != 0
    assert "is Python 3.9.0; this course needs Python 3.10, 3.11, 3.12 or 3.13" in run.stderr
    assert "make lab PYTHON=" in run.stderr
    assert not (make.folder / ".venv").exists()


@needs_make
@pytest.mark.parametrize("minor, fit", [(9, False), (10, True), (13, True), (14, False)])
def test_the_question_for_the_version_has_the_right_answer(make, minor, fit):
    make("demo")
    (line,) = [line for line in make.log.read_text().splitlines() if "sys.exit" in line]
    code = line.split(" -c ", 1)[1].replace("import sys; ", "").replace("sys.version_info", "v")
    with pytest.raises(SystemExit) as end:
        exec(code, {"sys": sys, "v": (3, minor, 1)})
    assert (not end.value.code) is fit


@needs_make
def test_clean_removes_what_was_made_and_nothing_else(make):
    make("demo")
    (make.folder / "lgcourse" / "__pycache__").mkdir(parents=True)
    (make.folder / "runs").mkdir()
    assert make("clean").returncode == 0
    assert not (make.folder / ".venv").exists()
    assert not (make.folder / "lgcourse" / "__pycache__").exists()
    assert (make.folder / "runs").exists() and (make.folder / "constraints.txt").exists()
