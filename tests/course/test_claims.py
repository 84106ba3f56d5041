"""Does each lesson print what README.md says that it prints?"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|`]+) \| (\d+) \| (.*`.*) \|$", re.MULTILINE)
CLAIMS = ROW.findall(README)


def printed(number: int) -> list[str]:
    """Return the lines that a lesson printed when it was built, with single spaces."""
    (path,) = (ROOT / "notebooks").glob(f"{number:02}_*.ipynb")
    outputs = [o for cell in nbformat.read(path, 4).cells for o in cell.get("outputs", ())]
    text = "\n".join(o["text"] for o in outputs if o.output_type == "stream")
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize(("claim", "number", "shown"), CLAIMS, ids=[c[0][:40] for c in CLAIMS])
def test_a_lesson_prints_what_the_table_of_claims_says(claim, number, shown):
    lines = printed(int(number))
    for quoted in re.findall(r"`([^`]+)`", shown):
        assert any(line.startswith(quoted) for line in lines), quoted


def test_every_lesson_from_three_to_eleven_shows_a_claim():
    assert set(map(int, (number for _, number, _ in CLAIMS))) >= set(range(3, 12))
