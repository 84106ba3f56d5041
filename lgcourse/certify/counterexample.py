"""Which whole instance makes a model fail? A failing tuple, realised and replayed.

First the model answers prompts of the smallest scales. Then a failing tuple of tokens is searched
for, from the smallest scale up: a step of its signature and a prompt such that the step meets just
these tokens. Prompt tokens that it reads are set; all others are tried one by one where they are
few, else drawn at random. What is found is replayed: the model generates its answer, and the answer
is compared with the task's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from lgcourse.certify.signatures import MalformedError, Setting, Signature, shape_at
from lgcourse.errors import InputError
from lgcourse.model.generation import generate
from lgcourse.relations.base import Scale, sizes_of
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.seeds import generator

LARGEST = 8  # sizes that are searched, from the signature's smallest ones on
STEPS = 8  # steps at the beginning and at the end of a scale that are searched
ALL = 100_000  # prompts that are tried one by one
DRAWN = 2_000_000  # tokens of prompts that are drawn where there are more
FEW = 4096  # prompts of the smallest scales that the model answers


@dataclass(frozen=True)
class Counterexample:
    """An instance that a model gets wrong.

    Args:
        scale: its scale.
        prompt: its tokens.
        answer, true: what the model generates, and what is right.
    """

    scale: Scale
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    true: tuple[int, ...]

    def text(self, task) -> str:
        """Return it as people write it, for instance ``5+5= gives 0, right is 10``."""
        prompt, answer, true = (
            task.decode(list(part)) for part in (self.prompt, self.answer, self.true)
        )
        return f"{prompt} gives {answer}, right is {true}"


def replay(model, task, prompt: Tensor, scale: Scale) -> Counterexample | None:
    """Let a model answer a prompt; return a counterexample if it is wrong."""
    true = task.answer(prompt[None], scale)[0]
    answer = generate(model, prompt[None], scale, len(true))[0]
    if torch.equal(answer, true):
        return None
    lists = (tuple(x.tolist()) for x in (prompt, answer, true))
    found = Counterexample(scale, *lists)
    _compare_with_solve(task, found)
    return found


def _compare_with_solve(task, found: Counterexample) -> None:
    """Refuse a truth that differs from `Task.solve` where the prompt's text is read as it is."""
    text = task.decode(list(found.prompt))
    try:
        read = task.parse(text)  # a padded layout has one text for several scales
        same = tuple(read.tokens) == found.prompt and read.scale == found.scale
        solved = task.solve(text)
    except InputError:
        return  # a text that people cannot type
    if same and solved != task.decode(list(found.true)):
        raise MalformedError(f"task '{task.name}': answer and solve differ on '{text}'")


def realise(
    model, task, setting: Setting, signature: Signature, values: tuple[int, ...]
) -> Counterexample | None:
    """Search for an instance in which a step of a signature meets a tuple, and the model is wrong.

    Args:
        model: the model as it is used (float32).
        task, setting, signature: where the tuple comes from.
        values: the tokens at the signature's places.

    Returns:
        The first one found, smallest scales first, or None.
    """
    source = generator(0, "counterexample")
    for scale in _scales(task, sizes_of(signature.scale)):
        for positions in shape_steps(setting, signature, scale):
            for prompt in _prompts(task, setting, scale, positions, values, source):
                found = replay(model, task, prompt, scale)
                if found is not None:
                    return found
    return None


def _scales(task, least: tuple[int, ...]) -> Iterator[Scale]:
    """Yield scales from the signature's smallest one up."""
    above = [range(size, size + LARGEST) for size in least]
    for sizes in sorted(product(*above), key=lambda s: (sum(s), s))[: LARGEST**2]:
        scale = sizes if len(least) > 1 else sizes[0]
        if task.has_scale(scale):
            yield scale


def shape_steps(setting: Setting, signature: Signature, scale: Scale) -> Iterator[tuple[int, ...]]:
    """Yield the positions of the places at each step of a scale that has the signature."""
    sizes = sizes_of(scale)
    family = setting.families[signature.shape.family]
    if any(bound(sizes=sizes) < 0 for bound in family.where):
        return
    steps = range(family.first(sizes=sizes), family.last(sizes=sizes) + 1, family.step)
    first, last = list(steps[:STEPS]), list(steps[-STEPS:])
    for t in dict.fromkeys([*(t for t in (signature.t,) if t in steps), *first, *last]):
        shape, positions = shape_at(setting, signature.shape.family, t, sizes)
        if shape.pattern == signature.shape.pattern:
            yield positions


def _prompts(task, setting, scale, positions, values, source) -> Iterator[Tensor]:
    """Yield a prompt in which the tokens stand at the positions, if one is found."""
    wanted = dict(zip(positions, values, strict=True))
    lines = _lines(task, setting, scale, ALL, DRAWN // task.length(scale), source, wanted)
    tokens = task.batch(lines, scale).tokens
    at = list(wanted)
    met = (tokens[:, at] == torch.tensor([wanted[p] for p in at])).all(1).nonzero()[:, 0]
    if len(met):
        yield lines[met[0]]


def _lines(task, setting: Setting, scale, most: int, drawn: int, source, wanted) -> Tensor:
    """Return all prompts of a scale, or some that are drawn where there are more than ``most``."""
    names = [s for s in setting.segments for _ in range(s.count(sizes_of(scale)))]
    options = [
        torch.tensor([wanted[p]] if p in wanted else segment.tokens)
        for p, segment in enumerate(names[: task.prompt_length(scale)])
    ]
    count = 1
    for each in options:
        count *= len(each)
    if count <= most:
        return torch.cartesian_prod(*options).reshape(count, len(options))
    return torch.stack(
        [each[torch.randint(len(each), (drawn,), generator=source)] for each in options], dim=1
    )


def shortest(model, task, setting: Setting) -> Counterexample | None:
    """Return what a model gets wrong among the prompts of the smallest scales, or None."""
    source = generator(0, "shortest")
    for scale in list(_scales(task, (1,) * setting.sizes))[:4]:
        batch = task.batch(_lines(task, setting, scale, FEW, FEW, source, {}), scale)
        for row in (~right_tokens(model, batch).all(1)).nonzero()[:1, 0]:
            found = replay(model, task, batch.tokens[row, : task.prompt_length(scale)], scale)
            if found is not None:
                return found
    return None
