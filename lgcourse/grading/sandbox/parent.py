"""How does the trusted side start processes for student code, and talk to them?

`Zygote` keeps one process that has imported everything; `Zygote.start` gives a `Child` of it, a
fresh process that is shut in. What a child says is data of unknown value.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch

from lgcourse.grading.answers import CannotGrade
from lgcourse.grading.sandbox import limits, stage, wire
from lgcourse.grading.sandbox.codec import Garbled, decode, encode

START = 120  # seconds that importing torch may take on a slow disk
UIDS = range(58_000, 59_000)
_turns = count(os.getpid() * 101)  # no two processes at a time have one user
PLANS = ("jail", "network", "bare")  # what is tried, from most to least
SECRETS = (str(stage.PACKAGE / "grading" / "bank" / "e01.py"), str(stage.PACKAGE / "cli.py"))
NEEDED = (os.__file__, torch.__file__)


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Args:
        seconds: that its cells, and the calls of one question, may take.
        megabytes: of memory beyond what torch needs.
    """

    seconds: float = 30.0
    megabytes: int = 2048


class Zygote:
    """A process that forks one child per submission; a context manager.

    Args:
        rooms: the rooms that may be open.
        forbids: rooms and parts of them that are not there.
        plan: ``"jail"``, ``"network"`` or ``"bare"``; None takes the first that works.
    """

    def __init__(self, rooms: Sequence[str], forbids: Sequence[str], plan: str | None = None):
        self._folder = tempfile.TemporaryDirectory(prefix="lgcourse-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        try:
            for name in ("stage", "boxes", "root"):
                (self.folder / name).mkdir()
            self.folder.chmod(0o755)
            stage.lay_out(self.folder / "stage", rooms, forbids)
            self.plan, self.uids = self._begin(plan)
            self.facts = self._probe()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all that it started."""
        process = getattr(self, "process", None)
        if process is not None:
            self.control.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._folder.cleanup()

    def _begin(self, plan: str | None) -> tuple[str, Sequence[int]]:
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        said = ""
        for name in [plan] if plan else PLANS if sys.platform == "linux" else PLANS[-1:]:
            said = self._try(name, root)
            if not said:
                return name, UIDS if root else ()
        raise CannotGrade(f"no process for student code can be started: {said}")

    def _try(self, plan: str, root: bool) -> str:
        """Start the process in one way; return what went wrong, or nothing."""
        here, there = socket.socketpair()
        code = "import sys; sys.path.insert(0, sys.argv[1]); import socket; "
        code += "from lgcourse.grading.sandbox.zygote import main; "
        code += "main(socket.socket(fileno=int(sys.argv[2])))"
        errors = self.folder / "errors"
        with there, open(errors, "wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", code]
                + [str(self.folder / "stage"), str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=sink,
                env=clean_environment(),
                cwd="/",
                pass_fds=[there.fileno()],
                start_new_session=True,
            )
        self.control = here
        try:
            wire.send(here, json.dumps(self._settings(plan, root)).encode())
            wire.receive(here, time.monotonic() + START)
            return ""
        except wire.Lost:
            self.process.kill()
            self.process.wait()
            here.close()
            lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return lines[-1] if lines else "it ended at once"

    def _settings(self, plan: str, root: bool) -> dict[str, Any]:
        return {
            "user": plan != "bare" and not root,
            "jail": plan == "jail",
            "network": plan == "network",
            "stage": str(self.folder / "stage"),
            "boxes": str(self.folder / "boxes"),
            "root": str(self.folder / "root"),
            "shown": stage.shown(),
            "hidden": stage.hidden(),
            "processes": limits.PROCESSES + (0 if root else own_processes()),
        }

    def start(self, bounds: Limits, seconds: float) -> Child:
        """Fork a fresh process for student code.

        Args:
            bounds: its limits.
            seconds: of processor time in all.

        Raises:
            CannotGrade: no process can be made.
        """
        order = {
            "memory": bounds.megabytes << 20,
            "cpu": int(seconds) + 5,
            "uid": self.uids[next(_turns) % len(self.uids)] if self.uids else None,
        }
        here, there = socket.socketpair()
        try:
            with there:
                wire.send(self.control, json.dumps(order).encode(), time.monotonic() + 10)
                socket.send_fds(self.control, [b"x"], [there.fileno()])
        except (wire.Lost, OSError):
            here.close()
            raise CannotGrade("the process that starts others has ended") from None
        child = Child(self, here)
        try:
            ready = child.hear(time.monotonic() + 30)
        except (wire.Lost, Garbled):
            ready = None
        if ready != ("ready",):
            child.end()
            raise CannotGrade("a process for student code did not start")
        return child

    def ended(self) -> tuple[int | None, float | None]:
        """Wait until a child is gone.

        Returns:
            How it ended and the seconds of processor time that it had; None is not known.
        """
        try:
            status, seconds = json.loads(wire.receive(self.control, time.monotonic() + 20))
        except wire.Lost:
            return None, None
        return status, seconds

    @property
    def alive(self) -> bool:
        """Whether it can start children."""
        return self.process.poll() is None

    def _probe(self) -> dict[str, Any]:
        """Let a child read its limits back."""
        child = self.start(Limits(), 60.0)
        try:
            facts = child.ask(("probe", list(SECRETS), list(NEEDED)), time.monotonic() + 30)
        except (wire.Lost, Garbled) as error:
            raise CannotGrade(f"the limits cannot be read back: {error!r}") from None
        finally:
            child.end()
        if facts["unreadable"]:
            raise CannotGrade(
                f"the user that student code runs as (number {facts['uid']}) cannot read "
                f"{facts['unreadable'][0]}; make that folder and those above it readable for all, "
                "or install the course in a folder that is, or grade as an ordinary user"
            )
        return facts


class Child:
    """One process in which student code runs."""

    def __init__(self, zygote: Zygote, channel: socket.socket):
        self._zygote, self._channel = zygote, channel
        self._began = time.monotonic()
        self._end: tuple[int | None, float | None] | None = None
        self.waited = False  # it had ended, and had had less than half of a processor until then

    def ask(self, request: Any, until: float) -> Any:
        """Send a request and return what comes back.

        Raises:
            wire.Lost, Garbled: nothing does, or not in time, or it is no message.
        """
        self.say(request, until)
        return self.hear(until)

    def say(self, request: Any, until: float) -> None:
        """Send a request."""
        wire.send(self._channel, encode(request), until)

    def hear(self, until: float) -> Any:
        """Return the next message."""
        return decode(wire.receive(self._channel, until))

    def end(self) -> str:
        """End the process and all that it started; say how it had ended if it was dead before."""
        if self._end is None:
            life = time.monotonic() - self._began
            self._channel.close()
            self._end = self._zygote.ended()
            self.waited = self._end[1] is not None and self._end[1] < life / 2
        return how_it_ended(self._end[0])


def how_it_ended(status: int | None) -> str:
    """Say in words how a process ended.

    >>> how_it_ended(0), how_it_ended(139)
    ('the code ended its process (exit code 0)', 'the process crashed (SIGSEGV)')
    """
    if status is None:
        return "the process was ended"
    if status > 128 and status - 128 in {s.value for s in signal.Signals}:
        return f"the process crashed ({signal.Signals(status - 128).name})"
    return f"the code ended its process (exit code {status})"


def protections_off(facts: Mapping[str, Any]) -> list[str]:
    """Say which protections do not hold here, from what a probe has read back."""
    off = []
    if facts["readable"]:
        off.append("submissions can read files of this machine, the questions' references too")
    if facts["interfaces"]:
        off.append("submissions can use the network")
    if not facts["alone"]:
        off.append("submissions can see other processes")
    if facts["memory"] < 0:
        off.append("the memory of submissions is not bounded")
    if facts["processes"] < 0 or facts["uid"] == 0:
        off.append("the number of their processes is not bounded")
    if facts["cpu"] < 0:
        off.append("their processor time is not bounded")
    if facts["file size"] < 0 or facts["box"] > limits.BOX << 20:
        off.append("what they write is bounded for each file at most, not in all")
    return [f"not protected on this system: {text}" for text in off]


def own_processes() -> int:
    """Return how many processes and threads our user has; the limit counts them, too."""
    found = 0
    for task in Path("/proc").glob("[0-9]*"):
        try:
            if task.stat().st_uid == os.getuid():
                found += len(os.listdir(task / "task"))
        except OSError:
            continue
    return found


def clean_environment() -> dict[str, str]:
    """Return an environment that says nothing of this one."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    kept = {k: v for k, v in os.environ.items() if k in ("LD_LIBRARY_PATH", "SYSTEMROOT")}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MPLBACKEND": "Agg", **one, **kept}
