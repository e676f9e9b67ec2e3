"""The C-SVM: the optimum, agreement with libsvm, bounds, weights and limits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from hardmargin.kernels import Kernel, KernelRows
from hardmargin.monitor import Monitor
from hardmargin.solvers import soft_margin
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.soft_margin import SoftMarginOptions

X, Y = make_classification(300, 6, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
SIGNS = np.where(Y > 0, 1.0, -1.0)
KERNELS = [Kernel("rbf", gamma=0.3), Kernel("linear"), Kernel("poly", 0.5, 2, 1.0)]
TIGHT = SoftMarginOptions(tol=1e-6)


def solved(kernel, X=X, y=SIGNS, weights=None, options=TIGHT, monitor=None, dtype="float64"):
    problem = Problem.two_class(KernelRows(kernel, X, dtype), y, weights)
    return soft_margin.solve(problem, options, monitor)[0]


def multipliers(solution):
    alpha = np.zeros(len(SIGNS))
    alpha[solution.rows] = solution.coefficients * SIGNS[solution.rows]
    return alpha


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_conditions_of_optimality(kernel, C):
    found = solved(kernel, options=SoftMarginOptions(C=C, tol=1e-6))
    alpha = multipliers(found)
    margins = SIGNS * (kernel.block(X) @ (alpha * SIGNS) + found.intercept)
    assert found.stop_reason == "converged"
    assert alpha.min() >= 0
    assert alpha.max() <= C
    assert abs(alpha @ SIGNS) < 1e-9 * alpha.sum()
    assert (margins[alpha < C] >= 1 - 1e-5).all()
    assert (margins[alpha > 0] <= 1 + 1e-5).all()
    assert found.certificate <= 1e-6


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("weights", [None, np.random.default_rng(0).uniform(0.2, 3.0, len(Y))])
def test_it_is_the_svm_of_libsvm(kernel, weights):
    K = kernel.block(X)
    theirs = SVC(kernel="precomputed", tol=1e-6).fit(K, Y, weights)
    found = solved(kernel, weights=weights)
    np.testing.assert_array_equal(found.rows, np.sort(theirs.support_))
    ours = K[:, found.rows] @ found.coefficients + found.intercept
    np.testing.assert_allclose(ours, theirs.decision_function(K), rtol=1e-4, atol=1e-4)


def test_a_weight_of_two_counts_the_row_twice():
    kernel, twice = KERNELS[0], np.arange(len(Y)) < 50
    heavy = solved(kernel, weights=np.where(twice, 2.0, 1.0))
    copied = solved(kernel, np.vstack([X, X[twice]]), np.append(SIGNS, SIGNS[twice]))
    queries = X[:40]
    ours = kernel.block(queries, X[heavy.rows]) @ heavy.coefficients + heavy.intercept
    rows = np.vstack([X, X[twice]])[copied.rows]
    theirs = kernel.block(queries, rows) @ copied.coefficients + copied.intercept
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_any_source_of_kernel_values_and_any_memory():
    kernel = KERNELS[0]
    expected = solved(kernel)
    K = kernel.block(X)
    for found in (
        solved(Kernel("precomputed"), K),
        solved(kernel, sp.csr_array(X)),
        solved(Kernel("callable", function=kernel.block)),
        solved(kernel, options=SoftMarginOptions(tol=1e-6, memory_bytes=100_000)),
    ):
        np.testing.assert_allclose(multipliers(found), multipliers(expected), atol=1e-4)


def test_limits():
    kernel = KERNELS[0]
    by_steps = solved(kernel, options=SoftMarginOptions(max_stages=7))
    assert (by_steps.stop_reason, by_steps.n_stages) == ("max_stages", 7)
    late = solved(kernel, monitor=Monitor(1e-9), options=SoftMarginOptions(C=1e9, tol=0.0))
    assert late.stop_reason == "max_time"
    for cut in (by_steps, late):
        alpha = multipliers(cut)
        assert abs(alpha @ SIGNS) <= 1e-9 * max(alpha.sum(), 1.0)


def test_values_that_are_not_finite_are_refused():
    K = KERNELS[0].block(X)
    K[3, 5] = K[5, 3] = np.nan
    with pytest.raises(ValueError, match="must be finite"):
        solved(Kernel("precomputed"), K, options=SoftMarginOptions(C=1e3))
