"""The splits inside fit."""

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from hardmargin.selection.folds import even_folds, growing_splits, make_folds

X = np.arange(60.0)[:, None]
CODES = np.repeat([0, 1, 2], [30, 20, 10]).astype(np.int32)


def folds_of(cv=5, codes=CODES, groups=None, seed=0):
    random_state = np.random.RandomState(seed)
    return make_folds(cv, X, codes, groups=groups, random_state=random_state)


def test_a_number_holds_every_row_out_once():
    assert (folds_of().test.sum(axis=0) == 1).all()


def test_training_rows_are_all_others():
    folds = folds_of()
    np.testing.assert_array_equal(folds.train, ~folds.test)


def test_folds_are_stratified():
    assert all(np.bincount(CODES[test]).tolist() == [6, 4, 2] for test in folds_of().test)


def test_folds_are_shuffled_by_the_random_state():
    np.testing.assert_array_equal(folds_of(seed=3).test, folds_of(seed=3).test)
    assert (folds_of(seed=3).test != folds_of(seed=4).test).any()


def test_rows_without_a_class_take_no_part():
    codes = np.where(np.arange(60) % 7 == 0, -1, CODES).astype(np.int32)
    folds = folds_of(codes=codes)
    assert not (folds.train | folds.test)[:, codes < 0].any()


def test_rows_without_a_class_do_not_move_the_others():
    absent = np.arange(60) % 7 == 0
    codes = np.where(absent, -1, CODES).astype(np.int32)
    alone = make_folds(5, X[~absent], CODES[~absent], random_state=np.random.RandomState(0))
    np.testing.assert_array_equal(folds_of(codes=codes).test[:, ~absent], alone.test)


def test_a_small_class_allows_fewer_folds():
    codes = np.repeat([0, 1], [53, 7]).astype(np.int32)
    folds = folds_of(codes=codes)
    assert folds.n_splits == 3
    assert "3 folds" in folds.shortage


@pytest.mark.parametrize(
    ("cv", "n_rare", "n_splits", "is_short"),
    [(300, 20, 10, False), (10, 10, 5, False), (10, 9, 4, True), (3, 4, 2, True), (3, 6, 3, False)],
)
def test_fewer_folds_than_usual_are_a_shortage(cv, n_rare, n_splits, is_short):
    folds = folds_of(cv, np.repeat([0, 1], [60 - n_rare, n_rare]).astype(np.int32))
    assert folds.n_splits == n_splits
    assert bool(folds.shortage) == is_short


def test_a_tiny_class_is_never_held_out():
    codes = np.repeat([0, 1, 2], [30, 28, 2]).astype(np.int32)
    folds = folds_of(codes=codes)
    assert folds.n_splits == 5
    assert not folds.test[:, 58:].any()
    assert "1 of 3 classes" in folds.shortage


def test_without_two_classes_to_hold_out_there_are_no_folds():
    codes = np.repeat([0, 1], [59, 1]).astype(np.int32)
    folds = folds_of(codes=codes)
    assert folds.n_splits == 0
    assert folds.shortage


@pytest.mark.parametrize(
    "cv", [KFold(4), TimeSeriesSplit(4), ShuffleSplit(3, random_state=0)], ids=str
)
def test_splitters_split_as_they_do(cv):
    folds = folds_of(cv)
    for (train, test), trained, tested in zip(cv.split(X), folds.train, folds.test, strict=True):
        assert np.flatnonzero(trained).tolist() == sorted(train)
        assert np.flatnonzero(tested).tolist() == sorted(test)


def test_repeated_splits_hold_rows_out_several_times():
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=4, random_state=0)
    assert (folds_of(cv).test.sum(axis=0) == 4).all()


def test_an_iterable_of_splits_counts_rows_as_they_came():
    codes = np.where(np.arange(60) % 7 == 0, -1, CODES).astype(np.int32)
    folds = folds_of([(np.arange(40), np.arange(40, 60))], codes)
    np.testing.assert_array_equal(folds.train[0], (np.arange(60) < 40) & (codes >= 0))


@pytest.mark.parametrize("cv", [GroupKFold(3), LeaveOneGroupOut()], ids=str)
def test_groups_stay_together(cv):
    groups = np.arange(60) % 6
    folds = folds_of(cv, groups=groups)
    assert all(
        not set(groups[train]) & set(groups[test])
        for train, test in zip(folds.train, folds.test, strict=True)
    )


def test_groups_need_a_splitter_that_uses_them():
    with pytest.raises(ValueError, match="GroupKFold"):
        folds_of(5, groups=np.zeros(60))


def test_groups_need_an_entry_per_row():
    with pytest.raises(ValueError, match="one entry per row"):
        folds_of(GroupKFold(3), groups=np.zeros(59))


def test_no_splits_are_refused():
    with pytest.raises(ValueError, match="no splits"):
        folds_of([])


@pytest.mark.parametrize(
    ("n_rows", "trained"),
    [
        (900, [[720] * 5]),  # all folds of all rows
        (2_400, [[800] * 5]),  # the search is on enough of the rows
        (4_000, [[800] * 5, [1_600]]),
        (30_000, [[800] * 5, [12_000]]),
    ],
)
def test_a_quick_choice_has_no_folds_of_many_rows(n_rows, trained):
    codes = (np.arange(n_rows) % 2).astype(np.int32)
    random = np.random.RandomState(0)
    folds = make_folds(5, None, codes, random_state=random)
    parts = list(growing_splits(folds, codes, random, is_quick=True))
    for part, expected in zip(parts, trained, strict=True):
        np.testing.assert_allclose(part.train.sum(axis=1), expected, atol=40)


def test_even_folds_deal_out_every_class():
    codes = np.repeat(np.arange(3), [50, 23, 5]).astype(np.int32)
    folds = even_folds(codes, 5, np.random.RandomState(0))
    assert (folds.test.sum(axis=0) == 1).all()
    assert (folds.train == ~folds.test).all()
    sizes = np.array([np.bincount(codes[test], minlength=3) for test in folds.test])
    assert (np.ptp(sizes, axis=0) <= 1).all()
