"""The greedy solver follows the path of Algorithm 1 for any kernel and any rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.greedy import algorithm_1
from problems.two_class import (
    INDEFINITE,
    KERNELS,
    NAMED,
    assert_same_path,
    gram,
    oracle,
    small,
    solve,
    sparse,
)

from hardmargin.kernels import Kernel
from hardmargin.solvers import greedy
from hardmargin.solvers.problem import KernelRows, Problem


@pytest.mark.parametrize("name", KERNELS)
def test_path_is_that_of_algorithm_1(name):
    X, y = small()
    assert_same_path(solve(KERNELS[name], X, y), oracle(KERNELS[name], X, y))


@pytest.mark.parametrize("name", INDEFINITE)
def test_indefinite_kernels_of_these_tests_have_rows_to_skip(name):
    X, _ = small()
    assert 0 < (gram(KERNELS[name], X).diagonal() <= 0).sum() < len(X)


@pytest.mark.parametrize("definite", [True, False])
def test_path_of_a_precomputed_kernel(definite):
    X, y = small()
    K = gram(KERNELS["poly"], X)
    if not definite:
        K = K - 0.5 * np.diag(K.diagonal().max() * np.random.default_rng(1).random(len(K)))
    assert_same_path(solve(Kernel("precomputed"), K, y), algorithm_1(K, y))


@pytest.mark.parametrize("order", ["C", "F", "strided", "read-only"])
def test_path_in_any_memory_layout(order):
    X, y = small()
    rows = np.array(X, order="F") if order == "F" else X.copy()
    if order == "strided":
        rows = np.repeat(X, 2, axis=1)[:, ::2]
    rows.flags.writeable = order != "read-only"
    assert_same_path(solve(KERNELS["rbf"], rows, y), oracle(KERNELS["rbf"], X, y))


def test_path_of_float32_rows_is_that_of_their_values():
    X, y = small()
    X = X.astype(np.float32)
    assert_same_path(solve(KERNELS["rbf"], X, y), oracle(KERNELS["rbf"], X, y))


def test_path_of_rows_far_from_the_origin():
    X, y = small()
    X = X + 1e6
    assert_same_path(solve(KERNELS["rbf"], X, y), oracle(KERNELS["rbf"], X, y))


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("name", NAMED)
def test_path_of_csr_rows(name, container):
    X, y = small()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    assert_same_path(solve(KERNELS[name], container(X), y), oracle(KERNELS[name], X, y))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize(("n_columns", "density"), [(900, 0.02), (5000, 0.01)])
def test_path_of_wide_csr_rows(name, n_columns, density):
    X, y = sparse(n_columns, density)
    assert_same_path(solve(KERNELS[name], X, y), oracle(KERNELS[name], X, y))


def test_equal_gradients_go_to_the_lowest_row():
    X = np.tile([[0.0], [1.0]], (6, 1))
    y = np.tile([1.0, -1.0], 6)
    solution = solve(Kernel("rbf", gamma=5.0), X, y, max_stages=3)
    assert solution.history["row"].tolist() == [0, 1, 2]


def test_rows_left_out_by_a_negative_class_do_not_matter():
    X, y = small()
    classes = (y > 0).astype(np.int32)
    classes[::3] = -1
    [solution] = greedy.solve(Problem(KernelRows(KERNELS["rbf"], X), classes, [([0], [1])]))
    kept = np.flatnonzero(classes >= 0)
    path = oracle(KERNELS["rbf"], X[kept], y[kept])
    assert solution.history["row"].tolist() == kept[path.order].tolist()
