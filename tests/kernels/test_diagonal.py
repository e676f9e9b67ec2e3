"""Whoever evaluates a kernel for training refuses values k(x, x) that no solver can use."""

import numpy as np
import pytest

from hardmargin.kernels import Kernel, KernelRows
from hardmargin.kernels.columns import KernelColumns
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.low_rank import low_rank_matrix
from hardmargin.kernels.matrix import dense_kernel, kernel_matrix
from hardmargin.solvers import greedy, hard_margin, soft_margin
from hardmargin.solvers.core_sets import core_vector
from hardmargin.solvers.core_sets.enclosing_ball import HalfDistances
from hardmargin.solvers.problem import Problem

LINEAR = Kernel("linear")
X = np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 1.0], [-2.0, -1.0]])
LABELS = np.array([1, -1, 1, -1])

#: All that evaluate a kernel, given the rows.
EVALUATE = {
    "matrix": lambda X: kernel_matrix(LINEAR, X),
    "dense": lambda X: dense_kernel(KernelRows(LINEAR, X)),
    "low rank": lambda X: low_rank_matrix(LINEAR, X, 2),
    "distances": lambda X: HalfDistances(LINEAR, X),
    "greedy": lambda X: greedy.solve(problem(KernelRows, X)),
    "hard margin": lambda X: hard_margin.solve(problem(KernelRows, X)),
    "soft margin": lambda X: soft_margin.solve(problem(KernelRows, X)),
    "core vector": lambda X: core_vector.solve(problem(KernelColumns, X)),
}


def problem(values, X):
    return Problem.two_class(values(LINEAR, X), LABELS)


@pytest.mark.parametrize("name", EVALUATE)
def test_sizes_that_no_solver_can_use_are_refused(name):
    EVALUATE[name](X)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="k\\(x, x\\) is not finite"):
        EVALUATE[name](1e200 * X)
    with pytest.raises(ValueError, match="too small for coefficients"):
        EVALUATE[name](1e-130 * X)


@pytest.mark.parametrize("name", ["dense", "hard margin", "soft margin", "core vector"])
def test_values_are_refused_whose_square_overflows(name):
    with pytest.raises(ValueError, match="whose square overflows"):
        EVALUATE[name](1e80 * X)


@pytest.mark.parametrize("among", [np.array([True, True, False, True]), np.array([0, 1, 3])])
def test_rows_that_take_no_part_may_have_any_size(among):
    rows = X.copy()
    rows[2] = 1e200
    values = check_diagonal(LINEAR, rows, among)
    np.testing.assert_array_equal(values[among], (X**2).sum(axis=1)[among])


def test_where_all_values_are_one_there_is_nothing_to_check():
    assert check_diagonal(Kernel("rbf", gamma=1.0), X) is None
