"""GreedySVC among scikit-learn's tools: copies, pipelines, searches."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix
from problems.greedy import (
    GAMMA,
    QUERIES,
    RBF,
    fitted,
    four_classes,
    paper,
    stage_problem,
    two_classes,
)
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@pytest.mark.parametrize("multi_class", [None, "ovo"])
@pytest.mark.parametrize(
    "round_trip", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
def test_copies_decide_alike(round_trip, multi_class):
    model = fitted(multi_class, max_visits=4)
    _, Q = stage_problem(multi_class)
    np.testing.assert_array_equal(
        round_trip(model).decision_function(Q), model.decision_function(Q)
    )


def test_a_clone_has_the_parameters():
    model = paper(gamma=0.7, max_visits=3, class_weight={0: 2.0}, n_jobs=2)
    assert clone(model).get_params() == model.get_params()


def test_a_clone_is_not_fitted():
    assert not hasattr(clone(fitted()), "classes_")


def test_fitted_state_is_plain():
    kinds = (np.ndarray, list, int, float, str, type(None), sp.csr_array)
    public = {k: v for k, v in vars(fitted("ovo")).items() if not k.startswith("_")}
    assert all(isinstance(v, kinds) for v in public.values())


def test_fitting_again_forgets_the_first_fit():
    model = paper(gamma=GAMMA).fit(*four_classes()).fit(*two_classes())
    np.testing.assert_array_equal(
        model.decision_function(QUERIES), fitted().decision_function(QUERIES)
    )


def test_works_in_a_grid_search_over_a_pipeline():
    X, y = two_classes()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), paper()), {"greedysvc__gamma": [0.1, 1.0]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.6


def test_cross_validation_cuts_precomputed_kernels_both_ways():
    X, y = two_classes()
    K = kernel_matrix(RBF, X)
    np.testing.assert_array_equal(
        cross_val_score(paper(kernel="precomputed"), K, y, cv=3),
        cross_val_score(paper(gamma=GAMMA), X, y, cv=3),
    )


def test_probabilities_come_from_calibration():
    X, y = two_classes()
    model = CalibratedClassifierCV(paper(), cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), 2)


def test_held_out_scores_come_from_cross_val_predict():
    X, y = four_classes()
    scores = cross_val_predict(paper(), X, y, cv=3, method="decision_function")
    assert scores.shape == (len(y), 4)
