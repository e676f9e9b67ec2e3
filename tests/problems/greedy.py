"""What the tests of GreedySVC share."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning

from hardmargin import GreedySVC
from hardmargin.kernels import Kernel

GAMMA = 0.3
RBF = Kernel("rbf", gamma=GAMMA)
MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
CLASSES = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])
N_MACHINES = {"ovo": 6, "ovr": 4}


@functools.cache
def two_classes(n=160):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n) > 0).astype(int)


@functools.cache
def four_classes(n=200):
    X, y = make_blobs(n, n_features=3, centers=4, cluster_std=3.0, random_state=0)
    return X / 5, y


@functools.cache
def unbalanced():
    """Rows to train on and to test on; one in ten is of the second class."""
    X, y = make_classification(
        1500, 8, n_informative=4, weights=[0.9], flip_y=0.02, class_sep=0.9, random_state=0
    )
    return X[:500], y[:500], X[500:], y[500:]


QUERIES = np.random.default_rng(9).normal(size=(37, 4))
QUERIES_4 = np.random.default_rng(9).normal(size=(37, 3))


def paper(gamma="scale", *, max_visits=1, **parameters):
    """The machine of the paper: nothing is chosen, nothing is held out."""
    return GreedySVC(gamma, max_visits=max_visits, **parameters)


@functools.cache
def fitted(multi_class=None, **parameters):
    """A model of two or four classes that several tests share."""
    if multi_class is None:
        return paper(GAMMA, **parameters).fit(*two_classes())
    return paper(GAMMA, multi_class=multi_class, **parameters).fit(*four_classes())


@functools.cache
def tuned(multi_class=None, **parameters):
    """A model of two or four classes that chooses all that is not given."""
    X, y = two_classes() if multi_class is None else four_classes()
    model = GreedySVC(multi_class=multi_class or "ovo", random_state=0, **parameters)
    return model.fit(X, y)


def queries(multi_class):
    return QUERIES if multi_class is None else QUERIES_4


def stage_problem(multi_class):
    return (two_classes(), QUERIES) if multi_class is None else (four_classes(), QUERIES_4)


def dense(coefficients):
    return coefficients.toarray() if sp.issparse(coefficients) else np.asarray(coefficients)


def fit_quietly(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*arguments)
