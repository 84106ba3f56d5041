"""Exercise 8: the three conditions of alignment piece by piece, and how predictions are counted.

The references walk through lists and sets in plain Python; the solutions that learners see compute
with tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


# --- met_share ------------------------------------------------------------------------------------
def reference_met_share(train: Tensor, test: Tensor) -> float:
    """Look each test row up among the training rows."""
    shown = {tuple(row) for row in train.tolist()}
    met = [tuple(row) in shown for row in test.tolist()]
    return sum(met) / len(met)


def _some_met(generator: Generator):
    """Whole rows that training showed, and rows with new ids; all rows are different."""
    start = _below(20, generator, low=3)
    train = torch.stack([torch.arange(6) + start, torch.arange(6) + start + 30], dim=1)
    new = train[:3] + 100
    return [(train, torch.cat([train[:2], new])), (train, train), (train, new)]


def _partners(generator: Generator):
    """Each id was shown in its role; but never with this partner."""
    train = torch.stack([torch.arange(5), torch.arange(5) + 40], dim=1)
    train = train + _below(9, generator)
    test = torch.stack([train[:, 0], train[:, 1].roll(1)], dim=1)
    return [(train, torch.cat([test, train[:1]]))]


def _roles(generator: Generator):
    """The same ids in another order of the roles."""
    train = torch.tensor([[1, 5], [2, 6], [3, 7]]) + _below(9, generator)
    return [(train, torch.cat([train.flip(1), train[1:]]))]


def _repeats(generator: Generator):
    """One tuple serves many steps."""
    train = torch.tensor([[1, 5], [2, 6], [1, 5]])
    count = _below(9, generator, low=4)
    return [(train, torch.tensor([[1, 5]] * count + [[9, 9]])), (train, train[:1].repeat(7, 1))]


MET_SHARE = Question(
    name="met_share",
    title="condition 1: which steps did training show?",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Take one test step. With which rows of training must it be compared, and when is it the "
        "same as one of them?",
        "A step is met if there is a training row that agrees with it in all of its ids at once. "
        "The share counts test steps, each as often as it occurs.",
        "same = (test[:, None] == train[None, :]) is [s m r]. Two reductions, .all(-1) and then "
        ".any(-1), leave one Bool for each test step. The mean as a float is the answer.",
    ),
    checks=(
        Check(
            "one-share",
            "a Python float",
            "return a float such as 0.5: .item() turns a tensor of one number into one; a count or "
            "one Bool for each step is not yet a share",
            _some_met,
            parts=(),
        ),
        Check(
            "share-of-test",
            "the share of the test steps that training showed",
            "count the test rows, not the training rows, and divide by the number of test rows; "
            "any() over them says only whether there is one",
            _some_met,
            tolerance=1e-6,
        ),
        Check(
            "ids-together",
            "the ids of a step were shown together",
            "it is not enough that each id was shown in some step: the operator was learned on "
            "whole tuples",
            _partners,
            tolerance=1e-6,
        ),
        Check(
            "roles-apart",
            "each id in its own role",
            "sets and sorted ids forget which operand had which id: (1, 5) is not (5, 1)",
            _roles,
            tolerance=1e-6,
        ),
        Check(
            "every-step-counts",
            "a tuple that serves many test steps counts for each of them",
            "unique() and set() over the test rows count tuples, but the share is one of steps",
            _repeats,
            tolerance=1e-6,
        ),
    ),
    reference=reference_met_share,
)


# --- beats ----------------------------------------------------------------------------------------
def reference_beats(ids: Tensor, operand: Tensor) -> Tensor:
    """Go through the steps one by one; -1 is a key that the query cannot see."""
    known = sorted(set(operand.tolist()))
    table = [[False] * len(known) for _ in known]
    for row, mine in zip(ids.tolist(), operand.tolist(), strict=True):
        for other in set(row) & set(known) - {mine}:
            table[known.index(mine)][known.index(other)] = True
    return torch.tensor(table)


def _beats_form(generator: Generator):
    return [(torch.tensor([[0, 1, 1], [1, 0, 1], [2, 1, 0]]), torch.tensor([0, 0, 2]))]


def _one_way(generator: Generator):
    """Two steps, ids 0 and 1: at the first only 1 is there, at the second 0 wins over 1."""
    top = _below(4, generator, low=2)
    chain = torch.arange(top + 1)
    ids = torch.where(chain[None, :] >= chain[:, None], chain[None, :], top)
    return [(torch.tensor([[1, 1], [0, 1]]), torch.tensor([1, 0])), (ids, chain)]


def _bystanders(generator: Generator):
    """Ids that are never an operand's stand among the keys."""
    shift = _below(9, generator)
    ids = torch.tensor([[3, 9, 7, 7], [5, 9, 3, 7], [9, 3, 8, 7]]) + shift
    return [(ids, torch.tensor([3, 5, 3]) + shift)]


def _hidden(generator: Generator):
    """Keys after the query have the id -1, and stand at the end."""
    ids = torch.tensor([[4, -1, -1], [6, 4, -1], [6, 8, 4]])
    return [(ids, torch.tensor([4, 6, 8]))]


def _twice(generator: Generator):
    """One id alone, on one key and on several."""
    ids = torch.tensor([[2, 9, 8], [2, 2, 9]]) + _below(9, generator)
    return [(ids, ids[:, 0].clone())]


def _random_steps(generator: Generator):
    cases = []
    for _ in range(3):
        ids = torch.randint(0, 12, (6, 8), generator=generator)
        pick = torch.randint(0, 8, (6,), generator=generator)
        cases.append((ids, ids[torch.arange(6), pick]))
    return cases


BEATS = Question(
    name="beats",
    title="condition 2: what does training force on the ids?",
    points=4,
    minutes=20,
    difficulty=3,
    hints=(
        "Take one step and write its ids down. Attention must single out the operand's id. Over "
        "which of the others must it win?",
        "The rows and columns are the ids that some operand has, sorted: operand.unique(). At each "
        "step, the row of the operand's id gets True in the column of every other such id that is "
        "present.",
        "known = operand.unique(); present = (ids[:, :, None] == known).any(1) is [s k], and mine "
        "= operand[:, None] == known is [s k]. Entry (a, b) is True if mine[s, a] and "
        "present[s, b] for some step s, and a is not b.",
    ),
    checks=(
        Check(
            "table-of-ids",
            "a square table of bool over the ids that operands have",
            "one row and one column for each id in operand.unique(), not for each step or each key",
            _beats_form,
            parts=(),
        ),
        Check(
            "not-itself",
            "an id does not win over itself",
            "the operand's id is present at each step, of course; leave the diagonal False",
            _twice,
        ),
        Check(
            "row-wins",
            "the operand's id wins over the other ids that are present",
            "entry (a, b) says that a wins over b: the row is the operand's id, the column the "
            "other one; and that a wins over b does not mean that b wins over a",
            _one_way,
        ),
        Check(
            "operands-only",
            "ids that no operand ever has are left out",
            "such an id gets a low strength once and for all; only ids that are operands at some "
            "step can be rivals. Keep the table to operand.unique()",
            _bystanders,
        ),
        Check(
            "hidden-keys",
            "keys after the query are not present",
            "an id of -1 means that the query cannot see the key; it wins over nothing and loses "
            "to nothing",
            _hidden,
        ),
        Check(
            "all-steps",
            "every step and every key counts",
            "go through all steps, not the first or the last with this operand, and look at all "
            "keys",
            _random_steps,
        ),
    ),
    reference=reference_beats,
)


# --- has_order ------------------------------------------------------------------------------------
def reference_has_order(beats: Tensor) -> bool:
    """Take away an id that beats none of those left, again and again."""
    table = beats.tolist()
    left = set(range(len(table)))
    while left:
        lowest = [a for a in left if not any(table[a][b] for b in left)]
        if not lowest:
            return False
        left -= set(lowest)
    return True


def _edges(size: int, pairs) -> Tensor:
    table = torch.zeros(size, size, dtype=torch.bool)
    for a, b in pairs:
        table[a, b] = True
    return table


def _shuffled(table: Tensor, generator: Generator) -> Tensor:
    order = torch.randperm(len(table), generator=generator)
    return table[order][:, order]


def _simple_orders(generator: Generator):
    chain = _edges(4, [(0, 1), (1, 2), (2, 3)])
    return [(chain,), (torch.zeros(3, 3, dtype=torch.bool),)]


def _pairs(generator: Generator):
    return [(_shuffled(_edges(3, [(0, 1), (1, 0), (0, 2)]), generator),)]


def _rings(generator: Generator):
    """Rings of three and more, in which no two ids beat each other; beside them a chain."""
    cases = []
    for size in (3, 4, 7, 12):
        ring = [(k, (k + 1) % size) for k in range(size)]
        cases.append((_shuffled(_edges(size + 2, [*ring, (size, size + 1)]), generator),))
    return cases


def _diamonds(generator: Generator):
    """Two ways lead to the same id: no contradiction. Nor are long chains in any order."""
    diamond = _edges(4, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)])
    long = _edges(9, [(a, b) for a in range(9) for b in range(a + 1, 9)])
    return [(_shuffled(diamond, generator),), (_shuffled(long, generator),)]


def _untouched(generator: Generator):
    return [(_edges(5, [(3, 1)]),), (_edges(1, []),), (_edges(6, [(0, 5), (4, 2)]),)]


HAS_ORDER = Question(
    name="has_order",
    title="condition 2: do the priorities contradict each other?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Think of the ids as towns and of 'beats' as one-way roads. When is there no way to put "
        "the towns in a row so that all roads lead to the right?",
        "There is an order if and only if no road leads back to where one began, after however "
        "many steps. Which id can stand last in a row? One that beats none. Take it away and ask "
        "again.",
        "Reach: with step = beats.double(), the ids that can be reached in k steps stand in the "
        "k-th power of step. There is a ring if one of the powers 1 to len(beats) has a number "
        "above 0 on its diagonal.",
    ),
    checks=(
        Check(
            "true-or-false",
            "a Python bool",
            "return True or False: bool(...) or .item() turns a tensor of one value into one",
            _simple_orders,
            parts=(),
        ),
        Check(
            "chain",
            "a chain of priorities is an order",
            "a over b, b over c is no contradiction; and an id need not be compared with all "
            "others",
            _simple_orders,
        ),
        Check(
            "pair",
            "two ids that each beat the other are a contradiction",
            "look for entries that are True in both directions",
            _pairs,
        ),
        Check(
            "ring",
            "so are rings of three and more",
            "a over b, b over c, c over a: no two of them contradict each other, but the three do. "
            "Follow the roads for as many steps as there are ids",
            _rings,
        ),
        Check(
            "two-ways",
            "two ways to the same id are none",
            "meeting an id twice is a contradiction only on one and the same way, not on two that "
            "part and meet again; and the ids come in any order, so that a triangular table is not "
            "what to look for",
            _diamonds,
        ),
        Check(
            "uncompared",
            "ids that were never compared do not matter",
            "training need not compare all pairs; a single id has an order, too",
            _untouched,
        ),
    ),
    reference=reference_has_order,
)


# --- found ----------------------------------------------------------------------------------------
def reference_found(above: Tensor, ids: Tensor, operand: Tensor) -> Tensor:
    """Ask at each step for the keys that the operand's id does not win against."""
    answers = []
    for row, mine in zip(ids.tolist(), operand.tolist(), strict=True):
        good = 0 <= mine < len(above) and row.count(mine) == 1
        for other in row:
            if good and 0 <= other < len(above) and other != mine:
                good = bool(above[mine, other])
        answers.append(good)
    return torch.tensor(answers)


def _order3() -> Tensor:
    return _edges(3, [(0, 1), (0, 2), (1, 2)])


def _found_form(generator: Generator):
    return [(_order3(), torch.tensor([[0, 1, 2, 2], [2, 1, 2, 2]]), torch.tensor([0, 1]))]


def _rivals(generator: Generator):
    ids = torch.tensor([[0, 1, 2, 2], [2, 1, 0, 2], [2, 1, 2, 2], [2, 0, 2, 2], [1, 2, 2, 2]])
    return [(_order3(), ids, torch.tensor([0, 1, 1, 0, 1]))]


def _doubles(generator: Generator):
    """The operand's id on one key, on two, on all."""
    ids = torch.tensor([[0, 1, 2], [0, 0, 2], [1, 1, 1], [2, 2, 1]])
    return [(_order3(), ids, torch.tensor([0, 0, 1, 1]))]


def _never_compared(generator: Generator):
    """Training compared 0 with 1 and 2 with 3, and no others."""
    above = _edges(4, [(0, 1), (2, 3)])
    ids = torch.tensor([[0, 1, 1], [0, 2, 1], [0, 3, 3], [2, 3, 3], [2, 1, 3]])
    return [(above, ids, torch.tensor([0, 0, 0, 2, 2]))]


def _new_ids(generator: Generator):
    """Numbers from 3 on are ids that no operand had in training."""
    new = _below(9, generator, low=4)
    ids = [[0, new, 2], [new, 1, 2], [new, new + 1, 0], [2, new, new], [new, new + 1, new + 1]]
    return [(_order3(), torch.tensor(ids), torch.tensor([0, new, new, 2, new]))]


def _found_hidden(generator: Generator):
    ids = torch.tensor([[2, -1, -1], [1, 2, -1], [1, 0, -1], [0, 1, 2]])
    return [(_order3(), ids, torch.tensor([2, 1, 1, 0]))]


FOUND = Question(
    name="found",
    title="condition 2: is the operand singled out at a test step?",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "Three things can go wrong at one test step: the operand's id is new, it is on several "
        "keys, or another id is present against which it does not win. Which entries say each?",
        "An id is known if it is a row of above: 0 to k - 1. Rivals are the known ids that are "
        "present, are not the operand's and are not below it in `above`. Whatever training did not "
        "compare counts as a rival. Ids that no operand has had are no rivals: they have learned "
        "to stay low.",
        "For one step: row = ids[s]; mine = operand[s]; known = row[(row >= 0) & (row < k)]; then "
        "mine < k and (row == mine).sum() == 1 and above[mine][known[known != mine]].all().",
    ),
    checks=(
        Check(
            "one-per-step",
            "one True or False for each step",
            "the answer is Bool[s]: reduce over the keys, not over the steps",
            _found_form,
            parts=(),
        ),
        Check(
            "wins",
            "the operand's id wins over the others that are present",
            "above[a, b] says that a wins over b; the operand's id is the row. And only ids that "
            "are present at this step count",
            _rivals,
        ),
        Check(
            "one-key",
            "its id stands on one key only",
            "attention reads names, not keys: if two keys have the operand's id, both are read",
            _doubles,
        ),
        Check(
            "never-compared",
            "what training never compared is not resolved",
            "not losing is not winning: the rival counts unless above[operand, rival] is True",
            _never_compared,
        ),
        Check(
            "new-ids",
            "a new id cannot be found, and does not disturb",
            "ids from len(above) on have no row: an operand with one is lost; another key with one "
            "is no rival",
            _new_ids,
        ),
        Check(
            "hidden-keys",
            "keys after the query are no rivals",
            "an id of -1 means that the query cannot see the key. As an index, -1 would be the "
            "last id",
            _found_hidden,
        ),
    ),
    reference=reference_found,
)


# --- tally ----------------------------------------------------------------------------------------
WORDS = ("generalises", "fails")


def reference_tally(cells: list[tuple[str, float, float]], bar: float) -> tuple[int, int, int]:
    """Sort the cells into right, wrong and not counted."""
    right = wrong = silent = 0
    for predicted, trained, tested in cells:
        if predicted not in WORDS or trained < bar:
            silent += 1
        elif (predicted == "generalises") == (tested >= bar):
            right += 1
        else:
            wrong += 1
    return right, wrong, silent


def _plain_cells(generator: Generator):
    return [
        (
            [("generalises", 1.0, 1.0), ("fails", 1.0, 0.0), ("generalises", 1.0, 0.1)],
            0.9,
        ),
        ([("fails", 1.0, 1.0), ("fails", 0.95, 0.2)], 0.9),
    ]


def _silent_cells(generator: Generator):
    return [
        (
            [
                ("no prediction", 1.0, 0.0),
                ("not covered", 1.0, 1.0),
                ("fails", 1.0, 0.0),
                ("generalises", 1.0, 1.0),
            ],
            0.9,
        )
    ]


def _untrained_cells(generator: Generator):
    low = _below(80, generator, low=10) / 100
    return [
        ([("fails", low, 0.0), ("generalises", low, 0.0), ("generalises", 1.0, 0.0)], 0.9),
        ([("fails", 0.0, 0.0)] * 5 + [("generalises", 1.0, 1.0)], 0.9),
    ]


def _bar_cells(generator: Generator):
    return [
        ([("generalises", 0.8, 0.7), ("fails", 0.7, 0.6), ("generalises", 0.6, 1.0)], 0.7),
        ([("generalises", 1.0, 0.97), ("fails", 0.98, 0.98), ("fails", 0.99, 0.5)], 0.98),
    ]


TALLY = Question(
    name="tally",
    title="how are predictions counted?",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Before you compare: which cells say nothing about the theory at all?",
        "A cell is silent if theory made no statement, or if the model was not trained: its exact "
        "match on the longest training scale is below the bar. All others are right or wrong.",
        "For each cell: silent if predicted not in ('generalises', 'fails') or trained < bar; else "
        "right if (predicted == 'generalises') == (tested >= bar), else wrong.",
    ),
    checks=(
        Check(
            "three-numbers",
            "a tuple of three whole numbers",
            "return (right, wrong, silent) as Python integers, not shares",
            _plain_cells,
            parts=(),
        ),
        Check(
            "both-ways",
            "both kinds of predictions can be right and wrong",
            "'fails' is right where the model fails; and a model that generalises against the "
            "prediction makes it wrong",
            _plain_cells,
        ),
        Check(
            "silence",
            "where theory is silent, nothing is counted",
            "'no prediction' and 'not covered' are neither right nor wrong, whatever was measured",
            _silent_cells,
        ),
        Check(
            "trained-first",
            "a model that did not learn its training scales is silent",
            "a model that fails everywhere would make 'fails' right for free: ask for the "
            "training scale first",
            _untrained_cells,
        ),
        Check(
            "bar",
            "the bar is the one that is given, and reaching it is enough",
            "compare both scores with `bar`, by >=; no fixed number",
            _bar_cells,
        ),
    ),
    reference=reference_tally,
)

QUESTIONS = (MET_SHARE, BEATS, HAS_ORDER, FOUND, TALLY)
