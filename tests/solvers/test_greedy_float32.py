"""The greedy solver with kernel values in float32."""

import numpy as np
import pytest
from problems.two_class import KERNELS, alpha_of, gram, mixed, small, solve


@pytest.mark.parametrize("method", ["fused", "lazy", "bits", "lazy-bits"])
def test_float32_errs_like_float64(method):
    X, y = mixed(n=2200 + 2000, seed=5)
    train, test = slice(0, 2200), slice(2200, None)
    errors = []
    for dtype in ("float64", "float32"):
        solution = solve(KERNELS["rbf"], X[train], y[train], method=method, dtype=dtype)
        scores = gram(KERNELS["rbf"], X[test], X[train]) @ (y[train] * alpha_of(solution, 2200))
        errors.append(np.mean((scores > 0) != (y[test] > 0)))
    assert abs(errors[0] - errors[1]) <= 0.003


@pytest.mark.parametrize("name", KERNELS)
def test_float32_starts_like_float64(name):
    X, y = small()
    double, single = (
        solve(KERNELS[name], X, y, dtype=dtype, max_stages=10) for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(single.history["step"], double.history["step"], rtol=1e-4, atol=1e-4)
