"""Kernels of rows that are packed in special ways: sparse ones and two-valued columns."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles.kernels import kernel_matrix
from problems.kernels import (
    DISTANCE,
    PRODUCT,
    assert_close,
    by_name,
    distance_kernel,
    every_dtype,
    every_kernel,
    rows,
)


def sparse_rows(n: int, d: int, density: float, seed: int = 0) -> sp.csr_array:
    generator = np.random.default_rng(seed)
    entries = generator.normal(size=(n, d)) * (generator.random((n, d)) < density)
    entries[n // 2] = 0.0
    return sp.csr_array(entries)


# Sparse rows: narrow or well filled ones are packed into tiles, wide and empty ones are not.

WIDTHS = {"narrow": (40, 0.2), "filled": (600, 0.2), "thin": (600, 0.02), "wide": (5000, 0.01)}


@functools.cache
def exact_block(kernel, width, n_rows, n_columns):
    """What the oracle says, for all dtypes and formats."""
    X, Z = (sparse_rows(n, *WIDTHS[width], seed=n) for n in (n_rows, n_columns))
    return kernel_matrix(kernel, X, Z)


@pytest.mark.once_per("width", "kernel")
@every_kernel
@every_dtype
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("hold", [sp.csr_array, sp.csr_matrix])
def test_sparse_block_agrees_with_oracle(kernel, dtype, width, hold):
    X, Z = (hold(sparse_rows(n, *WIDTHS[width], seed=n)) for n in (70, 27))
    assert_close(kernel.block(X, Z, dtype=dtype), exact_block(kernel, width, 70, 27), dtype)


@every_kernel
@pytest.mark.parametrize("width", WIDTHS)
def test_sparse_expand_agrees_with_oracle(kernel, width):
    Q, S = (sparse_rows(n, *WIDTHS[width], seed=n) for n in (70, 27))
    coef = rows(7, 27)
    expected = exact_block(kernel, width, 70, 27) @ coef.T
    assert_close(kernel.expand(Q, S, coef), expected, "float64")


@every_kernel
@pytest.mark.parametrize("width", ["narrow", "wide"])
@pytest.mark.parametrize("dense_side", ["queries", "support"])
def test_dense_and_sparse_rows_mix(kernel, width, dense_side):
    X, Z = (sparse_rows(n, *WIDTHS[width], seed=n) for n in (18, 27))
    expected = kernel_matrix(kernel, X, Z)
    X, Z = (X.toarray(), Z) if dense_side == "queries" else (X, Z.toarray())
    assert_close(kernel.block(X, Z), expected, "float64")


def with_int64_indices(X: sp.csr_array) -> sp.csr_array:
    held = X.copy()
    held.indices, held.indptr = held.indices.astype(np.int64), held.indptr.astype(np.int64)
    return held


def with_explicit_zeros(X: sp.csr_array) -> sp.csr_array:
    held = X.copy()
    held.data[::3] = 0.0
    return held


def with_unsorted_indices(X: sp.csr_array) -> sp.csr_array:
    flipped = X[:, ::-1].tocsr()
    return sp.csr_array(
        (flipped.data, X.shape[1] - 1 - flipped.indices, flipped.indptr), shape=X.shape
    )


def with_duplicate_entries(X: sp.csr_array) -> sp.csr_array:
    """Every entry is stored as two halves, as CSR allows; its value is their sum."""
    return sp.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )


def in_float32(X: sp.csr_array) -> sp.csr_array:
    return X.astype(np.float32)


@pytest.mark.once_per("hold", "width")
@pytest.mark.parametrize("kernel", [*DISTANCE, PRODUCT[0]], ids=by_name)
@pytest.mark.parametrize("width", ["narrow", "wide"])
@pytest.mark.parametrize(
    "hold",
    [
        with_int64_indices,
        with_explicit_zeros,
        with_unsorted_indices,
        with_duplicate_entries,
        in_float32,
    ],
)
def test_sparse_storage_does_not_matter(kernel, width, hold):
    X, Z = (hold(sparse_rows(n, *WIDTHS[width], seed=n)) for n in (31, 29))
    assert_close(kernel.block(X, Z), kernel_matrix(kernel, X, Z), "float64")


@pytest.mark.parametrize("form", [sp.csc_array, sp.coo_array])
def test_sparse_rows_in_another_format_are_refused(form):
    with pytest.raises((TypeError, ValueError), match=r"(?i)csr"):
        DISTANCE[0].block(form(np.eye(3)))


@distance_kernel
@pytest.mark.parametrize("n_columns", [9, 5000])
@settings(max_examples=40, deadline=None)
@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.just(9)),
        elements=st.one_of(st.just(0.0), st.floats(-10, 10, allow_subnormal=False)),
    ),
    gamma=st.floats(1e-6, 1e2),
)
def test_any_sparse_rows_agree_with_oracle(kernel, n_columns, X, gamma):
    """Distances of wide rows come from norms and products, so errors are absolute."""
    kernel, entries = replace(kernel, gamma=gamma), sp.coo_array(X)
    places = (entries.row, entries.col * (n_columns // 9))
    held = sp.csr_array((entries.data, places), shape=(len(X), n_columns))
    block = kernel.block(held)
    np.testing.assert_array_equal(np.diag(block), 1.0)
    np.testing.assert_allclose(block, kernel_matrix(kernel, X), rtol=1e-12, atol=1e-10)


# Two-valued columns are packed as bits, in groups of equal step.


def two_valued_rows(n: int, groups: dict[float, int], n_others: int = 2) -> np.ndarray:
    """Columns of {low, low + step}, as many of each step as `groups` says, and continuous ones."""
    generator = np.random.default_rng(n)
    parts = [generator.normal(size=(n, n_others)), np.full((n, 1), 7.0)]
    for step, n_columns in groups.items():
        low = generator.integers(-2, 3, size=n_columns).astype(np.float64)
        parts.append(low + step * generator.integers(0, 2, size=(n, n_columns)))
    X = np.hstack(parts)
    return X[:, generator.permutation(X.shape[1])]


GROUPS = {
    "one word": {1.0: 9},
    "several words": {1.0: 71},
    "several steps": {1.0: 40, 0.5: 33, 2.0: 5, 4.0: 3},
}


@distance_kernel
@every_dtype
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("n_others", [0, 2])
def test_two_valued_columns_agree_with_oracle(kernel, dtype, groups, n_others):
    kernel = replace(kernel, gamma=0.02)
    X = two_valued_rows(75, GROUPS[groups], n_others)
    assert_close(kernel.block(X, X[:30], dtype=dtype), kernel_matrix(kernel, X, X[:30]), dtype)


@distance_kernel
@every_dtype
def test_counts_of_differing_bits_do_not_overflow(kernel, dtype):
    kernel = replace(kernel, gamma=1e-3)
    X = np.vstack([np.zeros(1500), np.ones(1500), np.arange(1500) % 2])
    assert_close(kernel.block(X, dtype=dtype), kernel_matrix(kernel, X), dtype)


@distance_kernel
@pytest.mark.parametrize("strange", ["queries", "support"])
def test_values_outside_the_two_of_a_column_count_as_they_are(kernel, strange):
    kernel = replace(kernel, gamma=0.05)
    X = two_valued_rows(40, {1.0: 12})
    Y = X[:11].copy()
    Y[3] += 0.5
    pair = (Y, X) if strange == "queries" else (X, Y)
    assert_close(kernel.block(*pair), kernel_matrix(kernel, *pair), "float64")


def one_hot(codes: np.ndarray, n_categories: int) -> np.ndarray:
    """Encode categories; code -1 stands for none of them."""
    return (codes[:, None] == np.arange(n_categories)).astype(np.float64)


@pytest.mark.once_per("n_categories", "dtype")
@distance_kernel
@every_dtype
@pytest.mark.parametrize("n_categories", [6, 12, 300])
@pytest.mark.parametrize("some_have_none", [False, True], ids=["complete", "partial"])
def test_one_hot_columns_agree_with_oracle(kernel, dtype, n_categories, some_have_none):
    generator = np.random.default_rng(6)
    codes = generator.integers(-1 if some_have_none else 0, n_categories, size=(2, 90))
    mixed = np.hstack([one_hot(c, n_categories) for c in codes] + [rows(90, 2)])
    X = mixed[:, generator.permutation(mixed.shape[1])]
    assert_close(kernel.block(X, X[:50], dtype=dtype), kernel_matrix(kernel, X, X[:50]), dtype)


@distance_kernel
@pytest.mark.parametrize("strange", ["queries", "support"])
def test_rows_of_two_categories_count_as_they_are(kernel, strange):
    X = one_hot(np.arange(60) % 20, 20)
    Y = np.vstack([X[:5] + X[1:6], np.zeros(20), np.ones(20)])
    pair = (Y, X) if strange == "queries" else (X, Y)
    assert_close(kernel.block(*pair), kernel_matrix(kernel, *pair), "float64")


@distance_kernel
def test_many_one_hot_variables_do_not_overflow(kernel):
    kernel = replace(kernel, gamma=1e-3)
    codes = np.random.default_rng(7).integers(0, 7, size=(200, 80))
    codes[0], codes[1] = 0, 1
    X = np.hstack([one_hot(codes[:, k], 7) for k in range(80)])
    assert_close(kernel.block(X), kernel_matrix(kernel, X), "float64")


@every_kernel
def test_constant_columns_agree_with_oracle(kernel):
    X = np.hstack([np.full((30, 2), -3.0), rows(30, 2), np.full((30, 1), 0.1)])
    assert_close(kernel.block(X), kernel_matrix(kernel, X), "float64")


@pytest.mark.once_per("hold", "kernel")
@every_kernel
@every_dtype
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("constants", [(0.0, 0.0, 0.0), (0.0, -3.0, 0.1)], ids=str)
def test_columns_that_are_constant_in_support_rows_agree_with_oracle(
    kernel, dtype, hold, constants
):
    coded = np.eye(6)[np.arange(40) % 6]
    S = np.hstack([np.tile(constants, (40, 1)), rows(40, 2), coded])
    Q = np.hstack([rows(70, 1, 1), np.eye(2)[np.arange(70) % 2], rows(70, 2, 2), rows(70, 6, 3)])
    coef = rows(3, 40, 4)
    found = kernel.expand(hold(Q), hold(S), coef, dtype=dtype)
    assert_close(found, kernel_matrix(kernel, Q, S) @ coef.T, dtype)
    assert_close(kernel.block(hold(S), hold(Q), dtype=dtype), kernel_matrix(kernel, S, Q), dtype)


@distance_kernel
def test_rows_of_one_support_row_agree_with_oracle(kernel):
    Q = rows(70, 5, 1)
    assert_close(kernel.block(Q, Q[:1]), kernel_matrix(kernel, Q, Q[:1]), "float64")
    assert kernel.block(Q, Q[:1])[0, 0] == 1.0


@distance_kernel
def test_rows_without_any_varying_column_are_all_alike(kernel):
    np.testing.assert_array_equal(kernel.block(np.full((5, 3), 2.5)), np.ones((5, 5)))
