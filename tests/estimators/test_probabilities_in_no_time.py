"""``predict_proba`` depends on parameters alone, not on the clock or on how many rows there are."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from hardmargin import EnsembleSVC, GreedySVC, compress, io

BOTH = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def problem(n_classes, n_rows=1_200):
    return make_classification(n_rows, 6, n_informative=4, n_classes=n_classes, random_state=0)


def without_time(model, X, y):
    """Fit with no time at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(max_time=1e-9).fit(X, y)


def assert_agree(model, X):
    """Probabilities agree with decisions, as they must in any model."""
    found, scores = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
    if len(model.classes_) == 2:
        np.testing.assert_array_equal(found[:, 1] >= 0.5, scores >= 0)


@BOTH
@CLASSES
@pytest.mark.parametrize("n_rows", [300, 1_000])
def test_a_fit_without_time_tells_probabilities(estimator, n_classes, n_rows):
    X, y = problem(n_classes)
    model = without_time(estimator(), X[:n_rows], y[:n_rows])
    assert_agree(model, X[n_rows:])
    assert np.isfinite(log_loss(y[n_rows:], model.predict_proba(X[n_rows:])))


def test_rows_set_aside_calibrate_a_part_that_held_out_none():
    X, y = problem(2)
    model = without_time(GreedySVC(), X[:1_000], y[:1_000])
    assert model.n_samples_fit_ < 300
    assert np.isnan(model.cv_log_loss_)
    shares = np.bincount(y[:1_000]) / 1_000
    of_frequencies = log_loss(y[1_000:], np.tile(shares, (200, 1)))
    assert log_loss(y[1_000:], model.predict_proba(X[1_000:])) < 0.9 * of_frequencies


def test_frequencies_are_announced():
    X, y = problem(2, 300)
    with pytest.warns(UserWarning, match="max_time was too short.*frequencies of the classes"):
        model = GreedySVC(max_time=1e-9).fit(X, y)
    shares = (np.bincount(y) + 1) / 302
    larger = shares.argmax()
    is_larger = model.predict(X) == larger
    found = model.predict_proba(X)[is_larger]
    np.testing.assert_allclose(found, np.tile(shares, (is_larger.sum(), 1)), rtol=1e-4)


@BOTH
@CLASSES
def test_classes_too_small_to_hold_out_have_frequencies(estimator, n_classes):
    X, y = problem(n_classes)
    few = np.concatenate([np.flatnonzero(y == c)[: 3 + 20 * (c == 0)] for c in range(n_classes)])
    with pytest.warns(UserWarning, match="frequencies of the classes"):
        model = estimator().fit(X[few], y[few])
    assert_agree(model, X)


@BOTH
def test_given_parameters_still_say_that_nothing_is_held_out(estimator):
    if estimator is GreedySVC:
        assert not hasattr(GreedySVC(gamma=0.1, max_visits=1), "predict_proba")
    assert hasattr(estimator(), "predict_proba")


@BOTH
@CLASSES
def test_such_models_are_saved_and_compressed(estimator, n_classes, tmp_path):
    X, y = problem(n_classes, 300)
    few = np.concatenate([np.flatnonzero(y == c)[: 3 + 50 * (c == 0)] for c in range(n_classes)])
    with pytest.warns(UserWarning, match="frequencies of the classes"):
        model = estimator().fit(X[few], y[few])
    expected = model.predict_proba(X)
    io.dump(model, tmp_path / "model.skops")
    for copy in (io.load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict_proba(X), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agree(compress(model, n_support=5), X)
