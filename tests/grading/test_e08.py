"""Exercise 8: does each plausible mistake meet the check that names it, at every seed?"""

from __future__ import annotations

import pytest
import torch

from lgcourse import relations, tasks, theory
from lgcourse.grading import questions
from lgcourse.grading.bank.e08 import (
    reference_beats,
    reference_found,
    reference_has_order,
    reference_met_share,
)
from lgcourse.grading.question import FAILED, PASSED, examine

QUESTIONS = {question.name: question for question in questions(8)}
SEEDS = range(6)


def same(train, test):
    return test[:, None] == train[None, :]  # s m r


def won(ids, operand, known=None, diagonal=False):
    """Return the table of question 2 with a choice of mistakes."""
    known = operand.unique() if known is None else known
    present = (ids[:, :, None] == known).any(1)
    mine = operand[:, None] == known
    table = (mine[:, :, None] & present[:, None, :]).any(0)
    return table if diagonal else table & ~torch.eye(len(known), dtype=torch.bool)


def last_step_only(ids, operand):
    known, table = operand.unique(), None
    table = torch.zeros(len(known), len(known), dtype=torch.bool)
    for row, mine in zip(ids, operand, strict=True):
        table[known == mine] = torch.isin(known, row)[None]
        table[known == mine, known == mine] = False
    return table


def first_keys(ids, operand):
    return won(ids[:, : max(4, ids.shape[1] // 2)], operand)


def hidden_as_last(ids, operand):
    """The -1 of a hidden key is used as an index."""
    known = operand.unique()
    row = {int(id): place for place, id in enumerate(known)} | {-1: len(known) - 1}
    table = torch.zeros(len(known), len(known), dtype=torch.bool)
    for keys, mine in zip(ids.tolist(), operand.tolist(), strict=True):
        for key in keys:
            if key in row and key != mine and row[key] != row[mine]:
                table[row[mine], row[key]] = True
    return table


def powers(beats, times):
    step, reach = beats.double(), beats.double()
    for _ in range(times - 1):
        reach = reach + (reach @ step > 0)
    return not bool(reach.diagonal().any())


def meets_twice(beats):
    """Walk from each id; meeting any id twice counts, also on two ways that part."""
    for start in range(len(beats)):
        seen, todo = set(), [start]
        while todo:
            for other in beats[todo.pop()].nonzero()[:, 0].tolist():
                if other in seen or other == start:
                    return False
                seen.add(other)
                todo.append(other)
    return True


def parts(above, ids, operand):
    size = len(above)
    known = (ids >= 0) & (ids < size)
    single = (ids == operand[:, None]).sum(1) == 1
    wins = above[operand.clamp(max=size - 1)[:, None], ids.clamp(0, size - 1)]
    return size, known, single, wins, ids != operand[:, None]


def find(above, ids, operand, without=""):
    """Answer question 4, but forget something."""
    size, known, single, wins, others = parts(above, ids, operand)
    known = known | (ids < 0) if without == "hidden" else known
    known = known | (ids >= size) if without == "strangers" else known
    rival = known & others & ~wins
    good = ~rival.any(1)
    good = good if without == "single" else good & single
    return good if without == "new" else good & (operand < size)


def not_losing(above, ids, operand):
    size, known, single, _, _ = parts(above, ids, operand)
    loses = above[ids.clamp(0, size - 1), operand.clamp(max=size - 1)[:, None]]
    return (operand < size) & single & ~(known & loses).any(1)


def transposed(above, ids, operand):
    return find(above.T, ids, operand)


def over_all(above, ids, operand):
    size = len(above)
    good = torch.tensor([
        bool(above[o, torch.arange(size) != o].all()) if o < size else False for o in operand
    ])  # fmt: skip
    return good & ((ids == operand[:, None]).sum(1) == 1)


def count(cells, bar, words=("generalises", "fails"), trained=True, strict=False, fixed=None):
    """Answer question 5, but forget something."""
    bar = fixed or bar
    kept = [c for c in cells if c[0] in words and (not trained or c[1] >= bar)]
    right = sum(
        (said == "generalises") == (got > bar if strict else got >= bar) for said, _, got in kept
    )
    return right, len(kept) - right, len(cells) - len(kept)


# question, check that must reject it, what the learner may have thought
MISTAKES = {
    "a tensor": (
        "met_share",
        "one-share",
        lambda a, b: same(a, b).all(-1).any(1).double().mean(),
    ),
    "one for each step": ("met_share", "one-share", lambda a, b: same(a, b).all(-1).any(1)),
    "a count": ("met_share", "one-share", lambda a, b: int(same(a, b).all(-1).any(1).sum())),
    "share of training": (
        "met_share",
        "share-of-test",
        lambda a, b: same(a, b).all(-1).any(0).double().mean().item(),
    ),
    "any step": ("met_share", "share-of-test", lambda a, b: float(same(a, b).all(-1).any())),
    "divided by training": (
        "met_share",
        "share-of-test",
        lambda a, b: same(a, b).all(-1).any(1).sum().item() / len(a),
    ),
    "each id by itself": (
        "met_share",
        "ids-together",
        lambda a, b: same(a, b).any(1).all(-1).double().mean().item(),
    ),
    "one id is enough": (
        "met_share",
        "ids-together",
        lambda a, b: same(a, b).any(-1).any(1).double().mean().item(),
    ),
    "first role only": (
        "met_share",
        "ids-together",
        lambda a, b: same(a, b)[..., 0].any(1).double().mean().item(),
    ),
    "as sets": (
        "met_share",
        "roles-apart",
        lambda a, b: same(a.sort(1).values, b.sort(1).values).all(-1).any(1).double().mean().item(),
    ),
    "different tuples": (
        "met_share",
        "every-step-counts",
        lambda a, b: same(a, b.unique(dim=0)).all(-1).any(1).double().mean().item(),
    ),
    "over the steps": (
        "beats",
        "table-of-ids",
        lambda ids, o: (ids != o[:, None])[:, : len(o)],
    ),
    "numbers": ("beats", "table-of-ids", lambda ids, o: won(ids, o).long()),
    "all ids": ("beats", "table-of-ids", lambda ids, o: won(ids, o, ids.unique())),
    "the other way": ("beats", "row-wins", lambda ids, o: won(ids, o).T),
    "both ways": ("beats", "row-wins", lambda ids, o: won(ids, o) | won(ids, o).T),
    "larger wins": (
        "beats",
        "row-wins",
        lambda ids, o: torch.ones(len(o.unique()), len(o.unique())).bool().tril(-1),
    ),
    "itself": ("beats", "not-itself", lambda ids, o: won(ids, o, diagonal=True)),
    "itself if twice": (
        "beats",
        "not-itself",
        lambda ids, o: (
            won(ids, o)
            | torch.diag(
                torch.stack(
                    [(((ids == k).sum(1) > 1) & (o == k)).any() for k in o.unique()]
                )  # fmt: skip
            )
        ),
    ),
    "last step": ("beats", "all-steps", last_step_only),
    "first keys": ("beats", "all-steps", first_keys),
    "-1 as an index": ("beats", "hidden-keys", hidden_as_last),
    "bystanders in": (
        "beats",
        "operands-only",
        lambda ids, o: won(ids.clamp(max=int(o.max())), o),
    ),
    "a tensor of one": (
        "has_order",
        "true-or-false",
        lambda beats: ~(beats & beats.T).any(),
    ),
    "each id": ("has_order", "true-or-false", lambda beats: ~(beats & beats.T).any(0)),
    "complete": (
        "has_order",
        "chain",
        lambda beats: bool((beats | beats.T).sum() == len(beats) * (len(beats) - 1)),
    ),
    "wrong way round": ("has_order", "chain", lambda beats: not powers(beats, len(beats))),
    "diagonal": ("has_order", "pair", lambda beats: not bool(beats.diagonal().any())),
    "someone is on top": (
        "has_order",
        "ring",
        lambda beats: not bool((beats & beats.T).any()) and bool((~beats.any(0)).any()),
    ),
    "pairs only": ("has_order", "ring", lambda beats: not bool((beats & beats.T).any())),
    "three steps": ("has_order", "ring", lambda beats: powers(beats, 3)),
    "met twice": ("has_order", "two-ways", meets_twice),
    "triangle": (
        "has_order",
        "two-ways",
        lambda beats: not bool((beats & beats.T).any()) and powers(beats, 20) and untidy(beats),
    ),
    "every id takes part": (
        "has_order",
        "uncompared",
        lambda beats: (
            powers(beats, 20)
            and (not beats.any() or bool((beats.any(0) | beats.any(1)).sum() > len(beats) / 2))
        ),
    ),
    "one answer for all": (
        "found",
        "one-per-step",
        lambda above, ids, o: find(above, ids, o).all(),
    ),
    "one per key": (
        "found",
        "one-per-step",
        lambda above, ids, o: above[o[:, None], ids.clamp(0)],
    ),
    "transposed": ("found", "wins", transposed),
    "over all ids": ("found", "wins", over_all),
    "name is enough": (
        "found",
        "wins",
        lambda above, ids, o: (ids == o[:, None]).sum(1) == 1,
    ),
    "several keys": ("found", "one-key", lambda above, ids, o: find(above, ids, o, "single")),
    "not losing": ("found", "never-compared", not_losing),
    "new operand": ("found", "new-ids", lambda above, ids, o: find(above, ids, o, "new")),
    "strangers": ("found", "new-ids", lambda above, ids, o: find(above, ids, o, "strangers")),
    "hidden": ("found", "hidden-keys", lambda above, ids, o: find(above, ids, o, "hidden")),
    "shares": (
        "tally",
        "three-numbers",
        lambda cells, bar: tuple(n / len(cells) for n in count(cells, bar)),
    ),
    "two numbers": ("tally", "three-numbers", lambda cells, bar: count(cells, bar)[:2]),
    "success is right": (
        "tally",
        "both-ways",
        lambda cells, bar: (
            sum(c[2] >= bar for c in cells),
            sum(c[2] < bar for c in cells),
            0,
        ),
    ),
    "failures not counted": (
        "tally",
        "both-ways",
        lambda cells, bar: count(cells, bar, words=("generalises",)),
    ),
    "silence is failure": (
        "tally",
        "silence",
        lambda cells, bar: count(cells, bar, ("generalises", "fails", "no prediction")),
    ),
    "not covered is a failure": (
        "tally",
        "silence",
        lambda cells, bar: count(cells, bar, ("generalises", "fails", "not covered")),
    ),
    "untrained too": (
        "tally",
        "trained-first",
        lambda cells, bar: count(cells, bar, trained=False),
    ),
    "fixed bar": ("tally", "bar", lambda cells, bar: count(cells, bar, fixed=0.9)),
    "above the bar": ("tally", "bar", lambda cells, bar: count(cells, bar, strict=True)),
}


def untidy(beats):
    """Return whether every id beats only later ones; true for sorted tables alone."""
    return not bool(beats.tril().any())


@pytest.mark.parametrize("thought", MISTAKES)
def test_a_mistake_meets_its_check(thought):
    name, check, answer = MISTAKES[thought]
    for seed in SEEDS:
        end = examine(QUESTIONS[name], answer, seed).stopped_at
        assert end is not None and (end.check.id, end.outcome) == (check, FAILED), (seed, end)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_check_rejects_some_mistake(name):
    met = [check for question, check, _ in MISTAKES.values() if question == name]
    assert set(met) == {check.id for check in QUESTIONS[name].checks} and len(met) >= 4


def met_share_by_numbers(train, test):
    rows, index = torch.cat([train, test]).unique(dim=0, return_inverse=True)
    shown = torch.zeros(len(rows), dtype=torch.bool)
    shown[index[: len(train)]] = True
    return float(shown[index[len(train) :]].float().mean())


def beats_by_loops(ids, operand):
    known = sorted({int(o) for o in operand})
    pairs = {
        (int(o), int(k)) for row, o in zip(ids, operand, strict=True) for k in row if k in known
    }
    return torch.tensor([[a != b and (a, b) in pairs for b in known] for a in known])


def has_order_by_walking(beats):
    state = [0] * len(beats)

    def ring_from(a):
        state[a] = 1
        for b in beats[a].nonzero()[:, 0].tolist():
            if state[b] == 1 or (state[b] == 0 and ring_from(b)):
                return True
        state[a] = 2
        return False

    return not any(state[a] == 0 and ring_from(a) for a in range(len(beats)))


def found_by_counting(above, ids, operand):
    size, answers = len(above), []
    for row, mine in zip(ids, operand, strict=True):
        if mine >= size:
            answers.append(False)
            continue
        known = row[(row >= 0) & (row < size)]
        beaten = above[mine][known].sum()
        answers.append(int(beaten) == len(known) - 1 and int((known == mine).sum()) == 1)
    return torch.tensor(answers)


def tally_by_table(cells, bar):
    table = [0, 0, 0]
    for said, trained, tested in cells:
        truth = "generalises" if tested >= bar else "fails"
        silent = trained < bar or said not in ("generalises", "fails")
        table[2 if silent else int(said != truth)] += 1
    return tuple(table)


OTHER_WAYS = {
    "met_share": met_share_by_numbers,
    "beats": beats_by_loops,
    "has_order": has_order_by_walking,
    "found": found_by_counting,
    "tally": tally_by_table,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_way_and_the_reference_itself_pass(name):
    for answer in (OTHER_WAYS[name], QUESTIONS[name].reference):
        for seed in SEEDS:
            report = examine(QUESTIONS[name], answer, seed)
            assert report.outcome == PASSED, report.stopped_at


@pytest.mark.parametrize("name", ["copy", "shift", "reverse", "interleave"])
@pytest.mark.parametrize("pe", ["ape", "rpe", "rpe-sh", "ideal-sh"])
def test_the_questions_together_are_the_librarys_prediction(name, pe):
    """One operand in each step, one operator: what the four references say is what predict says."""
    task = tasks.get(name)
    phi = relations.build(pe, task, max_scale=9)

    def look(scales):
        rows, operands = [], []
        for n in scales:
            keys = torch.arange(task.length(9))
            for step in task.circuit(n):
                ids = phi(torch.tensor([step.query]), keys[: step.query + 1], n)[0]
                rows.append(torch.nn.functional.pad(ids, (0, len(keys) - len(ids)), value=-1))
                operands.append(int(ids[step.inputs[0]]))
        return torch.stack(rows), torch.tensor(operands)

    ids, operand = look(range(1, 6))
    table = reference_beats(ids, operand)
    said = theory.predict(task, phi, range(1, 6), [9])
    test_ids, test_operand = look([9])
    single = (ids == operand[:, None]).sum(1) == 1
    if not reference_has_order(table) or not bool(single.all()):
        assert said.verdict == "fails" and said.resolvable[9] == 0
        return
    above = table.clone()
    for _ in range(len(above)):
        above = above | (above[:, :, None] & above[None]).any(1)
    known = operand.unique().tolist()
    number = {id: place for place, id in enumerate(known)} | {-1: -1}
    strange = len(known)
    renamed = torch.tensor([[number.get(id, strange) for id in row] for row in test_ids.tolist()])
    mine = torch.tensor([number.get(id, strange) for id in test_operand.tolist()])
    good = reference_found(above, renamed, mine)
    assert good.double().mean().item() == said.resolvable[9]
    if said.generalises:
        assert reference_met_share(operand[:, None], test_operand[:, None]) == 1
