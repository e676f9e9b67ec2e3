"""scikit-learn's own checks of every public estimator."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardmargin
from hardmargin import GreedySVC

ESTIMATORS = [
    GreedySVC(),
    GreedySVC(max_visits=4),
    GreedySVC(multi_class="ovr"),
    GreedySVC(kernel="laplacian"),
    GreedySVC(kernel="precomputed"),
    GreedySVC(class_weight="balanced"),
    GreedySVC(n_jobs=2),
    GreedySVC(dtype="float32"),
]
TIES = "greedy ties go to the lowest row, which the check's shuffle moves"


def expected_failed_checks(estimator):
    if not isinstance(estimator, GreedySVC):
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": TIES,
        "check_sample_weight_equivalence_on_sparse_data": TIES,
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", hardmargin.__all__)
def test_every_public_estimator_is_checked(name):
    public = getattr(hardmargin, name)
    if not (inspect.isclass(public) and issubclass(public, BaseEstimator)):
        pytest.skip("not an estimator")
    assert public in {type(estimator) for estimator in ESTIMATORS}
