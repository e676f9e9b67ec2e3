"""The two layers of DiversifiedSVC: what each sees, and what they decide together."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from hardmargin import CoreVectorSVC, DiversifiedSVC, MarginDiscriminantAnalysis
from hardmargin.estimators import diversified
from hardmargin.estimators._base.second_layer import MachineVote, second_layer
from hardmargin.estimators._base.soft_margin import SoftMarginSVC

NAMES = ("svm", "mlp", "cvm", "vote")

#: How far scores of two SVMs may be apart: both end training at a violation of 1e-3.
SVM_TOL = 2e-3


def mean_squared_distance(Z):
    return ((Z[:, None] - Z) ** 2).sum(axis=2).mean()


# --- the first layer -----------------------------------------------------------------------------


def test_the_parameters_are_those_of_the_first_layer_and_two_more():
    mine = inspect.signature(DiversifiedSVC).parameters
    first = inspect.signature(MarginDiscriminantAnalysis).parameters
    assert set(mine) - set(first) == {"final_estimator", "cv"}
    assert set(first) <= set(mine)
    for name in set(first) - {"n_directions"}:
        assert mine[name].default == first[name].default, name
    assert set(diversified.FIRST_LAYER) == set(first) - {"max_time", "random_state"}


def test_parameters_reach_the_first_layer(iris):
    given = {
        "n_directions": 2,
        "C": 3.0,
        "gamma": 0.3,
        "kernel": "laplacian",
        "constraint": "uncorrelated",
        "solver": "nystroem",
        "rank": 30,
        "tol": 0.01,
        "dtype": "float32",
        "memory_limit": "1GB",
        "n_jobs": 2,
        "max_time": 100.0,
    }
    clf = DiversifiedSVC(**given).fit(*iris)
    found = clf.discriminant_.get_params()
    assert {name: found[name] for name in given} == given


def test_the_first_layer_is_margin_discriminant_analysis(iris):
    X, y = iris
    clf = DiversifiedSVC(2, random_state=0).fit(X, y)
    Z = clone(clf.discriminant_).fit(X, y).transform(X)
    np.testing.assert_allclose(clf.transform(X), Z)
    Z = Z / Z.std(axis=0)
    alone = SVC(C=1.0, gamma=1 / mean_squared_distance(Z)).fit(Z, y)
    np.testing.assert_allclose(clf.decision_function(X), alone.decision_function(Z), atol=SVM_TOL)
    np.testing.assert_array_equal(clf.predict(X), alone.predict(Z))


def test_a_linear_kernel_has_fewer_directions_than_asked_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    clf = DiversifiedSVC(4, kernel="linear", cv=3).fit(X, y)
    assert clf.transform(X).shape[1] <= 6
    assert clf.score(X, y) > 0.7


# --- the second layer ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, train_size=500, random_state=0)


@pytest.mark.parametrize("name", NAMES)
def test_every_named_second_layer(digits, name):
    X, X_test, y, y_test = digits
    clf = DiversifiedSVC(final_estimator=name, random_state=0).fit(X, y)
    assert clf.score(X_test, y_test) > (0.85 if name == "vote" else 0.94)
    assert clf.transform(X_test).shape == (len(X_test), 30)
    assert clf.estimators_ == [clf.discriminant_]
    np.testing.assert_array_equal(clf.final_estimator_.classes_, clf.classes_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weights", [None, "some"])
def test_the_network_sees_centred_projections(iris, weights):
    X, y = iris
    weights = None if weights is None else np.random.default_rng(0).uniform(0.5, 2, len(y))
    clf = DiversifiedSVC(2, final_estimator="mlp", random_state=0).fit(X, y, weights)
    Z = clf.transform(X)
    mean = np.average(Z, axis=0, weights=weights)
    Z = (Z - mean) / np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weights))
    alone = clone(clf.final_estimator_).fit(Z, y, sample_weight=weights)
    np.testing.assert_allclose(clf.predict_proba(X), alone.predict_proba(Z))


def test_the_named_second_layers_are_the_papers():
    Z = np.random.default_rng(0).normal(size=(20, 3))
    svm = second_layer("svm", Z)
    assert isinstance(svm, SoftMarginSVC)
    assert svm.C == 1.0
    assert svm.gamma == pytest.approx(1 / mean_squared_distance(Z))
    mlp = second_layer("mlp", Z, random_state=3)
    assert isinstance(mlp, MLPClassifier)
    assert (mlp.hidden_layer_sizes, mlp.random_state) == ((10,), 3)
    cvm = second_layer("cvm", Z, n_jobs=2)
    assert isinstance(cvm, CoreVectorSVC)
    assert (cvm.C, cvm.gamma, cvm.n_jobs) == (1.0, "pairwise", 2)
    weights = np.repeat([1.0, 2.0], 10)
    repeated = second_layer("svm", np.vstack([Z, Z[10:]]))
    assert second_layer("svm", Z, sample_weight=weights).gamma == pytest.approx(repeated.gamma)


def test_a_vote_counts_the_machines_of_each_class(iris):
    X, y = iris
    clf = DiversifiedSVC(3, final_estimator="vote").fit(X, y)
    positive = clf.transform(X) + clf.discriminant_.intercepts_ > 0
    shares = np.array([positive[:, 3 * c : 3 * c + 3].mean(axis=1) for c in range(3)]).T
    votes = clf.decision_function(X)
    assert (np.abs(votes - shares) < 1 / 9 / 2).all()
    ordered = np.sort(shares, axis=1)
    clear = ordered[:, 2] > ordered[:, 1]
    assert clear.any()
    np.testing.assert_array_equal(clf.predict(X)[clear], shares.argmax(axis=1)[clear])


def test_one_machine_per_class_votes_as_one_against_the_rest(iris):
    X, y = iris
    clf = DiversifiedSVC(1, final_estimator="vote").fit(X, y)
    distances = clf.transform(X) + clf.discriminant_.intercepts_
    np.testing.assert_array_equal(clf.predict(X), distances.argmax(axis=1))


def test_votes_of_different_numbers_of_machines():
    vote = MachineVote(["a", "b", "b", "c", "c", "c"], np.full(6, -1.0))
    Z = np.array([[1.5, 9.0, 9.0, 9.0, 9.0, -9.0], [0.5, 2.0, 0.5, 2.0, 2.0, 0.0]])
    vote.fit(Z, ["a", "b"]).classes_ = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(vote.predict(Z), ["b", "c"])
    assert (np.abs(vote.decision_function(Z) - [[1, 1, 2 / 3], [0, 1 / 2, 2 / 3]]) < 1 / 18).all()


def test_a_classifier_as_second_layer_is_cloned(iris):
    X, y = iris
    final = LogisticRegression(C=10.0)
    clf = DiversifiedSVC(final_estimator=final).fit(X, y)
    assert not hasattr(final, "classes_")
    alone = LogisticRegression(C=10.0).fit(clf.transform(X), y)
    np.testing.assert_allclose(clf.predict_proba(X), alone.predict_proba(clf.transform(X)))
    assert clf.set_params(final_estimator__C=0.1).fit(X, y).final_estimator_.C == 0.1


@pytest.mark.parametrize("name", NAMES)
def test_methods_are_those_of_the_second_layer(iris, name):
    clf = DiversifiedSVC(1, final_estimator=name)
    for _ in range(2):
        assert hasattr(clf, "predict_proba") == (name == "mlp")
        assert hasattr(clf, "decision_function") == (name != "mlp")
        clf.fit(*iris)


def test_missing_probabilities_name_what_helps(iris):
    with pytest.raises(AttributeError) as caught:
        DiversifiedSVC().predict_proba  # noqa: B018
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)
    calibrated = CalibratedClassifierCV(DiversifiedSVC(1), cv=3).fit(*iris)
    assert calibrated.predict_proba(iris[0]).shape == (150, 3)


# --- held-out projections ------------------------------------------------------------------------


def naive_projections(clf, X, y, splits, sample_weight=None):
    """Mean projections of held-out rows, and how often each was held out."""
    Z, counts = np.zeros((len(y), len(clf.discriminant_.directions_))), np.zeros(len(y))
    for train, test in splits:
        weights = None if sample_weight is None else sample_weight[train]
        mda = clone(clf.discriminant_).fit(X[train], y[train], weights)
        Z[test] += mda.transform(X[test])
        counts[test] += 1
    return Z[counts > 0] / counts[counts > 0, None], counts > 0


@pytest.mark.parametrize(
    "cv",
    [
        3,
        StratifiedKFold(4, shuffle=True, random_state=0),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        PredefinedSplit(np.arange(150) % 4 - 1),  # a quarter of the rows is never held out
    ],
)
def test_held_out_projections_are_those_of_a_loop(iris, cv):
    X, y = iris
    clf = DiversifiedSVC(2, cv=cv, random_state=0).fit(X, y)
    splitter = StratifiedKFold(3) if cv == 3 else cv
    Z, used = naive_projections(clf, X, y, splitter.split(X, y))
    deviations = Z.std(axis=0)
    Z = Z / deviations
    alone = SVC(C=1.0, gamma=1 / mean_squared_distance(Z)).fit(Z, y[used])
    assert clf.final_estimator_.gamma == pytest.approx(alone.gamma)
    expected = alone.decision_function(clf.transform(X) / deviations)
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=SVM_TOL)
    in_sample = DiversifiedSVC(2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.transform(X), in_sample.transform(X))
    assert np.abs(clf.decision_function(X) - in_sample.decision_function(X)).max() > 1e-3


def test_splits_can_be_listed(iris):
    X, y = iris
    splits = list(StratifiedKFold(3).split(X, y))
    listed = DiversifiedSVC(2, cv=splits, random_state=0).fit(X, y)
    counted = DiversifiedSVC(2, cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(listed.decision_function(X), counted.decision_function(X))


def test_a_vote_needs_no_splits(iris, monkeypatch):
    def no_folds(*args, **kwargs):
        raise AssertionError("split")

    monkeypatch.setattr(diversified, "make_folds", no_folds)
    DiversifiedSVC(1, final_estimator="vote", cv=3).fit(*iris)


def test_machines_that_vanish_in_a_split_project_to_zero():
    held_out = [
        diversified._HeldOut(np.array([True, True, False]), np.array([[1.0], [2.0]]), [("a", 0)]),
        diversified._HeldOut(
            np.array([False, True, False]),
            np.array([[5.0, 4.0, 3.0]]),
            [("a", 0), ("a", 1), ("a", 2)],
        ),
    ]
    used, Z = diversified._mean_projections(held_out, [("a", 0), ("a", 1)])
    np.testing.assert_array_equal(used, [True, True, False])
    np.testing.assert_array_equal(Z, [[1.0, 0.0], [3.5, 2.0]])


# --- classes and scores --------------------------------------------------------------------------


def test_two_classes_share_their_machines(iris):
    X, y = iris[0], iris[1] == 2
    for name in NAMES:
        clf = DiversifiedSVC(2, final_estimator=name, random_state=0).fit(X, y)
        assert clf.transform(X).shape == (150, 2)
        assert clf.score(X, y) > 0.8
        if name != "mlp":
            scores = clf.decision_function(X)
            assert scores.shape == (150,)
            np.testing.assert_array_equal(clf.predict(X), scores >= 0)


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_any_type(iris, name):
    X, y = iris
    labels = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    clf = DiversifiedSVC(2, final_estimator=name, random_state=0)
    numbers = clone(clf).fit(X, y).predict(X)
    words = clf.fit(X, labels).predict(X)
    np.testing.assert_array_equal(words, clf.classes_[numbers])


def overlapping(n_classes, seed):
    random = np.random.default_rng(seed)
    y = random.integers(n_classes, size=40 * n_classes)
    return random.normal(size=(n_classes, 3))[y] + random.normal(size=(len(y), 3)), y


@pytest.mark.parametrize("final_estimator", ["svm", "cvm", "vote"])
@pytest.mark.parametrize("seed", range(3))
def test_many_classes_are_predicted_by_the_largest_score(final_estimator, seed):
    X, y = overlapping(7, seed)
    clf = DiversifiedSVC(2, final_estimator=final_estimator, random_state=0).fit(X, y)
    queries = 2 * np.random.default_rng(seed).normal(size=(1_000, 3))
    winners = clf.decision_function(queries).argmax(axis=1)
    np.testing.assert_array_equal(clf.predict(queries), clf.classes_[winners])


@pytest.mark.parametrize("final_estimator", ["svm", "cvm", "vote"])
@pytest.mark.parametrize("seed", range(3))
def test_two_classes_are_predicted_by_the_sign(final_estimator, seed):
    X, y = overlapping(2, seed)
    clf = DiversifiedSVC(2, final_estimator=final_estimator, random_state=0).fit(X, y)
    scores = clf.decision_function(X)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[(scores >= 0).astype(int)])


@pytest.mark.parametrize("final_estimator", ["svm", "vote"])
def test_a_row_between_two_classes_is_of_the_second(final_estimator):
    X, y = np.array([[-1.0], [1.0]]), np.array(["a", "b"])
    clf = DiversifiedSVC(1, final_estimator=final_estimator, kernel="linear").fit(X, y)
    assert clf.predict([[0.0]]) == ["b"]
