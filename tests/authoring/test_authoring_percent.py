"""Does the percent format say what the notebook will be, and are slips in it found?"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcourse.authoring.percent import TAGS, Cell, parse, render
from lgcourse.errors import InputError

ANY_LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=20)
CODE_LINE = ANY_LINE.filter(lambda line: not re.match(r"#\s*%%", line))
TEXT_LINE = ANY_LINE.filter(lambda line: not line.lstrip().startswith("%%"))
TITLE = st.text("ab é:,?%#()", max_size=12).map(str.strip)


def sources(line: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Make texts without blank lines at the ends, which a source cannot hold."""
    return (
        st.lists(line, max_size=5)
        .filter(lambda lines: not lines or bool(lines[0].strip() and lines[-1].strip()))
        .map("\n".join)
    )


TAG_LISTS = st.lists(st.sampled_from(TAGS), unique=True, max_size=3).map(tuple)
CELLS = st.one_of(
    st.builds(Cell, st.just("code"), sources(CODE_LINE), TAG_LISTS, TITLE),
    st.builds(Cell, st.just("markdown"), sources(TEXT_LINE), TAG_LISTS, TITLE),
)


@given(st.lists(CELLS, min_size=1, max_size=6))
def test_parse_gives_back_what_render_wrote(cells: list[Cell]) -> None:
    assert parse(render(cells)) == cells


@given(st.lists(CELLS, min_size=1, max_size=4), st.sampled_from(["\r\n", "\r"]))
def test_line_ends_do_not_matter(cells: list[Cell], end: str) -> None:
    assert parse(render(cells).replace("\n", end)) == cells


@given(st.lists(CELLS, min_size=1, max_size=6))
def test_the_line_of_a_cell_is_where_its_text_starts(cells: list[Cell]) -> None:
    lines = render(cells).split("\n")
    for cell in parse(render(cells)):
        if cell.source:
            first = cell.source.split("\n")[0]
            assert lines[cell.line - 1] == (f"# {first}" if cell.kind == "markdown" else first)


def test_a_source_as_an_author_writes_it() -> None:
    text = (
        '"""For authors."""\n# a comment\n\n# %% [markdown] tags=["student"]\n\n# # Title\n#\n'
        '# text\n\n\n# %% Train the model tags=["nbval-skip", "hide-input"]\nx = 1\n\n\ny = 2\n'
        "# %% [markdown] After\n# end\n# %%\n"
    )
    assert parse(text) == [
        Cell("markdown", "# Title\n\ntext", ("student",)),
        Cell("code", "x = 1\n\n\ny = 2", ("nbval-skip", "hide-input"), "Train the model"),
        Cell("markdown", "end", title="After"),
        Cell("code", ""),
    ]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "no cell found"),
        ("# only a comment\n", 1, "no cell found"),
        ("import os\n# %%\n", 1, "before the first"),
        ('"""Doc."""\n\nx = 1\n# %%\n', 3, "before the first"),
        ('"""Doc."""\n"""Another."""\n# %%\n', 2, "before the first"),
        ("'not closed\n# %%\n", 1, "before the first"),
        ("# %%\nx\n#%%\n", 3, "'# %%' and a space"),
        ("# %%\n# %%time\n", 2, "'# %%' and a space"),
        ("# %% [md]\n# a\n", 1, "[markdown]"),
        ("# %% [markdown\n# a\n", 1, "[markdown]"),
        ("# %% [markdown]\n# fine\nnot fine\n", 3, "'# '"),
        ("# %% [markdown]\n## Heading\n", 2, "'# '"),
        ("# %%\nx\n# %% tag=['student']\n", 3, "[markdown]"),
        ("# %% id=3\n", 1, "tags=[...]"),
        ("# %% tags=['student']\n", 1, "tags are written"),
        ("# %% tags=student\n", 1, "tags are written"),
        ("# %% tags=[]\n", 1, "tags are written"),
        ("# %% tags=[1]\n", 1, "tags are written"),
        ('# %% tags=["student"] more\n', 1, "tags are written"),
        ('# %% tags=["student", "student"]\n', 1, "twice"),
        ('# %% tags=["solutions"]\n', 1, "did you mean 'solution'?"),
    ],
)
def test_a_slip_is_named_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "course/lessons/01_a.py")
    message = str(caught.value)
    assert message.startswith(f"course/lessons/01_a.py:{line}: ")
    assert reason in message
    assert "\n" not in message
