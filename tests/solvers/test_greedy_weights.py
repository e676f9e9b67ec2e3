"""The greedy solver with weighted rows."""

import numpy as np
import pytest
from problems.two_class import KERNELS, assert_same_path, mixed, oracle, small, solve

from hardmargin.kernels import Kernel


@pytest.mark.parametrize("name", ["rbf", "linear", "callable"])
def test_whole_weights_repeat_rows(name):
    X, y = small()
    times = np.random.default_rng(0).integers(1, 5, size=len(y))
    weighted = solve(KERNELS[name], X, y, weights=times.astype(float))
    repeated = solve(KERNELS[name], np.repeat(X, times, axis=0), np.repeat(y, times))
    original = np.repeat(np.arange(len(y)), times)
    assert weighted.history["row"].tolist() == original[repeated.history["row"]].tolist()
    np.testing.assert_allclose(
        weighted.history["step"], repeated.history["step"], rtol=1e-10, atol=1e-10
    )


def test_large_whole_weights_repeat_rows_that_contradict_each_other():
    X, y = np.array([[0.0], [0.01]]), np.array([1.0, -1.0])
    kernel = Kernel("rbf", gamma=1.0)
    weighted = solve(kernel, X, y, weights=np.array([20.0, 20.0]))
    repeated = solve(kernel, np.repeat(X, 20, axis=0), np.repeat(y, 20))
    np.testing.assert_allclose(weighted.history["step"], repeated.history["step"], rtol=1e-10)


@pytest.mark.parametrize("method", ["fused", "lazy"])
@pytest.mark.parametrize("max_visits", [1, 4])
def test_path_with_fractional_weights(max_visits, method):
    X, y = (a[:900] for a in mixed())
    weights = np.random.default_rng(0).uniform(0.1, 3.0, size=len(y))
    assert_same_path(
        solve(KERNELS["rbf"], X, y, weights=weights, max_visits=max_visits, method=method),
        oracle(KERNELS["rbf"], X, y, weights=weights, max_visits=max_visits),
    )


@pytest.mark.parametrize("max_visits", [1, 4])
def test_path_with_fractional_weights_and_any_diagonal(max_visits):
    X, y = small()
    weights = np.random.default_rng(0).uniform(0.1, 3.0, size=len(y))
    assert_same_path(
        solve(KERNELS["poly"], X, y, weights=weights, max_visits=max_visits),
        oracle(KERNELS["poly"], X, y, weights=weights, max_visits=max_visits),
    )


@pytest.mark.parametrize("name", ["rbf", "linear"])
@pytest.mark.parametrize("max_visits", [1, 4])
def test_weight_zero_is_absence(max_visits, name):
    X, y = small()
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    kept = np.flatnonzero(weights)
    solution = solve(KERNELS[name], X, y, weights=weights, max_visits=max_visits)
    path = oracle(KERNELS[name], X[kept], y[kept], max_visits=max_visits)
    assert solution.history["row"].tolist() == kept[path.order].tolist()


def test_weights_of_one_change_nothing():
    X, y = small()
    solution = solve(KERNELS["rbf"], X, y, weights=np.ones(len(y)))
    assert_same_path(solution, oracle(KERNELS["rbf"], X, y))
