"""Exercise 7: ideal relations by hand, when one exists without a hint, and what attention does.

The references walk through written-out layouts and plain lists; the solutions that learners see
use formulas and tensors.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lgcourse.grading.question import Check, Question

Generator = torch.Generator
Reads = dict[int, dict[int, str]]


def _below(high: int, generator: Generator, low: int = 0) -> int:
    return int(torch.randint(low, high, (), generator=generator))


# --- parity_relation ------------------------------------------------------------------------------
def reference_parity_relation(query: Tensor, key: Tensor, n: int) -> Tensor:
    """Walk through the steps and write down what each reads."""
    layout = [f"x{t}" for t in range(1, n + 1)] + ["="] + [f"y{t}" for t in range(1, n + 1)]
    at = layout.index
    ids = {}
    for t in range(1, n + 1):
        ids[at(f"y{t}") - 1, at(f"x{t}")] = 1
        if t > 1:
            ids[at(f"y{t}") - 1, at(f"y{t - 1}")] = 0
    return torch.tensor([[ids.get((i, j), 2) for j in key.tolist()] for i in query.tolist()])


def _form(generator: Generator):
    return [(torch.arange(7, 12), torch.arange(3), 6)]


def _bits(generator: Generator):
    """Middle steps and the bits of the input."""
    return [(torch.arange(5, 8), torch.arange(4), 4)]


def _results(generator: Generator):
    """Middle steps and the results before them."""
    return [(torch.arange(5, 8), torch.arange(5, 8), 4)]


def _scales(generator: Generator):
    n = _below(9, generator, low=5)
    return [(torch.arange(k + 1, 2 * k), torch.arange(2 * k), k) for k in (n, n + 3)]


def _picked(generator: Generator):
    n = _below(9, generator, low=6)
    steps = n + 1 + torch.randperm(n - 1, generator=generator)[:3]
    keys = torch.randperm(n, generator=generator)[:4]
    return [(steps, torch.cat([keys, steps[:2], steps[:1] - n]), n)]


def _first_step(generator: Generator):
    n = _below(9, generator, low=3)
    return [(torch.tensor([n]), torch.arange(n + 1), n), (torch.tensor([1]), torch.arange(2), 1)]


def _all_pairs(generator: Generator):
    n = _below(8, generator, low=3)
    at = torch.arange(2 * n + 1)
    return [(at, at, n)]


PARITY_RELATION = Question(
    name="parity_relation",
    title="the ideal relation of parity with chain of thought",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "Look at the picture for n = 4. The step that writes y_t stands one place before y_t. What "
        "stands there? How far back is x_t, seen from there?",
        "y_t is at n + t, so its query i is n + t - 1, and that is the place of y_(t-1): i - j = "
        "0. x_t is at t - 1: i - j = n. Then look at the first step, at the = .",
        "read_x = (i - j == n) & (j < n); read_y = (i == j) & (n < i) & (i < 2 * n). Start with "
        "2 everywhere, then torch.where for each of the two.",
    ),
    checks=(
        Check(
            "one-id-per-pair",
            "one whole-number id per pair of a query and a key",
            "rows are queries and columns are keys: query[:, None] against key[None, :]; ids are "
            "int64",
            _form,
            parts=(),
        ),
        Check(
            "next-bit",
            "at scale 4 each later step finds its bit of the input",
            "x_t stands n places before the query of y_t, which is one place before y_t; its id "
            "is 1",
            _bits,
        ),
        Check(
            "result-before",
            "the result before stands at the query itself",
            "y_(t-1) is the last token written: i - j = 0, and its id is 0",
            _results,
        ),
        Check(
            "needs-scale",
            "at other scales too",
            "the distance to the bit is n, which is not one number: that is what the hint is for",
            _scales,
        ),
        Check(
            "given-positions",
            "works on any positions, in any order",
            "use the positions that are handed in, not arange(len(query))",
            _picked,
        ),
        Check(
            "first-step",
            "the first step reads x_1 alone",
            "at the = no result is written yet: the = is no result, so its id is 2",
            _first_step,
        ),
        Check(
            "no-other-query",
            "queries that write nothing read nothing",
            "inside the prompt, and at the very last position, no step is made: all ids are 2; and "
            "a key behind its query is never read",
            _all_pairs,
        ),
    ),
    reference=reference_parity_relation,
)


# --- ideal_table ----------------------------------------------------------------------------------
def reference_ideal_table(
    steps: list[tuple[int, tuple[tuple[int, str], ...]]], roles: list[str], length: int
) -> Tensor:
    """Ask for each pair what its step says of it."""
    rows = []
    for i in range(length):
        said = {key: role for query, reads in steps if query == i for key, role in reads}
        rows.append([roles.index(said[j]) if j in said else len(roles) for j in range(length)])
    return torch.tensor(rows)


ROLES = ["before", "next", "carry"]


def _circuit(generator: Generator, length: int = 9):
    """Three steps, each reading two keys in two of three roles; together they use all roles."""
    queries = torch.randperm(length - 4, generator=generator)[:3] + 3
    steps = []
    for step, query in enumerate(queries.tolist()):
        keys = torch.randperm(query + 1, generator=generator)[:2].tolist()
        names = (step, (step + 1) % 3)
        steps.append((query, tuple((k, ROLES[r]) for k, r in zip(keys, names, strict=True))))
    return steps


def _some_steps(generator: Generator):
    return [(_circuit(generator), ROLES, 9)]


def _all_roles(generator: Generator):
    """One step with all roles, named in another order than `roles`."""
    return [([(5, ((4, "carry"), (0, "before"), (2, "next")))], ROLES, 7)]


def _unused_role(generator: Generator):
    """A role that no step of this scale uses keeps its number, and so does other."""
    some = [([(3, ((1, "next"),))], ROLES, 5), ([(3, ((1, "carry"),))], ["next", "carry"], 5)]
    return [*some, ([], ROLES, 3), ([], [], 2)]


IDEAL_TABLE = Question(
    name="ideal_table",
    title="from the steps of a circuit to its ideal relation",
    points=2,
    minutes=10,
    difficulty=2,
    hints=(
        "Which pairs have an id other than `other`? Start with a table in which there is none.",
        "Fill a table [length, length] with len(roles). For each step, and each (key, role) that "
        "it reads, one entry changes: row query, column key.",
        "ids = torch.full((length, length), len(roles)); for query, reads in steps: for key, role "
        "in reads: ids[query, key] = roles.index(role).",
    ),
    checks=(
        Check(
            "square-of-ids",
            "one whole-number id per pair of positions",
            "return a tensor of int64 with the shape [length, length]; torch.full with a whole "
            "number makes one",
            _some_steps,
            parts=(),
        ),
        Check(
            "roles-in-order",
            "the id is the place of the role in `roles`",
            "number the roles as `roles` lists them, from 0; not in the order in which a step "
            "names them. Rows are queries and columns are keys",
            _all_roles,
        ),
        Check(
            "several-steps",
            "each step fills its own row",
            "a query names only what its own step reads",
            _some_steps,
        ),
        Check(
            "other-is-fixed",
            "`other` is the number of roles, whether they are all used or not",
            "count the roles in `roles`: a scale that does not use them all must not get other "
            "numbers, or its ids would mean something else than those of longer scales",
            _unused_role,
        ),
    ),
    reference=reference_ideal_table,
)


# --- first_conflict -------------------------------------------------------------------------------
def reference_first_conflict(first: Reads, second: Reads) -> tuple[int, int]:
    """Compare the two scales pair by pair, where both make a step."""
    last = max([0, *first, *second])
    for query in range(last + 1):
        if query in first and query in second:
            for key in range(query + 1):
                if first[query].get(key, "other") != second[query].get(key, "other"):
                    return query, key
    return -1, -1


def _copy(n: int) -> Reads:
    return {n + t - 1: {t - 1: "source"} for t in range(1, n + 1)}


def _agreeing(generator: Generator):
    """The longer scale makes the steps of the shorter one, and more."""
    n = _below(7, generator, low=3)
    some = {q: {0: "start", q: "before"} for q in range(2, n + 2)}
    return [(some, some | {n + 3: {1: "start", n: "before"}}), (some, some)]


def _moving(generator: Generator):
    n = _below(8, generator, low=3)
    return [(_copy(n), _copy(n + 1)), (_copy(n + 1), _copy(n))]


def _renamed(generator: Generator):
    """The same keys in two roles, at the second of two queries and the later key."""
    low = _below(4, generator, low=1)
    one = {5: {low: "a"}, 7: {0: "a", low: "b"}}
    return [(one, {5: {low: "a"}, 7: {0: "a", low: "a"}})]


def _only_one_reads(generator: Generator):
    """At a common query one scale reads a key more: role against other, both ways."""
    low = _below(3, generator, low=1)
    less, more = {6: {low: "a"}}, {6: {low: "a", low + 2: "b"}}
    return [(less, more), (more, less)]


def _in_order(generator: Generator):
    """Several conflicts, written down in no order: the least query, then the least key."""
    a, b = _below(3, generator), _below(8, generator, low=4)
    first = {9: {1: "a"}, 8: {b: "a", a: "a"}}
    return [(first, {8: {a: "b", b: "b"}, 9: {1: "b"}}), (first, {9: {0: "a"}, 8: {b: "b"}})]


def _free_queries(generator: Generator):
    """No query in common: the scales cannot be in each other's way."""
    n = _below(6, generator, low=2)
    return [({n: {0: "a"}}, {n + 1: {0: "b"}}), ({}, {n: {0: "b"}})]


FIRST_CONFLICT = Question(
    name="first_conflict",
    title="is there an ideal relation without a hint?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "A relation without a hint has one id for the pair (i, j), whatever the scale. Where do "
        "two scales ask for two different ids? And where does a scale not care?",
        "Only queries at which both scales make a step count. There a key that one of them does "
        "not read is `other` for it, and `other` is a name like any other.",
        "for query in sorted(set(first) & set(second)): for key in sorted(set(first[query]) | "
        "set(second[query])): compare .get(key) of the two; return the first pair that differs.",
    ),
    checks=(
        Check(
            "one-pair",
            "a tuple of two whole numbers",
            "return (query, key), or (-1, -1) if there is no conflict",
            _agreeing,
            parts=(),
        ),
        Check(
            "no-conflict",
            "scales that agree have no conflict",
            "more steps at the longer scale are no conflict where they agree with those of the "
            "shorter one",
            _agreeing,
        ),
        Check(
            "free-queries",
            "a query that makes no step at a scale is free there",
            "compare only where both scales make a step at the query: what attention does at other "
            "queries is never read",
            _free_queries,
        ),
        Check(
            "two-roles",
            "one key in two roles is a conflict",
            "compare the roles and not only which keys are read",
            _renamed,
        ),
        Check(
            "role-against-other",
            "a key that only one of the scales reads is a conflict",
            "at a common query look at the keys of both scales: a key that one of them does not "
            "read is `other` there, and a role is not `other`",
            _only_one_reads,
        ),
        Check(
            "moving-operands",
            "copy without padding has a conflict",
            "at the query where both scales make a step they read different keys; the first "
            "conflict is at the least key that has two names",
            _moving,
        ),
        Check(
            "least-pair",
            "of several conflicts the least query counts, then the least key",
            "dictionaries keep the order of writing: sort the queries, and the keys of both scales "
            "together",
            _in_order,
        ),
    ),
    reference=reference_first_conflict,
)


# --- role_attention -------------------------------------------------------------------------------
def reference_role_attention(ids: Tensor, strengths: Tensor, other: int, values: Tensor) -> Tensor:
    """Compute the softmax of each row with plain numbers."""
    table, content, strong = ids.tolist(), values.tolist(), strengths.tolist()
    rows = []
    for i, row in enumerate(table):
        seen = [j for j in range(i + 1) if row[j] != other or j == i]
        parts = {j: math.exp(strong[row[j]]) for j in seen}
        total = sum(parts.values())
        rows.append(
            [
                sum(w * content[j][d] for j, w in parts.items()) / total
                for d in range(len(content[0]))
            ]
        )
    return torch.tensor(rows, dtype=values.dtype)


def _head(generator: Generator, length: int = 6, width: int = 3):
    """Ids 0, 1 and other = 2, among the keys up to each query; numbers that all differ."""
    ids = torch.full((length, length), 2)
    for i in range(1, length):
        keys = torch.randperm(i, generator=generator)[:2]
        ids[i, keys] = torch.arange(len(keys))
    strengths = torch.tensor([1.0, -0.5, 0.25]).double() + torch.rand(3, generator=generator)
    return ids, strengths, 2, torch.randn(length, width, generator=generator).double()


def _heads(generator: Generator):
    return [_head(generator)]


def _steps_only(generator: Generator):
    """Queries that are operands of themselves: no key beside the roles is seen."""
    ids, strengths, other, values = _head(generator)
    at = torch.arange(len(ids))
    ids[at, at] = 0
    return [(ids, strengths, other, values)]


def _future(generator: Generator):
    """Roles above the diagonal, which a causal model must not read."""
    ids, strengths, other, values = _steps_only(generator)[0]
    upper = torch.triu(torch.ones_like(ids), 1).bool()
    return [(torch.where(upper, 1, ids), strengths, other, values)]


def _itself(generator: Generator):
    """Queries without any operand, and long rows of other."""
    ids, strengths, other, values = _head(generator, length=9)
    ids[4] = other
    return [(ids, strengths, other, values)]


def _large(generator: Generator):
    """Strengths so large that exp overflows."""
    ids, strengths, other, values = _steps_only(generator)[0]
    return [(ids, strengths + 2000, other, values), (ids, strengths - 2000, other, values)]


def _reference_large(ids: Tensor, strengths: Tensor, other: int, values: Tensor) -> Tensor:
    """Shift the strengths: a softmax does not see it."""
    return reference_role_attention(ids, strengths - strengths.max(), other, values)


ROLE_ATTENTION = Question(
    name="role_attention",
    title="a head that attends by role",
    points=4,
    minutes=20,
    difficulty=4,
    hints=(
        "Which keys does a query see? Those that have a role, and itself. All others, and all "
        "that come later, must get the weight zero. How does one get a zero out of a softmax?",
        "scores = strengths[ids]; scores that must not count become -inf; softmax over the keys; "
        "then the weights times the values.",
        "seen = ((ids != other) & (j <= i)) | (j == i); weights = strengths[ids]"
        ".masked_fill(~seen, -torch.inf).softmax(dim=1); return weights @ values.",
    ),
    checks=(
        Check(
            "one-row-per-query",
            "one output row per query, of the type of the values",
            "return a tensor [l d] of the dtype of `values`: the mixed values and not the weights",
            _heads,
            parts=(),
        ),
        Check(
            "mixes-by-role",
            "keys with a role are mixed by softmax of the strengths",
            "the strength of a key is that of its id; take the softmax over the keys (dim=1), and "
            "leave `other` out altogether: a score of 0 is not a weight of 0",
            _steps_only,
            tolerance=1e-9,
        ),
        Check(
            "sees-itself",
            "a query sees itself, also as `other`",
            "the query's own key is never left out; its score is the strength of its id. Without "
            "it a query that reads nothing has no key at all",
            _itself,
            tolerance=1e-9,
        ),
        Check(
            "no-future",
            "keys behind the query are not read, whatever their id",
            "mask j > i as well: the model is causal",
            _future,
            tolerance=1e-9,
        ),
        Check(
            "large-strengths",
            "strengths of any size",
            "exp overflows or vanishes for large numbers; softmax subtracts the largest score "
            "first. A mask of -1e3 or so is not -inf",
            _large,
            tolerance=1e-9,
        ),
    ),
    reference=_reference_large,
)


# --- redundant_ids --------------------------------------------------------------------------------
def reference_redundant_ids(train: list[tuple[list[list[int]], Reads]]) -> int:
    """Collect the ids by hand."""
    met: list[int] = []
    used: list[int] = []
    for ids, reads in train:
        for query, row in reads.items():
            for key in range(query + 1):
                id = ids[query][key]
                met = met if id in met else [*met, id]
                used = used if key not in row or id in used else [*used, id]
    return len(met) - len(used)


def _distance_page(length: int, future: int = 70) -> list[list[int]]:
    return [[i - j if j <= i else future + j for j in range(length)] for i in range(length)]


def _rpe_pages(generator: Generator):
    """One step, which reads two keys and not its own; keys behind it, but no new distance there."""
    query = _below(8, generator, low=4)
    page = [[min(id, query) if id < 70 else id for id in row] for row in _distance_page(query + 3)]
    return [([(page, {query: {query - 1: "a", 1: "b"}})],)]


def _two_scales(generator: Generator):
    """An id that is free at one scale is an operand's at the other."""
    low = _below(5, generator, low=3)
    first = (_distance_page(low + 1), {low: {low: "a"}})
    second = (_distance_page(low + 3), {low + 1: {low - 1: "a"}, low + 2: {low: "a"}})
    return [([first, second],)]


def _steps_alone(generator: Generator):
    """Ids at queries that make no step are never looked at."""
    page = [[10 * i + j for j in range(8)] for i in range(8)]
    query = _below(7, generator, low=3)
    return [([(page, {query: {0: "a", 2: "b"}})],)]


def _shared(generator: Generator):
    """One id for an operand and for other keys: it is used, and counts once."""
    at = _below(8, generator, low=4)
    page = [[min(i - j, 2) if j <= i else 9 for j in range(9)] for i in range(9)]
    return [([(page, {at: {at - 2: "a"}})],), ([(page, {at: {at: "a", at - 1: "b", 0: "c"}})],)]


REDUNDANT_IDS = Question(
    name="redundant_ids",
    title="how many ids does a relation have to spare?",
    points=3,
    minutes=15,
    difficulty=3,
    hints=(
        "At a step, which ids does the model meet? And which of them belong to something that the "
        "step reads?",
        "Collect two sets over all scales and steps: ids met at keys 0..query, and ids of the "
        "keys that are read. An id that is ever an operand's is not redundant.",
        "met |= set(ids[query][: query + 1]); used |= {ids[query][key] for key in row}; the answer "
        "is len(met - used).",
    ),
    checks=(
        Check(
            "one-count",
            "a whole number",
            "return the number of ids as a Python int",
            _rpe_pages,
            parts=(),
        ),
        Check(
            "met-and-not-used",
            "ids that are met at a step and are no operand's",
            "count ids among the keys 0..query, the query included; keys behind it are not seen",
            _rpe_pages,
        ),
        Check(
            "steps-alone",
            "only queries that make a step count",
            "at other queries nothing is written, so nothing need be told apart there",
            _steps_alone,
        ),
        Check(
            "shared-ids",
            "an id is counted once, however many keys have it",
            "count ids and not keys: an id that an operand shares with other keys is used",
            _shared,
        ),
        Check(
            "over-all-scales",
            "used at one scale is used",
            "join the ids of all steps and scales before you take the difference; adding up a "
            "count per step or per scale counts ids more than once",
            _two_scales,
        ),
    ),
    reference=reference_redundant_ids,
)

QUESTIONS = (PARITY_RELATION, IDEAL_TABLE, FIRST_CONFLICT, ROLE_ATTENTION, REDUNDANT_IDS)
