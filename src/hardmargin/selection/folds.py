"""The splits inside ``fit``: which rows train, and which are held out to choose by."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, RepeatedStratifiedKFold

from hardmargin.selection.copies import first_copies

BoolArray = NDArray[np.bool_]

#: As many as scikit-learn has where `cv` is None.
DEFAULT_FOLDS = 5

#: What to do where a splitter needs groups and ``fit`` was given none.
MISSING_GROUPS = (
    "cv needs groups, and fit was given none: fit(X, y, groups=groups). From cross_val_score, "
    "cross_validate and cross_val_predict they come with params={'groups': groups} (in a pipeline "
    "params={'<step>__groups': groups}), besides groups=groups for a splitter outside. A search "
    "hands them on to a step of a pipeline: "
    "search.fit(X, y, groups=groups, <step>__groups=groups). "
    "Where metadata routing is on, call set_fit_request(groups=True); they then reach both."
)

#: A class needs so many rows in every fold, or there are fewer folds.
ROWS_A_FOLD = 2


@dataclass(frozen=True)
class Folds:
    """The splits of one fit.

    Attributes
    ----------
    train, test : (n_splits, n) bool arrays
        Rows that train and rows that are scored, split by split. A row can be in several test
        parts (repeated splits) or in none (the first rows of a time series).
    shortage : str
        What is wrong with the splits for choosing, as the end of a sentence; empty if nothing is.
    """

    train: BoolArray
    test: BoolArray
    shortage: str = ""

    @property
    def n_splits(self) -> int:
        """Number of splits; none where there are too few rows to hold any out."""
        return len(self.train)


def make_folds(
    cv: Any,
    X: Any,
    codes: NDArray[np.int32],
    *,
    groups: Any = None,
    n_shuffles: int = 1,
    random_state: Any = None,
) -> Folds:
    """Split the rows that have a class.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test) indices
        A number stands for shuffled folds, stratified by class: fewer if a class has less than two
        rows a fold. Rows of a class with less than four are never held out. Copies of a row are in
        the same fold (see `first_copies`).
    X : rows or None
        Splitters, and the search for copies, look at them.
    codes : (n,) int array
        Class of each row, -1 for rows that take no part: no split contains them.
    groups : (n,) array, optional
        Handed to the splitter.
    n_shuffles : int
        How often the rows are shuffled and split, where `cv` is a number.
    random_state : RandomState, optional
        Shuffles.
    """
    present = np.flatnonzero(codes >= 0)
    cv = DEFAULT_FOLDS if cv is None else cv
    if isinstance(cv, Integral):
        if groups is not None:
            raise ValueError(
                f"groups were given, but cv={cv} ignores them; use a splitter that takes groups, "
                "for instance cv=GroupKFold(5)."
            )
        firsts = np.arange(len(codes)) if X is None else first_copies(X, codes)
        return _stratified(int(cv), codes, firsts, n_shuffles, random_state)
    if groups is not None:
        groups = _groups_of_rows(groups, len(codes))
    return _of_splitter(cv, X, codes, present, groups)


def _stratified(
    n_folds: int,
    codes: NDArray[np.int32],
    firsts: NDArray[np.intp],
    n_shuffles: int,
    random_state: Any,
) -> Folds:
    """Split different rows, stratified by class; copies go where the first of them goes."""
    different = np.flatnonzero((codes >= 0) & (firsts == np.arange(len(codes))))
    sizes = np.bincount(codes[different])
    # Classes that are too small for two folds stay in training: the others can still be judged.
    foldable = sizes >= 2 * ROWS_A_FOLD
    none = np.zeros((0, len(codes)), dtype=bool)
    if foldable.sum() < 2:
        return Folds(none, none, f"the smallest class has too few rows ({sizes[sizes > 0].min()})")
    n_used = min(n_folds, int(sizes[foldable].min()) // ROWS_A_FOLD)
    shortage = ""
    if not foldable.all():
        shortage = f"{np.sum(~foldable)} of {len(sizes)} classes have less than 4 rows"
    elif n_used < n_folds:
        shortage = f"the smallest class has {sizes.min()} rows, which allow {n_used} folds"
    held_out = different[foldable[codes[different]]]
    splitter = RepeatedStratifiedKFold(
        n_splits=n_used, n_repeats=n_shuffles, random_state=random_state
    )
    test = np.zeros((n_used * n_shuffles, len(codes)), dtype=bool)
    for part, (_, rows) in zip(test, splitter.split(held_out, codes[held_out]), strict=True):
        part[held_out[rows]] = True
    test = test[:, firsts]
    return Folds(~test & (codes >= 0), test, shortage)


def _of_splitter(
    cv: Any, X: Any, codes: NDArray[np.int32], present: NDArray[Any], groups: Any
) -> Folds:
    # Their indices are those of the rows as they came.
    given_splits = isinstance(cv, PredefinedSplit) or not hasattr(cv, "split")
    n = len(codes)
    trains: list[BoolArray] = []
    tests: list[BoolArray] = []
    if given_splits:
        splits = list(cv.split(X, codes) if isinstance(cv, PredefinedSplit) else cv)
        rows = np.arange(n)
    else:
        rows = present
        among = None if groups is None else groups[present]
        with warnings.catch_warnings():
            # How few rows a class has is said once, by whoever uses the folds.
            warnings.filterwarnings("ignore", message="The least populated class")
            try:
                splits = list(cv.split(X[present], codes[present], among))
            except (TypeError, ValueError) as error:
                if groups is not None:
                    error.add_note("groups must be of one type that can be sorted, without NaN.")
                elif "groups" in str(error):
                    error.add_note(MISSING_GROUPS)
                raise
    for split in splits:
        for part, masks in zip(_pair(split), (trains, tests), strict=True):
            mask = np.zeros(n, dtype=bool)
            mask[rows[_indices(part, len(rows))]] = True
            masks.append(mask & (codes >= 0))
    if not trains:
        raise ValueError("cv has no splits; give at least one pair of train and test rows.")
    folds = Folds(np.array(trains), np.array(tests))
    if (folds.train & folds.test).any():
        return replace(folds, shortage="some splits hold out rows that they train on as well")
    return folds


def _pair(split: Any) -> tuple[Any, Any]:
    """Return the two parts of a split."""
    try:
        train, test = split
    except (TypeError, ValueError):
        raise ValueError(
            f"cv must give pairs of train and test rows, such as [(train, test)], got {split!r}."
        ) from None
    return train, test


def _indices(part: Any, n: int) -> NDArray[Any]:
    """Return the rows of one part of a split, as integers or as a mask."""
    given = np.asarray(part)
    if given.shape == (0,):
        return np.empty(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise ValueError(
            "cv must give train and test rows as one-dimensional arrays of integers or of bools, "
            f"got {type(part).__name__} of {given.dtype} and shape {given.shape}."
        )
    if given.dtype.kind == "b":
        if len(given) != n:
            raise ValueError(
                f"A mask of cv must have an entry for each of the {n} rows, got {len(given)}."
            )
    elif given.max() >= n or given.min() < -n:
        beyond = given.max() if given.max() >= n else given.min()
        raise ValueError(f"cv asks for row {beyond}, but the {n} rows are 0 to {n - 1}.")
    return given


def _groups_of_rows(groups: Any, n: int) -> NDArray[Any]:
    """Return groups as an array with an entry for every row."""
    try:
        given = np.asarray(groups)
        found = f"shape {given.shape}"
    except ValueError as error:
        given, found = np.empty(0), f"what is no array: {error}"
    if given.shape != (n,):
        raise ValueError(f"groups must have one entry a row: {n}, got {found}.")
    return given
