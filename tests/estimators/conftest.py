"""Rows for the tests of more than one estimator."""

import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler


@pytest.fixture(scope="module")
def iris():
    """Iris with standardized columns; some files have their own."""
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y
