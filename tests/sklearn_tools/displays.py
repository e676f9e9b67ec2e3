"""The displays of scikit-learn: each takes a classifier and a task, and returns what it drew."""

import numpy as np
from problems.sklearn_tools import agreement, parameter
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import DecisionBoundaryDisplay, PartialDependenceDisplay
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    DetCurveDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
)
from sklearn.model_selection import LearningCurveDisplay, ValidationCurveDisplay, cross_validate


def ends(values):
    """First and last point of a curve, whose length depends on the scores."""
    return values[[0, -1]]


def roc_curve(clf, task):
    display = RocCurveDisplay.from_estimator(clf.fit(task.X, task.y), task.X_test, task.y_test)
    return {
        "curve": (ends(display.fpr), ends(display.tpr)),
        "pos_label": display.pos_label,
        "score": display.roc_auc,
    }


def roc_curves_of_folds(clf, task):
    results = cross_validate(clf, task.X, task.y, cv=2, return_estimator=True, return_indices=True)
    display = RocCurveDisplay.from_cv_results(results, task.X, task.y)
    return {"curves": list(map(ends, display.fpr)), "score": np.mean(display.roc_auc)}


def precision_recall_curve(clf, task):
    clf.fit(task.X, task.y)
    display = PrecisionRecallDisplay.from_estimator(clf, task.X_test, task.y_test)
    return {
        "curve": (ends(display.precision), ends(display.recall)),
        "score": display.average_precision,
    }


def det_curve(clf, task):
    display = DetCurveDisplay.from_estimator(clf.fit(task.X, task.y), task.X_test, task.y_test)
    crossing = np.argmin(np.abs(display.fpr - display.fnr))
    return {"curve": (ends(display.fpr), ends(display.fnr)), "score": 1 - display.fpr[crossing]}


def calibration_curve(clf, task):
    clf.fit(task.X, task.y)
    display = CalibrationDisplay.from_estimator(clf, task.X_test, task.y_test, n_bins=2)
    return {
        "curve": (display.prob_true, display.prob_pred, display.y_prob),
        "score": -np.abs(display.prob_true - display.prob_pred).max(),
    }


def confusion_matrix(clf, task):
    clf.fit(task.X, task.y)
    display = ConfusionMatrixDisplay.from_estimator(clf, task.X_test, task.y_test)
    matrix = display.confusion_matrix
    return {"matrix": matrix, "score": np.trace(matrix) / matrix.sum()}


def boundary_around(clf, task, response_method, **options):
    """Draw the boundary in the first two columns; return it, and its answers for the test rows."""
    rows = task.X_test[:, :2]
    display = DecisionBoundaryDisplay.from_estimator(
        clf.fit(task.X[:, :2], task.y),
        rows,
        grid_resolution=20,
        response_method=response_method,
        **options,
    )
    column = np.abs(display.xx0[0] - rows[:, [0]]).argmin(axis=1)
    row = np.abs(display.xx1[:, 0] - rows[:, [1]]).argmin(axis=1)
    return display.response, display.response[row, column]


def decision_boundary(response_method, clf, task):
    response, answers = boundary_around(clf, task, response_method)
    return {"response": response, "score": agreement(answers, task.y_test)}


def decision_boundary_of_a_class(response_method, clf, task):
    label = task.y[0]
    response, answers = boundary_around(clf, task, response_method, class_of_interest=label)
    return {"response": response, "score": agreement(answers, task.y_test == label)}


def partial_dependence(response_method, clf, task):
    display = PartialDependenceDisplay.from_estimator(
        clf.fit(task.X, task.y),
        task.X_test[:10],
        [0],
        kind="both",
        target=task.y[0] if len(set(task.y)) > 2 else None,
        response_method=response_method,
        grid_resolution=4,
    )
    [result] = display.pd_results
    slope = np.corrcoef(result["grid_values"][0], result["average"][0])[0, 1]
    return dict(result) | {"score": abs(slope)}


def learning_curve(clf, task):
    display = LearningCurveDisplay.from_estimator(
        clf, task.X, task.y, cv=2, train_sizes=[0.8, 1.0], shuffle=True, random_state=0
    )
    return {
        "curve": (display.train_sizes, display.train_scores, display.test_scores),
        "score": display.test_scores[-1].mean(),
    }


def validation_curve(clf, task):
    display = ValidationCurveDisplay.from_estimator(
        clf, task.X, task.y, param_name=parameter(clf, "gamma"), param_range=[0.1, 0.3], cv=2
    )
    return {
        "curve": (display.train_scores, display.test_scores),
        "score": display.test_scores.mean(),
    }
