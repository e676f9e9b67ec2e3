"""HardMarginSVC, and RhoSVC's pairwise solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import HardMarginSVC, MultiplicativeSVC, RhoSVC


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    distinct = np.unique(X, axis=0, return_index=True)[1]
    return X[distinct], y[distinct]


def test_is_svc_without_a_c(cancer):
    X, y = cancer
    exact = HardMarginSVC(0.05, tol=1e-9).fit(X, y)
    svc = SVC(C=1e8, gamma=0.05, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(exact.decision_function(X), svc.decision_function(X), atol=1e-5)


def test_nearest_rows_score_one(cancer):
    X, y = cancer
    scores = HardMarginSVC(0.05, tol=1e-9).fit(X, y).decision_function(X)
    np.testing.assert_allclose(np.abs(scores).min(), 1.0, atol=1e-6)


def test_margin_is_the_distance_of_the_nearest_rows():
    X = np.array([[0.0, 0.0], [0.0, 5.0], [3.0, 1.0]])
    clf = HardMarginSVC(kernel="linear").fit(X, [0, 0, 1])
    assert clf.margin_ == pytest.approx(1.5)
    assert clf.weight_norm_ == pytest.approx(1 / 1.5)


def test_without_bias_the_plane_goes_through_the_origin(cancer):
    X, y = cancer
    assert HardMarginSVC(fit_intercept=False).fit(X, y).intercept_[0] == 0.0


def test_many_classes_agree_with_svc(iris):
    X, y = iris
    exact = HardMarginSVC(5.0, tol=1e-6).fit(X, y)
    svc = SVC(C=1e8, gamma=5.0, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(exact.predict(X + 0.05), svc.predict(X + 0.05))


def test_many_classes_have_arrays(iris):
    X, y = iris
    clf = HardMarginSVC(5.0).fit(X, y)
    assert clf.dual_coef_.shape == (3, len(clf.support_))
    for name in ("margin_", "weight_norm_", "certificate_", "n_iter_", "stop_reason_"):
        assert np.shape(getattr(clf, name)) == (3,), name


def test_certificate_is_within_the_tolerance(cancer):
    X, y = cancer
    assert 0 <= HardMarginSVC(tol=1e-4).fit(X, y).certificate_ <= 2.1e-4


def test_sparse_rows_give_the_same_model(cancer):
    X, y = cancer
    dense = HardMarginSVC(0.05, tol=1e-9).fit(X, y)
    sparse = HardMarginSVC(0.05, tol=1e-9).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("estimator", [HardMarginSVC(), RhoSVC(solver="smo")])
def test_overlapping_classes_get_a_warning_and_a_finite_model(estimator):
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match="gamma"):
        estimator.fit(X, [0, 1, 0, 1])
    assert estimator.stop_reason_ == "rho_zero"
    assert np.isfinite(estimator.decision_function(X)).all()


@pytest.mark.parametrize(("limit", "value"), [("max_stages", 1), ("max_time", 1e-9)])
def test_limits_give_a_model_and_a_warning_that_names_them(limit, value):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3_000, 5)), rng.integers(2, size=3_000)
    with pytest.warns(ConvergenceWarning, match=limit):
        clf = HardMarginSVC(**{limit: value}).fit(X, y)
    assert clf.stop_reason_ == limit
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scale_of_the_features_does_not_matter(cancer, kernel, scale):
    X, y = cancer
    plain = HardMarginSVC(kernel=kernel, tol=1e-6).fit(X, y)
    scaled = HardMarginSVC(kernel=kernel, tol=1e-6).fit(scale * X, y)
    np.testing.assert_allclose(
        scaled.decision_function(scale * X), plain.decision_function(X), atol=1e-3
    )


def test_one_row_of_a_class_among_a_thousand():
    X = np.random.default_rng(0).normal(size=(1001, 3))
    y = np.arange(1001) == 17
    clf = HardMarginSVC(5.0).fit(X, y)
    assert clf.predict(X[[17]]) == [True]


def test_weights_select_rows_only(cancer):
    X, y = cancer
    w = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    weighted = HardMarginSVC(0.05, tol=1e-9).fit(X, y, sample_weight=w)
    chosen = HardMarginSVC(0.05, tol=1e-9).fit(X[w > 0], y[w > 0])
    np.testing.assert_allclose(
        weighted.decision_function(X), chosen.decision_function(X), atol=1e-6
    )


def test_rho_svc_is_the_same_machine_on_the_simplex(cancer):
    X, y = cancer
    rho = RhoSVC(0.05, solver="smo", fit_intercept=True, tol=1e-9).fit(X, y)
    exact = HardMarginSVC(0.05, tol=1e-9).fit(X, y)
    assert np.abs(rho.dual_coef_).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        rho.decision_function(X) / rho.rho_, exact.decision_function(X), atol=1e-5
    )


def test_multiplicative_updates_converge_to_it(cancer):
    X, y = cancer
    exact = HardMarginSVC(0.2, tol=1e-9).fit(X, y)
    updates = MultiplicativeSVC(0.2, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(updates.decision_function(X), exact.decision_function(X), atol=2e-2)


def test_smo_has_no_stages(cancer):
    assert not hasattr(RhoSVC(solver="smo"), "staged_predict")
    assert hasattr(RhoSVC(), "staged_predict")


def test_smo_refuses_low_rank(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="rank"):
        RhoSVC(solver="smo", rank=5).fit(X, y)
