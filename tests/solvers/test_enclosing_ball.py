"""Enclosing balls by core sets against quadratic programs."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.core_vector import enclosing_ball as smallest_ball
from problems.two_class import KERNELS, gram, small

from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.solvers.core_sets import enclosing_ball
from hardmargin.solvers.core_sets.enclosing_ball import BallOptions, HalfDistances
from hardmargin.solvers.problem import Problem

POSITIVE = ["rbf", "laplacian", "linear", "poly", "callable"]
HARD = np.inf


def solve(X, weights=None, kernel=KERNELS["rbf"], dtype="float64", kept=0, monitor=None, **options):
    columns = HalfDistances(kernel, X, dtype=dtype, memory_bytes=kept)
    present = np.ones(len(columns.halves)) if weights is None else weights > 0
    problem = Problem.two_class(columns, present, weights)
    [solution] = enclosing_ball.solve(problem, BallOptions(**options), monitor)
    return solution


def rows(n=80):
    return small(n=n)[0]


def shares(solution, n):
    a = np.zeros(n)
    a[solution.rows] = solution.coefficients
    return a


def squared_distances(K, a):
    return K.diagonal() - 2 * K @ a + a @ K @ a


@functools.cache
def best(name, C):
    return smallest_ball(gram(KERNELS[name], rows()), C)


@functools.cache
def many():
    return np.random.default_rng(3).normal(size=(6000, 6))


# --- the optimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [0.05, 1e-4])
@pytest.mark.parametrize("C", [HARD, 10.0, 0.1, 0.01])
@pytest.mark.parametrize("name", POSITIVE)
def test_the_optimum_is_between_the_bounds(name, C, tol):
    solution = solve(rows(), kernel=KERNELS[name], C=C, tol=tol)
    optimum, _ = best(name, C)
    assert solution.stop_reason == "certified"
    assert solution.lower_bound <= optimum * (1 + 1e-7)
    assert solution.objective >= optimum * (1 - 1e-7)
    assert solution.objective <= solution.lower_bound * (1 + tol) ** 2 * (1 + 1e-9)


@pytest.mark.parametrize("C", [HARD, 0.01])
def test_a_larger_problem(C):
    X = rows(300)
    optimum, _ = smallest_ball(gram(KERNELS["rbf"], X), C)
    solution = solve(X, C=C, tol=1e-6)
    assert solution.lower_bound <= optimum * (1 + 1e-7)
    assert solution.objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("C", [HARD, 1.0, 0.01])
@pytest.mark.parametrize("name", POSITIVE)
def test_the_centre_is_that_of_the_oracle(name, C):
    solution = solve(rows(), kernel=KERNELS[name], C=C, tol=1e-8)
    optimum, a = best(name, C)
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    apart = shares(solution, len(a)) - a
    K = gram(KERNELS[name], rows())
    assert apart @ K @ apart < 1e-6 * optimum


@pytest.mark.parametrize("C", [HARD, 1.0, 0.01])
@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_what_is_reported_follows_from_the_coefficients(name, C):
    solution = solve(rows(), kernel=KERNELS[name], C=C, tol=0.01)
    K = gram(KERNELS[name], rows())
    a = shares(solution, len(K))
    assert a.sum() == pytest.approx(1)
    assert (solution.coefficients > 0).all()
    assert solution.squared_norm == pytest.approx(a @ K @ a, abs=1e-12 * np.abs(K).max())
    away = squared_distances(K, a)
    if C == HARD:
        assert solution.squared_radius == pytest.approx(away.max())
        assert solution.objective == pytest.approx(away.max())
        assert solution.lower_bound == pytest.approx(a @ K.diagonal() - a @ K @ a)
    else:
        slacks = np.maximum(away - solution.squared_radius, 0)
        assert slacks.sum() == pytest.approx(1 / (2 * C))
        assert solution.objective == pytest.approx(solution.squared_radius + C * slacks @ slacks)


def test_slacks_are_shares():
    solution = solve(rows(), C=0.05, tol=1e-9)
    K = gram(KERNELS["rbf"], rows())
    a = shares(solution, len(K))
    slacks = np.maximum(squared_distances(K, a) - solution.squared_radius, 0)
    np.testing.assert_allclose(slacks, a / (2 * 0.05), atol=1e-6)


def test_a_very_small_C_leaves_no_radius():
    solution = solve(rows(), C=1e-4, tol=1e-6)
    assert solution.stop_reason == "certified"
    assert solution.squared_radius < 0
    assert solution.objective == pytest.approx(best("rbf", 1e-4)[0], rel=1e-6)


def test_half_distances_are_those_of_the_kernel():
    kernel, X = KERNELS["poly"], rows(20)
    K = gram(kernel, X)
    D = K.diagonal()[:, None] + K.diagonal() - 2 * K
    some, others = np.array([3, 7, 5]), np.array([0, 3, 19, 4])
    for kept in (0, 2**20):
        columns = HalfDistances(kernel, X, memory_bytes=kept)
        values, slots, places = columns.keep(some, others)
        values = columns.unit * values[np.ix_(slots, places)]
        np.testing.assert_allclose(values, -D[np.ix_(some, others)] / 2, atol=1e-12)
        coef = np.array([1.0, -2.0, 0.5]) * columns.unit
        expected = -D[:, some] @ coef / 2 / columns.unit
        np.testing.assert_allclose(columns.product(some, coef), expected)
        np.testing.assert_allclose(columns.product(some, coef, others), expected[others])


@pytest.mark.parametrize("C", [HARD, 0.05])
def test_sources_of_kernel_values_agree(C):
    X = rows()
    dense = solve(X, C=C, tol=1e-7)
    K = gram(KERNELS["rbf"], X)
    for other in (
        solve(sp.csr_array(X), C=C, tol=1e-7),
        solve(K, kernel=Kernel("precomputed"), C=C, tol=1e-7),
        solve(X, C=C, tol=1e-7, kept=2**20),
    ):
        assert other.objective == pytest.approx(dense.objective, rel=1e-6)
        apart = shares(other, len(X)) - shares(dense, len(X))
        assert apart @ K @ apart < 1e-6


# --- many rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [HARD, 0.05])
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 5.0])
def test_few_of_many_rows(gamma, C, dtype):
    X = many()
    kernel = Kernel("rbf", gamma=gamma)
    if C != HARD and gamma == 1e-3:
        C = 50.0  # slacks are squared distances, which are small for this gamma
    solution = solve(X, kernel=kernel, C=C, dtype=dtype, tol=0.01)
    assert solution.stop_reason == "certified"
    assert solution.core_size < len(X) / 4
    support = X[solution.rows]
    a = solution.coefficients
    norm = a @ kernel.block(support) @ a
    away = 1 + norm - 2 * kernel.product(X, a, support)
    lower = 1 - norm
    if C != HARD:
        lower -= (a**2).sum() / (4 * C)
        slacks = np.maximum(away - solution.squared_radius, 0)
        upper = solution.squared_radius + C * slacks @ slacks
    else:
        upper = away.max()
    assert solution.lower_bound == pytest.approx(lower, rel=1e-3)
    assert solution.objective == pytest.approx(upper, rel=1e-3)
    assert upper <= lower * 1.01**2 * (1 + 1e-3)


def test_a_single_outlier_is_found():
    X = many().copy()
    X[4321] = 30.0
    solution = solve(X, kernel=Kernel("linear"), tol=1e-4)
    assert 4321 in solution.rows
    assert solution.stop_reason == "certified"


def test_columns_are_only_evaluated_where_needed():
    X = many()
    solution = solve(X, tol=0.01)
    assert solution.n_kernel_evaluations < len(X) * len(X) / 4


# --- the radius rule -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("eps", [1e-2, 1e-4])
def test_radius_is_within_eps(name, eps):
    X = rows(50)  # samples of 59 include all of them
    solution = solve(X, kernel=KERNELS[name], by_radius=True, tol=eps)
    optimum, _ = smallest_ball(gram(KERNELS[name], X))
    assert solution.stop_reason == "radius"
    assert solution.lower_bound <= optimum * (1 + 1e-7)
    assert solution.objective <= solution.lower_bound * (1 + eps) ** 2 * (1 + 1e-7)


def test_radius_rule_reports_bounds_that_hold():
    X = many().copy()
    X[4321] = 30.0
    for seed in range(5):
        solution = solve(X, kernel=Kernel("linear"), by_radius=True, tol=0.5, seed=seed)
        a = shares(solution, len(X))
        from_centre = X - a @ X
        assert solution.objective == pytest.approx((from_centre**2).sum(axis=1).max())


# --- weights and odd problems --------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 0.02])
@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_weights_against_the_oracle(name, C):
    X = rows(60)
    w = np.random.default_rng(0).uniform(0.1, 5, size=60)
    solution = solve(X, w, kernel=KERNELS[name], C=C, tol=1e-7)
    optimum, _ = smallest_ball(gram(KERNELS[name], X), C, w)
    assert solution.objective == pytest.approx(optimum, rel=1e-6)


def test_a_weight_of_two_is_the_row_twice():
    X = rows(60)
    w = np.arange(60) % 3
    weighted = solve(X, w.astype(float), C=0.05, tol=1e-8)
    repeated = solve(np.repeat(X, w, axis=0), C=0.05, tol=1e-8)
    assert weighted.squared_radius == pytest.approx(repeated.squared_radius, rel=1e-4)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    assert not np.isin(np.flatnonzero(w == 0), weighted.rows).any()


def test_positive_weights_mean_nothing_without_slacks():
    X = rows()
    plain, weighted = (solve(X, w, tol=1e-6) for w in (None, np.linspace(1, 5, len(X))))
    np.testing.assert_array_equal(plain.rows, weighted.rows)
    np.testing.assert_array_equal(plain.coefficients, weighted.coefficients)


@pytest.mark.parametrize("C", [HARD, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["rbf", "linear"])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_rows_in_one_place(n, name, dtype, C):
    solution = solve(np.full((n, 3), 0.3), kernel=KERNELS[name], dtype=dtype, C=C)
    assert solution.stop_reason == "certified"
    assert solution.coefficients.sum() == pytest.approx(1)
    assert max(solution.squared_radius, 0) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_the_scale_does_not_matter(scale):
    X = rows()
    unit = solve(X, kernel=Kernel("linear"), tol=1e-6)
    scaled = solve(scale * X, kernel=Kernel("linear"), tol=1e-6)
    assert scaled.stop_reason == "certified"
    assert scaled.squared_radius == pytest.approx(scale**2 * unit.squared_radius, rel=1e-5)


def test_an_indefinite_kernel_gives_a_finite_ball():
    X = rows()
    for name in ("sigmoid, indefinite", "poly, indefinite"):
        solution = solve(X, kernel=KERNELS[name])
        assert np.isfinite(solution.coefficients).all()
        assert np.isfinite(solution.squared_radius)


def test_values_that_are_not_finite_are_named():
    K = gram(KERNELS["rbf"], rows(20))
    K[3, 4] = K[4, 3] = np.nan
    with pytest.raises(ValueError, match="finite"):
        solve(K, kernel=Kernel("precomputed"), tol=1e-6)


# --- limits --------------------------------------------------------------------------------------


def test_stages_are_limited():
    solution = solve(many(), kernel=Kernel("rbf", gamma=5.0), tol=1e-5, max_stages=2)
    assert (solution.stop_reason, solution.n_stages) == ("max_stages", 2)
    assert 0 < solution.lower_bound < solution.objective < np.inf


def test_a_core_set_beyond_the_memory_stops_there():
    solution = solve(many(), kernel=Kernel("rbf", gamma=5.0), tol=1e-5, memory_bytes=8 * 300**2)
    assert solution.stop_reason == "core_full"
    assert solution.core_size <= 300


def test_time_is_limited():
    seconds = itertools.count(0.0, 0.1)
    monitor = Monitor(max_seconds=1.0, clock=lambda: next(seconds))
    solution = solve(many(), kernel=Kernel("rbf", gamma=5.0), tol=1e-9, monitor=monitor)
    assert solution.stop_reason == "max_time"
    assert next(seconds) < 5
    assert np.isfinite(solution.objective)


def test_a_tolerance_beyond_the_precision_is_detected():
    X = many()[:500]
    solution = solve(X, kernel=Kernel("rbf", gamma=0.1), tol=1e-12, dtype="float32")
    assert solution.stop_reason == "rounding"
    assert solution.certificate < 1e-4
