"""Clones, pickles, parameters and reprs of every estimator."""

import functools
import io
import pickle

import joblib
import numpy as np
import pytest
from problems.sklearn_tools import CLASSIFIERS, TASKS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from hardmargin import MarginDiscriminantAnalysis, MinimumEnclosingBall

ESTIMATORS = CLASSIFIERS | {
    "MarginDiscriminantAnalysis": MarginDiscriminantAnalysis(2, random_state=0),
    "MinimumEnclosingBall": MinimumEnclosingBall(random_state=0),
}
TASK = TASKS["many classes"]
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def answers(model):
    has_scores = hasattr(model, "decision_function")
    return model.decision_function(TASK.X_test) if has_scores else model.transform(TASK.X_test)


@functools.cache
def fitted(name, place="bare"):
    model = clone(ESTIMATORS[name])
    model = make_pipeline(StandardScaler(), model) if place == "pipeline" else model
    return model.fit(TASK.X, TASK.y)


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.once_per("name")
@every_estimator
@pytest.mark.parametrize("place", ["bare", "pipeline"])
@pytest.mark.parametrize("copied", [through_pickle, through_joblib])
def test_a_pickle_answers_alike(copied, place, name):
    model = fitted(name, place)
    np.testing.assert_array_equal(answers(copied(model)), answers(model))


@every_estimator
def test_a_clone_has_the_parameters(name):
    assert clone(ESTIMATORS[name]).get_params() == ESTIMATORS[name].get_params()


@every_estimator
def test_a_clone_of_a_fitted_one_is_not_fitted(name):
    with pytest.raises(NotFittedError):
        answers(clone(fitted(name)))


@every_estimator
def test_parameters_make_the_same_estimator(name):
    parameters = ESTIMATORS[name].get_params()
    assert type(ESTIMATORS[name])(**parameters).get_params() == parameters


@every_estimator
def test_parameters_can_be_set(name):
    parameters = ESTIMATORS[name].get_params()
    assert type(ESTIMATORS[name])().set_params(**parameters).get_params() == parameters


@every_estimator
def test_an_unknown_parameter_is_refused(name):
    with pytest.raises(ValueError, match="Invalid parameter 'slack'"):
        clone(ESTIMATORS[name]).set_params(slack=1)


@pytest.mark.once_per("name")
@every_estimator
@pytest.mark.parametrize("is_fitted", [False, True], ids=["unfitted", "fitted"])
def test_the_html_repr_names_the_estimator(is_fitted, name):
    model = fitted(name) if is_fitted else ESTIMATORS[name]
    assert name in model._repr_html_()


@every_estimator
def test_the_html_repr_of_a_pipeline_names_the_estimator(name):
    assert name in estimator_html_repr(make_pipeline(StandardScaler(), ESTIMATORS[name]))


@every_estimator
def test_the_repr_makes_the_same_estimator(name):
    made = eval(repr(ESTIMATORS[name]), {type(e).__name__: type(e) for e in ESTIMATORS.values()})
    assert made.get_params() == ESTIMATORS[name].get_params()
