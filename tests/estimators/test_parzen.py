"""ParzenClassifier: sums of kernel values."""

import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix as gram
from problems.rho import (
    QUERIES,
    QUERIES_3,
    cancer,
    fit_quietly,
    iris,
    rbf,
    spread,
)
from sklearn.base import clone

from hardmargin import ParzenClassifier, RhoEnsembleSVC
from hardmargin.kernels import Kernel

MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])


def naive_sum(values, X, y, weights=None):
    """Weighted mean of +k(x_i, q) over class one and -k(x_i, q) over class zero."""
    w = np.ones(len(y)) if weights is None else weights
    total = np.zeros(len(values))
    for i in range(len(X)):
        total += w[i] * (1 if y[i] == 1 else -1) * values[:, i]
    return total / w.sum()


def test_two_classes_equal_naive_sums():
    X, y = cancer()
    expected = naive_sum(rbf(QUERIES, X, spread(X)), X, y)
    model = ParzenClassifier().fit(X, y)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    "name", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]
)
def test_every_kernel_equals_naive_sums(name):
    X, y = cancer()
    kernel = Kernel(name, gamma=0.02, degree=2, coef0=1.0)
    model = ParzenClassifier(0.02, kernel=name, degree=2, coef0=1.0).fit(X, y)
    expected = naive_sum(gram(kernel, QUERIES, X), X, y)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-8, atol=1e-11)


def test_sample_weights_weigh_the_sums():
    X, y = cancer()
    weights = np.random.default_rng(0).uniform(0, 3, size=len(y))
    weights[::5] = 0.0
    expected = naive_sum(rbf(QUERIES, X, 0.1), X, y, weights)
    model = ParzenClassifier(0.1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-10, atol=1e-14)


def test_class_weights_multiply_sample_weights():
    X, y = cancer()
    weights = np.random.default_rng(0).uniform(0, 3, size=len(y))
    expected = naive_sum(rbf(QUERIES, X, 0.1), X, y, weights * np.where(y == 1, 5.0, 1.0))
    model = ParzenClassifier(0.1, class_weight={1: 5.0}).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-10, atol=1e-14)


def test_balanced_classes_compare_means():
    X, y = cancer()
    values = rbf(QUERIES, X, 0.1)
    expected = (values[:, y == 1].mean(axis=1) - values[:, y == 0].mean(axis=1)) / 2
    model = ParzenClassifier(0.1, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-10, atol=1e-14)


def test_one_against_the_rest():
    X, y = iris()
    values = rbf(QUERIES_3, X, 0.3)
    expected = np.column_stack([naive_sum(values, X, np.where(y == c, 1, 0)) for c in range(3)])
    model = ParzenClassifier(0.3, multi_class="ovr").fit(X, y)
    np.testing.assert_allclose(model.decision_function(QUERIES_3), expected, rtol=1e-10)


def test_every_pair_of_classes():
    X, y = iris()
    model = ParzenClassifier(0.3).fit(X, y)
    margins = model.dual_coef_ @ rbf(X, QUERIES_3, 0.3)
    for m, (i, j) in enumerate(combinations(range(3), 2)):
        rows = np.isin(y, [i, j])
        expected = naive_sum(rbf(QUERIES_3, X[rows], 0.3), X[rows], (y[rows] == j).astype(int))
        np.testing.assert_allclose(margins[m], expected, rtol=1e-10)


@MULTI_CLASS
def test_many_classes_are_classified(multi_class):
    X, y = iris()
    assert ParzenClassifier(1.0, multi_class=multi_class).fit(X, y).score(X, y) > 0.85


def test_it_is_the_first_plane_of_the_ensemble():
    path = fit_quietly(RhoEnsembleSVC(max_time=1e-9), *cancer())  # no time for a stage
    np.testing.assert_allclose(
        ParzenClassifier().fit(*cancer()).decision_function(QUERIES),
        path.decision_function(QUERIES),
        rtol=1e-10,
        atol=1e-14,
    )


def test_multipliers_add_up_to_one():
    model = ParzenClassifier().fit(*cancer())
    assert np.abs(model.dual_coef_).sum() == pytest.approx(1.0)


def test_all_rows_are_support():
    model = ParzenClassifier().fit(*cancer())
    assert (model.support_.shape, model.dual_coef_.shape, model.intercept_.shape) == (
        (120,),
        (1, 120),
        (1,),
    )


def test_whole_weights_are_copies():
    X, y = iris()
    weights = np.random.default_rng(1).integers(0, 4, size=len(y))
    weighted = ParzenClassifier().fit(X, y, sample_weight=weights)
    copied = ParzenClassifier().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(
        weighted.decision_function(QUERIES_3), copied.decision_function(QUERIES_3), rtol=1e-9
    )


@MULTI_CLASS
def test_sparse_equals_dense(multi_class):
    X, y = iris()
    dense = ParzenClassifier(multi_class=multi_class).fit(X, y)
    sparse = ParzenClassifier(multi_class=multi_class).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(QUERIES_3)),
        dense.decision_function(QUERIES_3),
        rtol=1e-8,
    )


def test_precomputed_equals_the_kernel():
    X, y = iris()
    model = ParzenClassifier(kernel="precomputed").fit(rbf(X, X, 0.3), y)
    expected = ParzenClassifier(0.3).fit(X, y).decision_function(QUERIES_3)
    np.testing.assert_allclose(model.decision_function(rbf(QUERIES_3, X, 0.3)), expected, rtol=1e-9)


def test_coef_of_the_linear_kernel_is_the_difference_of_the_sums():
    X, y = cancer()
    model = ParzenClassifier(kernel="linear").fit(X, y)
    expected = (X[y == 1].sum(axis=0) - X[y == 0].sum(axis=0)) / len(y)
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-10)


ODD = {
    "conflicting duplicates": lambda X, y: (np.vstack([X, X]), np.concatenate([y, 1 - y])),
    "one row per class": lambda X, y: (np.eye(4), [0, 1, 2, 3]),
    "small features": lambda X, y: (1e-12 * X, y),
    "large features": lambda X, y: (1e12 * X, y),
    "equal rows": lambda X, y: (np.ones((8, 2)), [0, 1] * 4),
}


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.parametrize("case", ODD)
def test_odd_input_gives_finite_scores(case):
    X, y = ODD[case](*cancer(40))
    assert np.isfinite(ParzenClassifier().fit(X, y).decision_function(X)).all()


def test_float32_is_close():
    X, y = cancer()
    one, two = (
        ParzenClassifier(dtype=d).fit(X, y).decision_function(QUERIES)
        for d in ("float32", "float64")
    )
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-7)


def test_threads_change_nothing():
    one, two = (
        ParzenClassifier(n_jobs=n).fit(*iris()).decision_function(QUERIES_3) for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_copies_decide_alike():
    model = ParzenClassifier().fit(*cancer())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.decision_function(QUERIES), model.decision_function(QUERIES)
    )


def test_a_clone_has_the_parameters():
    model = ParzenClassifier(0.7, class_weight={0: 2.0})
    assert clone(model).get_params() == model.get_params()


def test_there_are_no_probabilities():
    with pytest.raises(AttributeError) as caught:
        ParzenClassifier().fit(*cancer()).predict_proba  # noqa: B018
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)
