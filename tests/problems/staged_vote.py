"""What the tests of paths that judge themselves by held-out rows share."""

import functools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from hardmargin.solvers import staged_vote
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import Candidates, KernelSource, StagedVoteOptions

LOSS = pytest.mark.parametrize("loss", ["logistic", "exponential"])
BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
TWO = [([0], [1])]
THREE = [([0], [1]), ([0], [2]), ([1], [2])]
GAMMAS = (0.02, 0.1, 0.4, 1.6, 6.4)


@functools.cache
def rows_and_classes(n=60, seed=0, n_classes=2):
    """Classes that overlap, of unequal size; rows of a class are not side by side."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    bounds = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1] ** 0.7)
    return X, np.searchsorted(bounds, score).astype(np.int32)


def squared_distances(n=60, seed=0, n_classes=2):
    X, _ = rows_and_classes(n, seed, n_classes)
    return cdist(X, X, "sqeuclidean")


@functools.cache
def splits(n=60, n_splits=5, seed=1):
    part = np.random.default_rng(seed).permutation(n) % n_splits
    test = part == np.arange(n_splits)[:, None]
    return ~test, test


def run(
    arrays, kernels, classes, machines=TWO, *, weights=None, folds=None, monitor=None, **options
):
    train, test = splits(len(classes)) if folds is None else folds
    problem = Problem(Candidates(arrays, kernels, train, test), classes, machines, weights)
    return staged_vote.solve(problem, StagedVoteOptions(**options), monitor)


def run_one(K, classes, *, kind="values", gamma=0.0, **settings):
    """The path of the only kernel of the only machine."""
    [[path]] = run([K], [KernelSource(kind, 0, gamma)], classes, **settings)
    return path


def race_problem(dtype=np.float64, n=90, seed=0, n_classes=2, **changes):
    """Kernels of two metrics and several widths, to be run with any options."""
    X, classes = rows_and_classes(n, seed, n_classes)
    arrays = [cdist(X, X, m).astype(dtype) for m in ("sqeuclidean", "cityblock")]
    kernels = [KernelSource("distances", 0, g) for g in GAMMAS]
    kernels += [KernelSource("distances", 1, g) for g in GAMMAS[1:4]]
    return functools.partial(run, arrays, kernels, classes, **({"folds": splits(n)} | changes))


def assert_identical(machine, other):
    """The same, bit by bit."""
    for path, same in zip(machine, other, strict=True):
        assert_identical_paths(path, same)
        for name in ("rows", "held_rows", "held_splits"):
            np.testing.assert_array_equal(getattr(path, name), getattr(same, name), err_msg=name)


def assert_identical_paths(path, same):
    """The same, bit by bit; the numbers of the rows and splits may differ."""
    for name in set(vars(path)) - {"rows", "held_rows", "held_splits", "history"}:
        np.testing.assert_array_equal(getattr(path, name), getattr(same, name), err_msg=name)
    assert path.history.keys() == same.history.keys()
    for name, values in path.history.items():
        np.testing.assert_array_equal(values, same.history[name], err_msg=name)
