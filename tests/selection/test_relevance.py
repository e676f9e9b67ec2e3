"""Relevance of columns."""

from dataclasses import replace

import numpy as np
from oracles.views import relevance

from hardmargin.kernels import Kernel, Ranks, View, column_ends
from hardmargin.selection import relevance as module
from hardmargin.selection.relevance import column_scales, one_hot_columns, relevance_of
from hardmargin.selection.vote import Vote

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(60, 3)), RNG.integers(2, size=60), np.ones(60)])
PLAIN = View("standardized")


def kernels_of(view):
    widths = (("rbf", 0.1), ("rbf", 0.6), ("laplacian", 0.4))
    return [Kernel(name, gamma=gamma, view=view) for name, gamma in widths]


KERNELS = kernels_of(PLAIN)


def vote(seed, rows):
    nothing = np.empty(0)
    return Vote(
        rows=rows.astype(np.int32),
        coefficients=np.random.default_rng(seed).normal(size=(len(KERNELS), len(rows))),
        n_rows=float(len(rows)),
        shares=np.full(3, 1 / 3),
        held_rows=nothing.astype(int),
        held_positive=nothing.astype(bool),
        held_weights=nothing,
        held_scores=nothing,
        paths=[],
    )


VOTES = [vote(0, np.arange(60)), vote(1, np.arange(10, 50))]


def log_odds(rows):
    return log_odds_of(X, rows)


def log_odds_of(support, rows):
    """Two machines; their slopes are 2, as nothing was held out."""
    blocks = [kernel.block(rows, support) for kernel in KERNELS]
    return 2 * np.column_stack(
        [sum(K[:, v.rows] @ c for K, c in zip(blocks, v.coefficients, strict=True)) for v in VOTES]
    )


def found(view=PLAIN, kernels=None, votes=VOTES, rows=X, weights=None):
    kernels = kernels_of(view) if kernels is None else kernels
    weights = np.ones(len(rows)) if weights is None else weights
    return relevance_of(view, kernels, votes, rows, weights, np.random.RandomState(0))


def test_it_is_that_of_the_oracle():
    np.testing.assert_allclose(found(), relevance(log_odds, X), rtol=1e-5, atol=1e-7)


def test_a_constant_column_has_none():
    assert found()[-1] == 0.0


def test_the_most_relevant_column_has_one():
    assert found().max() == 1.0


def test_derivatives_are_along_the_columns_of_the_view():
    scales = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    # The same kernels on rows that were scaled before.
    scaled = found(View("standardized", scales=scales), rows=X / scales)
    np.testing.assert_allclose(scaled, found(), rtol=1e-10)


def test_ranks_are_columns_like_others():
    view = View("rank", Ranks.of(X))
    np.testing.assert_allclose(found(view), found(rows=view.of(X)), rtol=1e-10)


def test_every_view_is_judged_by_its_own_kernels():
    other = View("rank", Ranks.of(X))
    both = [*KERNELS[:2], Kernel("laplacian", gamma=0.4, view=other)]
    silent = [replace(v, coefficients=v.coefficients * [[1], [1], [0]]) for v in VOTES]
    np.testing.assert_allclose(found(kernels=both), found(votes=silent), rtol=1e-10)
    assert np.any(found(other, both) != found(kernels=both))


def test_single_precision_is_close(monkeypatch):
    expected = found()
    monkeypatch.setattr(module, "MAX_FLOAT64_RELEVANCE_ROWS", 0)
    np.testing.assert_allclose(found(), expected, rtol=1e-4)


def test_some_rows_speak_for_many(monkeypatch):
    expected = found()
    monkeypatch.setattr(module, "MAX_ROWS", 30)
    np.testing.assert_allclose(found(), expected, rtol=0.2)


def test_rows_are_chosen_by_their_weights(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 20)
    counts = np.random.default_rng(1).integers(1, 4, size=60)
    copies = np.repeat(np.arange(60), counts)
    firsts = np.cumsum(counts) - counts
    of_firsts = [replace(v, rows=firsts[v.rows].astype(np.int32)) for v in VOTES]
    weighted = found(weights=counts.astype(float))
    np.testing.assert_allclose(weighted, found(votes=of_firsts, rows=X[copies]), rtol=1e-10)


def test_machines_that_say_nothing_have_none():
    silent = [replace(v, coefficients=np.zeros_like(v.coefficients)) for v in VOTES]
    assert found(votes=silent) is None


def test_columns_are_scaled_by_their_relevance():
    relevance = np.array([1.0, 0.3, 0.001, 0.3, 0.0])
    is_many_valued = column_ends(X).has_others
    scales = column_scales(relevance, is_many_valued)
    np.testing.assert_array_equal(scales[:3], [1.0, 0.3, 0.02])


def test_columns_of_two_values_are_scaled_by_powers_of_two():
    is_many_valued = column_ends(X).has_others
    assert column_scales(np.full(5, 0.3), is_many_valued)[3] == 0.25
    assert column_scales(np.full(5, 0.0), is_many_valued)[3] == 1 / 64


# One-hot encoding


def one_hot(n_categories, n=60, seed=3):
    return np.eye(n_categories)[np.random.default_rng(seed).integers(n_categories, size=n)]


def columns_of(rows):
    return one_hot_columns(rows, np.ones(len(rows)))


def test_the_columns_of_categories_are_found():
    rows = np.hstack([X[:, :2], one_hot(4), one_hot(3, seed=4), X[:, 3:]])
    assert columns_of(rows) == [[2, 3, 4, 5], [6, 7, 8]]


def test_a_category_may_have_no_column():
    assert columns_of(one_hot(5)[:, 1:]) == [[0, 1, 2, 3]]


def test_rare_columns_are_no_categories():
    assert columns_of(one_hot(10)[:, :4]) == []


def test_two_columns_are_no_categories():
    assert columns_of(one_hot(2)) == []


def test_columns_that_are_high_together_are_no_categories():
    assert columns_of(RNG.integers(2, size=(60, 5)).astype(float)) == []


def test_rows_of_large_weight_make_categories_common():
    rows = one_hot(10)[:, :4]
    assert one_hot_columns(rows, 1.0 + 9 * rows.any(axis=1)) == [[0, 1, 2, 3]]


def test_the_columns_of_a_category_have_equal_relevance():
    rows = np.hstack([X[:, :2], one_hot(3)])
    alone = relevance(lambda Q: log_odds_of(rows, Q), rows)
    expected = alone.copy()
    expected[2:] = np.sqrt(np.mean(alone[2:] ** 2))
    np.testing.assert_allclose(found(rows=rows), expected / expected.max(), rtol=1e-5)
