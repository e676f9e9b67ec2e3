"""The rho-SVM by multiplicative updates against its oracle, and every way to end."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.kernels import kernel_matrix as gram
from oracles.rho import algorithm_1, optimum
from problems.rho import (
    RBF,
    best_of,
    oracle_path,
    problem,
    rows_and_labels,
    solve,
    weights_of,
)

from hardmargin.kernels import Kernel
from hardmargin.kernels.low_rank import low_rank_matrix
from hardmargin.kernels.matrix import StoredMatrix, StreamedMatrix, kernel_matrix
from hardmargin.solvers.rho import ProjectionOptions, solve_projection

BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])

#: Rates are found to 1e-6; what differs in a dozen stages is of that order.
CLOSE = {"rtol": 1e-5, "atol": 1e-12}


def dozen(bias=False, weighted=False, **options):
    K, y = problem()
    weights = weights_of(len(y)) if weighted else None
    return solve(K, y, weights=weights, fit_intercept=bias, n_stages=12, **options)


# --- the path ------------------------------------------------------------------------------------


@BIAS
@WEIGHTED
def test_the_first_plane_has_the_weights(bias, weighted):
    start = dozen(bias, weighted).start
    np.testing.assert_allclose(start, oracle_path(bias, weighted=weighted).planes[0], rtol=1e-14)


@BIAS
@WEIGHTED
def test_one_stage_equals_the_oracle(bias, weighted):
    K, y = problem()
    weights = weights_of(len(y)) if weighted else None
    solution = solve(K, y, weights=weights, fit_intercept=bias, n_stages=1)
    expected = oracle_path(bias, weighted=weighted).planes[1]
    np.testing.assert_allclose(solution.alpha, expected, rtol=1e-6)


@BIAS
@WEIGHTED
@pytest.mark.parametrize("name", ["rates", "biases", "epsilons", "rhos", "ensemble", "intercept"])
def test_a_dozen_stages_equal_the_oracle(bias, weighted, name):
    expected = getattr(oracle_path(bias, weighted=weighted), name)
    np.testing.assert_allclose(getattr(dozen(bias, weighted), name), expected, **CLOSE)


@BIAS
@WEIGHTED
def test_the_last_plane_of_a_dozen_stages_equals_the_oracle(bias, weighted):
    expected = oracle_path(bias, weighted=weighted).planes[-1]
    np.testing.assert_allclose(dozen(bias, weighted).alpha, expected, **CLOSE)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
@BIAS
def test_other_kernels_equal_the_oracle(kernel, bias):
    X, y = rows_and_labels()
    K = gram(Kernel(kernel, gamma=0.5, coef0=1.0, degree=3), X) + (kernel == "linear") * np.eye(60)
    expected = algorithm_1(K, y, bias=bias, n_stages=12)
    solution = solve(K, y, fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(solution.rhos, expected.rhos, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-24, 1e-9, 1e9, 1e24])
def test_the_scale_of_the_kernel_changes_no_multiplier(scale):
    K, y = problem()
    np.testing.assert_allclose(solve(scale * K, y, n_stages=12).alpha, dozen().alpha, rtol=1e-5)


@BIAS
def test_every_rate_puts_the_mean_margin_on_its_level(bias):
    K, y = problem()
    planes = []
    solution = solve(
        K, y, fit_intercept=bias, n_stages=30, observe=lambda _, signed: planes.append(signed)
    )
    means = [after @ K @ before for before, after in pairwise(planes)]
    levels = solution.rhos[:-1] / (1 + solution.epsilons)
    np.testing.assert_allclose(means, levels, rtol=1e-6)


@BIAS
@WEIGHTED
def test_the_objective_never_rises(bias, weighted):
    K, y = problem()
    weights = weights_of(len(y)) if weighted else None
    rhos = solve(K, y, weights=weights, fit_intercept=bias).rhos
    assert (np.diff(rhos) <= 0).all()


@BIAS
def test_the_last_objective_is_that_of_the_last_plane(bias):
    K, y = problem()
    solution = solve(K, y, fit_intercept=bias)
    signed = y * solution.alpha
    assert solution.rhos[-1] == pytest.approx(signed @ K @ signed, rel=1e-12)


@BIAS
@WEIGHTED
def test_the_vote_is_the_logarithm_of_the_multipliers(bias, weighted):
    K, y = problem()
    w = weights_of(len(y)) if weighted else np.ones(len(y))
    solution = solve(K, y, weights=w, fit_intercept=bias)
    vote = K @ (y * solution.ensemble) + solution.intercept
    constant = solution.rates.sum() * y * vote + np.log(solution.alpha / w)
    assert np.ptp(constant) < 1e-6


def test_with_bias_each_class_has_half_of_the_mass():
    K, y = problem()
    solution = solve(K, y, fit_intercept=True)
    masses = [v[y > 0].sum() for v in (solution.start, solution.alpha, solution.ensemble)]
    assert masses == pytest.approx([0.5, 0.5, 0.5], rel=1e-12)


def test_plane_intercepts_even_out_the_least_margins():
    K, y = problem()
    solution = solve(K, y, fit_intercept=True, n_stages=5)
    margins = y * (K @ (y * solution.alpha) + solution.plane_intercepts[-1])
    assert margins[y > 0].min() == pytest.approx(margins[y < 0].min(), rel=1e-10)


def test_without_bias_there_are_no_intercepts():
    solution = dozen()
    values = [*solution.biases, *solution.plane_intercepts, solution.intercept]
    assert values == [0.0] * 26


@pytest.mark.parametrize("name", ["rates", "biases", "epsilons"])
def test_one_value_a_stage(name):
    assert len(getattr(dozen(), name)) == 12


@pytest.mark.parametrize("name", ["rhos", "plane_intercepts"])
def test_one_value_a_plane(name):
    assert len(getattr(dozen(), name)) == 13


# --- every way to end ----------------------------------------------------------------------------


def test_ends_when_epsilon_falls_below_its_limit():
    assert solve(*problem()).stop_reason == "eps"


def test_a_smaller_epsilon_goes_further():
    near, far = (solve(*problem(), eps_stop=e) for e in (0.05, 0.001))
    assert far.rhos[-1] < near.rhos[-1]


def test_epsilon_is_halved_and_never_below_its_limit():
    epsilons = solve(*problem()).epsilons
    assert set(np.log2(0.1 / epsilons).round(9)) <= {0.0, 1.0, 2.0, 3.0, 4.0}


def test_an_infeasible_half_space_halves_epsilon():
    # At the optimum of a symmetric problem no half-space below it meets the simplex.
    solution = solve(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]))
    assert (solution.stop_reason, solution.n_stages) == ("eps", 0)


def test_an_overshoot_halves_epsilon():
    # The half-space asks for most of the mass on the first row, which alone has an objective of 9.
    Kt = np.array([[9.0, -4.0, -4.0], [-4.0, 4.0, 2.0], [-4.0, 2.0, 4.0]])
    y = np.array([1.0, -1.0, -1.0])
    solution = solve(np.outer(y, y) * Kt, y, eps_start=0.45, n_stages=1)
    assert solution.epsilons[0] < 0.45


def test_without_any_stage_the_ensemble_is_the_first_plane():
    solution = solve(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]))
    np.testing.assert_array_equal(solution.ensemble, solution.start)


def test_as_many_stages_as_asked_for():
    solution = dozen()
    assert (solution.stop_reason, solution.n_stages) == ("n_stages", 12)


def test_more_stages_than_eps_would_allow():
    n = solve(*problem()).n_stages + 20
    assert solve(*problem(), n_stages=n).n_stages == n


def test_a_path_that_can_not_go_on_ends_before_its_stages():
    solution = solve(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), n_stages=5)
    assert (solution.stop_reason, solution.n_stages) == ("eps", 0)


def test_the_limit_on_the_stages():
    solution = solve(*problem(), max_stages=3)
    assert (solution.stop_reason, solution.n_stages) == ("max_stages", 3)


@BIAS
def test_conflicting_duplicates_leave_no_margin(bias):
    K, y = np.ones((2, 2)), np.array([1.0, -1.0])
    assert solve(K, y, fit_intercept=bias).stop_reason == "rho_zero"


@BIAS
def test_conflicting_duplicates_among_others_go_towards_zero(bias):
    X, y = rows_and_labels(20)
    K = gram(RBF, np.vstack([X, X[:1]]))
    solution = solve(K, np.append(y, -y[0]), fit_intercept=bias, n_stages=300)
    assert solution.rhos[-1] < 0.1 * solution.rhos[0]


def test_a_kernel_of_zeros_leaves_no_margin():
    assert solve(np.zeros((3, 3)), np.array([1.0, -1.0, 1.0])).stop_reason == "rho_zero"


def test_an_indefinite_kernel_ends_below_zero():
    assert solve(-np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])).stop_reason == "rho_zero"


def test_a_rate_beyond_all_numbers_ends_the_path():
    K, y = np.diag([1e-310, 2e-310, 3e-310]), np.array([1.0, -1.0, 1.0])
    assert solve(K, y).stop_reason == "eta_zero"


def test_keep_going_ends_the_run():
    solution = solve(*problem(), keep_going=lambda stages, _: stages < 4)
    assert (solution.stop_reason, solution.n_stages) == ("max_time", 4)


def test_the_first_plane_is_there_however_short_the_time():
    solution = solve(*problem(), keep_going=lambda *_: False)
    assert (solution.stop_reason, len(solution.rhos)) == ("max_time", 1)


def test_keep_going_sees_the_objective():
    seen = []
    solution = solve(
        *problem(), n_stages=4, keep_going=lambda stage, rho: not seen.append((stage, rho))
    )
    assert dict(seen)[3] == solution.rhos[3]


def test_exceptions_of_keep_going_come_through():
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(*problem(), keep_going=interrupt)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kernels_that_are_not_finite_are_refused(value):
    K, y = np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
    K[1, 2] = K[2, 1] = value
    with pytest.raises(ValueError, match="finite"):
        solve(K, y)


@pytest.mark.parametrize("labels", [[1.0, 1.0], [-1.0, -1.0], [1.0, 0.0]])
def test_both_labels_are_needed(labels):
    with pytest.raises(ValueError, match="both labels"):
        solve(np.eye(2), np.array(labels))


@pytest.mark.parametrize("options", [{"constraint": "rate"}, {"constraint": "rate", "rate": 0.0}])
def test_a_fixed_rate_needs_a_rate(options):
    with pytest.raises(ValueError, match="rate > 0"):
        ProjectionOptions(**options)


@pytest.mark.parametrize("constraint", ["equality", "midpoint"])
@pytest.mark.parametrize("rho", [None, 0.0, -1.0])
def test_a_known_optimum_needs_one(constraint, rho):
    with pytest.raises(ValueError, match="rho > 0"):
        ProjectionOptions(constraint=constraint, rho=rho)


# --- a known optimum -----------------------------------------------------------------------------


@BIAS
def test_the_midpoint_form_converges(bias):
    solution = solve(*problem(), constraint="midpoint", rho=best_of(bias), fit_intercept=bias)
    assert solution.stop_reason == "converged"


@BIAS
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_the_midpoint_form_reaches_the_optimum(bias, tol):
    solution = solve(
        *problem(), constraint="midpoint", rho=best_of(bias), fit_intercept=bias, tol=tol
    )
    assert best_of(bias) * (1 - 1e-9) <= solution.rhos[-1] <= best_of(bias) * (1 + tol)


def test_the_printed_equality_can_be_infeasible():
    # The first row is the optimum: all margins of the first plane are above it.
    K, y = np.array([[1.0, -1.5], [-1.5, 4.0]]), np.array([1.0, -1.0])
    solution = solve(K, y, constraint="equality", rho=1.0)
    assert (solution.stop_reason, solution.n_stages) == ("infeasible", 0)


def test_the_midpoint_is_feasible_where_the_equality_is_not():
    K, y = np.array([[1.0, -1.5], [-1.5, 4.0]]), np.array([1.0, -1.0])
    assert solve(K, y, constraint="midpoint", rho=1.0).stop_reason == "converged"


def test_the_printed_equality_projects_on_the_optimum():
    K, y = problem()
    planes = []
    solve(
        K,
        y,
        constraint="equality",
        rho=best_of(),
        n_stages=1,
        observe=lambda _, p: planes.append(p),
    )
    assert planes[1] @ K @ planes[0] == pytest.approx(best_of(), rel=1e-5)


# --- a fixed rate --------------------------------------------------------------------------------


@BIAS
def test_a_small_fixed_rate_never_raises_the_objective(bias):
    K, y = problem()
    solution = solve(K, y, constraint="rate", rate=1.0, n_stages=200, fit_intercept=bias)
    assert solution.stop_reason == "n_stages"
    assert (np.diff(solution.rhos) <= 0).all()


def test_a_large_fixed_rate_overshoots():
    assert solve(*problem(), constraint="rate", rate=1e4).stop_reason == "overshoot"


@BIAS
def test_a_fixed_rate_equals_the_oracle(bias):
    K, y = problem()
    expected = algorithm_1(K, y, bias=bias, rate=2.0, n_stages=12)
    solution = solve(K, y, constraint="rate", rate=2.0, n_stages=12, fit_intercept=bias)
    np.testing.assert_allclose(solution.rhos, expected.rhos, rtol=1e-10)


def test_a_fixed_rate_on_the_scale_of_the_margin():
    solution = solve(*problem(), constraint="rate", rate=0.05, rate_scale="margin", n_stages=8)
    np.testing.assert_allclose(solution.rates * solution.rhos[:-1], 0.05, rtol=1e-12)


def test_a_fixed_rate_converges_to_a_known_optimum():
    solution = solve(*problem(), constraint="rate", rate=2.0, rho=best_of(), tol=0.1)
    assert solution.stop_reason == "converged"


# --- the certificate -----------------------------------------------------------------------------


@BIAS
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("eps_stop", [0.05, 0.001])
def test_the_optimum_is_within_the_certificate(bias, seed, eps_stop):
    K, y = problem(24, seed=seed)
    solution = solve(K, y, fit_intercept=bias, eps_stop=eps_stop)
    best = optimum(K, y, bias=bias)[0]
    assert solution.rho_lower_bound <= best * (1 + 1e-9)
    assert best <= solution.rhos[-1] * (1 + 1e-9)


@BIAS
def test_the_certificate_closes_at_the_optimum(bias):
    y = np.array([1.0, -1.0, 1.0, -1.0])
    assert solve(np.eye(4), y, fit_intercept=bias).gap == pytest.approx(0.0, abs=1e-12)


def test_no_margin_leaves_the_certificate_open():
    assert solve(np.ones((2, 2)), np.array([1.0, -1.0])).gap == 1.0


# --- weights, machines, matrices -----------------------------------------------------------------


@BIAS
def test_a_weight_of_two_is_the_row_twice(bias):
    K, y = problem()
    twice = np.array([3, 3, 8, 8, 21, 21])
    rows = np.concatenate([np.delete(np.arange(len(y)), [3, 8, 21]), twice])
    weights = np.ones(len(y))
    weights[[3, 8, 21]] = 2.0
    weighted = solve(K, y, weights=weights, fit_intercept=bias, n_stages=12)
    copied = solve(K[np.ix_(rows, rows)], y[rows], fit_intercept=bias, n_stages=12)
    sums = np.bincount(rows, copied.ensemble, minlength=len(y))
    np.testing.assert_allclose(weighted.ensemble, sums, rtol=1e-6)


@BIAS
def test_a_weight_of_zero_is_absence(bias):
    K, y = problem()
    weights = weights_of(len(y))
    weights[::4] = 0.0
    rows = np.flatnonzero(weights)
    weighted = solve(K, y, weights=weights, fit_intercept=bias, n_stages=12)
    absent = solve(
        K[np.ix_(rows, rows)], y[rows], weights=weights[rows], fit_intercept=bias, n_stages=12
    )
    np.testing.assert_allclose(weighted.alpha, absent.alpha, rtol=1e-9)


def test_a_label_of_zero_is_absence():
    K, y = problem()
    rows = np.arange(0, len(y), 2)
    some = np.zeros(len(y))
    some[rows] = y[rows]
    alone = solve(K[np.ix_(rows, rows)], y[rows], n_stages=12)
    np.testing.assert_allclose(solve(K, some, n_stages=12).alpha, alone.alpha, rtol=1e-9)


def test_rows_are_those_that_take_part():
    K, y = problem()
    some, weights = y.copy(), np.ones(len(y))
    some[:5], weights[5:10] = 0.0, 0.0
    np.testing.assert_array_equal(
        solve(K, some, weights=weights, n_stages=1).rows, np.arange(10, len(y))
    )


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_the_weights_changes_nothing(scale):
    K, y = problem()
    w = weights_of(len(y))
    scaled, plain = (solve(K, y, weights=v, n_stages=12) for v in (scale * w, w))
    np.testing.assert_allclose(scaled.alpha, plain.alpha, rtol=1e-6)


@BIAS
def test_the_least_of_weights_leaves_a_finite_path(bias):
    K, y = problem()
    weights = np.ones(len(y))
    weights[:30] = 5e-324
    solution = solve(K, y, weights=weights, fit_intercept=bias, n_stages=12)
    assert np.isfinite([*solution.alpha, *solution.ensemble, solution.intercept]).all()


def several():
    """Three machines, one on some of the rows, one that ends early."""
    K, y = problem()
    X, _ = rows_and_labels()
    labels = np.column_stack([y, np.where(X[:, 2] > 0, 1.0, -1.0), y])
    labels[::3, 2] = 0.0
    return K, labels


@BIAS
@pytest.mark.parametrize("machine", range(3))
def test_several_machines_equal_one_by_one(bias, machine):
    K, labels = several()
    options = ProjectionOptions(fit_intercept=bias, n_stages=12)
    together = solve_projection(StoredMatrix(K), labels, options=options)[machine]
    alone = solve(K, labels[:, machine], fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(together.alpha, alone.alpha, rtol=1e-9)


def test_a_machine_that_ends_leaves_the_others_running():
    K, labels = several()
    labels[:, 1] = 0.0
    labels[:2, 1] = [1.0, -1.0]  # ends at once
    solutions = solve_projection(StoredMatrix(K), labels)
    alone = solve(K, labels[:, 0])
    assert solutions[0].rhos[-1] == pytest.approx(alone.rhos[-1], rel=0.05)


def test_weights_of_each_machine():
    K, labels = several()
    weights = np.column_stack([weights_of(len(K), seed=s) for s in range(3)])
    options = ProjectionOptions(n_stages=6)
    together = solve_projection(StoredMatrix(K), labels, weights=weights, options=options)
    alone = solve(K, labels[:, 1], weights=weights[:, 1], n_stages=6)
    np.testing.assert_allclose(together[1].alpha, alone.alpha, rtol=1e-9)


@BIAS
def test_streamed_equals_stored(bias):
    X, y = rows_and_labels()
    solution = solve(StreamedMatrix(RBF, X), y, fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(solution.alpha, dozen(bias).alpha, rtol=1e-6)


@BIAS
@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky"])
def test_low_rank_at_full_rank_equals_the_full_kernel(bias, landmarks):
    X, y = rows_and_labels()
    matrix = low_rank_matrix(RBF, X, len(X), landmarks=landmarks)
    solution = solve(matrix, y, fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(solution.alpha, dozen(bias).alpha, rtol=1e-5)


def test_float32_values_lead_along_the_same_path():
    X, y = rows_and_labels()
    solution = solve(kernel_matrix(RBF, X, dtype="float32"), y, n_stages=12)
    np.testing.assert_allclose(solution.rhos, dozen().rhos, rtol=1e-4)


# --- observe -------------------------------------------------------------------------------------


def observed(**options):
    planes = []
    solution = solve(*problem(), observe=lambda _, signed: planes.append(signed), **options)
    return solution, np.array(planes)


@pytest.mark.parametrize("options", [{}, {"n_stages": 12}, {"fit_intercept": True}])
def test_every_plane_is_observed(options):
    solution, planes = observed(**options)
    assert len(planes) == solution.n_stages + 1


def test_observed_planes_are_those_of_the_objectives():
    K, _ = problem()
    solution, planes = observed(n_stages=12)
    np.testing.assert_allclose(np.einsum("ti,ij,tj->t", planes, K, planes), solution.rhos)


def test_the_ensemble_is_the_mean_of_all_observed_planes_but_the_last():
    _, y = problem()
    solution, planes = observed()
    vote = solution.rates @ planes[:-1] / solution.rates.sum()
    np.testing.assert_allclose(y * solution.ensemble, vote, rtol=1e-10)


def test_planes_of_several_machines_carry_their_number():
    K, labels = several()
    counts = np.zeros(3, dtype=int)

    def count(machine, signed):
        counts[machine] += len(signed) == (labels[:, machine] != 0).sum()

    solutions = solve_projection(StoredMatrix(K), labels, observe=count)
    assert counts.tolist() == [s.n_stages + 1 for s in solutions]


# --- any problem ---------------------------------------------------------------------------------

KERNELS = {
    "rbf": RBF,
    "laplacian": Kernel("laplacian", gamma=0.3),
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.3, degree=3, coef0=1.0),
    "indefinite": Kernel("sigmoid", gamma=0.2, coef0=-0.8),
}


@st.composite
def grid_problems(draw):
    """Rows on a coarse grid with weights: duplicates, opposite labels on one spot, lone classes."""
    n = draw(st.integers(2, 16))
    values = st.sampled_from([0.0, 1.0, -2.0, 0.5])
    X = np.array(draw(st.lists(st.lists(values, min_size=2, max_size=2), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    y[:2] = [1.0, -1.0]
    weights = st.sampled_from([1.0, 1e-12, 3.0, 1e6])
    w = np.array(draw(st.lists(weights, min_size=n, max_size=n)))
    name = draw(st.sampled_from(sorted(KERNELS)))
    return gram(KERNELS[name], X), y, w, draw(st.booleans())


SAME_SPOT = (np.ones((4, 4)), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4), False)
ANY_PROBLEM = given(any_problem=grid_problems())
FEW = settings(deadline=None, max_examples=50)


def solve_any(any_problem):
    K, y, w, bias = any_problem
    return solve(K, y, weights=w, fit_intercept=bias, max_stages=60)


@ANY_PROBLEM
@FEW
@example(SAME_SPOT)
def test_everything_is_finite(any_problem):
    solution = solve_any(any_problem)
    arrays = (solution.alpha, solution.ensemble, solution.rates, solution.biases, solution.rhos)
    assert np.isfinite([*np.concatenate(arrays), solution.intercept, solution.gap]).all()


@ANY_PROBLEM
@FEW
@example(SAME_SPOT)
def test_the_objective_never_rises_on_any_problem(any_problem):
    assert (np.diff(solve_any(any_problem).rhos) <= 0).all()


@ANY_PROBLEM
@FEW
@example(SAME_SPOT)
def test_multipliers_add_up_to_one(any_problem):
    solution = solve_any(any_problem)
    sums = [v.sum() for v in (solution.start, solution.alpha, solution.ensemble)]
    np.testing.assert_allclose(sums, 1.0, rtol=1e-10)


@ANY_PROBLEM
@FEW
def test_multipliers_are_not_negative(any_problem):
    solution = solve_any(any_problem)
    assert min(solution.alpha.min(), solution.ensemble.min()) >= 0


@ANY_PROBLEM
@FEW
def test_the_certificate_is_between_nothing_and_the_objective(any_problem):
    assert 0 <= solve_any(any_problem).gap <= 1
