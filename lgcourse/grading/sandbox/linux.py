"""What does Linux offer to shut a process in? A root of its own, no network, no privileges.

The calls that Python has no name for, by ctypes. Nothing of the library is imported here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

NEW_FILES, NEW_NAMES, NEW_IPC, NEW_USER = 0x20000, 0x4000000, 0x8000000, 0x10000000
NEW_PROCESSES, NEW_NETWORK = 0x20000000, 0x40000000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_NO_TIMES, _RECURSIVE, _PRIVATE, _TIMES = 1024, 16384, 1 << 18, 1 << 21
_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "s390x": 217, "riscv64": 41}
_DIE_WITH_PARENT, _DUMPABLE, _DROP_BOUND, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 4, 24, 36, 38
BOX = "/box"  # the folder in the jail that may be written


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave namespaces that are shared with other processes."""
    _check(_libc().unshare(flags), "unshare")


def become_own_user() -> None:
    """Enter a user namespace, in which an ordinary user may make the other ones."""
    uid, gid = os.getuid(), os.getgid()
    unshare(NEW_USER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount something."""
    given = [value.encode() if value else None for value in (source, target, kind)]
    _check(_libc().mount(*given, ctypes.c_ulong(flags), options.encode()), f"mount {target}")


def unmount(target: str) -> None:
    """Take a mount away, also while it is in use."""
    _check(_libc().umount2(target.encode(), _DETACH), f"unmount {target}")


def enter_jail(root: str, shown: Sequence[str], moved: dict[str, str], hidden: Sequence[str]):
    """Exchange the root of this process for one that shows few folders, read only.

    Needs namespaces of its own, see `unshare`.

    Args:
        root: an empty folder to build on.
        shown: folders and files that keep their place; those that are not there are left out.
        moved: where a folder stands -> where it is shown.
        hidden: folders below them that are shown empty.
    """
    mount("none", "/", "", _RECURSIVE | _PRIVATE)
    mount("tmpfs", root, "tmpfs", _NO_SETUID, "size=1m,mode=755")
    for path in shown:
        _show(path, root + path)
    for path, place in moved.items():
        _show(path, root + place)
    for path in hidden:
        if os.path.isdir(root + path):
            mount("tmpfs", root + path, "tmpfs", _READ_ONLY | _NO_SETUID, "size=4k,mode=755")
    os.mkdir(root + BOX)
    if not os.path.lexists(f"{root}/tmp"):
        os.symlink(BOX, f"{root}/tmp")
    os.chdir(root)
    mount("none", root, "", _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID)
    libc, number = _libc(), _PIVOT_ROOT.get(os.uname().machine)
    if number is None or libc.syscall(number, b".", b"."):
        os.chroot(".")
    else:
        unmount(".")
    os.chdir("/")


def _show(path: str, place: str) -> None:
    """Make a folder or file visible at a place, read only."""
    if not os.path.exists(path) or os.path.exists(place):
        return
    os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), place)
        return
    if os.path.isdir(path):
        os.makedirs(place, mode=0o755, exist_ok=True)
    else:
        os.close(os.open(place, os.O_CREAT, 0o644))
    mount(path, place, "", _BIND | _RECURSIVE)
    if path.startswith("/dev/"):
        return
    kept = os.statvfs(place).f_flag  # a user namespace may add flags and take none away
    flags = _READ_ONLY | _NO_SETUID | _NO_DEVICES
    flags |= _NO_PROGRAMS if kept & getattr(os, "ST_NOEXEC", 8) else 0
    flags |= _NO_TIMES if kept & getattr(os, "ST_NOATIME", 1024) else 0
    flags |= _TIMES if kept & getattr(os, "ST_RELATIME", 4096) else 0
    mount("none", place, "", _REMOUNT | _BIND | flags)


def fresh_box(megabytes: int) -> None:
    """Put an empty folder in memory over the box; a mount namespace of one's own is needed."""
    flags = _NO_SETUID | _NO_DEVICES
    mount("tmpfs", BOX, "tmpfs", flags, f"size={megabytes}m,nr_inodes=4k,mode=1777")


def drop_privileges(uid: int | None) -> None:
    """Give up what a privileged process may do, and become a user if one is given."""
    libc = _libc()
    for capability in range(64):
        libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    _check(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    _check(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")


def die_with_parent() -> None:
    """Let the kernel end this process when the one that made it has ended."""
    _libc().prctl(_DIE_WITH_PARENT, 9, 0, 0, 0)


def forget_keys() -> None:
    """Leave the keyring of the session, in which one submission could leave notes for another."""
    number = {"x86_64": 250, "aarch64": 219, "riscv64": 219}.get(os.uname().machine)
    if number is not None:
        _libc().syscall(number, 1, None)  # join a new session; a system without keys has no notes


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended, so that they can be found."""
    _libc().prctl(_SUBREAPER, 1, 0, 0, 0)


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory."""
    _libc().prctl(_DUMPABLE, 0, 0, 0, 0)
