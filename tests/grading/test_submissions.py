"""Is what was handed in read whatever its form, and nothing outside of it?"""

from __future__ import annotations

import json
import os
import stat
import zipfile

import pytest

from lgcourse.errors import InputError
from lgcourse.grading.submissions import LARGEST, Program, Submission, find, program
from tests.grading.handing_in import notebook


def read(path):
    return Submission("x", path).programs()


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_files_folders_and_zips_are_submissions(tmp_path):
    (tmp_path / "anna.ipynb").write_text(notebook("x = 1"))
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "01.py").write_text("x = 1")
    zipped(tmp_path / "cleo.zip", {"a/01.ipynb": notebook("x = 1"), "b.txt": "no"})
    (tmp_path / "list.csv").write_text("id")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    found = find([str(tmp_path)])
    assert [(s.id, s.whole) for s in found] == [("anna", False), ("bob", True), ("cleo", True)]
    assert [[p.cells for p in s.programs()] for s in found] == [[((1, "x = 1"),)]] * 3
    assert [s.id for s in find([str(tmp_path / "anna.ipynb"), str(tmp_path / "bob")])] == [
        *("anna", "01")
    ]


def test_equal_names_are_told_apart(tmp_path):
    for name in ("a.py", "a.ipynb", "b/a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    ids = [s.id for s in find([str(tmp_path / n) for n in ("a.py", "a.ipynb", "b/a.py", "a.py")])]
    assert ids == ["a", "a.ipynb", "a.py", "a.py (2)"]


def test_names_that_a_screen_or_a_file_cannot_take_are_shown_without_harm(tmp_path):
    names = [b"\xff\xfe.py", b"x\nanna: 8 of 8.py", b"\x1b[2Jy.py", "größe 数.py".encode()]
    for name in names:
        try:
            with open(os.fsencode(tmp_path) + b"/" + name, "w") as file:
                file.write("x = 1")
        except OSError:  # a file system that takes no such name
            pytest.skip(f"no file can be called {name!r} here")
    found = find([str(tmp_path)])
    assert {s.id for s in found} == {"??", "x?anna: 8 of 8", "?[2Jy", "größe 数"}
    assert all(s.programs()[0].cells for s in found)
    inside = zipped(tmp_path / "z.zip", {"x\r\n1 of 1.py": "x = 1"})
    assert read(inside)[0].name == "x??1 of 1.py"


def test_code_is_bounded_as_it_crosses():
    cell = "x = '" + "数" * 300_000 + "'"  # six bytes each
    assert not program("a.py", cell.encode()).problem
    assert "more than 2 MB of code" in program("a.py", (cell + cell).encode()).problem


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p / "nothing", "there is no"),
        (lambda p: p, "holds no notebook"),
        (lambda p: (p / "a.txt").write_text("x") and p / "a.txt", "is no notebook"),
    ],
)
def test_what_cannot_be_submissions_is_told(tmp_path, make, words):
    with pytest.raises(InputError, match=words):
        find([str(make(tmp_path))])


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.ipynb", b"", "the file is empty"),
        ("a.ipynb", b" \n", "the file is empty"),
        ("a.ipynb", b'{"cells": [', "broken JSON: Expecting value"),
        ("a.ipynb", b"[" * 200_000, "broken JSON"),
        ("a.ipynb", bytes(range(256)), "no text in UTF-8"),
        ("a.py", b"x = 1\0", "no text"),
        ("a.ipynb", b"3", "no code in it"),
        ("a.ipynb", b'{"cells": 3, "worksheets": 4}', "no code in it"),
        ("a.ipynb", b'{"cells": [3, null, {"cell_type": "markdown"}]}', "no code in it"),
        ("a.py", b"x = 1 #" + b"x" * (3 << 20), "more than 2 MB"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(name, data, problem):
    made = program(name, data)
    assert made.cells == () and problem in made.problem


def test_notebooks_of_every_form_are_read():
    cells = [
        {"cell_type": "code", "source": ["a = 1\n", "b = 2"]},
        {"cell_type": "markdown", "source": "text"},
        {"cell_type": "code", "source": "c = 3"},
        {"cell_type": "code", "source": 7},
        {"cell_type": "code"},
        {"cell_type": "code", "source": "d = '\ud800'"},
    ]
    wanted = ((1, "a = 1\nb = 2"), (2, "c = 3"), (3, ""), (4, ""), (5, "d = '?'"))
    assert program("a.ipynb", json.dumps({"cells": cells}).encode()).cells == wanted
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1"]}]}]}
    assert program("a.ipynb", json.dumps(old).encode()).cells == ((1, "a = 1"),)
    bom = b"\xef\xbb\xbf" + notebook("a = 1").encode()
    assert program("a.ipynb", bom).cells == ((1, "a = 1"),)


def test_a_script_is_cut_at_its_cells():
    text = "import torch\n# %%\nx = 1\n# %% [markdown]\n# text\n# %% more\ny = 2\n"
    assert [c for _, c in program("a.py", text.encode()).cells] == [
        *("import torch\n", "# %%\nx = 1\n", "# %% more\ny = 2\n")
    ]
    assert len(program("a.py", b"x = 1\n\ny = 2").cells) == 1


def test_links_are_not_followed(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("SECRET = 1")
    folder = tmp_path / "class" / "eve"
    folder.mkdir(parents=True)
    (folder / "link.py").symlink_to(secret)
    (folder / "more").symlink_to(tmp_path)
    (folder.parent / "top.py").symlink_to(secret)
    (folder.parent / "all").symlink_to(tmp_path)
    found = find([str(folder.parent)])
    assert [s.id for s in found] == ["eve"]
    programs = found[0].programs()
    assert [(p.name, p.text) for p in programs] == [("link.py", "")]
    assert programs[0].problem == "it is a link, and links are not followed"


def test_what_is_no_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    assert read(tmp_path)[0].problem == "it is no regular file"


def test_many_and_large_files_are_refused(tmp_path):
    with open(tmp_path / "large.py", "wb") as file:
        file.truncate(LARGEST + 1)
    assert read(tmp_path)[0].problem == "it is larger than 50 MB"
    (tmp_path / "large.py").unlink()
    for number in range(2003):
        (tmp_path / f"{number:04d}.py").touch()
    programs = read(tmp_path)
    assert len(programs) == 2001 and "more than 2000" in programs[-1].problem


# --- zips -----------------------------------------------------------------------------------------
def test_a_zip_is_read_in_memory(tmp_path):
    place = zipped(
        tmp_path / "a.zip",
        {"01.py": "x = 1", "../out.py": "y = 1", "/abs.py": "z = 1", "__MACOSX/01.py": "no"},
    )
    before = set(tmp_path.parent.iterdir())
    found = {p.name: (p.text, p.problem) for p in read(place)}
    assert found == {
        "01.py": ("x = 1", ""),
        "../out.py": ("", "its path leads out of the zip"),
        "/abs.py": ("z = 1", ""),
    }
    assert set(tmp_path.parent.iterdir()) == before and list(tmp_path.iterdir()) == [place]


def test_a_link_in_a_zip_is_not_followed(tmp_path):
    link = zipfile.ZipInfo("link.py")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert read(tmp_path / "a.zip") == [
        Program("link.py", problem="it is a link, and links are not followed")
    ]


def test_a_bomb_is_not_unpacked(tmp_path):
    bomb = zipped(tmp_path / "a.zip", {f"{n}.py": b"0" * (20 << 20) for n in range(4)})
    assert bomb.stat().st_size < 1 << 20
    problems = [p.problem for p in read(bomb)]
    assert problems[-1] == "the zip unpacks to more than 50 MB" and len(problems) == 3
    many = zipped(tmp_path / "b.zip", {f"{n}.py": "" for n in range(2001)})
    assert read(many)[0].problem == "the zip holds more than 2000 entries"


def test_the_size_that_a_zip_claims_is_not_believed(tmp_path):
    place = zipped(tmp_path / "a.zip", {"a.py": b"0" * (60 << 20)})
    data = bytearray(place.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    place.write_bytes(data)
    (found,) = read(place)
    assert found.problem and not found.cells


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no zip", b"x" * 1000])
def test_a_broken_zip_says_so(tmp_path, data):
    (tmp_path / "a.zip").write_bytes(data)
    (found,) = read(tmp_path / "a.zip")
    assert found.problem.startswith("the zip cannot be read")


def test_a_damaged_entry_says_so(tmp_path):
    place = zipped(tmp_path / "a.zip", {"a.py": os.urandom(100)})
    data = bytearray(place.read_bytes())
    data[45] ^= 255
    place.write_bytes(data)
    assert read(place)[-1].problem.startswith("the zip cannot be read")


def test_the_digest_tells_contents_apart(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    seen = set()
    for name, text in (("a.py", "x"), ("a.py", "y"), ("b.py", ""), ("a.py", "")):
        (path / name).write_text(text)
        seen.add(Submission("a", path).digest())
    assert len(seen) == 4
    assert Submission("other id", path).digest() in seen
