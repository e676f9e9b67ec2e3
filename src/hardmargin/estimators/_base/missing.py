"""Missing values: filled with medians, and marked by indicator columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.estimators._base.columns import WITHOUT_VALUE
from hardmargin.kernels import FloatArray, RowBlocks, Rows, as_blocks, is_sparse
from hardmargin.scaling.columns import NUMBERS_AT_ONCE, listed, sampled
from hardmargin.warn import warn_caller

#: Medians are those of evenly spaced rows. Where fewer of these have a value, all rows are used.
LEAST_KNOWN = 1_000


@dataclass(frozen=True, eq=False)
class Filling:
    """How missing values are filled: with the median of their column.

    Columns with missing values in ``fit`` also get an indicator: a column of ones where a value is
    missing, because the gap itself may be informative.

    Attributes
    ----------
    medians : (n_columns,) array
        NaN for columns without any value in ``fit``: these are always set to zero.
    indicated : (n_indicators,) int array
        The columns with an indicator.
    """

    medians: FloatArray
    indicated: NDArray[np.intp]

    @property
    def is_idle(self) -> bool:
        """Whether no value was missing in ``fit``."""
        return len(self.indicated) == 0 and not np.isnan(self.medians).any()

    def transform(self, X: Rows, feature_names: Callable[[], NDArray[Any]]) -> Rows:
        """Fill the missing values of rows, and append the indicators.

        A column that was complete in ``fit`` has no indicator: there its missing values are only
        filled, with a warning that has the column's name.

        Parameters
        ----------
        X : rows
            Dense or CSR.
        feature_names : callable
            Returns the names of the columns, for the warning.
        """
        is_empty = np.isnan(self.medians)
        if is_sparse(X) or (self.is_idle and not np.isnan(X).any()):
            return X
        missing = np.isnan(X)
        filled = np.where(missing, self.medians.astype(X.dtype), X)
        filled[:, is_empty] = 0.0
        surprising = missing.any(axis=0) & ~is_empty
        surprising[self.indicated] = False
        if surprising.any():
            columns = feature_names()[np.flatnonzero(surprising)]
            warn_caller(
                f"Missing values of {listed(columns)} are filled with the median; there were none "
                "in fit, so nothing is known about rows with missing values.",
                UserWarning,
            )
        return np.hstack([filled, missing[:, self.indicated].astype(X.dtype)])


def find_filling(
    X: Rows | RowBlocks,
    weights: FloatArray | None,
    feature_names: Callable[[], NDArray[Any]],
    most_bytes: float = math.inf,
    n_missing: NDArray[np.intp] | None = None,
) -> Filling | None:
    """Find the medians of dense rows, and the columns that need an indicator; None if sparse.

    Parameters
    ----------
    X : rows or RowBlocks
        Dense or CSR.
    weights : (n,) array or None
        Weights of the rows; rows of weight zero are ignored.
    feature_names : callable
        Returns the names of the columns, for the warning.
    most_bytes : float
        Rows of more bytes are looked at a few at a time.
    n_missing : (n_columns,) array, optional
        Number of missing values of every column, if that is known.
    """
    if is_sparse(X):
        return None
    blocks = as_blocks(X, most_bytes)
    if n_missing is None:
        n_missing = np.sum(blocks.each(count_missing, among=weights), axis=0)
    n_rows = blocks.shape[0] if weights is None else np.count_nonzero(weights)
    incomplete, is_empty = n_missing > 0, n_missing == n_rows
    if is_empty.any():
        empty = listed(feature_names()[np.flatnonzero(is_empty)])
        warn_caller(WITHOUT_VALUE.format(empty), UserWarning)
    sample, w = sampled(blocks, weights)
    medians = np.full(blocks.n_columns, np.nan)
    complete, step = np.flatnonzero(~incomplete), max(1, NUMBERS_AT_ONCE // len(sample))
    lower_median = partial(np.quantile, q=0.5, axis=0, method="inverted_cdf")
    for begin in range(0, len(complete), step):
        part = complete[begin : begin + step]
        medians[part] = lower_median(sample[:, part], weights=w)
    for j in np.flatnonzero(incomplete & ~is_empty):
        values, own = sample[:, j], w
        if (~np.isnan(values)).sum() < LEAST_KNOWN:  # then all rows have only few values
            parts = blocks.each(itemgetter((slice(None), int(j))), among=weights)
            values, own = np.concatenate(parts), None if weights is None else weights[weights > 0]
        known = ~np.isnan(values)
        medians[j] = lower_median(values[known], weights=None if own is None else own[known])
    return Filling(medians, np.flatnonzero(incomplete & ~is_empty))


def count_missing(X: Rows) -> NDArray[np.intp]:
    """Count the missing values of every column of a block."""
    step = max(1, NUMBERS_AT_ONCE // X.shape[1])
    counts = np.zeros(X.shape[1], dtype=np.intp)
    for begin in range(0, X.shape[0], step):
        counts += np.isnan(X[begin : begin + step]).sum(axis=0)
    return counts
