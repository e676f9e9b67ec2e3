"""Small quadratic problems by pivoting, against non-negative least squares."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.core_sets.pivoting import solve_by_pivoting


def problem(n, rank, ridge, seed):
    A = np.random.default_rng(seed).normal(size=(n, rank))
    return A @ A.T + ridge * np.eye(n)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.sampled_from([1.0, 1e-3]), st.integers(0, 99))
def test_the_optimum_from_any_start(n, rank, ridge, seed):
    Q = problem(n, rank, ridge, seed)
    L = np.linalg.cholesky(Q)
    best, _ = nnls(L.T, scipy.linalg.solve_triangular(L, np.ones(n), lower=True))
    start = np.random.default_rng(seed).random(n) < 0.5
    alpha = solve_by_pivoting(Q, start, 1e-9)
    assert alpha is not None
    np.testing.assert_allclose(alpha, best, atol=1e-6 * best.max())


def test_what_is_not_positive_definite_is_refused():
    Q = np.array([[1.0, -2.0], [-2.0, 1.0]])
    assert solve_by_pivoting(Q, np.ones(2, dtype=bool), 1e-9) is None


def test_it_can_be_stopped():
    with pytest.raises(Stopped):
        solve_by_pivoting(np.eye(3), np.ones(3, dtype=bool), 1e-9, Monitor(max_seconds=0.0))
