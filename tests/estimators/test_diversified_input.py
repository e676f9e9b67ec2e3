"""The rows, weights and groups that DiversifiedSVC accepts, and the input that it refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import CoreVectorSVC, DiversifiedSVC

# --- rows ----------------------------------------------------------------------------------------


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


def test_data_frames_give_no_warnings(iris):
    frame = pd.DataFrame(iris[0], columns=list("abcd"))
    clf = DiversifiedSVC(1, max_time=1e6).fit(frame, iris[1])
    assert clf.discriminant_.feature_names_in_.tolist() == list("abcd")
    assert clf.score(frame, iris[1]) > 0.9


# --- weights -------------------------------------------------------------------------------------


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


class Unweighted(LogisticRegression):
    def fit(self, X, y):
        return super().fit(X, y)


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


# --- groups and metadata -------------------------------------------------------------------------


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


# --- searches and copies -------------------------------------------------------------------------


def test_in_a_pipeline_and_a_search(iris):
    X, y = iris
    pipe = make_pipeline(StandardScaler(), DiversifiedSVC(1, random_state=0))
    grid = {
        "diversifiedsvc__final_estimator": ["svm", LogisticRegression()],
        "diversifiedsvc__n_directions": [1, 2],
    }
    search = GridSearchCV(pipe, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


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


# --- what is refused -----------------------------------------------------------------------------


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
