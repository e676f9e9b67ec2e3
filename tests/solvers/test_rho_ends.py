"""The rho-SVM by multiplicative updates: every way to end, and any problem."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.kernels import kernel_matrix as gram
from problems.rho import (
    RBF,
    dozen,
    problem,
    rows_and_labels,
    solve,
    stopping_after,
)

from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.solvers.rho import RhoOptions

BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])


# --- every way to end -----------------------------------------------------------------------------


def test_ends_when_epsilon_falls_below_its_limit():
    assert solve(*problem()).stop_reason == "eps"


def test_a_smaller_epsilon_goes_further():
    near, far = (solve(*problem(), eps_stop=e) for e in (0.05, 0.001))
    assert far.history["rho"][-1] < near.history["rho"][-1]


def test_epsilon_is_halved_and_never_below_its_limit():
    epsilons = solve(*problem()).history["epsilon"]
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
    assert solution.history["epsilon"][0] < 0.45


def test_without_any_stage_the_ensemble_is_the_first_plane():
    solution = solve(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]))
    np.testing.assert_array_equal(solution.ensemble.coefficients, solution.planes[0])


def test_as_many_stages_as_requested():
    solution = dozen()
    assert (solution.stop_reason, solution.n_stages) == ("n_stages", 12)


def test_more_stages_than_eps_would_allow():
    n = solve(*problem()).n_stages + 20
    assert solve(*problem(), n_stages=n).n_stages == n


def test_a_path_that_cannot_go_on_ends_before_its_stages():
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
    assert solution.history["rho"][-1] < 0.1 * solution.history["rho"][0]


def test_a_kernel_of_zeros_leaves_no_margin():
    assert solve(np.zeros((3, 3)), np.array([1.0, -1.0, 1.0])).stop_reason == "rho_zero"


def test_an_indefinite_kernel_ends_below_zero():
    assert solve(-np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])).stop_reason == "rho_zero"


def test_a_rate_beyond_all_numbers_ends_the_path():
    K, y = np.diag([1e-310, 2e-310, 3e-310]), np.array([1.0, -1.0, 1.0])
    assert solve(K, y).stop_reason == "eta_zero"


def test_a_listener_ends_the_run():
    solution = solve(*problem(), monitor=stopping_after(4))
    assert (solution.stop_reason, solution.n_stages) == ("callback", 4)


def test_the_first_plane_is_there_however_short_the_time():
    solution = solve(*problem(), monitor=Monitor(max_seconds=0))
    assert (solution.stop_reason, len(solution.history["rho"])) == ("max_time", 1)


def test_listeners_hear_of_the_objective():
    heard = {}
    monitor = Monitor(listeners=[lambda event: heard.update({event.stage: event.value})])
    solution = solve(*problem(), n_stages=4, monitor=monitor)
    assert heard[3] == solution.history["rho"][3]


def test_exceptions_of_listeners_come_through():
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(*problem(), monitor=Monitor(listeners=[interrupt]))


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
        RhoOptions(**options)


@pytest.mark.parametrize("constraint", ["equality", "midpoint"])
@pytest.mark.parametrize("rho", [None, 0.0, -1.0])
def test_a_known_optimum_needs_one(constraint, rho):
    with pytest.raises(ValueError, match="rho > 0"):
        RhoOptions(constraint=constraint, rho=rho)


# --- any problem ----------------------------------------------------------------------------------

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
    arrays = (solution.planes.ravel(), solution.ensemble.coefficients, *solution.history.values())
    numbers = [solution.ensemble.intercept, solution.certificate, solution.rho_lower_bound]
    assert np.isfinite(np.concatenate([*arrays, numbers])).all()


@ANY_PROBLEM
@FEW
@example(SAME_SPOT)
def test_the_objective_never_rises_on_any_problem(any_problem):
    assert (np.diff(solve_any(any_problem).history["rho"]) <= 0).all()


@ANY_PROBLEM
@FEW
@example(SAME_SPOT)
def test_multipliers_add_up_to_one(any_problem):
    solution = solve_any(any_problem)
    signed = (*solution.planes, solution.ensemble.coefficients)
    sums = [np.abs(v).sum() for v in signed]
    np.testing.assert_allclose(sums, 1.0, rtol=1e-10)


@ANY_PROBLEM
@FEW
def test_multipliers_are_not_negative(any_problem):
    solution = solve_any(any_problem)
    y = any_problem[1]
    assert min((y * solution.planes).min(), (y * solution.ensemble.coefficients).min()) >= 0


@ANY_PROBLEM
@FEW
def test_the_certificate_is_between_nothing_and_the_objective(any_problem):
    assert 0 <= solve_any(any_problem).certificate <= 1
