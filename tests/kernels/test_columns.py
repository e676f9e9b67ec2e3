"""Columns of a kernel matrix, kept as far as memory goes: values and products are the oracle's."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix
from problems.kernels import assert_close, every_dtype, every_kernel

from hardmargin.kernels import Kernel
from hardmargin.kernels.columns import KernelColumns

X = np.random.default_rng(0).normal(size=(20, 3))
RBF = Kernel("rbf", gamma=0.3)

#: Room for five of the 20 columns, which take the room of 32 values: they begin on cache lines.
ROOM = {"float64": 5 * 32 * 8, "float32": 5 * 32 * 4}


def columns_of(kernel, dtype, rows=X):
    return KernelColumns(kernel, rows, dtype=dtype, memory_bytes=ROOM[dtype])


@every_kernel
@every_dtype
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_values_and_products_are_those_of_the_matrix(kernel, dtype, hold):
    K = kernel_matrix(kernel, X)
    columns = columns_of(kernel, dtype, hold(X))
    some, others, coef = np.array([7, 2, 11]), np.array([0, 19]), np.array([1.0, -2.0, 0.5])
    values, slots, places = columns.keep(some, others)
    assert_close(values[np.ix_(slots, places)], K[np.ix_(some, others)], dtype)
    assert np.flatnonzero(columns.is_kept).tolist() == [2, 7, 11]
    for which in (some, np.array([1, 7, 3])):  # all kept, and one
        assert_close(columns.product(which, coef), K[:, which] @ coef, dtype)
        assert_close(columns.product(which, coef, others), K[others][:, which] @ coef, dtype)


@every_dtype
def test_as_many_columns_are_kept_as_memory_has_room_for(dtype):
    columns = columns_of(RBF, dtype)
    values, slots, places = columns.keep(np.arange(9), np.arange(20))
    assert np.flatnonzero(columns.is_kept).tolist() == [0, 1, 2, 3, 4]
    assert_close(values[np.ix_(slots, places)], kernel_matrix(RBF, X)[:9], dtype)


def test_evaluations_are_counted():
    columns = columns_of(RBF, "float64")
    columns.keep(np.array([3, 4]), np.array([0]))
    assert columns.n_evaluations == 2 * 20
    columns.keep(np.array([3, 4]), np.array([5, 6]))
    assert columns.n_evaluations == 2 * 20
    columns.product([3, 9], [1.0, 1.0])
    assert columns.n_evaluations == 3 * 20


def test_tasks_share_columns_and_see_only_their_own():
    first, second = columns_of(RBF, "float64").for_tasks(2, core_bytes=2**20)[0]
    first.keep(np.arange(4), np.array([0]))
    assert not second.is_kept.any()
    second.keep(np.arange(2, 6), np.array([0]))
    assert np.flatnonzero(second.is_kept).tolist() == [2, 3, 4]
