"""The hard-margin solver against an active-set oracle and scikit-learn's SVC."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.hard_margin import hard_margin as oracle
from problems.hard_margin import (
    BIAS,
    PROBLEMS,
    TIGHT,
    alpha_of,
    gradient_of,
    large,
    matrix_of,
    multipliers,
    optimum,
    problem,
    solve,
)
from problems.two_class import KERNELS, gram, mixed, small
from sklearn.svm import SVC

from hardmargin.kernels import Kernel
from hardmargin.solvers import hard_margin
from hardmargin.solvers.hard_margin import HardMarginOptions
from hardmargin.solvers.problem import KernelRows, Problem

# --- the optimum ---------------------------------------------------------------------------------


@BIAS
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_oracle_is_exact(name, bias):
    assert optimum(name, bias).gap < 1e-9


@BIAS
@pytest.mark.parametrize("name", PROBLEMS)
def test_objective_and_bias_are_the_optimum(name, bias):
    solution = solve(*problem(name), bias=bias)
    best = optimum(name, bias)
    assert solution.stop_reason == "converged"
    assert solution.rho == pytest.approx(best.rho, rel=1e-8)
    assert solution.intercept == pytest.approx(best.intercept, abs=1e-6 * best.rho)


@BIAS
@pytest.mark.parametrize("name", ["rbf", "laplacian", "sparse"])
def test_multipliers_are_the_optimum(name, bias):
    kernel, X, y = problem(name)
    alpha = alpha_of(solve(kernel, X, y, bias=bias), len(y))
    np.testing.assert_allclose(alpha, optimum(name, bias).alpha, atol=1e-7)


@BIAS
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_certificate_is_honest(name, tol, bias):
    solution = solve(*problem(name), bias=bias, tol=tol)
    best = optimum(name, bias).rho
    assert solution.rho_lower_bound <= best * (1 + 1e-9)
    assert solution.rho >= best * (1 - 1e-9)
    assert 0 <= solution.certificate <= 2 * tol


@BIAS
@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_reported_follows_from_the_multipliers(name, bias):
    kernel, X, y = problem(name)
    solution = solve(kernel, X, y, bias=bias, tol=1e-2)
    g = gradient_of(solution, matrix_of(kernel, X), y)
    rho = alpha_of(solution, len(y)) @ g
    least = np.array([g[y < 0].min(), g[y > 0].min()])
    margin = least.mean() if bias else least.min()
    assert solution.rho == pytest.approx(rho, rel=1e-9)
    assert solution.rho_lower_bound == pytest.approx(margin**2 / rho, rel=1e-9)
    assert solution.intercept == pytest.approx((least[0] - least[1]) / 2 if bias else 0, abs=1e-12)
    violations = [
        g[(alpha_of(solution, len(y)) > 0) & group].max() - g[group].min()
        for group in ([y < 0, y > 0] if bias else [np.ones(len(y), dtype=bool)])
    ]
    assert max(violations) <= 1e-2 * rho * (1 + 1e-9)


@BIAS
def test_masses_are_exact(bias):
    kernel, X, y = problem("rbf")
    alpha = alpha_of(solve(kernel, X, y, bias=bias), len(y))
    assert alpha.sum() == pytest.approx(1.0, abs=1e-14)
    if bias:
        assert alpha[y > 0].sum() == pytest.approx(0.5, abs=1e-14)


def test_rows_ascend_and_multipliers_are_positive():
    solution = solve(*problem("rbf"))
    assert (np.diff(solution.rows) > 0).all()
    assert (multipliers(solution) > 0).all()


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sparse"])
def test_on_the_usual_scale_it_is_svc(name):
    kernel, X, y = problem(name)
    svc = SVC(C=1e8, kernel="precomputed", tol=1e-8).fit(gram(kernel, X), y)
    solution = solve(kernel, X, y)
    coef = np.zeros(len(y))
    coef[svc.support_] = svc.dual_coef_[0]
    signed = y * alpha_of(solution, len(y)) / solution.rho
    np.testing.assert_allclose(signed, coef, atol=1e-5 * np.abs(coef).max())
    assert solution.intercept / solution.rho == pytest.approx(svc.intercept_[0], abs=1e-5)


# --- sizes and sources ---------------------------------------------------------------------------


@BIAS
def test_few_of_many_rows(bias):
    kernel, X, y = large()
    solution = solve(kernel, X, y, bias=bias, tol=1e-6)
    assert solution.stop_reason == "converged"
    assert len(solution.rows) < len(y) / 4
    g = gradient_of(solution, gram(kernel, X), y)
    margin = (g[y < 0].min() + g[y > 0].min()) / 2 if bias else g.min()
    assert margin >= (1 - 1e-6) * solution.rho
    assert solution.n_kernel_evaluations < len(y) ** 2 / 2


@BIAS
def test_all_rows_are_support_rows(bias):
    X, y = small(n=700)
    kernel = Kernel("rbf", gamma=20.0)
    solution = solve(kernel, X, y, bias=bias, tol=1e-6)
    assert len(solution.rows) > 0.9 * len(y)
    assert solution.certificate <= 2e-6


@BIAS
@pytest.mark.parametrize("name", ["rbf", "poly", "sparse", "callable"])
def test_little_memory_gives_the_same(name, bias):
    kernel, X, y = problem(name)
    much = solve(kernel, X, y, bias=bias)
    # a hundred bytes per row for its state, and columns of four rows
    little = solve(kernel, X, y, bias=bias, memory_bytes=len(y) * (100 + 8 * X.shape[1]))
    np.testing.assert_array_equal(little.rows, much.rows)
    np.testing.assert_array_equal(multipliers(little), multipliers(much))
    assert little.n_kernel_evaluations > much.n_kernel_evaluations


def test_too_little_memory_is_refused():
    with pytest.raises(ValueError, match="memory_limit is too small"):
        solve(*problem("rbf"), memory_bytes=1000)


@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_float32_and_dense_orders_give_the_same_optimum(name):
    kernel, X, y = problem(name)
    best = optimum(name, True).rho
    assert solve(kernel, np.asfortranarray(X), y).rho == pytest.approx(best, rel=1e-8)
    assert solve(kernel, sp.csr_array(X), y).rho == pytest.approx(best, rel=1e-8)


@BIAS
@pytest.mark.parametrize(
    "name",
    [
        "rbf",
        "laplacian",
        "matern32",
        "matern52",
        "linear",
        "poly",
        "callable",
        "precomputed",
    ],
)
def test_float32_values_come_close(name, bias):
    kernel, X, y = problem(name)
    solution = solve(kernel, X, y, bias=bias, tol=1e-3, dtype="float32")
    best = optimum(name, bias).rho
    assert solution.stop_reason == "converged"
    assert solution.rho_lower_bound * (1 - 1e-3) <= best <= solution.rho * (1 + 1e-3)
    g = gradient_of(solution, matrix_of(kernel, X), y)
    assert alpha_of(solution, len(y)) @ g == pytest.approx(solution.rho, rel=1e-3)


def test_binary_columns_are_packed_and_give_the_same():
    X, y = mixed(n=120, seed=3)
    kernel = KERNELS["laplacian"]
    best = oracle(gram(kernel, X), y)
    assert solve(kernel, X, y).rho == pytest.approx(best.rho, rel=1e-8)


def test_one_row_per_class():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    solution = solve(Kernel("linear"), X, [-1.0, 1.0])
    assert multipliers(solution).tolist() == [0.5, 0.5]
    assert solution.rho == pytest.approx(25 / 4)
    assert solution.certificate == pytest.approx(0.0, abs=1e-12)
    assert solution.n_stages == 0
    # the middle between both is on the plane
    middle = 0.5 * np.array([3.0, 4.0]) @ np.array([1.5, 2.0]) + solution.intercept
    assert middle == pytest.approx(0.0, abs=1e-12)


def test_one_row_against_many():
    X, _ = small()
    y = np.where(np.arange(len(X)) == 17, 1.0, -1.0)
    best = oracle(gram(KERNELS["rbf"], X), y)
    assert solve(KERNELS["rbf"], X, y).rho == pytest.approx(best.rho, rel=1e-8)


def test_rows_left_out_take_no_part():
    kernel, X, y = problem("rbf")
    classes = (y > 0).astype(np.int32)
    classes[::3] = -1
    [solution] = hard_margin.solve(
        Problem(KernelRows(kernel, X), classes, [([0], [1])]), HardMarginOptions(tol=TIGHT)
    )
    assert not np.isin(solution.rows, np.arange(0, len(y), 3)).any()
    kept = classes >= 0
    best = oracle(gram(kernel, X[kept]), y[kept])
    assert solution.rho == pytest.approx(best.rho, rel=1e-8)


# --- several machines ----------------------------------------------------------------------------


def three_classes():
    X, _ = small(n=120, seed=3)
    return X, np.digitize(X[:, 0] + np.sin(3 * X[:, 1]), [-0.6, 0.6]).astype(np.int32)


PAIRS = [([0], [1]), ([0], [2]), ([1], [2]), ([0, 2], [1])]


@BIAS
def test_every_machine_is_its_own_two_class_problem(bias):
    X, classes = three_classes()
    options = HardMarginOptions(fit_intercept=bias, tol=TIGHT)
    solutions = hard_margin.solve(Problem(KernelRows(KERNELS["rbf"], X), classes, PAIRS), options)
    for solution, (negative, positive) in zip(solutions, PAIRS, strict=True):
        rows = np.flatnonzero(np.isin(classes, negative + positive))
        y = np.where(np.isin(classes[rows], positive), 1.0, -1.0)
        best = oracle(gram(KERNELS["rbf"], X[rows]), y, bias)
        assert solution.rho == pytest.approx(best.rho, rel=1e-8)
        assert np.isin(solution.rows, rows).all()


@pytest.mark.parametrize("name", ["rbf", "linear", "callable"])
def test_threads_change_nothing(name):
    X, classes = three_classes()
    one, two = (
        hard_margin.solve(
            Problem(KernelRows(KERNELS[name], X), classes, PAIRS), HardMarginOptions(n_threads=n)
        )
        for n in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(multipliers(a), multipliers(b))


# --- any problem ---------------------------------------------------------------------------------


@st.composite
def grid_problems(draw):
    """Rows on a coarse grid: duplicates, opposite labels on one spot."""
    n, d = draw(st.integers(2, 20)), draw(st.integers(1, 4))
    values = st.sampled_from([0.0, 1.0, -2.0, 0.5])
    X = np.array(draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    y[:2] = [1.0, -1.0]
    return X, y


@given(
    data=grid_problems(),
    name=st.sampled_from(["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly"]),
    bias=st.booleans(),
)
@settings(deadline=None, max_examples=150)
@example(data=(np.array([[1.0], [-2.0]]), np.array([1.0, -1.0])), name="linear", bias=False)
def test_any_small_problem(data, name, bias):
    X, y = data
    kernel = KERNELS[name]
    K = gram(kernel, X)
    solution = solve(kernel, X, y, bias=bias, tol=1e-6)
    assert solution.stop_reason in ("converged", "rho_zero")
    g = gradient_of(solution, K, y)
    assert np.isfinite(g).all()
    scale = np.abs(K.diagonal()).mean()
    if solution.stop_reason == "converged":
        margin = (g[y < 0].min() + g[y > 0].min()) / 2 if bias else g.min()
        assert margin >= solution.rho * (1 - 1e-5) - 1e-12 * scale
    else:
        assert alpha_of(solution, len(y)) @ g <= 2e-10 * scale
