"""Nothing makes a model worse silently: it does no harm, or a warning names the parameter."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, make_classification, make_moons
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import train_test_split

from hardmargin import (
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
    ParzenClassifier,
)

SELF_TUNING = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])


@functools.cache
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X[:, :10], y, train_size=200, stratify=y, random_state=0)


def loss_on_new_rows(model):
    _, X, _, y = cancer()
    return log_loss(y, model.predict_proba(X))


# --- weights that are not numbers of rows --------------------------------------------------------


@SELF_TUNING
def test_normalised_weights_change_nothing(estimator):
    X, _, y, _ = cancer()
    plain = estimator(random_state=0).fit(X, y)
    normalised = estimator(random_state=0).fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))
    np.testing.assert_allclose(plain.predict_proba(X), normalised.predict_proba(X), rtol=1e-6)
    assert normalised.cv_log_loss_ == pytest.approx(plain.cv_log_loss_)


@SELF_TUNING
def test_small_weights_of_any_kind_lose_no_probabilities(estimator):
    X, _, y, _ = cancer()
    weights = np.random.default_rng(0).gamma(2.0, size=len(y))
    usual = estimator(random_state=0).fit(X, y, sample_weight=weights / weights.mean())
    small = estimator(random_state=0).fit(X, y, sample_weight=weights / weights.sum())
    assert loss_on_new_rows(small) < 1.1 * loss_on_new_rows(usual)


def test_pairs_of_small_weight_keep_their_machines():
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=0, class_sep=1.5
    )
    weights = np.where(y == 0, 1.0, 1e-6)  # the pair (1, 2) weighs next to nothing
    model = EnsembleSVC(random_state=0).fit(X[:200], y[:200], sample_weight=weights[:200])
    plain = EnsembleSVC(random_state=0).fit(X[:200], y[:200])
    assert model.temperature_[2] > 0.5 * plain.temperature_[2]


@SELF_TUNING
def test_boosting_loses_no_probabilities(estimator):
    X, _, y, _ = cancer()
    boosted = AdaBoostClassifier(estimator(random_state=0), n_estimators=2, random_state=0)
    boosted.fit(X, y)
    first = boosted.estimators_[0]
    assert loss_on_new_rows(first) < 1.1 * loss_on_new_rows(estimator(random_state=0).fit(X, y))


# --- class weights -------------------------------------------------------------------------------


def test_balanced_classes_keep_the_average_precision():
    X, y = make_classification(
        3000, 10, n_informative=4, weights=[0.96], flip_y=0.01, random_state=3
    )
    plain, balanced = (
        EnsembleSVC(class_weight=w, random_state=0).fit(X[:800], y[:800])
        for w in (None, "balanced")
    )
    scores = [
        average_precision_score(y[800:], m.decision_function(X[800:])) for m in (plain, balanced)
    ]
    assert scores[1] == pytest.approx(scores[0])


# --- memory --------------------------------------------------------------------------------------


def test_too_little_memory_says_what_it_costs():
    X, y = make_moons(700, noise=0.2, random_state=0)
    with pytest.warns(UserWarning, match=r"rank \d+, .*700 rows need .* MB.*Raise memory_limit"):
        model = EnsembleSVC(memory_limit="3MB", random_state=0).fit(X, y)
    assert model.rank_ is not None


def test_a_requested_rank_gives_no_warning():
    X, y = make_moons(300, noise=0.2, random_state=0)
    EnsembleSVC(rank=50, memory_limit="1MB", random_state=0).fit(X, y)


# --- rows that hide the others -------------------------------------------------------------------


@SELF_TUNING
@pytest.mark.parametrize("value", [1e12, -1e200])
def test_one_huge_row_leaves_the_others_apart(estimator, value):
    X, X_new, y, y_new = cancer()
    rows = np.vstack([X, np.full((1, X.shape[1]), value)])
    with pytest.warns(UserWarning, match="columns x0, x1, x2, x3, x4 and 5 more .* are clipped"):
        model = estimator(random_state=0).fit(rows, np.append(y, 1))
    assert model.score(X_new, y_new) > 0.9


@SELF_TUNING
def test_one_huge_entry_of_sparse_rows_leaves_the_others_apart(estimator):
    X, X_new, y, y_new = cancer()
    rows = sp.csr_array(np.where(np.median(X, axis=0) < X, X, 0.0))
    new = sp.csr_array(np.where(X_new > np.median(X, axis=0), X_new, 0.0))
    plain = estimator(random_state=0).fit(rows, y).score(new, y_new)
    rows.data[::20] = 1e12
    with pytest.warns(UserWarning, match="are so large"):
        model = estimator(random_state=0).fit(rows, y)
    assert model.score(new, y_new) > plain - 0.06


@SELF_TUNING
def test_rare_entries_of_usual_size_give_no_warning(estimator):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.lognormal(size=(300, 200)) * (rng.uniform(size=(300, 200)) < 0.05)
    X[:, :20] += y[:, None]
    estimator(random_state=0).fit(sp.csr_array(X), y)


@SELF_TUNING
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_rare_indicator_gives_no_warning(estimator, container):
    """Parts of strings that skrub finds are 1 in a few rows, and almost 0 in the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] > 0
    part = np.where(rng.uniform(size=300) < 0.03, rng.uniform(0.9, 1.1, 300), 0.0)
    rows = container(np.column_stack([X, part + rng.normal(0, 1e-5, 300)]))
    assert estimator(random_state=0).fit(rows, y).score(rows, y) > 0.9


@SELF_TUNING
@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_typing_errors_give_a_warning_whatever_the_unit(estimator, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(40, 10, size=(300, 2)) * scale
    y = X[:, 0] > 40 * scale
    X[:3, 1] = 1e6 * scale
    with pytest.warns(UserWarning, match="Some values of column x1 are so large"):
        estimator(random_state=0).fit(X, y)


def test_the_warning_names_the_columns_of_a_data_frame():
    X, _, y, _ = cancer()
    frame = pd.DataFrame(X.copy(), columns=[f"feature {k}" for k in range(10)])
    frame.loc[3, "feature 7"] = 1e12
    with pytest.warns(UserWarning, match="values of column feature 7 are so large"):
        EnsembleSVC(random_state=0).fit(frame, y)


@SELF_TUNING
def test_a_skewed_column_gives_no_warning(estimator):
    X, _, y, _ = cancer()
    estimator(random_state=0).fit(np.exp(X / X.std(axis=0)), y)


@SELF_TUNING
@pytest.mark.parametrize("scale", [2.0**-120, 2.0**100])
def test_columns_of_any_size_in_float32_count_as_any_other(estimator, scale):
    X, X_new, y, _ = cancer()
    X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    plain, scaled = (estimator(random_state=0).fit(X * np.float32(s), y) for s in (1.0, scale))
    np.testing.assert_array_equal(plain.predict(X_new), scaled.predict(X_new * np.float32(scale)))


@SELF_TUNING
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_tiny_columns_count_as_any_other(estimator, container):
    X, X_new, y, _ = cancer()
    plain, tiny = (
        estimator(random_state=0).fit(container(X * scale), y) for scale in (1.0, 2.0**-990)
    )
    np.testing.assert_allclose(
        plain.decision_function(container(X_new)),
        tiny.decision_function(container(X_new * 2.0**-990)),
    )


@pytest.mark.filterwarnings("ignore:The held-out scores")
@pytest.mark.parametrize(
    "model",
    [
        EnsembleSVC(),
        EnsembleSVC(kernel="linear"),
        GreedySVC(),
        ParzenClassifier(),
        MarginDiscriminantAnalysis(),
    ],
    ids=str,
)
def test_constant_rows_give_a_warning(model):
    with pytest.warns(UserWarning, match="All rows look the same to the kernel"):
        model.fit(np.full((20, 3), 7.0), [0, 1] * 10)


def test_a_ball_around_one_point_is_a_ball():
    assert MinimumEnclosingBall(C=None).fit(np.full((20, 3), 7.0)).radius_ == 0


@pytest.mark.parametrize(
    "model",
    [
        EnsembleSVC(standardize=False),
        GreedySVC("spread", max_visits=1),
        HardMarginSVC("spread"),
    ],
    ids=str,
)
def test_a_width_that_separates_only_one_row_gives_a_warning(model):
    X, _, y, _ = cancer()
    rows = np.vstack([X, np.full((1, X.shape[1]), 1e9)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.warns(UserWarning, match="Nearly all rows look the same .* raise gamma"):
            model.fit(rows, np.append(y, 1))


def test_many_equal_rows_among_others_give_no_warning():
    X = np.zeros((120, 3))
    X[::8, 0] = 1.0
    GreedySVC(random_state=0).fit(X, np.arange(120) % 8 == 0)


# --- what is missing ------------------------------------------------------------------------------


@SELF_TUNING
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_a_warning_says_what_probabilities_are_if_no_rows_were_held_out(estimator, method):
    X, _, y, _ = cancer()
    rows = np.concatenate([np.flatnonzero(y == 0)[:3], np.flatnonzero(y == 1)])
    with pytest.warns(UserWarning, match="too few rows.* frequencies of the classes"):
        model = estimator().fit(X[rows], y[rows])
    assert np.isfinite(getattr(model, method)(X)).all()


def test_more_columns_than_rows_keep_the_promise_without_a_warning():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(2_100, 200)), random.integers(0, 2, 2_100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = EnsembleSVC().fit(X[:100], y[:100])
    new_loss = log_loss(y[100:], model.predict_proba(X[100:]))
    assert abs(model.cv_log_loss_ - new_loss) < 0.05
