"""What the tests of the kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardmargin.kernels import Kernel

DISTANCE = (
    Kernel("rbf", gamma=0.3),
    Kernel("laplacian", gamma=0.2),
    Kernel("matern32", gamma=0.3),
    Kernel("matern52", gamma=0.3),
)
PRODUCT = (
    Kernel("linear"),
    Kernel("cosine"),
    Kernel("poly", gamma=0.5, degree=3, coef0=1.0),
    Kernel("sigmoid", gamma=0.1, coef0=-0.5),
)
DTYPES = ("float64", "float32")


def by_name(kernel: Kernel) -> str:
    return kernel.name


every_kernel = pytest.mark.parametrize("kernel", DISTANCE + PRODUCT, ids=by_name)
distance_kernel = pytest.mark.parametrize("kernel", DISTANCE, ids=by_name)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def assert_close(actual: Any, expected: Any, dtype: str) -> None:
    # The tolerance is relative to the largest value too: sums of products cancel.
    rtol = 1e-12 if dtype == "float64" else 1e-5
    largest = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=0.1 * rtol * largest)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))
