"""Labels that look like quantities get one warning, before the work begins."""

import numpy as np
import pandas as pd
import pytest
from problems.every_estimator import MODELS
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_digits, load_wine

from hardmargin import ParzenClassifier
from hardmargin.warn import held_back

DIABETES = load_diabetes(return_X_y=True)
CLASSIFIERS = {name: model for name, model in MODELS.items() if is_classifier(model)}


def warned(y, sample_weight=None):
    """What reading labels warns of."""
    with held_back() as held:
        ParzenClassifier()._check_training(np.zeros((len(y), 1)), y, sample_weight)
    return [one.message for one in held]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_quantities_warn_before_the_work_begins(name):
    with pytest.raises(UserWarning, match=r"214 different numbers .* regressor.* max_time"):
        clone(CLASSIFIERS[name]).fit(*DIABETES)  # warnings are errors


QUANTITIES = DIABETES[1]
ROUNDED = np.random.default_rng(0).normal(0, 30, size=2_000).round()


@pytest.mark.parametrize(
    "y",
    [
        QUANTITIES,
        QUANTITIES[:100],
        QUANTITIES.astype(int),
        list(QUANTITIES.astype(int)),
        pd.Series(QUANTITIES.astype(int), dtype="Int64"),
        ROUNDED,
        np.repeat(np.arange(0, 600, 2), 5),
    ],
    ids=["floats", "100 rows", "ints", "list", "Int64", "repeated", "gaps"],
)
def test_quantities_are_named_once(y):
    [message] = warned(y)
    assert f"{len(np.unique(y)):,} different numbers in {len(y):,} rows" in message


@pytest.mark.parametrize(
    "y",
    [
        load_digits().target,
        load_wine().target,
        np.random.default_rng(0).integers(26, size=200),
        np.random.default_rng(0).integers(100, size=2_000),
        np.repeat(np.arange(50) * 3, 20),
        np.repeat(np.arange(300), 5),
        QUANTITIES.astype(str),
        np.arange(10),
    ],
    ids=["digits", "wine", "letters", "100 classes", "gaps", "300 codes", "strings", "few rows"],
)
def test_classes_are_not_mentioned(y):
    if len(np.unique(y)) == len(y):
        y = np.concatenate([y, y])
    assert warned(y) == []


def test_names_of_the_rows_are_named_once():
    [message] = warned([f"customer {k % 90}" for k in range(100)])
    assert "y has 90 different labels in 100 rows, 80 of them once: are they names" in message


def test_rows_of_weight_zero_do_not_count():
    y = np.concatenate([np.arange(400) % 2, QUANTITIES])
    assert warned(y, np.arange(len(y)) < 400) == []
    assert len(warned(y, np.arange(len(y)) >= 400)) == 1
