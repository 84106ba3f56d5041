"""Segment vectors: the part of a token is counted from the marks before it."""

import pytest
import torch

from lgcourse import embeddings, tasks
from lgcourse.embeddings.base import Context
from lgcourse.embeddings.segments import SegmentVectors, marks_of, part_of
from lgcourse.errors import InputError


@pytest.mark.parametrize(
    "name, want",
    [
        ("copy", "="),
        ("addition-unequal", "+="),
        ("multiply-digit", "*="),
        ("compare-cot", "?="),
        ("permutation-cot-s3", ["="]),
    ],
)
def test_the_marks_of_a_task_are_its_separators(name, want):
    task = tasks.get(name)
    assert [task.vocabulary[mark] for mark in marks_of(task)] == list(want)


def test_parts_are_counted_as_by_hand():
    task = tasks.get("addition-unequal")
    tokens = torch.tensor([task.encode("12+345=" + "7531")])
    parts = part_of(tokens, torch.tensor(marks_of(task)))
    assert parts[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_the_vector_of_the_part_is_added():
    made = SegmentVectors([7], width=4)
    torch.nn.init.normal_(made.vectors)
    tokens = torch.tensor([[1, 7, 2, 7, 3]])
    out = made(torch.zeros(1, 5, 4), Context(tokens=tokens))
    assert torch.equal(out[0], made.vectors[torch.tensor([0, 0, 1, 1, 2])])
    later = made(torch.zeros(1, 2, 4), Context(tokens=tokens))  # behind a cache
    assert torch.equal(later, out[:, 3:])


def test_more_marks_than_vectors_share_the_last_one():
    made = SegmentVectors([0], width=2)
    torch.nn.init.normal_(made.vectors)
    out = made(torch.zeros(1, 20, 2), Context(tokens=torch.zeros(1, 20, dtype=torch.long)))
    assert torch.equal(out[0, 7:], made.vectors[-1].expand(13, -1))


def test_tokens_are_needed():
    made = embeddings.build("lbpe-sh", tasks.get("copy"), width=8, heads=2)
    with pytest.raises(InputError, match="tokens"):
        made.embed(torch.zeros(1, 3, 8), torch.arange(3))
