"""Warnings point at the line that called the package."""

import warnings

import numpy as np
import pytest

from hardmargin import GreedySVC, HardMarginSVC, MultiplicativeSVC, RhoEnsembleSVC, RhoSVC

SEPARATE = np.arange(6.0)[:, None]
MIXED = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "estimator",
    [
        GreedySVC("scale", max_visits=1, max_stages=1),
        RhoEnsembleSVC(max_stages=1),
        RhoSVC(max_stages=1),
        HardMarginSVC(max_stages=1),
        MultiplicativeSVC(max_stages=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_warning_names_the_file_of_the_caller(estimator):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(SEPARATE, MIXED)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_plane_that_separates_nothing_is_not_blamed_on_tol():
    with pytest.warns(UserWarning, match="HardMarginSVC gets there faster"):
        MultiplicativeSVC(max_stages=1).fit(SEPARATE, MIXED)
