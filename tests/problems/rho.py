"""What the tests of the multiplicative updates share."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix as gram
from oracles.rho import algorithm_1, optimum
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from hardmargin import RhoEnsembleSVC
from hardmargin.kernels import Kernel
from hardmargin.kernels.matrix import StoredMatrix
from hardmargin.monitor import Monitor
from hardmargin.solvers import rho
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.rho import RhoOptions

RBF = Kernel("rbf", gamma=0.3)


@functools.cache
def rows_and_labels(n=60, d=3, seed=0):
    """Two classes with some overlap, the smaller with a third of the rows."""
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


def two_class(K, y, weights=None):
    """One machine on a stored matrix, or on any other."""
    matrix = StoredMatrix(np.ascontiguousarray(K)) if isinstance(K, np.ndarray) else K
    return Problem.two_class(matrix, y, weights)


def solve(K, y, *, weights=None, monitor=None, **options):
    options = RhoOptions(**({"keep_planes": 2**30} | options))
    [solution] = rho.solve(two_class(K, y, weights), options, monitor)
    return solution


def dozen(bias=False, weighted=False, **options):
    K, y = problem()
    weights = weights_of(len(y)) if weighted else None
    return solve(K, y, weights=weights, fit_intercept=bias, n_stages=12, **options)


def alpha_of(expansion):
    """Multipliers of a plane, or of the vote."""
    return np.abs(expansion.coefficients)


def stopping_after(n_stages):
    """A monitor that ends a run after this many stages."""
    return Monitor(listeners=[lambda event: event.stage >= n_stages])


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


BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
CLASSES = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])
RANKS = pytest.mark.parametrize("rank", [None, 20])


@functools.cache
def voted(multi_class=None, n_stages=12, **parameters):
    """A RhoEnsembleSVC of two or three classes that several tests share."""
    X, y = cancer() if multi_class is None else iris()
    model = RhoEnsembleSVC(n_stages, multi_class=multi_class or "ovo", random_state=0, **parameters)
    return fit_quietly(model, X, y)


def queries(multi_class):
    return QUERIES if multi_class is None else QUERIES_3


def narrow_rbf(A, B):
    return rbf(A, B, 0.1)


def dense(coefficients):
    return coefficients.toarray() if sp.issparse(coefficients) else np.asarray(coefficients)


def assert_finite(model, X):
    values = [dense(model.dual_coef_), model.intercept_, model.rho_lower_bound_]
    values += [model.decision_function(X)]
    values += list(model.staged_decision_function(X))
    assert all(np.isfinite(v).all() for v in values)
