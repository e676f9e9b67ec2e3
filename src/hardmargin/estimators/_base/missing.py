"""Missing values: filled with medians, and marked by indicator columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.estimators._base.scaling import ROWS_FOR_QUANTILES, listed
from hardmargin.kernels import FloatArray, Rows, is_sparse
from hardmargin.warn import warn_caller


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
    names : tuple of str
        Names of the columns, for warnings.
    """

    medians: FloatArray
    indicated: NDArray[np.intp]
    names: tuple[str, ...]

    def transform(self, X: Rows) -> Rows:
        """Fill the missing values of rows, and append the indicators.

        A column that was complete in ``fit`` has no indicator: there its missing values are only
        filled, with a warning that has the column's name.
        """
        is_empty = np.isnan(self.medians)
        is_idle = len(self.indicated) == 0 and not is_empty.any()
        if is_sparse(X) or (is_idle and not np.isnan(X).any()):
            return X
        missing = np.isnan(X)
        filled = np.where(missing, self.medians.astype(X.dtype), X)
        filled[:, is_empty] = 0.0
        surprising = missing.any(axis=0) & ~is_empty
        surprising[self.indicated] = False
        if surprising.any():
            columns = [self.names[j] for j in np.flatnonzero(surprising)]
            warn_caller(
                f"Missing values of {listed(columns)} are filled with the median; there were none "
                "in fit, so nothing is known about rows with missing values.",
                UserWarning,
            )
        return np.hstack([filled, missing[:, self.indicated].astype(X.dtype)])


def find_filling(X: Rows, weights: FloatArray | None, names: Sequence[str]) -> Filling | None:
    """Find the medians of dense rows, and the columns that need an indicator; None if sparse.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    weights : (n,) array or None
        Weights of the rows; rows of weight zero are ignored.
    names : sequence of str
        Names of the columns.
    """
    if is_sparse(X):
        return None
    if weights is not None and not weights.all():
        X, weights = X[weights > 0], weights[weights > 0]
    missing = np.isnan(X)
    incomplete = missing.any(axis=0)
    some = slice(None, None, -(-X.shape[0] // ROWS_FOR_QUANTILES))
    medians = np.full(X.shape[1], np.nan)
    complete = np.ascontiguousarray(X[some, ~incomplete].T)
    medians[~incomplete] = _median(complete, None if weights is None else weights[some])
    is_empty = missing.all(axis=0)
    if is_empty.any():
        empty = listed([names[int(j)] for j in np.flatnonzero(is_empty)])
        warn_caller(f"Ignored, as no row has a value there: {empty}.", UserWarning)
    for j in np.flatnonzero(incomplete & ~is_empty):
        known = ~missing[:, j]
        medians[j] = _median(X[known, j], None if weights is None else weights[known])
    return Filling(medians, np.flatnonzero(incomplete & ~is_empty), tuple(names))


def _median(values: NDArray[Any], weights: FloatArray | None) -> NDArray[Any]:
    """Return the lower medians of the rows of an array, each of which is a column of the table."""
    if weights is not None:
        median = np.quantile(values, 0.5, axis=-1, method="inverted_cdf", weights=weights)
        return np.asarray(median)
    middle = (values.shape[-1] - 1) // 2
    return np.asarray(np.partition(values, middle)[..., middle])
