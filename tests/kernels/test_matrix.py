"""Kernel matrices and their products."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix as oracle
from problems.kernels import assert_close, every_dtype, every_kernel, rows

from hardmargin.kernels import Kernel
from hardmargin.kernels.matrix import StoredMatrix, StreamedMatrix, as_precision, kernel_matrix

X = rows(37, 4)
RBF = Kernel("rbf", gamma=0.3)
V = np.random.default_rng(1).normal(size=(37, 5))
STREAMED, STORED = 0, 2**30

every_memory = pytest.mark.parametrize("memory", [STORED, STREAMED], ids=["stored", "streamed"])


@pytest.mark.once_per("right", "kernel")
@every_kernel
@every_dtype
@every_memory
@pytest.mark.parametrize("right", [V[:, 0], V[:, :1], V[:, :2], V], ids=["1-d", "1", "2", "5"])
def test_products_equal_numpy(kernel, dtype, memory, right):
    matrix = kernel_matrix(kernel, X, dtype=dtype, memory_bytes=memory)
    expected = oracle(kernel, X) @ right
    rounding = 1e-12 if dtype == "float64" else 1e-5
    largest = np.abs(oracle(kernel, X)).max() * np.abs(right).sum(axis=0).max()
    np.testing.assert_allclose(matrix.product(right), expected, atol=rounding * largest)


@every_dtype
@pytest.mark.parametrize("right", [V[:, 0], V], ids=["1-d", "5"])
def test_little_memory_multiplies_in_parts(dtype, right, monkeypatch):
    monkeypatch.setattr("hardmargin.kernels.matrix._LEAST_AT_ONCE", 1)
    row_bytes = X.shape[1] * np.dtype(dtype).itemsize
    matrix = kernel_matrix(RBF, X, dtype=dtype, memory_bytes=2 * 10 * row_bytes)
    assert matrix.rows_at_once == 10
    rounding = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(matrix.product(right), oracle(RBF, X) @ right, atol=rounding)


@every_dtype
@every_memory
@pytest.mark.parametrize("right", [V[:, 0], V[:, :1], V], ids=["1-d", "1", "5"])
def test_products_keep_their_shape(dtype, memory, right):
    matrix = kernel_matrix(RBF, X, dtype=dtype, memory_bytes=memory)
    assert matrix.product(right).shape == right.shape


@every_dtype
@every_memory
def test_products_are_float64(dtype, memory):
    assert kernel_matrix(RBF, X, dtype=dtype, memory_bytes=memory).product(V).dtype == np.float64


@every_dtype
@every_memory
def test_products_leave_their_argument(dtype, memory):
    right = V[:, 0].copy()
    kernel_matrix(RBF, X, dtype=dtype, memory_bytes=memory).product(right)
    np.testing.assert_array_equal(right, V[:, 0])


@every_kernel
@every_dtype
@every_memory
def test_diagonal(kernel, dtype, memory):
    matrix = kernel_matrix(kernel, X, dtype=dtype, memory_bytes=memory)
    assert_close(matrix.diagonal, oracle(kernel, X).diagonal(), dtype)


@every_memory
def test_number_of_rows(memory):
    assert kernel_matrix(RBF, X, memory_bytes=memory).n_rows == 37


@every_dtype
@every_memory
def test_some_of_the_rows(dtype, memory):
    some = np.array([1, 5, 6, 20, 36])
    matrix = kernel_matrix(RBF, X, some, dtype=dtype, memory_bytes=memory)
    assert_close(matrix.product(V[:5]), oracle(RBF, X[some]) @ V[:5], dtype)


@pytest.mark.parametrize(
    ("dtype", "least"), [("float64", 8 * 37**2), ("float32", 4 * 37**2)], ids=["64", "32"]
)
@pytest.mark.parametrize(("spare", "kind"), [(0, StoredMatrix), (-1, StreamedMatrix)])
def test_memory_decides_where_the_matrix_is(dtype, least, spare, kind):
    assert isinstance(kernel_matrix(RBF, X, dtype=dtype, memory_bytes=least + spare), kind)


@every_memory
def test_sparse_rows(memory):
    matrix = kernel_matrix(RBF, sp.csr_array(X), memory_bytes=memory)
    assert_close(matrix.product(V), oracle(RBF, X) @ V, "float64")


@every_memory
def test_sparse_rows_some_of_them(memory):
    some = np.array([0, 3, 30])
    matrix = kernel_matrix(RBF, sp.csr_array(X), some, memory_bytes=memory)
    assert_close(matrix.product(V[:3]), oracle(RBF, X[some]) @ V[:3], "float64")


@every_dtype
@every_memory
def test_callable(dtype, memory):
    kernel = Kernel("callable", function=lambda A, B: oracle(RBF, A, B))
    matrix = kernel_matrix(kernel, X, dtype=dtype, memory_bytes=memory)
    assert_close(matrix.product(V), oracle(RBF, X) @ V, dtype)


# --- precomputed ---------------------------------------------------------------------------------

PRECOMPUTED = Kernel("precomputed")


@every_dtype
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("right", [V[:, 0], V], ids=["1", "5"])
def test_precomputed(dtype, order, right):
    K = np.asarray(oracle(RBF, X), order=order)
    assert_close(kernel_matrix(PRECOMPUTED, K, dtype=dtype).product(right), K @ right, dtype)


def test_precomputed_is_stored_whatever_the_memory():
    assert isinstance(kernel_matrix(PRECOMPUTED, oracle(RBF, X), memory_bytes=1), StoredMatrix)


def test_precomputed_some_of_the_rows():
    K, some = oracle(RBF, X), np.array([2, 3, 11])
    matrix = kernel_matrix(PRECOMPUTED, K, some)
    assert_close(matrix.product(V[:3]), K[np.ix_(some, some)] @ V[:3], "float64")


@pytest.mark.parametrize("right", [V[:, 0], V], ids=["1", "5"])
def test_slightly_asymmetric_values_are_averaged(right):
    K = oracle(RBF, X) + 1e-6 * np.random.default_rng(0).normal(size=(37, 37))
    matrix = kernel_matrix(PRECOMPUTED, K)
    np.testing.assert_allclose(matrix.product(right), (K + K.T) / 2 @ right, atol=1e-13)


def test_an_asymmetric_input_is_left_as_it_is():
    K = oracle(RBF, X)
    K[0, 1] += 1e-6
    before = K.copy()
    kernel_matrix(PRECOMPUTED, K)
    np.testing.assert_array_equal(K, before)


# --- precision -----------------------------------------------------------------------------------


def test_tiny_multipliers_are_zero_in_float32():
    assert as_precision(np.array([1e-31, -1e-40, 1e-300, 0.0]), np.float32).tolist() == [0.0] * 4


def test_larger_multipliers_stay_in_float32():
    values = np.array([1e-29, -1e-29, 1.0])
    np.testing.assert_allclose(as_precision(values, np.float32), values, rtol=1e-6)


def test_float64_multipliers_are_as_they_were():
    values = np.array([1e-300, 1.0])
    np.testing.assert_array_equal(as_precision(values, np.float64), values)


@pytest.mark.parametrize("right", [V[:, 0], V], ids=["1", "5"])
def test_tiny_multipliers_change_no_float32_product(right):
    matrix = kernel_matrix(RBF, X, dtype="float32")
    tiny = right.copy()
    tiny[::2] = 1e-42
    none = right.copy()
    none[::2] = 0.0
    np.testing.assert_array_equal(matrix.product(tiny), matrix.product(none))
