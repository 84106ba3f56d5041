"""Does lesson 11 read a relation, and lie about a scale, as the library does?"""

from __future__ import annotations

import ast
from pathlib import Path

import torch

from lgcourse.embeddings.learned_relation import LearnedRelation, candidate_forms
from lgcourse.model import generate
from lgcourse.relations import Form
from tests.untrained import run_of, with_cells

ROOT = Path(__file__).resolve().parents[2]
LESSON = next((ROOT / "course/lessons").glob("11_*.py"))


def defined(name):
    """Run one function of the lesson; return it."""
    tree = ast.parse(LESSON.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if getattr(node, "name", None) == name]
    space: dict = {"torch": torch}
    exec(compile(ast.Module(kept, []), LESSON.name, "exec"), space)
    return space[name]


def test_the_cells_read_by_hand_are_the_librarys():
    read_head = defined("read_head")
    made, source = LearnedRelation(candidate_forms(), heads=3), torch.Generator().manual_seed(1)
    with torch.no_grad():
        made.table.normal_(generator=source)
    made.anneal(0.5, source)
    for head in range(3):
        found = read_head(made.strength()[head].detach(), made.kept[head], made.forms)
        assert found == made.cells(head) != []


def test_the_picture_marks_the_operands():
    text = defined("picture")(Form(1, -1, -1), 0, 3).splitlines()
    assert [line.split()[-1].index("#") for line in text] == [0, 1, 2]


def test_writing_and_measuring_under_the_true_scale_is_what_the_library_does():
    run = with_cells(run_of("copy", "lbpe-sh"), [[(Form(1, -1, -1), 0)]] * 4)
    write, measure = defined("write_with_hint"), defined("exact_match")
    prompt = run.task.parse("31415=")
    library = generate(run.model, torch.tensor([prompt.tokens]), 5, count=5)[0].tolist()
    assert write(run, "31415=", 5) == run.task.decode(library)
    with torch.no_grad():  # a model whose guess is always the token 0
        run.model.logits.weight.zero_()
    assert (
        measure(run, 1, 1, samples=400)
        == (run.task.sample(1, 400, torch.Generator().manual_seed(1)).tokens[:, 0] == 0)
        .double()
        .mean()
        .item()
    )
