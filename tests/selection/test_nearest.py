"""How near rows are to each other, as kernels measure it."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from hardmargin.kernels import METRICS
from hardmargin.selection import nearest as module
from hardmargin.selection.nearest import nearest_distance

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 3))


def naive(kernel, X, weights):
    """Look for the nearest row one by one."""
    D = cdist(X, X, "cityblock" if kernel == "laplacian" else "sqeuclidean")
    found = []
    for i in np.flatnonzero(weights):
        others = [D[i, j] for j in np.flatnonzero(weights) if D[i, j] > 0]
        found += [min(others)] * int(weights[i])
    return np.median(found)


@pytest.mark.parametrize("kernel", METRICS)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_median_of_the_distances(kernel, weighted):
    weights = RANDOM.integers(0, 4, len(X)) if weighted else np.ones(len(X))
    found = nearest_distance(kernel, X, weights.astype(float) if weighted else None)
    assert found == pytest.approx(naive(kernel, X, weights), rel=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_copies_are_no_other_rows(kernel):
    copies = np.vstack([X, X[:30], X[:30]])
    expected = naive(kernel, copies, np.ones(len(copies)))
    assert nearest_distance(kernel, copies) == pytest.approx(expected, rel=1e-10)


def test_a_weight_of_two_is_the_row_twice():
    weights = RANDOM.integers(1, 3, len(X))
    weighted = nearest_distance("rbf", X, weights.astype(float))
    repeated = nearest_distance("rbf", np.repeat(X, weights, axis=0))
    assert weighted == pytest.approx(repeated, rel=1e-10)


def test_sparse_rows_have_the_distances_of_dense_ones():
    some = np.where(RANDOM.random((60, 20)) < 0.2, RANDOM.normal(size=(60, 20)), 0.0)
    expected = nearest_distance("rbf", some)
    assert nearest_distance("rbf", csr_array(some)) == pytest.approx(expected, rel=1e-10)


def test_of_many_rows_some_are_looked_at(monkeypatch):
    rows = RANDOM.normal(size=(1_000, 2))
    of_all = naive("rbf", rows, np.ones(1_000))
    assert nearest_distance("rbf", rows) == pytest.approx(of_all, rel=0.3)
    monkeypatch.setattr(module, "MAX_ROWS", 1_000)
    monkeypatch.setattr(module, "DISTANCES_AT_ONCE", 5_000)  # a few rows at a time
    assert nearest_distance("rbf", rows) == pytest.approx(of_all, rel=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed", "callable"])
def test_other_kernels_have_no_distance(kernel):
    assert nearest_distance(kernel, X) is None


def test_equal_rows_have_no_distance():
    assert nearest_distance("rbf", np.ones((20, 3))) is None
