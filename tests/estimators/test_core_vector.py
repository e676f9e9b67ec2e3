"""CoreVectorSVC."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.core_vector import l2_svm
from problems.clock import Clock, set_clock
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from hardmargin import CoreVectorSVC
from hardmargin.kernels import resolve_gamma


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4_000, 5)), rng.integers(2, size=4_000)


@pytest.mark.parametrize("C", [0.1, 1.0, 1000.0])
def test_is_the_l2_svm(cancer, C):
    X, y = cancer
    clf = CoreVectorSVC(C, gamma=0.02, tol=1e-7).fit(X, y)
    K = np.exp(-0.02 * ((X[:, None] - X) ** 2).sum(axis=2))
    best = l2_svm(K, np.where(y == 1, 1.0, -1.0), C)
    scores = best.scores + best.intercept
    np.testing.assert_allclose(clf.decision_function(X), scores, atol=1e-4)
    assert clf.objective_ == pytest.approx(best.primal, rel=1e-5)
    assert clf.lower_bound_ == pytest.approx(best.primal, rel=1e-5)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0, 1000.0])
@pytest.mark.parametrize("tol", [0.2, 0.05])
def test_certificate_holds(cancer, C, tol):
    clf = CoreVectorSVC(C, tol=tol).fit(*cancer)
    assert clf.stop_reason_ == "certified"
    assert clf.lower_bound_ <= clf.objective_ <= clf.lower_bound_ / (1 - tol) ** 2 * (1 + 1e-9)
    assert clf.certificate_ == pytest.approx(1 - clf.lower_bound_ / clf.objective_)


def test_learns(cancer):
    X, y = cancer
    clf = CoreVectorSVC(random_state=0).fit(X[::2], y[::2])
    assert clf.score(X[1::2], y[1::2]) > 0.95
    assert clf.gamma_ == pytest.approx(resolve_gamma("pairwise", X[::2]))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_many_classes(iris, multi_class):
    X, y = iris
    clf = CoreVectorSVC(10.0, multi_class=multi_class).fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.dual_coef_.shape == (3, len(clf.support_))
    for name in ("objective_", "lower_bound_", "core_size_", "stop_reason_", "n_iter_"):
        assert np.shape(getattr(clf, name)) == (3,), name


def test_threads_give_the_same_model(iris):
    X, y = iris
    one = CoreVectorSVC(random_state=0).fit(X, y)
    two = CoreVectorSVC(random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-9)


def test_machines_share_columns(iris):
    clf = CoreVectorSVC(multi_class="ovr", tol=1e-3).fit(*iris)
    assert clf.n_kernel_evaluations_.sum() <= len(iris[0]) ** 2


def test_sparse_rows_give_the_same_model(cancer):
    X, y = cancer
    dense = CoreVectorSVC(random_state=0).fit(X, y)
    sparse = CoreVectorSVC(random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(X), atol=1e-6)


def test_precomputed_kernel(cancer):
    X, y = cancer
    plain = CoreVectorSVC(kernel="linear", tol=1e-6).fit(X, y)
    stored = CoreVectorSVC(kernel="precomputed", tol=1e-6).fit(X @ X.T, y)
    np.testing.assert_allclose(
        plain.decision_function(X), stored.decision_function(X @ X.T), atol=1e-4
    )
    assert plain.coef_.shape == (1, 30)


def test_weights_are_repetitions(cancer):
    X, y = cancer
    w = np.arange(len(y)) % 3
    weighted = CoreVectorSVC(tol=1e-7, gamma=0.02).fit(X, y, sample_weight=w)
    repeated = CoreVectorSVC(tol=1e-7, gamma=0.02).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )
    assert not np.isin(np.flatnonzero(w == 0), weighted.support_).any()


def test_a_whole_number_as_C_takes_weights(cancer):
    X, y = cancer
    w = np.linspace(0.5, 2, len(y))
    whole, decimal = (CoreVectorSVC(C=C).fit(X, y, sample_weight=w) for C in (5, 5.0))
    np.testing.assert_array_equal(whole.dual_coef_, decimal.dual_coef_)


def test_class_weights_multiply_sample_weights(cancer):
    X, y = cancer
    by_class = CoreVectorSVC(tol=1e-7, gamma=0.02, class_weight={0: 3.0, 1: 1.0}).fit(X, y)
    by_row = CoreVectorSVC(tol=1e-7, gamma=0.02).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(
        by_class.decision_function(X), by_row.decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize("weight", [1e-300, 1e-12])
def test_next_to_no_weight_is_next_to_absence(cancer, weight):
    X, y = cancer
    w = np.where(np.arange(len(y)) % 3 == 0, weight, 1.0)
    light = CoreVectorSVC(tol=1e-6, gamma=0.02).fit(X, y, sample_weight=w)
    absent = CoreVectorSVC(tol=1e-6, gamma=0.02).fit(X[w == 1], y[w == 1])
    np.testing.assert_allclose(light.decision_function(X), absent.decision_function(X), atol=1e-3)


# --- the radius rule -----------------------------------------------------------------------------


def test_radius_rule(cancer):
    X, y = cancer
    clf = CoreVectorSVC(stopping="radius", random_state=0).fit(X, y)
    assert clf.stop_reason_ == "radius"
    assert clf.score(X, y) > 0.9
    assert clf.lower_bound_ <= clf.objective_


def test_radius_rule_warns_where_it_stops_far_from_the_optimum(cancer):
    with pytest.warns(ConvergenceWarning, match="stopping='margin'"):
        CoreVectorSVC(1000.0, stopping="radius", eps=1e-2, random_state=0).fit(*cancer)


@pytest.mark.parametrize("parameters", [{"kernel": "linear"}, {"class_weight": {0: 3.0, 1: 1.0}}])
def test_radius_rule_needs_a_constant_diagonal(cancer, parameters):
    with pytest.raises(ValueError, match="stopping='radius'"):
        CoreVectorSVC(stopping="radius", **parameters).fit(*cancer)


# --- limits and odd input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"max_stages": 1}, "max_stages"),
        ({"max_time": 1e-9}, "max_time"),
        ({"memory_limit": 2_000_000}, "core_full"),
        ({"tol": 1e-12, "dtype": "float32", "C": 100.0}, "rounding"),
    ],
)
def test_limits_give_a_model_and_a_warning(noise, parameters, reason):
    X, y = noise
    n = 300 if reason == "rounding" else len(y)
    word = {"core_full": "memory_limit", "rounding": "float64"}.get(reason, reason)
    with pytest.warns(ConvergenceWarning, match=word):
        clf = CoreVectorSVC(**parameters).fit(X[:n], y[:n])
    assert clf.stop_reason_ == reason
    assert np.isfinite(clf.decision_function(X)).all()
    assert clf.lower_bound_ <= clf.objective_ < np.inf


def test_time_is_kept(noise, monkeypatch):
    clock = Clock(step=0.01)
    set_clock(monkeypatch, clock)
    X, y = noise
    with pytest.warns(ConvergenceWarning, match="max_time"):
        CoreVectorSVC(1e8, tol=1e-9, max_time=0.3).fit(X, y)
    assert clock.now < 0.4


def test_conflicting_duplicates():
    clf = CoreVectorSVC(tol=1e-6).fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])
    assert clf.stop_reason_ == "certified"
    np.testing.assert_allclose(clf.decision_function([[0.0], [1.0]]), 0.0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_constant_rows():
    clf = CoreVectorSVC().fit(np.ones((5, 2)), [0, 1, 1, 1, 1])
    assert clf.predict([[1.0, 1.0]]) == [1]


def test_one_row_of_a_class_among_a_thousand():
    X = np.random.default_rng(0).normal(size=(1001, 3))
    y = np.arange(1001) == 17
    clf = CoreVectorSVC(1000.0, gamma=5.0).fit(X, y)
    assert clf.predict(X[[17]]) == [True]


def test_the_same_seed_gives_the_same_model(noise):
    X, y = noise
    a, b = (CoreVectorSVC(random_state=3).fit(X, y).dual_coef_ for _ in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_kernels_close_to_singular(C):
    """Features of very different scale, many more rows than features, and a large C."""
    X, y = load_breast_cancer(return_X_y=True)
    clf = CoreVectorSVC(C, kernel="linear", random_state=0).fit(X, y)
    assert clf.stop_reason_ == "certified"
    assert clf.lower_bound_ >= (1 - clf.tol) ** 2 * clf.objective_


def test_a_limit_reached_within_the_tolerance_is_no_warning(cancer):
    X, y = cancer
    stages = CoreVectorSVC(random_state=0).fit(X, y).n_iter_
    again = CoreVectorSVC(random_state=0, max_stages=stages).fit(X, y)
    assert again.stop_reason_ == "certified"
