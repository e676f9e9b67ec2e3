"""The stages of GreedySVC: the decisions of every earlier stop."""

import numpy as np
import pytest
from oracles.kernels import kernel_matrix
from problems.greedy import QUERIES, RBF, fit_quietly, fitted, paper, stage_problem, two_classes
from sklearn.base import clone

STAGED = pytest.mark.parametrize(
    ("multi_class", "max_visits"), [(None, 1), (None, 8), ("ovo", 1), ("ovo", 8), ("ovr", 1)]
)


@STAGED
def test_the_last_stage_is_the_decision(multi_class, max_visits):
    model = fitted(multi_class, max_visits=max_visits)
    _, Q = stage_problem(multi_class)
    *_, last = model.staged_decision_function(Q)
    np.testing.assert_allclose(last, model.decision_function(Q), rtol=1e-9, atol=1e-9)


@STAGED
def test_there_are_as_many_stages_as_the_longest_path_has(multi_class, max_visits):
    model = fitted(multi_class, max_visits=max_visits)
    _, Q = stage_problem(multi_class)
    assert sum(1 for _ in model.staged_decision_function(Q)) == np.max(model.n_iter_)


@STAGED
@pytest.mark.parametrize("stage", [1, 7, 20])
def test_a_stage_is_the_fit_that_stops_there(multi_class, max_visits, stage):
    (X, y), Q = stage_problem(multi_class)
    model = fitted(multi_class, max_visits=max_visits)
    stopped = fit_quietly(clone(model).set_params(max_stages=stage), X, y)
    stages = list(model.staged_decision_function(Q))
    np.testing.assert_allclose(
        stages[stage - 1], stopped.decision_function(Q), rtol=1e-9, atol=1e-9
    )


@STAGED
def test_staged_predictions_follow_the_staged_decisions(multi_class, max_visits):
    model = fitted(multi_class, max_visits=max_visits)
    _, Q = stage_problem(multi_class)
    *_, last = model.staged_predict(Q)
    assert last.tolist() == model.predict(Q).tolist()


@pytest.mark.parametrize("kernel", ["precomputed", "linear"])
def test_stages_of_other_kernels_end_at_the_decision(kernel):
    X, y = two_classes()
    if kernel == "precomputed":
        X = kernel_matrix(RBF, X)
    model = paper(kernel=kernel, max_visits=4).fit(X, y)
    *_, last = model.staged_decision_function(X)
    np.testing.assert_allclose(last, model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_stages_do_not_share_memory():
    first, second = list(fitted().staged_decision_function(QUERIES))[:2]
    assert not np.shares_memory(first, second)
