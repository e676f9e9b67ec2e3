"""RhoEnsembleSVC on input of all kinds: kernels, scales, weights, and odd rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems.rho import (
    BIAS,
    CLASSES,
    QUERIES,
    QUERIES_3,
    RANKS,
    assert_finite,
    cancer,
    fit_quietly,
    iris,
    narrow_rbf,
    queries,
    rbf,
    voted,
)
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import RhoEnsembleSVC
from hardmargin.kernels import resolve_gamma

# --- precomputed, callable, sparse ----------------------------------------------------------------


@CLASSES
@RANKS
@BIAS
def test_precomputed_equals_the_kernel(multi_class, rank, bias):
    X, y = cancer() if multi_class is None else iris()
    Q = queries(multi_class)
    model = RhoEnsembleSVC(
        12,
        kernel="precomputed",
        rank=rank,
        multi_class=multi_class or "ovo",
        random_state=0,
        fit_intercept=bias,
    ).fit(rbf(X, X, 0.1), y)
    expected = voted(multi_class, gamma=0.1, rank=rank, fit_intercept=bias).decision_function(Q)
    np.testing.assert_allclose(
        model.decision_function(rbf(Q, X, 0.1)), expected, rtol=1e-5, atol=1e-7
    )


@CLASSES
@RANKS
def test_precomputed_stages(multi_class, rank):
    X, y = cancer() if multi_class is None else iris()
    Q = rbf(queries(multi_class), X, 0.1)
    model = RhoEnsembleSVC(
        6, kernel="precomputed", rank=rank, multi_class=multi_class or "ovo", random_state=0
    ).fit(rbf(X, X, 0.1), y)
    *_, last = model.staged_decision_function(Q)
    np.testing.assert_allclose(last, model.decision_function(Q), rtol=1e-6, atol=1e-9)


def test_precomputed_ignores_standardize():
    X, y = cancer()
    plain, standardised = (
        RhoEnsembleSVC(5, kernel="precomputed", standardize=s).fit(rbf(X, X, 0.1), y)
        for s in (False, True)
    )
    np.testing.assert_array_equal(plain.dual_coef_, standardised.dual_coef_)


def test_callable_equals_the_kernel():
    model = voted(kernel=narrow_rbf)
    np.testing.assert_allclose(
        model.decision_function(QUERIES),
        voted(gamma=0.1).decision_function(QUERIES),
        rtol=1e-6,
    )


@CLASSES
@RANKS
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_equals_dense(multi_class, rank, container):
    X, y = cancer() if multi_class is None else iris()
    model = RhoEnsembleSVC(12, multi_class=multi_class or "ovo", rank=rank, random_state=0)
    model.fit(container(X), y)
    Q = queries(multi_class)
    np.testing.assert_allclose(
        model.decision_function(container(Q)),
        voted(multi_class, rank=rank).decision_function(Q),
        rtol=1e-5,
        atol=1e-7,
    )


# --- standardize, gamma ---------------------------------------------------------------------------


@CLASSES
@BIAS
def test_standardize_equals_a_pipeline(multi_class, bias):
    X, y = iris()
    X, Q = X * [1.0, 100.0, 1e-3, 1.0] + [0.0, 5.0, 0.0, -3.0], QUERIES_3 * [1, 100, 1e-3, 1]
    if multi_class is None:
        y = y == 1
    parameters = {"multi_class": multi_class or "ovo", "fit_intercept": bias}
    inside = RhoEnsembleSVC(12, standardize=True, **parameters).fit(X, y)
    outside = make_pipeline(StandardScaler(), RhoEnsembleSVC(12, **parameters)).fit(X, y)
    np.testing.assert_allclose(
        inside.decision_function(Q), outside.decision_function(Q), rtol=1e-6, atol=1e-9
    )


def test_standardize_of_sparse_rows_scales_only():
    X, y = iris()
    X = sp.csr_array(X * (X > 1.0))
    inside = RhoEnsembleSVC(12, standardize=True).fit(X, y)
    outside = make_pipeline(StandardScaler(with_mean=False), RhoEnsembleSVC(12)).fit(X, y)
    np.testing.assert_allclose(
        inside.decision_function(X), outside.decision_function(X), rtol=1e-6, atol=1e-9
    )


def test_standardize_uses_the_weights():
    X, y = iris()
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    weighted = RhoEnsembleSVC(12, standardize=True).fit(X, y, sample_weight=weights)
    copied = RhoEnsembleSVC(12, standardize=True).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(
        weighted.decision_function(QUERIES_3), copied.decision_function(QUERIES_3), rtol=1e-5
    )


def test_standardize_leaves_the_input():
    X, y = iris()
    rows = X.copy()
    RhoEnsembleSVC(3, standardize=True).fit(rows, y).predict(rows)
    np.testing.assert_array_equal(rows, X)


@pytest.mark.parametrize("rule", ["scale", "spread", "pairwise"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_gamma_rules(rule, kernel):
    X, y = cancer()
    model = RhoEnsembleSVC(1, gamma=rule, kernel=kernel).fit(X, y)
    assert model.gamma_ == resolve_gamma(rule, X, kernel=kernel)


def test_gamma_rules_see_standardised_features():
    X, y = iris()
    assert RhoEnsembleSVC(1, standardize=True).fit(X, y).gamma_ == pytest.approx(1 / 4)


def test_gamma_rules_see_weights():
    X, y = iris()
    weights = np.arange(len(y), dtype=float)
    expected = resolve_gamma("spread", X, sample_weight=weights)
    model = RhoEnsembleSVC(1).fit(X, y, sample_weight=weights)
    assert model.gamma_ == pytest.approx(expected, rel=1e-12)


# --- weights --------------------------------------------------------------------------------------


def whole_weights(n):
    return np.random.default_rng(1).integers(0, 4, size=n)


@CLASSES
@BIAS
def test_whole_weights_are_copies(multi_class, bias):
    X, y = cancer() if multi_class is None else iris()
    weights = whole_weights(len(y))
    model = RhoEnsembleSVC(12, multi_class=multi_class or "ovo", fit_intercept=bias)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    copied = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    Q = queries(multi_class)
    np.testing.assert_allclose(
        weighted.decision_function(Q), copied.decision_function(Q), rtol=1e-5, atol=1e-8
    )


@CLASSES
@RANKS
def test_weights_of_zero_are_absence(multi_class, rank):
    X, y = cancer() if multi_class is None else iris()
    weights = whole_weights(len(y)).astype(float)
    rows = weights > 0
    model = RhoEnsembleSVC(12, multi_class=multi_class or "ovo", rank=rank, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    absent = clone(model).fit(X[rows], y[rows], sample_weight=weights[rows])
    Q = queries(multi_class)
    np.testing.assert_allclose(
        weighted.decision_function(Q), absent.decision_function(Q), rtol=1e-6, atol=1e-9
    )


def test_rows_of_weight_zero_are_no_support():
    X, y = cancer()
    weights = whole_weights(len(y))
    model = RhoEnsembleSVC(3).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(weights))


@CLASSES
def test_stages_of_a_weighted_fit(multi_class):
    X, y = cancer() if multi_class is None else iris()
    model = RhoEnsembleSVC(6, multi_class=multi_class or "ovo", fit_intercept=True)
    model.fit(X, y, sample_weight=whole_weights(len(y)))
    *_, last = model.staged_decision_function(queries(multi_class))
    np.testing.assert_allclose(last, model.decision_function(queries(multi_class)), atol=1e-9)


@CLASSES
def test_class_weights_multiply_sample_weights(multi_class):
    X, y = cancer() if multi_class is None else iris()
    by_class = {0: 3.0, 1: 0.5, 2: 1.0}
    model = RhoEnsembleSVC(12, multi_class=multi_class or "ovo", gamma=0.1)
    in_classes = clone(model).set_params(class_weight=by_class).fit(X, y)
    in_samples = model.fit(X, y, sample_weight=np.vectorize(by_class.get)(y))
    Q = queries(multi_class)
    np.testing.assert_allclose(
        in_classes.decision_function(Q), in_samples.decision_function(Q), rtol=1e-8, atol=1e-11
    )


def test_balanced_classes_have_the_same_mass():
    X, y = cancer()
    model = fit_quietly(RhoEnsembleSVC(class_weight="balanced", max_time=1e-9), X, y)  # no stage
    masses = [np.abs(model.dual_coef_[0, y == c]).sum() for c in (0, 1)]
    assert masses == pytest.approx([0.5, 0.5])


def test_balance_moves_decisions_towards_the_smaller_class():
    X, y = cancer()
    rows = np.concatenate([np.flatnonzero(y == 1)[:8], np.flatnonzero(y == 0)])
    plain, balanced = (
        RhoEnsembleSVC(3, class_weight=w).fit(X[rows], y[rows]).decision_function(QUERIES)
        for w in (None, "balanced")
    )
    assert (balanced > plain).all()


# --- odd input ------------------------------------------------------------------------------------

ODD = {
    "plain": {},
    "bias": {"fit_intercept": True},
    "standardised": {"standardize": True},
    "low rank": {"rank": 5},
    "float32": {"dtype": "float32"},
    "linear": {"kernel": "linear"},
    "ovr": {"multi_class": "ovr"},
}
ODD_CASES = pytest.mark.parametrize("case", ODD)


def odd_fit(case, X, y, **parameters):
    model = RhoEnsembleSVC(random_state=0, max_stages=300, **ODD[case], **parameters)
    assert_finite(fit_quietly(model, X, y), X)


@ODD_CASES
def test_conflicting_duplicates(case):
    X, y = cancer(40)
    odd_fit(case, np.vstack([X, X]), np.concatenate([y, 1 - y]))


@ODD_CASES
def test_some_conflicting_duplicates(case):
    X, y = cancer(40)
    odd_fit(case, np.vstack([X, X[:3]]), np.concatenate([y, 1 - y[:3]]))


@ODD_CASES
def test_few_spots_with_both_labels(case):
    # Three binary features: rows of both labels on each of eight spots, like the titanic data.
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(200, 3)).astype(float)
    y = (rng.uniform(size=200) < 0.2 + 0.5 * X[:, 0]).astype(int)
    odd_fit(case, X, y)


def test_few_spots_with_both_labels_are_decided_by_majority():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(400, 3)).astype(float)
    y = (rng.uniform(size=400) < 0.1 + 0.8 * X[:, 0]).astype(int)
    model = fit_quietly(RhoEnsembleSVC(), X, y)
    assert (model.predict(X) == X[:, 0]).mean() > 0.95


@ODD_CASES
def test_one_row_per_class(case):
    odd_fit(case, np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1])


@ODD_CASES
def test_one_row_per_class_of_many(case):
    odd_fit(case, np.eye(5), list("abcde"))


@ODD_CASES
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_features_of_any_scale(case, scale):
    X, y = cancer(40)
    odd_fit(case, scale * X, y)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_scale_of_the_features_changes_nothing(scale, standardize):
    X, y = cancer(40)
    scaled, plain = (
        RhoEnsembleSVC(5, standardize=standardize).fit(s * X, y).decision_function(s * QUERIES)
        for s in (scale, 1.0)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-7)


@ODD_CASES
def test_a_thousand_to_one(case):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1001, 3))
    y = np.zeros(1001, dtype=int)
    y[250] = 1
    odd_fit(case, X, y, n_stages=20)


@ODD_CASES
def test_constant_columns(case):
    X, y = cancer(40)
    odd_fit(case, np.hstack([X, np.full((40, 2), 5.0)]), y)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@ODD_CASES
def test_rows_that_are_all_equal(case):
    odd_fit(case, np.full((10, 2), 3.0), [0, 1] * 5)


@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e12, 1e300])
@BIAS
def test_weights_of_any_size(weight, bias):
    X, y = cancer(40)
    model = RhoEnsembleSVC(12, fit_intercept=bias)
    model.fit(X, y, sample_weight=np.where(np.arange(40) % 2, weight, 1.0))
    assert_finite(model, X)


def test_class_weights_of_any_size():
    X, y = cancer(40)
    model = RhoEnsembleSVC(12, class_weight={0: 1e-200, 1: 1e-200})
    model.fit(X, y, sample_weight=np.where(np.arange(40) % 2, 1e-200, 1.0))
    assert_finite(model, X)
