"""Pairs of classes where there is no time for a machine of each."""

import warnings

import numpy as np
import pytest

from hardmargin import (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
)

MODELS = [
    CoreVectorSVC(),
    EnsembleSVC(multi_class="ovo"),
    GreedySVC(),
    HardMarginSVC(),
    MultiplicativeSVC(),
    ParzenClassifier(),
    PathSVC(),
    RhoEnsembleSVC(),
    RhoSVC(),
    RigorousSVC(),
]

N_CLASSES, N_PAIRS = 8, 28
Y = np.arange(40) % N_CLASSES
X = np.random.default_rng(0).normal(size=(40, 2)) + np.column_stack([Y, Y**2])

TOO_SHORT = "too short for a machine per pair of classes, 28 in all"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_one_machine_per_class_where_there_is_no_time_for_pairs(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(max_time=1e-4).fit(X, Y)
    assert sum(TOO_SHORT in str(warning.message) for warning in caught) == 1
    assert len(model.intercept_) == N_CLASSES
    assert model.decision_function(X).shape == (40, N_CLASSES)
    assert set(model.predict(X)) <= set(Y)


def test_pairs_where_there_is_time():
    model = ParzenClassifier(max_time=1.0).fit(X, Y)
    assert len(model.intercept_) == N_PAIRS


@pytest.mark.parametrize(("max_time", "is_late"), [(None, False), (0.03, True), (0.04, False)])
def test_every_pair_is_given_its_time(max_time, is_late):
    assert RhoSVC(max_time=max_time)._has_too_many_pairs(N_CLASSES) == is_late


def test_three_classes_have_as_many_pairs_as_classes():
    assert not RhoSVC(max_time=1e-9)._has_too_many_pairs(3)


def test_a_fit_that_can_resume_keeps_its_pairs(tmp_path):
    model = EnsembleSVC(max_time=1e-4, checkpoint=tmp_path / "fit")
    assert not model._has_too_many_pairs(N_CLASSES)
