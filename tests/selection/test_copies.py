"""Rows that occur more than once stay together in folds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.selection.folds import first_copies, make_folds

CONTAINERS = pytest.mark.parametrize("container", [np.asarray, sp.csr_array])


def different_rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def codes_of(n, n_classes=1):
    return (np.arange(n) % n_classes).astype(np.int32)


@CONTAINERS
@given(copied=st.lists(st.integers(0, 29), min_size=12, max_size=50), seed=st.integers(0, 5))
def test_copies_are_found(container, copied, seed):
    rows = np.concatenate([np.arange(30), np.array(copied, dtype=int)])
    found = first_copies(container(different_rows(30, seed)[rows]), codes_of(len(rows)))
    np.testing.assert_array_equal(found, rows)


def test_rows_of_another_class_are_no_copies():
    X = np.repeat(different_rows(30), 2, axis=0)
    np.testing.assert_array_equal(first_copies(X, codes_of(60, 2)), np.arange(60))


def test_rows_that_take_no_part_are_no_copies():
    X, codes = np.repeat(different_rows(30), 2, axis=0), codes_of(60)
    codes[::2] = -1
    np.testing.assert_array_equal(first_copies(X, codes), np.arange(60))


@CONTAINERS
def test_rows_of_few_values_are_equal_by_chance(container):
    X = np.random.default_rng(0).integers(0, 2, size=(200, 4)).astype(float)
    np.testing.assert_array_equal(first_copies(container(X), codes_of(200)), np.arange(200))


def test_zeros_of_either_sign_are_equal():
    X = different_rows(30)
    X[:, 0] = 0.0
    minus = X * [-1.0, 1.0, 1.0]
    found = first_copies(np.vstack([X, minus]), codes_of(60))
    np.testing.assert_array_equal(found, np.tile(np.arange(30), 2))


def test_a_few_copies_are_left_apart():
    X = np.vstack([different_rows(30), different_rows(30)[:8]])
    np.testing.assert_array_equal(first_copies(X, codes_of(38)), np.arange(38))


def test_few_rows_are_equal_by_chance():
    np.testing.assert_array_equal(first_copies(np.ones((20, 2)), codes_of(20)), np.arange(20))


def test_copies_are_held_out_together():
    rows = np.random.default_rng(0).integers(0, 40, size=150)
    folds = make_folds(5, different_rows(40)[rows], (rows % 2).astype(np.int32), random_state=0)
    assert folds.n_splits == 5
    for row in range(40):
        of_row = folds.test[:, rows == row]
        assert (of_row == of_row[:, :1]).all()


def test_classes_of_few_different_rows_are_short_of_rows():
    X = np.vstack([different_rows(30), np.repeat(different_rows(3, seed=1), 10, axis=0)])
    folds = make_folds(5, X, np.repeat([0, 1], 30).astype(np.int32), random_state=0)
    assert folds.n_splits == 0
    assert folds.shortage


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
def test_rows_drawn_again_and_again_do_not_hide_the_errors(estimator):
    X, y = make_classification(1200, weights=[0.93], class_sep=0.8, random_state=0)
    minority = np.flatnonzero(y[:600])
    drawn = np.r_[np.arange(600), np.random.default_rng(0).choice(minority, 500)]
    model = estimator(random_state=0).fit(X[drawn], y[drawn])
    assert balanced_accuracy_score(y[600:], model.predict(X[600:])) > 0.75
    assert model.cv_error_ > 0.02
