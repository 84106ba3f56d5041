"""What the source itself must hold: no pickle, one place that executes code, writers, encodings."""

import ast
from pathlib import Path

import pytest

import lgcourse

ROOT = Path(lgcourse.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Modules whose readers can run code that a file names. joblib is none of them: it hands functions
# to processes that this program has started, by its own means, and reads no file.
FORBIDDEN_MODULES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "jsonpickle"),
    *("yaml", "runpy", "code", "xmlrpc"),
}
FORBIDDEN_CALLS = {
    *("torch.load", "torch.save", "torch.jit.load", "torch.hub.load", "joblib.load", "joblib.dump"),
    *("np.load", "numpy.load", "pd.read_pickle", "pandas.read_pickle", "os.system", "os.popen"),
}
EXECUTES = {  # who may call exec or eval, and why
    "grading/sandbox/cells.py": "student code, in a process that is shut in",
    "authoring/weights.py": "a lesson of ours, to make the models that it ships with",
}
CODE = {"exec", "eval", "execfile"}

WRITES = {  # who may open a file for writing, and why it is never half read
    "training/folder.py:write_aside": "writes aside, then renames",
    "experiments/store.py:add": "adds lines; one that was cut off does not count",
    "grading/journal.py:__init__": "adds lines; one that was cut off does not count",
    "authoring/scaffold.py:new_task": "into a folder that lies aside and is renamed",
    "cli.py:run": "the null device",
    "authoring/weights.py:run": "a copy in the working tree, made by hand; its hash is checked",
    "grading/sandbox/parent.py:_try": "what the process of student code says, in a folder of ours",
    "grading/sandbox/stage.py:lay_out": "a copy of the library, in a folder of ours",
    "grading/sandbox/linux.py:become_own_user": "settings of the kernel",
    "grading/sandbox/linux.py:_show": "an empty file to mount on, in a folder of ours",
    "grading/sandbox/zygote.py:main": "settings of the kernel",
    "grading/sandbox/zygote.py:shut": "the null device",
}
WRITERS = {"write_text", "write_bytes", "to_csv", "to_parquet", "save_file", "dump"}
WRITERS |= {"copyfile", "copytree", "copy", "copy2", "savefig", "savetxt", "tofile"}
IN_MEMORY = {  # a writer by its name that writes no file
    "experiments/results.py:write_table": "to_csv without a path returns text",
    "show/curves.py:png": "into a buffer",
    "show/widgets/html.py:_image": "into a buffer",
}


def name_of(node):
    """The dotted name of an expression, or "" where it has none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value) or '?'}.{node.attr}"
    return ""


def calls(tree):
    """All calls, each with the name of the function that it stands in."""

    def walk(node, inside):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = node.name
        if isinstance(node, ast.Call):
            yield node, inside
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    return list(walk(tree, ""))


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def loads_code(place, tree):
    found = [n for n in imports(tree) if n.split(".")[0] in FORBIDDEN_MODULES]
    found += [n for n in imports(tree) if n in FORBIDDEN_CALLS]
    for call, _ in calls(tree):
        name = name_of(call.func)
        if name in FORBIDDEN_CALLS or (name in CODE and place not in EXECUTES):
            found.append(name)
        for word in call.keywords:
            off = isinstance(word.value, ast.Constant) and word.value.value is False
            if word.arg in ("allow_pickle", "shell") and not off:
                found.append(f"{name}({word.arg})")
    return found


def mode_of(call):
    """The mode of a call of open, or None if the call is none."""
    if name_of(call.func) == "open":
        arguments = call.args[1:]
    elif isinstance(call.func, ast.Attribute) and call.func.attr in ("open", "fdopen"):
        if name_of(call.func.value) in ("os", "store", "archive"):
            return None
        arguments = call.args
    else:
        return None
    given = [k.value for k in call.keywords if k.arg == "mode"] + arguments[:1]
    return given[0].value if given and isinstance(given[0], ast.Constant) else "r"


def writes(place, tree):
    found = []
    for call, inside in calls(tree):
        name = name_of(call.func)
        mode = mode_of(call)
        opened = mode is not None and set(mode) & set("wax+")
        made = name == "os.open" and any(
            isinstance(n, ast.Attribute) and n.attr in ("O_CREAT", "O_WRONLY", "O_RDWR")
            for n in ast.walk(call)
        )
        method = isinstance(call.func, ast.Attribute) and call.func.attr in WRITERS
        if method and call.func.attr.startswith("copy"):
            method = name.startswith("shutil.")
        if opened or made or method:
            found.append(f"{place}:{inside}")
    return found


def without_encoding(tree):
    found = []
    for call, _ in calls(tree):
        words = {k.arg for k in call.keywords}
        mode = mode_of(call)
        text = mode is not None and "b" not in mode
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("read_text", "write_text"):
            text = True
        if text and "encoding" not in words:
            found.append(f"line {call.lineno}")
    return found


@pytest.fixture(scope="module")
def trees():
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in FILES
    }


def test_nothing_that_is_read_can_run_code(trees):
    assert len(trees) > 100
    found = {place: loads_code(place, tree) for place, tree in trees.items()}
    assert {place: names for place, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "def f(x):\n    return eval(x)",
        "import yaml",
        "from joblib import load",
        "import subprocess\nsubprocess.run('x', shell=True)",
    ],
)
def test_the_search_finds_what_runs_code(text):
    assert loads_code("some.py", ast.parse(text))


def test_files_are_written_where_it_is_known_how(trees):
    found = {w for place, tree in trees.items() for w in writes(place, tree)}
    assert found - {*WRITES, *IN_MEMORY} == set(), "use lgcourse.training.folder.write_aside"
    assert {*WRITES, *IN_MEMORY} - found == set(), "these write no longer"


@pytest.mark.parametrize(
    "text",
    [
        "open('x', 'w')",
        "Path('x').open(mode='a')",
        "Path('x').write_text('', encoding='utf-8')",
        "os.open('x', os.O_CREAT)",
        "import json\njson.dump({}, f)",
        "frame.to_csv('x')",
        "save_file = 1\nst.save_file({}, 'x')",
    ],
)
def test_the_search_finds_writers(text):
    assert writes("some.py", ast.parse(text)) == ["some.py:"]


def test_every_text_file_is_opened_with_an_encoding(trees):
    found = {place: without_encoding(tree) for place, tree in trees.items()}
    assert {place: lines for place, lines in found.items() if lines} == {}


@pytest.mark.parametrize("text", ["open('x')", "Path('x').read_text()", "Path('x').open('w')"])
def test_the_search_finds_texts_without_encoding(text):
    assert without_encoding(ast.parse(text)) == ["line 1"]


def test_processes_are_made_so_that_every_system_can(trees):
    """No fork but in the sandbox, which says that it needs Linux or macOS; no start by fork."""
    found = set()
    for place, tree in trees.items():
        for call, _ in calls(tree):
            name = name_of(call.func)
            if name in ("os.fork", "os.forkpty") or name.endswith("multiprocessing.Process"):
                found.add(place)
            for value in (*call.args, *(k.value for k in call.keywords)):
                if isinstance(value, ast.Constant) and value.value in ("fork", "forkserver"):
                    found.add(place)
    assert found == {"grading/sandbox/zygote.py"}
