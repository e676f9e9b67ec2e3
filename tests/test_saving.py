"""Fitted estimators survive being saved, by pickle and by skops."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import (
    CoreVectorSVC,
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
    compress,
)
from hardmargin.io import TRUSTED


@functools.cache
def blobs(n_classes):
    return make_blobs(40 * n_classes, 3, centers=n_classes, cluster_std=2.0, random_state=0)


def squared(A, B):
    """A callable kernel at module level, where saved models can find it by name."""
    return (1.0 + np.asarray(A) @ np.asarray(B).T) ** 2


MODELS = {
    "ensemble": EnsembleSVC(),
    "rho ensemble": RhoEnsembleSVC(5, fit_intercept=True, standardize=True),
    "ensemble, low rank": EnsembleSVC(rank=20),
    "ensemble, linear": EnsembleSVC(kernel="linear"),
    "greedy": GreedySVC(),
    "greedy, published": GreedySVC("scale", max_visits=1),
    "rho": RhoSVC(),
    "parzen": ParzenClassifier(),
    "hard margin": HardMarginSVC("scale"),
    "multiplicative": MultiplicativeSVC("scale", max_stages=20),
    "core vectors": CoreVectorSVC(),
    "path": PathSVC(cv=2, C_max=1.0),
    "rigorous": RigorousSVC(),
    "discriminant": MarginDiscriminantAnalysis(2),
    "diversified": DiversifiedSVC(2),
    "diversified, network": DiversifiedSVC(1, final_estimator="mlp"),
    "diversified, vote": DiversifiedSVC(1, final_estimator="vote"),
    "ball": MinimumEnclosingBall(),
    "pipeline": make_pipeline(StandardScaler(), GreedySVC()),
}

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_skops(model):
    saved = skops.io.dumps(model)
    return skops.io.loads(saved, trusted=list(TRUSTED))


def assert_same(model, loaded, X):
    assert type(loaded) is type(model)
    methods = [name for name in METHODS if hasattr(model, name)]
    assert methods == [name for name in METHODS if hasattr(loaded, name)]
    for name in methods:
        np.testing.assert_array_equal(getattr(model, name)(X), getattr(loaded, name)(X))


@functools.cache
def fitted(name, n_classes):
    return clone(MODELS[name]).fit(*blobs(n_classes))


@pytest.mark.once_per("name", "saved")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("saved", [by_pickle, by_skops])
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_the_same(name, saved, n_classes):
    model = fitted(name, n_classes)
    assert_same(model, saved(model), blobs(n_classes)[0])


@pytest.mark.parametrize("saved", [by_pickle, by_skops])
def test_sparse_support_rows_are_saved(saved):
    X, y = blobs(3)
    rows = sp.csr_array(np.maximum(X, 0))
    model = EnsembleSVC().fit(rows, y)
    assert_same(model, saved(model), rows)


@pytest.mark.parametrize("saved", [by_pickle, by_skops])
def test_labels_that_are_strings_are_saved(saved):
    X, y = blobs(2)
    model = GreedySVC().fit(X, np.array(["no", "yes"], dtype=object)[y])
    assert_same(model, saved(model), X)


@pytest.mark.parametrize("saved", [by_pickle, by_skops])
def test_compressed_models_are_saved(saved):
    X, y = blobs(2)
    model = compress(EnsembleSVC().fit(X, y), n_support=40)
    loaded = saved(model)
    assert_same(model, loaded, X)
    assert loaded.compression_ == model.compression_


@pytest.mark.parametrize("saved", [by_pickle, by_skops])
def test_precomputed_kernels_are_saved(saved):
    X, y = blobs(2)
    K = squared(X, X)
    model = GreedySVC(kernel="precomputed").fit(K, y)
    assert_same(model, saved(model), K)


def test_tables_survive_skops():
    model = EnsembleSVC().fit(*blobs(3))
    loaded = by_skops(model)
    np.testing.assert_array_equal(model.kernel_weights_, loaded.kernel_weights_)
    np.testing.assert_array_equal(model.cv_table_, loaded.cv_table_)
