"""The splits inside ``fit``: which rows train, and which are held out to choose by."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, RepeatedStratifiedKFold

from hardmargin.kernels import RowBlocks, Rows, as_blocks, is_sparse
from hardmargin.warn import warn_caller

BoolArray = NDArray[np.bool_]

#: The default of scikit-learn where `cv` is None.
DEFAULT_FOLDS = 5

#: Where groups come from if ``fit`` is called by others.
MISSING_GROUPS = (
    "With cross_val_score, "
    "cross_validate and cross_val_predict, pass params={'groups': groups} (in a pipeline "
    "params={'<step>__groups': groups}), besides groups=groups for the outer splitter. A search "
    "passes them on to a step of a pipeline: "
    "search.fit(X, y, groups=groups, <step>__groups=groups). "
    "With metadata routing, call set_fit_request(groups=True); groups then reach both splitters."
)

#: The fewest rows of each class in a fold; with fewer rows there are fewer folds.
ROWS_PER_FOLD = 2

#: A smaller share of copies is ignored.
LEAST_SHARE = 0.25

#: A feature with fewer values does not distinguish rows.
LEAST_VALUES = 20

#: The same where labels are shuffled, which copies of few rows may follow, too.
LEAST_VALUES_OF_PLACES = 10

#: Rows are put in order by this many columns.
MOST_SORTED = 16

#: Numbers that are hashed at a time.
_NUMBERS_AT_ONCE = 1_000_000

#: Up to MAX_SEARCHED_ROWS rows, a choice is made on all of them; with more, it is first made on a
#: subsample of SUBSAMPLE_ROWS.
MAX_SEARCHED_ROWS = 2_500
SUBSAMPLE_ROWS = 2_000

#: A quick choice is made on a subsample of this many rows, and not judged on folds of all rows.
QUICK_ROWS = 1_000

#: The largest training part on which a choice is followed: its share of all rows, and the fewest
#: rows that it has if there are enough; how parts grow up to it; and the most rows held out.
LARGEST_SHARE = 0.4
LEAST_LARGEST_ROWS = 4_000
GROWTH = 4
MAX_HELD_OUT_ROWS = 10_000

#: Up to the first number of rows, the choice is judged on the second number of splits of all rows.
MAX_FOLDED_ROWS = 20_000
SPLITS_TO_JUDGE = 3

#: The fewest rows of each class that subsamples keep.
ROWS_PER_CLASS = 20


@dataclass(frozen=True)
class Folds:
    """The splits of one fit.

    Attributes
    ----------
    train, test : (n_splits, n) bool arrays
        Rows that train and rows that are scored, split by split. A row can be in several test
        parts (repeated splits) or in none (the first rows of a time series).
    shortage : str
        What makes the splits poor for choosing, as the end of a sentence; empty if nothing does.
    numbers : tuple of int or None
        Which of the splits of all rows these are parts of; None if they are those, in their order.
    """

    train: BoolArray
    test: BoolArray
    shortage: str = ""
    numbers: tuple[int, ...] | None = None

    @property
    def n_splits(self) -> int:
        """Number of splits; zero where there are too few rows to hold any out."""
        return len(self.train)

    def among(self, rows: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return the splits of some of the rows, as pairs of train and test indices."""
        parts = zip(self.train[:, rows], self.test[:, rows], strict=True)
        return [
            (np.flatnonzero(train), np.flatnonzero(test))
            for train, test in parts
            if train.any() and test.any()
        ] or [(np.arange(len(rows)), np.empty(0, dtype=np.intp))]


def warn_of_shortage(folds: Folds) -> None:
    """Warn of what is wrong with the splits."""
    warn_caller(f"Cross-validation is less reliable than usual: {folds.shortage}.", UserWarning)


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
        A number stands for shuffled folds, stratified by class; there are fewer folds if a class
        has fewer than two rows per fold. Rows of a class with fewer than four are never held out.
        Copies of a row are in the same fold (see `first_copies`).
    X : rows or None
        Used by splitters, and to find copies.
    codes : (n,) int array
        Class of each row, -1 for rows that take no part: no split contains them.
    groups : (n,) array, optional
        Passed to the splitter.
    n_shuffles : int
        How often the rows are shuffled and split, where `cv` is a number.
    random_state : RandomState, optional
        Shuffles.
    """
    given = given_folds(cv, X, codes, groups)
    if given is not None:
        return given
    cv = DEFAULT_FOLDS if cv is None else cv
    # Different rows are split; copies go where the first of them goes.
    itself = np.arange(len(codes))
    firsts = itself if X is None else first_copies(X, codes)
    different = np.flatnonzero((codes >= 0) & (firsts == itself))
    sizes = np.bincount(codes[different])
    # Classes that are too small for two folds stay in training: the others can still be judged.
    foldable = sizes >= 2 * ROWS_PER_FOLD
    if foldable.sum() < 2:
        none = np.zeros((0, len(codes)), dtype=bool)
        return Folds(none, none, f"the smallest class has too few rows ({sizes[sizes > 0].min()})")
    n_folds = min(int(cv), int(sizes[foldable].min()) // ROWS_PER_FOLD)
    shortage = ""
    if not foldable.all():
        shortage = f"{np.sum(~foldable)} of {len(sizes)} classes have fewer than 4 rows"
    elif n_folds < min(int(cv), DEFAULT_FOLDS):  # more than the usual folds are no less reliable
        shortage = f"the smallest class has {sizes.min()} rows, which allow {n_folds} folds"
    held_out = different[foldable[codes[different]]]
    splitter = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=n_shuffles, random_state=random_state
    )
    test = np.zeros((n_folds * n_shuffles, len(codes)), dtype=bool)
    for part, (_, rows) in zip(test, splitter.split(held_out, codes[held_out]), strict=True):
        part[held_out[rows]] = True
    test = test[:, firsts]
    return Folds(~test & (codes >= 0), test, shortage)


def given_folds(cv: Any, X: Any, codes: NDArray[np.int32], groups: Any = None) -> Folds | None:
    """Return the splits of a splitter, or those that are listed; None where `cv` is a number.

    Parameters
    ----------
    cv, X, codes, groups
        As for `make_folds`. Splits may be different each time, or there only once.
    """
    if not isinstance(cv, Integral | None):
        return _of_splitter(cv, X, codes, groups)
    if groups is not None:
        raise ValueError(
            f"groups were given, but cv={cv} ignores them; use a splitter that takes groups, "
            "for instance cv=GroupKFold(5)."
        )
    return None


def even_folds(
    codes: NDArray[np.int32], n_folds: int, random_state: np.random.RandomState
) -> Folds:
    """Deal the rows of every class out to the folds, in a random order.

    This is much faster than `make_folds`, and does not look for copies of rows.

    Parameters
    ----------
    codes : (n,) int array
        Class of each row; every class should have at least as many rows as there are folds.
    n_folds : int
        Number of folds.
    random_state : RandomState
        Shuffles.
    """
    by_class = np.lexsort((random_state.permutation(len(codes)), codes))
    fold = np.empty(len(codes), dtype=np.intp)
    fold[by_class] = np.arange(len(codes)) % n_folds
    test = fold == np.arange(n_folds)[:, None]
    return Folds(~test, test)


def growing_splits(
    folds: Folds,
    codes: NDArray[np.int32],
    random_state: np.random.RandomState,
    *,
    is_quick: bool = False,
) -> Iterator[Folds]:
    """Split more and more rows; a choice is based on the last splits.

    A row that one of the splits of all rows holds out trains in none of the same number: what is
    learned from the training rows of a split may be used in later splits of its number.

    Parameters
    ----------
    folds : Folds
        The splits of all rows.
    codes : (n,) int array
        Class of each row, -1 for rows that take no part.
    random_state : RandomState
        Draws subsamples.
    is_quick : bool
        Search on fewer rows, and do not judge by splits of all rows.
    """
    n = int((codes >= 0).sum())
    if folds.n_splits == 0:
        return
    if n <= (QUICK_ROWS if is_quick else MAX_SEARCHED_ROWS):
        yield folds
        return
    rank = random_ranks(codes, random_state)
    few = subsample(codes, rank, QUICK_ROWS if is_quick else SUBSAMPLE_ROWS)
    yield Folds(folds.train & few, folds.test & few)
    if is_quick and LARGEST_SHARE * n <= QUICK_ROWS:  # no more than what was searched
        return
    largest = int(folds.train.sum(axis=1).argmax())
    train, test = folds.train[largest], folds.test[largest]
    test = test & subsample(np.where(test, codes, -1), rank, MAX_HELD_OUT_ROWS)
    sizes = [int(LARGEST_SHARE * n)]
    if not is_quick:
        sizes = [max(sizes[0], min(LEAST_LARGEST_ROWS, int(train.sum())))]
    while (size := sizes[-1] // GROWTH) > 2 * SUBSAMPLE_ROWS:
        sizes.append(size)
    for size in reversed(sizes):
        part = subsample(np.where(train, codes, -1), rank, size)
        yield Folds((train & part)[None], test[None], numbers=(largest,))
    if n <= MAX_FOLDED_ROWS and not is_quick:
        train, test = folds.train[:SPLITS_TO_JUDGE], folds.test[:SPLITS_TO_JUDGE]
        yield Folds(train, test, numbers=tuple(range(len(train))))


def random_ranks(codes: NDArray[np.int32], random_state: np.random.RandomState) -> NDArray[np.intp]:
    """Put the rows that have a class in a random order, and the others last."""
    present = np.flatnonzero(codes >= 0)
    rank = np.full(len(codes), len(codes), dtype=np.intp)
    rank[present] = random_state.permutation(len(present))
    return rank


def subsample(codes: NDArray[Any], rank: NDArray[np.intp], n_rows: int) -> BoolArray:
    """Draw a share of every class, but at least a few rows; larger samples contain smaller ones."""
    chosen = np.zeros(len(codes), dtype=bool)
    sizes = np.bincount(codes[codes >= 0])
    share = min(1.0, n_rows / max(sizes.sum(), 1))
    for c in np.flatnonzero(sizes):
        of_class = np.flatnonzero(codes == c)
        quota = max(int(np.ceil(share * sizes[c])), min(ROWS_PER_CLASS, int(sizes[c])))
        chosen[of_class[np.argsort(rank[of_class])[:quota]]] = True
    return chosen


def _of_splitter(cv: Any, X: Any, codes: NDArray[np.int32], groups: Any) -> Folds:
    present = np.flatnonzero(codes >= 0)
    if groups is not None:
        groups = _groups_of_rows(groups, len(codes))
    # The indices of given splits refer to all rows, including those of weight zero.
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
            # The caller warns once of classes with few rows.
            warnings.filterwarnings("ignore", message="The least populated class")
            try:
                # Splitters that look at rows cannot split rows that live elsewhere.
                own = np.empty((len(present), 0)) if isinstance(X, RowBlocks) else X[present]
                splits = list(cv.split(own, codes[present], among))
            except (TypeError, ValueError) as error:
                if groups is not None:
                    error.add_note("groups must be of one type that can be sorted, without NaN.")
                elif "groups" in str(error):
                    raise _without_groups(cv) from error
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


def _without_groups(cv: Any) -> ValueError:
    """Say that a splitter needs groups, and ``fit`` was given none."""
    error = ValueError(
        f"cv={type(cv).__name__}(...) needs groups, and fit was given none: pass fit(X, y, "
        "groups=groups)."
    )
    error.add_note(MISSING_GROUPS)
    return error


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
        given, found = np.empty(0), f"something that is not an array: {error}"
    if given.shape != (n,):
        raise ValueError(f"groups must have one entry per row, {n} in all, got {found}.")
    return given


def first_copies(X: Rows | RowBlocks, codes: NDArray[np.int32]) -> NDArray[np.intp]:
    """Find the first copy of every row: the same features and the same class.

    Rows with few possible values are often equal by chance, and do not count as copies. Copies are
    looked for only if a feature takes at least half as many values as there are different rows, and
    at least twenty. They must be at least a quarter of the rows, as after resampling: a few
    repeated rows do no harm, as new rows repeat some too.

    Parameters
    ----------
    X : rows or RowBlocks
        Dense or CSR.
    codes : (n,) int array
        Class of each row, -1 for rows that take no part: they are not copies.

    Returns
    -------
    (n,) int array
        The index of the first row that each row is equal to, which may be its own.
    """
    itself, blocks = np.arange(len(codes)), as_blocks(X)
    present = np.flatnonzero(codes >= 0)
    hashes = np.concatenate(blocks.each(_hashes))[present] + codes[present].astype(np.uint64)
    _, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    n_copies = len(present) - len(firsts)
    is_first = np.zeros(len(codes), dtype=bool)
    is_first[present[firsts]] = True
    if n_copies < LEAST_SHARE * len(present) or not _has_many_values(blocks, is_first):
        return itself
    itself[present] = present[firsts[inverse]]
    return itself


def shuffled_places(
    X: NDArray[Any], codes: NDArray[np.int32], n_shuffles: int, random_state: np.random.RandomState
) -> NDArray[np.int32]:
    """Put the rows that have a class in random orders, in which copies of a row share a place.

    So a row of weight two has the place of two copies. Rows with few possible values are often
    equal by chance, and have places of their own. The orders do not depend on that of the rows, nor
    on how the columns are scaled.

    Parameters
    ----------
    X : (n, d) array
        Rows.
    codes : (n,) int array
        Class of each row, -1 for rows that take no part.
    n_shuffles : int
        Number of orders.
    random_state : RandomState
        Shuffles.

    Returns
    -------
    (n_shuffles, n) int array
        The place of every row.
    """
    present = np.flatnonzero(codes >= 0)
    _, firsts, row = np.unique(_hashes(X)[present], return_index=True, return_inverse=True)
    is_first = np.zeros(len(codes), dtype=bool)
    is_first[present[firsts]] = True
    is_told_apart = _has_many_values(as_blocks(X), is_first, LEAST_VALUES_OF_PLACES)
    if len(firsts) < len(present) and not is_told_apart:
        firsts = row = np.arange(len(present))
    keys = X[present[firsts]][:, :MOST_SORTED][:, ::-1].T
    number = np.argsort(np.lexsort((firsts, *keys)))
    places = np.zeros((n_shuffles, len(codes)), dtype=np.int32)
    for of_shuffle in places:
        of_shuffle[present] = random_state.permutation(len(firsts))[number[row]]
    return places


def _hashes(X: Rows) -> NDArray[np.uint64]:
    """Random multiples of the features' bits, added up and wrapped around: equal for equal rows."""
    factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64)
    factors = 2 * factors + np.uint64(1)

    def bits(values: NDArray[Any]) -> NDArray[np.uint64]:
        numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # no zero is negative
        as_bits = numbers.view(np.uint64)
        return as_bits ^ (as_bits >> np.uint64(32))  # the low bits of most numbers are zeros

    if is_sparse(X):
        sums = np.zeros(len(X.data) + 1, dtype=np.uint64)
        np.cumsum(bits(X.data) * factors[X.indices], out=sums[1:])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    step = max(1, _NUMBERS_AT_ONCE // max(X.shape[1], 1))
    for begin in range(0, X.shape[0], step):
        part = slice(begin, begin + step)
        hashes[part] = (bits(X[part]) * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _has_many_values(
    blocks: RowBlocks, is_first: BoolArray, least_values: int = LEAST_VALUES
) -> bool:
    """Whether a feature takes enough values to distinguish different rows."""
    least = max(is_first.sum() / 2, least_values)
    most = np.sum(blocks.each(_n_values, among=is_first), axis=0)
    for j in np.flatnonzero(most >= least):  # the same values may be in several blocks
        found = blocks.each(partial(_values, column=int(j)), among=is_first)
        if len(np.unique(np.concatenate(found))) >= least:
            return True
    return False


def _n_values(X: Rows) -> NDArray[np.intp]:
    """Count the values of every feature in a block."""
    columns = X.tocsc() if is_sparse(X) else X
    return np.array([len(_values(columns, j)) for j in range(X.shape[1])])


def _values(X: Rows, column: int) -> NDArray[Any]:
    """Values of one feature in a block."""
    return np.unique(X[:, [column]].data if is_sparse(X) else X[:, column])
