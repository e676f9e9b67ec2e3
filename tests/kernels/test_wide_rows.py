"""Kernels of wide rows, whose distances come from products and norms."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix
from problems.kernels import assert_close, by_name, every_dtype, rows
from scipy.spatial.distance import cdist

from hardmargin.kernels import METRICS, Kernel

WIDE = (
    Kernel("rbf", gamma=0.01),
    Kernel("laplacian", gamma=0.01),
    Kernel("matern32", gamma=0.01),
    Kernel("matern52", gamma=0.01),
    Kernel("linear"),
    Kernel("cosine"),
    Kernel("poly", gamma=0.01, degree=2, coef0=1.0),
    Kernel("sigmoid", gamma=0.002, coef0=0.1),
)
DISTANCE = WIDE[:4]
every_kernel = pytest.mark.parametrize("kernel", WIDE, ids=by_name)
distance_kernel = pytest.mark.parametrize("kernel", DISTANCE, ids=by_name)


def dense(n, seed=0):
    """Enough numbers that rows are wide, in more than one run of features."""
    return rows(n, 700, seed)


def with_bits(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.hstack([rng.normal(size=(n, 70)), rng.integers(0, 2, size=(n, 90))])


def sparse(n, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 6000), density=0.02, format="csr", rng=rng)
    X.data -= 0.3
    return X


every_rows = pytest.mark.parametrize("make", [dense, with_bits, sparse])


@functools.cache
def exact_block(kernel, make, n_rows, n_columns):
    """What the oracle says, for all dtypes."""
    return kernel_matrix(kernel, make(n_rows, 1), make(n_columns, 2))


@pytest.mark.once_per("make", "dtype", "kernel")
@every_kernel
@every_dtype
@every_rows
@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (17, 6), (64, 64), (130, 65)], ids=str)
def test_block_agrees_with_oracle(kernel, dtype, make, shape):
    X, Z = make(shape[0], 1), make(shape[1], 2)
    block = kernel.block(X, Z, dtype=dtype)
    expected = exact_block(kernel, make, *shape)
    # A product cancels as far as its rows are long.
    scale = 1.0 if kernel in DISTANCE else np.abs(expected).max() + 10
    atol = scale * (1e-12 if dtype == "float64" else 1e-5)
    np.testing.assert_allclose(block, expected, rtol=0, atol=atol)


@pytest.mark.once_per("make", "kernel")
@every_kernel
@every_dtype
@every_rows
def test_expand_is_the_product_with_the_block(kernel, dtype, make):
    Q, S, coef = make(130, 1), make(65, 2), rows(3, 65, 3)
    sums = kernel.expand(Q, S, coef, dtype=dtype)
    expected = exact_block(kernel, make, 130, 65) @ coef.T
    atol = np.abs(expected).max() * (1e-12 if dtype == "float64" else 2e-5)
    np.testing.assert_allclose(sums, expected, rtol=0, atol=atol)


@every_kernel
@every_dtype
@pytest.mark.parametrize("make", [dense, sparse])
def test_a_query_does_not_depend_on_the_others(kernel, dtype, make):
    Q, S, coef = make(150, 1), make(90, 2), rows(2, 90, 3)
    together = kernel.expand(Q, S, coef, dtype=dtype)
    for part in (slice(0, 1), slice(5, 22), slice(63, 129), slice(149, 150)):
        alone = kernel.expand(Q[part], S, coef, dtype=dtype)
        np.testing.assert_array_equal(alone, together[part])


@distance_kernel
@every_dtype
@every_rows
def test_equal_rows_have_a_value_of_exactly_one(kernel, dtype, make):
    X = make(70)
    copies = X.copy()
    np.testing.assert_array_equal(kernel.block(X, dtype=dtype).diagonal(), 1.0)
    np.testing.assert_array_equal(kernel.block(X, copies, dtype=dtype).diagonal(), 1.0)


@pytest.mark.once_per("make", "kernel")
@every_kernel
@every_dtype
@every_rows
def test_the_matrix_of_rows_is_that_of_their_copies(kernel, dtype, make):
    X = make(130)
    block = kernel.block(X, dtype=dtype)
    np.testing.assert_array_equal(block, block.T)
    np.testing.assert_array_equal(block, kernel.block(X, X.copy(), dtype=dtype))


@pytest.mark.once_per("make", "kernel")
@distance_kernel
@every_dtype
@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e12])
def test_near_rows_far_from_the_others_keep_their_precision(kernel, dtype, make, size):
    X = make(40).astype(np.float32).astype(np.float64) * 2.0 ** np.round(np.log2(size))
    near = X.copy()
    if sp.issparse(X):
        near.data[::50] *= 1 + 2**-10
    else:
        near[:, ::50] *= 1 + 2**-10
    X = sp.vstack([X, near]).tocsr() if sp.issparse(X) else np.vstack([X, near])
    D = Kernel(METRICS[kernel.name]).block(X)
    kernel = Kernel(kernel.name, gamma=1.0 / np.median(np.diag(D, 40)))
    block = kernel.block(X, dtype=dtype)
    expected = [kernel_matrix(kernel, X[[i]], X[[i + 40]])[0, 0] for i in range(40)]
    # Rounding the numbers themselves to float32 moves near rows.
    tolerance = 1e-11 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(np.diag(block, 40), expected, rtol=tolerance)


@pytest.mark.once_per("hold", "kernel")
@distance_kernel
@every_dtype
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("size", [1e18, 1e37, 1e160, 1e300])
def test_huge_rows_are_near_to_themselves_alone(kernel, dtype, hold, size):
    X = hold(rows(20, 5000) * size)
    block = kernel.block(X, dtype=dtype)
    assert ((block >= 0) & (block <= 1)).all()
    np.testing.assert_array_equal(np.diag(block), 1.0)
    assert block[0, 1] < 1e-30


@every_dtype
@every_rows
@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_distances_have_a_small_relative_error(dtype, make, metric):
    X = make(90)
    near = X * (1 + 2**-8)
    X = sp.vstack([X, near]).tocsr() if sp.issparse(X) else np.vstack([X, near])
    D = Kernel(metric).block(X, dtype=dtype)
    table = X.toarray() if sp.issparse(X) else X
    rtol = 1e-11 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(D, cdist(table, table, metric), rtol=rtol)


@every_dtype
def test_dense_and_sparse_rows_can_be_mixed(dtype):
    X, Z = sparse(30, 1), sparse(20, 2)
    for kernel in WIDE:
        expected = kernel.block(X, Z)
        for queries, support in ((X.toarray(), Z), (X, Z.toarray())):
            assert_close(kernel.block(queries, support, dtype=dtype), expected, dtype)


def test_many_small_groups_of_two_valued_columns_stay_numbers():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random(30), 6) * rng.integers(0, 2, size=(50, 180))
    for kernel in DISTANCE:
        assert_close(kernel.block(X), kernel_matrix(kernel, X), "float64")
