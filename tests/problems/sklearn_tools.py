"""The rows, the classifiers and the references that tools of scikit-learn are tried with."""

import functools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import (
    CoreVectorSVC,
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
)


class Task(NamedTuple):
    """Rows to train on and rows to judge by."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def rows_of_classes(n_rows, labels, seed):
    """Draw normal rows around a centre for each class, and add two columns of noise."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % len(labels)
    centers = np.array([[0.0, 0.0], [3.2, 0.0], [1.6, 2.8]])
    X = rng.normal(size=(n_rows, 4))
    X[:, :2] += centers[codes]
    return X, np.array(labels)[codes]


def task_of(labels):
    return Task(*rows_of_classes(90, labels, seed=0), *rows_of_classes(120, labels, seed=1))


TASKS = {
    "two classes": task_of([0, 1]),
    "many classes": task_of(["ash", "beech", "oak"]),
}


class CalibratedSVC(SVC):
    """scikit-learn's SVC, with the probabilities of its CalibratedClassifierCV."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X, y, sample_weight
        self.__dict__.pop("calibrated_", None)
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        return self.calibrated_.predict_proba(X)

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))

    @functools.cached_property
    def calibrated_(self):
        """Calibrate on demand: few tools need it, and it takes five times as long as the fit."""
        rows, labels, sample_weight = self.seen_
        model = CalibratedClassifierCV(SVC(**self.get_params()), ensemble=False, cv=3)
        return model.fit(rows, labels, sample_weight=sample_weight)


PROBABILISTIC = {
    "EnsembleSVC": EnsembleSVC(cv=3, random_state=0),
    "GreedySVC": GreedySVC(cv=3, random_state=0),
}
OTHERS = {
    "HardMarginSVC": HardMarginSVC(),
    "RhoEnsembleSVC": RhoEnsembleSVC(5),  # rounding grows from stage to stage
    "RhoSVC": RhoSVC(),
    "ParzenClassifier": ParzenClassifier(),
    "MultiplicativeSVC": MultiplicativeSVC(gamma=1.0, tol=0.01),
    "CoreVectorSVC": CoreVectorSVC(random_state=0),
    "PathSVC": PathSVC("loo", C_max=1.0),
    "RigorousSVC": RigorousSVC(),
    "DiversifiedSVC": DiversifiedSVC(random_state=0),
}
CLASSIFIERS = PROBABILISTIC | OTHERS


def classifier(name, place="bare"):
    """Make a classifier of the table, by itself or as the last step of a pipeline."""
    return placed(CLASSIFIERS[name], place)


def make(name, **parameters):
    """Make a classifier of the table, and set those of the parameters that it has."""
    model = classifier(name)
    known = model.get_params()
    return model.set_params(**{key: value for key, value in parameters.items() if key in known})


def reference(is_probabilistic, place="bare"):
    """Make scikit-learn's counterpart."""
    return placed(CalibratedSVC() if is_probabilistic else SVC(), place)


def placed(estimator, place):
    estimator = clone(estimator)
    return make_pipeline(StandardScaler(), estimator) if place == "pipeline" else estimator


def parameter(estimator, name):
    """Name a parameter of the classifier as a search over the estimator must."""
    return f"{estimator.steps[-1][0]}__{name}" if isinstance(estimator, Pipeline) else name


def agreement(answers, labels):
    """How well predictions, scores or probabilities of any shape agree with the labels."""
    codes = np.unique(labels, return_inverse=True)[1]
    if answers.ndim == 2:
        return np.mean(answers.argmax(axis=1) == codes)
    if codes.max() > 1:
        return np.mean(answers == (codes if answers.dtype.kind == "i" else labels))
    return roc_auc_score(codes, answers)


def described(value):
    """Types, shapes and dtypes of a value, whatever is in it."""
    if isinstance(value, dict):
        return {name: described(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [type(value), *map(described, value)]
    if isinstance(value, pd.DataFrame):
        return type(value), value.shape, list(value.dtypes), list(value.columns)
    if isinstance(value, np.ndarray):
        return type(value), value.shape, value.dtype
    return type(value)
