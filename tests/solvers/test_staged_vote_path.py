"""Paths that judge themselves by held-out rows, against the naive oracle and each other."""

import functools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.staged_vote import LinearKernel, held_out_path
from problems.staged_vote import (
    BIAS,
    LOSS,
    assert_identical_paths,
    rows_and_classes,
    run,
    run_one,
    splits,
    squared_distances,
)
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from hardmargin.solvers.staged_vote import KernelSource


def weights_of(n=60, seed=2):
    return np.random.default_rng(seed).uniform(0.2, 3.0, size=n)


def assert_same_path(path, expected, rtol=1e-9):
    coefficients, intercept, held, mass, loss, stages, losses = expected
    close = functools.partial(np.testing.assert_allclose, rtol=rtol)
    assert path.history["stage"].tolist() == stages
    smallest = 2 * np.finfo(float).tiny  # the core knows no smaller loss, oracles may
    close(path.history["loss"], losses, atol=smallest)
    close(path.coefficients, coefficients, atol=rtol * np.abs(coefficients).max())
    close(path.intercept, intercept, atol=rtol)
    close(path.held_scores, held, atol=rtol * np.abs(held).max())
    close([path.mass, path.certificate], [mass, loss], atol=smallest)


def by_oracle(K, classes, folds, **settings):
    y = np.where(classes == 1, 1.0, -1.0)
    return held_out_path(K, y, list(zip(*folds, strict=True)), **settings)


# --- the oracle ----------------------------------------------------------------------------------


@LOSS
@BIAS
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
def test_a_path_equals_the_oracle(loss, bias, weighted, gamma):
    settings = {"loss": loss, "max_stages": 16}  # rounding grows along a path
    D, (_, classes) = squared_distances(), rows_and_classes()
    weights = weights_of() if weighted else None
    path = run_one(
        D,
        classes,
        kind="distances",
        gamma=gamma,
        weights=weights,
        fit_intercept=bias,
        **settings,
    )
    expected = by_oracle(np.exp(-gamma * D), classes, splits(), v=weights, bias=bias, **settings)
    assert_same_path(path, expected)


@LOSS
@BIAS
def test_a_whole_path_equals_the_oracle(loss, bias):
    D, (_, classes) = squared_distances(), rows_and_classes()
    K = np.exp(-0.05 * D)
    path = run_one(K, classes, loss=loss, fit_intercept=bias)
    assert path.stop_reason == "patience"
    assert_same_path(path, by_oracle(K, classes, splits(), loss=loss, bias=bias), rtol=1e-6)


@LOSS
@BIAS
@pytest.mark.parametrize("n_stages", [1, 7, 20])
def test_a_number_of_stages_equals_the_oracle(loss, bias, n_stages):
    D, (_, classes) = squared_distances(), rows_and_classes()
    K = np.exp(-0.3 * D)
    path = run_one(K, classes, loss=loss, fit_intercept=bias, n_stages=n_stages)
    assert_same_path(path, by_oracle(K, classes, splits(), loss=loss, bias=bias, n_stages=n_stages))
    assert (path.n_stages, path.stop_reason, path.mass) == (n_stages, "n_stages", 1.0)


@LOSS
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_any_kernel_equals_the_oracle(loss, scale):
    X, classes = rows_and_classes()
    K = scale * (X @ X.T + 1) ** 2
    path = run_one(K, classes, loss=loss, max_stages=30)
    assert_same_path(path, by_oracle(K, classes, splits(), loss=loss, max_stages=30), rtol=1e-6)


def repeated(n):
    parts = [splits(n, 3, seed) for seed in (1, 2)]
    return tuple(np.vstack(part) for part in zip(*parts, strict=True))


def time_series(n):
    begins = np.arange(n // 4, n, n // 4)[:3]
    at = np.arange(n)
    return (
        np.array([at < begin for begin in begins]),
        np.array([(at >= begin) & (at < begin + n // 4) for begin in begins]),
    )


def some_rows_in_no_split(n):
    train, test = splits(n)
    used = np.arange(n) % 3 > 0
    return train & used, test & used


def overlapping(n):
    """Held-out rows that also train, as careless splits have them."""
    train, test = splits(n)
    return train | (np.arange(n) < 10), test


SPLITS = {
    "repeated": repeated,
    "time series": time_series,
    "rows in no split": some_rows_in_no_split,
    "overlapping": overlapping,
    "one split": lambda n: tuple(part[:1] for part in splits(n)),
    "two splits": lambda n: splits(n, 2),
    "eleven splits": lambda n: splits(n, 11),
}


@LOSS
@pytest.mark.parametrize("case", SPLITS)
def test_splits_of_any_kind_equal_the_oracle(loss, case):
    D, (_, classes) = squared_distances(), rows_and_classes()
    folds, K = SPLITS[case](60), np.exp(-0.3 * D)
    path = run_one(K, classes, folds=folds, loss=loss, max_stages=20)
    assert_same_path(path, by_oracle(K, classes, folds, loss=loss, max_stages=20))
    held = [(k, i) for k, part in enumerate(folds[1]) for i in np.flatnonzero(part)]
    assert list(zip(path.held_splits, path.held_rows, strict=True)) == held


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(12, 70),
    seed=st.integers(0, 1000),
    gamma=st.floats(1e-3, 10),
    n_splits=st.integers(1, 7),
    loss=st.sampled_from(["logistic", "exponential"]),
    bias=st.booleans(),
    weighted=st.booleans(),
)
@example(  # the loss underflows
    n=12, seed=0, gamma=1.0, n_splits=1, loss="exponential", bias=False, weighted=False
)
def test_any_problem_equals_the_oracle(n, seed, gamma, n_splits, loss, bias, weighted):
    D, (_, classes) = squared_distances(n, seed), rows_and_classes(n, seed)
    folds, K = splits(n, n_splits + 1, seed), np.exp(-gamma * D)
    folds = tuple(part[:n_splits] for part in folds)
    both = [set(classes[train]) == {0, 1} for train in folds[0]]
    held = set(classes[folds[1][both].any(axis=0)])
    if held != {0, 1}:
        return
    weights = weights_of(n, seed) if weighted else None
    settings = {"loss": loss, "max_stages": 12}
    path = run_one(K, classes, folds=folds, weights=weights, fit_intercept=bias, **settings)
    folds = tuple(part[both] for part in folds)
    assert_same_path(
        path, by_oracle(K, classes, folds, v=weights, bias=bias, **settings), rtol=1e-6
    )


# --- precision and storage -----------------------------------------------------------------------


@LOSS
@BIAS
@pytest.mark.parametrize("compact", [False, True], ids=["float32", "compact"])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
def test_single_precision_is_close(loss, bias, compact, gamma):
    D, (_, classes) = squared_distances(), rows_and_classes()
    settings = {"loss": loss, "fit_intercept": bias, "n_stages": 8}
    exact = run_one(D, classes, kind="distances", gamma=gamma, **settings)
    path = run_one(
        D.astype(np.float32), classes, kind="distances", gamma=gamma, compact=compact, **settings
    )
    assert path.certificate == pytest.approx(exact.certificate, rel=2e-3)
    np.testing.assert_allclose(
        path.held_scores, exact.held_scores, atol=2e-2 * np.abs(exact.held_scores).max()
    )


def test_compact_is_for_distances_only():
    D, (_, classes) = squared_distances(), rows_and_classes()
    K = np.exp(-0.3 * D)
    assert_identical_paths(run_one(K, classes, compact=True), run_one(K, classes, compact=False))


@pytest.mark.parametrize("compact", [False, True])
def test_compact_in_double_precision_is_close(compact):
    D, (_, classes) = squared_distances(), rows_and_classes()
    exact = run_one(D, classes, kind="distances", gamma=0.3)
    path = run_one(D, classes, kind="distances", gamma=0.3, compact=compact)
    assert path.certificate == pytest.approx(exact.certificate, rel=1e-3)


@LOSS
@BIAS
@pytest.mark.parametrize("n_stages", [None, 15])
def test_a_factor_equals_its_square(loss, bias, n_stages):
    X, classes = rows_and_classes()
    Z = np.ascontiguousarray(np.hstack([X, X**2, np.cos(X)]))
    settings = {"loss": loss, "fit_intercept": bias, "n_stages": n_stages, "max_stages": 30}
    path = run_one(Z, classes, kind="factor", **settings)
    square = run_one(np.ascontiguousarray(Z @ Z.T), classes, **settings)
    assert path.certificate == pytest.approx(square.certificate, rel=1e-7)
    np.testing.assert_allclose(
        path.held_scores, square.held_scores, atol=1e-6 * np.abs(square.held_scores).max()
    )


def sparse_rows(n=60, n_classes=2):
    """Rows with many zeros, of which some are empty."""
    X, classes = rows_and_classes(n, n_classes=n_classes)
    wide = np.hstack([X, X**2, np.cos(3 * X)])
    wide[np.random.default_rng(5).random(wide.shape) < 0.6] = 0
    wide[::17] = 0
    return wide, classes


@LOSS
@BIAS
@pytest.mark.parametrize("n_splits", [2, 5, 11])
def test_sparse_rows_equal_the_oracle_of_weights(loss, bias, n_splits):
    X, classes = sparse_rows()
    folds = splits(n_splits=n_splits)
    path = run_one(
        csr_array(X),
        classes,
        kind="rows",
        gamma=0.7,
        folds=folds,
        loss=loss,
        fit_intercept=bias,
        max_stages=16,
    )
    kernel = LinearKernel(X, 0.7)
    assert_same_path(path, by_oracle(kernel, classes, folds, loss=loss, bias=bias, max_stages=16))


@LOSS
@BIAS
@pytest.mark.parametrize("n_stages", [None, 15])
def test_sparse_rows_equal_their_kernel_matrix(loss, bias, n_stages):
    X, classes = sparse_rows()
    settings = {"loss": loss, "fit_intercept": bias, "n_stages": n_stages, "max_stages": 30}
    path = run_one(csr_array(X), classes, kind="rows", gamma=0.4, **settings)
    square = run_one(np.ascontiguousarray(0.4 * X @ X.T), classes, **settings)
    assert path.certificate == pytest.approx(square.certificate, rel=1e-7)
    np.testing.assert_allclose(
        path.held_scores, square.held_scores, atol=1e-6 * np.abs(square.held_scores).max()
    )


@pytest.mark.parametrize("n_threads", [1, 3])
def test_sparse_rows_of_several_machines_are_those_of_their_classes(n_threads):
    X, classes = sparse_rows(90, n_classes=3)
    machines = [([0], [1]), ([0], [2]), ([1, 2], [0])]
    found = run(
        [csr_array(X)], [KernelSource("rows", 0, 1.0)], classes, machines, n_threads=n_threads
    )
    for (negative, positive), [path] in zip(machines, found, strict=True):
        own = np.isin(classes, [*negative, *positive])
        train, test = (part[:, own] for part in splits(90))
        codes = np.isin(classes[own], positive).astype(np.int32)
        alone = run_one(csr_array(X[own]), codes, kind="rows", gamma=1.0, folds=(train, test))
        assert_identical_paths(path, alone)


@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 31, 33, 64, 65])
def test_sizes_around_a_strip(n):
    rng = np.random.default_rng(n)
    X, classes = rng.normal(size=(n, 2)), (np.arange(n) % 2).astype(np.int32)
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    folds = splits(n, 2)
    if n < 4:
        folds = tuple(part[:0] for part in folds)
    path = run_one(K, classes, folds=folds, n_stages=5)
    assert np.isfinite(path.coefficients).all()
    if n > 15:
        assert_same_path(path, by_oracle(K, classes, folds, n_stages=5))


# --- weights -------------------------------------------------------------------------------------


@LOSS
@BIAS
def test_whole_weights_are_copies_in_the_same_splits(loss, bias):
    D, (_, classes) = squared_distances(), rows_and_classes()
    counts = np.random.default_rng(4).integers(1, 4, size=60)
    copies = np.repeat(np.arange(60), counts)
    settings = {"loss": loss, "fit_intercept": bias, "max_stages": 40}
    K = np.exp(-0.3 * D)
    weighted = run_one(K, classes, weights=counts.astype(float), **settings)
    copied = run_one(
        np.ascontiguousarray(K[np.ix_(copies, copies)]),
        classes[copies],
        folds=tuple(part[:, copies] for part in splits()),
        **settings,
    )
    assert weighted.certificate == pytest.approx(copied.certificate, rel=1e-8)
    assert weighted.mass == pytest.approx(copied.mass, rel=1e-6)
    summed = np.bincount(copies, weights=copied.coefficients)
    np.testing.assert_allclose(weighted.coefficients, summed, atol=1e-7 * np.abs(summed).max())


@LOSS
@BIAS
def test_a_weight_of_zero_is_absence(loss, bias):
    D, (_, classes) = squared_distances(), rows_and_classes()
    K, present = np.exp(-0.3 * D), np.arange(60) % 4 > 0
    settings = {"loss": loss, "fit_intercept": bias, "max_stages": 40}
    weighted = run_one(K, classes, weights=present.astype(float), **settings)
    left_out = np.where(present, classes, -1).astype(np.int32)
    absent = run_one(K, left_out, **settings)
    assert absent.rows.tolist() == np.flatnonzero(present).tolist()
    assert weighted.certificate == pytest.approx(absent.certificate, rel=1e-9)
    np.testing.assert_allclose(
        weighted.coefficients[present],
        absent.coefficients,
        atol=1e-8 * np.abs(absent.coefficients).max(),
    )
    assert not weighted.coefficients[~present].any()


def test_rows_that_take_no_part_are_not_read():
    D, (_, classes) = squared_distances(), rows_and_classes()
    K, absent = np.exp(-0.3 * D), np.arange(60) % 4 == 0
    left_out = np.where(absent, -1, classes).astype(np.int32)
    expected = run_one(K, left_out)
    K[absent] = K[:, absent] = np.nan
    assert_identical_paths(run_one(K, left_out), expected)
