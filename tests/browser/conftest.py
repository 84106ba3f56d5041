"""A real browser for tests: Chromium, driven by playwright; skipped with a line where it is not."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
# What a browser says about itself, not about a page.
NOISE = re.compile(r"favicon|ERR_INTERNET_DISCONNECTED|Autofocus processing was blocked")
SETTINGS = {  # of JupyterLab: all cells are in the page, also those out of sight
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}


def chromium_path():
    """Return where a Chromium is, or skip the test with a line that says how to get one."""
    pytest.importorskip(
        "playwright.sync_api",
        reason="browser tests need playwright: pip install 'lgcourse[browser]'",
    )
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.skip(
            "browser tests need Chromium, and none was found: on Debian and Ubuntu run "
            "'apt-get install chromium', or name one in the variable CHROMIUM"
        )
    return found


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of a process."""
    path = chromium_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, request):
    """Open pages; at the end, none may have said that something went wrong."""
    contexts, problems = [], []

    def new(**options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"page: {error}"))
        page.on(
            "console",
            lambda m: problems.append(f"console: {m.text}") if m.type == "error" else None,
        )
        page.on(
            "request",
            lambda r: (
                problems.append(f"asks the network for {r.url}") if is_outside(r.url) else None
            ),
        )
        return page

    yield new
    failed = getattr(request.node, "failed", False)
    problems = [problem for problem in problems if not NOISE.search(problem)]
    if failed or problems:
        folder = Path(os.environ.get("SCREENSHOTS", ROOT / "build" / "screenshots"))
        folder.mkdir(parents=True, exist_ok=True)
        for c, context in enumerate(contexts):
            for p, page in enumerate(context.pages):
                name = re.sub(r"\W+", "-", request.node.name)
                page.screenshot(path=folder / f"{name}-{c}-{p}.png", full_page=True)
    for context in contexts:
        context.close()
    assert problems == []


def is_outside(url):
    """Return whether an address is one of another machine."""
    return not re.match(r"(http|ws)s?://(127\.0\.0\.1|localhost)[:/]|data:|blob:|file:|about:", url)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.failed:
        item.failed = True
    return report


class Server:
    """A server program on a free port of this machine, in a folder of its own.

    Args:
        folder: where its files lie; it has no other home.
        command: gets the port, returns the arguments.
        ready: the path that answers once it has started.
    """

    def __init__(self, folder: Path, command, ready: str):
        self.folder, self.port = folder, free_port()
        home = folder / ".home"
        lab = home / "config" / "labconfig"
        lab.mkdir(parents=True)
        (lab / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "PYTEST"))},
            "HOME": str(home),
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "run"),
            "IPYTHONDIR": str(home / "ipython"),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        self.log = (home / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, *command(self.port)],
            cwd=folder,
            env=self.environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        self._wait(ready)

    def _wait(self, ready: str) -> None:
        end = time.monotonic() + 90
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.url + ready, timeout=60):
                    return
            except OSError:
                time.sleep(0.2)
        self.close()
        self.log.seek(0)
        raise AssertionError(f"the server did not start:\n{self.log.read()[-3000:]}")

    def close(self) -> None:
        """End the program."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lab_command(port: int) -> list[str]:
    """Return the arguments of a JupyterLab without token, browser or news."""
    return [
        *("-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(
            "--IdentityProvider.token=",
            "--ServerApp.password=",
            "--ServerApp.disable_check_xsrf=True",
        ),
        "--LabApp.extension_manager=readonly",
    ]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab in a folder of its own."""
    chromium_path()
    pytest.importorskip("jupyterlab", reason="needs JupyterLab: pip install 'lgcourse[course]'")
    server = Server(tmp_path_factory.mktemp("lab"), lab_command, "/api/status")
    yield server
    server.close()
