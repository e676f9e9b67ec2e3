"""DiversifiedSVC."""

import inspect
import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems.clock import Clock, set_clock
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import CoreVectorSVC, DiversifiedSVC, MarginDiscriminantAnalysis
from hardmargin.estimators import diversified
from hardmargin.estimators._base.second_layer import MachineVote, fit_second_layer, second_layer
from hardmargin.estimators._base.soft_margin import SoftMarginSVC
from hardmargin.monitor import Monitor
from hardmargin.solvers import soft_margin
from hardmargin.warn import warn_caller

NAMES = ("svm", "mlp", "cvm", "vote")

#: How far scores of two SVMs may be apart: both end training at a violation of 1e-3.
SVM_TOL = 2e-3


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, train_size=500, random_state=0)


class Unweighted(LogisticRegression):
    def fit(self, X, y):
        return super().fit(X, y)


def mean_squared_distance(Z):
    return ((Z[:, None] - Z) ** 2).sum(axis=2).mean()


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


@pytest.mark.parametrize("name", NAMES)
def test_every_named_second_layer(digits, name):
    X, X_test, y, y_test = digits
    clf = DiversifiedSVC(final_estimator=name, random_state=0).fit(X, y)
    assert clf.score(X_test, y_test) > (0.85 if name == "vote" else 0.94)
    assert clf.transform(X_test).shape == (len(X_test), 30)
    assert clf.estimators_ == [clf.discriminant_]
    np.testing.assert_array_equal(clf.final_estimator_.classes_, clf.classes_)


def test_the_first_layer_is_margin_discriminant_analysis(iris):
    X, y = iris
    clf = DiversifiedSVC(2, random_state=0).fit(X, y)
    Z = clone(clf.discriminant_).fit(X, y).transform(X)
    np.testing.assert_allclose(clf.transform(X), Z)
    Z = Z / Z.std(axis=0)
    alone = SVC(C=1.0, gamma=1 / mean_squared_distance(Z)).fit(Z, y)
    np.testing.assert_allclose(clf.decision_function(X), alone.decision_function(Z), atol=SVM_TOL)
    np.testing.assert_array_equal(clf.predict(X), alone.predict(Z))


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


def test_a_linear_kernel_has_fewer_directions_than_asked_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    clf = DiversifiedSVC(4, kernel="linear", cv=3).fit(X, y)
    assert clf.transform(X).shape[1] <= 6
    assert clf.score(X, y) > 0.7


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


@pytest.mark.parametrize("cv", [None, 3])
def test_sparse_rows_are_dense_rows(iris, cv):
    X, y = iris
    dense = DiversifiedSVC(2, cv=cv, tol=1e-8, random_state=0).fit(X, y)
    for make in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        sparse = clone(dense).fit(make(X), y)
        np.testing.assert_allclose(
            sparse.decision_function(make(X)), dense.decision_function(X), atol=1e-3
        )


@pytest.mark.parametrize("cv", [None, 3])
def test_a_kernel_matrix_is_as_good_as_rows(iris, cv):
    X, y = iris
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    of_rows = DiversifiedSVC(2, gamma=0.1, tol=1e-8, cv=cv).fit(X, y)
    of_matrix = DiversifiedSVC(2, kernel="precomputed", tol=1e-8, cv=cv).fit(K, y)
    np.testing.assert_allclose(
        of_matrix.decision_function(K), of_rows.decision_function(X), atol=1e-3
    )
    assert cross_val_score(of_matrix, K, y, cv=3).mean() > 0.9


@pytest.mark.parametrize("cv", [None, PredefinedSplit(np.arange(150) % 3)])
def test_a_weight_of_zero_is_absence(iris, cv):
    X, y = iris
    rng = np.random.default_rng(0)
    kept = rng.random(150) < 0.8
    weights = np.where(kept, rng.uniform(0.5, 2.0, size=150), 0.0)
    clf = DiversifiedSVC(2, cv=cv, tol=1e-9, final_estimator=CoreVectorSVC(tol=1e-9))
    weighted = clone(clf).fit(X, y, weights)
    if cv is not None:
        clf.set_params(cv=PredefinedSplit((np.arange(150) % 3)[kept]))
    alone = clf.fit(X[kept], y[kept], weights[kept])
    np.testing.assert_allclose(weighted.decision_function(X), alone.decision_function(X), atol=1e-5)
    assert kept[weighted.discriminant_.support_].all()


def test_a_weight_of_two_is_the_row_twice(iris):
    X, y = iris
    weights = 1.0 + (np.arange(150) % 2)
    clf = DiversifiedSVC(2, tol=1e-9, final_estimator=CoreVectorSVC(tol=1e-9))
    weighted = clone(clf).fit(X, y, weights).decision_function(X)
    twice = clf.fit(np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int)))
    np.testing.assert_allclose(weighted, twice.decision_function(X), atol=1e-5)


def test_a_class_of_weight_zero_is_no_class(iris):
    X, y = iris
    clf = DiversifiedSVC(2, cv=3, final_estimator=Unweighted()).fit(X, y, (y > 0).astype(float))
    np.testing.assert_array_equal(clf.classes_, [1, 2])


def test_weights_for_a_second_layer_that_takes_none(iris):
    X, y = iris
    clf = DiversifiedSVC(final_estimator=KNeighborsClassifier())
    with pytest.raises(ValueError, match=r"final_estimator=KNeighborsClassifier\(\) takes no wei"):
        clf.fit(X, y, sample_weight=np.arange(150))
    assert clf.fit(X, y, sample_weight=np.ones(150)).score(X, y) > 0.9


def grouped():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 6)
    X = rng.normal(size=(20, 3))[groups] + 0.01 * rng.normal(size=(120, 3))
    return X, (np.arange(20) % 2)[groups], groups


def test_groups_reach_the_splitter():
    X, y, groups = grouped()
    clf = DiversifiedSVC(1, cv=GroupKFold(4), random_state=0).fit(X, y, groups=groups)
    listed = list(GroupKFold(4).split(X, y, groups))
    same = DiversifiedSVC(1, cv=listed, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.decision_function(X), same.decision_function(X))


def test_groups_are_routed():
    X, y, groups = grouped()
    clf = DiversifiedSVC(1, cv=GroupKFold(4), random_state=0)
    with pytest.raises(ValueError, match="groups"):
        clf.fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(clf).fit(scaled, y, groups=groups).decision_function(scaled)
    with config_context(enable_metadata_routing=True):
        clf.set_fit_request(groups=True)
        pipe = make_pipeline(StandardScaler(), clf).fit(X, y, groups=groups)
        scores = cross_val_score(
            pipe, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
        )
    assert len(scores) == 3
    np.testing.assert_array_equal(pipe.decision_function(X), alone)


@pytest.mark.parametrize("cv", [None, 3])
def test_groups_without_a_splitter_are_refused(cv):
    X, y, groups = grouped()
    with pytest.raises(ValueError, match="groups were given, but cv="):
        DiversifiedSVC(cv=cv).fit(X, y, groups=groups)


def test_weights_are_routed(iris):
    X, y = iris
    weights = 1.0 + np.arange(150) % 3
    with config_context(enable_metadata_routing=True):
        named = DiversifiedSVC(1, random_state=0).fit(X, y, sample_weight=weights)
        with pytest.raises(UnsetMetadataPassedError):
            DiversifiedSVC(1, final_estimator=LogisticRegression()).fit(X, y, weights)
        asking = LogisticRegression().set_fit_request(sample_weight=True)
        clf = DiversifiedSVC(1, final_estimator=asking, random_state=0, cv=3).fit(X, y, weights)
        refusing = LogisticRegression().set_fit_request(sample_weight=False)
        other = clone(clf).set_params(final_estimator=refusing).fit(X, y, weights)
    assert not np.allclose(clf.decision_function(X), other.decision_function(X))
    same = DiversifiedSVC(1, final_estimator=LogisticRegression(), random_state=0, cv=3)
    np.testing.assert_allclose(
        clf.decision_function(X), same.fit(X, y, weights).decision_function(X)
    )
    same = DiversifiedSVC(1, random_state=0).fit(X, y, weights)
    np.testing.assert_array_equal(named.decision_function(X), same.decision_function(X))


class Noting(LogisticRegression):
    def fit(self, X, y, note=None):
        self.note_ = note
        return super().fit(X, y)


def test_metadata_of_the_second_layer(iris):
    X, y = iris
    note = np.arange(150)
    final = Noting()
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        DiversifiedSVC(1, final_estimator=final).fit(X, y, note=note)
    with config_context(enable_metadata_routing=True):
        final.set_fit_request(note=True)
        cv = PredefinedSplit(np.arange(150) % 3 - 1)
        clf = DiversifiedSVC(1, final_estimator=final, cv=cv).fit(X, y, note=note)
        with pytest.raises(TypeError, match="unexpected"):
            clf.fit(X, y, nota=note)
    np.testing.assert_array_equal(clf.final_estimator_.note_, note[note % 3 > 0])


def test_in_a_pipeline_and_a_search(iris):
    X, y = iris
    pipe = make_pipeline(StandardScaler(), DiversifiedSVC(1, random_state=0))
    grid = {
        "diversifiedsvc__final_estimator": ["svm", LogisticRegression()],
        "diversifiedsvc__n_directions": [1, 2],
    }
    search = GridSearchCV(pipe, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_data_frames(iris):
    X = pd.DataFrame(iris[0], columns=list("abcd"))
    clf = DiversifiedSVC(1, cv=2).fit(X, iris[1])
    assert list(clf.feature_names_in_) == list("abcd")
    clf.predict(X)
    clf.discriminant_.transform(X)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(X[list("bacd")])
    frame = clf.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == ["diversifiedsvc0", "diversifiedsvc1", "diversifiedsvc2"]
    clf.predict(X)
    with config_context(transform_output="pandas"):
        clf.fit(X, iris[1]).predict(X)
    assert not hasattr(clf.final_estimator_, "feature_names_in_")


def test_pickles_and_refits(iris):
    X, y = iris
    clf = DiversifiedSVC(2, cv=3, random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
    scores = clf.decision_function(X)
    clf.fit(X[:100, :2], y[:100])
    assert clf.n_features_in_ == 2
    assert clf.decision_function(X[:, :2]).shape == (150,)
    np.testing.assert_array_equal(clf.fit(X, y).decision_function(X), scores)


def test_threads_change_nothing(iris):
    X, y = iris
    one, two = (
        DiversifiedSVC(2, cv=2, final_estimator="cvm", n_jobs=n, random_state=0).fit(X, y)
        for n in (1, 2)
    )
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-8)


def test_a_failing_fit_leaves_the_estimator_as_it_was(iris):
    X, y = iris

    class Failing(LogisticRegression):
        def fit(self, X, y):
            raise RuntimeError("no")

    clf = DiversifiedSVC(1).fit(X, y)
    clf.final_estimator = Failing()
    before = dict(vars(clf))
    with pytest.raises(RuntimeError, match="no"):
        clf.fit(X[:, :2], y)
    assert vars(clf).keys() == before.keys()
    assert all(vars(clf)[name] is before[name] for name in before)


def test_ctrl_c_ends_networks(iris, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(MLPClassifier, "_backprop", interrupted)
    clf = DiversifiedSVC(1, final_estimator="mlp")
    before = dict(vars(clf))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*iris)
    assert vars(clf) == before


def test_other_warnings_of_the_second_layer_stay_warnings():
    class Warning_(LogisticRegression):
        def fit(self, X, y):
            warnings.warn("look out", UserWarning, stacklevel=1)
            return super().fit(X, y)

    Z, y = [[0.0], [1.0]], [0, 1]
    with pytest.warns(UserWarning, match="look out"):
        fit_second_layer(Warning_(), Z, y)
    with pytest.raises(UserWarning, match="look out"):
        fit_second_layer(Warning_(), Z, y)


def test_fits_beside_the_main_thread_leave_the_filters_of_warnings_alone(iris):
    class Looking(LogisticRegression):
        def fit(self, X, y):
            seen.append(list(warnings.filters))
            return super().fit(X, y)

    seen, before = [], list(warnings.filters)
    thread = threading.Thread(target=DiversifiedSVC(1, final_estimator=Looking()).fit, args=iris)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("cv", [None, 3])
def test_time_limits_the_first_layer(cv):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3_000, 10)), rng.integers(3, size=3_000)
    clf = DiversifiedSVC(3, cv=cv, max_time=0.05, final_estimator=LogisticRegression())
    with pytest.warns(ConvergenceWarning, match="max_time") as caught:
        clf.fit(X, y)
    assert {w.filename for w in caught} == {__file__}
    assert clf.discriminant_.max_time == 0.05
    assert clf.predict(X).shape == (3_000,)


def test_time_is_shared_out_by_rows():
    seconds = [100.0]
    monitor = Monitor(12.0, clock=lambda: seconds[-1])
    assert diversified._share(monitor, [10, 20, 30]) == pytest.approx(2.0)
    seconds.append(101.0)
    assert diversified._share(monitor, [20, 30]) == pytest.approx(11.0 * 20 / 50)
    seconds.append(200.0)
    assert diversified._share(monitor, [30]) == 1e-3
    assert diversified._share(Monitor(), [1]) is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"final_estimator": "forest"}, "final_estimator"),
        ({"final_estimator": LinearRegression()}, r"classifier, got LinearRegression\(\)"),
        ({"n_directions": 0}, "n_directions"),
        ({"cv": 1}, "cv"),
        ({"cv": 60}, "n_splits=60"),
        ({"cv": [(np.arange(100), np.arange(100, 150))]}, "Class 2 has no rows to train on in spl"),
        ({"cv": [(np.arange(150), np.arange(100))]}, "Class 2 has no rows that cv holds out"),
        ({"solver": "exactly"}, "solver"),
    ],
)
def test_messages(iris, parameters, message):
    with pytest.raises(ValueError, match=message):
        DiversifiedSVC(**parameters).fit(*iris)


def test_a_class_that_is_too_small_for_the_folds(iris):
    X, y = iris
    few = np.r_[0:50, 50:51, 100:150]
    with pytest.raises(ValueError, match=r"Class 1 has no rows to train on .* of cv=3; lower cv"):
        DiversifiedSVC(cv=3).fit(X[few], y[few])


def test_one_class_is_not_enough(iris):
    with pytest.raises(ValueError, match=r"DiversifiedSVC needs rows .* at least two classes"):
        DiversifiedSVC().fit(iris[0], np.zeros(150))


def test_not_fitted(iris):
    for method in ("predict", "transform", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(DiversifiedSVC(), method)(iris[0])


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


def test_data_frames_give_no_warnings(iris):
    frame = pd.DataFrame(iris[0], columns=list("abcd"))
    clf = DiversifiedSVC(1, max_time=1e6).fit(frame, iris[1])
    assert clf.discriminant_.feature_names_in_.tolist() == list("abcd")
    assert clf.score(frame, iris[1]) > 0.9


# --- limits of the second layer ------------------------------------------------------------------


def noise(n_rows, n_classes=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 5))
    return X, np.digitize(X[:, 0] + rng.normal(size=n_rows), [0.0, 1.0][: n_classes - 1])


@pytest.fixture
def slow_layers(monkeypatch):
    """Rows of every second layer; the first takes a second, and time grows with their square."""
    clock, sizes, plain = Clock(), [], diversified.fit_second_layer
    set_clock(monkeypatch, clock)

    def fit(layer, Z, y, **params):
        sizes.append(len(Z))
        clock.now += (len(Z) / 200) ** 2
        return plain(layer, Z, y, **params)

    monkeypatch.setattr(diversified, "fit_second_layer", fit)
    monkeypatch.setattr(diversified, "FIRST_ROWS", 200)
    return sizes


@pytest.mark.parametrize("final", ["svm", "cvm", "vote", LogisticRegression()])
def test_the_second_layer_grows_as_long_as_there_is_time(final, slow_layers):
    X, y = noise(1_500)
    clf = DiversifiedSVC(1, final_estimator=final, max_time=10.0, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"second layer was trained on \d+ of 1,500\. Raise"
    ):
        clf.fit(X, y)
    assert len(slow_layers) > 1
    assert slow_layers[0] < slow_layers[-1] < 1_500
    assert sum((size / 200) ** 2 for size in slow_layers) <= 10.0
    assert clf.score(X, y) > 0.5


@pytest.mark.parametrize("cv", [None, 2])
@pytest.mark.parametrize("weights", [None, "some"])
def test_time_enough_gives_the_model_without_a_limit(cv, weights, slow_layers):
    X, y = noise(500)
    weights = None if weights is None else np.random.default_rng(0).uniform(0.5, 2, len(y))
    limited, plain = (
        DiversifiedSVC(1, cv=cv, max_time=limit, random_state=0).fit(X, y, weights)
        for limit in (1e6, None)
    )
    np.testing.assert_array_equal(limited.decision_function(X), plain.decision_function(X))
    assert limited.final_estimator_.max_time == 1e6


def test_a_second_layer_that_was_cut_short_is_not_used(slow_layers, monkeypatch):
    X, y = noise(500)
    plain = SoftMarginSVC.fit

    def cut(self, Z, y, sample_weight=None):
        plain(self, Z, y, sample_weight)
        if len(Z) > 250:
            self.stop_reason_ = np.array(["converged", "max_time", "converged"])
            warn_caller("stopped at max_time")
        return self

    monkeypatch.setattr(SoftMarginSVC, "fit", cut)
    with pytest.warns(ConvergenceWarning) as caught:
        clf = DiversifiedSVC(1, max_time=1e6, random_state=0).fit(X, y)
    assert slow_layers[-1] == 500
    assert [str(w.message)[:9] for w in caught] == ["max_time="]
    assert clf.final_estimator_.stop_reason_.tolist() == ["converged"] * 3


@pytest.mark.parametrize("final", ["svm", "cvm"])
def test_huge_weights_of_rows_that_overlap_end_soon(final):
    # Six points, each of both classes: with such weights there is no end to raising multipliers.
    X, y = np.repeat(np.arange(6.0)[:, None], 2, axis=0), np.arange(12) % 2
    weights = np.where(np.arange(12) < 6, 1e300, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (weights, np.full(12, 1e300), weights[::-1]):
            clf = DiversifiedSVC(1, final_estimator=final).fit(X, y, given)
            assert np.isfinite(clf.decision_function(X)).all()


def test_ctrl_c_is_heard_in_the_second_layer(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    solve, delays = soft_margin.solve, []

    def interrupted(*arguments):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        try:
            return solve(*arguments)
        finally:
            delays.append(time.monotonic() - start)

    monkeypatch.setattr(soft_margin, "solve", interrupted)
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    clf = DiversifiedSVC(1, max_time=None, C=1e-3, tol=0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, np.arange(len(X)) % 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert delays[0] < 1.1
    assert not hasattr(clf, "final_estimator_")
