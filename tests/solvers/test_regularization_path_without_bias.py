"""The regularisation path of the C-SVM without bias, against certificates and an optimiser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hardmargin.solvers.problem import Problem
from hardmargin.solvers.regularization_path import RegularizationPathOptions, ScaledKernel, solve


def trace(K, y, w=None, *, copies=None, **options):
    kernel = ScaledKernel.of(K, copies, has_bias=False)
    problem = Problem.two_class(kernel, y, w)
    (solution,) = solve(problem, RegularizationPathOptions(**options))
    return solution.path


def noisy(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0.4, 1.0, -1.0)


def kernel_of(X, kernel):
    if kernel == "linear":
        return X @ X.T
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))


def gap(K, y, w, C, alpha):
    """Duality gap of min ||w||^2 / 2 + C sum(w slack) without bias, relative to the objective."""
    f = K @ (alpha * y)
    squared_norm = (alpha * y) @ f
    primal = squared_norm / 2 + C * w @ np.maximum(0, 1 - y * f)
    return (primal - (alpha.sum() - squared_norm / 2)) / primal


def assert_optimal(path, K, y, w):
    for k in range(len(path)):
        Cs = [path.C[k]]
        if k + 1 < len(path):
            Cs.append((path.C[k] + path.C[k + 1]) / 2)
        for C in (C for C in Cs if C > 0):
            alpha, intercept = path.at(C)
            assert intercept == 0.0
            assert (alpha >= -1e-9 * C * w).all()
            assert (alpha <= (1 + 1e-9) * C * w).all()
            assert -1e-9 <= gap(K, y, w, C, alpha) <= 1e-7


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_breakpoint_is_optimal(kernel, weighted):
    X, y = noisy()
    w = np.random.default_rng(1).uniform(0.5, 2, size=len(y)) if weighted else np.ones(len(y))
    path = trace(kernel_of(X, kernel), y, w)
    assert_optimal(path, kernel_of(X, kernel), y, w)
    assert path.violation < 1e-8
    assert len(path) > 10


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_any_C_is_that_of_an_optimiser(C):
    X, y = noisy(30)
    K = kernel_of(X, "rbf")
    Q = K * np.outer(y, y)
    found = minimize(
        lambda a: (a @ Q @ a / 2 - a.sum(), Q @ a - 1),
        np.zeros(30),
        jac=True,
        bounds=[(0, C)] * 30,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20_000},
    )
    alpha, _ = trace(K, y).at(C)
    np.testing.assert_allclose(Q @ alpha, Q @ found.x, atol=1e-4)


def test_it_ends_with_the_hard_margin():
    X, y = noisy(40)
    K = kernel_of(4 * X, "rbf")
    path = trace(K, y, C_max=1e8)
    alpha = path.multipliers(-1)
    scores = y * (K @ (alpha * y))
    assert path.stop_reason == "hard_margin"
    assert scores.min() == pytest.approx(1, abs=1e-8)
    np.testing.assert_allclose(scores[alpha > 1e-9], 1, atol=1e-8)


def test_the_bound_counts_rows_left_out():
    """Without bias it bounds the leave-one-out error."""
    X, y = noisy(25)
    K = kernel_of(X, "rbf")
    whole = trace(K, y)
    for C in (0.3, 2.0):
        wrong = 0
        for i in range(25):
            rest = np.arange(25) != i
            alpha, _ = trace(K[np.ix_(rest, rest)], y[rest]).at(C)
            wrong += y[i] * (K[i, rest] @ (alpha * y[rest])) <= 0
        alpha, _ = whole.at(C)
        bound = np.mean(alpha * K.diagonal() >= y * (K @ (alpha * y)))
        assert wrong / 25 <= bound


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 14), st.booleans(), st.booleans())
def test_small_grids_with_copies_and_dependent_rows(seed, n, weighted, linear):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, 2)).astype(float)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1, -1
    w = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    K = kernel_of(X, "linear" if linear else "rbf")
    path = trace(K, y, w)
    assert_optimal(path, K, y, w)


def test_scored_rows_take_no_part():
    X, y = noisy(40)
    K = kernel_of(X, "rbf")
    some = np.where(np.arange(40) % 4 == 0, 0.0, y)
    rows = np.flatnonzero(some)
    path, alone = trace(K, some), trace(K[np.ix_(rows, rows)], y[rows])
    alpha, _ = path.at(1.0)
    np.testing.assert_allclose(alpha[rows], alone.at(1.0)[0], atol=1e-8)
    assert not alpha[some == 0].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(bad):
    K = np.eye(3)
    K[0, 1] = K[1, 0] = bad
    with pytest.raises(ValueError, match="finite"):
        ScaledKernel.of(K, has_bias=False)
