"""Rows that are held out several times, in the probabilities of many classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import RepeatedStratifiedKFold

from hardmargin import EnsembleSVC
from hardmargin.selection.calibration import HeldOut, _turns


def test_turns_count_how_often_a_row_was_held_out_before():
    rows, machines = np.array([4, 2, 4, 2, 4, 4]), np.array([0, 0, 0, 0, 0, 1])
    held_out = HeldOut(rows, np.zeros(6), np.zeros(6, dtype=bool), machines)
    np.testing.assert_array_equal(_turns(held_out.rows, held_out.machines), [0, 0, 1, 1, 2, 0])


def test_the_same_splits_twice_change_no_judgement():
    X, y = make_blobs(150, 4, centers=3, cluster_std=3.0, random_state=0)
    splits = list(RepeatedStratifiedKFold(n_splits=4, n_repeats=1, random_state=0).split(X, y))
    once, twice = (EnsembleSVC(n_stages=10, cv=cv).fit(X, y) for cv in (splits, 2 * splits))
    assert twice.cv_error_ == once.cv_error_
    assert twice.cv_log_loss_ == pytest.approx(once.cv_log_loss_, rel=1e-2)
    np.testing.assert_allclose(once.temperature_, twice.temperature_, rtol=1e-4)
