"""Every string scorer for classifiers scores ours as it scores SVC, alone and in searches."""

import functools

import numpy as np
import pytest
from problems.sklearn_tools import (
    CLASSIFIERS,
    PROBABILISTIC,
    TASKS,
    classifier,
    parameter,
    reference,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV

OF_CLUSTERS = {
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "completeness_score",
    "fowlkes_mallows_score",
    "homogeneity_score",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "rand_score",
    "v_measure_score",
}
OF_REGRESSORS = {
    "d2_absolute_error_score",
    "explained_variance",
    "max_error",
    "neg_max_error",
    "neg_mean_absolute_error",
    "neg_mean_absolute_percentage_error",
    "neg_mean_gamma_deviance",
    "neg_mean_poisson_deviance",
    "neg_mean_squared_error",
    "neg_mean_squared_log_error",
    "neg_median_absolute_error",
    "neg_root_mean_squared_error",
    "neg_root_mean_squared_log_error",
    "r2",
}
OF_LABEL_SETS = {"f1_samples", "jaccard_samples", "precision_samples", "recall_samples"}
# A single error more or less can change these by any factor.
UNSTEADY = {"neg_negative_likelihood_ratio", "positive_likelihood_ratio"}
SCORERS = sorted({*get_scorer_names()} - OF_CLUSTERS - OF_REGRESSORS - OF_LABEL_SETS - UNSTEADY)

#: How much lower than that of SVC a score may be.
MARGIN = 0.2

# With two classes, the best two always include the right one.
pytestmark = pytest.mark.filterwarnings("ignore:'k' :sklearn.exceptions.UndefinedMetricWarning")


@functools.cache
def ours(name, task):
    return classifier(name).fit(TASKS[task].X, TASKS[task].y)


@functools.cache
def theirs(is_probabilistic, task):
    return reference(is_probabilistic).fit(TASKS[task].X, TASKS[task].y)


def score_or_error(scorer, model, task):
    try:
        return get_scorer(scorer)(model, TASKS[task].X_test, TASKS[task].y_test)
    except (AttributeError, ValueError) as error:
        return type(error)


@pytest.mark.once_per("scorer")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_scorer_does_what_it_does_for_svc(scorer, name, task):
    expected = score_or_error(scorer, theirs(name in PROBABILISTIC, task), task)
    found = score_or_error(scorer, ours(name, task), task)
    if isinstance(expected, type):
        assert found is expected
    else:
        assert found >= expected - MARGIN


def applicable_scorers(is_probabilistic, task):
    svc = theirs(is_probabilistic, task)
    return [s for s in SCORERS if not isinstance(score_or_error(s, svc, task), type)]


def search_scores(model, task, scorers):
    """Search over one parameter with all scorers at once; the mean scores of the candidates."""
    grid = {parameter(model, "gamma"): [0.1, 0.3]}
    search = GridSearchCV(model, grid, scoring=scorers, refit=False, cv=2, error_score="raise")
    results = search.fit(TASKS[task].X, TASKS[task].y).cv_results_
    return {scorer: results[f"mean_test_{scorer}"] for scorer in scorers}


@pytest.mark.once_per("name")
@pytest.mark.parametrize(
    ("task", "place"),
    [("two classes", "bare"), ("many classes", "bare"), ("many classes", "pipeline")],
)
@pytest.mark.parametrize("name", ["EnsembleSVC", "GreedySVC", "CoreVectorSVC"])
def test_a_search_finds_scores_close_to_those_of_svc(name, task, place):
    is_probabilistic = name in PROBABILISTIC
    scorers = applicable_scorers(is_probabilistic, task)
    expected = search_scores(reference(is_probabilistic, place), task, scorers)
    found = search_scores(classifier(name, place), task, scorers)
    assert [s for s in scorers if (found[s] < expected[s] - MARGIN).any()] == []


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_halving_search_accepts_every_scorer(scorer):
    search = HalvingGridSearchCV(
        classifier("EnsembleSVC"),
        {"gamma": [0.1, 0.3]},
        scoring=scorer,
        refit=False,
        cv=2,
        factor=2,
        min_resources=60,
        random_state=1,
        error_score="raise",
    )
    search.fit(TASKS["two classes"].X, TASKS["two classes"].y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
