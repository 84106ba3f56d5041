"""What follows from a circuit said for all scales, against plain loops and brute force."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import relations, tasks
from lgcourse.errors import InputError
from lgcourse.relations import CircuitRelation
from lgcourse.relations.affine import Affine, M, N, T
from lgcourse.tasks.base import DIGITS, Task, identity
from lgcourse.tasks.circuit import Operator, Step
from lgcourse.tasks.families import Segment, family, starts
from lgcourse.tasks.permutation import composition, prefix_products

FEW = settings(max_examples=25, deadline=None)
SIZES = st.integers(1, 40)


def make(name, **options) -> Any:
    return tasks.get(name, **options)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


SEGMENTED = [n for n in tasks.names() if make(n).segments() is not None]
TOLD = [n for n in tasks.names() if make(n).terms() is not None]


def scales_of(task, largest=9, pairs=5):
    return list(task.scales(largest if task.sizes == 1 else (pairs, pairs)))


def test_which_tasks_are_said_for_all_scales():
    others = {"multiply-scratchpad", "add-index-mod", "random-permutation-per-position"}
    others |= {"parity-direct", "multiply-direct", "sort", "majority", "copy-unique", "copy-repeat"}
    assert set(TOLD) == set(tasks.names()) - others


# --- the circuits of plain loops ----------------------------------------------------------------


def addition(n):
    a, b, s = 0, n + 1, 2 * n + 2  # a1 stands at 0, b1 behind "+", s1 behind "="
    yield s, "first", (a, b)
    for k in range(1, n + 1):  # where the digits have ended stand "+" and "="
        yield s + k, "column", (a + k, b + k, a + k - 1, b + k - 1, s + k - 1)


def addition_padded(n, width=40):
    a, b, s = 0, width + 2, 2 * width + 4
    yield s, "first", (a, b)
    for k in range(1, n + 1):
        yield s + k, "column", (a + k, b + k, a + k - 1, b + k - 1, s + k - 1)


def addition_unequal(n, m):
    a, b, s = 0, n + 1, n + m + 2
    yield s, "first", (a, b)
    for k in range(1, max(n, m) + 1):
        x = a if n > m else b
        if k < min(n, m):
            yield s + k, "column", (a + k, b + k, a + k - 1, b + k - 1, s + k - 1)
        elif n == m:
            yield s + k, "last", (a + k - 1, b + k - 1, s + k - 1)
        elif k == min(n, m):
            yield s + k, "just ended", (x + k, a + k - 1, b + k - 1, s + k - 1)
        elif k < max(n, m):
            yield s + k, "alone", (x + k, x + k - 1, s + k - 1)
        else:
            yield s + k, "last alone", (x + k - 1, s + k - 1)


def successor(n):
    yield n + 1, "first", (0,)
    for k in range(1, n + 1):
        yield n + 1 + k, "digit", (k, k - 1, n + k)


def multiply_digit(n):
    d, p = n + 1, n + 3
    yield p, "times", (0, d)
    for k in range(1, n + 1):
        yield p + k, "times column", (k, k - 1, d, p + k - 1)


def compare(n):
    a, b, c = 0, n + 1, 2 * n + 2
    yield c, "first", (a, b)
    for k in range(1, n):
        yield c + k, "compare", (a + k, b + k, c + k - 1)


def running(name):
    def steps(n):
        yield n + 1, "take", (0,)
        for k in range(1, n):
            yield n + 1 + k, name, (n + k, k)

    return steps


def interleave(n):
    y = 2 * n + 2
    for k in range(n):
        yield y + 2 * k, "take", (k,)
        yield y + 2 * k + 1, "take", (n + 1 + k,)


def moved(source):
    def steps(n):
        for k in range(n):
            yield n + 1 + k, "take", (source(k, n),)

    return steps


LOOPS = {
    "addition": addition,
    "addition-padded": addition_padded,
    "addition-unequal": addition_unequal,
    "successor": successor,
    "multiply-digit": multiply_digit,
    "compare-cot": compare,
    "parity-cot": running("add"),
    "modsum-cot": running("add"),
    "permutation-cot-s5": running("compose"),
    "interleave": interleave,
    "copy": moved(lambda k, n: k),
    "reverse": moved(lambda k, n: n - 1 - k),
    "shift": moved(lambda k, n: (k - 1) % n),
}


@FEW
@given(st.sampled_from(sorted(LOOPS)), SIZES, SIZES)
def test_families_give_the_circuit_of_plain_loops(name, n, m):
    task = make(name, **({"width": 40} if name.endswith("padded") else {}))
    sizes = (n,) if task.sizes == 1 else (n, m)
    steps = [(step.output, step.operator.name, step.inputs) for step in task.circuit(scale(sizes))]
    assert steps == list(LOOPS[name](*sizes))


def scale(sizes):
    return sizes if len(sizes) > 1 else sizes[0]


@pytest.mark.parametrize("name", TOLD)
def test_terms_name_exactly_what_the_circuit_reads(name):
    task = make(name, **({"width": 9} if name.endswith("padded") else {}))
    for n in scales_of(task):
        read: dict = {}
        for query, key, role in task.reads(n):
            assert (query, key) not in read  # one role per pair
            read[query, key] = [role]
        at = torch.arange(task.length(n))
        query, key = at[:, None], at[None, :]
        named: dict = {}
        for term in task.terms():
            pairs = term.allows(query, n) & term.hits(query, key, n) & (key <= query)
            for i, j in pairs.nonzero().tolist():
                named.setdefault((i, j), []).append(term.id)
        assert named == read


@pytest.mark.parametrize("name", TOLD)
def test_the_ideal_relation_numbers_its_roles_as_the_circuits_show_them(name):
    task = make(name)
    phi = relations.build("ideal-sh", task, max_scale=task.scale_of(12 if task.sizes == 1 else 5))
    seen = CircuitRelation(task.reads, scales_of(task, 12), hinted=True, name="ideal-sh")
    assert list(phi.roles.items()) == list(seen.roles.items())
    assert (phi.size, phi.other, phi.uses_scale) == (seen.size, seen.other, True)
    assert [phi.label(id) for id in range(phi.size)] == [seen.label(id) for id in range(phi.size)]


def test_the_ideal_relation_of_a_small_scale_serves_a_large_one():
    task = make("modsum-cot")
    small, large = (relations.build("ideal-sh", task, max_scale=n) for n in (1, 30))
    at = torch.arange(task.length(30))
    assert torch.equal(small(at, at, 30), large(at, at, 30))


# --- layouts ------------------------------------------------------------------------------------


def named(*parts):
    return [f"{part[0]}{k}" for part in parts for k in range(1, part[1] + 1)]


@FEW
@given(SIZES, SIZES)
def test_layouts_are_the_written_ones(n, m):
    a, b = named(("a", n)), named(("b", m))
    result = named(("s", max(n, m) + 1))
    assert make("addition-unequal").layout((n, m)) == [*a, "+", *b, "=", *result]
    assert make("multiply-digit").layout(n) == [*a, "*", "d", "=", *named(("p", n + 1))]
    padded = [*named(("a", 41)), "+", *named(("b", 41)), "=", *named(("s", 41))]
    assert make("addition-padded", width=40).layout(n) == padded
    ys = named(("y", 2 * n))
    assert make("interleave").layout(n) == [*a, "/", *named(("b", n)), "=", *ys]


@pytest.mark.parametrize("name", SEGMENTED)
def test_lengths_are_those_of_the_written_layout(name):
    task = make(name, **({"width": 9} if name.endswith("padded") else {}))
    for n in scales_of(task):
        names = task.layout(n)
        equals = names.index("=")
        assert task.length(n) == len(names)
        assert task.prompt_length(n) == equals + 1
        written = range(equals + 1, equals + 1 + task.answer_length(n))
        assert task.scored(n).nonzero()[:, 0].tolist() == list(written)
        if name in TOLD:
            assert [step.output for step in task.circuit(n)] == list(written)


def places(task, n):
    """Pair each segment with its positions at a scale."""
    start, sizes = 0, n if isinstance(n, tuple) else (n,)
    for segment in task.segments():
        count = len(segment.names(sizes))
        yield segment, slice(start, start + count)
        start += count


@pytest.mark.parametrize("name", SEGMENTED)
def test_segments_say_which_tokens_stand_where(name):
    task = make(name, **({"width": 6} if name.endswith("padded") else {}))
    for n in (1, 2, 5) if task.sizes == 1 else ((1, 1), (2, 1), (1, 3), (4, 4)):
        tokens = task.sample(n, 1500, generator()).tokens
        hard = task.hard(n, 40, generator())
        for segment, here in places(task, n):
            if segment.written:
                assert here.start >= task.prompt_length(n)
                continue
            for p in range(here.start, here.stop):
                assert set(tokens[:, p].tolist()) == set(segment.tokens)  # each at each place
                if hard is not None:
                    assert set(hard.tokens[:, p].tolist()) <= set(segment.tokens)


@pytest.mark.parametrize("name", [n for n in SEGMENTED if len(make(n).vocabulary) < 20])
def test_tokens_of_two_places_do_not_depend_on_each_other(name):
    task = make(name, **({"width": 2} if name.endswith("padded") else {}))
    n = task.scale_of(2)
    tokens = task.sample(n, 6000, generator()).tokens
    free = [(s, p) for s, here in places(task, n) if len(s.tokens) > 1 for p in range(99)[here]]
    for (one, p), (other, q) in zip(free, free[1:], strict=False):
        pairs = set(zip(tokens[:, p].tolist(), tokens[:, q].tolist(), strict=True))
        assert len(pairs) == len(one.tokens) * len(other.tokens)


def test_numbers_go_on_in_the_padding():
    layout = make("parity-cot-padded", width=4).segments()
    assert [s.names((3,)) for s in layout[:2]] == [["x1", "x2", "x3"], ["x4"]]
    assert layout[1].tokens == layout[4].tokens == (0,)


# --- a million digits ---------------------------------------------------------------------------

MILLION = 1_000_000
LARGE = ["addition", "copy", "reverse", "shift", "parity-cot", "modsum-cot", "multiply-digit"]
LARGE += ["permutation-cot-s3"]


@pytest.fixture
def nothing_position_by_position(monkeypatch):
    """Make names and steps of large scales an error: they take a Python object per position."""

    def refuse(method):
        def checked(self, sizes):
            assert max(sizes) < 1000, "written out position by position"
            return method(self, sizes)

        return checked

    monkeypatch.setattr(Segment, "names", refuse(Segment.names))
    family_type: Any = type(make("copy").families()[0])
    monkeypatch.setattr(family_type, "steps", refuse(family_type.steps))


def consistent(name, x, n):
    """Check the answers of whole sequences column by column, all columns at once."""
    if name in ("copy", "reverse", "shift"):
        y, at = x[:, n + 1 :], torch.arange(n)
        source = {"copy": at, "reverse": n - 1 - at, "shift": (at - 1) % n}[name]
        return torch.equal(y, x[:, source])
    if name in ("parity-cot", "modsum-cot", "permutation-cot-s3"):
        g, y = x[:, :n], x[:, n + 1 :]
        table = composition(3) if "perm" in name else None
        modulus = 2 if name == "parity-cot" else 10
        join = lambda h, f: (h + f) % modulus if table is None else table[h, f]  # noqa: E731
        return torch.equal(y[:, 0], g[:, 0]) and torch.equal(y[:, 1:], join(y[:, :-1], g[:, 1:]))
    zero = x.new_zeros(2, 1)
    a = torch.cat([x[:, :n], zero], dim=1)
    if name == "addition":
        raw, most = a + torch.cat([x[:, n + 1 : 2 * n + 1], zero], dim=1), 1
    else:
        raw, most = a * x[:, n + 1, None], 8
    carry_in = (x[:, -n - 1 :] - raw) % 10  # what each column of the answer says came in
    carry_out = (raw + carry_in) // 10
    return (
        int(carry_in.max()) <= most
        and not carry_in[:, 0].any()
        and not carry_out[:, -1].any()
        and torch.equal(carry_in[:, 1:], carry_out[:, :-1])
    )


@pytest.mark.parametrize("name", LARGE)
def test_a_million_digits(name, nothing_position_by_position):
    task = make(name)
    batch = task.sample(MILLION, 2, generator())
    n, length = MILLION, len(list(task.layout(7))) + (MILLION - 7) * len_per_size(task)
    assert batch.tokens.shape == (2, length) and task.length(n) == length
    assert consistent(name, batch.tokens, n)
    broken = batch.tokens.clone()
    broken[1, -MILLION // 2] = (broken[1, -MILLION // 2] + 1) % 2
    assert not consistent(name, broken, n)

    phi = relations.build("ideal-sh", task, max_scale=n)
    answer = batch.answer.nonzero()[:, 0]
    picks = answer[[0, 1, 2, 12345, -2, -1]] - 1
    keys, ids = phi.named(picks, n)
    steps = {output: (operator, inputs) for output, operator, inputs in some(name, n, picks + 1)}
    for query, row, row_ids in zip(picks.tolist(), keys.tolist(), ids.tolist(), strict=True):
        found = {k: phi.label(id) for k, id in zip(row, row_ids, strict=True) if k >= 0}
        operator, inputs = steps[query + 1]
        assert sorted(found) == sorted(inputs)
        assert all(label.startswith(operator + " ") for label in found.values())


def len_per_size(task):
    return task.length(8) - task.length(7)


def some(name, n, outputs):
    """Take the steps of a few outputs from the plain loops."""
    wanted = set(outputs.tolist())
    loops = {**LOOPS, "permutation-cot-s3": running("compose")}
    return [step for step in loops[name](n) if step[0] in wanted]


@FEW
@given(st.sampled_from([3, 4, 5]), st.integers(1, 70), st.integers(0, 9))
def test_products_by_doubling_are_those_of_a_loop(points, n, seed):
    table = composition(points)
    factors = torch.randint(len(table), (3, n), generator=generator(seed))
    products = prefix_products(table, factors)
    for row, made in zip(factors.tolist(), products.tolist(), strict=True):
        h = row[0]
        for t, g in enumerate(row):
            h = int(table[h, g]) if t else h
            assert made[t] == h


# --- tasks of your own --------------------------------------------------------------------------

TAKE = identity(10)


class Echo(Task):
    """x1..xn = y1..yn with y_t = x_t, said with segments and families."""

    name, example, vocabulary = "echo", "314=", "0123456789="
    arity, chance = 1, 0.1

    def segments(self):
        return [Segment("x", N, DIGITS), self.mark("="), Segment("y", N)]

    def families(self):
        x, y = self.places("x", "y")
        return [family(TAKE, y(T), [x(T)], 1, N)]

    def answer(self, prompt, scale):
        return prompt[:, :scale]


def test_segments_families_and_answers_are_all_that_a_task_needs():
    task = Echo()
    assert task.layout(2) == ["x1", "x2", "=", "y1", "y2"]
    assert task.circuit(2) == [Step(3, TAKE, (0,)), Step(4, TAKE, (1,))]
    assert (task.length(5), task.prompt_length(5), task.answer_length(5)) == (11, 6, 5)
    assert task.solve("314=") == "314"
    tasks.check_circuit(task, 9)


class Backwards(Echo):
    """The same layout with a circuit that is written by hand."""

    def circuit(self, scale):
        return [Step(scale + 1 + k, TAKE, (scale - 1 - k,)) for k in range(scale)]

    def answer(self, prompt, scale):
        return prompt[:, :scale].flip(1)


def test_a_circuit_written_by_hand_wins_over_the_families_above_it():
    task = Backwards()
    assert task.terms() is None and not task.in_families
    phi = relations.build("ideal-sh", task, max_scale=4)
    assert phi(torch.tensor([4]), torch.arange(5), 4).tolist() == [[1, 1, 1, 0, 1]]
    assert task.length(4) == 9
    tasks.check_circuit(task, 4)


def test_families_win_over_a_circuit_above_them():
    class Again(Backwards):
        def families(self):
            return Echo.families(self)

        answer = Echo.answer

    assert len(Again().terms()) == 1
    tasks.check_circuit(Again(), 4)


def test_a_layout_written_by_hand_wins_over_the_segments_above_it():
    class Wider(Echo):
        def layout(self, scale):
            return [*super().layout(scale), "end"]

    task = Wider()
    assert (task.length(3), task.prompt_length(3), task.answer_length(3)) == (8, 4, 4)
    with pytest.raises(NotImplementedError):
        task.prompt(3, 2, generator())


def test_a_task_without_segments_and_families_has_no_terms():
    class Bare(Task):
        name, sizes = "bare", 1

    task = Bare()
    assert task.segments() is None and task.families() is None and task.terms() is None
    with pytest.raises(InputError, match="'bare' does not say its layout as segments"):
        task.places("x")
    for call in (task.layout, task.circuit, task.length):
        with pytest.raises(NotImplementedError):
            call(3)


def test_a_letter_that_no_segment_has_is_named():
    with pytest.raises(InputError, match="unknown letter of the layout 'z'.*x, =, y"):
        Echo().places("z")


def test_a_segment_of_some_scales_only_is_the_last_one():
    row = [Segment("s", N - M, where=(N - M - 1,)), Segment("=", Affine(1), (1,), start=None)]
    with pytest.raises(InputError, match="segment 's' exists at some scales only"):
        starts(row)


def test_families_that_read_one_place_twice_are_refused_as_a_relation():
    twice = Operator("square", ("left", "right"), {(k, k): k * k % 10 for k in range(10)})

    class Square(Echo):
        def families(self):
            x, y = self.places("x", "y")
            return [family(twice, y(T), [x(T), x(N)], 1, N)]  # the same place at t = n

    with pytest.raises(InputError, match="at scale 1: .* reads position 0 as .*left.* and as .*ri"):
        relations.build("ideal-sh", Square())


def test_scales_that_a_task_does_not_have_are_refused_before_a_length_is_computed():
    for call in (make("addition").prompt_length, make("addition").layout):
        with pytest.raises(InputError, match="takes one size"):
            call((3, 3))
    with pytest.raises(InputError, match="made for width 5, got scale 6"):
        make("parity-cot-padded", width=5).layout(6)
