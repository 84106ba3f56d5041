"""Is a line of the solution found wherever a student's notebook may hold it?"""

from __future__ import annotations

import json

import pytest

from lgcourse.authoring.leaks import leaks
from lgcourse.authoring.texts import strings

LINE = "return [\"a\" + '\\n' for digit in number if digit < 10]"
SOURCE = f"""# %% [markdown]
# # Title with sum(values) in it
# %%
def f(number, values):
    ### BEGIN SOLUTION AS total = zero(values)
    total = zero(values)
    x = 1
    sum(values)
    {LINE}
    ### END SOLUTION
# %% [markdown] tags=["solution"]
# Because the carry is local.
# %% tags=["solution"]
print("the solution only")
# %%
print("everybody")
"""
HTML_LINE = (
    "<pre>return [&quot;a&quot; + &#x27;\\n&#x27; for digit in number if digit &lt; 10]</pre>"
)


@pytest.mark.parametrize(
    "notebook",
    [
        {"cells": [{"source": ["def f():\n", f"    {LINE}\n"]}]},
        {"cells": [{"source": f"# {LINE}"}]},
        {"cells": [{"outputs": [{"text": ["Traceback\n", f"----> 3 {LINE}"]}]}]},
        {"cells": [{"outputs": [{"data": {"text/plain": repr(LINE)}}]}]},
        {"cells": [{"outputs": [{"data": {"text/html": [HTML_LINE]}}]}]},
        {"cells": [{"outputs": [{"traceback": [LINE.replace(" ", " \x1b[38;5;28m")]}]}]},
        {"cells": [{"metadata": {"note": LINE.replace(" ", "  ")}}]},
        {"metadata": {LINE: 1}},
        {"metadata": {"saved": json.dumps({"source": LINE})}},
    ],
)
def test_a_line_is_found_in_every_place(notebook: dict[str, object]) -> None:
    assert leaks(SOURCE, json.dumps(notebook)) == [LINE]


def test_a_file_that_is_not_json_is_searched_too() -> None:
    assert leaks(SOURCE, f"<<<<<<< HEAD\n{LINE}\n") == [LINE]


def test_cells_of_the_solution_are_searched_for() -> None:
    found = leaks(SOURCE, json.dumps(["Because the carry is local.", 'print("the solution only")']))
    assert found == ["Because the carry is local.", 'print("the solution only")']


def test_what_the_student_may_see_is_no_leak() -> None:
    """Stub text, short lines, and lines that stand in the visible part too."""
    seen = ["total = zero(values)", "x = 1", "sum(values)", 'print("everybody")', "def f(number):"]
    assert leaks(SOURCE, json.dumps(seen)) == []


def test_images_are_not_searched() -> None:
    value = {"image/png": "AAAA", "image/svg+xml": "<svg/>", "buffers": [{"data": "BBBB"}]}
    html = {"text/html": "<img src='data:image/png;base64,CCCC=='/>"}
    found = " ".join(strings([value, html]))
    assert "<svg/>" in found
    assert "<img src=" in found
    assert not any(data in found for data in ("AAAA", "BBBB", "CCCC"))
