"""Is the solution gone from the student's cells, and does what remains run to its end?"""

from __future__ import annotations

import ast
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcourse.authoring import cut
from lgcourse.authoring.leaks import leaks
from lgcourse.authoring.percent import Cell, parse, render
from lgcourse.errors import InputError


def student(source: str) -> str:
    return cut.student([Cell("code", source, line=1)], "a.py")[0].source


def block(body: str, marker: str = "### BEGIN SOLUTION") -> str:
    return f"{marker}\n{body}\n### END SOLUTION"


# A piece is (visible lines, hidden lines); hidden lines are unlike all others and long enough.
SECRET = st.integers(10**11, 10**12).map(lambda number: f"secret_{number} = {number}")
HIDDEN = st.lists(SECRET, min_size=1, max_size=4)
PLACES = {
    "top": lambda body: body,
    "if": lambda body: "if True:\n" + indent(body, "    "),
    "function": lambda body: (
        "def f(x):\n    '''Doc.'''\n" + indent(body, "    ") + "\n    return x"
    ),
    "async": lambda body: "async def f():\n" + indent(body, "    "),
    "init": lambda body: "class A:\n    def __init__(self):\n" + indent(body, " " * 8),
    "class": lambda body: "class A:\n" + indent(body, "    "),
    "method": lambda body: "class A:\n    def m(self):\n        if 1:\n" + indent(body, " " * 12),
    "inner": lambda body: "def f():\n\tdef g():\n" + indent(body, "\t\t") + "\n\treturn g",
}
PIECES = st.lists(st.tuples(st.sampled_from(sorted(PLACES)), HIDDEN), min_size=1, max_size=4)


@given(PIECES, st.booleans())
def test_no_line_of_a_solution_is_left_and_no_other_line_is_lost(
    pieces: list[tuple[str, list[str]]], named: bool
) -> None:
    marker = "### BEGIN SOLUTION AS answer = ..." if named else "### BEGIN SOLUTION"
    source, hidden = [], []
    for place, lines in pieces:
        source += ["before = 0", PLACES[place](block("\n".join(lines), marker)), "after = 0"]
        hidden += lines
    text = "\n".join(source)
    left = student(text)
    assert not any(line in left for line in hidden)
    assert left.count("# your code here") == len(pieces)
    visible = [
        line for line in text.split("\n") if line.strip() not in hidden and "SOLUTION" not in line
    ]
    assert [line for line in left.split("\n") if "# your code" not in line] == visible
    exec(compile(left, "student", "exec"), {})  # definitions and stubs run
    kept = cut.solution([Cell("code", text)], "a.py")[0].source
    assert kept.split("\n") == [line for line in text.split("\n") if "SOLUTION" not in line]


@pytest.mark.parametrize(
    ("place", "stub"),
    [
        ("top", "..."),
        ("if", "..."),
        ("class", "..."),
        ("init", "..."),
        ("function", "return ..."),
        ("async", "return ..."),
        ("method", "return ..."),
        ("inner", "return ..."),
    ],
)
def test_the_stub_is_a_return_where_one_may_stand(place: str, stub: str) -> None:
    left = student(PLACES[place](block("# why\n\nx = 1")))
    assert [line.strip() for line in left.split("\n") if "your code" in line] == [
        f"{stub}  # your code here"
    ]


def test_a_stub_returns_ellipsis() -> None:
    names: dict[str, object] = {}
    exec(student("def f(x):\n" + indent(block("return x + 1"), "    ")), names)
    assert names["f"](1) is ...  # type: ignore[operator]


def test_a_block_may_hold_a_whole_function() -> None:
    text = block("def f(x):\n    return x", "### BEGIN SOLUTION AS f = None")
    assert student("x = 1\n" + text) == "x = 1\nf = None  # your code here"
    assert student(block("def f(x): return x")) == "...  # your code here"
    assert student(block("@staticmethod\ndef f(x):\n    return x")) == "...  # your code here"


def test_cells_for_one_side_only() -> None:
    cells = [
        Cell("markdown", "both"),
        Cell("markdown", "why", ("solution",)),
        Cell("code", "1", ("student",)),
        Cell("code", "2", ("solution",)),
    ]
    assert [cell.source for cell in cut.student(cells, "a.py")] == ["both", "1"]
    assert [cell.source for cell in cut.solution(cells, "a.py")] == ["both", "why", "2"]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("# %%\nx = 1\n### BEGIN SOLUTION\n", 3, "without an END"),
        ("# %%\n### BEGIN SOLUTION\nx = 1\n# %%\n### END SOLUTION\n", 2, "without an END"),
        ("# %%\n### END SOLUTION\n", 2, "without a BEGIN"),
        ("# %%\n### BEGIN SOLUTION\ny = 2\n### BEGIN SOLUTION\n### END SOLUTION", 4, "still open"),
        ("# %%\n### BEGIN SOLUTIONS\nx = 1\n### END SOLUTION\n", 2, "a marker is"),
        ("# %%\n### BEGIN SOLUTON\nx = 1\n### END SOLUTON\n", 2, "a marker is"),
        ("# %%\n# BEGIN SOLUTION\nx = 1\n# END SOLUTION\n", 2, "a marker is"),
        ("# %%\n###BEGIN SOLUTION\nx = 1\n###END SOLUTION\n", 2, "a marker is"),
        ("# %%\n### begin solution\nx = 1\n### end solution\n", 2, "a marker is"),
        ("# %%\n### BEGIN SOLUTION as x = ...\nx = 1\n### END SOLUTION\n", 2, "a marker is"),
        ("# %%\n### BEGIN SOLUTION AS\nx = 1\n### END SOLUTION\n", 2, "a marker is"),
        ("# %%\n\n\nx = 1  ### BEGIN SOLUTION\n### END SOLUTION\n", 4, "a marker is"),
        ("# %% [markdown]\n# a\n# ### BEGIN SOLUTION\n# b\n# ### END SOLUTION\n", 3, "tag it"),
        ("# %%\n### BEGIN SOLUTION\n# no code\n\n### END SOLUTION\n", 2, "holds no code"),
        ("# %%\nx = (1 +\n", 2, "not Python"),
        ("# %%\nx = 1\n%matplotlib inline\n", 3, "not Python"),
        ("# %%\nx = [\n### BEGIN SOLUTION AS x =\n1\n### END SOLUTION\n]", 3, "with the stub"),
        (
            "# %%\ndef f():\n    pass\n### BEGIN SOLUTION AS return ...\nx = 1\n### END SOLUTION\n",
            4,
            "with the stub",
        ),
        ('# %% tags=["solution", "student"]\nx = 1\n', 2, "not both"),
    ],
)
def test_a_slip_in_an_exercise_is_named_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        cut.student(parse(text, "01_a.py"), "01_a.py")
    assert str(caught.value).startswith(f"01_a.py:{line}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# %%\nx = 1\n### BEGIN SOLUTION\ny = 1\n### END SOLUTION\n", 3),
        ('# %% tags=["solution"]\nx = 1\n', 2),
        ('# %% [markdown] tags=["student"]\n# x\n', 2),
    ],
)
def test_a_lesson_has_no_solution(text: str, line: int) -> None:
    with pytest.raises(InputError, match=rf"^01_a.py:{line}: a lesson has no solution"):
        cut.lesson(parse(text, "01_a.py"), "01_a.py")


def test_top_level_await_is_allowed_as_it_is_in_a_notebook() -> None:
    cells = [Cell("code", "import asyncio\nawait asyncio.sleep(0)")]
    assert cut.lesson(cells, "01_a.py") == cells


@given(HIDDEN, st.integers(0, 3))
def test_the_search_for_leaks_finds_a_cut_that_leaves_a_line(lines: list[str], which: int) -> None:
    """A cut that forgets one line of the block is a known wrong version: it must be found."""
    cells = [Cell("markdown", "Text."), Cell("code", block("\n".join(lines)))]
    source = render(cells)
    forgotten = lines[which % len(lines)]
    right = repr(student(cells[1].source))
    assert leaks(source, right) == []
    assert leaks(source, f"{right} {forgotten}") == [forgotten]


def test_compiling_does_not_warn_about_the_authors_code(recwarn: pytest.WarningsRecorder) -> None:
    assert student(r"pattern = '\d'") == r"pattern = '\d'"
    assert not recwarn.list
    assert ast.parse(student("x = 1"))
