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
from hardmargin.monitor import Monitor
from hardmargin.solvers import multiplicative
from hardmargin.solvers.multiplicative import MultiplicativeOptions
from hardmargin.solvers.problem import Problem

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


def solve(K, y, *, weights=None, monitor=None, dtype=np.float64, **options):
    matrix = StoredMatrix(np.ascontiguousarray(K, dtype=dtype))
    options = MultiplicativeOptions(**({"keep_planes": 2**30} | options))
    problem = Problem.two_class(matrix, y, weights)
    [solution] = multiplicative.solve(problem, options, monitor)
    return solution


def alpha_of(solution):
    return np.abs(solution.coefficients)


def planes_of(K, y, **options):
    solution = solve(K, y, **options)
    return list(y * solution.planes.toarray()), solution


@functools.cache
def solved(tol=1e-3, rate="auto"):
    X, y = separable()
    return solve(rbf(X), y, tol=tol, learning_rate=rate)


@functools.cache
def by_pairs():
    """Multipliers and bias of the same problem by pairwise optimisation."""
    X, y = separable()
    model = SVC(C=1e8, kernel="precomputed", tol=1e-8).fit(rbf(X), y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha, float(model.intercept_[0])


def is_finite(solution):
    numbers = [
        solution.coefficients,
        *solution.history.values(),
        [solution.intercept, solution.last_rate, solution.squared_norm, solution.certificate],
    ]
    return all(np.isfinite(values).all() for values in numbers)


# --- the path ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_the_first_planes_of_a_fixed_rate_are_the_oracles(rate, weighted):
    X, y = separable()
    weights = np.random.default_rng(1).uniform(0.2, 5.0, size=len(y)) if weighted else None
    planes, _ = planes_of(rbf(X), y, learning_rate=rate, max_stages=12, weights=weights)
    np.testing.assert_allclose(planes, oracle.fixed(rbf(X), y, rate, 13, weights), rtol=1e-10)


def test_the_first_planes_of_the_adaptive_rate_are_the_oracles():
    X, y = separable()
    planes, solution = planes_of(rbf(X), y, max_stages=29)
    expected, rates = oracle.adaptive(rbf(X), y, 30)
    np.testing.assert_allclose(solution.history["rate"], rates, rtol=1e-10)
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
    planes, solution = planes_of(K, y, learning_rate=rate, weights=weights, max_stages=1, tol=0.0)
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
    assert 0 <= solution.certificate <= 1
    assert (y * solution.coefficients >= 0).all()


@RATES
def test_the_history_is_that_of_the_planes(rate):
    X, y = separable()
    K = rbf(X)
    planes, solution = planes_of(K, y, learning_rate=rate, max_stages=25)
    np.testing.assert_allclose(
        solution.history["objective"], [oracle.objective(K, y, a) for a in planes]
    )
    np.testing.assert_allclose(
        solution.history["bias"], [oracle.balanced_bias(K, y, a) for a in planes]
    )
    for t, alpha in enumerate(planes):
        scores = K @ (y * alpha) + solution.history["bias"][t]
        assert solution.history["error"][t] == (y * scores <= 0).sum()
        norm = np.sqrt((y * alpha) @ K @ (y * alpha))
        if solution.history["margin"][t] > 0:
            assert solution.history["margin"][t] == pytest.approx((y * scores).min() / norm)
    assert (len(solution.history["rate"]), solution.n_stages, solution.n_tried) == (25, 25, 25)


def test_the_adaptive_rate_never_lowers_the_objective():
    rises = np.diff(solved(1e-8).history["objective"])
    assert (rises >= -1e-12 * solved(1e-8).history["objective"][-1]).all()


# --- the optimum ---------------------------------------------------------------------------------


@RATES
def test_multipliers_and_bias_converge_to_those_of_pairwise_steps(rate):
    alpha, bias = by_pairs()
    solution = solved(1e-8, rate)
    assert solution.stop_reason == "converged"
    np.testing.assert_allclose(alpha_of(solution), alpha, atol=1e-5 * alpha.max())
    assert solution.intercept == pytest.approx(bias, abs=1e-5)


def test_lambda_of_the_paper_is_the_same_bias_at_the_optimum():
    X, y = separable()
    _, lam = oracle.step(rbf(X), y, alpha_of(solved(1e-8)), 0.1)
    assert lam == pytest.approx(solved(1e-8).intercept, abs=1e-5)


def test_the_margin_rises_to_that_of_the_optimum():
    alpha, _ = by_pairs()
    best = 1 / np.sqrt(alpha.sum())  # 1 / ||w||
    margins = solved(1e-8).history["margin"]
    assert (margins <= best * (1 + 1e-6)).all()
    assert margins[-1] == pytest.approx(best, rel=1e-6)


@RATES
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_the_certificate_is_honest(tol, rate):
    solution = solved(tol, rate)
    optimum = by_pairs()[0].sum() / 2
    lower = alpha_of(solution).sum() ** 2 / (2 * solution.squared_norm)
    upper = 1 / (2 * solution.history["margin"][-1] ** 2)
    assert lower <= optimum * (1 + 1e-6)
    assert optimum <= upper * (1 + 1e-6)
    assert solution.certificate == pytest.approx(1 - lower / upper, abs=1e-12)
    assert solution.certificate <= tol


def test_converged_multipliers_have_the_standard_scale():
    K = 0.01 * np.eye(2)  # in direction the start is optimal, in scale it is not
    solution = solve(K, np.array([1.0, -1.0]))
    assert alpha_of(solution) == pytest.approx([100.0, 100.0], rel=2e-3)


def test_the_adaptive_rate_needs_fewer_epochs_than_a_safe_fixed_one():
    best = by_pairs()[0].sum() ** -0.5
    margins = [solved(1e-4, rate).history["margin"] for rate in ("auto", 0.05)]
    auto, fixed = (np.argmax(values > 0.99 * best) for values in margins)
    assert auto < fixed


def test_tolerance_zero_runs_to_the_limit_or_to_rounding():
    X, y = separable(8)
    solution = solve(rbf(X), y, tol=0.0, max_stages=4000)
    assert solution.stop_reason in {"converged", "stalled", "max_stages"}
    assert solution.certificate < 1e-9


def test_float32_kernel_values_give_the_same_machine():
    X, y = separable()
    narrow = solve(rbf(X), y, dtype=np.float32)
    assert narrow.stop_reason == "converged"
    np.testing.assert_allclose(
        alpha_of(narrow), alpha_of(solved()), atol=1e-3 * alpha_of(narrow).max()
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-24, 1e-6, 1e6, 1e24])
def test_kernels_of_any_size(scale, dtype):
    X, y = separable()
    solution = solve(scale * rbf(X), y, dtype=dtype)
    assert solution.stop_reason == "converged"
    np.testing.assert_allclose(
        scale * alpha_of(solution), alpha_of(solved()), atol=0.05 * alpha_of(solved()).max()
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
    np.testing.assert_array_equal(weighted.rows, np.unique(rows))
    sums = np.bincount(rows, alpha_of(repeated), len(y))[weighted.rows]
    np.testing.assert_allclose(alpha_of(weighted), sums, rtol=1e-8, atol=1e-12)
    assert weighted.intercept == pytest.approx(repeated.intercept)


def test_positive_weights_do_not_change_the_optimum():
    X, y = separable()
    weights = np.random.default_rng(3).uniform(0.1, 10.0, size=len(y))
    solution = solve(rbf(X), y, weights=weights, tol=1e-8)
    np.testing.assert_allclose(alpha_of(solution), alpha_of(solved(1e-8)), atol=1e-4)


# --- the other ends ------------------------------------------------------------------------------


@RATES
def test_classes_that_overlap_are_detected(rate):
    X, y = overlapping()
    planes, solution = planes_of(rbf(X), y, learning_rate=rate)
    assert solution.stop_reason == "not_separable"
    assert solution.certificate == 1.0
    assert is_finite(solution)
    assert solution.n_tried >= solution.n_stages == len(planes) - 1
    np.testing.assert_array_equal(alpha_of(solution), planes[-1])
    assert solution.history["error"][-1] == solution.history["error"].min()


@pytest.mark.parametrize("K", [np.zeros((4, 4)), np.ones((4, 4)), -np.eye(4)])
def test_kernels_without_any_distance(K):
    solution = solve(K, np.array([1.0, -1.0, 1.0, -1.0]))
    assert solution.stop_reason == "not_separable"
    assert is_finite(solution)


@pytest.mark.parametrize("rate", [0.5, 1.0, 5.0, 100.0, 1e6, 1e300])
def test_a_rate_that_is_too_large_keeps_the_best_plane(rate):
    X, y = separable()
    solution = solve(rbf(X), y, learning_rate=rate)
    assert solution.stop_reason == "diverged"
    assert is_finite(solution)
    assert solution.n_tried >= solution.n_stages
    n_planes = max(solution.n_stages, solution.n_tried - 1)  # the last would end as diverged
    planes, _ = planes_of(rbf(X), y, learning_rate=rate, max_stages=n_planes)
    np.testing.assert_array_equal(alpha_of(solution), planes[solution.n_stages])
    bounds = [a.sum() ** 2 / (a @ oracle.margins(rbf(X), y, a)) for a in planes]
    assert bounds[solution.n_stages] == pytest.approx(max(bounds))


def test_a_rate_that_swings_for_ever_is_given_up():
    # With one free direction the critical rate is 2: beyond it the scale of alpha oscillates.
    solution = solve(0.5 * np.eye(2), np.array([1.0, -1.0]), learning_rate=2.2)
    assert solution.stop_reason == "diverged"
    assert multiplicative.PATIENCE <= solution.n_tried < 2 * multiplicative.PATIENCE


def test_max_stages():
    X, y = separable()
    solution = solve(rbf(X), y, max_stages=7)
    assert (solution.stop_reason, solution.n_stages) == ("max_stages", 7)


def test_a_listener_ends_the_run_with_the_planes_so_far():
    X, y = separable()
    monitor = Monitor(listeners=[lambda event: event.stage == 5])
    solution = solve(rbf(X), y, monitor=monitor)
    assert (solution.stop_reason, solution.n_stages) == ("callback", 5)


def test_there_may_be_no_time_at_all():
    X, y = separable()
    solution = solve(rbf(X), y, monitor=Monitor(max_seconds=0))
    assert (solution.stop_reason, solution.n_stages) == ("max_time", 0)
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


# --- planes and machines -------------------------------------------------------------------------


def test_kept_planes_leave_small_multipliers_out():
    X, y = separable()
    whole, part = (planes_of(rbf(X), y, smallest_kept=s)[0] for s in (0.0, 1e-3))
    for plane, kept in zip(whole, part, strict=True):
        expected = np.where(plane > 1e-3 * plane.max(), plane, 0.0)
        np.testing.assert_array_equal(kept, expected)


def test_many_planes_are_float32(monkeypatch):
    expected, _ = planes_of(rbf(separable()[0]), separable()[1], max_stages=20)
    monkeypatch.setattr("hardmargin.solvers.planes.MAX_FLOAT64_BYTES", 12 * 40 * 5)
    planes, solution = planes_of(rbf(separable()[0]), separable()[1], max_stages=20)
    assert solution.planes.dtype == np.float32
    np.testing.assert_allclose(planes, expected, rtol=1e-6)


@pytest.mark.parametrize(("n_bytes", "is_kept"), [(12 * 40 * 20, True), (12 * 40 * 20 - 1, False)])
def test_planes_are_kept_while_they_fit(n_bytes, is_kept):
    X, y = separable()
    solution = solve(rbf(X), y, max_stages=19, keep_planes=n_bytes)
    assert (solution.planes is not None) == is_kept


def test_no_planes_are_kept_unless_asked_for():
    X, y = separable()
    assert solve(rbf(X), y, keep_planes=MultiplicativeOptions().keep_planes).planes is None


def test_several_machines_equal_one_by_one():
    X, _ = separable()
    codes = np.digitize(X[:, 0], [-0.5, 0.5]).astype(np.int32)
    machines = [([0], [1]), ([0, 2], [1])]
    problem = Problem(StoredMatrix(rbf(X)), codes, machines)
    solutions = multiplicative.solve(problem, MultiplicativeOptions(max_stages=30))
    for machine, solution in enumerate(solutions):
        rows = problem.rows_of(machine)
        alone = solve(rbf(X[rows]), problem.labels_of(machine)[rows], max_stages=30)
        np.testing.assert_array_equal(solution.rows, rows)
        np.testing.assert_allclose(solution.coefficients, alone.coefficients, rtol=1e-8)
