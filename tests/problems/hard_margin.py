"""What the tests of the hard-margin solver share."""

import functools

import numpy as np
import pytest
from oracles.hard_margin import hard_margin
from problems.two_class import KERNELS, gram, small, sparse

from hardmargin.kernels import Kernel
from hardmargin.solvers.hard_margin import HardMarginOptions
from hardmargin.solvers.hard_margin import solve as solve_hard_margin
from hardmargin.solvers.problem import KernelRows, Problem

BIAS = pytest.mark.parametrize("bias", [True, False])
TIGHT = 1e-9


def solve(kernel, X, y, *, bias=True, tol=TIGHT, dtype="float64", monitor=None, **options):
    [solution] = solve_hard_margin(
        Problem.two_class(KernelRows(kernel, X, dtype), y),
        HardMarginOptions(fit_intercept=bias, tol=tol, **options),
        monitor,
    )
    return solution


def multipliers(solution):
    return np.abs(solution.coefficients)


def alpha_of(solution, n):
    alpha = np.zeros(n)
    alpha[solution.rows] = multipliers(solution)
    return alpha


def gradient_of(solution, K, y):
    return y * (K @ (y * alpha_of(solution, len(y))))


@functools.cache
def problem(name):
    """Rows that a plane of this kernel separates, with or without bias, and their kernel."""
    X, y = small(n=120)
    if name in ("rbf", "laplacian"):
        return KERNELS[name], X, y
    rng = np.random.default_rng(1)
    score = X[:, 0] + X[:, 1] if name == "linear" else X[:, 0] * X[:, 1] + X[:, 2]
    clear = np.abs(score) > 0.2
    X, y = X[clear], np.sign(score[clear])
    if name == "wide sparse":
        X, _ = sparse(20_000, 0.002)
        return Kernel("linear"), X, np.where(rng.normal(size=X.shape[0]) > 0, 1.0, -1.0)
    if name == "sparse":
        return Kernel("rbf", gamma=2.0), *sparse(40, 0.2)
    if name == "precomputed":
        return Kernel("precomputed"), gram(KERNELS["poly"], X), y
    return KERNELS[name], X, y


PROBLEMS = [
    "rbf",
    "laplacian",
    "linear",
    "poly",
    "callable",
    "precomputed",
    "sparse",
    "wide sparse",
]


def matrix_of(kernel, X):
    return X if kernel.name == "precomputed" else gram(kernel, X)


@functools.cache
def optimum(name, bias):
    kernel, X, y = problem(name)
    return hard_margin(matrix_of(kernel, X), y, bias)


@functools.cache
def large(n=3000):
    """More rows than a working set holds, of which few matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    score = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    X, score = X[np.abs(score) > 0.1], score[np.abs(score) > 0.1]
    return Kernel("rbf", gamma=0.2), X, np.sign(score)
