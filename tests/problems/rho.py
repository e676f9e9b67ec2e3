"""What the tests of the multiplicative updates share."""

import functools
import warnings

import numpy as np
from oracles.kernels import kernel_matrix as gram
from oracles.rho import algorithm_1, optimum
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from hardmargin import EnsembleSVC
from hardmargin.kernels import Kernel
from hardmargin.kernels.matrix import StoredMatrix
from hardmargin.solvers.rho import ProjectionOptions, solve_projection

RBF = Kernel("rbf", gamma=0.3)


def published(n_stages="eps", **changes):
    """The paper's setting: its loss, and nothing left to choose."""
    setting = {
        "kernel": "rbf",
        "gamma": "spread",
        "loss": "exponential",
        "fit_intercept": False,
        "standardize": False,
    }
    return EnsembleSVC(n_stages, **(setting | changes))


@functools.cache
def rows_and_labels(n=60, d=3, seed=0):
    """Two classes with some overlap, the smaller a third of all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 2 / 3), 1.0, -1.0)


@functools.cache
def problem(n=60, seed=0):
    X, y = rows_and_labels(n, seed=seed)
    return gram(RBF, X), y


@functools.cache
def best_of(bias=False):
    return optimum(*problem(), bias=bias)[0]


@functools.cache
def oracle_path(bias=False, n_stages=12, weighted=False):
    K, y = problem()
    return algorithm_1(K, y, weights_of(len(y)) if weighted else None, bias=bias, n_stages=n_stages)


def weights_of(n, seed=3):
    return np.random.default_rng(seed).uniform(0.2, 3.0, size=n)


def solve(K, y, *, weights=None, keep_going=None, observe=None, **options):
    """One machine on a stored matrix."""
    matrix = StoredMatrix(np.ascontiguousarray(K)) if isinstance(K, np.ndarray) else K
    [solution] = solve_projection(
        matrix,
        y,
        weights=weights,
        options=ProjectionOptions(**options),
        keep_going=keep_going,
        observe=observe,
    )
    return solution


# --- of the classifiers --------------------------------------------------------------------------


@functools.cache
def cancer(n=120):
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


@functools.cache
def iris():
    """Three classes, of which two overlap, without duplicates."""
    X, y = load_iris(return_X_y=True)
    rows = np.sort(np.unique(X, axis=0, return_index=True)[1])[::2]
    return X[rows], y[rows]


QUERIES = np.random.default_rng(9).normal(size=(23, 30))
QUERIES_3 = np.random.default_rng(9).normal(loc=[5.8, 3.0, 3.7, 1.2], size=(23, 4))


def rbf(X, Z, gamma):
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


def spread(X):
    return 1 / ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()


def fit_quietly(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*arguments)
