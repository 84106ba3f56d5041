"""The first embeddings against their equations in plain Python."""

import math

import pytest
import torch

from lgcourse import InputError, embeddings, relations, tasks


def test_sinusoidal_vectors_are_the_published_equation():
    width = 6
    module = embeddings.build("ape-sinusoidal", width=width, heads=1)
    got = module.embed(torch.zeros(1, 300, width), torch.arange(300))[0]
    for j in (0, 1, 7, 257, 299):
        for m in range(width // 2):
            angle = j / 10_000 ** (2 * m / width)
            assert got[j, 2 * m].item() == pytest.approx(math.sin(angle), abs=2e-5)
            assert got[j, 2 * m + 1].item() == pytest.approx(math.cos(angle), abs=2e-5)


def test_sinusoidal_tells_neighbours_apart_in_bfloat16():
    module = embeddings.build("ape-sinusoidal", width=16, heads=1)
    out = module.embed(torch.zeros(1, 300, 16, dtype=torch.bfloat16), torch.arange(300))[0]
    assert out.dtype == torch.bfloat16
    assert not torch.equal(out[256], out[257])


def test_learned_rows_start_at_zero_and_end_at_an_error():
    module = embeddings.build("ape-learned", width=4, heads=1, positions=5)
    assert module.embed(torch.zeros(2, 5, 4), torch.arange(5)).abs().sum() == 0
    with pytest.raises(InputError, match="5 positions, got position 5"):
        module.embed(torch.zeros(1, 6, 4), torch.arange(6))


@pytest.mark.parametrize("name", ["rpe", "rpe-sh", "ideal-sh"])
def test_soft_bias_is_the_equation(name):
    task, scale = tasks.get("copy"), 5
    module = embeddings.build(name, task, width=8, heads=3, max_scale=10, other="soft")
    torch.nn.init.normal_(module.table, generator=torch.Generator().manual_seed(0))
    at = torch.arange(task.length(scale))
    bias = module.bias(at, at, scale)
    ids = module.relation(at, at, scale)
    for head in range(3):
        for i in range(len(at)):
            for j in range(i + 1):
                keys = i + 1
                want = 8 * math.log(keys + 1) * module.table[head, ids[i, j]].item()
                assert bias[head, i, j].item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("name", ["rpe-sh", "ideal-sh"])
def test_excluded_keeps_operands_and_the_query_and_nothing_else(name):
    task, scale = tasks.get("addition"), 4
    module = embeddings.build(name, task, width=8, heads=2, other="excluded")
    torch.nn.init.normal_(module.table, generator=torch.Generator().manual_seed(0))
    at = torch.arange(task.length(scale))
    bias, ids = module.bias(at, at, scale), module.relation(at, at, scale)
    for i in range(len(at)):
        for j in range(i + 1):
            kept = ids[i, j] != module.relation.other or i == j
            assert torch.isfinite(bias[:, i, j]).all() == kept
            if ids[i, j] != module.relation.other:  # no length factor
                torch.testing.assert_close(bias[:, i, j], 27 * module.table[:, ids[i, j]])


def test_excluded_bias_does_not_depend_on_the_length():
    task = tasks.get("copy")
    module = embeddings.build("ideal-sh", task, width=8, heads=2, other="excluded")
    torch.nn.init.normal_(module.table, generator=torch.Generator().manual_seed(0))

    def at_operand(n):
        return module.bias(torch.tensor([n]), torch.tensor([0]), n)

    assert torch.equal(at_operand(3), at_operand(300))


def test_refusals():
    for name in ("none", "ape-learned", "ape-sinusoidal", "rpe"):
        with pytest.raises(InputError, match="no id 'other'"):
            embeddings.build(name, width=8, heads=2, other="excluded")
    with pytest.raises(InputError, match="'soft' or 'excluded'"):
        embeddings.build("ideal-sh", tasks.get("copy"), width=8, heads=2, other="hard")
    with pytest.raises(InputError, match="give a task"):
        embeddings.build("ideal-sh", width=8, heads=2)
    with pytest.raises(InputError, match="did you mean 'rpe'"):
        embeddings.build("rpee", width=8, heads=2)


def test_relation_is_stated_where_there_is_one():
    assert embeddings.build("none", width=8, heads=2).relation is None
    assert embeddings.build("ape-sinusoidal", width=8, heads=2).relation is None
    learned = embeddings.build("ape-learned", width=8, heads=2, positions=9).relation
    at = torch.arange(9)
    assert torch.equal(learned(at, at), relations.build("ape", positions=9)(at, at))
