"""The kernel operations against the naive oracle, whatever the shape and memory of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles.kernels import kernel_matrix
from problems.kernels import (
    DISTANCE,
    DTYPES,
    PRODUCT,
    assert_close,
    by_name,
    distance_kernel,
    every_dtype,
    every_kernel,
    rows,
)
from scipy.spatial.distance import cdist

from hardmargin.kernels import Kernel, KernelSum, make_kernel

# Queries, support rows and features around the tile's 8 doubles, 16 floats, 64 queries and 24
# support rows.
SHAPES = (
    (1, 1, 1),
    (1, 25, 3),
    (8, 3, 33),
    (17, 9, 8),
    (63, 23, 17),
    (64, 24, 16),
    (65, 26, 1),
    (130, 49, 5),
)


def any_rows(largest: float = 1e3) -> st.SearchStrategy[np.ndarray]:
    """Numbers of any size, and few-valued ones that make constant and two-valued columns."""
    anything = st.floats(-largest, largest, allow_subnormal=False)
    shapes = st.tuples(st.integers(1, 40), st.integers(1, 9))
    return shapes.flatmap(
        lambda shape: st.one_of(
            arrays(np.float64, shape, elements=anything),
            arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0])),
            arrays(np.float64, shape, elements=st.sampled_from([-2.0, 1.5, 9.0])),
        )
    )


gammas = st.floats(1e-6, 1e3)
properties = settings(max_examples=40, deadline=None)


# Shapes


@pytest.mark.once_per("shape", "kernel")
@every_kernel
@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_block_agrees_with_oracle_for_any_shape(kernel, dtype, shape):
    n, m, d = shape
    X, Z = rows(n, d, 1), rows(m, d, 2)
    block = kernel.block(X, Z, dtype=dtype)
    assert block.dtype == dtype
    assert_close(block, kernel_matrix(kernel, X, Z), dtype)


@every_kernel
def test_block_of_no_queries_is_empty(kernel):
    assert kernel.block(np.empty((0, 3)), rows(5, 3)).shape == (0, 5)


@every_kernel
def test_block_without_second_argument_is_of_the_rows_themselves(kernel):
    X = rows(19, 4)
    assert_close(kernel.block(X), kernel_matrix(kernel, X), "float64")


@every_kernel
@every_dtype
def test_columns_agree_with_oracle(kernel, dtype):
    X, chosen = rows(37, 5), [30, 2, 2, 11]
    assert_close(kernel.columns(X, chosen, dtype=dtype), kernel_matrix(kernel, X, X[chosen]), dtype)


@every_kernel
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_diagonal_agrees_with_oracle(kernel, hold):
    X = rows(21, 6)
    diagonal = kernel.diagonal(hold(X))
    assert diagonal.dtype == np.float64
    assert_close(diagonal, np.diag(kernel_matrix(kernel, X)), "float64")


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e20])
@pytest.mark.parametrize("shape", [(0, 3), (5, 3)], ids=str)
def test_the_diagonal_of_sparse_float32_rows_has_no_squares_in_float32(size, shape):
    X = (size * rows(*shape)).astype(np.float32)
    expected = (X.astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(Kernel("linear").diagonal(sp.csr_array(X)), expected, rtol=1e-15)


@every_kernel
@every_dtype
@pytest.mark.parametrize("n_right", [None, 1, 7])
def test_product_agrees_with_oracle(kernel, dtype, n_right):
    X, Z = rows(70, 5, 1), rows(50, 5, 2)
    V = np.random.default_rng(3).normal(size=50 if n_right is None else (50, n_right))
    expected = kernel_matrix(kernel, X, Z) @ V
    product = kernel.product(X, V, Z, dtype=dtype)
    assert product.shape == expected.shape
    assert product.dtype == np.float64
    assert_close(product, expected, dtype)


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 2.5])
def test_poly_of_any_degree_agrees_with_oracle(degree):
    kernel, X = Kernel("poly", gamma=0.5, degree=degree, coef0=1.0), np.abs(rows(20, 3))
    assert_close(kernel.block(X), kernel_matrix(kernel, X), "float64")


# Expansions


@pytest.mark.once_per("hold", "kernel")
@every_kernel
@every_dtype
@pytest.mark.parametrize("n_machines", [1, 5, 13])
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_expand_agrees_with_oracle(kernel, dtype, n_machines, hold):
    Q, S = rows(67, 4, 1), rows(53, 4, 2)
    coef = np.random.default_rng(3).normal(size=(n_machines, 53))
    sums = kernel.expand(Q, S, hold(coef), dtype=dtype)
    assert_close(sums, kernel_matrix(kernel, Q, S) @ coef.T, dtype)


@every_dtype
def test_expand_of_machines_with_few_support_rows_each(dtype):
    """Blocks of 24 support rows serve different machines; one machine and one row are unused."""
    kernel, generator = DISTANCE[0], np.random.default_rng(4)
    Q, S = rows(70, 3, 1), rows(120, 3, 2)
    coef = generator.normal(size=(15, 120)) * (generator.random((15, 120)) < 0.05)
    coef[4] = 0.0
    coef[:, 60] = 0.0
    sums = kernel.expand(Q, S, sp.csr_array(coef), dtype=dtype)
    assert_close(sums, kernel_matrix(kernel, Q, S) @ coef.T, dtype)


@every_kernel
def test_expand_over_no_support_rows_is_zero(kernel):
    sums = kernel.expand(rows(9, 3), np.empty((0, 3)), np.empty((2, 0)))
    np.testing.assert_array_equal(sums, np.zeros((9, 2)))


def test_expand_does_not_depend_on_the_order_of_support_rows():
    kernel, generator = DISTANCE[0], np.random.default_rng(5)
    Q, S, coef = rows(40, 3, 1), rows(77, 3, 2), generator.normal(size=(3, 77))
    order = generator.permutation(77)
    assert_close(kernel.expand(Q, S[order], coef[:, order]), kernel.expand(Q, S, coef), "float64")


# Memory


def in_every_order(X: np.ndarray, folder: Any) -> dict[str, np.ndarray]:
    n, d = X.shape
    padded = np.full((2 * n, 3 * d), np.nan, dtype=X.dtype)
    padded[::2, ::3] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    np.save(folder / "rows.npy", X)
    return {
        "C": np.ascontiguousarray(X),
        "Fortran": np.asfortranarray(X),
        "strided": padded[::2, ::3],
        "reversed": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "read-only": frozen,
        "memory-mapped": np.load(folder / "rows.npy", mmap_mode="r"),
    }


@pytest.mark.once_per("order", "held")
@pytest.mark.parametrize("kernel", [DISTANCE[0], PRODUCT[1]], ids=by_name)
@every_dtype
@pytest.mark.parametrize("held", DTYPES)
@pytest.mark.parametrize(
    "order", ["C", "Fortran", "strided", "reversed", "read-only", "memory-mapped"]
)
def test_rows_are_read_as_they_lie(kernel, dtype, held, order, tmp_path):
    """A float64 kernel takes float32 rows as exact numbers and loses no precision."""
    X = rows(35, 7).astype(held)
    laid_out = in_every_order(X, tmp_path)[order]
    before = laid_out.copy()
    assert_close(
        kernel.block(laid_out, laid_out[:20], dtype=dtype), kernel_matrix(kernel, X, X[:20]), dtype
    )
    np.testing.assert_array_equal(laid_out, before)


@distance_kernel
@every_dtype
@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_distance_kernels_keep_their_precision_far_from_the_origin(kernel, dtype, offset):
    X = rows(41, 6) + offset
    assert_close(kernel.block(X, X[:9], dtype=dtype), kernel_matrix(kernel, X, X[:9]), dtype)


@distance_kernel
@every_dtype
def test_huge_values_leave_kernel_values_in_the_unit_interval(kernel, dtype):
    X = np.array([[1e200, 0.0, 1.0], [-1e200, 5.0, 1.0], [1e-200, 1e300, -1e300]])
    block = kernel.block(X, dtype=dtype)
    assert ((block >= 0) & (block <= 1)).all()


@distance_kernel
@every_dtype
def test_huge_rows_are_as_near_to_themselves_as_others(kernel, dtype):
    X = np.array([[1e200, 0.0], [-1e200, 1.0], [3.0, 1e100]])
    np.testing.assert_array_equal(np.diag(kernel.block(X, dtype=dtype)), 1.0)


@every_kernel
@every_dtype
def test_number_of_threads_does_not_change_a_bit(kernel, dtype):
    X, Z = rows(700, 5, 1), rows(60, 5, 2)
    one, two = (kernel.block(X, Z, dtype=dtype, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@every_dtype
def test_number_of_threads_does_not_change_an_expansion(dtype):
    Q, S, coef = rows(700, 5, 1), rows(60, 5, 2), rows(4, 60, 3)
    one, two = (DISTANCE[0].expand(Q, S, coef, dtype=dtype, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


# Stored matrices and functions


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_precomputed_kernel_gives_back_what_it_got(hold):
    K, V = rows(6, 6), rows(6, 2, 1)
    kernel = Kernel("precomputed")
    np.testing.assert_array_equal(kernel.block(hold(K)), K)
    np.testing.assert_array_equal(kernel.columns(hold(K), [4, 1]), K[:, [4, 1]])
    np.testing.assert_array_equal(kernel.diagonal(hold(K)), np.diag(K))
    np.testing.assert_allclose(kernel.product(hold(K), V), K @ V)


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("hold_coef", [np.asarray, sp.csr_array], ids=["dense coef", "csr coef"])
def test_precomputed_expand_multiplies(hold, hold_coef):
    K, coef = rows(8, 5), rows(3, 5, 1)
    sums = Kernel("precomputed").expand(hold(K), None, hold_coef(coef))
    np.testing.assert_allclose(sums, K @ coef.T)


def cosine_sum(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.cos(X[:, None, :] - Z[None, :, :]).sum(axis=2)


@pytest.mark.parametrize("hold_coef", [np.asarray, sp.csr_array], ids=["dense coef", "csr coef"])
def test_callable_kernel_is_called(hold_coef):
    X, Z, coef = rows(9, 3), rows(7, 3, 1), rows(2, 7, 2)
    kernel, K = make_kernel(cosine_sum, X), cosine_sum(X, Z)
    np.testing.assert_allclose(kernel.block(X, Z), K)
    np.testing.assert_allclose(kernel.columns(X, [5]), cosine_sum(X, X[[5]]))
    np.testing.assert_allclose(kernel.diagonal(X), np.full(9, 3.0))
    np.testing.assert_allclose(kernel.product(X, coef[0], Z), K @ coef[0])
    np.testing.assert_allclose(kernel.expand(X, Z, hold_coef(coef)), K @ coef.T)


@pytest.mark.parametrize("result", [np.ones(4), np.ones((4, 1)), 1.0])
def test_callable_kernel_of_wrong_shape_is_refused(result):
    kernel = make_kernel(lambda X, Z: result, rows(4, 2))
    with pytest.raises(ValueError, match=r"kernel returned an array of shape .*\(4, 4\)"):
        kernel.block(rows(4, 2))


# Sums of kernels


def spread_out(coef: np.ndarray, container: Any) -> Any:
    """Coefficients with half of them zero, as arrays or CSR."""
    return container(np.where(np.arange(coef.shape[1]) % 2, coef, 0.0))


@every_dtype
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["array", "csr coef"])
@pytest.mark.parametrize("n_machines", [1, 3])
@pytest.mark.parametrize("n_kernels", [1, 2, 5, 8])
def test_a_sum_expands_every_kernel(dtype, hold, container, n_machines, n_kernels):
    kernels = (*DISTANCE, *PRODUCT)[:n_kernels]
    Q, S = rows(33, 4, 1), rows(26, 4, 2)
    coef = np.random.default_rng(3).normal(size=(n_machines, 26 * n_kernels))
    given = spread_out(coef, container)
    values = np.hstack([kernel_matrix(kernel, Q, S) for kernel in kernels])
    expected = values @ spread_out(coef, np.asarray).T
    assert_close(KernelSum(kernels).expand(hold(Q), hold(S), given, dtype=dtype), expected, dtype)


def test_a_sum_of_one_kernel_is_that_kernel():
    Q, S, coef = rows(33, 4, 1), rows(26, 4, 2), np.ones((2, 26))
    for kernel in DISTANCE + PRODUCT:
        np.testing.assert_array_equal(
            KernelSum((kernel,)).expand(Q, S, coef), kernel.expand(Q, S, coef)
        )


@distance_kernel
@every_dtype
@pytest.mark.parametrize("ratios", [(1, 4), (16, 1, 4), (1, 3, 12), (64, 1, 1, 1024)], ids=str)
def test_a_sum_of_kernels_whose_values_are_powers_of_each_other(kernel, dtype, ratios):
    kernels = tuple(replace(kernel, gamma=ratio * kernel.gamma) for ratio in ratios)
    Q, S = rows(70, 5, 1), rows(90, 5, 2)
    coef = np.random.default_rng(3).normal(size=(2, 90 * len(kernels)))
    values = np.hstack([kernel_matrix(one, Q, S) for one in kernels])
    assert_close(KernelSum(kernels).expand(Q, S, coef, dtype=dtype), values @ coef.T, dtype)


def test_a_sum_has_the_gamma_of_its_first_kernel():
    both = KernelSum(DISTANCE)
    assert (both.name, both.gamma) == ("sum", DISTANCE[0].gamma)


def test_threads_change_no_bit_of_a_sum():
    Q, S, coef = rows(300, 4, 1), rows(90, 4, 2), rows(2, 90 * len(DISTANCE), 3)
    one, two = (KernelSum(DISTANCE).expand(Q, S, coef, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


# Distances

METRICS = {
    "rbf": "sqeuclidean",
    "laplacian": "cityblock",
    "matern32": "sqeuclidean",
    "matern52": "sqeuclidean",
}


@distance_kernel
@every_dtype
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("shape", [(1, 1), (8, 3), (65, 17), (130, 5)], ids=str)
def test_distances_are_those_of_the_kernel(kernel, dtype, hold, shape):
    X = rows(*shape) * (np.abs(rows(*shape)) > 0.4)
    found = Kernel(METRICS[kernel.name]).block(hold(X), dtype=dtype)
    assert found.dtype == dtype
    assert_close(found, cdist(X, X, METRICS[kernel.name]), dtype)
    np.testing.assert_array_equal(np.diag(found), 0.0)
    np.testing.assert_array_equal(found, found.T)


@distance_kernel
@every_dtype
def test_distances_of_two_valued_columns(kernel, dtype):
    """They are packed as bits, of equal and of unequal steps."""
    bits = np.random.default_rng(0).integers(2, size=(130, 40)).astype(float)
    for X in (bits, bits * np.arange(1, 41), np.hstack([bits, rows(130, 3)])):
        assert_close(
            Kernel(METRICS[kernel.name]).block(X, dtype=dtype),
            cdist(X, X, METRICS[kernel.name]),
            dtype,
        )


@distance_kernel
def test_threads_change_no_bit_of_the_distances(kernel):
    one, two = (Kernel(METRICS[kernel.name]).block(rows(300, 4), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@distance_kernel
@properties
@given(X=any_rows())
def test_distances_of_any_rows(kernel, X):
    found = Kernel(METRICS[kernel.name]).block(X)
    expected = cdist(X, X, METRICS[kernel.name])
    assert (found >= 0).all()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(X).max() ** 2)


# Errors


def test_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match=r"kernel must be one of .*'spline'"):
        Kernel("spline")


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_rows_of_different_width_are_refused(hold):
    with pytest.raises(ValueError, match=r"3.*2|2.*3"):
        DISTANCE[0].block(hold(rows(4, 3)), hold(rows(4, 2)))


@pytest.mark.parametrize("n_coef", [4, 6])
def test_coefficients_for_another_number_of_rows_are_refused(n_coef):
    with pytest.raises(ValueError, match=rf"{n_coef}.*5|5.*{n_coef}"):
        DISTANCE[0].expand(rows(3, 2), rows(5, 2), np.ones((1, n_coef)))


def test_rows_of_another_type_are_refused():
    with pytest.raises(TypeError, match="float32 or float64"):
        DISTANCE[0].block(np.eye(3, dtype=np.int64))


# Properties


@distance_kernel
@every_dtype
@properties
@given(X=any_rows(), gamma=gammas)
def test_distance_kernel_has_a_diagonal_of_exactly_one(kernel, dtype, X, gamma):
    block = replace(kernel, gamma=gamma).block(X, dtype=dtype)
    np.testing.assert_array_equal(np.diag(block), 1.0)


@distance_kernel
@every_dtype
@properties
@given(X=any_rows(), gamma=gammas)
def test_distance_kernel_lies_in_the_unit_interval(kernel, dtype, X, gamma):
    block = replace(kernel, gamma=gamma).block(X, dtype=dtype)
    assert ((block >= 0) & (block <= 1)).all()


@every_kernel
@every_dtype
@properties
@given(X=any_rows())
def test_kernel_matrix_is_symmetric(kernel, dtype, X):
    block = kernel.block(X, dtype=dtype)
    np.testing.assert_array_equal(block, block.T)


@distance_kernel
@properties
@given(X=any_rows(largest=10), gamma=st.floats(1e-6, 10))
def test_distance_kernel_of_any_rows_agrees_with_oracle(kernel, X, gamma):
    kernel = replace(kernel, gamma=gamma)
    np.testing.assert_allclose(kernel.block(X), kernel_matrix(kernel, X), rtol=1e-12, atol=1e-15)
