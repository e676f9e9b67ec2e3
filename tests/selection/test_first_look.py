"""The first look at sparse rows, and at rows of common norm."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.preprocessing import normalize

from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.selection.first_look import (
    SAMPLE_ROWS,
    Look,
    first_look,
    is_linear_candidate,
    sample_rows,
    with_room_for_weights,
)
from hardmargin.selection.folds import given_folds
from hardmargin.selection.plan import is_open, is_text
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import StagedVoteOptions

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(40, 5))
SPARSE = random_array((40, 1_200), density=0.01, format="csr", random_state=RNG)
ONE_HOT = np.eye(3)[RNG.integers(0, 3, size=(40, 4))].reshape(40, -1)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (DENSE, False),
        (normalize(DENSE), True),
        (7 * normalize(DENSE), True),
        (normalize(DENSE + 20), True),
        (DENSE + 10_000, False),
        (np.zeros((4, 2)), False),
        (np.vstack([DENSE, np.full((1, 5), 1e200)]), False),
        (1e20 * SPARSE, False),
        (1e-20 * SPARSE, False),
        (ONE_HOT, False),
        (SPARSE, True),
        (csr_array(ONE_HOT), False),
    ],
    ids=[
        "dense",
        "unit norm",
        "common norm",
        "unit norm, near to each other",
        "far from the origin",
        "zeros",
        "one huge",
        "huge",
        "tiny",
        "one-hot",
        "sparse",
        "sparse one-hot",
    ],
)
def test_scaling_is_open_for_sparse_rows_and_those_of_common_norm(X, expected):
    assert is_open(X) is expected


@pytest.mark.parametrize(
    ("X", "text", "linear"),
    [
        (DENSE, False, False),
        (csr_array(DENSE), False, True),
        (SPARSE, True, True),
        (SPARSE.toarray(), False, True),
        (np.zeros((1_300, 1_200)), False, False),
    ],
    ids=["dense", "sparse", "text", "wide", "many rows"],
)
def test_text_and_wide_rows_are_told_by_their_columns(X, text, linear):
    assert (is_text(X), is_linear_candidate(X)) == (text, linear)


def look(X, labels, seen, *kernels):
    sample = sample_rows(X, labels.astype(np.int32), None, 3, None, np.random.RandomState(0))
    return first_look(
        sample,
        {scales: change(sample.X) for scales, change in seen.items()},
        lambda _: list(kernels),
        [([0], [1])],
        StagedVoteOptions(),
        Monitor(),
    )


BOTH = {False: lambda X: X, True: lambda X: X / X.std(axis=0)}
LINEAR, RBF = Kernel("linear"), Kernel("rbf", gamma=0.5)


def test_the_scaling_of_less_held_out_loss_is_chosen():
    X = np.random.default_rng(1).normal(size=(300, 4)) * [1, 1, 30, 30]
    small, large = X[:, 0] * X[:, 1] > 0, X[:, 2] * X[:, 3] > 0
    assert look(X, small, BOTH, RBF).standardized
    assert not look(X, large, BOTH, Kernel("rbf", gamma=1e-3)).standardized


def test_kernels_that_gain_little_are_left_out():
    X = np.random.default_rng(1).normal(size=(300, 2))
    assert look(X, X[:, 0] > 0, {False: BOTH[False]}, LINEAR, RBF) == Look(False, True)
    assert look(X, X[:, 0] * X[:, 1] > 0, {False: BOTH[False]}, LINEAR, RBF) == Look(False, False)


def test_rows_that_cannot_be_held_out_say_nothing():
    X = np.random.default_rng(1).normal(size=(4, 2))
    assert look(X, np.array([0, 1, 1, 1]), BOTH, RBF) is None


def test_a_sample_has_rows_of_every_class_and_their_given_splits():
    n = 3 * SAMPLE_ROWS
    codes = (np.arange(n) % 100 == 0).astype(np.int32)
    codes[1] = -1
    X, half = np.arange(n, dtype=float)[:, None], np.arange(n) % 2 == 0
    splits = [(np.flatnonzero(half), np.flatnonzero(~half))]
    sample = sample_rows(
        X, codes, None, None, given_folds(splits, X, codes), np.random.RandomState(0)
    )
    assert SAMPLE_ROWS <= len(sample.codes) <= SAMPLE_ROWS + 2
    assert (sample.codes == 1).sum() >= 20
    numbers = sample.X[:, 0].astype(int)
    assert 1 not in numbers
    np.testing.assert_array_equal(sample.codes, codes[numbers])
    np.testing.assert_array_equal(sample.folds.train, half[None, numbers])


def test_paths_need_memory_for_rows_and_threads():
    problem = Problem(None, np.zeros(40, np.int32), [([0], [1])])
    many = StagedVoteOptions(n_threads=64)
    plenty = with_room_for_weights(many, SPARSE, problem, 5, 2**30)
    little = with_room_for_weights(many, SPARSE, problem, 5, 2**18)
    assert plenty.n_threads == 64
    assert 1 <= little.n_threads < 64
    with pytest.raises(ValueError, match="raise memory_limit"):
        with_room_for_weights(many, SPARSE, problem, 5, 2**12)


def needed(X=SPARSE, n_machines=1, n_splits=5):
    """Memory that one thread needs, as the error tells."""
    problem = Problem(None, np.zeros(X.shape[0], np.int32), [([0], [1])] * n_machines)
    with pytest.raises(ValueError, match="raise memory_limit") as caught:
        with_room_for_weights(StagedVoteOptions(), X, problem, n_splits, 0)
    return int(re.search(r"need ([\d,]+) bytes", str(caught.value))[1].replace(",", ""))


def test_memory_holds_rows_twice_votes_of_machines_and_weights_of_splits():
    n, n_columns = SPARSE.shape
    denser = random_array(SPARSE.shape, density=0.02, format="csr", random_state=0)
    wider = csr_array((SPARSE.data, SPARSE.indices, SPARSE.indptr), shape=(n, 2 * n_columns))
    ends = np.append(SPARSE.indptr, [SPARSE.nnz] * n)
    taller = csr_array((SPARSE.data, SPARSE.indices, ends), shape=(2 * n, n_columns))
    assert needed(denser) - needed() == 2 * 12 * (denser.nnz - SPARSE.nnz)
    assert needed(n_machines=3) - needed() == 2 * 48 * n
    assert needed(n_splits=6) - needed() == 4 * 5 * n
    assert needed(wider) - needed() == 4 * 8 * n_columns
    assert needed(taller) - needed() == (48 + 4 * 5 * (1 + 5)) * n


def test_each_further_thread_needs_weights_of_its_own():
    n, n_columns = SPARSE.shape
    problem = Problem(None, np.zeros(n, np.int32), [([0], [1])])
    many, each = StagedVoteOptions(n_threads=64), 4 * (5 * (1 + 5) * n + 8 * n_columns)
    for n_threads in (1, 2, 64):
        enough = needed() + (n_threads - 1) * each
        assert with_room_for_weights(many, SPARSE, problem, 5, enough).n_threads == n_threads
        if n_threads > 1:
            less = with_room_for_weights(many, SPARSE, problem, 5, enough - 1)
            assert less.n_threads == n_threads - 1
    with pytest.raises(ValueError, match="raise memory_limit"):
        with_room_for_weights(many, SPARSE, problem, 5, needed() - 1)
