"""Sparse rows that are too wide to pack: the machines are those of the same rows, dense."""

import numpy as np
import pytest
import scipy.sparse as sp

from hardmargin import HardMarginSVC
from hardmargin.kernels import Kernel, KernelRows
from hardmargin.solvers import greedy, hard_margin, soft_margin
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.hard_margin import HardMarginOptions
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.soft_margin import SoftMarginOptions

N, WIDTH = 60, 5_000
NEAR = np.random.default_rng(0).normal(size=(N, 3))
Y = np.where(NEAR[:, 0] > 0, 1, -1)

# Other ways may store all distances first.
SOLVERS = {
    "greedy": (greedy, GreedyOptions(method="fused")),
    "greedy, again": (greedy, GreedyOptions(method="fused", max_visits=3)),
    "hard margin": (hard_margin, HardMarginOptions(tol=1e-8)),
    "soft margin": (soft_margin, SoftMarginOptions(tol=1e-8)),
}


def sparse(dense):
    rows = sp.csr_array(dense)
    rows.resize((len(dense), WIDTH))
    return rows


def coefficients(solver, kernel, X, dtype="float64"):
    module, options = SOLVERS[solver]
    [found] = module.solve(Problem.two_class(KernelRows(kernel, X, dtype), Y), options)
    of_rows = np.zeros(len(Y))
    of_rows[found.rows] = found.coefficients
    return of_rows


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e8, -1e8])
def test_rows_far_from_the_origin_keep_their_distances(solver, name, offset):
    X, kernel = NEAR + offset, Kernel(name, gamma=0.5)
    expected = coefficients(solver, kernel, X)
    np.testing.assert_allclose(coefficients(solver, kernel, sparse(X)), expected, atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_loses_no_more(solver):
    X, kernel = NEAR + 1e6, Kernel("rbf", gamma=0.5)
    expected = coefficients(solver, kernel, X)
    found = coefficients(solver, kernel, sparse(X), "float32")
    np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_rows_whose_squares_overflow_are_far_apart(solver, name):
    found = coefficients(solver, Kernel(name, gamma=0.5), sparse(1e160 * NEAR))
    np.testing.assert_allclose(np.abs(found), np.abs(found[0]) * np.ones(N), rtol=0.1)


@pytest.mark.parametrize("solver", ["greedy", "greedy, again"])
@pytest.mark.parametrize(
    "kernel",
    [
        Kernel("linear"),
        Kernel("poly", gamma=0.5, degree=3, coef0=1.0),
        Kernel("poly", gamma=0.1, degree=1.5, coef0=5.0),
        Kernel("sigmoid", gamma=0.01, coef0=0.1),
    ],
    ids=["linear", "poly", "root", "sigmoid"],
)
def test_other_kernels(solver, kernel):
    expected = coefficients(solver, kernel, NEAR)
    found = coefficients(solver, kernel, sparse(NEAR))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_a_column_of_times_is_as_good_as_in_dense_rows():
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + rng.uniform(0, 60, size=(200, 1))
    words = sp.random_array((200, 6000), density=0.003, rng=1, format="csr")
    X, y = sp.csr_array(sp.hstack([sp.csr_array(seconds), words])), np.sin(seconds[:, 0] / 5) > 0
    assert HardMarginSVC(gamma=0.5).fit(X, y).score(X, y) == 1.0
