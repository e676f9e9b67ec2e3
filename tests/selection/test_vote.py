"""Kernels that vote by their held-out losses."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from hardmargin.kernels import Kernel, resolve_gamma
from hardmargin.monitor import Monitor
from hardmargin.selection.folds import Folds, make_folds
from hardmargin.selection.vote import (
    LEAST_SHARE,
    MANY_COLUMNS,
    MOST_SHARED,
    WIDTHS,
    candidate_kernels,
    count_votes,
    counted_together,
    matrix_votes,
)
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import SHARPNESS, StagedSolution, StagedVoteOptions

TWO = [([0], [1])]
THREE = [([0], [1]), ([0], [2]), ([1], [2])]


@functools.cache
def problem(n=80, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=n)
    bounds = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(bounds, score).astype(np.int32)


def folds_of(codes, n_splits=4):
    return make_folds(n_splits, None, codes, random_state=np.random.RandomState(0))


def votes_of(
    X, codes, machines=TWO, *, kernels=None, weights=None, folds=None, dtype="float64", **options
):
    if weights is None:
        weights = np.where(codes >= 0, 1.0, 0.0)
    return matrix_votes(
        candidate_kernels("cv", "cv", X) if kernels is None else kernels,
        Problem(X, codes, machines, weights),
        folds_of(codes) if folds is None else folds,
        StagedVoteOptions(**options),
        Monitor(),
        dtype=dtype,
    )


# --- candidates ----------------------------------------------------------------------------------


def test_candidates_are_rbf_and_laplacian_kernels_around_the_spread():
    X, _ = problem()
    expected = [("rbf", w * resolve_gamma("spread", X)) for w in (1 / 16, 1 / 4, 1, 4, 16)]
    unit = resolve_gamma("pairwise", X, kernel="laplacian")
    expected += [("laplacian", w * unit) for w in (1 / 4, 1, 4)]
    assert [(k.name, k.gamma) for k in candidate_kernels("cv", "cv", X)] == expected


@pytest.mark.parametrize("gamma", [0.7, "scale", "spread", "pairwise"])
def test_a_given_gamma_means_one_rbf_kernel(gamma):
    X, _ = problem()
    assert candidate_kernels("cv", gamma, X) == [Kernel("rbf", gamma=resolve_gamma(gamma, X))]


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_a_given_kernel_has_its_own_widths(name):
    X, _ = problem()
    kernels = candidate_kernels(name, "cv", X)
    assert {k.name for k in kernels} == {name}
    ratios = np.array([k.gamma for k in kernels]) / kernels[0].gamma
    np.testing.assert_allclose(ratios, np.array(WIDTHS[name]) / WIDTHS[name][0])


@pytest.mark.parametrize("name", ["poly", "sigmoid"])
def test_other_kernels_keep_their_numbers(name):
    X, _ = problem()
    kernels = candidate_kernels(name, "cv", X, degree=2, coef0=1.5)
    assert {(k.name, k.degree, k.coef0) for k in kernels} == {(name, 2, 1.5)}
    assert len({k.gamma for k in kernels}) == 3


@pytest.mark.parametrize("gamma", ["cv", "scale", 0.3])
@pytest.mark.parametrize("name", ["linear", "precomputed"])
def test_kernels_without_gamma_are_alone(name, gamma):
    X, _ = problem()
    assert candidate_kernels(name, gamma, X) == [Kernel(name)]


def test_a_callable_is_alone():
    X, _ = problem()
    [kernel] = candidate_kernels(np.dot, "cv", X)
    assert (kernel.name, kernel.function) == ("callable", np.dot)


@pytest.mark.parametrize(
    ("n_columns", "hold", "has_laplacian"),
    [
        (MANY_COLUMNS, sp.csr_array, True),
        (MANY_COLUMNS + 1, sp.csr_array, False),
        (MANY_COLUMNS + 1, lambda X: X.toarray(), True),
    ],
    ids=["narrow", "wide", "wide, dense"],
)
def test_wide_sparse_rows_have_no_laplacian(n_columns, hold, has_laplacian):
    X = sp.random_array((20, n_columns), density=0.02, format="csr", random_state=0)
    names = [k.name for k in candidate_kernels("cv", "cv", hold(X))]
    assert ("laplacian" in names) == has_laplacian
    assert names.count("rbf") == 5


def test_wide_sparse_rows_may_have_a_laplacian_that_is_asked_for():
    X = sp.random_array((20, 1500), density=0.02, format="csr", random_state=0)
    assert {k.name for k in candidate_kernels("laplacian", "cv", X)} == {"laplacian"}


def test_widths_see_the_weights():
    X, _ = problem()
    counts = np.random.default_rng(1).integers(1, 4, size=len(X))
    weighted = candidate_kernels("cv", "cv", X, sample_weight=counts.astype(float))
    copied = candidate_kernels("cv", "cv", np.repeat(X, counts, axis=0))
    np.testing.assert_allclose([k.gamma for k in weighted], [k.gamma for k in copied], rtol=1e-12)


# --- counting ------------------------------------------------------------------------------------


def path_of(loss, mass, rows, held):
    value, n = float(loss + mass), len(rows)
    return StagedSolution(
        rows=np.array(rows, dtype=np.int32),
        coefficients=np.full(n, value),
        intercept=value,
        certificate=loss,
        history={"stage": np.array([1]), "loss": np.array([loss])},
        n_stages=1,
        stop_reason="patience",
        mass=mass,
        held_rows=np.array(rows[:held], dtype=np.int32),
        held_splits=np.zeros(held, dtype=np.int32),
        held_scores=np.full(held, value),
    )


def paths_of(losses, masses, rows=range(4), held=3):
    return [path_of(q, m, rows, held) for q, m in zip(losses, masses, strict=True)]


def problem_of(weights, machines=TWO):
    """Rows of classes 0 and 1 in turn."""
    codes = (np.arange(len(weights)) % 2).astype(np.int32)
    return Problem(None, codes, machines, weights)


def count(paths, weights, prior=None):
    prior = np.ones(len(paths)) if prior is None else prior
    return count_votes(paths, problem_of(weights), 0, prior)


@settings(max_examples=60, deadline=None)
@given(
    paths=st.lists(st.tuples(st.floats(0, 5), st.floats(1, 50)), min_size=1, max_size=9),
    weight=st.floats(0.1, 1e4),
)
def test_shares_add_up_to_one_and_are_zero_or_not_small(paths, weight):
    losses, masses = zip(*paths, strict=True)
    vote = count(paths_of(losses, masses), np.full(4, weight))
    raw = np.array(masses) * np.exp(
        -SHARPNESS * 4 * max(weight, 1) * (np.array(losses) - min(losses))
    )
    raw /= raw.sum()
    assert vote.shares.sum() == pytest.approx(1)
    kept = vote.shares > 0
    assert (raw[kept] >= LEAST_SHARE).all()
    assert (raw[~kept] < LEAST_SHARE).all()
    np.testing.assert_allclose(vote.shares[kept], raw[kept] / raw[kept].sum())


def test_a_vote_is_the_sum_of_the_shares():
    paths = paths_of([0.5, 0.51, 3.0], [2.0, 3.0, 1.0], rows=[5, 6, 7, 8])
    vote = count(paths, np.full(9, 2.0))
    assert vote.shares[2] == 0
    for k, path in enumerate(paths):
        np.testing.assert_allclose(vote.coefficients[k], vote.shares[k] * path.coefficients)
    assert vote.intercept == pytest.approx(
        sum(s * p.intercept for s, p in zip(vote.shares, paths, strict=True))
    )
    np.testing.assert_allclose(vote.held_scores, np.full(3, vote.intercept))
    assert vote.rows.tolist() == [5, 6, 7, 8]
    assert vote.held_rows.tolist() == [5, 6, 7]
    assert vote.held_positive.tolist() == [True, False, True]


def test_votes_counted_together_have_the_mean_shares_as_prior():
    losses = ([0.4, 0.5, 0.6], [0.7, 0.4, 0.5])
    alone = [count(paths_of(own, np.ones(3)), np.ones(4)) for own in losses]
    together = counted_together(alone, problem_of(np.ones(4), 2 * TWO))
    prior = np.mean([vote.shares for vote in alone], axis=0)
    for one, both in zip(alone, together, strict=True):
        expected = prior * one.shares
        np.testing.assert_allclose(both.shares, expected / expected.sum())


def test_few_kernels_vote_where_machines_are_many():
    losses = 0.4 + 0.001 * np.arange(8)
    votes = [count(paths_of(losses, np.ones(8)), np.ones(4)) for _ in range(2)]
    together = counted_together(votes, problem_of(np.ones(4), 2 * TWO))
    assert [np.count_nonzero(vote.shares) for vote in together] == [MOST_SHARED] * 2


def test_one_machine_counts_alone():
    vote = count(paths_of([0.4, 0.5], [1.0, 1.0]), np.ones(4))
    assert counted_together([vote], problem_of(np.ones(4), TWO)) == [vote]


def test_each_machine_has_its_own_sides_when_counted_together():
    alone = [count(paths_of([0.4, 0.5], np.ones(2)), np.ones(4)) for _ in range(2)]
    both = counted_together(alone, problem_of(np.ones(4), [([0], [1]), ([1], [0])]))
    assert [vote.held_positive.tolist() for vote in both] == [
        [False, True, False],
        [True, False, True],
    ]


def test_a_machine_that_holds_nothing_out_is_not_counted_again():
    blind = count(paths_of([0.0, 0.0], np.ones(2), held=0), np.ones(4), np.array([0.0, 1.0]))
    other = count(paths_of([0.4, 0.5], np.ones(2)), np.ones(4))
    assert counted_together([blind, other], problem_of(np.ones(4), 2 * TWO))[0] is blind


@pytest.mark.parametrize("n_kernels", [1, 2, 5, 8])
def test_without_held_out_rows_the_prior_is_the_vote(n_kernels):
    paths = paths_of([0.0] * n_kernels, [13.0] * n_kernels, held=0)
    vote = count(paths, np.ones(4), np.eye(n_kernels)[-1])
    assert vote.shares.tolist() == [0.0] * (n_kernels - 1) + [1.0]
    assert vote.held_scores.shape == (0,)


# --- whole votes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("machines", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_votes_add_up(machines, loss, dtype):
    X, codes = problem(n_classes=len(machines) if len(machines) > 1 else 2)
    for (negative, positive), vote in zip(
        machines, votes_of(X, codes, machines, loss=loss, dtype=dtype), strict=True
    ):
        assert vote.shares.sum() == pytest.approx(1)
        assert ((vote.shares == 0) | (vote.shares >= LEAST_SHARE)).all()
        assert sorted(vote.rows) == np.flatnonzero(np.isin(codes, negative + positive)).tolist()
        assert sorted(vote.held_rows) == sorted(vote.rows)
        assert vote.coefficients.shape == (8, len(vote.rows))
        assert not vote.coefficients[vote.shares == 0].any()


def test_without_held_out_rows_the_kernel_of_middle_width_is_used():
    X, codes = problem()
    none = np.zeros((0, len(codes)), dtype=bool)
    [vote] = votes_of(X, codes, folds=Folds(none, none))
    assert vote.shares.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert vote.held_scores.shape == (0,)


def test_the_size_of_kernel_values_does_not_matter():
    X, codes = problem()

    def values(A, B):
        return np.exp(-0.3 * cdist(A, B, "sqeuclidean"))

    kernels = [Kernel("callable", function=lambda A, B: 4 * values(A, B))]
    [large] = votes_of(X, codes, kernels=kernels, n_stages=10)
    [unit] = votes_of(X, codes, kernels=[Kernel("callable", function=values)], n_stages=10)
    np.testing.assert_allclose(4 * large.coefficients, unit.coefficients)
    np.testing.assert_allclose(large.held_scores, unit.held_scores)


def test_held_out_scores_are_right_more_often_than_not():
    X, codes = problem(200)
    [vote] = votes_of(X, codes)
    assert ((vote.held_scores > 0) == (codes[vote.held_rows] == 1)).mean() > 0.8


def test_held_out_scores_are_not_those_of_training():
    X, codes = problem(200)
    labels = np.random.default_rng(0).permutation(codes)
    [vote] = votes_of(X, labels)
    assert 0.35 < ((vote.held_scores > 0) == (labels[vote.held_rows] == 1)).mean() < 0.65


def test_a_kernel_that_cannot_tell_classes_apart_has_no_share():
    X, codes = problem(200)
    kernels = [Kernel("rbf", gamma=0.3), Kernel("rbf", gamma=1e4)]
    [vote] = votes_of(X, codes, kernels=kernels)
    assert vote.shares.tolist() == [1.0, 0.0]


def test_equal_kernels_have_equal_shares():
    X, codes = problem()
    [vote] = votes_of(X, codes, kernels=[Kernel("rbf", gamma=0.3)] * 4)
    assert vote.shares.tolist() == [0.25] * 4


def test_rows_that_take_no_part_have_no_vote():
    X, codes = problem()
    codes = np.where(np.arange(80) % 5 == 0, -1, codes).astype(np.int32)
    present = np.flatnonzero(codes >= 0)
    folds = folds_of(codes)
    [vote] = votes_of(X, codes, folds=folds)
    kernels = candidate_kernels("cv", "cv", X)
    [absent] = votes_of(
        X[present],
        codes[present],
        kernels=kernels,
        folds=Folds(folds.train[:, present], folds.test[:, present]),
    )
    np.testing.assert_array_equal(vote.rows, present[absent.rows])
    np.testing.assert_array_equal(vote.coefficients, absent.coefficients)
    np.testing.assert_array_equal(vote.held_scores, absent.held_scores)


def test_rows_without_weights_have_a_weight_of_one():
    X, codes = problem(n_classes=3)
    kernels = candidate_kernels("cv", "cv", X)
    task = Problem(X, codes, THREE)
    plain, ones = (
        matrix_votes(
            kernels,
            replace(task, weights=weights),
            folds_of(codes),
            StagedVoteOptions(),
            Monitor(),
            dtype="float64",
        )
        for weights in (None, np.ones(len(codes)))
    )
    for one, other in zip(plain, ones, strict=True):
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
        np.testing.assert_array_equal(one.held_scores, other.held_scores)
        assert (one.n_rows, one.slope) == (other.n_rows, other.slope)


def test_whole_weights_are_copies_in_the_same_splits():
    X, codes = problem()
    counts = np.random.default_rng(1).integers(1, 4, size=80)
    copies = np.repeat(np.arange(80), counts)
    kernels, folds = candidate_kernels("cv", "cv", X), folds_of(codes)
    [weighted] = votes_of(X, codes, kernels=kernels, weights=counts.astype(float))
    [copied] = votes_of(
        X[copies],
        codes[copies],
        kernels=kernels,
        folds=Folds(folds.train[:, copies], folds.test[:, copies]),
    )
    np.testing.assert_allclose(weighted.shares, copied.shares, atol=1e-4)
    Q = np.random.default_rng(2).normal(size=(20, 3))

    def decide(vote, rows):
        values = sum(
            kernel.block(Q, rows[vote.rows]) @ c
            for kernel, c in zip(kernels, vote.coefficients, strict=True)
        )
        return values + vote.intercept

    expected = decide(copied, X[copies])
    np.testing.assert_allclose(decide(weighted, X), expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "rbf", "laplacian"])
def test_sparse_rows_are_dense_ones(kernel):
    X, codes = problem()
    X = X * (np.abs(X) > 0.5)
    kernels = candidate_kernels(kernel, 0.3, X)
    [dense] = votes_of(X, codes, kernels=kernels, n_stages=10)
    [sparse] = votes_of(sp.csr_array(X), codes, kernels=kernels, n_stages=10)
    np.testing.assert_allclose(
        sparse.held_scores, dense.held_scores, atol=1e-7 * np.abs(dense.held_scores).max()
    )


def test_a_precomputed_kernel_is_that_of_the_rows():
    X, codes = problem()
    K = np.exp(-0.3 * cdist(X, X, "sqeuclidean"))
    [given] = votes_of(K, codes, kernels=[Kernel("precomputed")], n_stages=10)
    [rows] = votes_of(X, codes, kernels=[Kernel("rbf", gamma=0.3)], n_stages=10)
    np.testing.assert_allclose(given.held_scores, rows.held_scores, rtol=1e-7, atol=1e-9)


def test_a_callable_is_the_kernel_it_computes():
    X, codes = problem()
    kernel = Kernel("callable", function=lambda A, B: np.exp(-0.3 * cdist(A, B, "sqeuclidean")))
    [called] = votes_of(X, codes, kernels=[kernel], n_stages=10)
    [rows] = votes_of(X, codes, kernels=[Kernel("rbf", gamma=0.3)], n_stages=10)
    np.testing.assert_allclose(called.held_scores, rows.held_scores, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value):
    X, codes = problem()
    kernel = Kernel("callable", function=lambda A, B: np.full((len(A), len(B)), value))
    with pytest.raises(ValueError, match="not finite"):
        votes_of(X, codes, kernels=[kernel])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_change_no_bit(n_threads):
    X, codes = problem(n_classes=3)
    for one, other in zip(
        votes_of(X, codes, THREE), votes_of(X, codes, THREE, n_threads=n_threads), strict=True
    ):
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
