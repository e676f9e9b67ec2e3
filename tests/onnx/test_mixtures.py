"""Mixtures of experts in onnxruntime."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from problems.onnx_sessions import assert_same_classes, run

import hardmargin.cells.experts as experts
import hardmargin.cells.training as training
import hardmargin.selection.plan as plan
from hardmargin import EnsembleSVC, compress
from hardmargin.onnx import machines, to_onnx

N_TRAIN = 900


def problem(n_classes):
    """Many clusters, each of one class, so that not all cells know all classes."""
    rng = np.random.default_rng(n_classes)
    centres = 2 * rng.normal(size=(6 * n_classes, 4))
    cluster = rng.integers(len(centres), size=N_TRAIN + 300)
    X = centres[cluster] + 0.7 * rng.normal(size=(len(cluster), 4))
    y = np.array(["a", "b", "c", "d"])[cluster % n_classes]
    return 100 * X + 7, y


@functools.cache
def model(n_classes, is_sparse=False, **params):
    X, y = problem(n_classes)
    X = sp.csr_array(X * (X > 0)) if is_sparse else X
    params = {"max_cell_rows": 150, "n_trees": 2, "cv": 3, **params}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(plan, "MAX_STORED_ROWS", 300)
        patch.setattr(training, "FIRST_SAMPLE_ROWS", 200)
        patch.setattr(experts, "LEAST_CUT_ROWS", 200)
        clf = EnsembleSVC(**params).fit(X[:N_TRAIN], y[:N_TRAIN])
    assert len(clf._experts_.layers) > 0  # otherwise these tests would show little
    return clf


def test_two_classes():
    clf = model(2)
    assert_same_classes(clf, problem(2)[0])
    assert_same_classes(clf, problem(2)[0][:1])


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_cells_that_know_only_some_classes(multi_class):
    clf = model(4, multi_class=multi_class)
    known = [layer.is_learned.sum(axis=1) for layer in clf._experts_.layers]
    assert {3, 4} <= set(np.concatenate(known).tolist())
    assert_same_classes(clf, problem(4)[0])
    assert_same_classes(clf, problem(4)[0][:1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights(n_classes):
    clf = model(n_classes, class_weight="balanced")
    assert_same_classes(clf, problem(n_classes)[0])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_one_kernel(kernel):
    assert_same_classes(model(2, kernel=kernel), problem(2)[0])


def test_rows_without_standardising():
    assert_same_classes(model(2, standardize=False), problem(2)[0])


def test_compressed():
    assert_same_classes(compress(model(2), 300), problem(2)[0])


def test_sparse_rows():
    clf = model(2, is_sparse=True)
    X = problem(2)[0]
    rows = X * (X > 0)
    expected = clf.predict_proba(sp.csr_array(rows))
    found = run(to_onnx(clf, rows), rows)[1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_too_large(monkeypatch):
    monkeypatch.setattr(machines, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"has 900 support rows of 4 columns.*hardmargin.compress"):
        to_onnx(model(2), 4)
