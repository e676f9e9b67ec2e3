"""Views: ranks, scales, and kernels that see rows through them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.views import rank_scores

from hardmargin.kernels import Kernel, KernelRows, KernelSum, Ranks, View
from hardmargin.solvers import greedy, hard_margin, soft_margin
from hardmargin.solvers.problem import Problem

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=80), RNG.exponential(size=80) ** 3, RNG.integers(2, size=80)])
QUERIES = np.column_stack([RNG.normal(size=30), RNG.exponential(size=30), np.ones(30)])


def test_ranks_are_those_of_the_oracle():
    ranked = Ranks.of(X).transform(QUERIES)
    for j in (0, 1):
        np.testing.assert_allclose(ranked[:, j], rank_scores(X[:, j], QUERIES[:, j]))


@given(st.integers(0, 10**6))
def test_scores_between_knots_are_on_a_line(seed):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(int(rng.integers(3, 40)), 1)), 1)
    ranks = Ranks.of(rows)
    queries = np.concatenate([rows, rng.normal(0, 3, size=(50, 1))])
    ranked = queries[:, 0]
    if len(ranks.columns):  # more than two values
        ranked = np.interp(queries[:, 0], ranks.values, ranks.scores)
    np.testing.assert_allclose(ranks.transform(queries)[:, 0], ranked, rtol=1e-12, atol=1e-12)


def test_columns_of_two_values_stay():
    np.testing.assert_array_equal(Ranks.of(X).transform(QUERIES)[:, 2], QUERIES[:, 2])


def test_a_constant_column_stays():
    rows = np.column_stack([np.ones(5), np.arange(5.0)])
    ranks = Ranks.of(rows)
    assert ranks.columns.tolist() == [1]
    np.testing.assert_array_equal(ranks.transform(rows)[:, 0], 1.0)


@given(st.integers(0, 10**6))
def test_ranks_do_not_depend_on_the_scale_of_a_column(seed):
    rows = np.random.default_rng(seed).normal(size=(30, 1))
    expected = Ranks.of(rows).transform(rows)
    np.testing.assert_allclose(Ranks.of(np.exp(rows)).transform(np.exp(rows)), expected, atol=1e-9)


def test_a_weight_of_two_is_the_row_twice():
    counts = RNG.integers(0, 4, size=80)
    weighted = Ranks.of(X, counts.astype(float)).transform(QUERIES)
    copied = Ranks.of(np.repeat(X, counts, axis=0)).transform(QUERIES)
    np.testing.assert_allclose(weighted, copied)


def test_equal_values_have_the_middle_of_their_ranks():
    column = np.array([[0.0], [1.0], [1.0], [1.0], [2.0]])
    scores = Ranks.of(column).transform(column).ravel()
    assert scores[1] == scores[2] == scores[3] == pytest.approx(0.0, abs=1e-12)


def test_many_values_are_interpolated_between_few():
    column = RNG.normal(size=(20_000, 1))
    ranks = Ranks.of(column)
    assert len(ranks.values) <= 256
    np.testing.assert_allclose(
        ranks.transform(column)[:, 0], rank_scores(column[:, 0], column[:, 0]), atol=0.06
    )


def test_rows_beyond_all_others_have_the_last_score():
    ranked = Ranks.of(X).transform(np.array([[1e300, -1e300, 0.0]]))
    assert np.abs(ranked).max() < 3


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_a_kernel_sees_the_rows_of_its_view(name):
    view = View("rank", Ranks.of(X), np.array([1.0, 0.5, 0.1]))
    viewed, plain = Kernel(name, gamma=0.7, view=view), Kernel(name, gamma=0.7)
    np.testing.assert_array_equal(
        viewed.block(QUERIES, X), plain.block(view.of(QUERIES), view.of(X))
    )
    coef = RNG.normal(size=(2, 80))
    np.testing.assert_allclose(
        viewed.expand(QUERIES, X, coef), viewed.block(QUERIES, X) @ coef.T, atol=1e-10
    )


def products(A, B):
    return A @ B.T


@pytest.mark.parametrize("solver", [greedy, hard_margin, soft_margin])
@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "callable"])
def test_solvers_see_the_rows_of_a_view(name, solver):
    view = View("rank", Ranks.of(X), np.array([1.0, 0.5, 0.1]))
    plain = Kernel(name, gamma=0.7, coef0=1.0, function=products if name == "callable" else None)
    viewed, y = replace(plain, view=view), np.where(X[:, 0] > 0, 1, -1)
    np.testing.assert_array_equal(viewed.diagonal(X), plain.diagonal(view.of(X)))
    [found], [expected] = (
        solver.solve(Problem.two_class(values, y))
        for values in (KernelRows(viewed, X), KernelRows(plain, view.of(X)))
    )
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_kernels_of_several_views_add_up():
    ranked = View("rank", Ranks.of(X))
    kernels = (
        Kernel("rbf", gamma=0.3),
        Kernel("rbf", gamma=0.7, view=ranked),
        Kernel("laplacian", gamma=0.2, view=ranked),
    )
    coef = RNG.normal(size=(1, 240))
    blocks = np.hstack([kernel.block(QUERIES, X) for kernel in kernels])
    np.testing.assert_allclose(
        KernelSum(kernels).expand(QUERIES, X, coef), blocks @ coef.T, atol=1e-10
    )
