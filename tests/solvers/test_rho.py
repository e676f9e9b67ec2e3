"""The rho-SVM by multiplicative updates against its oracle."""

from itertools import pairwise

import numpy as np
import pytest
from oracles.kernels import kernel_matrix as gram
from oracles.rho import algorithm_1, optimum
from problems.rho import (
    alpha_of,
    best_of,
    dozen,
    oracle_path,
    problem,
    rows_and_labels,
    solve,
    weights_of,
)

from hardmargin.kernels import Kernel

BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])

#: Rounding grows by about a half per stage: a dozen stages agree to at least ten digits.
CLOSE = {"rtol": 1e-10, "atol": 1e-14}


# --- the path -------------------------------------------------------------------------------------


@BIAS
@WEIGHTED
def test_the_first_plane_has_the_weights(bias, weighted):
    start = np.abs(dozen(bias, weighted).planes[0])
    np.testing.assert_allclose(start, oracle_path(bias, weighted=weighted).planes[0], rtol=1e-14)


@BIAS
@WEIGHTED
def test_one_stage_equals_the_oracle(bias, weighted):
    K, y = problem()
    weights = weights_of(len(y)) if weighted else None
    solution = solve(K, y, weights=weights, fit_intercept=bias, n_stages=1)
    expected = oracle_path(bias, weighted=weighted).planes[1]
    np.testing.assert_allclose(alpha_of(solution), expected, rtol=1e-12)


@BIAS
@WEIGHTED
@pytest.mark.parametrize(
    ("name", "of_oracle"),
    [("rate", "rates"), ("bias", "biases"), ("epsilon", "epsilons"), ("rho", "rhos")],
)
def test_a_dozen_stages_equal_the_oracle(bias, weighted, name, of_oracle):
    expected = getattr(oracle_path(bias, weighted=weighted), of_oracle)
    np.testing.assert_allclose(dozen(bias, weighted).history[name], expected, **CLOSE)


@BIAS
@WEIGHTED
def test_the_vote_of_a_dozen_stages_equals_the_oracle(bias, weighted):
    expected = oracle_path(bias, weighted=weighted)
    vote = dozen(bias, weighted).ensemble
    np.testing.assert_allclose(alpha_of(vote), expected.ensemble, **CLOSE)
    np.testing.assert_allclose(vote.intercept, expected.intercept, **CLOSE)


@BIAS
@WEIGHTED
def test_the_last_plane_of_a_dozen_stages_equals_the_oracle(bias, weighted):
    expected = oracle_path(bias, weighted=weighted).planes[-1]
    np.testing.assert_allclose(alpha_of(dozen(bias, weighted)), expected, **CLOSE)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
@BIAS
def test_other_kernels_equal_the_oracle(kernel, bias):
    X, y = rows_and_labels()
    K = gram(Kernel(kernel, gamma=0.5, coef0=1.0, degree=3), X) + (kernel == "linear") * np.eye(60)
    expected = algorithm_1(K, y, bias=bias, n_stages=12)
    solution = solve(K, y, fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(solution.history["rho"], expected.rhos, **CLOSE)


@pytest.mark.parametrize("scale", [1e-24, 1e-9, 1e9, 1e24])
def test_the_scale_of_the_kernel_changes_no_multiplier(scale):
    K, y = problem()
    np.testing.assert_allclose(
        alpha_of(solve(scale * K, y, n_stages=12)), alpha_of(dozen()), **CLOSE
    )


@BIAS
def test_every_rate_puts_the_mean_margin_on_its_level(bias):
    K, y = problem()
    solution = solve(K, y, fit_intercept=bias, n_stages=30)
    means = [after @ K @ before for before, after in pairwise(solution.planes)]
    levels = solution.history["rho"][:-1] / (1 + solution.history["epsilon"])
    np.testing.assert_allclose(means, levels, rtol=1e-12)


@BIAS
@WEIGHTED
def test_the_objective_never_rises(bias, weighted):
    K, y = problem()
    weights = weights_of(len(y)) if weighted else None
    rhos = solve(K, y, weights=weights, fit_intercept=bias).history["rho"]
    assert (np.diff(rhos) <= 0).all()


@BIAS
@WEIGHTED
def test_cosines_are_those_between_planes(bias, weighted):
    """Eq. (17): as the level is the objective over 1 + epsilon, they follow from the objectives."""
    K, y = problem()
    solution = dozen(bias, weighted)
    w = [y * alpha for alpha in oracle_path(bias, weighted=weighted).planes]
    expected = [a @ K @ b / np.sqrt((a @ K @ a) * (b @ K @ b)) for a, b in pairwise(w)]
    np.testing.assert_allclose(solution.history["cosine"], expected, **CLOSE)
    rhos, epsilons = solution.history["rho"], solution.history["epsilon"]
    ratios = np.sqrt(rhos[:-1] / rhos[1:]) / (1 + epsilons)
    np.testing.assert_allclose(solution.history["cosine"], ratios, **CLOSE)


@BIAS
def test_the_last_objective_is_that_of_the_last_plane(bias):
    K, y = problem()
    solution = solve(K, y, fit_intercept=bias)
    signed = solution.coefficients
    assert solution.history["rho"][-1] == pytest.approx(signed @ K @ signed, rel=1e-12)


@BIAS
@WEIGHTED
def test_the_vote_is_the_logarithm_of_the_multipliers(bias, weighted):
    K, y = problem()
    w = weights_of(len(y)) if weighted else np.ones(len(y))
    solution = solve(K, y, weights=w, fit_intercept=bias)
    vote = K @ solution.ensemble.coefficients + solution.ensemble.intercept
    constant = solution.history["rate"].sum() * y * vote + np.log(alpha_of(solution) / w)
    assert np.ptp(constant) < 1e-6


def test_with_bias_each_class_has_half_of_the_mass():
    K, y = problem()
    solution = solve(K, y, fit_intercept=True)
    signed = (solution.planes[0], solution.coefficients, solution.ensemble.coefficients)
    masses = [np.abs(v)[y > 0].sum() for v in signed]
    assert masses == pytest.approx([0.5, 0.5, 0.5], rel=1e-12)


def test_plane_intercepts_even_out_the_least_margins():
    K, y = problem()
    solution = solve(K, y, fit_intercept=True, n_stages=5)
    margins = y * (K @ solution.coefficients + solution.intercept)
    assert solution.intercept == solution.history["intercept"][-1]
    assert margins[y > 0].min() == pytest.approx(margins[y < 0].min(), rel=1e-10)


def test_without_bias_there_are_no_intercepts():
    solution = dozen()
    history = solution.history
    values = [*history["bias"], *history["intercept"], solution.ensemble.intercept]
    assert values == [0.0] * 26


@pytest.mark.parametrize("name", ["rate", "bias", "epsilon"])
def test_one_value_per_stage(name):
    assert len(dozen().history[name]) == 12


@pytest.mark.parametrize("name", ["rho", "intercept"])
def test_one_value_per_plane(name):
    assert len(dozen().history[name]) == 13


# --- a known optimum ------------------------------------------------------------------------------


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
    assert best_of(bias) * (1 - 1e-9) <= solution.history["rho"][-1] <= best_of(bias) * (1 + tol)


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
    planes = solve(K, y, constraint="equality", rho=best_of(), n_stages=1).planes
    assert planes[1] @ K @ planes[0] == pytest.approx(best_of(), rel=1e-5)


# --- a fixed rate ---------------------------------------------------------------------------------


@BIAS
def test_a_small_fixed_rate_never_raises_the_objective(bias):
    K, y = problem()
    solution = solve(K, y, constraint="rate", rate=1.0, n_stages=200, fit_intercept=bias)
    assert solution.stop_reason == "n_stages"
    assert (np.diff(solution.history["rho"]) <= 0).all()


def test_a_large_fixed_rate_overshoots():
    assert solve(*problem(), constraint="rate", rate=1e4).stop_reason == "overshoot"


@BIAS
def test_a_fixed_rate_equals_the_oracle(bias):
    K, y = problem()
    expected = algorithm_1(K, y, bias=bias, rate=2.0, n_stages=12)
    solution = solve(K, y, constraint="rate", rate=2.0, n_stages=12, fit_intercept=bias)
    np.testing.assert_allclose(solution.history["rho"], expected.rhos, rtol=1e-10)


def test_a_fixed_rate_on_the_scale_of_the_margin():
    solution = solve(*problem(), constraint="rate", rate=0.05, rate_scale="margin", n_stages=8)
    np.testing.assert_allclose(
        solution.history["rate"] * solution.history["rho"][:-1], 0.05, rtol=1e-12
    )


def test_a_fixed_rate_converges_to_a_known_optimum():
    solution = solve(*problem(), constraint="rate", rate=2.0, rho=best_of(), tol=0.1)
    assert solution.stop_reason == "converged"


# --- the certificate ------------------------------------------------------------------------------


@BIAS
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("eps_stop", [0.05, 0.001])
def test_the_optimum_is_within_the_certificate(bias, seed, eps_stop):
    K, y = problem(24, seed=seed)
    solution = solve(K, y, fit_intercept=bias, eps_stop=eps_stop)
    best = optimum(K, y, bias=bias)[0]
    assert solution.rho_lower_bound <= best * (1 + 1e-9)
    assert best <= solution.history["rho"][-1] * (1 + 1e-9)


@BIAS
def test_the_certificate_closes_at_the_optimum(bias):
    y = np.array([1.0, -1.0, 1.0, -1.0])
    assert solve(np.eye(4), y, fit_intercept=bias).certificate == pytest.approx(0.0, abs=1e-12)


def test_no_margin_leaves_the_certificate_open():
    assert solve(np.ones((2, 2)), np.array([1.0, -1.0])).certificate == 1.0
