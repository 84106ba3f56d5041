"""Are samples what they should be: repeatable, of all digits, and hard where they say so?"""

from typing import Any

import pytest
import torch

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.tasks.addition import add_digits, chains
from lgcourse.tasks.multiplication import expansion, product_digits, times_digit

NAMES = tasks.names()
HARD = [n for n in NAMES if type(tasks.get(n)).hard is not tasks.Task.hard]
LARGE = [1, 2, 3, 5, 9, 10, 20, 50, 100, 1000]


def make(name, **options) -> Any:
    return tasks.get(name, **options)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def large(name):
    return {1: 20, 2: (9, 7)}[make(name).sizes]


def number(ds):
    return sum(d * 10**k for k, d in enumerate(ds))


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_and_seeds_0_and_1_differ(name):
    task, scale = make(name), large(name)
    first, again, other = (task.sample(scale, 16, generator(s)) for s in (0, 0, 1))
    assert torch.equal(first.tokens, again.tokens)
    assert not torch.equal(first.tokens, other.tokens)
    assert not torch.equal(first.tokens[0], first.tokens[1])


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_of_the_vocabulary_and_all_inputs_occur(name):
    task, scale = make(name), large(name)
    batch = task.sample(scale, 400, generator())
    assert batch.tokens.dtype == torch.int64
    assert batch.tokens.min().item() >= 0 and batch.tokens.max().item() < len(task.vocabulary)
    names, prompt = task.layout(scale), batch.tokens[:, : task.prompt_length(scale)]
    operands = [p for p in range(prompt.shape[1]) if names[p][0].isalpha()]
    marks = {t for t, word in enumerate(task.vocabulary) if word in "+*/?=,:<>~"}
    assert set(prompt[:, operands].flatten().tolist()) == set(range(len(task.vocabulary))) - marks


# half of the samples of successor end in nines, see below
UNIFORM = [n for n in NAMES if "0123456789" in make(n).vocabulary and n != "successor"]


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_digits_are_uniform(name):
    task, scale = make(name), large(name)
    batch = task.sample(scale, 2000, generator())
    counts = torch.bincount(batch.tokens[:, 0], minlength=10)[:10]
    if task.name.endswith("padded"):
        assert int(batch.tokens[:, scale : task.width].max()) == 0
    assert all(140 <= c <= 260 for c in counts.tolist())  # 200 +- 4.5 standard deviations


def test_half_of_the_successor_samples_end_in_a_run_of_nines_of_any_length():
    task = make("successor")
    x = task.sample(8, 4000, generator()).tokens[:, :8]
    runs = torch.bincount((x == 9).long().cumprod(1).sum(1), minlength=9).tolist()
    # 2000 runs of length 0..8 (222 each, lengthened by a tenth), 2000 of uniform digits
    assert all(170 <= count <= 300 for count in runs[2:])
    assert 1800 <= runs[0] <= 2250


def test_compare_samples_have_equal_columns_and_all_verdicts():
    task = make("compare-cot")
    batch = task.sample(5, 2000, generator())
    a, b = task.operands(batch.tokens[:, :12], 5)
    assert 0.52 < (a == b).double().mean().item() < 0.58  # 1/2 + 1/20
    assert set(batch.tokens[:, -1].tolist()) == {12, 13, 14}


def test_samples_of_distinct_symbols_are_distinct_and_have_a_largest_scale():
    for name in ("sort", "copy-unique"):
        task = make(name, width=12)
        lines = task.sample(12, 50, generator()).tokens[:, :12].tolist()
        assert all(sorted(line) == list(range(12)) for line in lines)
        with pytest.raises(InputError, match="made for width 12, got scale 13"):
            task.sample(13, 2, generator())


def test_majority_has_no_ties():
    task = make("majority")
    for scale in (1, 2, 3, 4, 30):
        for line in task.sample(scale, 50, generator()).tokens[:, :scale].tolist():
            counts = sorted((line.count(x) for x in set(line)), reverse=True)
            assert len(counts) == 1 or counts[0] > counts[1]


# --- digit tensors ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", LARGE)
def test_digit_arithmetic_equals_integer_arithmetic(n):
    source = generator(n)
    a, b = (torch.randint(10, (12, n), generator=source) for _ in range(2))
    a[0], b[0] = 9, 9
    a[1], b[1], b[1, 0] = 9, 0, 1
    d = torch.arange(12)[:, None] % 10
    rows = zip(a.tolist(), b.tolist(), d[:, 0].tolist(), strict=True)
    sums, times = add_digits(a, b).tolist(), times_digit(a, d).tolist()
    for (x, y, k), s, p in zip(rows, sums, times, strict=True):
        assert len(s) == len(p) == n + 1
        assert number(s) == number(x) + number(y)
        assert number(p) == number(x) * k
    if n <= 100:
        for x, y, p in zip(a.tolist(), b.tolist(), product_digits(a, b).tolist(), strict=True):
            assert len(p) == 2 * n and number(p) == number(x) * number(y)


def test_adding_without_carries_is_another_function():
    a = torch.tensor([[9, 9, 9]])
    b = torch.tensor([[1, 0, 0]])
    assert add_digits(a, b).tolist() == [[0, 0, 0, 1]]
    assert ((a + b) % 10).tolist() == [[0, 9, 9]]


def test_expansions_are_those_of_fractions_and_never_end():
    d = torch.tensor([3, 6, 7, 9] * 50)
    rows = expansion(d, 60, generator()).tolist()
    met = set()
    for k, ds in zip(d.tolist(), rows, strict=True):
        fits = [r for r in range(1, k) if r * 10**60 // k == number(ds)]
        assert len(fits) == 1
        assert fits[0] * 10**60 % k  # what is left over is not 0
        met.add((k, fits[0]))
    assert len(met) == 2 + 4 + 6 + 8  # every r but 3 / 6


# --- hard samples -------------------------------------------------------------------------------


def carries(a, b):
    """The carries out of the columns of a sum."""
    out, into = [], 0
    for x, y in zip(a, b, strict=True):
        into = (x + y + into) // 10
        out.append(into)
    return out


def longest_chain(a, b):
    """Digits that one carry passes: where it is made, where it is handed on, where it lands."""
    longest = here = 0
    for x, y, out in zip(a, b, carries(a, b), strict=True):
        here = 0 if not out else here + 1 if x + y == 9 else 1
        longest = max(longest, here)
    return min(longest + 1, len(a)) if longest else 0


def pad(ds, n):
    return ds + [0] * (n - len(ds))


@pytest.mark.parametrize("n", LARGE)
def test_hard_sums_have_chains_nines_and_full_crossings(n):
    a, b = (x.tolist() for x in chains(n, 12, generator()))
    for kind, (x, y) in enumerate(zip(a, b, strict=True)):
        if kind % 2 == 0:
            assert longest_chain(x, y) >= 0.9 * n
        elif kind == 1:
            assert set(x) == set(y) == {9}
        else:  # one carry: made at the bottom, handed on by every other column
            assert carries(x, y) == [1] * n
            assert [u + v for u, v in zip(x[1:], y[1:], strict=True)] == [9] * (n - 1)
    if n >= 10:
        assert any(carries(x, y)[-1] == 0 for x, y in zip(a[::2], b[::2], strict=True))
        assert len({tuple(x + y) for x, y in zip(a, b, strict=True)}) == 12


def test_the_measure_of_chains_tells_random_sums_from_hard_ones():
    a, b = (torch.randint(10, (20, 100), generator=generator()).tolist() for _ in range(2))
    assert max(longest_chain(x, y) for x, y in zip(a, b, strict=True)) < 20


@pytest.mark.parametrize("scale", [(1, 1), (5, 2), (2, 5), (20, 1), (1, 20), (100, 37), (37, 100)])
def test_hard_sums_of_unequal_length_carry_on_behind_the_shorter_operand(scale):
    n, m = scale
    task, top = make("addition-unequal"), max(scale)
    batch = task.hard(scale, 12, generator())
    for kind, line in enumerate(batch.tokens.tolist()):
        a, b = pad(line[:n], top), pad(line[n + 1 : n + 1 + m], top)
        assert number(line[n + m + 2 :]) == number(a) + number(b)
        assert longest_chain(a, b) >= (0.9 * top if kind != 1 else 0)
        if kind == 1:
            assert set(line[:n]) == set(line[n + 1 : n + 1 + m]) == {9}
        elif kind % 2:
            assert carries(a, b) == [1] * top


@pytest.mark.parametrize("n", LARGE)
def test_hard_successors_are_runs_of_nines(n):
    batch = make("successor").hard(n, 12, generator())
    for kind, line in enumerate(batch.tokens.tolist()):
        x, y = line[:n], line[n + 1 :]
        run = next((k for k, d in enumerate(x) if d != 9), n)
        assert run >= 0.9 * n - (n < 10)
        assert number(y) == number(x) + 1
        if kind % 2:
            assert y == [0] * n + [1]


@pytest.mark.parametrize("n", LARGE)
def test_hard_products_with_a_digit_are_decided_at_the_bottom(n):
    batch = make("multiply-digit").hard(n, 24, generator())
    for kind, line in enumerate(batch.tokens.tolist()):
        a, d, p = line[:n], line[n + 1], line[n + 3 :]
        assert number(p) == number(a) * d
        if kind % 3 == 1:
            assert set(a) == {9}
            continue
        assert d in (3, 6, 7, 9)
        middle = p[1 : n - n // 10 - (n < 10)] if kind % 3 == 0 else p[1:n]
        assert set(middle) <= ({9} if kind % 3 == 0 else {0})
        if kind % 3 == 2:  # one unit less and every digit of the product is another
            less = number(a) * d - d
            assert all(less // 10**t % 10 == 9 for t in range(1, n))


@pytest.mark.parametrize("n", LARGE)
def test_hard_comparisons_are_decided_at_the_bottom(n):
    batch = make("compare-cot").hard(n, 12, generator())
    for kind, line in enumerate(batch.tokens.tolist()):
        a, b, c = line[:n], line[n + 1 : 2 * n + 1], line[2 * n + 2 :]
        assert (a[0] != b[0], a[1:] == b[1:]) == (kind % 3 != 1, kind % 3 != 2 or n == 1)
        if kind % 3 == 1:
            assert set(c) == {14}
        if kind % 3 == 0:
            assert set(c) == {12 if a[0] < b[0] else 13}


def test_the_hard_tasks_are_the_ones_with_carries_or_a_long_memory():
    assert HARD == [
        "compare-cot",
        "successor",
        "addition",
        "addition-padded",
        "addition-unequal",
        "multiply-digit",
        "multiply-scratchpad",
    ]


# --- widths and scales --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["addition-padded", "parity-cot-padded", "sort", "copy-unique"])
def test_widths(name):
    for wrong in (0, -3, True):
        with pytest.raises(InputError, match="width must be a whole number of at least 1, got"):
            make(name, width=wrong)
    task = make(name, width=7)
    assert task.sample(7, 2, generator()).tokens.shape[0] == 2
    with pytest.raises(InputError, match="width 7, got scale 8; make it with option width=8"):
        task.sample(8, 2, generator())


def test_a_padded_circuit_beyond_its_width_is_refused():
    for name in ("addition-padded", "parity-cot-padded"):
        with pytest.raises(InputError, match="made for width 7, got scale 9"):
            make(name, width=7).circuit(9)


def test_padded_layouts_do_not_move_with_the_scale():
    task = make("addition-padded", width=9)
    assert len({tuple(task.layout(n)) for n in range(1, 10)}) == 1
    assert task.sample(3, 4, generator()).tokens.shape == (4, 3 * 10 + 2)


@pytest.mark.parametrize("name", NAMES)
def test_scales_that_a_task_does_not_have_are_refused(name):
    task = make(name)
    wrong: list[Any] = [0, -1, (1, 2, 3), True, (2, 0)]
    wrong.append(3 if task.sizes == 2 else (3, 2))
    for scale in wrong:
        with pytest.raises(InputError, match="scale"):
            task.sample(scale, 2, generator())


@pytest.mark.parametrize("name", NAMES)
def test_scales_runs_through_every_scale_up_to_the_largest(name):
    task = make(name)
    if task.sizes == 1:
        assert list(task.scales(4)) == [1, 2, 3, 4]
    else:
        assert list(task.scales((2, 3))) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


@pytest.mark.parametrize("name", NAMES)
def test_long_samples_are_made_of_digit_tensors(name):
    task = make(name, **({"width": 1000} if hasattr(make(name), "width") else {}))
    scale = 1000 if task.sizes == 1 else ((1000, 600) if "addition" in name else (60, 40))
    if name == "multiply-direct":
        scale = 200
    batch = task.sample(scale, 2, generator())
    assert batch.tokens.shape == (2, task.length(scale)) == (2, len(batch.answer))
