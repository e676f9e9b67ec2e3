"""Scaling sparse rows with dense columns: text beside a price, an age or a year.

As they came, such columns outweigh all words or do nothing; with a variance of 1, they are one of
thousands of columns. They get a fixed share of the typical distance instead, whatever their unit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from hardmargin.kernels import FloatArray, RowBlocks, Rows, as_blocks, is_sparse
from hardmargin.kernels.blocks import dense_columns
from hardmargin.scaling.columns import Scaling, find_scaling
from hardmargin.warn import held_back

#: Columns with entries in more than this share of the rows are dense, if the others have entries
#: in no more than the second share of the rows, on average.
LEAST_DENSITY = 0.5
MOST_DENSITY_OF_OTHERS = 0.1

#: Standard deviation of a dense column, relative to the root of the variance of all sparse ones
#: (benchmarks/text_columns.py).
SHARE_OF_TEXT = 0.1

#: Norms that differ by less than this share are the same.
SAME_NORM = 1e-6


@dataclass(frozen=True)
class MixedScaling:
    """How sparse rows are scaled some of whose columns are dense.

    Attributes
    ----------
    columns : int array
        The dense columns.
    dense : Scaling
        How they are shifted and scaled to variance 1.
    others : Scaling
        How the sparse columns are scaled, if they are.
    standardized : bool
        Whether the sparse columns are scaled.
    """

    columns: NDArray[np.intp]
    dense: Scaling
    others: Scaling
    standardized: bool

    @property
    def factor(self) -> float:
        """Standard deviation of the dense columns."""
        deviations = self.others.moments[1]
        if self.standardized:
            deviations = np.sqrt(self.others.scaler.var_) / self.others.scaler.scale_
        size = SHARE_OF_TEXT * float(np.linalg.norm(deviations))
        # Standardised, no column counts less than another; and there may be no other.
        return max(size, 1.0) if self.standardized or size == 0 else size

    @property
    def is_plain(self) -> bool:
        """Whether no sparse column is clipped or of extreme size."""
        return self.others.is_plain

    @property
    def is_identity(self) -> bool:
        """Whether distances between rows stay as they are."""
        return False

    def transform(self, X: Rows) -> Rows:
        """Scale rows."""
        scaled = self.others.transform(X) if self.standardized else X
        own = self.dense.transform(dense_columns(X, self.columns))
        return _with_columns(scaled, self.columns, own * X.dtype.type(self.factor))

    def inverse(self, X: Rows) -> Rows:
        """Rows as they came, except for values that were clipped."""
        own = self.dense.inverse(dense_columns(X, self.columns) / self.factor)
        return _with_columns(
            self.others.inverse(X) if self.standardized else X, self.columns, own.astype(X.dtype)
        )


def find_row_scaling(
    X: Rows | RowBlocks,
    weights: FloatArray | None,
    feature_names: Callable[[], NDArray[Any]],
    most_bytes: float = np.inf,
) -> Scaling | MixedScaling:
    """Find how to standardise rows, of any kind; the parameters are those of `find_scaling`."""
    mixed = find_mixed_scaling(X, weights, feature_names, standardized=True)
    return find_scaling(X, weights, feature_names, most_bytes) if mixed is None else mixed


def find_mixed_scaling(
    X: Rows | RowBlocks,
    weights: FloatArray | None,
    feature_names: Callable[[], NDArray[Any]],
    *,
    standardized: bool,
) -> MixedScaling | None:
    """Find how to scale sparse rows with dense columns; None if rows are not of this kind.

    Parameters
    ----------
    X : rows or RowBlocks
        Dense or CSR.
    weights : (n,) array or None
        Weights of the rows; rows of weight zero are ignored.
    feature_names : callable
        Returns the names of the features, for warnings.
    standardized : bool
        Whether to scale the sparse columns, too.
    """
    if not is_sparse(X):
        return None
    blocks = as_blocks(X)
    columns = find_dense_columns(blocks, weights)
    if len(columns) == 0:
        return None
    dense = find_scaling(blocks.dense(columns), weights, lambda: feature_names()[columns])
    rest = blocks.map(partial(_with_columns, columns=columns))
    with nullcontext() if standardized else held_back():  # these columns stay as they came
        others = find_scaling(rest, weights, feature_names)
    return MixedScaling(columns, dense, others, standardized)


def find_dense_columns(blocks: RowBlocks, weights: FloatArray | None) -> NDArray[np.intp]:
    """Find dense columns among sparse ones, unless all rows have the same norm.

    Rows of one norm are a whole: their dense columns are the most frequent words.
    """
    nothing = np.empty(0, dtype=np.intp)
    if weights is not None:
        weights = weights / weights.max()  # sums of huge ones would overflow
    found = blocks.each(_weights_and_norms, weights, among=weights)
    entries, totals, low, high = zip(*found, strict=True)
    density = np.sum(entries, axis=0) / np.sum(totals)
    is_dense = density > LEAST_DENSITY
    if not is_dense.any() or is_dense.all():
        return nothing
    if density[~is_dense].mean() > MOST_DENSITY_OF_OTHERS:
        return nothing
    return nothing if max(high) - min(low) <= SAME_NORM * max(high) else np.flatnonzero(is_dense)


def _weights_and_norms(
    X: Rows, weights: FloatArray | None
) -> tuple[FloatArray, float, float, float]:
    """Weigh the entries of every column, and all rows; find the least and largest norm."""
    w = np.ones(X.shape[0]) if weights is None else weights
    of_entries = np.repeat(w, np.diff(X.indptr)) * (X.data != 0)
    with np.errstate(over="ignore"):
        norms = row_norms(X)
    norms = norms[norms > 0]  # documents without a known word
    return (
        np.bincount(X.indices, of_entries, minlength=X.shape[1]).astype(np.float64),
        float(w.sum()),
        float(norms.min(initial=np.inf)),
        float(norms.max(initial=0.0)),
    )


def _with_columns(X: Rows, columns: NDArray[np.intp], values: FloatArray | None = None) -> Rows:
    """Rows with other values in some columns; with zeros, if there are none."""
    if not is_sparse(X):
        X = X.copy()
        X[:, columns] = 0 if values is None else values
        return X
    is_replaced = np.zeros(X.shape[1], dtype=bool)
    is_replaced[columns] = True
    kept = ~is_replaced[X.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
    others = type(X)((X.data[kept], X.indices[kept], ends), shape=X.shape)
    if values is None:
        return others
    starts = np.arange(0, values.size + 1, len(columns))
    every = np.tile(columns, X.shape[0])
    return others + type(X)((values.ravel(), every, starts), shape=X.shape)
