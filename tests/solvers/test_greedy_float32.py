"""The greedy solver with kernel values in float32."""

import numpy as np
import pytest
from problems.two_class import KERNELS, alpha_of, gram, mixed, small, solve


@pytest.mark.parametrize("method", ["fused", "lazy", "bits", "lazy-bits"])
def test_float32_errs_like_float64(method):
    X, y = mixed(n=2200 + 2000, seed=5)
    train, test = slice(0, 2200), slice(2200, None)
    errors = []
    for exact in (True, False):
        solution = solve(KERNELS["rbf"], X[train], y[train], method=method, exact=exact)
        scores = gram(KERNELS["rbf"], X[test], X[train]) @ (y[train] * alpha_of(solution, 2200))
        errors.append(np.mean((scores > 0) != (y[test] > 0)))
    assert abs(errors[0] - errors[1]) <= 0.003


@pytest.mark.parametrize("name", KERNELS)
def test_float32_starts_like_float64(name):
    X, y = small()
    exact, fast = (solve(KERNELS[name], X, y, exact=e, max_stages=10) for e in (True, False))
    np.testing.assert_allclose(fast.stage_steps, exact.stage_steps, rtol=1e-4, atol=1e-4)
