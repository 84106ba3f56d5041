"""Which small course do the tests of authoring/ build?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LESSON = '''"""What an author reads; it reaches no notebook."""

# %% [markdown]
# # A lesson
#
# Text.

# %% Add two numbers tags=["nbval-check-output"]
total = 1 + 1
total

# %%
print("seen", total)
'''

EXERCISE = '''# %% [markdown]
# # An exercise

# %%
def successor(number):
    """Return the next number."""
    ### BEGIN SOLUTION
    one = int(True)
    return number + one
    ### END SOLUTION


print(successor(2))

# %% [markdown] tags=["solution"]
# It is the number after this one.

# %% [markdown] tags=["student"]
# Write your answer above.
'''


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Give a folder with one lesson and one exercise."""
    for folder, text in (("lessons", LESSON), ("exercises", EXERCISE)):
        path = tmp_path / "course" / folder / "01_first.py"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def change() -> Callable[[Path, Change], None]:
    """Give a function that changes a notebook file as plain JSON, as Jupyter would write it."""

    def apply(path: Path, how: Change) -> None:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        how(notebook)
        text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8", newline="\n")

    return apply


@pytest.fixture
def pretend_run(change: Callable[[Path, Change], None]) -> Callable[[Path], None]:
    """Give a function that adds what a run would leave: outputs, counts and widgets."""

    def run(notebook: dict[str, Any]) -> None:
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for count, cell in enumerate(code, 1):
            text = [f"output {count}\n", "two lines\n"]
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
            cell["execution_count"] = count
        notebook["metadata"]["widgets"] = {"state": {"a": 1}}

    return lambda path: change(path, run)
