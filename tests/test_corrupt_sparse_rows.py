"""Sparse rows whose indices do not fit are refused; they must not crash the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from problems.every_estimator import PUBLIC

from hardmargin import EnsembleSVC, GreedySVC, ParzenClassifier

ESTIMATORS = pytest.mark.parametrize("estimator", PUBLIC)
X = sp.csr_array(np.random.default_rng(0).normal(size=(60, 4)))
Y = (X.toarray()[:, 0] > 0).astype(int)


def too_large(rows):
    rows.indices[3] = 10**6


def negative(rows):
    rows.indices[3] = -(10**6)


def not_ascending(rows):
    rows.indptr[5] = rows.indptr[4] - 3


def beyond_the_end(rows):
    rows.indptr[-1] += 10**6


def before_the_begin(rows):
    rows.indptr[-1] = -5


def before_all_numbers(rows):
    rows.indptr[-1] = np.iinfo(rows.indptr.dtype).min


DAMAGE = pytest.mark.parametrize(
    "damage",
    [
        too_large,
        negative,
        not_ascending,
        beyond_the_end,
        before_the_begin,
        before_all_numbers,
    ],
)


def damaged(damage):
    rows = X.copy()
    damage(rows)
    return rows


@ESTIMATORS
@DAMAGE
def test_fit_refuses_them(estimator, damage):
    with pytest.raises(ValueError, match="ind"):
        estimator().fit(damaged(damage), Y)


@DAMAGE
@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC, ParzenClassifier])
def test_predict_refuses_them(estimator, damage):
    model = estimator().fit(X, Y)
    with pytest.raises(ValueError, match="ind"):
        model.predict(damaged(damage))
