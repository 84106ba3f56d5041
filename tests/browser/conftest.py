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
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
PATIENCE = 120_000  # milliseconds; for machines that are busy with other things
# What a browser says about itself, not about a page.
NOISE = re.compile(r"favicon|Autofocus processing was blocked")
SETTINGS = {  # of JupyterLab: all cells are in the page, also those out of sight
    "@jupyterlab/notebook-extension:tracker": {
        "windowingMode": "none",
        "autoStartDefaultKernel": True,
    },
    # the state of widgets is saved with the notebook
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
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


class Pages:
    """The open pages of some tests, and what went wrong on them."""

    def __init__(self, browser):
        self.browser, self.contexts, self.problems = browser, [], []

    def open(self, url, **options):
        """Open an address in a window of its own; return its page."""
        context = self.browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        context.set_default_timeout(PATIENCE)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self._note(f"page: {error}"))
        page.on(
            "console", lambda m: self._note(f"console: {m.text}") if m.type == "error" else None
        )
        page.on("request", lambda r: self._note(f"asks for {r.url}") if outside(r.url) else None)
        page.goto(url)
        return page

    def _note(self, problem):
        if not NOISE.search(problem):
            self.problems.append(problem)

    def close(self):
        """Close all windows."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()

    def shoot(self, name):
        """Keep a picture of every page."""
        folder = Path(os.environ.get("SCREENSHOTS", ROOT / "build" / "screenshots"))
        folder.mkdir(parents=True, exist_ok=True)
        for number, page in enumerate(page for context in self.contexts for page in context.pages):
            path = folder / f"{re.sub(r'[^a-zA-Z0-9]+', '-', name).strip('-')}-{number}.png"
            page.screenshot(path=path)
            print(f"screenshot: {path}")


def outside(url):
    """Return whether an address is one of another machine."""
    return not re.match(r"(http|ws)s?://(127\.0\.0\.1|localhost)[:/]|data:|blob:|file:|about:", url)


@pytest.fixture(scope="module")
def pages(browser):
    """The pages of a module, closed at its end."""
    pages = Pages(browser)
    yield pages
    pages.close()


@pytest.fixture(autouse=True)
def quiet(request):
    """No page may say that something went wrong; a test that fails leaves screenshots."""
    if "pages" not in request.fixturenames:
        yield
        return
    pages = request.getfixturevalue("pages")
    yield
    problems, pages.problems = pages.problems, []
    if getattr(request.node, "failed", False) or problems:
        pages.shoot(request.node.name)
    assert problems == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Let fixtures know that their test has failed."""
    report = yield
    if report.failed:
        item.failed = True
    return report


class Server:
    """A server program on a free port of this machine, in a folder of its own.

    Args:
        folder: where its files lie; it has no other home.
        command: gets the port, returns the arguments of Python.
        ready: the path that answers once it has started.
        settings: of JupyterLab, instead of those it has by default.
    """

    def __init__(self, folder, command, ready, settings=SETTINGS):
        self.folder, self.port = folder, free_port()
        home = folder / ".home"
        (home / "config" / "labconfig").mkdir(parents=True)
        overrides = home / "config" / "labconfig" / "default_setting_overrides.json"
        overrides.write_text(json.dumps(settings))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        self.environment |= {
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

    def _wait(self, ready):
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.url + ready, timeout=PATIENCE / 1000):
                    return
            except urllib.error.HTTPError:
                return  # somebody is there
            except OSError:
                time.sleep(0.2)  # nobody listens yet
        self.close()
        self.log.seek(0)
        raise AssertionError(f"the server did not start:\n{self.log.read()[-3000:]}")

    def close(self):
        """End the program."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lab_command(port, *more):
    """Return the arguments of a JupyterLab without token, browser or news."""
    return [
        *("-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *("--IdentityProvider.token=", "--ServerApp.password="),
        *("--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"),
        *more,
    ]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab in a folder of its own."""
    chromium_path()
    pytest.importorskip("jupyterlab", reason="needs JupyterLab: pip install 'lgcourse[course]'")
    server = Server(tmp_path_factory.mktemp("lab"), lab_command, "/api/status")
    yield server
    server.close()


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """JupyterLab that has no kernel to start: notebooks can be read only."""
    chromium_path()
    pytest.importorskip("jupyterlab", reason="needs JupyterLab: pip install 'lgcourse[course]'")

    def command(port):
        return lab_command(
            port,
            "--KernelSpecManager.ensure_native_kernel=False",
            "--KernelSpecManager.allowed_kernelspecs=absent",
        )

    server = Server(tmp_path_factory.mktemp("reader"), command, "/api/status")
    yield server
    server.close()
