"""Sample weights and groups reach ``fit`` through scikit-learn's tools, routed or not."""

from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from problems.sklearn_tools import CLASSIFIERS, PROBABILISTIC, TASKS, classifier, parameter
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TASK = TASKS["many classes"]
FOLDS = StratifiedKFold(2)
WEIGHTS = 1.0 + np.arange(len(TASK.y)) % 3
WEIGHTS[::7] = 0.0
GROUPS = np.arange(len(TASK.y)) // 5
# Rows of weight zero are mislabelled, so that a tool that loses the weights is detected.
MISLABELLED = np.where(WEIGHTS == 0, np.roll(TASK.y, 1), TASK.y)

every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
with_groups = pytest.mark.parametrize("name", PROBABILISTIC)
routed_or_not = pytest.mark.parametrize("is_routed", [False, True], ids=["direct", "routed"])


@contextmanager
def routing(is_routed):
    with sklearn.config_context(enable_metadata_routing=is_routed):
        yield


def requesting(name, is_routed):
    """Make a classifier that, with metadata routing, requests weights."""
    model = classifier(name)
    if is_routed:
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    return model


def fitted_directly(model, X, y, **metadata):
    return clone(model).fit(X, y, **metadata).decision_function(TASK.X_test)


@pytest.mark.once_per("name")
@every_classifier
@routed_or_not
def test_cross_validate_hands_weights_to_fit(is_routed, name):
    with routing(is_routed):
        models = cross_validate(
            requesting(name, is_routed),
            TASK.X,
            MISLABELLED,
            cv=FOLDS,
            params={"sample_weight": WEIGHTS},
            return_estimator=True,
        )["estimator"]
    train, _ = next(FOLDS.split(TASK.X, MISLABELLED))
    np.testing.assert_array_equal(
        models[0].decision_function(TASK.X_test),
        fitted_directly(
            classifier(name), TASK.X[train], MISLABELLED[train], sample_weight=WEIGHTS[train]
        ),
    )


@pytest.mark.once_per("name")
@every_classifier
@routed_or_not
def test_a_search_hands_weights_to_fit(is_routed, name):
    with routing(is_routed):
        search = GridSearchCV(requesting(name, is_routed), {"gamma": [0.2]}, cv=FOLDS)
        search.fit(TASK.X, MISLABELLED, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(
        search.decision_function(TASK.X_test),
        fitted_directly(
            classifier(name).set_params(gamma=0.2), TASK.X, MISLABELLED, sample_weight=WEIGHTS
        ),
    )


@pytest.mark.once_per("name")
@every_classifier
@routed_or_not
def test_a_pipeline_hands_weights_to_fit(is_routed, name):
    scaler = StandardScaler()
    with routing(is_routed):
        if is_routed:
            scaler.set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, requesting(name, is_routed))
        key = "sample_weight" if is_routed else parameter(pipeline, "sample_weight")
        pipeline.fit(TASK.X, MISLABELLED, **{key: WEIGHTS})
    scaled = StandardScaler().fit(TASK.X)
    direct = classifier(name).fit(scaled.transform(TASK.X), MISLABELLED, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(
        pipeline.decision_function(TASK.X_test),
        direct.decision_function(scaled.transform(TASK.X_test)),
    )


@every_classifier
def test_weights_that_nobody_requested_are_refused(name):
    with routing(True), pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(classifier(name), TASK.X, TASK.y, params={"sample_weight": WEIGHTS})


@every_classifier
def test_scores_are_weighted_where_that_is_requested(name):
    with routing(True):
        model = classifier(name).set_fit_request(sample_weight=False)
        model.set_score_request(sample_weight=True)
        params = {"sample_weight": WEIGHTS}
        found = cross_validate(model, TASK.X, MISLABELLED, cv=FOLDS, params=params)["test_score"]
    train, test = next(FOLDS.split(TASK.X, MISLABELLED))
    direct = classifier(name).fit(TASK.X[train], MISLABELLED[train])
    assert found[0] == direct.score(TASK.X[test], MISLABELLED[test], sample_weight=WEIGHTS[test])


@with_groups
@routed_or_not
def test_groups_reach_the_folds_inside_fit(is_routed, name):
    outer = GroupKFold(2)
    with routing(is_routed):
        model = classifier(name).set_params(cv=GroupKFold(3))
        # With routing, splitters that use groups receive them without a request.
        splitter_has = {} if is_routed else {"groups": GROUPS}
        model = model.set_fit_request(groups=True) if is_routed else model
        models = cross_validate(
            model,
            TASK.X,
            TASK.y,
            cv=outer,
            params={"groups": GROUPS},
            return_estimator=True,
            **splitter_has,
        )["estimator"]
    train, _ = next(outer.split(TASK.X, TASK.y, GROUPS))
    np.testing.assert_array_equal(
        models[0].decision_function(TASK.X_test),
        fitted_directly(
            classifier(name).set_params(cv=GroupKFold(3)),
            TASK.X[train],
            TASK.y[train],
            groups=GROUPS[train],
        ),
    )


@with_groups
def test_groups_reach_the_folds_inside_a_searched_pipeline(name):
    with routing(True):
        model = classifier(name).set_params(cv=GroupKFold(3)).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        search = GridSearchCV(pipeline, {parameter(pipeline, "gamma"): [0.2]}, cv=GroupKFold(2))
        search.fit(TASK.X, TASK.y, groups=GROUPS)
    scaled = StandardScaler().fit(TASK.X)
    direct = classifier(name).set_params(cv=GroupKFold(3), gamma=0.2)
    direct.fit(scaled.transform(TASK.X), TASK.y, groups=GROUPS)
    np.testing.assert_array_equal(
        search.decision_function(TASK.X_test),
        direct.decision_function(scaled.transform(TASK.X_test)),
    )
