"""What the tests of EnsembleSVC share."""

import functools
import warnings

import numpy as np
import pytest
from sklearn.model_selection import (
    StratifiedKFold,
)

from hardmargin import EnsembleSVC

MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
CLASSES = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])


@functools.cache
def two_classes(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n) > 0).astype(int)


@functools.cache
def three_classes(n=150):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.7]), score)


def rows_of(multi_class):
    return two_classes() if multi_class is None else three_classes()


QUERIES = np.random.default_rng(9).normal(size=(41, 4))


@functools.cache
def fitted(multi_class=None, **parameters):
    """A model of two or three classes that several tests share."""
    model = EnsembleSVC(multi_class=multi_class or "ovo", random_state=0, **parameters)
    return model.fit(*rows_of(multi_class))


def fit_quietly(model, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(*arguments, **keywords)


def assert_sensible(model, X):
    """All methods give finite values and agree with each other."""
    decisions, predicted = model.decision_function(X), model.predict(X)
    assert np.isfinite(decisions).all()
    winners = (decisions >= 0).astype(int) if decisions.ndim == 1 else decisions.argmax(axis=1)
    np.testing.assert_array_equal(predicted, model.classes_[winners])
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        largest = probabilities[np.arange(len(winners)), winners]
        np.testing.assert_array_equal(largest, probabilities.max(axis=1))


def given_splits(y, n_splits=4, seed=0):
    return list(StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(y, y))


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.kernel_weights_, other.kernel_weights_)
    np.testing.assert_array_equal(one.predict_proba(QUERIES), other.predict_proba(QUERIES))
    assert one.cv_log_loss_ == other.cv_log_loss_


VARIANTS = {
    "default": {},
    "balanced": {"class_weight": "balanced"},
    "low rank": {"rank": 30},
    "float32": {"dtype": "float32"},
    "no bias": {"fit_intercept": False},
    "plain features": {"standardize": False},
    "linear": {"kernel": "linear"},
    "laplacian": {"kernel": "laplacian"},
    "poly": {"kernel": "poly", "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid"},
    "gamma": {"gamma": 0.3},
    "scale": {"gamma": "scale"},
    "fixed stages": {"n_stages": 10},
    "one stage": {"n_stages": 1},
    "all fixed": {"n_stages": 10, "kernel": "rbf", "gamma": 0.3},
    "two folds": {"cv": 2},
}
