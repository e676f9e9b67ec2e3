"""Trees of cuts: rows are divided into cells of about equally many, and find their way there."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.cells import route_oracle

from hardmargin.cells import find_cuts
from hardmargin.cells.cuts import KINDS, LEAST_SIDE
from hardmargin.monitor import Monitor, Stopped

KIND = pytest.mark.parametrize("kind", KINDS)


def rows(n=600, n_features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_features)).astype(np.float32)


def classes(X, n_classes=2):
    score = X[:, 0] * X[:, -1]
    bounds = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return np.searchsorted(bounds, score).astype(np.int32)


def cut(X, codes=None, kind="column", *, max_rows=50, is_first=True, seed=0, units=None):
    return find_cuts(
        X,
        np.arange(X.shape[0], dtype=np.int32) % 2 if codes is None else codes,
        np.ones(X.shape[1]) if units is None else units,
        max_rows=max_rows,
        kind=kind,
        is_first=is_first,
        random_state=np.random.RandomState(seed),
    )


def sizes(cuts, X):
    return np.bincount(cuts.route(X), minlength=cuts.n_cells)


def oracle(cuts, X):
    return route_oracle(cuts.columns, cuts.directions, cuts.thresholds, cuts.children, X)


def same_cuts(one, other):
    fields = ("columns", "directions", "thresholds", "children")
    return all(np.array_equal(getattr(one, f), getattr(other, f)) for f in fields)


# --- sizes ----------------------------------------------------------------------------------------


@KIND
@pytest.mark.parametrize("max_rows", [1, 7, 50, 599])
def test_no_cell_has_more_rows_than_allowed(kind, max_rows):
    X = rows()
    found = sizes(cut(X, classes(X), kind, max_rows=max_rows), X)
    assert found.sum() == 600
    assert 1 <= found.min() <= found.max() <= max_rows


@KIND
def test_cells_of_continuous_rows_are_about_as_large_as_each_other(kind):
    X = rows(640)
    found = sizes(cut(X, classes(X), kind, max_rows=50), X)
    np.testing.assert_array_equal(found, 40)


@KIND
def test_cutting_ends_when_the_fit_does(kind):
    monitor = Monitor()
    monitor.end("interrupt")
    X = rows()
    with pytest.raises(Stopped):
        find_cuts(
            X,
            classes(X),
            np.ones(X.shape[1]),
            max_rows=50,
            kind=kind,
            is_first=True,
            random_state=np.random.RandomState(0),
            monitor=monitor,
        )


@KIND
def test_few_rows_are_not_cut(kind):
    X = rows(50)
    cuts = cut(X, classes(X), kind, max_rows=50)
    assert cuts.n_cells == 1
    np.testing.assert_array_equal(cuts.route(X), 0)


@KIND
def test_cuts_of_a_sample_divide_new_rows_alike(kind):
    X, new = rows(2000), rows(2000, seed=1)
    found = sizes(cut(X, classes(X), kind, max_rows=250), new)
    assert found.min() > 125
    assert found.max() < 500


@KIND
def test_more_rows_than_choose_a_cut(kind, monkeypatch):
    monkeypatch.setattr("hardmargin.cells.cuts.NODE_ROWS", 30)
    X = rows()
    assert sizes(cut(X, classes(X), kind), X).max() <= 50


# --- odd rows -------------------------------------------------------------------------------------


@KIND
@pytest.mark.parametrize("value", [0.0, 3.7, -1e-30])
def test_equal_rows_stay_together(kind, value):
    X = np.full((300, 4), value, dtype=np.float32)
    cuts = cut(X, None, kind)
    assert cuts.n_cells == 1


@KIND
def test_columns_that_are_constant_do_not_matter(kind):
    X = np.hstack([np.full((600, 3), 7.1, dtype=np.float32), rows(n_features=2)])
    assert sizes(cut(X, classes(X[:, 3:]), kind), X).max() <= 50


@KIND
def test_copies_stay_together(kind):
    X = np.repeat(rows(12), 50, axis=0)
    cells = cut(X, classes(X), kind, max_rows=60).route(X)
    assert all(len(np.unique(part)) == 1 for part in cells.reshape(12, 50))
    assert np.bincount(cells).max() <= 150


@pytest.mark.parametrize("seed", range(5))
def test_spots_are_divided_across_directions(seed):
    # Products with a direction that are equal must be on the side where the cut believes them.
    spots = np.array([[-0.97, -0.97], [1.06, -0.97], [-0.97, 1.06], [1.06, 1.06]], np.float32)
    X = spots[np.arange(400) % 4]
    found = sizes(cut(X, None, "direction", max_rows=100, seed=seed), X)
    np.testing.assert_array_equal(found, 100)


@KIND
def test_a_spot_that_most_rows_share_leaves_one_cell(kind):
    X = rows(200)
    X[:170] = 0.0
    assert sizes(cut(X, None, kind, max_rows=20), X).max() >= 170


@KIND
def test_one_class_can_be_cut(kind):
    X = rows()
    assert sizes(cut(X, np.zeros(600, dtype=np.int32), kind), X).max() <= 50


@KIND
def test_many_classes_can_be_cut(kind):
    X = rows()
    assert sizes(cut(X, classes(X, 40), kind), X).max() <= 50


@KIND
def test_more_columns_than_the_linear_model_has(kind, monkeypatch):
    monkeypatch.setattr("hardmargin.cells.cuts.MODEL_COLUMNS", 4)
    X = rows(n_features=30)
    assert sizes(cut(X, classes(X), kind), X).max() <= 50


@KIND
def test_everything_is_finite(kind):
    X = rows()
    X[:, 1] *= 1e-20
    X[:, 2] *= 1e15
    X[:, 3] = 5.0
    cuts = cut(X, classes(X), kind)
    assert np.isfinite(cuts.directions).all()
    assert np.isfinite(cuts.thresholds).all()


# --- what is cut ----------------------------------------------------------------------------------


def test_the_scales_of_columns_do_not_matter_for_columns():
    X = rows()
    scale = np.array([2.0**-8, 1.0, 2.0**8, 4.0, 0.5], dtype=np.float32)
    cuts, same = cut(X, classes(X)), cut(X * scale, classes(X), units=1.0 / scale)
    np.testing.assert_array_equal(same.route(X * scale), cuts.route(X))


def test_columns_are_cut_where_a_linear_model_changes():
    X = rows(2000)
    slope = np.where(X[:, 3] > 0, 1.0, -1.0)
    codes = (slope * X[:, 1] > 0).astype(np.int32)
    cuts = cut(X, codes, max_rows=1999)
    assert cuts.columns.tolist() in ([1], [3])
    assert abs(cuts.thresholds[0]) < 0.1


def test_directions_follow_the_units_of_the_columns():
    X = rows()
    units = np.array([1.0, 1.0, 1e6, 1.0, 1.0])
    [direction] = cut(X, None, "direction", max_rows=599, units=units).directions
    assert abs(direction[2]) > 0.99 * np.linalg.norm(direction)


@KIND
def test_neither_side_of_a_cut_is_small(kind):
    X = np.round(rows(), 0)
    cuts = cut(X, classes(X), kind, max_rows=599)
    assert sizes(cuts, X).min() >= LEAST_SIDE * 600


@KIND
@pytest.mark.parametrize("counts", [(6, 9, 5), (5, 9, 6)])
def test_a_cut_beside_equal_rows_is_on_the_side_nearer_to_the_middle(kind, counts):
    X = np.repeat([0.0, 1.0, 2.0], counts)[:, None].astype(np.float32)
    found = sizes(cut(X, None, kind, max_rows=19), X)
    assert sorted(found) == [6, 14]


# --- seeds ----------------------------------------------------------------------------------------


@KIND
@pytest.mark.parametrize("is_first", [True, False])
def test_the_seed_makes_the_cuts(kind, is_first):
    X = rows()
    one, other = (cut(X, classes(X), kind, is_first=is_first, seed=3) for _ in range(2))
    assert same_cuts(one, other)


@pytest.mark.parametrize(("kind", "is_first"), [("column", False), ("direction", True)])
def test_another_seed_makes_other_cuts(kind, is_first):
    X = rows()
    one, other = (cut(X, classes(X), kind, is_first=is_first, seed=s) for s in (3, 4))
    assert not same_cuts(one, other)


# --- routing --------------------------------------------------------------------------------------


@KIND
def test_rows_that_lie_apart_or_are_many_threads_go_the_same_way(kind):
    X = rows()
    cuts = cut(X, classes(X), kind)
    expected = cuts.route(X)
    np.testing.assert_array_equal(cuts.route(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(cuts.route(X, n_jobs=2), expected)
    np.testing.assert_array_equal(cuts.route(X[17:18]), expected[17:18])


@KIND
def test_sparse_rows_go_where_dense_ones_go(kind):
    X = np.maximum(rows(), 0)
    cuts = cut(X, classes(X), kind)
    np.testing.assert_array_equal(cuts.route(sp.csr_array(X)), cuts.route(X))


@KIND
def test_sparse_rows_are_cut(kind):
    X = np.maximum(rows(), 0)
    cuts = cut(sp.csr_array(X), classes(X), kind)
    assert sizes(cuts, X).max() <= 50


def test_wide_sparse_rows_are_cut():
    X = sp.random_array((500, 50_000), density=1e-3, format="csr", rng=0, dtype=np.float32)
    for kind in KINDS:
        assert sizes(cut(X, None, kind, max_rows=200), X).max() <= 200


@given(
    n=st.integers(1, 80),
    n_features=st.integers(1, 5),
    n_values=st.integers(1, 40),
    max_rows=st.integers(1, 30),
    kind=st.sampled_from(KINDS),
    is_sparse=st.booleans(),
    seed=st.integers(0, 1000),
)
@example(80, 3, 2, 5, "direction", False, 1)
@settings(deadline=None, max_examples=60)
def test_any_rows_are_divided_and_go_where_the_oracle_sends_them(
    n, n_features, n_values, max_rows, kind, is_sparse, seed
):
    random = np.random.default_rng(seed)
    values = np.append(random.normal(size=n_values - 1), 0.0).astype(np.float32)
    X = values[random.integers(n_values, size=(n, n_features))]
    codes = random.integers(3, size=n).astype(np.int32)
    given_rows = sp.csr_array(X) if is_sparse else X
    cuts = cut(given_rows, codes, kind, max_rows=max_rows, is_first=False, seed=seed)
    cells = cuts.route(given_rows)
    np.testing.assert_array_equal(cells, oracle(cuts, X))
    # Every cell has rows, and only equal rows cannot be divided for certain.
    assert np.unique(cells).tolist() == list(range(cuts.n_cells))
