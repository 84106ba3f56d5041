"""Lesson 2: are the embeddings that the lesson builds those that the library ships?"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from lgcourse import embeddings
from lgcourse.authoring import parse

SOURCE = Path(__file__).resolve().parents[2] / "course/lessons/02_position_embeddings.py"


@pytest.fixture(scope="module")
def built():
    """Return the classes that the lesson defines."""
    space: dict = {"torch": torch, "nn": nn, "math": math}
    for cell in parse(SOURCE.read_text(encoding="utf-8"), SOURCE.name):
        if cell.kind == "code" and cell.source.startswith("class "):
            exec(compile(cell.source, SOURCE.name, "exec"), space)
    return space


def test_the_absolute_embedding_is_the_librarys(built):
    ours = built["AbsolutePositions"](40, 12)
    theirs = embeddings.build("ape-learned", width=12, heads=1, positions=40)
    assert torch.equal(ours.table, theirs.table)  # both start at zero
    ours.table.data.normal_()
    theirs.table.data.copy_(ours.table)
    x, at = torch.randn(3, 7, 12), torch.arange(30, 37)
    assert torch.equal(ours.embed(x, at), theirs.embed(x, at))


def test_the_relative_bias_is_the_librarys_at_every_causal_pair(built):
    ours = built["RelativePositions"](40)
    theirs = embeddings.build("rpe", width=12, heads=1, positions=40)
    ours.table.data.normal_()
    theirs.table.data.copy_(ours.table[None])
    query, key = torch.arange(20, 25), torch.arange(25)
    causal = key[None, :] <= query[:, None]
    mine, library = ours.bias(query, key, 1)[causal], theirs.bias(query, key, 1)[0][causal]
    torch.testing.assert_close(mine, library)


def test_the_head_sees_no_later_token_and_no_order_without_positions(built):
    torch.manual_seed(0)
    head = built["Head"](built["NoPositions"]())
    tokens = torch.tensor([[1, 2, 3, 4]])
    later, swapped = torch.tensor([[1, 2, 3, 5]]), torch.tensor([[2, 1, 3, 4]])
    torch.testing.assert_close(head(tokens)[:, :3], head(later)[:, :3])
    torch.testing.assert_close(head(tokens)[:, 2:], head(swapped)[:, 2:])
    assert not torch.allclose(head(tokens)[:, 3], head(later)[:, 3])
