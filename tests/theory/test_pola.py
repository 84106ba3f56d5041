"""Does POLA compute its equation, and does its fit find the minimum-norm weights?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import relations
from lgcourse.errors import InputError
from lgcourse.relations import Relation
from lgcourse.theory.adapters import as_target
from lgcourse.theory.linear import lrc
from lgcourse.theory.pola import (
    POLA,
    CodedPOLA,
    OneHot,
    ideal_code_of,
    ideal_relation_of,
)


class Scrambled(Relation):
    """A relation that depends on everything: id = (a i + b j + c n) mod size, also for j > i."""

    uses_scale = True

    def __init__(self, size, a=3, b=1, c=2):
        self.size, self.factors = size, (a, b, c)

    def ids(self, query, key, scale):
        a, b, c = self.factors
        return (a * query + b * key + c * scale) % self.size


class Bare:
    """Any object with `size` and a call is a relation: here i - j, wrong on purpose for j > i."""

    size, uses_scale = 8, False

    def __call__(self, query, key, scale):
        return query[:, None] - key[None, :]


class RandomCode:
    """A code of random numbers that depend on (i, j, n), of rank at most `rank`."""

    def __init__(self, size, seed, rank=None):
        self.size, self.uses_scale = size, True
        generator = torch.Generator().manual_seed(seed)
        rank = size if rank is None else rank
        table = torch.randn(20, 20, 20, rank, generator=generator).double()
        self.table = table @ torch.randn(rank, size, generator=generator).double()

    def __call__(self, query, key, scale):
        return self.table[scale][query][:, key]


def by_loops(phi, weight, x, scale):
    """y_i = sum_{j <= i} W[phi(i, j, n)] x_j in plain Python, for one sequence."""
    y = []
    for i in range(len(x)):
        total = [0.0] * len(weight[0])
        for j in range(i + 1):
            operator = weight[phi(i, j, scale)]
            for p, row in enumerate(operator):
                total[p] += sum(w * v for w, v in zip(row, x[j], strict=True))
        y.append(total)
    return y


@pytest.mark.parametrize("length", [1, 5])
def test_forward_is_the_equation(length):
    torch.manual_seed(0)
    pola = POLA(Scrambled(7), d_in=2, d_out=3, dtype=torch.float64)
    torch.nn.init.normal_(pola.weight)
    x = torch.randn(4, length, 2, dtype=torch.float64)

    def phi(i, j, n):
        return (3 * i + j + 2 * n) % 7

    y = pola(x, scale=6)  # the length need not be the scale
    assert y.shape == (4, length, 3)
    for b in range(4):
        expected = by_loops(phi, pola.weight.tolist(), x[b].tolist(), 6)
        assert torch.allclose(y[b], torch.tensor(expected, dtype=torch.float64), atol=1e-12)


def test_coefficients_are_causal_and_what_forward_applies():
    pola = POLA(Scrambled(5), 2, 3)
    torch.nn.init.normal_(pola.weight, generator=torch.Generator().manual_seed(1))
    square = pola.coefficients(6)
    assert square.shape == (6, 6, 3, 2)
    for i in range(6):
        for j in range(6):
            expected = pola.weight[(3 * i + j + 12) % 5] if j <= i else torch.zeros(3, 2)
            assert torch.equal(square[i, j], expected)
    units = torch.eye(12).reshape(12, 6, 2)
    assert torch.equal(pola(units, 6).reshape(6, 2, 6, 3).permute(2, 0, 3, 1), square)


def test_codes_of_the_future_are_never_read():
    def poisoned(query, key, scale):
        code = torch.ones(len(query), len(key), 2)
        code[key[None, :] > query[:, None]] = torch.nan
        return code

    pola = CodedPOLA(poisoned, 1, 1)
    assert len(pola.weight) == 2  # the trial call tells r
    pola(torch.ones(1, 4, 1), 4).sum().backward()
    assert pola.weight.grad is not None and pola.weight.grad.isfinite().all()
    assert pola.fit(np.tril(np.ones((4, 4))), [1, 4]).residual < 1e-6
    assert POLA(Bare(), 1, 1).fit("band", [8]).residual == 0  # its ids are negative for j > i


def test_weights_start_at_zero_and_unseen_ids_keep_zero():
    pola = POLA(relations.build("rpe", positions=12), 2, 2)
    assert not pola.weight.any()
    target = np.ones((12, 12, 2, 2)) * np.tri(12)[:, :, None, None]
    pola.fit(target, [5, 3])
    assert (pola.weight[:5] == 1).all() and not pola.weight[5:].any()
    torch.nn.init.ones_(pola.weight)
    assert not pola.fit_gradient(target, [5, 3], steps=20).pola.weight[5:].any()


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 9),
    p=st.integers(1, 2),
    d=st.integers(1, 3),
    scales=st.lists(st.integers(1, 6), min_size=1, max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_a_relation_is_a_one_hot_code(seed, size, p, d, scales):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(6, 6, p, d)) * np.tri(6)[:, :, None, None]
    relation = Scrambled(size, *rng.integers(0, 5, 3).tolist())
    short = POLA(relation, d, p, dtype=torch.float64)
    general = CodedPOLA(OneHot(relation), d, p, dtype=torch.float64)
    fits = [model.fit(target, scales) for model in (short, general)]
    assert torch.allclose(short.weight, general.weight, atol=1e-10)
    assert abs(fits[0].residual - fits[1].residual) < 1e-10
    assert torch.allclose(short.coefficients(6), general.coefficients(6), atol=1e-10)
    assert abs(short._curvature(scales) - general._curvature(scales)) < 1e-8
    gradient = [model.fit_gradient(target, scales, steps=3) for model in (short, general)]
    assert torch.allclose(gradient[0].pola.weight, gradient[1].pola.weight, atol=1e-8)


def design(code, target, scales):
    """Stack C and A pair by pair, in plain loops."""
    rows, values = [], []
    for n in scales:
        table = code(torch.arange(n), torch.arange(n), n)
        for i in range(n):
            for j in range(i + 1):
                rows.append(table[i, j].tolist())
                values.append(np.ravel(target[i, j]).tolist())
    return np.array(rows), np.array(values)


@pytest.mark.parametrize("size, rank", [(2, 2), (6, 6), (6, 3), (40, 40)])
def test_fit_is_the_minimum_norm_least_squares_solution(size, rank):
    rng = np.random.default_rng(size)
    target = rng.normal(size=(6, 6, 2, 3)) * np.tri(6)[:, :, None, None]
    code, scales = RandomCode(size, seed=rank, rank=rank), [2, 4, 5]
    pola, residual = CodedPOLA(code, 3, 2, dtype=torch.float64).fit(target, scales)
    C, A = design(code, target, scales)
    W = np.linalg.lstsq(C, A, rcond=1e-10)[0]
    assert np.allclose(pola.weight.detach().reshape(size, 6), W, atol=1e-8)
    assert residual == pytest.approx(abs(C @ W - A).max(), abs=1e-9)
    assert pola.error(target, scales) == residual
    if np.linalg.matrix_rank(C) < size:  # another exact solution exists, and it is longer
        other = W + (np.eye(size) - np.linalg.pinv(C) @ C) @ rng.normal(size=W.shape)
        assert np.allclose(C @ other, C @ W, atol=1e-8)
        assert np.linalg.norm(other) > np.linalg.norm(W) * 1.01


@pytest.mark.parametrize("build", ["relation", "code"])
def test_gradient_descent_from_zero_reaches_the_same_coefficients(build):
    rng = np.random.default_rng(3)
    target = rng.normal(size=(5, 5, 2, 2)) * np.tri(5)[:, :, None, None]
    options: dict[str, Any] = {"d_in": 2, "d_out": 2, "dtype": torch.float64}
    code = RandomCode(6, seed=0, rank=4)  # in R^6: the fit is not unique
    closed, trained = (
        POLA(Scrambled(6), **options) if build == "relation" else CodedPOLA(code, **options)
        for _ in range(2)
    )
    scales = [3, 4, 5]
    closed.fit(target, scales)
    torch.nn.init.normal_(trained.weight)  # fit_gradient starts from zero whatever was there
    fit = trained.fit_gradient(target, scales, steps=400)
    assert fit.pola is trained
    for n in (3, 5, 8):
        assert torch.allclose(closed.coefficients(n), trained.coefficients(n), atol=1e-6)
    trained.fit_gradient(target, scales, steps=3)
    assert not torch.allclose(closed.coefficients(5), trained.coefficients(5), atol=1e-6)


def test_gradient_descent_from_elsewhere_does_not_reach_them():
    """The known wrong version: what the start holds outside the training codes stays there."""
    closed = POLA(relations.build("rpe", positions=8), 1, 1)
    closed.fit("band", [4])
    wrong = POLA(relations.build("rpe", positions=8), 1, 1)
    torch.nn.init.ones_(wrong.weight)
    x, square = torch.eye(4)[..., None], torch.as_tensor(as_target("band").dense(4)[..., 0, 0])
    for _ in range(300):
        loss = ((wrong(x, 4)[..., 0].T - square.float()) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, wrong.weight)
        with torch.no_grad():
            wrong.weight.sub_(0.1 * gradient)
    assert torch.allclose(wrong.coefficients(4), closed.coefficients(4), atol=1e-4)
    assert (wrong.weight[4:] == 1).all() and not closed.weight[4:].any()


def test_white_noise_identifies_the_operators_as_basis_vectors_do():
    """Ordinary training on random inputs, where an exact fit exists."""
    torch.manual_seed(0)
    exact = POLA(ideal_relation_of("fresh-matrices", 6), 2, 2, dtype=torch.float64)
    assert exact.fit("fresh-matrices", [6]).residual == 0
    trained = POLA(ideal_relation_of("fresh-matrices", 6), 2, 2, dtype=torch.float64)
    x = torch.randn(64, 6, 2, dtype=torch.float64)
    y = exact(x, 6).detach()
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        ((trained(x, 6) - y) ** 2).mean(dim=0).sum().div(2).backward()
        optimiser.step()
    assert torch.allclose(trained.weight, exact.weight, atol=1e-6)


@pytest.mark.parametrize("dtype, accuracy", [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_both_precisions(dtype, accuracy):
    model = CodedPOLA(ideal_code_of("turning", 4), 2, 2, dtype=dtype)
    assert model.fit("turning", range(1, 5)).residual < accuracy
    y = model(torch.ones(1, 9, 2, dtype=dtype), 9)
    assert y.dtype == dtype and model.coefficients(9).dtype == dtype
    expected = as_target("turning").dense(9).sum(axis=(1, 3))
    assert np.allclose(y.detach()[0], expected, atol=10 * accuracy)
    with pytest.raises(InputError, match=r"convert one with \.to\(\)"):
        other = torch.float64 if dtype == torch.float32 else torch.float32
        model(torch.ones(1, 9, 2, dtype=other), 9)


@pytest.mark.gpu
def test_the_same_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rng = np.random.default_rng(0)
    target = rng.normal(size=(6, 6, 2, 2)) * np.tri(6)[:, :, None, None]
    models = [
        lambda **to: POLA(relations.build("rpe", positions=8), 2, 2, **to),
        lambda **to: POLA(ideal_relation_of(target, 6), 2, 2, **to),
        lambda **to: CodedPOLA(ideal_code_of(target, 6), 2, 2, **to),
    ]
    for build in models:
        here, there = build(dtype=torch.float64), build(dtype=torch.float64, device="cuda")
        assert here.fit(target, [3, 6]).residual == pytest.approx(
            there.fit(target, [3, 6]).residual
        )
        x = torch.randn(3, 6, 2, dtype=torch.float64)
        assert torch.allclose(here(x, 6), there(x.cuda(), 6).cpu(), atol=1e-12)
        gradient = there.fit_gradient(target, [3], steps=5).pola.weight
        assert gradient.is_cuda
        assert torch.allclose(here.fit_gradient(target, [3], steps=5).pola.weight, gradient.cpu())


def test_a_fitted_pola_is_a_target_itself():
    pola = POLA(relations.build("rpe", positions=8), 1, 1).fit("band", range(1, 9)).pola
    assert lrc(pola, 8) == 3
    again = CodedPOLA(ideal_code_of(pola, 8), 1, 1).fit(pola, range(1, 9)).pola
    assert torch.allclose(again.coefficients(8), pola.coefficients(8), atol=1e-6)


# --- ideal relation and ideal code ----------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), scaled=st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_ideal_relation_numbers_the_operators(seed, n, scaled):
    rng = np.random.default_rng(seed)
    table = rng.integers(-1, 2, size=(n + 1, n, n, 1, 2))

    def operator(i, j, m):
        return table[m if scaled else 0, i, j].tolist()

    phi = ideal_relation_of(operator, n)
    assert phi.uses_scale and phi.size == lrc(operator, n) + 1 and phi.other == phi.size - 1
    met: dict = {}
    for m in range(1, n + 1):
        ids = phi(torch.arange(m), torch.arange(m), m)
        for i in range(m):
            for j in range(m):
                value = tuple(operator(i, j, m)[0]) if j <= i else (0, 0)
                expected = met.setdefault(value, len(met)) if any(value) else phi.other
                assert ids[i, j] == expected
    pola = POLA(phi, 2, 1, dtype=torch.float64)
    assert pola.fit(operator, range(1, n + 1)).residual < 1e-12


def test_ideal_relations_take_any_positions_and_name_what_they_do_not_know():
    phi = ideal_relation_of("decay", 8)
    assert not phi.uses_scale and phi.label(2) == "operator 2" and phi.label(phi.other) == "other"
    assert phi(torch.tensor([9, 4]), torch.tensor([9, 3]), 10).tolist() == [[0, 6], [8, 1]]
    with pytest.raises(InputError, match=r"\(i=8, j=0, n=10\) does not occur on scales <= 8"):
        phi(torch.arange(10), torch.arange(10), 10)


@pytest.mark.parametrize("target", ["turning", "fresh-matrices", "position-weighted", "band"])
def test_ideal_codes_are_coordinates(target):
    code = ideal_code_of(target, 6)
    assert code.size == lrc(target, 6, "rank")
    made = np.einsum("qkr,rf->qkf", code(torch.arange(9), torch.arange(9), 9), code.basis)
    assert np.allclose(made.reshape(9, 9, *as_target(target).shape), as_target(target).dense(9))


def test_a_target_that_is_zero_needs_nothing():
    assert ideal_relation_of(lambda i, j, n: 0, 4).size == 1
    code = ideal_code_of(lambda i, j, n: 0, 4)
    assert code.size == 0
    assert CodedPOLA(code, 1, 1).fit(lambda i, j, n: 0, [1, 4]).residual == 0


# --- bad input ------------------------------------------------------------------------------------


def rpe(positions=8):
    return POLA(relations.build("rpe", positions=positions), 2, 2)


BAD = {
    r"shape \[1, 3, 1\]; expected \[batch, length, d_in = 2\]": lambda: rpe()(
        torch.ones(1, 3, 1), 3
    ),
    r"\(i=0, j=0, n=3\) the id 8; expected 0..7": lambda: POLA(TooBig(), 1, 1).coefficients(3),
    "p x d = 1 x 1, but the model has d_out = 2, d_in = 2": lambda: rpe().fit("band", [3]),
    "at least one scale": lambda: rpe().fit("turning", []),
    "at least 1, got 0": lambda: rpe().fit("turning", [0]),
    "larger max_scale": lambda: rpe().coefficients(9),
    "several sizes: give the length": lambda: rpe().coefficients((2, 3)),
    "diverges; take less than": lambda: rpe().fit_gradient("turning", [6], 900, lr=3.0),
}


class TooBig(Scrambled):
    def __init__(self):
        super().__init__(8)

    def ids(self, query, key, scale):
        return query - key + 8


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_named(words):
    with pytest.raises(InputError, match=words):
        BAD[words]()


def test_several_sizes_need_a_length_only():
    class BySizes(Bare):
        def __call__(self, query, key, scale):
            return (query[:, None] * 0 + key[None, :] * 0) + scale[0] - scale[1]

    pola = POLA(BySizes(), 1, 1)
    torch.nn.init.constant_(pola.weight[3], 2.0)
    assert pola.coefficients((5, 2), length=3).sum() == 12
    assert pola(torch.ones(1, 3, 1), (5, 2)).sum() == 12
