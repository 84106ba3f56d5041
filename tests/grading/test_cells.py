"""Do the cells of a notebook run without Jupyter, whatever else stands in them?"""

from __future__ import annotations

import ast
import types

import pytest

from lgcourse.grading.sandbox.absent import Absent, NotHere, NotInstalled, Quiet, stand_ins
from lgcourse.grading.sandbox.cells import Run, parsed


def ran(*cells, names=(), skip=()):
    places = []
    run = Run(list(enumerate(cells, 1)), skip, names, lambda *at: places.append(at))
    run.run()
    return run, places


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline\nx = 1",
        "x = 1\n!pip install torch",
        "!pip install \\\n   torch \\\n   numpy\nx = 1",
        "?len\nx = 1\nlen?\nlen??",
        "files = !ls\nt = %timeit -o 1\nx = 1",
        "if True:\n    %time y = 3\n    x = 1",
        "%%time\nx = 1",
        "\n%%capture out\nx = 1",
        "!ls\r\nx = 1\r\n",
        "x = (7\n     %3)\n!ls",
        'text = """\n!ls\n%time\n"""\nx = 1',
        "x = 1;",
    ],
)
def test_magics_and_shell_escapes_are_skipped(source):
    run, _ = ran(source)
    assert run.namespace["x"] == 1 and not run.problems


def test_text_that_looks_like_a_magic_stays():
    run, _ = ran('text = """\n!ls\n"""\n%time')
    assert run.namespace["text"] == "\n!ls\n"


@pytest.mark.parametrize("source", ["%%bash\nrm -r x", "%%html\n<b>", "%%javascript\nalert(1)", ""])
def test_cells_of_another_language_are_skipped(source):
    run, places = ran(source)
    assert places == [] and not run.problems


def test_an_error_costs_its_statement_alone():
    run, places = ran("a = 1\nb = a / 0\nc = 2", "def f(:\n", "d = b", "e = 3\nraise SystemExit")
    assert {n: run.namespace.get(n) for n in "abcde"} == dict(a=1, b=None, c=2, d=None, e=3)
    assert run.problems == [
        "in cell 1, line 2: b = a / 0: ZeroDivisionError: division by zero",
        "cell 2, line 1: SyntaxError: invalid syntax",
        "in cell 3, line 1: d = b: NameError: name 'b' is not defined",
        "in cell 4, line 2: raise SystemExit: SystemExit: ",
    ]
    assert places == [(1, 0), (1, 1), (1, 2), (3, 0), (4, 0), (4, 1)]


def test_statements_that_ended_a_process_are_left_out():
    run, places = ran("a = 1\nb = 2", skip=[(1, 0)])
    assert "a" not in run.namespace and run.namespace["b"] == 2 and len(places) == 2


def test_future_imports_hold_for_what_follows():
    run, _ = ran("from __future__ import annotations", "def f(x: nothing) -> nothing: return x")
    assert run.namespace["f"](3) == 3 and not run.problems


def test_a_second_definition_is_noticed():
    run, _ = ran("def f(): return 1", "def f(): return 2\ng = 1", names=["f", "g"])
    assert run.namespace["f"]() == 2 and run.defined == {"f": [1, 2], "g": []}


def test_a_missing_package_is_told_and_stood_in_for():
    run, _ = ran("import math, nosuch.part as n, nosuch\nfrom nosuch import a as b, c", "n.x")
    assert run.problems[0] == "cell 1: the package nosuch is not installed here"
    assert run.namespace["math"].pi > 3
    for name in ("n", "nosuch", "b", "c"):
        with pytest.raises(NotInstalled) as missing:
            run.namespace[name]()
        assert missing.value.name == "nosuch"


def test_a_name_that_a_package_has_not_is_an_ordinary_error():
    run, _ = ran("from math import nothing\nx = 1")
    assert "ImportError: cannot import name 'nothing'" in run.problems[0]
    assert run.namespace["x"] == 1


def test_many_problems_are_bounded():
    run, _ = ran("\n".join(["raise ValueError('x' * 100000)"] * 100))
    assert len(run.problems) == 20 and max(map(len, run.problems)) <= 400


def test_unicode_names_and_half_characters():
    run, _ = ran("größe = 3\nπ = größe", "数 = π")
    assert run.namespace["数"] == 3
    assert len(parsed("x = 1", "<cell 1>")) == 1
    for source in ("x = '\0'", "(" * 5000):
        assert ran(source)[0].problems


def test_stand_ins_are_silent_in_cells_and_told_in_answers(monkeypatch):
    thing = Absent("lgcourse.tasks")
    assert type(thing.get("copy").length(4)) is Absent
    monkeypatch.setattr(Absent, "strict", True)
    with pytest.raises(NotHere, match="lgcourse.tasks.get is not there .*; write it yourself"):
        thing.get("copy")
    assert type(Quiet(1).check_anything(3)) is Quiet, "checks in an answer's own code stay silent"
    with pytest.raises(NotHere):
        types.new_class("Mine", (Absent("lgcourse.embeddings.PositionEmbedding"),))


def test_stand_ins_of_other_statements_are_none():
    assert stand_ins(ast.parse("x = 1").body[0], "x") == {}
    assert stand_ins(ast.parse("from nosuch import *").body[0], "nosuch") == {}
