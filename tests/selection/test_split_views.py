"""Relevance that every split finds with its own training rows."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.honest_vote import honest_vote

from hardmargin import EnsembleSVC
from hardmargin.selection import kernel_vote, vote
from hardmargin.selection.folds import shuffled_places
from hardmargin.selection.relevance import relative, without_chance
from hardmargin.solvers import staged_vote


def standard_rows(n=90, d=4, seed=0):
    """Rows of mean 0 and variance 1, of which two columns matter."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (X[:, 0] + 0.7 * X[:, 1] + 0.8 * random.normal(size=n) > 0).astype(int)
    return X, y


def fit_without_race(monkeypatch, X, y, folds, places):
    """Fit on given splits and orders of labels; return the model and all kernels that voted."""
    results = []
    counted = vote.counted_together

    def unraced(problem, options=None, monitor=None):
        return staged_vote.solve(problem, replace(options, race=False), monitor)

    def noted(votes, problem):
        results.append(votes)
        return counted(votes, problem)

    monkeypatch.setattr(vote, "staged_vote", type("Unraced", (), {"solve": staticmethod(unraced)}))
    monkeypatch.setattr(kernel_vote, "counted_together", noted)
    monkeypatch.setattr(kernel_vote, "shuffled_places", lambda *_: places)
    fields = []
    judged = kernel_vote.KernelVote._judged_by_split

    def kept(self, *arguments):
        fields.append(judged(self, *arguments))
        return fields[-1]

    monkeypatch.setattr(kernel_vote.KernelVote, "_judged_by_split", kept)
    splits = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds]
    model = EnsembleSVC(cv=splits, views="standardized", dtype="float64").fit(X, y)
    return model, fields[0], results[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_vote_agrees_with_a_naive_oracle(monkeypatch, seed):
    X, y = standard_rows(seed=seed)
    test = np.random.default_rng(1).permutation(90) % 5 == np.arange(5)[:, None]
    folds = list(zip(~test, test, strict=True))
    places = np.array([np.random.default_rng(s).permutation(90) for s in (2, 3)], dtype=np.int32)
    shuffled = [np.where(order < y.sum(), 1.0, -1.0) for order in places]
    _, field, [found] = fit_without_race(monkeypatch, X, y, folds, places)
    scales, plain, kept, losses = honest_vote(X, 2.0 * y - 1, folds, shuffled)
    scaled = field.kernels[len(plain) :]
    assert [kernel.name for kernel in scaled] == [name for name, _ in kept]
    for kernel in scaled:
        views = [kernel.view, *(own.view for own in field.of_splits[kernel])]
        for view, expected in zip(views, scales, strict=True):
            np.testing.assert_allclose(view.scales, expected, rtol=1e-6)
    certificates = [path.certificate for path in found.paths]
    np.testing.assert_allclose(certificates, [*plain, *losses], rtol=1e-6)


def test_chance_is_subtracted_by_kind_of_column():
    squares = np.array([[4.0, 1.0, 3.0, 0.0], [4.0, 1.0, 3.0, 0.0]])
    of_shuffled = np.array([[1.0, 3.0, 0.5, 9.0], [3.0, 1.0, 0.5, 9.0]])
    varies = np.array([True, True, True, False])
    fair = without_chance(squares, of_shuffled, varies, np.array([True, True, False, False]), 3.0)
    factor = 2 * 3 / (3 + 3)
    np.testing.assert_allclose(fair[0], [4 - 2 * factor, 0, 3 - 0.5 * factor, 0])
    np.testing.assert_allclose(fair[1], [4 - 2.5 * factor, 0, 3 - 0.625 * factor, 0])


def test_where_chance_explains_all_no_column_is_scaled():
    np.testing.assert_array_equal(relative(np.zeros((2, 3))), np.ones((2, 3)))


def test_copies_share_a_place_among_shuffled_labels():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X = np.vstack([X, X])
    codes = np.zeros(80, dtype=np.int32)
    codes[:5] = -1
    places = shuffled_places(X, codes, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(places[:, 5:40], places[:, 45:])
    assert all(len(np.unique(order[5:])) == 40 for order in places)
    assert (places[0, 5:] != places[1, 5:]).any()


def test_rows_that_are_equal_by_chance_have_places_of_their_own():
    X = np.random.default_rng(0).integers(0, 3, size=(80, 2)).astype(float)
    [order] = shuffled_places(X, np.zeros(80, dtype=np.int32), 1, np.random.RandomState(0))
    assert len(np.unique(order)) == 80
