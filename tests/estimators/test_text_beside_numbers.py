"""Sparse rows of text beside dense columns of numbers, whatever their unit."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from problems.onnx_sessions import assert_same_classes
from sklearn.feature_extraction.text import TfidfTransformer

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.io import dump, load
from hardmargin.kernels import as_blocks
from hardmargin.scaling import find_mixed_scaling

N, N_WORDS = 500, 4_000
ESTIMATORS = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
UNITS = {
    "price": lambda z: 10_000 * z,
    "year": lambda z: 2_019 + 5 * z,
    "rate": lambda z: 0.01 + 0.001 * z,
}


@functools.cache
def documents():
    """TF-IDF of short documents: words of one class are twice as frequent in it."""
    rng = np.random.default_rng(0)
    y = np.arange(4 * N) % 2
    frequencies = 1 / (5 + np.arange(N_WORDS))
    shares = frequencies * np.where(rng.random(N_WORDS) < 0.5, 2.0, 1.0) ** np.array([[1], [-1]])
    shares /= shares.sum(axis=1, keepdims=True)
    words = np.concatenate([rng.choice(N_WORDS, 20, p=shares[c]) for c in y])
    counts = sp.csr_array(
        (np.ones(len(words)), (np.repeat(np.arange(len(y)), 20), words)), shape=(len(y), N_WORDS)
    )
    return sp.csr_array(TfidfTransformer().fit(counts[:N]).transform(counts)), y


def column(shift):
    """Numbers that move with the class by so many standard deviations."""
    return np.random.default_rng(1).normal(size=4 * N) + shift * documents()[1]


def beside(*columns):
    """The documents with columns beside them."""
    return sp.csr_array(sp.hstack([documents()[0], *(sp.csr_array(c[:, None]) for c in columns)]))


def log_losses(model, X):
    """Loss of every document that is not trained on."""
    y = documents()[1]
    shares = model.fit(X[:N], y[:N]).predict_proba(X[N:])
    return -np.log(shares[np.arange(len(shares)), y[N:]])


@functools.cache
def losses_alone(estimator):
    return log_losses(estimator(), documents()[0])


@ESTIMATORS
@pytest.mark.parametrize("unit", UNITS)
def test_an_informative_column_helps(estimator, unit):
    gains = losses_alone(estimator) - log_losses(estimator(), beside(UNITS[unit](column(1.5))))
    assert gains.mean() > 4 * gains.std() / np.sqrt(len(gains))


@ESTIMATORS
@pytest.mark.parametrize("unit", UNITS)
def test_a_useless_column_harms_by_no_more_than_chance(estimator, unit):
    harm = log_losses(estimator(), beside(UNITS[unit](column(0)))) - losses_alone(estimator)
    assert harm.mean() < 2 * harm.std() / np.sqrt(len(harm))


@ESTIMATORS
def test_the_unit_does_not_matter(estimator):
    X, Q = (beside(UNITS[unit](column(1.5))) for unit in ("price", "year"))
    np.testing.assert_allclose(
        log_losses(estimator(), X), log_losses(estimator(), Q), rtol=0, atol=1e-4
    )


def scaling_of(X, weights=None, standardized=False):
    names = functools.partial(np.arange, X.shape[1])
    return find_mixed_scaling(X, weights, names, standardized=standardized)


def with_a_frequent_word():
    X = documents()[0][:N].tolil()
    X[:, 7] = 0.3
    return TfidfTransformer(use_idf=False).fit_transform(X)


@pytest.mark.parametrize(
    "X",
    [
        documents()[0].toarray()[:50],
        documents()[0],
        sp.csr_array(with_a_frequent_word()),
        sp.csr_array(np.random.default_rng(0).normal(size=(50, 5)).clip(0)),
        sp.csr_array(np.ones((50, 3))),
    ],
    ids=["dense", "text", "a frequent word", "half dense", "nothing sparse"],
)
def test_without_dense_columns_among_sparse_ones_nothing_is_scaled(X):
    assert scaling_of(X) is None


@pytest.mark.parametrize("standardized", [True, False])
def test_zeros_of_a_dense_column_are_numbers(standardized):
    some = UNITS["year"](column(0)) * (np.arange(4 * N) % 5 > 0)
    X = beside(some)
    scaling = scaling_of(X, standardized=standardized)
    seen = scaling.transform(X)
    np.testing.assert_allclose(seen.toarray(), scaling.transform(X.toarray()), atol=1e-12)
    own = seen[:, [N_WORDS]].toarray()
    assert abs(own.mean()) < 1e-9
    assert own.std() == pytest.approx(scaling.factor)
    np.testing.assert_allclose(scaling.inverse(seen).toarray(), X.toarray(), atol=1e-9)


def test_the_other_columns_stay_as_they_came():
    X, text = beside(column(0), UNITS["price"](column(0))), documents()[0]
    seen = scaling_of(X).transform(X)
    np.testing.assert_array_equal(seen[:, :N_WORDS].toarray(), text.toarray())


def test_a_weight_of_two_counts_a_row_twice():
    X = beside(UNITS["price"](column(0)))[:N]
    weights = np.arange(N) % 3
    weighted, repeated = scaling_of(X, weights), scaling_of(X[np.repeat(np.arange(N), weights)])
    np.testing.assert_allclose(
        weighted.transform(X).toarray(), repeated.transform(X).toarray(), atol=1e-12
    )


def test_blocks_have_the_scaling_of_all_rows():
    X = beside(UNITS["year"](column(0)))
    blocks = as_blocks(X)
    blocks.starts = np.array([0, 300, 301, X.shape[0]])
    np.testing.assert_allclose(
        scaling_of(blocks).transform(X).toarray(), scaling_of(X).transform(X).toarray(), atol=1e-9
    )


@ESTIMATORS
def test_dense_columns_are_as_they_came_if_that_is_asked_for(estimator):
    model = estimator(standardize=False).fit(beside(column(0))[:N], documents()[1][:N])
    assert model._scaling_ is None


@functools.cache
def fitted(estimator, standardize):
    X = beside(UNITS["year"](column(1.5)), np.exp(9 + column(0)))[:200].astype(np.float32)
    return estimator(standardize=standardize).fit(X, documents()[1][:200]), X


@ESTIMATORS
@pytest.mark.parametrize("standardize", [True, "auto"])
def test_graphs_predict_the_same(estimator, standardize):
    model, X = fitted(estimator, standardize)
    assert model.standardized_ is (standardize is True)
    assert_same_classes(model, X[:20].toarray().astype(np.float64))


@ESTIMATORS
def test_saved_models_predict_the_same(estimator, tmp_path):
    model, X = fitted(estimator, "auto")
    loaded = load(dump(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
