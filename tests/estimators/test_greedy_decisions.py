"""What GreedySVC decides and predicts, whatever the kernel."""

import numpy as np
import pytest
from oracles.kernels import kernel_matrix
from problems.greedy import (
    GAMMA,
    MULTI_CLASS,
    QUERIES,
    QUERIES_4,
    RBF,
    dense,
    fitted,
    four_classes,
    paper,
    two_classes,
)
from sklearn.datasets import make_classification
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from hardmargin.kernels import Kernel


def naive_margins(model, X, Q):
    """The machines' scores of Q, from the public attributes alone."""
    kernel = Kernel(model.kernel_, model.gamma_, model.degree, model.coef0)
    K = kernel_matrix(kernel, Q, X[model.support_])
    return K @ dense(model.dual_coef_).T + model.intercept_


@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]
)
def test_decision_function_follows_from_the_attributes(kernel):
    model = paper(gamma=0.1, kernel=kernel, coef0=0.5, threshold=0.1).fit(*two_classes())
    expected = naive_margins(model, two_classes()[0], QUERIES)[:, 0]
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-9, atol=1e-9)


def test_one_vs_rest_decisions_follow_from_the_attributes():
    model = fitted("ovr")
    expected = naive_margins(model, four_classes()[0], QUERIES_4)
    np.testing.assert_allclose(model.decision_function(QUERIES_4), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("multi_class", "wrapper"), [("ovo", OneVsOneClassifier), ("ovr", OneVsRestClassifier)]
)
def test_many_classes_decide_like_scikit_learn_around_two(multi_class, wrapper):
    wrapped = wrapper(paper(gamma=GAMMA)).fit(*four_classes())
    np.testing.assert_allclose(
        fitted(multi_class).decision_function(QUERIES_4),
        wrapped.decision_function(QUERIES_4),
        rtol=1e-9,
        atol=1e-9,
    )


@MULTI_CLASS
def test_predictions_are_the_largest_decisions(multi_class):
    model = fitted(multi_class)
    expected = model.decision_function(QUERIES_4).argmax(axis=1)
    assert model.predict(QUERIES_4).tolist() == expected.tolist()


def test_prediction_is_the_sign_of_the_decision():
    decisions = fitted().decision_function(QUERIES)
    assert fitted().predict(QUERIES).tolist() == (decisions > 0).astype(int).tolist()


def test_decision_zero_goes_to_the_second_class():
    K = np.eye(4)
    model = paper(kernel="precomputed").fit(K, ["a", "b", "a", "b"])
    assert model.predict(np.zeros((1, 4))).tolist() == ["b"]


def test_threshold_moves_the_decision():
    difference = fitted().decision_function(QUERIES) - fitted(threshold=0.25).decision_function(
        QUERIES
    )
    np.testing.assert_allclose(difference, 0.25)


def test_accuracy_is_far_above_chance():
    X, y = make_classification(600, 8, n_informative=5, class_sep=1.5, random_state=0)
    assert paper().fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.85


def test_precomputed_kernel_decides_like_the_kernel_itself():
    X, y = two_classes()
    model = paper(kernel="precomputed").fit(kernel_matrix(RBF, X), y)
    decisions = model.decision_function(kernel_matrix(RBF, QUERIES, X))
    np.testing.assert_allclose(decisions, fitted().decision_function(QUERIES), rtol=1e-9)


def test_precomputed_kernel_of_many_classes_decides_like_the_kernel_itself():
    X, y = four_classes()
    model = paper(kernel="precomputed").fit(kernel_matrix(RBF, X), y)
    decisions = model.decision_function(kernel_matrix(RBF, QUERIES_4, X))
    np.testing.assert_allclose(decisions, fitted("ovo").decision_function(QUERIES_4), rtol=1e-9)


@MULTI_CLASS
def test_callable_kernel_decides_like_the_kernel_itself(multi_class):
    def function(X, Z):
        return kernel_matrix(RBF, X, Z)

    model = paper(kernel=function, multi_class=multi_class).fit(*four_classes())
    np.testing.assert_allclose(
        model.decision_function(QUERIES_4),
        fitted(multi_class).decision_function(QUERIES_4),
        rtol=1e-9,
    )


@pytest.mark.parametrize("method", ["fused", "lazy", "auto"])
def test_method_does_not_change_the_model(method):
    np.testing.assert_array_equal(fitted(method=method).dual_coef_, fitted().dual_coef_)


def test_there_is_no_predict_proba_and_the_error_says_what_to_use():
    with pytest.raises(AttributeError) as caught:
        fitted().predict_proba(QUERIES)
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)
