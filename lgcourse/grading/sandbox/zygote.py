"""How does each submission get a fresh process quickly? One that has imported torch forks itself.

This process shuts itself in, imports what student code may use, and then forks for each order of
the parent. It never runs student code itself and holds no question. Each fork has a supervisor that
ends it, and all that it started, as soon as it is done or the parent has gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Any

from lgcourse.grading.sandbox import limits, linux, wire

STAGE = "/lgcourse-stage"  # where the jail shows the library
TICK = 20  # milliseconds


def shut_in(settings: dict[str, Any]) -> None:
    """Enter the namespaces that the settings name."""
    if settings["user"]:
        linux.become_own_user()
    if settings["jail"]:
        flags = linux.NEW_FILES | linux.NEW_NETWORK | linux.NEW_IPC | linux.NEW_NAMES
        linux.unshare(flags)
        moved = {settings["stage"]: STAGE}
        linux.enter_jail(settings["root"], settings["shown"], moved, settings["hidden"])
        move_modules(settings["stage"], STAGE)
    elif settings["network"]:
        linux.unshare(linux.NEW_NETWORK)


def move_modules(old: str, new: str) -> None:
    """Let the library's packages look for their modules at the place where they are now."""
    sys.path[:] = [new if path == old else path for path in sys.path]
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "lgcourse" and hasattr(module, "__path__"):
            module.__path__ = [path.replace(old, new) for path in module.__path__]
    sys.path_importer_cache.clear()


def import_all() -> None:
    """Import what answers use, and let torch look at the machine while it still can."""
    import einops  # noqa: F401
    import jaxtyping  # noqa: F401
    import torch

    from lgcourse.grading.sandbox import absent, child  # noqa: F401

    absent.install()
    torch.set_num_threads(1)
    square = torch.ones(2, 2)
    torch.softmax(square @ square, -1).sum().item()
    torch.nn.Linear(2, 2)(square).sum().backward()


def address_space() -> int:
    """Return the bytes of address space in use, or a generous guess."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 32 << 30


def supervise(channel: socket.socket, order: dict[str, Any], settings: dict[str, Any]) -> int:
    """Run a child until it ends or the parent closes the channel; return its status."""
    if sys.platform == "linux":
        linux.adopt_orphans()
    if settings["jail"]:
        linux.unshare(linux.NEW_PROCESSES | linux.NEW_FILES | linux.NEW_IPC)
        linux.fresh_box(limits.BOX)
        box = linux.BOX
    else:
        box = tempfile.mkdtemp(dir=settings["boxes"])
        os.chmod(box, 0o777)
    child = os.fork()
    if child == 0:
        shut(channel, box)
        limits.lock_down(order["memory"], order["cpu"], settings["processes"], order["uid"])
        from lgcourse.grading.sandbox.child import main

        main(channel)
    watch = select.poll()
    watch.register(channel, 0)  # tells only that the parent has closed
    status = None
    while status is None and not watch.poll(TICK):
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
    if status is None:
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    if not settings["jail"]:
        sweep(child, order["uid"])
        shutil.rmtree(box, ignore_errors=True)
    return status


def shut(channel: socket.socket, box: str) -> None:
    """Close everything but the channel, and start in an empty folder."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    kept = channel.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, 4096)
    os.chdir(box)
    os.environ.update(HOME=box, TMPDIR=box, MPLCONFIGDIR=box)
    os.setsid()


def sweep(child: int, uid: int | None) -> None:
    """Without a process namespace: end what the child has started and left."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    if uid is not None:  # a user of its own: all of its processes
        killer = os.fork()
        if killer == 0:
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
            os._exit(0)
        os.waitpid(killer, 0)
    for _ in range(200):  # orphans are adopted, see `adopt_orphans`
        for orphan in _children():
            os.kill(orphan, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.005)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def main(control: socket.socket) -> None:
    """Shut in, import, say so, and fork for each order until the parent has gone."""
    settings = json.loads(wire.receive(control))
    shut_in(settings)
    import_all()
    used = address_space()
    score = "/proc/self/oom_score_adj"
    with contextlib.suppress(OSError), open(score, "w", encoding="ascii") as file:
        file.write("1000")  # where memory runs out, student code is ended before anything else
    for folder in ("/proc", "/sys"):
        if settings["jail"] and os.path.ismount(folder):
            linux.unmount(folder)
    wire.send(control, b"ready")
    while True:
        try:
            order = json.loads(wire.receive(control))
            _, handles, _, _ = socket.recv_fds(control, 1, 1)
        except wire.Lost:
            return
        order["memory"] += used
        supervisor = os.fork()
        if supervisor == 0:
            control.close()
            try:
                with socket.socket(fileno=handles[0]) as channel:
                    status = supervise(channel, order, settings)
                os._exit(told(status))
            except BaseException:
                os._exit(99)
        os.close(handles[0])
        _, status, cost = os.wait4(supervisor, 0)
        seconds = cost.ru_utime + cost.ru_stime  # of the child, too
        wire.send(control, json.dumps([os.waitstatus_to_exitcode(status), seconds]).encode())


def told(status: int) -> int:
    """Return how a process ended as one byte: its exit code, or 128 and the signal."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else min(code, 127)
