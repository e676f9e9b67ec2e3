"""What the tests of the solvers share."""

import functools

import numpy as np
import scipy.sparse as sp
from oracles.greedy import algorithm_1, with_revisits
from oracles.kernels import kernel_matrix
from scipy.spatial.distance import cdist

from hardmargin.kernels import Kernel
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import KernelRows, Problem

STEP_TOL = 0.02
KERNELS = {
    "rbf": Kernel("rbf", gamma=0.4),
    "laplacian": Kernel("laplacian", gamma=0.3),
    "matern32": Kernel("matern32", gamma=0.4),
    "matern52": Kernel("matern52", gamma=0.4),
    "linear": Kernel("linear"),
    "cosine": Kernel("cosine"),
    "poly": Kernel("poly", gamma=0.3, degree=3, coef0=1.0),
    "poly, indefinite": Kernel("poly", gamma=0.3, degree=3, coef0=-1.0),
    "sigmoid": Kernel("sigmoid", gamma=0.2, coef0=0.1),
    "sigmoid, indefinite": Kernel("sigmoid", gamma=0.2, coef0=-0.8),
    "callable": Kernel("callable", function=lambda X, Z: (X @ Z.T + 1.0) ** 2),
    "callable, indefinite": Kernel("callable", function=lambda X, Z: X[:, 1:] @ Z[:, 1:].T - 2),
}
INDEFINITE = [name for name in KERNELS if "indefinite" in name]
NAMED = [name for name in KERNELS if not name.startswith("callable")]
DISTANCE = ["rbf", "laplacian", "matern32", "matern52"]


def gram(kernel, X, Z=None):
    """Kernel matrix by definition, for more rows than the pairwise oracle can take."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    Z = X if Z is None else Z
    if kernel.name == "callable":
        return kernel.function(X, Z)
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * cdist(X, Z, "sqeuclidean"))
    if kernel.name == "laplacian":
        return np.exp(-kernel.gamma * cdist(X, Z, "cityblock"))
    if kernel.name in ("matern32", "matern52", "cosine"):
        return kernel_matrix(kernel, X, Z)
    if kernel.name == "linear":
        return X @ Z.T
    inner = kernel.gamma * (X @ Z.T) + kernel.coef0
    return inner**kernel.degree if kernel.name == "poly" else np.tanh(inner)


def solve(kernel, X, y, *, weights=None, dtype="float64", monitor=None, **options):
    problem = Problem.two_class(KernelRows(kernel, X, dtype), y, weights)
    [solution] = greedy.solve(problem, GreedyOptions(**options), monitor)
    return solution


def oracle(kernel, X, y, *, weights=None, max_visits=1, max_stages=None):
    K = gram(kernel, X)
    if max_visits == 1:
        return algorithm_1(K, y, weights, max_stages)
    return with_revisits(K, y, max_visits, STEP_TOL, weights, max_stages or 8 * len(y))


def alpha_of(solution, n):
    alpha = np.zeros(n)
    np.add.at(alpha, solution.history["row"], solution.history["step"])
    return alpha


def assert_same_path(solution, path):
    rows, steps = solution.history["row"], solution.history["step"]
    # A gradient that is zero up to rounding may or may not give a step.
    clear, expected = np.abs(steps) > 1e-12, np.abs(path.steps) > 1e-12
    np.testing.assert_array_equal(rows[clear], path.order[expected])
    np.testing.assert_allclose(steps[clear], path.steps[expected], rtol=1e-10, atol=1e-10)


# --- problems ------------------------------------------------------------------------------------


def noisy_labels(X, rng):
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + rng.normal(scale=0.4, size=len(X))
    return np.where(score > 0, 1.0, -1.0)


@functools.cache
def small(n=150, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, noisy_labels(X, rng)


@functools.cache
def mixed(n=2200, seed=0):
    """Continuous columns, one-hot ones and a constant, as in typical tables."""
    rng = np.random.default_rng(seed)
    one_hot = np.hstack([np.eye(k)[rng.integers(k, size=n)] for k in (7, 40)])
    X = np.hstack([rng.normal(size=(n, 3)), one_hot, np.full((n, 1), 3.0)])
    return X, noisy_labels(X, rng)


@functools.cache
def sparse(n_columns, density, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, n_columns), density=density, format="csr", random_state=rng)
    w = rng.normal(size=n_columns)
    score = X @ w + 0.05 * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


@functools.cache
def mixed_path(name, max_visits):
    return oracle(KERNELS[name], *mixed(), max_visits=max_visits)
