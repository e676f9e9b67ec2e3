"""The generated problems of ESANN-99, and Breiman's."""

import numpy as np
import pytest

from hardmargin.datasets import (
    make_majority_rule,
    make_mirror_symmetry,
    make_ringnorm,
    make_twonorm,
    make_waveform,
)

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


@pytest.mark.parametrize("make", [make_waveform, make_ringnorm, make_twonorm])
def test_the_seed_decides_breimans_problems(make):
    (X, y), (again, labels), (other, _) = (make(30, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert (other != X).any()
    assert y.dtype == np.int64
    assert set(y) == {-1, 1}


def test_waveforms_are_means_of_two_waves():
    X, y = make_waveform(60_000, binary=False, random_state=0)
    peaks = np.array([7, 15, 11])
    waves = np.maximum(6 - np.abs(np.arange(1, 22) - peaks[:, None]), 0)
    for label, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = X[y == label]
        np.testing.assert_allclose(rows.mean(axis=0), waves[list(pair)].mean(axis=0), atol=0.05)
        # The noise, and a share that is uniform in [0, 1].
        spread = 1 + (waves[pair[0]] - waves[pair[1]]) ** 2 / 12
        np.testing.assert_allclose(rows.var(axis=0), spread, rtol=0.05)
    labels = make_waveform(60_000, random_state=0)[1]
    np.testing.assert_array_equal(labels == 1, y == 1)


@pytest.mark.parametrize(
    ("make", "means", "deviations"),
    [
        (make_ringnorm, (2 / 20**0.5, 0), (1, 2)),
        (make_twonorm, (-2 / 20**0.5, 2 / 20**0.5), (1, 1)),
    ],
)
def test_normal_classes(make, means, deviations):
    X, y = make(40_000, random_state=0)
    for label, mean, deviation in zip((-1, 1), means, deviations, strict=True):
        np.testing.assert_allclose(X[y == label].mean(axis=0), mean, atol=0.06)
        np.testing.assert_allclose(X[y == label].std(axis=0), deviation, rtol=0.03)


@pytest.mark.parametrize(
    "make", [make_majority_rule, make_mirror_symmetry, make_waveform, make_ringnorm, make_twonorm]
)
@pytest.mark.parametrize("count", [-1, 0, "x", 2.5, None, True])
def test_invalid_counts(make, count):
    with pytest.raises(ValueError, match=f"n_samples={count!r} must be a whole number of at least"):
        make(count)
    assert len(make(np.int64(3))[1]) == 3


@pytest.mark.parametrize("make", MAKERS)
def test_no_bits(make):
    with pytest.raises(ValueError, match="n_bits=-1 must be a whole number of at least 1"):
        make(5, n_bits=-1)
