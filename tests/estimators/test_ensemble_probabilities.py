"""Decisions and probabilities of EnsembleSVC, and how held-out rows judge them."""

import numpy as np
import pytest
from problems.ensemble import (
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    VARIANTS,
    assert_sensible,
    fitted,
    rows_of,
)
from sklearn.datasets import (
    make_classification,
)
from sklearn.metrics import log_loss

from hardmargin import EnsembleSVC

EVERY_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


@pytest.mark.once_per("variant")
@CLASSES
@EVERY_VARIANT
def test_decisions_probabilities_and_predictions_agree(multi_class, variant):
    model = fitted(multi_class, **VARIANTS[variant])
    assert_sensible(model, QUERIES)
    assert hasattr(model, "predict_proba")


@pytest.mark.once_per("variant")
@CLASSES
@EVERY_VARIANT
def test_all_variants_learn(multi_class, variant):
    X, y = rows_of(multi_class)
    model = fitted(multi_class, **VARIANTS[variant])
    hard = variant in ("linear", "sigmoid", "one stage", "no bias")
    assert model.score(X, y) > (0.5 if hard else 0.65)


@EVERY_VARIANT
def test_the_probability_is_the_sigmoid_of_the_decision(variant):
    model = fitted(**VARIANTS[variant])
    expected = 1 / (1 + np.exp(-2 * model.temperature_ * model.decision_function(QUERIES)))
    np.testing.assert_allclose(model.predict_proba(QUERIES)[:, 1], expected, rtol=1e-9)


def test_two_classes_decide_at_zero():
    model = fitted()
    decisions = model.decision_function(QUERIES)
    assert decisions.shape == (41,)
    np.testing.assert_array_equal(model.predict_proba(QUERIES)[:, 1] >= 0.5, decisions >= 0)


def test_one_against_one_decides_by_sums_of_probabilities():
    decisions = fitted("ovo").decision_function(QUERIES)
    np.testing.assert_allclose(decisions.sum(axis=1), 3.0)  # three pairs
    assert ((decisions >= 0) & (decisions <= 2)).all()


def test_one_against_the_rest_decides_by_probabilities():
    decisions = fitted("ovr").decision_function(QUERIES)
    assert ((decisions >= 0) & (decisions <= 1)).all()


def test_the_decision_is_the_sum_of_the_kernels():
    model = fitted(standardize=False)
    assert len(model.kernel_weights_) > 1
    values = [
        np.exp(-gamma * ((QUERIES[:, None] - model.support_vectors_) ** 2).sum(axis=2))
        if name == "rbf"
        else np.exp(-gamma * np.abs(QUERIES[:, None] - model.support_vectors_).sum(axis=2))
        for _, _, name, gamma, _ in model.kernel_weights_
    ]
    np.testing.assert_allclose(
        np.hstack(values) @ model.dual_coef_[0] + model.intercept_,
        model.decision_function(QUERIES),
        atol=1e-4,  # six digits of gamma
    )


# --- rows held out --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_held_out_error_is_close_to_the_error(seed):
    X, y = make_classification(1400, 10, n_informative=5, flip_y=0.1, random_state=seed)
    model = EnsembleSVC(random_state=0).fit(X[:400], y[:400])
    error = 1 - model.score(X[400:], y[400:])
    assert model.cv_error_ == pytest.approx(error, abs=0.05)
    loss = log_loss(y[400:], model.predict_proba(X[400:]))
    assert model.cv_log_loss_ == pytest.approx(loss, abs=0.1)


@MULTI_CLASS
def test_the_held_out_error_of_many_classes(multi_class):
    X, y = make_classification(
        2400, 10, n_informative=6, n_classes=4, flip_y=0.05, class_sep=1.5, random_state=0
    )
    model = EnsembleSVC(multi_class=multi_class, random_state=0).fit(X[:400], y[:400])
    assert model.cv_error_ == pytest.approx(1 - model.score(X[400:], y[400:]), abs=0.06)
    loss = log_loss(y[400:], model.predict_proba(X[400:]))
    assert model.cv_log_loss_ == pytest.approx(loss, abs=0.12)


def test_probabilities_are_frequencies():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(3000, 2))
    chance = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.uniform(size=3000) < chance).astype(int)
    model = EnsembleSVC(random_state=0).fit(X[:600], y[:600])
    assert np.abs(model.predict_proba(X[600:])[:, 1] - chance[600:]).mean() < 0.06
