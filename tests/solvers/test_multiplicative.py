"""The multiplicative updates with bias: the oracle's path, the optimum, and its certificate."""

import functools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import multiplicative as oracle
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

from hardmargin.kernels.matrix import StoredMatrix
from hardmargin.solvers import multiplicative
from hardmargin.solvers.multiplicative import MultiplicativeOptions, solve_multiplicative

RATES = pytest.mark.parametrize("rate", [0.1, "auto"])


def rbf(X, gamma=0.3):
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


@functools.cache
def separable(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.2 > 0, 1.0, -1.0)


@functools.cache
def overlapping(n=40):
    """A row of each class on the same spot."""
    X, y = separable(n)
    return np.vstack([X, X[:1]]), np.append(y, -y[0])


def solve(K, y, *, weights=None, keep_going=None, observe=None, dtype=np.float64, **options):
    return solve_multiplicative(
        StoredMatrix(np.ascontiguousarray(K, dtype=dtype)),
        y,
        weights=weights,
        options=MultiplicativeOptions(**options),
        keep_going=keep_going,
        observe=observe,
    )


def planes_of(K, y, **options):
    planes = []
    solution = solve(K, y, observe=planes.append, **options)
    return [y * signed for signed in planes], solution


@functools.cache
def solved(tol=1e-3, rate="auto"):
    X, y = separable()
    return solve(rbf(X), y, tol=tol, learning_rate=rate)


@functools.cache
def exact():
    """Multipliers and bias of the same problem by pairwise optimisation."""
    X, y = separable()
    model = SVC(C=1e8, kernel="precomputed", tol=1e-8).fit(rbf(X), y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha, float(model.intercept_[0])


def is_finite(solution):
    numbers = [
        solution.alpha,
        solution.margins,
        solution.objectives,
        solution.biases,
        solution.rates,
        [solution.intercept, solution.last_rate, solution.squared_norm, solution.gap],
    ]
    return all(np.isfinite(values).all() for values in numbers)


# --- the path ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_the_first_planes_of_a_fixed_rate_are_the_oracles(rate, weighted):
    X, y = separable()
    weights = np.random.default_rng(1).uniform(0.2, 5.0, size=len(y)) if weighted else None
    planes, _ = planes_of(rbf(X), y, learning_rate=rate, max_stages=13, weights=weights)
    np.testing.assert_allclose(planes, oracle.fixed(rbf(X), y, rate, 13, weights), rtol=1e-10)


def test_the_first_planes_of_the_adaptive_rate_are_the_oracles():
    X, y = separable()
    planes, solution = planes_of(rbf(X), y, max_stages=30)
    expected, rates = oracle.adaptive(rbf(X), y, 30)
    np.testing.assert_allclose(solution.rates, rates, rtol=1e-10)
    np.testing.assert_allclose(planes, expected, rtol=1e-8)


def test_the_start_gives_each_class_a_mass_of_one():
    X, y = separable()
    planes, _ = planes_of(rbf(X), y, max_stages=1)
    np.testing.assert_allclose(planes[0], np.where(y > 0, 1 / (y > 0).sum(), 1 / (y < 0).sum()))


@st.composite
def steps(draw):
    """Any multipliers, margins of any size, any rate."""
    n = draw(st.integers(2, 12))
    numbers = st.floats(-3.0, 3.0)
    X = np.array(draw(st.lists(st.tuples(numbers, numbers), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    y[:2] = [1.0, -1.0]
    weights = draw(st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n))
    return X, y, np.array(weights), draw(st.floats(1e-4, 3.0))


@given(steps())
@settings(deadline=None, max_examples=80)
def test_a_step_is_the_oracles(problem):
    X, y, weights, rate = problem
    K = rbf(X)
    planes, solution = planes_of(K, y, learning_rate=rate, weights=weights, max_stages=2, tol=0.0)
    if solution.stop_reason == "not_separable" and len(planes) == 1:
        return
    expected, _ = oracle.step(K, y, oracle.start(y, weights), rate)
    np.testing.assert_allclose(planes[1], expected, rtol=1e-9)


@given(steps())
@settings(deadline=None, max_examples=40)
def test_every_plane_balances_the_classes(problem):
    X, y, weights, rate = problem
    planes, _ = planes_of(rbf(X), y, learning_rate=min(rate, 0.2), weights=weights, max_stages=20)
    for alpha in planes:
        assert alpha[y > 0].sum() == pytest.approx(alpha[y < 0].sum(), rel=1e-12)


@given(steps(), st.sampled_from(["auto", 0.05, 3.0, 1e3]))
@settings(deadline=None, max_examples=60)
@example((np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4), 1.0), "auto")
def test_any_problem_ends_finite(problem, rate):
    X, y, weights, _ = problem
    grid = np.round(X)  # many rows of both classes on one spot
    solution = solve(rbf(grid), y, weights=weights, learning_rate=rate, max_stages=200)
    assert is_finite(solution)
    assert 0 <= solution.gap <= 1
    assert (solution.alpha >= 0).all()


@RATES
def test_the_history_is_that_of_the_planes(rate):
    X, y = separable()
    K = rbf(X)
    planes, solution = planes_of(K, y, learning_rate=rate, max_stages=25)
    np.testing.assert_allclose(solution.objectives, [oracle.objective(K, y, a) for a in planes])
    np.testing.assert_allclose(solution.biases, [oracle.balanced_bias(K, y, a) for a in planes])
    for t, alpha in enumerate(planes):
        scores = K @ (y * alpha) + solution.biases[t]
        assert solution.errors[t] == (y * scores <= 0).sum()
        norm = np.sqrt((y * alpha) @ K @ (y * alpha))
        if solution.margins[t] > 0:
            assert solution.margins[t] == pytest.approx((y * scores).min() / norm)
    assert (len(solution.rates), solution.n_stages, solution.n_tried) == (24, 25, 25)


def test_the_adaptive_rate_never_lowers_the_objective():
    rises = np.diff(solved(1e-8).objectives)
    assert (rises >= -1e-12 * solved(1e-8).objectives[-1]).all()


# --- the optimum ---------------------------------------------------------------------------------


@RATES
def test_multipliers_and_bias_converge_to_the_exact_ones(rate):
    alpha, bias = exact()
    solution = solved(1e-8, rate)
    assert solution.stop_reason == "converged"
    np.testing.assert_allclose(solution.alpha, alpha, atol=1e-5 * alpha.max())
    assert solution.intercept == pytest.approx(bias, abs=1e-5)


def test_lambda_of_the_paper_is_the_same_bias_at_the_optimum():
    X, y = separable()
    _, lam = oracle.step(rbf(X), y, solved(1e-8).alpha, 0.1)
    assert lam == pytest.approx(solved(1e-8).intercept, abs=1e-5)


def test_the_margin_rises_to_that_of_the_exact_machine():
    alpha, _ = exact()
    best = 1 / np.sqrt(alpha.sum())  # 1 / ||w||
    margins = solved(1e-8).margins
    assert (margins <= best * (1 + 1e-6)).all()
    assert margins[-1] == pytest.approx(best, rel=1e-6)


@RATES
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_the_certificate_is_honest(tol, rate):
    solution = solved(tol, rate)
    optimum = exact()[0].sum() / 2
    lower = solution.alpha.sum() ** 2 / (2 * solution.squared_norm)
    upper = 1 / (2 * solution.margins[-1] ** 2)
    assert lower <= optimum * (1 + 1e-6)
    assert optimum <= upper * (1 + 1e-6)
    assert solution.gap == pytest.approx(1 - lower / upper, abs=1e-12)
    assert solution.gap <= tol


def test_converged_multipliers_have_the_standard_scale():
    K = 0.01 * np.eye(2)  # in direction the start is optimal, in scale it is not
    solution = solve(K, np.array([1.0, -1.0]))
    assert solution.alpha == pytest.approx([100.0, 100.0], rel=2e-3)


def test_the_adaptive_rate_needs_fewer_epochs_than_a_safe_fixed_one():
    best = exact()[0].sum() ** -0.5
    auto, fixed = (np.argmax(solved(1e-4, rate).margins > 0.99 * best) for rate in ("auto", 0.05))
    assert auto < fixed


def test_tolerance_zero_runs_to_the_limit_or_to_rounding():
    X, y = separable(8)
    solution = solve(rbf(X), y, tol=0.0, max_stages=4000)
    assert solution.stop_reason in {"converged", "stalled", "max_stages"}
    assert solution.gap < 1e-9


def test_float32_kernel_values_give_the_same_machine():
    X, y = separable()
    narrow = solve(rbf(X), y, dtype=np.float32)
    assert narrow.stop_reason == "converged"
    np.testing.assert_allclose(narrow.alpha, solved().alpha, atol=1e-3 * narrow.alpha.max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-24, 1e-6, 1e6, 1e24])
def test_kernels_of_any_size(scale, dtype):
    X, y = separable()
    solution = solve(scale * rbf(X), y, dtype=dtype)
    assert solution.stop_reason == "converged"
    np.testing.assert_allclose(
        scale * solution.alpha, solved().alpha, atol=0.05 * solved().alpha.max()
    )


def test_the_origin_does_not_matter():
    X, y = separable()
    near, far = (solve((X + shift) @ (X + shift).T, y, tol=1e-2) for shift in (0.0, 1000.0))
    assert near.stop_reason == far.stop_reason == "converged"
    assert far.n_stages == pytest.approx(near.n_stages, rel=0.1)


# --- weights -------------------------------------------------------------------------------------


@RATES
def test_a_weight_of_two_is_the_row_twice(rate):
    X, y = separable()
    times = np.random.default_rng(2).integers(0, 4, size=len(y))
    times[:4] = 1
    rows = np.repeat(np.arange(len(y)), times)
    weighted = solve(rbf(X), y, weights=times, learning_rate=rate, max_stages=60)
    repeated = solve(rbf(X[rows]), y[rows], learning_rate=rate, max_stages=60)
    np.testing.assert_allclose(
        weighted.alpha, np.bincount(rows, repeated.alpha, len(y)), rtol=1e-8, atol=1e-12
    )
    assert weighted.intercept == pytest.approx(repeated.intercept)


def test_positive_weights_do_not_change_the_optimum():
    X, y = separable()
    weights = np.random.default_rng(3).uniform(0.1, 10.0, size=len(y))
    solution = solve(rbf(X), y, weights=weights, tol=1e-8)
    np.testing.assert_allclose(solution.alpha, solved(1e-8).alpha, atol=1e-4)


# --- the other ends ------------------------------------------------------------------------------


@RATES
def test_classes_that_overlap_are_found_out(rate):
    X, y = overlapping()
    planes, solution = planes_of(rbf(X), y, learning_rate=rate)
    assert solution.stop_reason == "not_separable"
    assert solution.gap == 1.0
    assert is_finite(solution)
    assert solution.n_tried == len(planes)
    np.testing.assert_array_equal(solution.alpha, planes[solution.n_stages - 1])
    assert solution.errors[-1] == solution.errors.min()


@pytest.mark.parametrize("K", [np.zeros((4, 4)), np.ones((4, 4)), -np.eye(4)])
def test_kernels_without_any_distance(K):
    solution = solve(K, np.array([1.0, -1.0, 1.0, -1.0]))
    assert solution.stop_reason == "not_separable"
    assert is_finite(solution)


@pytest.mark.parametrize("rate", [0.5, 1.0, 5.0, 100.0, 1e6, 1e300])
def test_a_rate_that_is_too_large_keeps_the_best_plane(rate):
    X, y = separable()
    planes, solution = planes_of(rbf(X), y, learning_rate=rate)
    assert solution.stop_reason == "diverged"
    assert is_finite(solution)
    assert solution.n_tried == len(planes) >= solution.n_stages
    np.testing.assert_array_equal(solution.alpha, planes[solution.n_stages - 1])
    bounds = [a.sum() ** 2 / (a @ oracle.margins(rbf(X), y, a)) for a in planes]
    assert bounds[solution.n_stages - 1] == pytest.approx(max(bounds))


def test_a_rate_that_swings_for_ever_is_given_up():
    # With one free direction the critical rate is 2: beyond it the scale of alpha oscillates.
    solution = solve(0.5 * np.eye(2), np.array([1.0, -1.0]), learning_rate=2.2)
    assert solution.stop_reason == "diverged"
    assert multiplicative.PATIENCE < solution.n_tried < 2 * multiplicative.PATIENCE


def test_max_stages():
    X, y = separable()
    solution = solve(rbf(X), y, max_stages=7)
    assert (solution.stop_reason, solution.n_stages) == ("max_stages", 7)


def test_keep_going_ends_the_run_with_the_planes_so_far():
    X, y = separable()
    solution = solve(rbf(X), y, keep_going=lambda n, gap: n < 5)
    assert (solution.stop_reason, solution.n_stages) == ("max_time", 5)


def test_keep_going_may_say_no_at_once():
    X, y = separable()
    solution = solve(rbf(X), y, keep_going=lambda n, gap: False)
    assert (solution.stop_reason, solution.n_stages) == ("max_time", 1)
    assert is_finite(solution)


def test_kernel_values_must_be_finite():
    with pytest.raises(ValueError, match="finite"):
        solve(np.full((2, 2), np.nan), np.array([1.0, -1.0]))


@pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
def test_rates_must_be_positive(rate):
    with pytest.raises(ValueError, match="learning_rate"):
        MultiplicativeOptions(learning_rate=rate)


def test_both_labels_are_needed():
    with pytest.raises(ValueError, match="both labels"):
        solve(np.eye(2), np.ones(2))
