"""Tools of scikit-learn give the same kind of results for our classifiers as for its SVC.

The table names every tool and the method that it calls. The tests are its rows times the
classifiers, for two classes and for many, bare and in a pipeline.
"""

import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from problems.sklearn_tools import (
    CLASSIFIERS,
    PROBABILISTIC,
    TASKS,
    classifier,
    described,
    reference,
)
from sklearn import config_context
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import RocCurveDisplay
from sklearn_tools import displays, wrappers

#: How much lower than that of SVC a score may be.
MARGIN = 0.15

#: Every tool is tried with these.
MOST_USED = ("EnsembleSVC", "GreedySVC", "CoreVectorSVC")

#: And with these in pipelines: one with probabilities, and one without.
IN_PIPELINES = ("EnsembleSVC", "CoreVectorSVC")
ALL = tuple(CLASSIFIERS)

ANY = (("two classes", "bare"), ("many classes", "bare"), ("many classes", "pipeline"))
TWO = (("two classes", "bare"), ("two classes", "pipeline"))
BARE = (("two classes", "bare"), ("many classes", "bare"))


class Tool(NamedTuple):
    """A tool, the method that it calls, and the cases and classifiers that it is tried with."""

    run: Callable[[Any, Any], dict[str, Any]]
    method: str = "auto"
    cases: tuple[tuple[str, str], ...] = ANY
    names: tuple[str, ...] = MOST_USED


def tools_by_method(name, run, methods, cases=ANY):
    return {f"{name}: {method}": Tool(partial(run, method), method, cases) for method in methods}


# scikit-learn 1.6 draws the scores of two classes only.
DRAWS_MANY = "multiclass_colors" in inspect.signature(DecisionBoundaryDisplay).parameters


TOOLS = {
    "RocCurveDisplay": Tool(displays.roc_curve, cases=TWO, names=ALL),
    "PrecisionRecallDisplay": Tool(displays.precision_recall_curve, cases=TWO),
    "DetCurveDisplay": Tool(displays.det_curve, cases=TWO),
    "CalibrationDisplay": Tool(displays.calibration_curve, "predict_proba", TWO),
    "ConfusionMatrixDisplay": Tool(displays.confusion_matrix, names=ALL),
    "LearningCurveDisplay": Tool(displays.learning_curve),
    "ValidationCurveDisplay": Tool(displays.validation_curve),
    **tools_by_method(
        "DecisionBoundaryDisplay",
        displays.decision_boundary,
        ("auto", "predict"),
    ),
    **tools_by_method(
        "DecisionBoundaryDisplay",
        displays.decision_boundary,
        ("decision_function", "predict_proba"),
        ANY if DRAWS_MANY else TWO,
    ),
    **tools_by_method(
        "DecisionBoundaryDisplay of a class",
        displays.decision_boundary_of_a_class,
        ("decision_function", "predict_proba"),
    ),
    **tools_by_method(
        "PartialDependenceDisplay",
        displays.partial_dependence,
        ("auto", "decision_function", "predict_proba"),
    ),
    **tools_by_method(
        "cross_val_predict",
        wrappers.held_out,
        ("predict", "decision_function", "predict_proba", "predict_log_proba"),
    ),
    "StackingClassifier": Tool(wrappers.stacking),
    "StackingClassifier, on top": Tool(wrappers.stacking_on_top),
    "VotingClassifier, hard": Tool(wrappers.hard_voting),
    "VotingClassifier, soft": Tool(wrappers.soft_voting, "predict_proba"),
    "BaggingClassifier": Tool(wrappers.bagging),
    "AdaBoostClassifier": Tool(wrappers.boosting, cases=BARE),
    "CalibratedClassifierCV": Tool(wrappers.calibration, names=ALL),
    "CalibratedClassifierCV, isotonic": Tool(wrappers.isotonic_calibration),
    "CalibratedClassifierCV, fitted": Tool(wrappers.calibration_of_a_fitted_one),
    "FixedThresholdClassifier": Tool(wrappers.fixed_threshold, cases=TWO),
    "FixedThresholdClassifier: predict_proba": Tool(
        wrappers.fixed_threshold_of_probabilities, "predict_proba", TWO
    ),
    "TunedThresholdClassifierCV": Tool(wrappers.tuned_threshold, cases=TWO),
    "TunedThresholdClassifierCV: predict_proba": Tool(
        wrappers.tuned_threshold_of_probabilities, "predict_proba", TWO
    ),
    "OneVsRestClassifier": Tool(wrappers.one_vs_rest),
    "OneVsRestClassifier: predict_proba": Tool(wrappers.one_vs_rest_probabilities, "predict_proba"),
    "OneVsOneClassifier": Tool(wrappers.one_vs_one),
    "OutputCodeClassifier": Tool(wrappers.output_code),
    "MultiOutputClassifier": Tool(wrappers.multi_output),
    "MultiOutputClassifier: predict_proba": Tool(
        wrappers.multi_output_probabilities, "predict_proba"
    ),
    "ClassifierChain": Tool(wrappers.classifier_chain),
    "ClassifierChain: predict_proba": Tool(
        wrappers.classifier_chain_of_probabilities, "predict_proba"
    ),
    "SelfTrainingClassifier": Tool(wrappers.self_training, "predict_proba"),
    "RFECV": Tool(wrappers.feature_elimination, "coef_", BARE),
    "SelectFromModel": Tool(wrappers.selection_by_coefficients, "coef_", BARE),
    "SequentialFeatureSelector": Tool(wrappers.sequential_selection, cases=TWO),
    "GridSearchCV": Tool(wrappers.grid_search),
    "HalvingGridSearchCV": Tool(wrappers.halving_search),
    "cross_validate": Tool(wrappers.cross_validation),
    "permutation_importance": Tool(wrappers.importance_of_permutations),
    "permutation_test_score": Tool(wrappers.score_against_permutations, cases=TWO),
}
if hasattr(RocCurveDisplay, "from_cv_results"):  # scikit-learn 1.7
    TOOLS["RocCurveDisplay of folds"] = Tool(displays.roc_curves_of_folds, cases=TWO)

OF_PROBABILITIES = [tool for tool in TOOLS if TOOLS[tool].method.endswith("proba")]
CELLS = [
    pytest.param(tool, name, *case, id=", ".join([tool, name, *case]))
    for tool in TOOLS
    for name in TOOLS[tool].names
    for case in TOOLS[tool].cases
    if name in PROBABILISTIC or tool not in OF_PROBABILITIES
    if name in IN_PIPELINES or "bare" in case
]
REFUSALS = [
    pytest.param(tool, *case, id=", ".join([tool, *case]))
    for tool in OF_PROBABILITIES
    for case in TOOLS[tool].cases
]

#: These clone, fit and call a classifier: enough to see that settings do not matter.
CALLS = ("CalibratedClassifierCV", "VotingClassifier, soft")

# The columns that a tool keeps, or the labels that it makes, need not be informative.
pytestmark = pytest.mark.filterwarnings("ignore:The held-out scores:UserWarning")


@functools.cache
def theirs(tool, is_probabilistic, task, place):
    return TOOLS[tool].run(reference(is_probabilistic, place), TASKS[task])


@pytest.mark.once_per("tool", "task")
@pytest.mark.parametrize(("tool", "name", "task", "place"), CELLS)
def test_answers_have_the_types_shapes_and_scores_of_those_for_svc(tool, name, task, place):
    expected = theirs(tool, name in PROBABILISTIC, task, place)
    found = TOOLS[tool].run(classifier(name, place), TASKS[task])
    assert described(found) == described(expected)
    assert found["score"] >= expected["score"] - MARGIN


@pytest.mark.parametrize("name", PROBABILISTIC)
@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_answers_are_the_same_when_transformers_make_frames(library, tool, name):
    task, run = TASKS["two classes"], TOOLS[tool].run
    expected = run(classifier(name, "pipeline"), task)
    with config_context(transform_output=library):
        found = run(classifier(name, "pipeline"), task)
    for what in ("predict", "predict_proba", "classes", "score"):
        np.testing.assert_array_equal(found[what], expected[what])


@pytest.mark.once_per("tool")
@pytest.mark.parametrize(("tool", "task", "place"), REFUSALS)
def test_without_probabilities_the_error_is_that_of_svc(tool, task, place):
    run = TOOLS[tool].run
    with pytest.raises(Exception, match=r"predict_(log_)?proba") as expected:
        run(reference(False, place), TASKS[task])
    with pytest.raises(expected.type, match=r"predict_(log_)?proba"):
        run(classifier("CoreVectorSVC", place), TASKS[task])
