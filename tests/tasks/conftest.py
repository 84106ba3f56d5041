"""Shared by the tests of tasks: a registry that forgets what a test registered, and truths.

A truth is plain Python on lists of tokens and on Python integers; it uses nothing of the package.
"""

import pytest

from lgcourse import tasks


@pytest.fixture(autouse=True)
def registry_as_before():
    """Forget the tasks that a test (or a doctest here) has registered."""
    before = dict(tasks.registry._places)
    yield
    tasks.registry._places.clear()
    tasks.registry._places.update(before)


@pytest.fixture
def truth():
    """Return the function (task name, prompt tokens, scale) -> answer tokens."""
    return _truth


def _number(ds):
    return sum(d * 10**k for k, d in enumerate(ds))


def _digits(value, count):
    assert 0 <= value < 10**count
    return [value // 10**k % 10 for k in range(count)]


def _two(tokens, n, m):
    a, b = tokens[:n], tokens[n + 1 : n + 1 + m]
    assert len(tokens) == n + m + 2
    return a, b


def _running(xs, join):
    out = [xs[0]]
    for x in xs[1:]:
        out.append(join(out[-1], x))
    return out


def _add(tokens, n, m):
    a, b = _two(tokens, n, m)
    return _digits(_number(a) + _number(b), max(n, m) + 1)


def _padded_add(tokens, n):
    width = len(tokens) // 2 - 1
    a, b = _two(tokens, width, width)
    assert not any(a[n:]) and not any(b[n:])
    return _digits(_number(a) + _number(b), n + 1)


def _compare(tokens, n):
    a, b = _two(tokens, n, n)
    out = []
    for t in range(1, n + 1):
        x, y = _number(a[:t]), _number(b[:t])
        out.append(14 if x == y else 12 if x < y else 13)
    return out


def _scratchpad(tokens, n, m):
    a, b = _two(tokens, n, m)
    out, total = [], 0
    for j, d in enumerate(b):
        partial = _number(a) * d
        total = total // 10 + partial
        if j == 0:
            out += [*_digits(partial, n + 1), 12]
        else:
            out += [*_digits(partial, n + 1), 13, *_digits(total, n + 1), 12]
    return out + _digits(_number(a) * _number(b), n + m)


def _product_of_permutations(tokens, n, points):
    import itertools

    images = list(itertools.permutations(range(points)))
    out = []
    for t in range(1, n + 1):
        image = list(range(points))
        for g in reversed(tokens[:t]):  # the last factor acts first
            image = [images[g][x] for x in image]
        out.append(images.index(tuple(image)))
    return out


def _distinct_permutations(n):
    import random

    source = random.Random(0)
    drawn: list[list[int]] = []
    while len(drawn) < n:
        pi = source.sample(range(10), 10)
        if pi not in drawn:
            drawn.append(pi)
    return drawn


def _xs(function):
    return lambda tokens, n: function(tokens[:n])


_TRUTHS = {
    "copy": _xs(lambda x: x),
    "reverse": _xs(lambda x: x[::-1]),
    "shift": _xs(lambda x: x[-1:] + x[:-1]),
    "interleave": lambda p, n: [v for pair in zip(*_two(p, n, n), strict=True) for v in pair],
    "parity-cot": _xs(lambda x: _running(x, lambda y, v: y ^ v)),
    "parity-cot-padded": _xs(lambda x: _running(x, lambda y, v: y ^ v)),
    "modsum-cot": _xs(lambda x: [sum(x[: t + 1]) % 10 for t in range(len(x))]),
    "permutation-cot": lambda p, n: _product_of_permutations(p[:n], n, 3),
    "permutation-cot-s3": lambda p, n: _product_of_permutations(p[:n], n, 3),
    "permutation-cot-s5": lambda p, n: _product_of_permutations(p[:n], n, 5),
    "compare-cot": _compare,
    "successor": _xs(lambda x: _digits(_number(x) + 1, len(x) + 1)),
    "addition": lambda p, n: _add(p, n, n),
    "addition-padded": _padded_add,
    "addition-unequal": lambda p, nm: _add(p, *nm),
    "multiply-digit": lambda p, n: _digits(_number(p[:n]) * p[n + 1], n + 1),
    "multiply-scratchpad": lambda p, nm: _scratchpad(p, *nm),
    "add-index-mod": _xs(lambda x: [(v + t + 1) % 10 for t, v in enumerate(x)]),
    "random-permutation-per-position": _xs(
        lambda x: [pi[v] for pi, v in zip(_distinct_permutations(len(x)), x, strict=True)]
    ),
    "parity-direct": _xs(lambda x: [sum(x) % 2]),
    "multiply-direct": lambda p, n: _digits(_number(p[:n]) * _number(p[n + 1 : -1]), 2 * n),
    "sort": _xs(sorted),
    "majority": _xs(lambda x: [max(set(x), key=x.count)]),
    "copy-unique": _xs(lambda x: x),
    "copy-repeat": _xs(lambda x: x),
}


def _truth(name, tokens, scale):
    return _TRUTHS[name](tokens, scale)
