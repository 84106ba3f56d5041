"""A relation that was learned leaves its model as plain data and comes back the same."""

import json
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcourse.errors import InputError
from lgcourse.relations import CellRelation, Form
from lgcourse.relations.saved import as_data, from_data, load

small = st.integers(-4, 4)
cell = st.tuples(
    st.builds(Form, small, st.sampled_from([-2, -1, 1, 2]), st.tuples(small, small)), small
)


@given(st.lists(st.lists(cell, max_size=4), max_size=3))
def test_it_comes_back_as_it_was(heads):
    relations = [CellRelation(cells, f"head {h}") for h, cells in enumerate(heads, start=1)]
    again = from_data(json.loads(json.dumps(as_data(relations))))
    at = torch.arange(9)
    assert [phi.name for phi in again] == [phi.name for phi in relations]
    for one, other in zip(relations, again, strict=True):
        assert torch.equal(one(at, at, (2, 3)), other(at, at, (2, 3)))


GOOD = as_data([CellRelation([(Form(1, -1, -1), 0)], "head 1")])


def broken(change):
    data = json.loads(json.dumps(GOOD))
    change(data)
    return data


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        broken(lambda d: d.update(kind="other")),
        broken(lambda d: d.pop("relations")),
        broken(lambda d: d.update(relations={"a": 1})),
        broken(lambda d: d["relations"][0].pop("cells")),
        broken(lambda d: d["relations"][0]["cells"][0].update(value=0.5)),
        broken(lambda d: d["relations"][0]["cells"][0].update(value=True)),
        broken(lambda d: d["relations"][0]["cells"][0].update(form=[1, -1])),
        broken(lambda d: d["relations"][0]["cells"][0].update(form=[1, 0, -1])),
        broken(lambda d: d["relations"][0]["cells"][0].update(form=[1, 10**9, -1])),
        broken(lambda d: d["relations"][0]["cells"].append({"form": [1, -1, 0, 0], "value": 1})),
        broken(lambda d: d["relations"][0]["cells"].append("i = j")),
    ],
)
def test_other_data_are_refused(data, tmp_path):
    path = tmp_path / "relation.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError):
        load(path)


def test_a_missing_file_and_one_that_is_no_json_are_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("i - j = 0")
    with pytest.raises(InputError, match="no JSON"):
        load(tmp_path / "text.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="no JSON"):
        load(tmp_path / "deep.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="no text"):
        load(tmp_path / "bytes.json")


def test_no_embedding_and_no_training_is_loaded_for_it(tmp_path):
    path = tmp_path / "relation.json"
    path.write_text(json.dumps(GOOD))
    code = (
        "import sys; from lgcourse.relations.saved import load; "
        f"print(load({str(path)!r})[0].label(0)); "
        "print([m for m in sys.modules if m.startswith(('lgcourse.embeddings', 'lgcourse.training',"
        " 'lgcourse.model'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == ["i - j - n = 0", "[]"]
