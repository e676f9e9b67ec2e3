"""Classifiers in onnxruntime: the labels and probabilities of the package."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems.every_estimator import PUBLIC
from problems.onnx_sessions import assert_same_classes, run
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from hardmargin import (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MarginDiscriminantAnalysis,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
    compress,
)
from hardmargin.onnx import to_onnx
from hardmargin.onnx.converters import CLASSIFIERS, INSTEAD

TWO, THREE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
DIGITS = load_digits(return_X_y=True)
KERNELS = ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("public", PUBLIC)
def test_every_public_estimator_has_a_graph_or_says_what_to_use_instead(public):
    assert public in (*CLASSIFIERS, MarginDiscriminantAnalysis) or public.__name__ in INSTEAD


@pytest.mark.once_per("data", "estimator")
@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_probabilities_and_labels(estimator, data, multi_class):
    X, y = data
    clf = estimator(multi_class=multi_class).fit(X[::2], y[::2])
    assert_same_classes(clf, X)


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
def test_ten_classes(estimator):
    X, y = DIGITS
    clf = estimator().fit(X[:400], y[:400])
    assert_same_classes(clf, X[400:700])


@pytest.mark.once_per("kernel")
@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(estimator, kernel):
    X, y = THREE
    clf = estimator(kernel=kernel).fit(X[::2], y[::2])
    assert_same_classes(clf, X)


@pytest.mark.parametrize("views", ["standardized", "rank"])
@pytest.mark.parametrize("relevance", [False, True])
def test_views(views, relevance):
    X, y = THREE
    clf = EnsembleSVC(views=views, relevance=relevance).fit(X[::2], y[::2])
    assert set(clf.kernel_weights_["view"]) == {views}
    assert_same_classes(clf, X)


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_class_weights(estimator, data):
    X, y = data
    clf = estimator(class_weight={0: 5.0}).fit(X[::2], y[::2])
    assert_same_classes(clf, X)


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_frequencies_as_probabilities(estimator, data):
    X, y = data
    few = np.concatenate([np.flatnonzero(y == c)[: 3 + 30 * (c == 0)] for c in np.unique(y)])
    with pytest.warns(UserWarning, match="frequencies of the classes"):
        clf = estimator().fit(X[few], y[few])
    label, probabilities = run(to_onnx(clf, X), X)
    np.testing.assert_array_equal(label, clf.predict(X))
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ant", "bée", "cat"]),
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([-5, 2, 7], dtype=np.int32),
        np.array([1.0, 2.0, 3.0]),
    ],
    ids=["strings", "objects", "integers", "whole floats"],
)
def test_labels(labels):
    X, y = THREE
    assert_same_classes(GreedySVC().fit(X, labels[y]), X)


def test_booleans_are_integers():
    X, y = TWO
    clf = GreedySVC().fit(X, y == 1)
    label, _ = run(to_onnx(clf, X), X)
    assert label.dtype == np.int64
    np.testing.assert_array_equal(label, clf.predict(X))


def test_rows_of_float32():
    X, y = THREE
    clf = EnsembleSVC().fit(X[::2], y[::2])
    single = X.astype(np.float32)
    assert_same_classes(clf, single)
    assert run(to_onnx(clf, single), single)[1].dtype == np.float32


def test_a_number_of_columns_takes_float64():
    X, y = THREE
    clf = GreedySVC().fit(X, y)
    assert_same_classes(clf, X, to_onnx(clf, X.shape[1]))


def test_one_row():
    X, y = THREE
    clf = EnsembleSVC().fit(X, y)
    assert_same_classes(clf, X[:1])


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
def test_no_rows(estimator):
    X, y = THREE
    model = to_onnx(estimator().fit(X, y), X.shape[1])
    assert [len(found) for found in run(model, X[:0])] == [0, 0]


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
def test_sparse_rows(estimator):
    X, y = DIGITS
    S = sp.csr_array(X * (X > 4))
    clf = estimator().fit(S[:300], y[:300])
    model = to_onnx(clf, S)
    dense = S[300:500].toarray()
    expected = clf.predict_proba(S[300:500])
    np.testing.assert_allclose(run(model, dense)[1], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("estimator", [EnsembleSVC(), GreedySVC(kernel="linear")], ids=repr)
def test_text(estimator):
    """Sparse rows of many columns, for which linear kernels vote."""
    rng = np.random.default_rng(0)
    topics, y = rng.dirichlet(np.full(1200, 0.1), size=3), rng.integers(3, size=400)
    rows = np.array([rng.multinomial(60, topics[c]) for c in y], dtype=np.float64)
    clf = clone(estimator).fit(sp.csr_array(rows[:300]), y[:300])
    names = [kernel.name for kernel in getattr(clf._kernel_, "kernels", [clf._kernel_])]
    assert "linear" in names
    expected = clf.predict_proba(sp.csr_array(rows))
    np.testing.assert_allclose(run(to_onnx(clf, rows), rows)[1], expected, rtol=0, atol=1e-4)


def test_linear_kernels_among_others():
    """In a vote of wide rows, of which the linear kernels need no support rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 1100))
    y = X[:, :20].sum(axis=1) + (X[:, :20] ** 2).sum(axis=1) > 20
    clf = EnsembleSVC().fit(X[:120], y[:120])
    assert {kernel.name for kernel in clf._kernel_.kernels} > {"linear"}
    _, probabilities = run(to_onnx(clf, X), X)
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), rtol=0, atol=1e-4)


def test_columns_scaled_by_relevance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    y = X[:, 0] * X[:, 1] > 0
    clf = GreedySVC().fit(X[:300], y[:300])
    assert clf._kernel_.view is not None
    assert_same_classes(clf, X)


def test_low_rank():
    X, y = THREE
    clf = EnsembleSVC(rank=30).fit(X, y)
    assert len(clf.support_) == 30
    assert_same_classes(clf, X)


def test_compressed():
    X, y = THREE
    assert_same_classes(compress(EnsembleSVC().fit(X, y), 40), X)


@pytest.mark.once_per("estimator")
@pytest.mark.parametrize(
    "estimator",
    [
        CoreVectorSVC,
        HardMarginSVC,
        MultiplicativeSVC,
        ParzenClassifier,
        PathSVC,
        RhoEnsembleSVC,
        RhoSVC,
        RigorousSVC,
    ],
)
@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_scores_of_classifiers_without_probabilities(estimator, data):
    X, y = standardised(data[0]), data[1]
    clf = estimator().fit(X[:120], y[:120])
    assert not hasattr(clf, "predict_proba")
    label, scores = run(to_onnx(clf, X), X)
    expected = clf.decision_function(X)
    if expected.ndim == 1:
        expected = np.column_stack([-expected, expected])
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(label, clf.predict(X))


@pytest.mark.once_per("kernel")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_core_vectors(kernel, data):
    X, y = standardised(data[0]), data[1]
    clf = CoreVectorSVC(kernel=kernel).fit(X[::2], y[::2])
    label, _ = run(to_onnx(clf, X), X)
    np.testing.assert_array_equal(label, clf.predict(X))


def test_rows_far_from_all_others():
    """Where all kernel values vanish, the sum of the coefficients decides."""
    X, y = THREE
    clf = GreedySVC(gamma=1.0, max_visits=1).fit(X[::2], y[::2])
    label, _ = run(to_onnx(clf, X), X)
    np.testing.assert_array_equal(label, clf.predict(X))


@pytest.mark.once_per("kernel")
@pytest.mark.filterwarnings("ignore:Some directions are not certified")  # a sigmoid is indefinite
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("solver", ["core", "newton", "nystroem"])
def test_discriminant_features(kernel, solver):
    X, y = standardised(THREE[0]), THREE[1]
    features = MarginDiscriminantAnalysis(2, kernel=kernel, solver=solver, rank=50).fit(X, y)
    [found] = run(to_onnx(features, X), X)
    np.testing.assert_allclose(found, features.transform(X), atol=1e-6)
