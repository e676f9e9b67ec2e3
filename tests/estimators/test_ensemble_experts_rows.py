"""EnsembleSVC with experts on weighted rows, groups, sparse rows, tables and odd rows."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems.cells import experts, few_rows_are_many, log_loss, many_rows
from problems.ensemble import assert_sensible, fit_quietly
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from hardmargin.cells.experts import SampleVote, _apart
from hardmargin.selection.folds import make_folds

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
QUERIES = np.random.default_rng(9).normal(size=(60, 4))


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    few_rows_are_many(monkeypatch)


# --- weights --------------------------------------------------------------------------------------


@CLASSES
def test_a_weight_of_zero_is_absence(n_classes):
    X, y = many_rows(900, n_classes)
    weights = np.random.default_rng(1).integers(0, 3, size=900).astype(float)
    kept = weights > 0
    weighted = experts().fit(X, y, sample_weight=weights)
    absent = experts().fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(weighted.support_, np.flatnonzero(kept)[absent.support_])
    np.testing.assert_allclose(
        weighted.predict_proba(QUERIES), absent.predict_proba(QUERIES), atol=1e-4
    )


def test_values_of_rows_of_weight_zero_do_not_matter():
    X, y = many_rows(900)
    X, weights = X.copy(), np.where(np.arange(900) % 4 == 0, 0.0, 1.0)
    kept = weights > 0
    X[:, 3] = np.where(kept, X[:, 3] > 0, 0.3)  # two values, but for the rows of weight zero
    weighted = experts().fit(X, y, sample_weight=weights)
    absent = experts().fit(X[kept], y[kept])
    np.testing.assert_allclose(
        weighted.predict_proba(QUERIES), absent.predict_proba(QUERIES), atol=1e-4
    )


def test_rows_of_weight_zero_do_not_count_as_many():
    X, y = many_rows()
    model = experts().fit(X, y, sample_weight=(np.arange(700) < 250).astype(float))
    assert model.experts_["kind"].tolist() == ["whole"]


def test_weights_move_probabilities():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(800, 3)), np.arange(800) % 2
    model = experts().fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(0.75, abs=0.04)


@CLASSES
def test_class_weights_multiply_the_odds(n_classes):
    rows, by_class = many_rows(n_classes=n_classes), np.array([3.0, 0.5, 1.0][:n_classes])
    plain = experts().fit(*rows).predict_proba(QUERIES)
    weighted = experts(class_weight=dict(enumerate(by_class))).fit(*rows)
    expected = plain * by_class
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weighted.predict_proba(QUERIES), expected, atol=1e-9)
    assert_sensible(weighted, QUERIES)


@CLASSES
def test_the_held_out_loss_has_the_class_weights(n_classes):
    X, y = many_rows(900, n_classes)
    by_class = np.array([1.0, 8.0, 1.0][:n_classes])
    model = experts(class_weight=dict(enumerate(by_class))).fit(X, y)
    new, codes = many_rows(3000, n_classes, seed=1)
    own = model.predict_proba(new)[np.arange(3000), codes]
    of_new = np.average(-np.log(own), weights=by_class[codes])
    assert model.cv_log_loss_ == pytest.approx(of_new, abs=0.06)


def test_balanced_classes_shift_towards_the_minority():
    X, y = many_rows(2000)
    rows = np.concatenate([np.flatnonzero(y == 1)[:60], np.flatnonzero(y == 0)])
    plain, balanced = (
        experts(class_weight=w).fit(X[rows], y[rows]).predict_proba(QUERIES)[:, 1].mean()
        for w in (None, "balanced")
    )
    assert balanced > plain + 0.1


# --- splits and groups ----------------------------------------------------------------------------


@pytest.mark.once_per("cv")
@pytest.mark.parametrize(
    "cv",
    [
        KFold(4),
        TimeSeriesSplit(4),
        ShuffleSplit(2, test_size=0.2, random_state=0),
        ShuffleSplit(1, test_size=0.2, random_state=0),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        PredefinedSplit(np.where(np.arange(700) < 500, -1, 0)),
        [(np.arange(500), np.arange(500, 700))],
    ],
    ids=lambda cv: type(cv).__name__,
)
@CLASSES
def test_splits_of_any_kind(cv, n_classes):
    model = experts(cv=cv).fit(*many_rows(n_classes=n_classes))
    assert len(model.experts_) == 2
    assert_sensible(model, QUERIES)
    assert 0.15 < model.cv_log_loss_ < np.log(n_classes) - 0.1


def test_splits_can_be_a_generator():
    X, y = many_rows()
    splits = list(KFold(4).split(X))
    given, generated = (experts(cv=cv).fit(X, y) for cv in (splits, (s for s in splits)))
    np.testing.assert_array_equal(generated.predict_proba(QUERIES), given.predict_proba(QUERIES))


def test_splits_that_hold_out_hardly_any_rows_leave_one_machine():
    X, y = many_rows()
    model = fit_quietly(experts(cv=PredefinedSplit(np.where(np.arange(700) < 4, 0, -1))), X, y)
    assert model.experts_["kind"].tolist() == ["whole"]
    assert_sensible(model, QUERIES)


def test_without_a_splitter_groups_are_refused():
    X, y = many_rows()
    with pytest.raises(ValueError, match="cv=5 ignores them"):
        experts().fit(X, y, groups=np.arange(700))


def grouped(n_groups, seed=0):
    """Ten near-copies of every row, and its group; labels are hard to predict."""
    random = np.random.default_rng(seed)
    centers = random.normal(size=(n_groups, 3))
    labels = (centers[:, 0] + random.normal(size=n_groups) > 0).astype(int)
    groups = np.repeat(np.arange(n_groups), 10)
    return centers[groups] + 1e-3 * random.normal(size=(10 * n_groups, 3)), labels[groups], groups


def test_groups_are_held_out_together():
    X, y, groups = grouped(150)
    new, labels, _ = grouped(1000, seed=1)
    alone = experts(max_cell_rows=500).fit(X, y)
    together = experts(max_cell_rows=500, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert alone.cv_log_loss_ < 0.1
    assert together.cv_log_loss_ > 0.4
    assert log_loss(together, new, labels) < 0.65


def test_rows_that_share_a_group_with_training_rows_are_not_new():
    X, y, groups = grouped(100)
    codes = y.astype(np.int32)
    folds = make_folds(GroupKFold(4), X, codes, groups=groups)
    taught, is_new = _apart(np.random.RandomState(0).permutation(1000), codes, folds)
    whole = SampleVote(None, np.arange(2), taught[:200], taught[:50], np.empty((50, 2)), is_new)
    fair = np.flatnonzero(whole.is_fair(np.arange(1000)))
    new = np.setdiff1d(fair, whole.held_rows)
    assert len(new) >= 200
    assert not np.isin(groups[new], groups[whole.rows]).any()


@pytest.mark.parametrize("n_copies", [2, 3, 10])
def test_copies_are_held_out_together(n_copies):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 4)), random.integers(2, size=400)  # noise
    rows = np.tile(np.arange(400), n_copies)
    model = experts(max_cell_rows=250 * n_copies).fit(X[rows], y[rows])
    assert model.cv_log_loss_ > 0.65


# --- sparse rows ----------------------------------------------------------------------------------


@pytest.mark.once_per("form")
@CLASSES
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_rows_can_be_learned(form, n_classes):
    X, y = many_rows(n_classes=n_classes)
    rows = form(np.maximum(X, 0))
    model = experts().fit(rows, y)
    assert_sensible(model, rows)
    assert model.score(rows, y) > 0.6


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("trained_on", [np.asarray, sp.csr_array])
def test_dense_and_sparse_queries_have_the_same_predictions(standardize, trained_on):
    X, y = many_rows()
    rows = np.maximum(X, 0)
    model = experts(standardize=standardize).fit(trained_on(rows), y)
    np.testing.assert_allclose(
        model.predict_proba(sp.csr_array(rows)), model.predict_proba(rows), atol=1e-6
    )


def test_sparse_rows_are_like_dense_ones_that_are_not_standardized():
    X, y = many_rows()
    rows = np.maximum(X, 0)
    dense, sparse = (
        experts(standardize=False).fit(form(rows), y) for form in (np.asarray, sp.csr_array)
    )
    difference = np.abs(sparse.predict_proba(rows) - dense.predict_proba(rows))
    assert difference.mean() < 0.005


def test_wide_sparse_rows_never_become_dense():
    random = np.random.default_rng(0)
    X = sp.random_array((800, 50_000), density=5e-4, format="csr", rng=random)
    X = sp.hstack([sp.csr_array(random.normal(size=(800, 2))), X], format="csr")
    y = (X[:, [0]].toarray().ravel() > 0).astype(int)
    experts(max_cell_rows=300, kernel="rbf").fit(*many_rows())  # what is imported at first
    tracemalloc.start()
    try:
        model = experts(max_cell_rows=300, kernel="rbf").fit(X, y)
        model.predict(X)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 800 * 50_000 * 4 / 4


# --- tables ---------------------------------------------------------------------------------------


def table(n=700, seed=0):
    X, y = many_rows(n, seed=seed)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = frame["a"].mask(frame["d"] > 1.2)
    frame["c"] = pd.cut(frame["c"], [-9, -1, 0, 1, 9], labels=list("pqrs"))
    return frame, y


def test_missing_values_and_categories():
    model = experts().fit(*table())
    new, codes = table(1000, seed=1)
    assert len(model.experts_) == 2
    assert_sensible(model, new)
    assert model.score(new, codes) > 0.75
    assert model.relevance_.shape == (4,)
    assert model.encoded_relevance_.shape == (8,)


def test_categories_that_are_new_can_be_predicted():
    model = experts().fit(*table())
    new, _ = table(50, seed=1)
    new["c"] = new["c"].astype(str).where(np.arange(50) > 5, "never seen")
    assert_sensible(model, new)


# --- odd rows -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The rank of")
@pytest.mark.parametrize("n_rare", [1, 3])
def test_a_class_of_two_with_too_few_rows_leaves_one_machine(n_rare):
    X, _ = many_rows()
    y = (np.arange(700) < n_rare).astype(int)
    with pytest.warns(UserWarning, match=rf"too few rows \({n_rare}\)"):
        model = experts().fit(X, y)
    assert model.experts_["kind"].tolist() == ["whole"]
    assert np.isfinite(model.decision_function(QUERIES)).all()


@pytest.mark.once_per("n_rare")
@pytest.mark.parametrize("n_rare", [1, 3, 6, 20])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_a_rare_class_among_three(n_rare, multi_class):
    X, y = many_rows()
    y = np.where(np.arange(700) < n_rare, 2, y)
    model = fit_quietly(experts(multi_class=multi_class), X, y)
    assert_sensible(model, QUERIES)
    assert model.score(X[y < 2], y[y < 2]) > 0.8
    assert model.predict_proba(QUERIES)[:, 2].mean() < 0.1


@pytest.mark.parametrize("n_rare", [4, 8])
def test_a_rare_class_of_two(n_rare):
    X, _ = many_rows()
    y = (np.arange(700) < n_rare).astype(int)
    model = fit_quietly(experts(), X + 5.0 * y[:, None], y)
    assert_sensible(model, X)
    assert model.predict_proba(X)[:, 1].mean() < 0.1


def test_a_class_of_one_group_is_missing_from_the_sample():
    X, y = many_rows(900, 3)
    groups = np.where(y == 2, 0, 1 + np.arange(900) % 7)
    model = fit_quietly(experts(cv=GroupKFold(4)), X, y, groups=groups)
    assert_sensible(model, QUERIES)


def test_many_classes(monkeypatch):
    few_rows_are_many(monkeypatch, 90)
    random = np.random.default_rng(0)
    y = random.integers(12, size=700)
    X = np.column_stack([y % 4, y // 4]) + 0.2 * random.normal(size=(700, 2))
    model = fit_quietly(experts(max_cell_rows=200), X, y)
    assert len(model.experts_) == 2
    assert_sensible(model, X)
    assert model.score(X, y) > 0.9


def odd_rows(case):
    X, y = many_rows()
    if case == "constant columns":
        return np.hstack([X, np.full((700, 2), 5.0)]), y
    if case == "all columns constant":
        return np.full((700, 2), 3.0), y
    if case == "one column":
        return X[:, :1], y
    if case == "one column of two values":
        return np.sign(X[:, :1]), y
    if case == "columns of two values":
        return np.sign(X), y
    if case == "copies":
        return np.repeat(X[:35], 20, axis=0), np.repeat(y[:35], 20)
    if case == "copies of opposite classes":
        return np.repeat(X[:350], 2, axis=0), np.arange(700) % 2
    if case == "most rows are equal":
        return np.where(np.arange(700)[:, None] < 600, 0.0, X), y
    if case == "tiny columns":
        return 1e-150 * X, y
    if case == "huge columns":
        return 1e150 * X, y
    if case == "one outlier":
        return np.vstack([X, np.full((1, 4), 1e8)]), np.append(y, 1)
    assert case == "single precision"
    return X.astype(np.float32), y


ODD = (
    "constant columns",
    "all columns constant",
    "one column",
    "one column of two values",
    "columns of two values",
    "copies",
    "copies of opposite classes",
    "most rows are equal",
    "tiny columns",
    "huge columns",
    "one outlier",
    "single precision",
)


@pytest.mark.once_per("case")
@pytest.mark.filterwarnings("ignore:.*look the same")
@pytest.mark.filterwarnings("ignore:The rank of")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("case", ODD)
def test_odd_rows_give_a_finite_model(case, standardize):
    X, y = odd_rows(case)
    model = experts(standardize=standardize).fit(X, y)
    assert_sensible(model, X)
    assert np.isfinite([model.cv_error_, model.cv_log_loss_]).all()


def test_constant_columns_change_little():
    X, y = odd_rows("constant columns")
    Q = np.hstack([QUERIES, np.full((60, 2), 5.0)])
    plain = experts().fit(*many_rows()).predict_proba(QUERIES)
    assert np.abs(experts().fit(X, y).predict_proba(Q) - plain).mean() < 0.05


def test_values_too_large_for_cells_leave_one_machine():
    X, y = many_rows()
    model = fit_quietly(experts(standardize=False), 1e30 * X, y)
    assert model.experts_["kind"].tolist() == ["whole"]
    assert model.score(1e30 * X, y) > 0.8
