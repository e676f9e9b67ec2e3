"""The greedy solver within limits of stages and time."""

import numpy as np
import pytest
from problems.two_class import KERNELS, assert_same_path, mixed, mixed_path, oracle, small, solve

from hardmargin.monitor import Monitor


@pytest.mark.parametrize("method", ["fused", "lazy"])
@pytest.mark.parametrize("max_visits", [1, 4])
def test_max_stages_cuts_the_path(max_visits, method):
    X, y = small()
    options = {"max_visits": max_visits, "method": method}
    whole = solve(KERNELS["rbf"], X, y, **options)
    cut = solve(KERNELS["rbf"], X, y, max_stages=17, **options)
    np.testing.assert_array_equal(cut.history["step"], whole.history["step"][:17])


def test_max_stages_is_the_reason():
    assert solve(KERNELS["rbf"], *small(), max_stages=17).stop_reason == "max_stages"


def test_a_path_that_ends_at_the_limit_has_converged():
    n_stages = solve(KERNELS["rbf"], *small()).n_stages
    assert solve(KERNELS["rbf"], *small(), max_stages=n_stages).stop_reason == "converged"


@pytest.mark.parametrize("method", ["fused", "lazy"])
def test_max_seconds_cuts_the_path(method):
    X, y = mixed()
    cut = solve(KERNELS["rbf"], X, y, method=method, monitor=Monitor(max_seconds=0.0))
    assert cut.stop_reason == "max_time"
    whole = mixed_path("rbf", 1).order
    assert cut.history["row"].tolist() == whole[: cut.n_stages].tolist()


def test_enough_seconds_change_nothing():
    X, y = small()
    solution = solve(KERNELS["rbf"], X, y, monitor=Monitor(max_seconds=1000.0))
    assert_same_path(solution, oracle(KERNELS["rbf"], X, y))
