"""What may the process that runs student code use? Bounds that it sets itself before it starts.

`lock_down` sets them and gives up every privilege; `read_back` says what holds.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from lgcourse.grading.sandbox import linux

FILES, PROCESSES, OPEN_FILES = 32, 16, 64  # megabytes of a file; processes; open files
BOX = 64  # megabytes of all files together, where the box is in memory


def lock_down(memory: int, seconds: int, processes: int, uid: int | None) -> None:
    """Bound what this process can use, for good.

    Args:
        memory: bytes of address space.
        seconds: of processor time.
        processes: of its user, this one among them.
        uid: the user to become; None keeps the user.
    """
    bounds = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: FILES << 20,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_CORE: 0,
    }
    for which, most in bounds.items():
        _, hard = resource.getrlimit(which)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(which, (value, value))
        except (OSError, ValueError):  # a system without it: `read_back` says so
            continue
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is an OSError
    if sys.platform == "linux":
        linux.drop_privileges(uid)
        linux.forget_keys()
        linux.die_with_parent()
    elif uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)


def read_back(secrets: Sequence[str], needed: Sequence[str]) -> dict[str, Any]:
    """Say which bounds hold, without doing harm.

    Args:
        secrets: files that should be out of reach.
        needed: files that must be readable.

    Returns:
        Plain data: what is in force, by name.
    """
    which = {"memory": resource.RLIMIT_AS, "cpu": resource.RLIMIT_CPU}
    which |= {"file size": resource.RLIMIT_FSIZE, "open files": resource.RLIMIT_NOFILE}
    which |= {"processes": resource.RLIMIT_NPROC}
    found: dict[str, Any] = {name: resource.getrlimit(limit)[1] for name, limit in which.items()}
    found = {name: -1 if most == resource.RLIM_INFINITY else most for name, most in found.items()}
    found["uid"] = os.getuid()
    room = os.statvfs(".")
    found["box"] = room.f_blocks * room.f_frsize  # bytes that all files together may have
    found["alone"] = os.getppid() == 0  # no other process can be seen
    found["interfaces"] = [name for _, name in socket.if_nameindex() if name != "lo"]
    found["readable"] = [path for path in secrets if _can_read(path)]
    found["unreadable"] = [path for path in needed if not _can_read(path)]
    return found


def _can_read(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False
