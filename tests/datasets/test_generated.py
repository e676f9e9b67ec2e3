"""The generated problems of ESANN-99."""

import numpy as np
import pytest

from hardmargin.datasets import make_majority_rule, make_mirror_symmetry

MAKERS = [make_majority_rule, make_mirror_symmetry]


@pytest.mark.parametrize("make", MAKERS)
def test_bits_and_labels(make):
    X, y = make(50, n_bits=12, random_state=0)
    assert X.shape == (50, 12)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert set(np.unique(X)) == set(np.unique(y)) == {-1, 1}


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides(make):
    first, again, other = (make(30, random_state=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    state = np.random.RandomState(1)
    np.testing.assert_array_equal(make(30, random_state=state)[0], first)


@pytest.mark.parametrize(("make", "n_bits"), list(zip(MAKERS, (40, 30), strict=True)))
def test_the_papers_sizes_are_the_defaults(make, n_bits):
    assert make(random_state=0)[0].shape == (200, n_bits)


def test_most_bits_decide_and_ties_are_negative():
    X, y = make_majority_rule(300, n_bits=6, random_state=0)
    counts = (X == 1).sum(axis=1)
    assert (counts == 3).any()
    np.testing.assert_array_equal(y == 1, counts > 3)


@pytest.mark.parametrize("n_bits", [29, 30])
def test_half_of_the_rows_are_symmetric(n_bits):
    X, y = make_mirror_symmetry(201, n_bits=n_bits, random_state=0)
    symmetric = np.array([row.tolist() == row[::-1].tolist() for row in X])
    np.testing.assert_array_equal(y == 1, symmetric)
    assert symmetric.sum() == 100
    assert 20 < symmetric[:100].sum() < 80


def test_symmetric_by_chance():
    X, y = make_mirror_symmetry(400, n_bits=2, random_state=0)
    np.testing.assert_array_equal(y == 1, X[:, 0] == X[:, 1])
    assert (y == 1).mean() > 0.6
