"""Votes on kernels of low rank: which kernel, which landmarks, and how many."""

import functools

import numpy as np
import pytest

from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.selection import low_rank_vote
from hardmargin.selection.folds import make_folds
from hardmargin.selection.low_rank_vote import GAMMA_FACTORS, low_rank_votes
from hardmargin.selection.vote import candidate_kernels, matrix_votes
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import StagedVoteOptions

TWO = [([0], [1])]
THREE = [([0], [1]), ([0], [2]), ([1], [2])]
RBF = Kernel("rbf", gamma=0.5)
LANDMARKS = pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky", "greedy"])


@functools.cache
def problem(n=120, n_classes=2, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    bounds = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(bounds, score).astype(np.int32)


def settings(X, codes, machines, weights=None, **options):
    """Problem, folds, options and monitor, the arguments of a vote."""
    if weights is None:
        weights = np.where(codes >= 0, 1.0, 0.0)
    return (
        Problem(X, codes, machines, weights),
        make_folds(4, None, codes, random_state=np.random.RandomState(0)),
        StagedVoteOptions(**options),
        Monitor(),
    )


def votes_of(
    X,
    codes,
    machines=TWO,
    *,
    kernels=(RBF,),
    rank=20,
    landmarks="random",
    dtype="float64",
    memory_bytes=2**30,
    seed=0,
    **changes,
):
    return low_rank_votes(
        kernels,
        *settings(X, codes, machines, **changes),
        rank=rank,
        landmarks=landmarks,
        dtype=dtype,
        memory_bytes=memory_bytes,
        n_jobs=1,
        random_state=np.random.RandomState(seed),
    )


def decisions(found, X, Q):
    """Decisions of every machine, from the landmarks alone."""
    [kernel] = found.kernels
    return [
        kernel.block(Q, X[vote.rows]) @ vote.coefficients[0] + vote.intercept
        for vote in found.votes
    ]


QUERIES = np.random.default_rng(5).normal(size=(40, 3))


@pytest.mark.parametrize("machines", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky"])
@pytest.mark.parametrize("rank", [120, 500])
def test_at_full_rank_votes_are_those_of_the_matrix(machines, landmarks, rank):
    X, codes = problem(n_classes=2 if machines is TWO else 3)
    changes = {"n_stages": 10}
    found = votes_of(X, codes, machines, rank=rank, landmarks=landmarks, **changes)
    whole = matrix_votes([RBF], *settings(X, codes, machines, **changes), dtype="float64")
    for vote, expected, values in zip(
        found.votes, whole, decisions(found, X, QUERIES), strict=True
    ):
        order, same = np.argsort(vote.held_rows), np.argsort(expected.held_rows)
        np.testing.assert_allclose(
            vote.held_scores[order],
            expected.held_scores[same],
            atol=1e-4 * np.abs(expected.held_scores).max(),
        )
        block = RBF.block(QUERIES, X[expected.rows])
        same_values = block @ expected.coefficients[0] + expected.intercept
        np.testing.assert_allclose(values, same_values, atol=1e-4 * np.abs(same_values).max())


@LANDMARKS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_landmarks_tell_the_classes_apart(landmarks, dtype):
    X, codes = problem(400)
    found = votes_of(X, codes, rank=40, landmarks=landmarks, dtype=dtype)
    [values] = decisions(found, X, X)
    assert ((values > 0) == (codes == 1)).mean() > 0.8
    assert found.rank <= 40
    assert len(found.votes[0].rows) <= 40
    assert found.losses[-1] < 0.5


@LANDMARKS
@pytest.mark.parametrize("machines", [TWO, THREE], ids=["two", "three"])
def test_landmarks_are_rows_that_take_part(landmarks, machines):
    X, codes = problem(n_classes=3)
    codes = np.where(np.arange(120) % 5 == 0, -1, codes).astype(np.int32)
    found = votes_of(X, codes, machines, landmarks=landmarks)
    for vote in found.votes:
        assert (codes[vote.rows] >= 0).all()
        assert (np.diff(vote.rows) > 0).all()
        np.testing.assert_array_equal(vote.rows, found.votes[0].rows)


def test_greedy_landmarks_come_from_all_machines():
    X, codes = problem(n_classes=3)
    found = votes_of(X, codes, THREE, landmarks="greedy", rank=12)
    assert set(codes[found.votes[0].rows]) == {0, 1, 2}


@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky"])
def test_a_share_of_the_trace_settles_the_rank(landmarks):
    X, codes = problem()
    coarse, fine = (
        votes_of(X, codes, rank=share, landmarks=landmarks).rank for share in (0.5, 0.001)
    )
    assert coarse < fine
    assert fine <= 120


@LANDMARKS
def test_the_seed_draws_the_landmarks(landmarks):
    X, codes = problem()
    one, same, other = (
        votes_of(X, codes, landmarks=landmarks, seed=s).votes[0].rows.tolist() for s in (1, 1, 2)
    )
    assert one == same
    assert (one == other) == (landmarks in ("cholesky", "greedy"))


def test_a_weight_of_zero_is_absence():
    X, codes = problem()
    absent = np.where(np.arange(120) % 5 == 0, -1, codes).astype(np.int32)
    found = votes_of(X, absent)
    assert 0 not in found.votes[0].held_rows % 5


# --- the kernel ----------------------------------------------------------------------------------


def test_one_kernel_is_used_as_it_is():
    X, codes = problem()
    assert votes_of(X, codes, kernels=[RBF]).kernels == [RBF]


def test_of_several_kernels_one_is_chosen():
    X, codes = problem(400)
    candidates = candidate_kernels("cv", "cv", X)
    [kernel] = votes_of(X, codes, kernels=candidates, rank=100).kernels
    assert any(
        kernel.name == c.name and kernel.gamma == factor * c.gamma
        for c in candidates
        for factor in GAMMA_FACTORS
    )


def test_a_kernel_that_cannot_tell_classes_apart_is_not_chosen():
    X, codes = problem(400)
    [kernel] = votes_of(X, codes, kernels=[Kernel("rbf", gamma=1e4), RBF], rank=100).kernels
    assert kernel.gamma in (RBF.gamma, 4 * RBF.gamma)


def test_the_kernel_is_chosen_on_a_sample(monkeypatch):
    X, codes = problem(400)
    sizes = []

    def spy(kernels, problem, *arguments, **keywords):
        sizes.append((problem.codes >= 0).sum())
        return matrix_votes(kernels, problem, *arguments, **keywords)

    monkeypatch.setattr(low_rank_vote, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(low_rank_vote, "matrix_votes", spy)
    votes_of(X, codes, kernels=candidate_kernels("cv", "cv", X))
    assert sizes == [100]


# --- the rank ------------------------------------------------------------------------------------


def test_the_rank_grows_while_the_loss_falls(monkeypatch):
    X, codes = problem(400)
    monkeypatch.setattr(low_rank_vote, "RANKS", (4, 8, 16, 32, 64, 128, 256, 400))
    found = votes_of(X, codes, rank="auto")
    assert 3 <= len(found.losses) < 8
    falls = np.array(found.losses[1:]) / found.losses[:-1]
    assert (falls[:-1] <= 0.99).all()
    assert falls[-1] > 0.99
    assert not found.is_limited


def test_a_rank_that_could_still_grow_is_limited(monkeypatch):
    X, codes = problem(400)
    monkeypatch.setattr(low_rank_vote, "RANKS", (4, 8, 16))
    found = votes_of(X, codes, rank="auto")
    assert (len(found.losses), found.rank, found.is_limited) == (3, 16, True)


def test_growing_ranks_keep_their_landmarks(monkeypatch):
    X, codes = problem(400)
    landmarks = []
    for ranks in [(4,), (4, 8)]:
        monkeypatch.setattr(low_rank_vote, "RANKS", ranks)
        landmarks.append(set(votes_of(X, codes, rank="auto").votes[0].rows))
    assert landmarks[0] < landmarks[1]


@pytest.mark.parametrize("rank", [4, 0.5])
def test_a_rank_that_was_asked_for_is_no_limit(rank):
    X, codes = problem(400)
    found = votes_of(X, codes, rank=rank)
    assert len(found.losses) == 1
    assert not found.is_limited


def test_the_memory_limits_the_ranks(monkeypatch):
    X, codes = problem(400)
    monkeypatch.setattr(low_rank_vote, "RANKS", (4, 8, 16, 32))
    room = 4 * 400 * 8  # bytes of a column, and what goes with it
    found = votes_of(X, codes, rank="auto", memory_bytes=17 * room)
    assert found.rank == 16


def test_there_is_always_some_rank():
    X, codes = problem()
    assert votes_of(X, codes, rank="auto", memory_bytes=1).rank == 1


def test_rows_fewer_than_the_ranks():
    X, codes = problem(60)
    found = votes_of(X, codes, rank="auto")
    assert 1 <= found.rank <= 60


# --- labels ---------------------------------------------------------------------------------------


def test_rows_whose_labels_choose_greedy_landmarks_do_not_judge():
    found = votes_of(*problem(), landmarks="greedy")
    [vote] = found.votes
    assert len(vote.held_rows) == 60
    assert not np.isin(vote.rows, vote.held_rows).any()


def test_where_nearly_all_rows_are_landmarks_all_judge():
    [vote] = votes_of(*problem(), landmarks="greedy", rank=110).votes
    assert len(np.unique(vote.held_rows)) == 120
