"""How are the widgets seen without a notebook? Voila serves a page that holds them all."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from lgcourse.errors import InputError, whole_number

WIDGETS = Path(__file__).parent / "show" / "widgets"
TEMPLATES = WIDGETS / "jupyter"  # Voila's template, without what it asks other machines for
NOTEBOOK = TEMPLATES / "explorer.ipynb"  # a kernel starts beside it: no module may lie there
PORT = 8866
MISSING = "the explorer needs voila, which is not installed; run: pip install 'lgcourse[explore]'"


def command(port: int = PORT, browser: bool = True) -> list[str]:
    """Return the command that serves the widgets on this machine.

    Args:
        port: the port to listen on.
        browser: whether to open a browser window.

    Raises:
        InputError: the port is none.

    >>> command(8870)[1:3], command(8870, browser=False)[-1]
    (['-m', 'voila'], '--no-browser')
    """
    whole_number("port", port, 1, 65535)
    options = [f"--port={port}", "--Voila.ip=127.0.0.1", "--template=lgcourse"]
    options += [] if browser else ["--no-browser"]
    return [sys.executable, "-m", "voila", str(NOTEBOOK), *options]


def environment() -> dict[str, str]:
    """Return the variables of the command: Voila finds our template on Jupyter's path."""
    paths = [str(TEMPLATES), os.environ.get("JUPYTER_PATH", "")]
    return {**os.environ, "JUPYTER_PATH": os.pathsep.join(filter(None, paths))}


def start(port: int = PORT, browser: bool = True) -> None:
    """Serve the widgets; returns when Voila is stopped with Ctrl-C.

    Raises:
        InputError: Voila is not installed, or the port is none.
    """
    arguments = command(port, browser)
    if importlib.util.find_spec("voila") is None:
        raise InputError(MISSING)
    where = f"http://127.0.0.1:{port}/"
    print(f"the explorer will be at {where} in some seconds; stop it with Ctrl-C", file=sys.stderr)
    if os.name == "nt":  # exec does not replace a process there
        import subprocess

        subprocess.run(arguments, env=environment(), check=False)
        return
    os.execve(arguments[0], arguments, environment())
