"""Does each lesson run in the time that it may take? Adds up its cells and fails the last one."""

from __future__ import annotations

from collections import Counter

import pytest

LIMIT = 120  # seconds for a whole lesson, on two cores
spent: Counter[str] = Counter()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Count the seconds of a cell; the report of the last one says if they are too many."""
    outcome = yield
    if call.when == "call" and item.path.suffix == ".ipynb":
        file = str(item.path)
        spent[file] += call.duration
        left = [i for i in item.session.items if i.path == item.path]
        if item is left[-1] and spent[file] > LIMIT:
            report = outcome.get_result()
            report.outcome = "failed"
            report.longrepr = f"{item.path.name} took {spent[file]:.0f} s, more than {LIMIT} s"
