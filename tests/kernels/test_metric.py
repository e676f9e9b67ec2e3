"""Distances and products stored for all rows, from which kernels of any gamma are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems.kernels import by_name, every_dtype, rows

from hardmargin.kernels import Kernel, KernelRows

KERNELS = (Kernel("rbf", gamma=0.004), Kernel("laplacian", gamma=0.01), Kernel("linear"))
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
PLENTY = 2**30


def wide(n=60, d=200):
    return rows(n, d)


def text(n=60):
    return sp.random_array((n, 6000), density=0.01, format="csr", rng=np.random.default_rng(0))


every_rows = pytest.mark.parametrize("make", [wide, text])


@every_kernel
@every_dtype
@every_rows
def test_stored_values_serve_every_gamma(kernel, dtype, make):
    X = make()
    stored = KernelRows(kernel, X, dtype).with_metric(PLENTY)
    some, others = np.array([3, 1, 50]), np.arange(7, 60, 2)
    for gamma in (kernel.gamma, 16 * kernel.gamma):
        other = replace(kernel, gamma=gamma)
        block = replace(stored, kernel=other).metric.block(gamma, some, others)
        assert block.dtype == dtype
        np.testing.assert_allclose(block, other.block(X[some], X[others]), rtol=2e-4, atol=1e-5)


@every_kernel
@every_rows
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_sums_from_stored_values_are_those_of_the_kernel(kernel, make, hold):
    plain = KernelRows(kernel, make())
    stored = plain.with_metric(PLENTY)
    coef = hold(rows(3, 20, 1) * (rows(3, 20, 2) > 0))
    queries, support = np.arange(40, 60), np.arange(0, 40, 2)
    expected = plain.expand(queries, support, coef)
    np.testing.assert_allclose(stored.expand(queries, support, coef), expected, rtol=1e-9)


def test_sums_of_a_precomputed_kernel_are_of_its_values():
    K, coef = KERNELS[0].block(wide()), rows(2, 3, 1)
    queries, support = np.array([1, 5]), np.array([9, 0, 30])
    sums = KernelRows(Kernel("precomputed"), K).expand(queries, support, coef)
    np.testing.assert_allclose(sums, K[np.ix_(queries, support)] @ coef.T)


two_valued = np.random.default_rng(0).integers(0, 2, size=(60, 300)).astype(float)


@pytest.mark.parametrize(
    ("X", "limits"),
    [
        pytest.param(wide(d=20), {}, id="narrow"),
        pytest.param(two_valued, {}, id="bits"),
        pytest.param(sp.csr_array(two_valued), {}, id="sparse bits"),
        pytest.param(wide(), {"memory_bytes": 60 * 60 * 8}, id="no memory for rows"),
        pytest.param(text(), {"memory_bytes": 60 * 60 * 8 - 1}, id="no memory"),
        pytest.param(wide(), {"n_columns": 3}, id="few columns"),
    ],
)
def test_values_that_cost_less_one_by_one_are_not_stored(X, limits):
    plain = KernelRows(KERNELS[0], X)
    assert plain.with_metric(**{"memory_bytes": PLENTY, **limits}).metric is None


@pytest.mark.parametrize(
    "kernel", [Kernel("poly"), Kernel("sigmoid"), Kernel("precomputed")], ids=by_name
)
def test_other_kernels_are_not_stored(kernel):
    assert KernelRows(kernel, wide(200)).with_metric(PLENTY).metric is None


def test_stored_values_of_another_kernel_are_refused():
    stored = KernelRows(KERNELS[0], wide()).with_metric(PLENTY)
    with pytest.raises(ValueError, match="'rbf', not of 'laplacian'"):
        replace(stored, kernel=KERNELS[1])


def test_some_of_the_rows_have_nothing_stored():
    stored = KernelRows(KERNELS[0], wide()).with_metric(PLENTY)
    assert stored.some(np.arange(5)).metric is None


@every_kernel
@every_dtype
def test_rows_about_their_mean_have_the_products_of_centred_rows(kernel, dtype):
    X, weights = wide() + 3.0, np.arange(60.0) % 4  # some weights are zero
    centred = X - np.average(X, axis=0, weights=weights)
    every, tolerance = np.arange(60), 1e-9 if dtype == "float64" else 1e-2
    for known in (KernelRows(kernel, X, dtype), KernelRows(kernel, X, dtype).with_metric(PLENTY)):
        about = known.about_mean(weights)
        np.testing.assert_allclose(about.X, centred, rtol=1e-9, atol=1e-12)
        values = about.expand(every, every, np.eye(60))
        np.testing.assert_allclose(values, kernel.block(centred), atol=tolerance)
