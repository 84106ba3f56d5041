"""What fuzzing draws from: command lines, texts, TOML, JSON, damaged bytes. Bounded in size."""

from __future__ import annotations

import json
import typing

import typer
from hypothesis import strategies as st

from lgcourse import embeddings, relations, tasks
from lgcourse.cli import app
from lgcourse.theory import targets

# Arguments of a real process hold no NUL; bytes that are no UTF-8 arrive as half characters.
LETTERS = st.characters(exclude_characters="\0", exclude_categories=("Cs",)) | st.sampled_from(
    "\udc80\udcff =,-x:.\n\t'\"é数🙂\u202e\u2028"
)
TEXT = st.text(LETTERS, max_size=12)
HUGE = "9" * 23
NUMBERS = st.sampled_from(
    [
        *("1", "2", "3", "0", "-1", "+2", "1.5", "1e3", "nan", "inf", "-inf", "1e400", "1e-320"),
        *("", " 2", "٣", "²", "1_0", "0x10", "ten", "-0", HUGE, "-" + HUGE, "9" * 5000, "2**64"),
    ]
)
PATHS = st.sampled_from(
    [
        *("new", "new.png", "new.json", "new.py", "new.csv", "new.toml", "deep/er/new.png", "é/数"),
        *("", ".", "..", "notes.txt", "notes.txt/new.json", "run", "learned", "half", "swept"),
        *("answer.py", "found.json", "proof.json", "small.toml", "drawn.png", "nowhere"),
        *("x" * 300, "x" * 300 + ".png", "/proc/new", "/proc/new.png", "-", "~", "\udcff.json"),
        *("loop", "loop/new.png"),
    ]
)
SCALES = st.sampled_from(
    [
        *("3", "2,4", "1", "3x2", "2x3,4x1", "", "0", "-1", "a", "3,,4", "1e3", "3x", "x", "²"),
        *(HUGE, "9" * 5000, "100000", "3x100000", "3 , 4", "3;4", "nan", "3x2x1"),
    ]
)
OPTIONS = st.builds(
    "{}={}".format,
    st.sampled_from(
        [
            *("width", "base", "buckets", "pairing", "vectors", "largest", "offset", "window"),
            *("rows", "hidden", "degree", "slopes", "task", "name", "other", "", "ß", "digits"),
            *("max_distance", "maximum", "share", "order", "forms", "distance", "theta"),
        ]
    ),
    st.sampled_from(
        ["1", "2", "4", "0", "-1", "1.5", "nan", "inf", "true", "half", "", "x" * 200, HUGE, "1e30"]
    ),
)
NAMES = {
    "task": tasks.names(),
    "pe": [*embeddings.names(), *relations.names(), "found.json", "proof.json", "nowhere.json"],
    "target": [*targets.names(), "mine:good", "mine:bad", "mine:none", "nomodule:x", ":", "mine:"],
    "kind": ["operators", "rank"],
    "other": ["auto", "soft", "excluded"],
    "precision": ["float32", "bfloat16"],
    "norm": ["pre", "post"],
    "device": ["auto", "cpu", "cuda", "mps"],
}
# Sizes in a command are small: what is drawn replaces these by small or by impossible values.
SMALL = {
    "train": "--steps 1 --samples 2 --hard-samples 1 --batch 2 --width 8 --heads 2 --train-scale 2"
    " --test-scales 3 --layers 1",
    "predict": "--train-scale 2 --test-scales 3",
    "src": "--scale 3",
    "lrc": "--scale 3",
}
# What would take long, or change the course itself, is cut short by a last argument.
LAST = {
    "grade": ["--only", "nosuch"],
    "build": ["--nosuch"],
    "demo": ["--nosuch"],
    "doctor": ["--nosuch"],
    "explore": ["--dry"],
    "lab": ["--dry"],
    "site": ["--nosuch"],
}
LEFT_OUT = {("train", "steps", "0"), ("train", "steps", "-0")}  # as many as the embedding wants


def commands():
    """Return the commands and their parameters: name, options, whether a flag, type."""
    made = typer.main.get_command(app).commands
    hints = {}
    for info in app.registered_commands:
        name = info.name or info.callback.__name__.replace("_", "-")
        hints[name] = typing.get_type_hints(info.callback)
    assert hints.keys() == made.keys()
    return {
        name: [(p.name, p.opts, hints[name].get(p.name, bool)) for p in command.params]
        for name, command in made.items()
    }


COMMANDS = commands()


def near(name):
    """Return misspellings of a name."""
    return st.sampled_from([name[:-1], name + "s", name.upper(), f" {name}", name[::-1], name[1:]])


def values(name, kind, command):
    """Return what an option of this name and type may be given."""
    if name in ("test_scales",):
        return SCALES
    if name in ("task_option", "pe_option"):
        return OPTIONS | TEXT
    if name in NAMES:
        known = st.sampled_from(NAMES[name])
        return st.one_of(known, known, known, known.flatmap(near), TEXT)
    if kind in (int, float):
        return NUMBERS.filter(lambda value: (command, name, value) not in LEFT_OUT)
    if name in ("text", "name"):
        return TEXT | st.sampled_from(["12=", "1+2=", "new-name", "copy", "905+128="])
    return PATHS | TEXT


@st.composite
def command_lines(draw):
    """Draw arguments: a command, mostly sensible arguments and options, some garbage."""
    name = draw(st.sampled_from([*COMMANDS, "train", "train", "train", "predict", "explain"]))
    positional, options = [], []
    for parameter, flags, kind in COMMANDS[name]:
        is_option = flags[0].startswith("-")
        if not is_option:
            positional.append(draw(values(parameter, kind, name)))
        elif kind is bool:
            options.append([flags[0]])
        else:
            options.append([flags[0], draw(values(parameter, kind, name))])
    wanted = [o for o in options if o[0] == "--pe"]
    others = [o for o in options if o[0] != "--pe"]
    count = draw(st.integers(0, min(4, len(others))))
    chosen = wanted + draw(st.permutations(others))[:count]
    words = [*positional, *SMALL.get(name, "").split(), *sum(chosen, [])]
    garbage = draw(st.integers(0, 9))
    if garbage == 0 and words:
        words.pop(draw(st.integers(0, len(words) - 1)))
    elif garbage == 1:
        extra = TEXT | st.sampled_from(
            ["--", "-", "--nosuch", "--json=1", "--help", "-h", "=", "--pe"]
        )
        words.insert(draw(st.integers(0, len(words))), draw(extra))
    elif garbage == 2:
        name = draw(st.one_of(st.sampled_from([*COMMANDS]).flatmap(near), TEXT))
    if name == "train" and "--steps" in words:  # whatever was cut out, it stays small
        at = words.index("--steps")
        if words[at + 1 : at + 2] in ([], ["0"], ["-0"]):
            words += ["--steps", "1"]
    elif name == "train":
        words += ["--steps", "1"]
    return [name, *words, *LAST.get(name, [])]


PROMPTS = st.one_of(
    st.from_regex(r"[0-9]{1,12}\+[0-9]{1,12}=", fullmatch=True),
    st.text("0123456789+= -", max_size=40),
    st.text(LETTERS, max_size=60),
    st.builds(lambda a, b: "9" * a + "+" + "1" * b + "=", st.integers(0, 60), st.integers(0, 60)),
    st.sampled_from(["--help", "--json", "--", "-1+1=", "", " ", "\n", "1+1=\n", "١+١=", "𝟙+𝟙="]),
)


@st.composite
def damage(draw, data: bytes):
    """Draw bytes that differ from some: flipped, cut, doubled, swapped, overwritten."""
    how = draw(st.sampled_from(["flip", "flip", "flip", "cut", "insert", "remove", "zero", "swap"]))
    at = draw(st.integers(0, max(0, len(data) - 1)))
    to = min(len(data), at + draw(st.integers(1, 64)))
    some = draw(st.binary(min_size=1, max_size=8))
    return {
        "flip": data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :],
        "cut": data[:at],
        "insert": data[:at] + some + data[at:],
        "remove": data[:at] + data[to:],
        "zero": data[:at] + bytes(to - at) + data[to:],
        "swap": data[:at] + data[at:to][::-1] + data[to:],
    }[how]


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**6, -(10**9), 10**30, 0.5, float("nan"), float("inf"), "", "copy", "3x2"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["form", "value", "copy", "steps", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@st.composite
def changed(draw, data):
    """Draw data like some JSON data in which one value was replaced, left out or doubled."""
    data = json.loads(json.dumps(data))
    place, key, node = None, None, data
    while isinstance(node, (dict, list)) and node and (place is None or draw(st.integers(0, 3))):
        place = node
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        node = node[key]
    if place is None:
        return draw(ANYTHING)
    how = draw(st.sampled_from(["replace", "replace", "remove", "double"]))
    if how == "replace":
        place[key] = draw(ANYTHING)
    elif how == "remove":
        del place[key]
    elif isinstance(place, list):
        place.insert(key, node)
    else:
        place[draw(st.sampled_from(["x", "", "tasks", "form"]))] = node
    return data


def toml(value):
    """Write data as TOML, on few lines; what TOML has no word for becomes one that is wrong."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(str(k))} = {toml(v)}" for k, v in value.items())
        return "{" + inside + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


def toml_file(data):
    """Write data as a TOML file, a line per key."""
    if not isinstance(data, dict):
        return toml(data)
    return "".join(f"{json.dumps(str(k))} = {toml(v)}\n" for k, v in data.items())
