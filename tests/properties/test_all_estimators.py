"""What holds for every estimator, kernel, dtype and weight, on small and awkward rows."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from problems.every_estimator import MODELS
from sklearn.base import clone, is_classifier

from hardmargin import (
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
)

PROBABILISTIC = ["EnsembleSVC", "EnsembleSVC, low rank", "GreedySVC"]
CLASSIFIERS = [name for name, model in MODELS.items() if is_classifier(model)]

#: Classifiers whose rows and labels have no order: nothing is drawn, held out or visited in turn.
WITHOUT_ORDER = {
    "HardMarginSVC": HardMarginSVC(tol=1e-6),
    "MultiplicativeSVC": MultiplicativeSVC(max_stages=30),
    "ParzenClassifier": ParzenClassifier(),
    "PathSVC, one C": PathSVC(1.0, C_max=1.0),
    "RhoEnsembleSVC": RhoEnsembleSVC(5),
    "RhoSVC": RhoSVC(max_stages=5, eps_stop=0.09),
    "RigorousSVC, bound": RigorousSVC(0.5),
}

KERNELS = (
    "rbf",
    "laplacian",
    "matern32",
    "matern52",
    "linear",
    "cosine",
    "poly",
    "sigmoid",
    "precomputed",
    "callable",
)
METHODS = ("decision_function", "predict_proba", "transform", "score_samples")


def polynomial(X, Z):
    with np.errstate(all="ignore"):  # that it overflows is for the estimator to notice
        products = X @ Z.T
        return ((products.toarray() if sp.issparse(products) else products) + 1.0) ** 2


@dataclass(frozen=True)
class Case:
    """A problem, and how to look at it."""

    X: Any
    y: Any
    weights: Any
    kernel: str | None
    dtype: str

    def model(self, name):
        model = clone(MODELS[name]).set_params(dtype=self.dtype)
        if self.kernel is not None:
            model.set_params(kernel=polynomial if self.kernel == "callable" else self.kernel)
        return model

    def fitted(self, name):
        """Fit; a clear refusal makes this no case."""
        model = self.model(name)
        with warnings.catch_warnings():
            # The package may warn that it stopped early; numpy must not warn.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            try:
                return model.fit(self.X, self.y, sample_weight=self.weights)
            except ValueError:  # a refusal; test_extreme_numbers.py reads what it says
                return reject()


@st.composite
def cases(draw, kernels=(None, *KERNELS), largest=200):
    """Rows with copies, constant columns, columns of other sizes and rows without weight."""
    n, n_columns = draw(st.integers(10, 60)), draw(st.integers(1, 6))
    n_classes = draw(st.sampled_from([2, 2, 3, 4]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, n_columns))
    y = np.arange(n) % n_classes
    X[:, 0] += draw(st.sampled_from([0.0, 1.0, 10.0])) * y
    if draw(st.booleans()):
        X = X.round()
    for column in draw(st.sets(st.integers(0, n_columns - 1), max_size=2)):
        X[:, column] = draw(st.sampled_from([0.0, 1.0, -1e9]))
    if draw(st.booleans()):  # copies, some with other labels
        X[rng.integers(0, n, n // 3)] = X[rng.integers(0, n, n // 3)]
    powers = st.sampled_from([0, 0, 0, 0, -3, 3, -20, 20, -largest, largest])
    X = X * 10.0 ** np.array(draw(st.lists(powers, min_size=n_columns, max_size=n_columns)))
    weights = draw(st.sampled_from([None, "equal", "any", "some are zero", "far apart"]))
    values = {
        "equal": np.full(n, 0.3),
        "any": rng.exponential(size=n),
        "some are zero": rng.exponential(size=n) * (rng.random(n) < 0.7),
        "far apart": 10.0 ** rng.uniform(-12, 12, n),
    }
    kernel = draw(st.sampled_from(kernels))
    if kernel == "precomputed":
        X = np.exp(-np.abs(np.sign(X[:, :1]) - np.sign(X[:, 0]))) + np.eye(n)
    elif draw(st.integers(0, 3)) == 0:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    elif draw(st.integers(0, 3)) == 0:
        X = np.clip(X, -1e30, 1e30).astype(np.float32)
    dtype = draw(st.sampled_from(["auto", "float32", "float64"]))
    return Case(X, y, None if weights is None else values[weights], kernel, dtype)


def examples(share):
    """How many examples a test has: a part of the profile's number."""
    n = max(1, round(share * settings().max_examples))
    return settings(max_examples=n, deadline=None, suppress_health_check=[HealthCheck.too_slow])


every_model = pytest.mark.parametrize("name", MODELS)
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


@every_model
@given(case=cases())
@examples(0.2)
def test_results_are_finite_and_agree(name, case):
    """A fit takes most of the time, so all that it says is checked at once."""
    model = case.fitted(name)
    for method in METHODS:
        if hasattr(model, method):
            assert np.isfinite(getattr(model, method)(case.X)).all(), method
    if name in CLASSIFIERS:
        assert_the_largest_decision_is_predicted(model, case)
    if name in PROBABILISTIC and hasattr(model, "predict_proba"):
        assert_probabilities_are_probabilities(model, case)
        assert_the_most_probable_class_is_predicted(model, case)


def assert_the_largest_decision_is_predicted(model, case):
    scores, predicted = model.decision_function(case.X), model.predict(case.X)
    if scores.ndim == 1:
        np.testing.assert_array_equal(predicted, model.classes_[(scores >= 0).astype(int)])
    else:
        codes = np.searchsorted(model.classes_, predicted)
        np.testing.assert_array_equal(scores[np.arange(len(codes)), codes], scores.max(axis=1))


def assert_probabilities_are_probabilities(model, case):
    chances = model.predict_proba(case.X)
    assert chances.shape == (len(case.y), len(model.classes_))
    assert chances.min() >= 0
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)


def assert_the_most_probable_class_is_predicted(model, case):
    chances = model.predict_proba(case.X)
    codes = np.searchsorted(model.classes_, model.predict(case.X))
    chosen = chances[np.arange(len(codes)), codes]
    np.testing.assert_allclose(chosen, chances.max(axis=1), atol=1e-9)


NAMES = {
    "other numbers": np.array([-7, 0, 3, 10**12]),
    "words": np.array(["ash", "beech", "elm", "oak"]),
    "objects": np.array(["a", "b", "c", "d"], dtype=object),
}


@every_classifier
@given(case=cases(), names=st.sampled_from(sorted(NAMES)))
@examples(0.05)
def test_other_names_of_the_same_order_change_nothing(name, case, names):
    one = case.fitted(name)
    other = Case(case.X, NAMES[names][case.y], case.weights, case.kernel, case.dtype).fitted(name)
    np.testing.assert_array_equal(one.decision_function(case.X), other.decision_function(case.X))


@st.composite
def separable_cases(draw):
    """Two classes that every machine separates, so that rounding makes no different ones."""
    n, n_columns = draw(st.integers(10, 60)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X, y = rng.normal(size=(n, n_columns)), np.arange(n) % 2
    X[:, 0] += draw(st.sampled_from([0.0, 3.0])) * y
    if draw(st.booleans()):
        X = X[np.r_[: n - 4, :4]]
        y = y[np.r_[: n - 4, :4]]
    weights = draw(st.sampled_from([None, "any", "some are zero"]))
    values = {"any": rng.uniform(0.5, 2, n), "some are zero": rng.uniform(0.5, 2, n)}
    values["some are zero"][draw(st.integers(4, n - 6))] = 0.0
    return Case(X, y, None if weights is None else values[weights], "laplacian", "float64")


def decisions(name, case, rows, labels):
    """Decisions on all rows, of a model that was fitted to them in another order."""
    model = clone(WITHOUT_ORDER[name]).set_params(kernel=case.kernel, gamma=0.5)
    weights = None if case.weights is None else case.weights[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(case.X[rows], labels[rows], sample_weight=weights)
    return model.decision_function(case.X)


@pytest.mark.parametrize("name", WITHOUT_ORDER)
@given(case=separable_cases(), seed=st.integers(0, 99))
@examples(0.1)
def test_the_order_of_rows_changes_nothing(name, case, seed):
    rows = np.arange(len(case.y))
    shuffled = np.random.default_rng(seed).permutation(rows)
    one, other = (decisions(name, case, order, case.y) for order in (rows, shuffled))
    np.testing.assert_allclose(one, other, atol=1e-9 + 1e-4 * np.abs(one).max())


@pytest.mark.parametrize("name", WITHOUT_ORDER)
@given(case=separable_cases())
@examples(0.1)
def test_names_of_the_opposite_order_change_the_sign(name, case):
    rows = np.arange(len(case.y))
    one, other = (decisions(name, case, rows, labels) for labels in (case.y, -case.y))
    np.testing.assert_allclose(one, -other, atol=1e-9 + 1e-4 * np.abs(one).max())
