"""Matern and cosine kernels against scikit-learn's, and in the estimators that choose a width."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems.kernels import assert_close, every_dtype
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import train_test_split

from hardmargin import EnsembleSVC, GreedySVC, ParzenClassifier, compress, io
from hardmargin.kernels import Kernel
from hardmargin.selection.vote import candidate_kernels

WIDTHS = pytest.mark.parametrize("n_columns", [1, 9, 70, 5_000])
HOLD = pytest.mark.parametrize("hold", [np.asarray, sp.csr_array], ids=["dense", "csr"])
NAMES = pytest.mark.parametrize("name", ["matern32", "matern52", "cosine"])


def pair(n_columns):
    """Sparse rows of which two are equal, and one is zero."""
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(75, n_columns)) * (rng.random((75, n_columns)) < 0.5)
    X[3], X[5] = X[4], 0.0
    return X, np.vstack([rng.normal(size=(20, n_columns)), X[:10]])


@HOLD
@WIDTHS
@every_dtype
@pytest.mark.parametrize(("name", "nu"), [("matern32", 1.5), ("matern52", 2.5)])
def test_matern_is_that_of_scikit_learn(name, nu, n_columns, hold, dtype):
    X, Z = pair(n_columns)
    gamma = 0.7 / n_columns
    expected = Matern(length_scale=1 / np.sqrt(gamma), nu=nu)(X, Z)
    block = Kernel(name, gamma=gamma).block(hold(X), hold(Z), dtype=dtype)
    assert_close(block, expected, dtype)
    assert block[3, 24] == block[5, 25] == 1.0


@HOLD
@WIDTHS
@every_dtype
def test_cosine_is_that_of_scikit_learn(n_columns, hold, dtype):
    X, Z = pair(n_columns)
    kernel = Kernel("cosine")
    block = kernel.block(hold(X), hold(Z), dtype=dtype)
    assert_close(block, cosine_similarity(X, Z), dtype)
    np.testing.assert_array_equal(block[5], 0.0)
    diagonal = kernel.diagonal(hold(X))
    np.testing.assert_array_equal(diagonal, X.any(axis=1))
    assert_close(kernel.block(hold(X)).diagonal(), diagonal, "float64")


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e100, 1e300])
@HOLD
def test_cosine_of_rows_of_any_size(size, hold):
    X, Z = pair(9)
    kernel = Kernel("cosine")
    expected = kernel.block(X, Z)
    assert_close(kernel.block(hold(X * size), hold(Z)), expected, "float64")
    coef = np.ones((1, len(Z)))
    assert_close(kernel.expand(hold(X * size), hold(Z), coef), expected @ coef.T, "float64")


@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e300, np.inf])
@pytest.mark.parametrize("name", ["matern32", "matern52"])
@HOLD
def test_matern_of_any_width_is_between_zero_and_one(gamma, name, hold):
    X, _ = pair(9)
    for dtype in ("float32", "float64"):
        block = Kernel(name, gamma=gamma).block(hold(X * 1e10), dtype=dtype)
        assert ((block >= 0) & (block <= 1)).all()
        np.testing.assert_array_equal(block.diagonal(), 1.0)


@NAMES
@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC], ids=lambda one: one.__name__)
@HOLD
def test_estimators_learn_keep_and_compress(name, estimator, hold, tmp_path):
    X, y = load_digits(n_class=4, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=200, random_state=0)
    X_train, X_test = hold(X_train), hold(X_test)
    model = estimator(kernel=name, random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.97
    io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(
        io.load(tmp_path / "model.skops").predict_proba(X_test), model.predict_proba(X_test)
    )
    small = compress(model, len(model.support_) // 2, X=X_train)
    assert len(small.support_) <= len(model.support_) // 2
    assert small.score(X_test, y_test) > 0.9


@pytest.mark.parametrize("name", ["matern32", "matern52"])
def test_gamma_acts_on_squared_distances(name):
    X, y = load_digits(n_class=2, return_X_y=True)
    gammas = {
        kernel: ParzenClassifier(gamma="spread", kernel=kernel).fit(X, y).gamma_
        for kernel in ("rbf", name)
    }
    assert gammas[name] == gammas["rbf"]


def test_default_candidates_are_rbf_and_laplacian():
    X = np.random.default_rng(0).normal(size=(30, 4))
    assert {one.name for one in candidate_kernels("cv", "cv", X)} == {"rbf", "laplacian"}
    model = GreedySVC(random_state=0).fit(X, X[:, 0] > 0)
    assert set(model.cv_results_["kernel"]) == {"rbf", "laplacian"}
