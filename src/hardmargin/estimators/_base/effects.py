"""Columns of many categories: each category becomes the log-odds of the classes among its rows.

1. The log-odds are drawn towards those of all rows, as a beta-binomial model of the column says: a
   category of few rows tells little. Where the column as a whole tells nothing, all categories have
   the log-odds of all rows.
2. Queries are encoded by all rows of ``fit``, and these rows themselves by those before them
   in a random order (Prokhorenkova et al., CatBoost, 2018). Where splits were given, the parts that
   they hold out come one after the other, behind the rows that are never held out; their rows are
   encoded by the rows that train in their split and come before.

To leave out the row alone, or its fold, is not enough: rows of one category would then have lower
log-odds the more of them are in the class, and where another column tells the category as well,
kernels would read the labels of rows that are held out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hardmargin.kernels import FloatArray
from hardmargin.selection.folds import BoolArray, Folds
from hardmargin.solvers.problem import IntArray

#: How many rows the log-odds of all rows may count for.
STRENGTHS = 2.0 ** np.arange(-2, 15)

#: A column tells nothing unless the log-likelihood of its categories is larger by this.
LEAST_GAIN = 2.0

#: No share of a class is less, or nearer to 1: weights of any size leave finite log-odds.
LEAST_SHARE = float(np.finfo(np.float64).eps)


def learn_effects(
    values: NDArray[np.intp],
    codes: IntArray,
    weights: FloatArray | None,
    folds: Folds | None,
    random_state: np.random.RandomState,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Learn what the categories of some columns say about the classes.

    Parameters
    ----------
    values : (n, n_columns) int array
        Number of the category of every row.
    codes : (n,) int array
        Class of every row; -1 for rows that take no part.
    weights : (n,) array or None
        Weights of the rows.
    folds : Folds or None
        The splits, if they were given.
    random_state : RandomState
        Puts the rows in an order.

    Returns
    -------
    tables : list of (n_categories + 1, n_outputs) arrays
        For every column, the log-odds of the second of two classes, or of each of many, by
        category. The last row is for categories that are not known.
    encoded : list of (n, n_outputs) arrays
        For every column, the log-odds that rows before each row tell.
    """
    n_classes = int(codes.max()) + 1
    counted = np.zeros((len(codes), n_classes))
    present = np.flatnonzero(codes >= 0)
    counted[present, codes[present]] = 1.0 if weights is None else weights[present]
    prior = np.maximum(counted.sum(axis=0) / counted.sum(), LEAST_SHARE)
    order = random_state.permutation(len(codes))
    tables, encoded = [], []
    for of_column in values.T:
        by_category = np.lexsort((order, of_column))
        begins = np.flatnonzero(np.diff(of_column[by_category], prepend=-1))
        sums = np.add.reduceat(counted[by_category], begins, axis=0)
        strength = _strength(sums, prior)
        tables.append(_log_odds(np.vstack([sums, np.zeros(n_classes)]), prior, strength))
        alone = np.full(len(codes), fill_value=True)
        if folds is not None:
            alone = ~np.asarray(folds.test.any(axis=0))
        before = _before(np.where(alone[:, None], counted, 0.0), by_category, begins)
        for train, test in [] if folds is None else _in_turn(folds):
            of_train = np.where(train[:, None], counted, 0.0)[by_category]
            before[test] = np.add.reduceat(of_train, begins, axis=0)[of_column[test]]
        encoded.append(_log_odds(before, prior, strength))
    return tables, encoded


def _in_turn(folds: Folds) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Rows to learn from, and rows to encode: each in the first split that holds it out."""
    is_encoded = ~folds.test.any(axis=0)
    for train, test in zip(folds.train, folds.test, strict=True):
        yield train & ~test & is_encoded, test & ~is_encoded
        is_encoded = is_encoded | test


def _before(
    counted: FloatArray, by_category: NDArray[np.intp], begins: NDArray[np.intp]
) -> FloatArray:
    """Add up the weights of the rows before each row, in its category.

    Parameters
    ----------
    counted : (n, n_classes) array
        Weights of the rows, in the column of their class.
    by_category : (n,) int array
        The rows, category by category, each in their order.
    begins : (n_categories,) int array
        Where in it every category begins.
    """
    sums = np.zeros((len(counted) + 1, counted.shape[1]))
    np.cumsum(counted[by_category], axis=0, out=sums[1:])
    sizes = np.diff(begins, append=len(counted))
    before = np.empty_like(counted)
    before[by_category] = sums[:-1] - np.repeat(sums[begins], sizes, axis=0)
    return np.maximum(before, 0.0)  # rounding may make nothing negative


def _strength(counts: FloatArray, prior: FloatArray) -> float:
    """Return how many rows the prior counts for: the most likely number, or infinity."""
    sizes = counts.sum(axis=1)

    def likelihood(strength: float) -> float:
        of_sizes = gammaln(strength) - gammaln(strength + sizes)
        of_classes = gammaln(counts + strength * prior) - gammaln(strength * prior)
        return float(of_sizes.sum() + of_classes.sum())

    found = [likelihood(strength) for strength in STRENGTHS]
    without = float((counts * np.log(prior)).sum())
    return float(STRENGTHS[np.argmax(found)]) if max(found) > without + LEAST_GAIN else np.inf


def _log_odds(counts: FloatArray, prior: FloatArray, strength: float) -> FloatArray:
    """Log-odds of the second of two classes, or of each of many."""
    shares = np.tile(prior, (len(counts), 1))
    if np.isfinite(strength):
        shares = (counts + strength * prior) / (counts.sum(axis=1, keepdims=True) + strength)
    shares = np.clip(shares, LEAST_SHARE, 1.0 - LEAST_SHARE)
    shares = shares[:, 1:] if len(prior) == 2 else shares
    return np.asarray(np.log(shares) - np.log1p(-shares))
