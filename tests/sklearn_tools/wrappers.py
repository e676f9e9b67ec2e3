"""Tools that fit a classifier, often many times: each returns its results for the test rows."""

import numpy as np
from problems.sklearn_tools import agreement, parameter
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    permutation_test_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import SelfTrainingClassifier


def outcome(model, task, *methods):
    """Fit a tool; return its answers for the test rows and its score."""
    model.fit(task.X, task.y)
    answers = {name: getattr(model, name)(task.X_test) for name in ("predict", *methods)}
    return answers | {"classes": model.classes_, "score": model.score(task.X_test, task.y_test)}


def stacking(clf, task):
    members = [("svm", clf), ("bayes", GaussianNB())]
    return outcome(StackingClassifier(members, LogisticRegression(), cv=2), task, "transform")


def stacking_on_top(clf, task):
    members = [("bayes", GaussianNB()), ("logistic", LogisticRegression())]
    return outcome(StackingClassifier(members, clf, cv=2), task, "decision_function")


def hard_voting(clf, task):
    members = [("svm", clf), ("bayes", GaussianNB()), ("logistic", LogisticRegression())]
    return outcome(VotingClassifier(members), task, "transform")


def soft_voting(clf, task):
    members = [("svm", clf), ("bayes", GaussianNB())]
    return outcome(VotingClassifier(members, voting="soft"), task, "predict_proba", "transform")


def bagging(clf, task):
    model = BaggingClassifier(clf, n_estimators=3, max_features=3, random_state=0)
    return outcome(model, task, "predict_proba")


def boosting(clf, task):
    model = AdaBoostClassifier(clf, n_estimators=3, random_state=0)
    return outcome(model, task, "predict_proba", "decision_function")


def calibration(clf, task):
    return outcome(CalibratedClassifierCV(clf, cv=2), task, "predict_proba")


def isotonic_calibration(clf, task):
    model = CalibratedClassifierCV(clf, method="isotonic", cv=2, ensemble=False)
    return outcome(model, task, "predict_proba")


def calibration_of_a_fitted_one(clf, task):
    frozen = FrozenEstimator(clf.fit(task.X, task.y))
    return outcome(CalibratedClassifierCV(frozen), task, "predict_proba")


def fixed_threshold(clf, task):
    return outcome(FixedThresholdClassifier(clf), task)


def fixed_threshold_of_probabilities(clf, task):
    model = FixedThresholdClassifier(clf, threshold=0.5, response_method="predict_proba")
    return outcome(model, task, "predict_proba")


def tuned_threshold(clf, task):
    return outcome(TunedThresholdClassifierCV(clf, cv=2, thresholds=10), task)


def tuned_threshold_of_probabilities(clf, task):
    model = TunedThresholdClassifierCV(
        clf, cv=2, thresholds=10, scoring="f1", response_method="predict_proba"
    )
    return outcome(model, task, "predict_proba")


def one_vs_rest(clf, task):
    return outcome(OneVsRestClassifier(clf), task, "decision_function")


def one_vs_rest_probabilities(clf, task):
    return outcome(OneVsRestClassifier(clf), task, "predict_proba")


def one_vs_one(clf, task):
    return outcome(OneVsOneClassifier(clf), task, "decision_function")


def output_code(clf, task):
    return outcome(OutputCodeClassifier(clf, code_size=2, random_state=0), task)


def two_targets(task):
    """Both the label and the side of the plane that a row is on, as zeros and ones."""
    return [
        np.column_stack([y == task.y[0], X[:, 1] > 1]).astype(int)
        for X, y in ((task.X, task.y), (task.X_test, task.y_test))
    ]


def multi_output(clf, task):
    targets, test = two_targets(task)
    model = MultiOutputClassifier(clf).fit(task.X, targets)
    predicted = model.predict(task.X_test)
    return {"predict": predicted, "classes": model.classes_, "score": np.mean(predicted == test)}


def multi_output_probabilities(clf, task):
    targets, test = two_targets(task)
    probabilities = MultiOutputClassifier(clf).fit(task.X, targets).predict_proba(task.X_test)
    scores = [agreement(p, column) for p, column in zip(probabilities, test.T, strict=True)]
    return {"predict_proba": probabilities, "score": np.mean(scores)}


def classifier_chain(clf, task):
    targets, test = two_targets(task)
    model = ClassifierChain(clf, cv=2, random_state=0).fit(task.X, targets)
    predicted = model.predict(task.X_test)
    return {
        "predict": predicted,
        "decision_function": model.decision_function(task.X_test),
        "score": np.mean(predicted == test),
    }


def classifier_chain_of_probabilities(clf, task):
    targets, test = two_targets(task)
    model = ClassifierChain(clf, cv=2, chain_method="predict_proba", random_state=0)
    model.fit(task.X, targets)
    return {
        "predict_proba": model.predict_proba(task.X_test),
        "score": np.mean(model.predict(task.X_test) == test),
    }


def self_training(clf, task):
    classes, codes = np.unique(task.y, return_inverse=True)
    known = task._replace(
        y=np.where(np.arange(len(codes)) < 60, codes, -1),
        y_test=np.searchsorted(classes, task.y_test),
    )
    return outcome(SelfTrainingClassifier(clf, max_iter=2), known, "predict_proba")


def feature_elimination(clf, task):
    model = RFECV(clf.set_params(kernel="linear"), cv=2, min_features_to_select=2)
    return outcome(model, task) | {"ranking": model.ranking_, "support": model.support_}


def selection_by_coefficients(clf, task):
    model = SelectFromModel(clf.set_params(kernel="linear"), max_features=2).fit(task.X, task.y)
    kept = model.get_support()
    return {"transform": model.transform(task.X_test), "kept": kept, "score": kept[0]}


def sequential_selection(clf, task):
    model = SequentialFeatureSelector(clf, n_features_to_select=1, cv=2).fit(task.X, task.y)
    kept = model.get_support()
    return {"transform": model.transform(task.X_test), "kept": kept, "score": kept[:2].sum()}


def grid_search(clf, task):
    model = GridSearchCV(clf, {parameter(clf, "gamma"): [0.1, 0.3]}, cv=2)
    return outcome(model, task) | {"results": sorted(model.cv_results_)}


def halving_search(clf, task):
    model = HalvingGridSearchCV(
        clf, {parameter(clf, "gamma"): [0.1, 0.3]}, cv=2, factor=2, min_resources=60, random_state=1
    )
    return outcome(model, task)


def cross_validation(clf, task):
    results = cross_validate(
        clf, task.X, task.y, cv=2, return_train_score=True, return_estimator=True
    )
    del results["estimator"]
    return results | {"score": results["test_score"].mean()}


def held_out(method, clf, task):
    answers = cross_val_predict(clf, task.X, task.y, cv=2, method=method)
    return {"answers": answers, "score": agreement(answers, task.y)}


def importance_of_permutations(clf, task):
    clf = clone(clf).fit(task.X, task.y)
    result = permutation_importance(clf, task.X_test, task.y_test, n_repeats=2, random_state=0)
    return dict(result) | {"score": result.importances_mean[0]}


def score_against_permutations(clf, task):
    found, permuted, p_value = permutation_test_score(
        clf, task.X, task.y, cv=2, n_permutations=2, random_state=0
    )
    return {"permuted": permuted, "p_value": p_value, "score": found}
