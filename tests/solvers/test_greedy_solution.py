"""What a greedy solution reports about itself."""

import numpy as np
import pytest
from problems.two_class import KERNELS, STEP_TOL, alpha_of, gram, oracle, small, solve

from hardmargin.kernels import Kernel

ANY_VISITS = pytest.mark.parametrize("max_visits", [1, 4, 64])
DEFINITE_KERNELS = pytest.mark.parametrize(
    "name", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly"]
)


@ANY_VISITS
@DEFINITE_KERNELS
def test_losses_are_the_dual_objective(name, max_visits):
    X, y = (a[:80] for a in small())
    solution = solve(KERNELS[name], X, y, max_visits=max_visits)
    path = oracle(KERNELS[name], X, y, max_visits=max_visits)
    np.testing.assert_allclose(solution.history["loss"], path.losses, rtol=1e-9)


@ANY_VISITS
@DEFINITE_KERNELS
def test_losses_decrease(name, max_visits):
    solution = solve(KERNELS[name], *small(), max_visits=max_visits)
    assert (np.diff(solution.history["loss"], prepend=0.0) < 0).all()


@ANY_VISITS
@DEFINITE_KERNELS
def test_squared_norm_is_that_of_the_multipliers(name, max_visits):
    X, y = small()
    solution = solve(KERNELS[name], X, y, max_visits=max_visits)
    signed = y * alpha_of(solution, len(y))
    expected = signed @ gram(KERNELS[name], X) @ signed
    np.testing.assert_allclose(solution.squared_norm, expected, rtol=1e-9, atol=1e-9)


@ANY_VISITS
@DEFINITE_KERNELS
def test_certificate_of_a_converged_path_is_within_the_tolerance(name, max_visits):
    solution = solve(KERNELS[name], *small(), max_visits=max_visits, max_stages=100_000)
    assert solution.certificate <= (0.0 if max_visits == 1 else STEP_TOL)


@ANY_VISITS
@pytest.mark.parametrize("max_stages", [5, 20_000])
@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_certificate_bounds_the_steps_that_are_open(name, max_stages, max_visits):
    X, y = (a[:80] for a in small())
    solution = solve(KERNELS[name], X, y, max_visits=max_visits, max_stages=max_stages)
    path = oracle(KERNELS[name], X, y, max_visits=max_visits, max_stages=max_stages)
    assert solution.certificate >= path.open_change * (1 - 1e-9)


def test_reason_is_converged_when_no_gradient_is_negative():
    assert solve(KERNELS["rbf"], *small()).stop_reason == "converged"


def test_reason_is_exhausted_when_every_row_was_chosen():
    X, y = np.array([[0.0], [0.1]]), np.array([1.0, -1.0])
    assert solve(Kernel("rbf", gamma=1.0), X, y).stop_reason == "exhausted"
