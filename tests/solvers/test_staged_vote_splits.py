"""Paths whose splits have kernels of their own, and columns of shuffled labels."""

import numpy as np
import pytest
from oracles.staged_vote import held_out_path
from problems.staged_vote import (
    THREE,
    assert_identical,
    rows_and_classes,
    run,
    splits,
)
from scipy.spatial.distance import cdist

from hardmargin.solvers import staged_vote
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import Candidates, KernelSource, StagedVoteOptions

METRIC = pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
TRAIN, TEST = splits()
FOLDS = list(zip(TRAIN, TEST, strict=True))


def views_of_splits(n=60, n_classes=2, dtype=np.float64):
    """The rows as all of them, and every split, scale them; and their classes."""
    X, classes = rows_and_classes(n, 0, n_classes)
    scales = np.random.default_rng(3).uniform(0.2, 1.5, size=(6, 3))
    return [np.ascontiguousarray(X * own, dtype=dtype) for own in scales], classes


def sources(metric, gammas):
    return [[KernelSource(metric, c, gamma * (1 + c)) for c in range(6)] for gamma in gammas]


@METRIC
@pytest.mark.parametrize("weights", [None, "weights"])
def test_a_path_of_split_kernels_agrees_with_its_oracle(metric, weights):
    views, classes = views_of_splits()
    v = None if weights is None else np.random.default_rng(1).uniform(0.5, 2, 60)
    [[path]] = run(views, sources(metric, [0.3]), classes, weights=v)
    K = [np.exp(-0.3 * (1 + c) * cdist(Z, Z, metric)) for c, Z in enumerate(views)]
    y = np.where(classes == 1, 1.0, -1.0)
    coefficients, intercept, held, _, least, stages, losses = held_out_path(K, y, FOLDS, v=v)
    assert path.history["stage"].tolist() == stages
    np.testing.assert_allclose(path.history["loss"], losses, rtol=1e-8)
    np.testing.assert_allclose(path.coefficients, coefficients, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(path.held_scores, held, rtol=1e-6, atol=1e-8)
    assert (path.intercept, path.certificate) == pytest.approx((intercept, least), rel=1e-6)


@METRIC
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compact", [False, True])
def test_points_have_the_values_of_their_distances(metric, dtype, compact):
    X, classes = rows_and_classes(70, 0, 3)
    points = np.ascontiguousarray(X, dtype=dtype)
    settings = {"machines": THREE, "n_stages": 6, "compact": compact, "folds": splits(70)}
    of_points = run([points], [KernelSource(metric, 0, 0.4)], classes, **settings)
    D = cdist(points, points, metric).astype(dtype)
    of_distances = run([D], [KernelSource("distances", 0, 0.4)], classes, **settings)
    for [path], [same] in zip(of_points, of_distances, strict=True):
        np.testing.assert_allclose(path.coefficients, same.coefficients, rtol=2e-4, atol=1e-7)


def test_many_points_are_compared_band_by_band():
    X = np.random.default_rng(0).normal(size=(2_100, 2))
    classes = (X[:, 0] > 0).astype(np.int32)
    settings = {"n_stages": 2, "folds": splits(2_100)}
    [[path]] = run([X], [KernelSource("sqeuclidean", 0, 0.5)], classes, **settings)
    D = cdist(X, X, "sqeuclidean")
    [[same]] = run([D], [KernelSource("distances", 0, 0.5)], classes, **settings)
    np.testing.assert_allclose(path.coefficients, same.coefficients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("machines", [[([0], [1])], THREE])
def test_neither_threads_nor_memory_change_a_result(machines):
    views, classes = views_of_splits(n_classes=3, dtype=np.float32)
    kernels = [*sources("sqeuclidean", [0.1, 0.4, 1.6]), *sources("cityblock", [0.2, 0.8])]
    of_one, *others = (
        run(views, kernels, classes, machines, n_threads=n, memory_bytes=memory)
        for n, memory in ((1, 2**30), (3, 2**30), (1, 0), (3, 0))
    )
    for other in others:
        for machine, same in zip(of_one, other, strict=True):
            assert_identical(machine, same)


def test_splits_that_a_machine_leaves_out_are_skipped_among_its_kernels():
    views, classes = views_of_splits()
    train = TRAIN.copy()
    train[1] &= classes == 0  # this split trains one class alone
    kept = [0, 2, 3, 4]
    kernels = sources("sqeuclidean", [0.3])
    [machine] = run(views, kernels, classes, folds=(train, TEST))
    own = [[kernels[0][0], *(kernels[0][k + 1] for k in kept)]]
    [expected] = run(views, own, classes, folds=(TRAIN[kept], TEST[kept]))
    np.testing.assert_array_equal(machine[0].coefficients, expected[0].coefficients)
    np.testing.assert_array_equal(machine[0].held_scores, expected[0].held_scores)
    assert 1 not in machine[0].held_splits


# --- shuffled labels ------------------------------------------------------------------------------


def shuffled_run(places, classes, weights=None, machines=((([0], [1])),)):
    X, _ = rows_and_classes(len(classes))
    D = cdist(X, X, "sqeuclidean")
    candidates = Candidates([D], [KernelSource("distances", 0, 0.3)], TRAIN, TEST, places)
    problem = Problem(candidates, classes, list(machines), weights)
    [[path]] = staged_vote.solve(problem, StagedVoteOptions(all_columns=True))
    return path, np.exp(-0.3 * D)


def test_columns_of_shuffled_labels_agree_with_the_oracle():
    _, classes = rows_and_classes()
    order = np.random.default_rng(5).permutation(60).astype(np.int32)
    path, K = shuffled_run(order[None], classes)
    y = np.where(classes == 1, 1.0, -1.0)
    labels = np.where(order < (classes == 1).sum(), 1.0, -1.0)
    coefficients, *_ = held_out_path(K, y, FOLDS, shuffled=[labels], all_columns=True)
    assert path.of_columns.shape == (7, 60)
    np.testing.assert_allclose(path.of_columns, coefficients, rtol=1e-6, atol=1e-9)


def test_shuffled_labels_change_nothing_of_the_other_columns():
    _, classes = rows_and_classes()
    order = np.arange(60, dtype=np.int32)[None]
    with_shuffle, _ = shuffled_run(order, classes)
    without, _ = shuffled_run(None, classes)
    np.testing.assert_array_equal(with_shuffle.coefficients, without.coefficients)
    np.testing.assert_array_equal(with_shuffle.held_scores, without.held_scores)


def test_a_row_of_weight_two_gets_the_shuffled_label_of_two_copies():
    X, classes = rows_and_classes(30)
    weights = np.random.default_rng(0).integers(1, 4, 30)
    at = np.repeat(np.arange(30), weights)
    places = np.random.default_rng(5).permutation(30).astype(np.int32)
    train, test = splits(30)
    found = []
    for rows, w in ((np.arange(30), weights.astype(float)), (at, np.ones(len(at)))):
        D = cdist(X[rows], X[rows], "sqeuclidean")
        kernels, of_rows = [KernelSource("distances", 0, 0.3)], places[None, rows]
        candidates = Candidates([D], kernels, train[:, rows], test[:, rows], of_rows)
        problem = Problem(candidates, np.ascontiguousarray(classes[rows]), [([0], [1])], w)
        [[path]] = staged_vote.solve(problem, StagedVoteOptions(all_columns=True, n_stages=8))
        found.append(np.bincount(rows, weights=path.of_columns[-1]))
    np.testing.assert_allclose(*found, rtol=1e-8, atol=1e-12)
