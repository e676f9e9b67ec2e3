"""GreedySVC with weights, of classes and of samples."""

import functools

import numpy as np
import pytest
from oracles.kernels import kernel_matrix
from problems.greedy import (
    GAMMA,
    MULTI_CLASS,
    QUERIES_4,
    RBF,
    fitted,
    four_classes,
    paper,
    stage_problem,
    two_classes,
)
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler

# --- class weights -------------------------------------------------------------------------------


@functools.cache
def unbalanced():
    X, y = make_classification(
        1500, 8, n_informative=4, weights=[0.9], flip_y=0.02, class_sep=0.9, random_state=0
    )
    X = StandardScaler().fit_transform(X)
    return X[:700], y[:700], X[700:], y[700:]


def weighted_model(class_weight, **parameters):
    X, y, *_ = unbalanced()
    return paper(gamma=0.1, class_weight=class_weight, **parameters).fit(X, y)


def test_equal_class_weights_change_nothing():
    Q = unbalanced()[2]
    np.testing.assert_array_equal(
        weighted_model({0: 3.0, 1: 3.0}).decision_function(Q),
        weighted_model(None).decision_function(Q),
    )


def test_balanced_weights_change_nothing_on_balanced_classes():
    X, y = make_blobs([60, 60], cluster_std=3.0, random_state=0)
    model = paper(class_weight="balanced").fit(X, y)
    assert model.intercept_.tolist() == [0.0]


def test_class_weights_leave_training_alone():
    np.testing.assert_array_equal(
        weighted_model("balanced").dual_coef_, weighted_model(None).dual_coef_
    )


@pytest.mark.parametrize("max_visits", [1, 4])
def test_balanced_weights_move_predictions_towards_the_rare_class(max_visits):
    Q = unbalanced()[2]
    plain, balanced = (
        weighted_model(w, max_visits=max_visits).predict(Q) for w in (None, "balanced")
    )
    assert balanced.sum() > plain.sum()


@pytest.mark.parametrize("max_visits", [1, 4])
def test_balanced_weights_improve_balanced_accuracy(max_visits):
    _, _, Q, truth = unbalanced()
    plain, balanced = (
        balanced_accuracy_score(truth, weighted_model(w, max_visits=max_visits).predict(Q))
        for w in (None, "balanced")
    )
    assert balanced > plain


def test_mild_weights_do_not_give_up_a_class():
    predicted = weighted_model({0: 1.0, 1: 2.0}).predict(unbalanced()[2])
    assert 0 < predicted.mean() < 0.5


@pytest.mark.parametrize("favoured", [0, 1])
def test_extreme_weights_send_everything_to_the_favoured_class(favoured):
    model = weighted_model({favoured: 1e150, 1 - favoured: 1e-150})
    assert set(model.predict(unbalanced()[2])) == {favoured}


def test_a_weight_missing_from_the_dict_is_one():
    np.testing.assert_array_equal(
        weighted_model({1: 2.0}).intercept_, weighted_model({0: 1.0, 1: 2.0}).intercept_
    )


@MULTI_CLASS
def test_extreme_weights_of_many_classes_favour_one(multi_class):
    weights = {0: 1.0, 1: 1.0, 2: 1e150, 3: 1.0}
    model = paper(gamma=GAMMA, multi_class=multi_class, class_weight=weights)
    assert set(model.fit(*four_classes()).predict(QUERIES_4)) == {2}


@MULTI_CLASS
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 5.0, 2: 1.0, 3: 1.0}])
def test_class_weights_see_sample_weights_as_copies(multi_class, class_weight):
    X, y = four_classes()
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    model = paper(gamma=GAMMA, multi_class=multi_class, class_weight=class_weight, random_state=0)
    weighted = clone(model).fit(X, y, times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-6, atol=1e-9)


def test_random_state_settles_what_class_weights_draw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5200, 2))
    y = (X[:, 0] + rng.normal(size=5200) > 1).astype(int)
    first, second = (
        paper(class_weight="balanced", random_state=3).fit(X, y).intercept_ for _ in range(2)
    )
    assert first.tolist() == second.tolist()


# --- sample weights ------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["scale", "spread", "pairwise", 0.3])
@pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])
def test_a_weight_of_two_is_the_row_twice(multi_class, gamma):
    (X, y), Q = stage_problem(multi_class)
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    model = paper(gamma=gamma, multi_class=multi_class or "ovo")
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(
        weighted.decision_function(Q), repeated.decision_function(Q), rtol=1e-7, atol=1e-7
    )


@pytest.mark.parametrize("max_visits", [1, 4])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_a_weight_of_zero_is_absence(kernel, max_visits):
    X, y = two_classes()
    keep = np.arange(len(y)) % 3 != 0
    rows, kept_rows = X, X[keep]
    if kernel == "precomputed":
        rows = kernel_matrix(RBF, X)
        kept_rows = rows[np.ix_(keep, keep)]
    model = paper(kernel=kernel, max_visits=max_visits)
    weighted = clone(model).fit(rows, y, sample_weight=keep.astype(float))
    absent = clone(model).fit(kept_rows, y[keep])
    assert weighted.support_.tolist() == np.flatnonzero(keep)[absent.support_].tolist()


def test_a_class_without_weight_is_absent():
    X, y = four_classes()
    model = paper().fit(X, y, sample_weight=(y != 2).astype(float))
    assert model.classes_.tolist() == [0, 1, 3]


def test_weights_of_one_are_no_weights():
    X, y = two_classes()
    model = paper(gamma=GAMMA).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(model.dual_coef_, fitted().dual_coef_)


def test_a_fraction_scales_the_step():
    K = np.eye(2)
    model = paper(kernel="precomputed").fit(K, [0, 1], sample_weight=[0.25, 4.0])
    np.testing.assert_allclose(sorted(model.dual_coef_[0]), [-0.25, 1.0])


def test_normalised_weights_are_those_of_rows():
    X, y = two_classes()
    model = paper(gamma=GAMMA).fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))
    np.testing.assert_array_equal(model.dual_coef_, paper(gamma=GAMMA).fit(X, y).dual_coef_)
