"""Hostile code for exercise 1, each with the points that it honestly earns.

Every attack hands in a wrong `exact_match`, so that points for it would be stolen, and a right
`addition_step`, so that points lost there would be harm done. `needs` names the protections without
which an attack is not tried; none uses more than the bounds that stand beside it.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

WRONG = """
def exact_match(guess, target):
    return (guess == target).any(dim=1)
"""
STEP = """
def addition_step(n, t):
    return 2 * n + t, t - 1, n + t, 2 * n + t
"""
TRACE = """
import sys, threading
def see(frame, event, argument):
    for name in ("expected", "value", "kind", "outcome"):
        if name in frame.f_locals:
            frame.f_locals[name] = True
    return see
"""


@dataclass(frozen=True)
class Attack:
    """Code cells, the points that they earn, and what must be in force before they run."""

    cells: tuple[str, ...]
    points: int = 3
    needs: tuple[str, ...] = ()


def attack(before="", exact=WRONG, after="", points=3, needs=()):
    """An attack: code before the answers, the wrong answer itself, code after them."""
    cells = ("import torch", before, exact, STEP, after)
    return Attack(tuple(textwrap.dedent(c).strip() for c in cells if c), points, needs)


def answer(body, before="", **more):
    """An attack that is made while the wrong answer is called."""
    code = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return attack(before, f"def exact_match(guess, target):\n{code}\n", **more)


# --- other meanings for what a comparison might use -----------------------------------------------
PATCHES = {
    "numpy": attack(
        """
        import numpy as np
        for name in ("allclose", "array_equal", "array_equiv", "isclose", "all"):
            setattr(np, name, lambda *a, **k: True)
        np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
        """
    ),
    "torch": attack(
        """
        for name in ("allclose", "equal", "isclose", "all"):
            setattr(torch, name, lambda *a, **k: True)
        torch.testing.assert_close = lambda *a, **k: None
        """
    ),
    "tensor methods": attack("torch.Tensor.__eq__ = torch.Tensor.all = lambda *a, **k: True"),
    "builtins": attack(
        """
        import builtins
        builtins.all = builtins.any = lambda *a: True
        builtins.abs = builtins.max = lambda *a: 0
        builtins.print = builtins.sorted = lambda *a, **k: None
        """
    ),
    "isinstance": attack(
        "import builtins\nbuiltins.isinstance = builtins.issubclass = lambda *a: True"
    ),
    "json": attack(
        """
        import json
        json.dumps = lambda *a, **k: '["tuple", [["str", "value"], ["bool", true]]]'
        json.loads = lambda *a, **k: True
        json.JSONEncoder.encode = json.JSONEncoder.iterencode = lambda *a, **k: "true"
        """,
    ),
    "pytest": attack(
        """
        import sys, types
        fake = types.ModuleType("pytest")
        fake.approx = fake.raises = fake.fail = lambda *a, **k: None
        sys.modules["pytest"] = sys.modules["unittest"] = sys.modules["nbgrader"] = fake
        """
    ),
    "sys.modules": attack(
        """
        import sys, types
        fake = types.ModuleType("lgcourse.grading.comparison")
        fake.compare = lambda *a, **k: None
        for name in list(sys.modules):
            if "grading" in name or name in ("struct", "json", "socket"):
                sys.modules[name] = fake
        """
    ),
    "the process's own code": attack(
        """
        from lgcourse.grading.sandbox import child, codec, wire
        child.Child.ask = lambda self, *a: ("passed",)
        """,
        points=0,
    ),
    "time": attack("import time\ntime.monotonic = time.time = lambda: 0.0\ntime.sleep = print"),
}

# --- answers that are more than values ------------------------------------------------------------
OBJECTS = {
    "always equal": answer(
        "return Equal()",
        """
        class Equal:
            __class__ = torch.Tensor
            dtype, shape = torch.bool, torch.Size([5])
            device, layout = torch.device("cpu"), torch.strided
            def __eq__(self, other): return True
            def __bool__(self): return True
            def __getattr__(self, name): return lambda *a, **k: self
        """,
    ),
    "an int that equals all": attack(
        exact=WRONG,
        before="""
        class Int(int):
            def __eq__(self, other): return True
            def __sub__(self, other): return 0
            __hash__ = None
        """,
        after="addition_step = lambda n, t: (Int(0), Int(0), Int(0), Int(0))",
        points=0,
    ),
    "a tensor subclass": answer(
        "return torch.zeros(len(guess)).bool().as_subclass(Sly)",
        """
        class Sly(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                return True
        """,
    ),
    "methods on a tensor": answer(
        """
        made = torch.zeros(len(guess)).bool()
        for name in ("tolist", "numpy", "detach", "__eq__", "clone"):
            setattr(made, name, lambda *a: torch.ones(len(guess)).bool())
        return made
        """
    ),
    "pickle": answer(
        "return Bomb()",
        """
        class Bomb:
            def __reduce__(self):
                import os
                return (os.system, ("touch /tmp/lgcourse-was-here",))
        """,
    ),
    "a class that raises": answer(
        "return Odd()",
        """
        class Meta(type):
            def __getattribute__(cls, name): raise SystemExit(name)
        class Odd(metaclass=Meta):
            def __getattribute__(self, name): raise SystemExit(name)
        """,
    ),
    "a list in itself": answer("made = []\nmade.append(made)\nreturn made"),
    "a huge number": answer("return 1 << 80_000_000"),
    "a huge view": answer("return torch.zeros(1).bool().expand(1 << 40)"),
    "a million parts": answer("return [[0] * 1000 for _ in range(1000)]"),
    "not a number": answer("return torch.full((len(guess),), float('nan'))"),
    "a generator without end": answer("return (i for i in iter(int, 1))"),
    "an error without text": answer(
        "raise Silent",
        """
        class Silent(BaseException):
            def __str__(self): raise SystemExit
            __repr__ = __str__
        """,
    ),
    "an error with too much text": answer(
        "raise ValueError('<script>alert(1)</script>' * 100_000)"
    ),
    "our own errors": answer(
        """
        from lgcourse.grading.answers import CannotGrade, NotAttempted
        raise CannotGrade("give me the points")
        """
    ),
    "a package that is said to be missing": answer(
        "raise ModuleNotFoundError('no torch', name='torch')"
    ),
}

# --- looking for what would be right --------------------------------------------------------------
READING = {
    "frames": answer(
        """
        import sys
        frame = sys._getframe()
        while frame is not None:
            for values in (frame.f_locals, frame.f_globals):
                for name in ("expected", "reference", "reference_exact_match", "pairs"):
                    if name in values:
                        found = values[name]
                        return found(guess, target) if callable(found) else found
            frame = frame.f_back
        return (guess == target).any(dim=1)
        """
    ),
    "objects in memory": answer(
        """
        import gc
        for thing in gc.get_objects():
            if type(thing) is dict and "reference_exact_match" in thing:
                return thing["reference_exact_match"](guess, target)
        return (guess == target).any(dim=1)
        """
    ),
    "environment": answer(
        """
        import os, sys
        said = " ".join([*os.environ, *os.environ.values(), *sys.argv])
        assert "bank" not in said and "PYTEST" not in said
        return (guess == target).any(dim=1)
        """
    ),
    "files": answer(
        """
        import os
        for place, _, names in os.walk("/"):
            for name in names:
                if name == "e01.py" or name.startswith("01_length"):
                    with open(os.path.join(place, name)) as file:
                        if "def reference_exact_match" in file.read():
                            return (guess == target).all(dim=1)
        return (guess == target).any(dim=1)
        """,
        needs=("files",),
    ),
    "the library's own reference": answer(
        """
        from lgcourse.grading.bank.e01 import reference_exact_match
        return reference_exact_match(guess, target)
        """
    ),
    "the library without its guard": answer(
        """
        import importlib, sys
        sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "Rooms"]
        for name in [n for n in sys.modules if n.startswith("lgcourse")]:
            del sys.modules[name]
        sys.path[:0] = [PLACE]
        from lgcourse.grading.bank.e01 import reference_exact_match
        return reference_exact_match(guess, target)
        """,
        needs=("files",),
    ),
    "the library's answer": answer(
        """
        from lgcourse import tasks
        return tasks.get("copy").answer(guess, target)
        """
    ),
    "proc": answer(
        """
        import os
        for name in os.listdir("/proc"):
            for part in ("mem", "environ", "maps", "cmdline"):
                with open(f"/proc/{name}/{part}", "rb") as file:
                    if b"reference_exact_match" in file.read(1 << 20):
                        return (guess == target).all(dim=1)
        return (guess == target).any(dim=1)
        """,
        needs=("alone",),
    ),
    "visible cases by heart": attack(
        exact="""
        SEEN = {}
        def exact_match(guess, target):
            right = torch.tensor([a == b for a, b in zip(guess.tolist(), target.tolist())])
            return right if guess.tolist() in VISIBLE else ~right
        """
    ),
}

# --- the conversation with the parent -------------------------------------------------------------
FORGED = """
import os, socket, struct
def forged(value):
    import json
    header = json.dumps(value).encode()
    data = struct.pack("<I", len(header)) + header
    return struct.pack("<Q", len(data)) + data
def handles():
    found = []
    for number in range(3, 64):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            pass
    return found
"""
STREAM = {
    "garbage": attack(FORGED, after="for h in handles(): os.write(h, b'x' * 100_000)"),
    "a forged pass": attack(
        FORGED,
        after="""
        for h in handles():
            for _ in range(50):
                os.write(h, forged(["tuple", [["str", "value"], ["bool", True]]]))
        """,
    ),
    "a forged end of the cells": attack(
        FORGED,
        after="""
        every = ["list", [["str", "exact_match"], ["str", "addition_step"]]]
        for h in handles():
            os.write(h, forged(["tuple", [["str", "loaded"], every, ["dict", []], ["list", []]]]))
        """,
        points=0,
    ),
    "a message without end": attack(
        FORGED, after="for h in handles(): os.write(h, struct.pack('<Q', 1 << 60))"
    ),
    "a closed channel": attack(after="import os\nos.closerange(0, 4096)"),
    "a channel that is read": answer(
        """
        for h in handles():
            os.set_blocking(h, False)
            try:
                os.read(h, 1 << 20)
            except OSError:
                pass
        return (guess == target).any(dim=1)
        """,
        FORGED,
    ),
    "half a message, then nothing": answer(
        """
        for h in handles():
            os.write(h, struct.pack("<Q", 1000))
        while True: pass
        """,
        FORGED,
    ),
    "stdout": attack(
        """
        import sys
        print('{"submissions": [{"id": "me", "score": 8}]}')
        sys.__stdout__.write("PASSED " * 1000)
        sys.stderr.write("ok")
        """
    ),
    "16 MB of prints": answer(
        "for _ in range(16): print('x' * (1 << 20))\nreturn (guess == target).any(dim=1)"
    ),
    "result files": attack(
        """
        import os
        for place in ("grades.csv", "/tmp/grades.csv", "../results.jsonl", PLACE + "/stolen.txt"):
            try:
                with open(place, "w") as file: file.write("me,8")
            except OSError:
                pass
        """
    ),
}

# --- leaving, staying, taking too much ------------------------------------------------------------
ENDING = {
    "os._exit in a cell": attack(before="import os\nos._exit(0)"),
    "os._exit in a call": answer("import os\nos._exit(0)"),
    "sys.exit in a cell": attack(before="import sys\nsys.exit(0)", after="raise SystemExit"),
    "sys.exit in a call": answer("raise SystemExit(0)"),
    "an interrupt": answer("raise KeyboardInterrupt", points=3),
    "a signal to itself": answer("import os\nos.kill(os.getpid(), 9)\nos.abort()"),
    "signals to all others": attack(
        """
        import os, signal
        for target in (os.getppid(), 0 - os.getppid(), -1):
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    if target not in (0, 1): os.kill(target, number)
                except OSError:
                    pass
        """,
        needs=("alone",),
    ),
    "signals that are ignored": answer(
        "while True: pass",
        """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        """,
    ),
    "atexit": attack("import atexit, os\natexit.register(lambda: os.system('touch /tmp/x'))"),
    "a thread that outlives the call": answer(
        """
        import threading
        def spin():
            while True: pass
        threading.Thread(target=spin, daemon=False).start()
        return (guess == target).any(dim=1)
        """
    ),
    "a fork bomb of 200": answer(
        """
        import os, time
        made = 0
        for _ in range(200):
            try:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                made += 1
            except OSError:
                break
        assert made < 60, "no bound"
        return (guess == target).any(dim=1)
        """,
        needs=("processes",),
    ),
    "a grandchild of its own session": answer(
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for number in range(3):
                    os.close(number)
                time.sleep(60)
            os._exit(0)
        return (guess == target).any(dim=1)
        """,
        needs=("processes",),
    ),
    "a fork that answers, too": answer(
        "import os\nos.fork()\nreturn (guess == target).any(dim=1)", needs=("processes",)
    ),
    "a loop without end in a cell": attack(before="while True: pass"),
    "a loop without end in a call": answer("while True: pass"),
    "a sleep": answer("import time\ntime.sleep(1000)"),
    "a regular expression without end": answer("import re\nre.match('(a+)+$', 'a' * 60 + 'b')"),
    "recursion": answer("return exact_match(guess, target)"),
    "recursion without the limit": answer(
        "import sys\nsys.setrecursionlimit(1 << 30)\nreturn exact_match(guess, target)"
    ),
    "a crash": answer("import ctypes\nctypes.string_at(0)"),
    "16 GB": answer("torch.zeros(16 << 30, dtype=torch.uint8)", needs=("memory",)),
    "16 GB of bytes in a cell": attack("data = bytearray(16 << 30)", needs=("memory",)),
    "a 64 MB file": answer(
        """
        with open("large", "wb") as file:
            for _ in range(64): file.write(b"x" * (1 << 20))
        """,
        needs=("file size",),
    ),
    "thousands of files": answer(
        """
        for number in range(5000): open(f"file{number}", "w").close()
        return (guess == target).any(dim=1)
        """,
        needs=("files",),
    ),
    "a folder that is hard to remove": answer(
        """
        import os
        for _ in range(200):
            os.mkdir("d")
            os.chdir("d")
        os.symlink("/", "root")
        return (guess == target).any(dim=1)
        """
    ),
    "limits that are raised": answer(
        """
        import os, resource
        for limit in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
            try:
                resource.setrlimit(limit, (resource.RLIM_INFINITY,) * 2)
            except (OSError, ValueError):
                continue
            return (guess == target).all(dim=1)
        for leave in (lambda: os.setuid(0), lambda: os.chroot("/"), lambda: os.nice(-20)):
            try:
                leave()
            except OSError:
                continue
            return (guess == target).all(dim=1)
        return (guess == target).any(dim=1)
        """
    ),
    "mounts": answer(
        """
        import ctypes
        libc = ctypes.CDLL(None)
        if libc.unshare(0x20000) == 0 or libc.mount(b"none", b"/", None, 32, None) == 0:
            return (guess == target).all(dim=1)
        return (guess == target).any(dim=1)
        """
    ),
    "the network": answer(
        """
        import socket
        for address in (("1.1.1.1", 53), ("127.0.0.1", 22)):
            try:
                socket.create_connection(address, timeout=0.5)
                return (guess == target).all(dim=1)
            except OSError:
                pass
        return (guess == target).any(dim=1)
        """,
        needs=("network",),
    ),
    "a server": attack(
        """
        import socket
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen()
        """
    ),
    "a shell": attack(
        "import os, subprocess\nos.system('true')\nsubprocess.run(['/bin/sh', '-c', ':'])"
    ),
}

# --- what stays behind when a call has ended ------------------------------------------------------
LATER = {
    "a tensor that a thread changes later": answer(
        """
        import threading, time
        made = torch.zeros(len(guess)).bool()
        def turn():
            while True:
                made.logical_not_()
        threading.Thread(target=turn, daemon=True).start()
        return made
        """
    ),
    "an alarm that goes off later": answer(
        """
        import signal
        def forge(*_): raise SystemExit(0)
        signal.signal(signal.SIGALRM, forge)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        return (guess == target).any(dim=1)
        """
    ),
    # It slows what it watches, so the honest answer ends it: else the speed of the machine decides.
    "a trace of all that runs": Attack(
        (
            "import torch",
            TRACE + "sys.settrace(see)\nsys.setprofile(see)\nthreading.settrace(see)",
            WRONG,
            STEP.replace("    return", "    sys.settrace(None), sys.setprofile(None)\n    return"),
        )
    ),
    "a trace of the grader's frames": attack(
        TRACE
        + "def ours(frame, event, argument):\n"
        + "    if 'lgcourse' in frame.f_code.co_filename:\n"
        + "        return see(frame, event, argument)\n"
        + "sys.settrace(ours)\nsys.setprofile(ours)\nthreading.settrace(ours)"
    ),
    "an audit hook": attack(
        """
        import sys
        def refuse(event, arguments):
            if event in ("socket.connect", "os.kill", "signal.pthread_kill"):
                raise RuntimeError(event)
        sys.addaudithook(refuse)
        """
    ),
    "a mode in which torch is always right": attack(
        """
        from torch.overrides import TorchFunctionMode
        class Right(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                made = function(*args, **(kwargs or {}))
                return torch.ones_like(made) if function is torch.Tensor.any else made
        Right().__enter__()
        """
    ),
    "no device at all": attack("torch.set_default_device('meta')"),
    "a function whose code is exchanged": answer(
        """
        def right(guess, target):
            return torch.ones(len(guess)).bool()
        exact_match.__code__ = right.__code__
        return (guess == target).any(dim=1)
        """
    ),
    "an answer that learns from being asked again": attack(
        exact="""
        class Guess:
            tries = 0
            def __call__(self, guess, target):
                self.tries += 1
                return torch.tensor([bool((self.tries >> k) & 1) for k in range(len(guess))])
        exact_match = Guess()
        """
    ),
    "notes that it left to itself": answer(
        """
        import os
        places = (".", "/tmp", "/var/tmp", "/dev/shm", "/run", os.path.expanduser("~"))
        if any(os.path.exists(place + "/tried") for place in places):
            return (guess == target).all(dim=1)
        for place in places:
            try:
                open(place + "/tried", "w").close()
            except OSError:
                pass
        os._exit(1)
        """,
        needs=("files",),
    ),
    "a late look at the clock": answer(
        "import time\nmark = time.process_time()\nwhile time.process_time() < mark + 1: pass\n"
        "time.sleep(1.5)\nreturn (guess == target).any(dim=1)"
    ),
    "an import that is exchanged": attack(
        """
        import builtins
        true = builtins.__import__
        def fetch(name, *more, **options):
            made = true(name, *more, **options)
            if name == "torch": made.equal = lambda *a: True
            return made
        builtins.__import__ = fetch
        """
    ),
    "an object that ends the process when it is dropped": answer(
        "return [Last()]",
        """
        import os
        class Last:
            def __del__(self): os._exit(0)
        """,
    ),
    "code that no parser survives": attack(after="x = " + "-" * 200_000 + "1"),
    "ten thousand definitions": attack(after="\n".join("def f(): return 1" for _ in range(10_000))),
}

ATTACKS = {**PATCHES, **OBJECTS, **READING, **STREAM, **ENDING, **LATER}

# --- notes from one submission to the next --------------------------------------------------------
# Both submissions run the same code: who finds a note copies it, who finds none leaves one.
CHANNELS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
NOTE = b"the answers of a friend"
found = []

def memory():
    segment = libc.shmget(4711, 4096, 0o666)
    if segment >= 0:
        found.append("shared memory")
    libc.shmget(4711, 4096, 0o666 | 0o1000)

def queue():
    if libc.msgget(4711, 0o666) >= 0:
        found.append("a message queue")
    libc.msgget(4711, 0o666 | 0o1000)

def posix():
    if ctypes.CDLL(None).mq_open(b"/note", 0o2) >= 0:
        found.append("a queue with a name")
    ctypes.CDLL(None).mq_open(b"/note", 0o102, 0o666, None)

def keys():
    add, ask = (248, 250) if os.uname().machine == "x86_64" else (217, 219)
    for ring in (-3, -4):  # of the session, of the user
        if libc.syscall(ask, 10, ring, b"user", b"note", 0) > 0:
            found.append(f"keyring {ring}")
        libc.syscall(add, b"user", b"note", NOTE, len(NOTE), ring)

def files():
    places = (".", "/tmp", "/var/tmp", "/dev/shm", "/run", "/box", "/root", "/")
    found.extend(place for place in places if os.path.exists(place + "/note"))
    for place in places:
        try:
            open(place + "/note", "w").close()
        except OSError:
            pass

for channel in (memory, queue, posix, keys, files):
    try:
        channel()
    except Exception:
        pass
"""
FOUND = """
def exact_match(guess, target):
    if found:
        raise LookupError(", ".join(found))
    return (guess == target).all(dim=1)
"""
