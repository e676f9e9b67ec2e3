"""MinimumEnclosingBall in the tools that scikit-learn's IsolationForest goes through."""

import functools

import numpy as np
import pandas as pd
import pytest
from problems.sklearn_tools import described, parameter
from sklearn.base import is_outlier_detector
from sklearn.ensemble import IsolationForest
from sklearn.inspection import DecisionBoundaryDisplay, permutation_importance
from sklearn.metrics import (
    PrecisionRecallDisplay,
    RocCurveDisplay,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import MinimumEnclosingBall


@functools.cache
def rows(seed=0):
    """Rows around the origin, labelled 1; every tenth is far away from all, labelled -1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 2))
    y = np.where(np.arange(100) % 10 == 0, -1, 1)
    X[y == -1] *= 6.0 / np.linalg.norm(X[y == -1], axis=1, keepdims=True)
    return X, y


X, Y = rows()
X_TEST, Y_TEST = rows(1)
PLACES = {
    "bare": lambda detector: detector,
    "pipeline": lambda detector: make_pipeline(StandardScaler(), detector),
}
in_both_places = pytest.mark.parametrize("place", PLACES)


def ball(place="bare"):
    return PLACES[place](MinimumEnclosingBall(contamination=0.1, C=0.5, random_state=0))


def forest(place="bare"):
    return PLACES[place](IsolationForest(n_estimators=20, contamination=0.1, random_state=0))


def test_it_is_known_as_an_outlier_detector():
    assert is_outlier_detector(ball())


@in_both_places
@pytest.mark.parametrize("method", ["predict", "decision_function", "score_samples"])
def test_answers_have_the_types_of_those_of_a_forest(method, place):
    found, expected = (getattr(m.fit(X), method)(X_TEST) for m in (ball(place), forest(place)))
    assert described(found) == described(expected)


@in_both_places
def test_fit_predict_has_the_types_of_that_of_a_forest(place):
    assert described(ball(place).fit_predict(X)) == described(forest(place).fit_predict(X))


@in_both_places
def test_labels_are_ignored(place):
    np.testing.assert_array_equal(
        ball(place).fit(X, Y).decision_function(X_TEST),
        ball(place).fit(X).decision_function(X_TEST),
    )


@in_both_places
@pytest.mark.parametrize("method", ["decision_function", "score_samples"])
def test_scores_tell_outliers_apart(method, place):
    scores = getattr(ball(place).fit(X), method)(X_TEST)
    assert roc_auc_score(Y_TEST, scores) > 0.9


@in_both_places
def test_a_search_accepts_a_scorer_of_the_decisions(place):
    model = ball(place)
    search = GridSearchCV(model, {parameter(model, "C"): [0.1, 1.0]}, scoring="roc_auc", cv=2)
    assert search.fit(X, Y).best_score_ > 0.9


def test_a_search_accepts_a_scorer_of_its_own():
    scoring = make_scorer(roc_auc_score, response_method="decision_function")
    search = GridSearchCV(ball(), {"C": [0.1, 1.0]}, scoring=scoring, cv=2)
    assert search.fit(X, Y).best_score_ > 0.9


@pytest.mark.parametrize("scoring", ["accuracy", "f1", "balanced_accuracy", "average_precision"])
def test_string_scorers_score_it(scoring):
    assert cross_val_score(ball(), X, Y, scoring=scoring, cv=2).min() > 0.6


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_held_out_answers_have_the_types_of_those_of_a_forest(method):
    found, expected = (cross_val_predict(m, X, cv=2, method=method) for m in (ball(), forest()))
    assert described(found) == described(expected)


@in_both_places
@pytest.mark.parametrize("response_method", ["auto", "predict", "decision_function"])
def test_its_boundary_is_drawn(response_method, place):
    found, expected = (
        DecisionBoundaryDisplay.from_estimator(
            model.fit(X), X, grid_resolution=10, response_method=response_method
        ).response
        for model in (ball(place), forest(place))
    )
    assert described(found) == described(expected)


@in_both_places
def test_its_roc_curve_is_drawn(place):
    scores = ball(place).fit(X).score_samples(X_TEST)
    assert RocCurveDisplay.from_predictions(Y_TEST, scores).roc_auc > 0.9


def test_its_precision_recall_curve_is_drawn():
    display = PrecisionRecallDisplay.from_predictions(Y_TEST, ball().fit(X).score_samples(X_TEST))
    assert display.average_precision > 0.9


def test_importances_are_found():
    result = permutation_importance(
        ball().fit(X), X_TEST, Y_TEST, scoring="roc_auc", n_repeats=2, random_state=0
    )
    assert result.importances.shape == (2, 2)


def test_frames_give_the_scores_of_arrays():
    framed = ball().fit(pd.DataFrame(X, columns=["a", "b"]))
    np.testing.assert_allclose(
        framed.score_samples(pd.DataFrame(X_TEST, columns=["a", "b"])),
        ball().fit(X).score_samples(X_TEST),
        atol=1e-9,
    )
