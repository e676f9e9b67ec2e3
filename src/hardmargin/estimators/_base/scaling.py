"""Scaling the features before the kernel sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from hardmargin.kernels import FloatArray, Rows, is_sparse
from hardmargin.warn import warn_caller

#: The middle of a column: the values between these quantiles.
MIDDLE = (0.1, 0.9)

#: The most rows that quantiles are computed from.
ROWS_FOR_QUANTILES = 20_000

#: Outliers flatten a column if its standard deviation is this many times the width of its middle.
FLATTENED = 30.0

#: Sparse columns with fewer entries are left as they are.
LEAST_ENTRIES = 10

#: A flattened column is clipped this many widths of its middle away from the middle.
CLIPPED_AT = 10.0

#: Columns of larger size, or smaller than one over this, are multiplied by a power of two first, as
#: their squares would overflow or vanish.
LARGEST_SIZE = {np.dtype(np.float64): 1e100, np.dtype(np.float32): 1e15}


@dataclass(frozen=True)
class Scaling:
    """How every feature is scaled.

    Attributes
    ----------
    clip : (low, high) arrays or None
        Limits of the features; None where there are none.
    exponents : (n_features,) int array or None
        Exponents of two, applied after clipping; None where all are zero.
    scaler : StandardScaler
        Shifts and scales the result.
    """

    clip: tuple[FloatArray, FloatArray] | None
    exponents: NDArray[np.int64] | None
    scaler: StandardScaler

    def transform(self, X: Rows) -> Rows:
        """Scale rows."""
        if self.scaler.with_mean and is_sparse(X):
            X = X.toarray()  # shifted rows have no zeros to leave out
        if self.clip is not None:
            X = _clipped(X, self.clip)
        if self.exponents is not None:
            X = _times_powers(X, self.exponents)
        return self.scaler.transform(X)

    def inverse(self, X: Rows) -> Rows:
        """Rows as they came, but for values that were clipped."""
        X = self.scaler.inverse_transform(X)
        return X if self.exponents is None else _times_powers(X, -self.exponents)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the features as they came."""
        mean, deviation = self.scaler.mean_, np.sqrt(self.scaler.var_)
        if self.exponents is None:
            return mean, deviation
        return np.ldexp(mean, -self.exponents), np.ldexp(deviation, -self.exponents)

    @property
    def is_plain(self) -> bool:
        """Whether no column is clipped or of extreme size."""
        return self.exponents is None and self.clip is None

    @property
    def is_identity(self) -> bool:
        """Whether distances between rows stay as they are."""
        return self.is_plain and bool((self.scaler.scale_ == 1).all())


def standardized(
    X: Rows, weights: FloatArray | None, feature_names: NDArray[Any]
) -> tuple[Rows, Scaling]:
    """Scale features to mean 0 and variance 1, sparse ones unshifted.

    Columns that take two values get a step of 1 instead, as indicators have. At variance 1 a rare
    indicator would outweigh all other features, and columns of unequal steps cannot be packed as
    bits. Columns that a few huge values would flatten are clipped, with a warning.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    weights : (n,) array or None
        Weights of the rows; rows of weight zero are ignored.
    feature_names : array
        Names of the features, for the warning.
    """
    if not is_sparse(X):
        X = np.ascontiguousarray(X)  # sums in another memory order would round differently
    seen = X
    if weights is not None and not weights.all():
        seen, weights = X[weights > 0], weights[weights > 0]
    low, high = seen.min(axis=0), seen.max(axis=0)
    if is_sparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    low, high = low.astype(np.float64), high.astype(np.float64)
    scaling = _fit_scaling(seen, low, high, weights)
    clip = (_sparse_clip if is_sparse(X) else _clip)(seen, weights, low, high, scaling)
    if clip is not None:
        columns = np.flatnonzero(np.isfinite(clip[0]))
        warn_caller(
            f"Some values of {listed(feature_names[columns])} are so large that all others would "
            "look the same once standardised; they are clipped. Are they right? To keep them, "
            "scale the features yourself and set standardize=False.",
            UserWarning,
        )
        seen = _clipped(seen, clip)
        low, high = np.clip(low, *clip), np.clip(high, *clip)
        scaling = replace(_fit_scaling(seen, low, high, weights), clip=clip)
    return scaling.transform(X), scaling


def _fit_scaling(X: Rows, low: FloatArray, high: FloatArray, weights: FloatArray | None) -> Scaling:
    """Fit the scaler, and powers of two that bring columns of extreme size to about one.

    `low` and `high`, the least and largest values, show which columns take only these two.
    """
    sizes, largest = np.maximum(np.abs(low), np.abs(high)), LARGEST_SIZE[X.dtype]
    extreme = (sizes > 0) & ((sizes < 1 / largest) | (sizes > largest))
    exponents = None
    if extreme.any():
        exponents = np.where(extreme, -np.frexp(sizes)[1], 0).astype(np.int64)
        X = _times_powers(X, exponents)
        low, high = np.ldexp(low, exponents), np.ldexp(high, exponents)
    scaler = StandardScaler(with_mean=not is_sparse(X))
    with np.errstate(over="ignore", invalid="ignore"):
        scaler.fit(X, sample_weight=weights)
    if not np.isfinite(scaler.var_).all():
        raise ValueError(
            "standardize=True cannot add up sample weights as large as these; scale them down, or "
            "use standardize=False."
        )
    two_valued = low < high
    if is_sparse(X):
        inner = (X.data != low[X.indices]) & (X.data != high[X.indices])
        two_valued[X.indices[inner]] = False
        has_zeros = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
        two_valued[has_zeros & (low != 0) & (high != 0)] = False
    else:
        step = max(1, 1_000_000 // X.shape[1])
        for begin in range(0, X.shape[0], step):
            among = np.flatnonzero(two_valued)
            part = X[begin : begin + step][:, among]
            two_valued[among] = ((part == low[among]) | (part == high[among])).all(axis=0)
    scaler.scale_[two_valued] = (high - low)[two_valued]
    return Scaling(None, exponents, scaler)


def _times_powers(X: Rows, exponents: NDArray[np.int64]) -> Rows:
    if is_sparse(X):
        scaled = X.copy()
        scaled.data = np.ldexp(X.data, exponents[X.indices])
        return scaled
    return np.ldexp(X, exponents)


def _clip(
    X: Rows, weights: FloatArray | None, low: FloatArray, high: FloatArray, scaling: Scaling
) -> tuple[FloatArray, FloatArray] | None:
    """Limits of the columns that outliers would flatten; infinite for the others."""
    mean, deviation = scaling.moments
    # Outliers, fewer than a fifth of the rows, then cause nearly all of the variance: one of them
    # is this far from the mean.
    with np.errstate(over="ignore"):
        suspects = np.flatnonzero(np.maximum(high - mean, mean - low) > 2 * deviation)
    if len(suspects) == 0:
        return None
    some = slice(None, None, -(-X.shape[0] // ROWS_FOR_QUANTILES))
    below, above = np.quantile(
        X[some, suspects],
        MIDDLE,
        axis=0,
        method="inverted_cdf",
        weights=None if weights is None else weights[some],
    ).astype(np.float64)
    with np.errstate(over="ignore"):
        width = above - below
        flattened = (width > 0) & (deviation[suspects] > FLATTENED * width)
    if not flattened.any():
        return None
    limits = np.full((2, X.shape[1]), [[-np.inf], [np.inf]])
    columns = suspects[flattened]
    limits[0, columns] = (below - CLIPPED_AT * width)[flattened]
    limits[1, columns] = (above + CLIPPED_AT * width)[flattened]
    return limits[0], limits[1]


def _sparse_clip(
    X: Rows, weights: FloatArray | None, low: FloatArray, high: FloatArray, scaling: Scaling
) -> tuple[FloatArray, FloatArray] | None:
    """Limits of sparse columns that outliers would flatten, from the size of other entries."""
    _, deviation = scaling.moments
    entries = np.bincount(X.indices, minlength=X.shape[1])
    with np.errstate(divide="ignore"):
        logs = np.bincount(X.indices, np.log(np.abs(X.data)), minlength=X.shape[1])
    # A few huge entries hardly move the geometric mean, but raise the deviation above it.
    is_suspect = deviation > np.exp(logs / np.maximum(entries, 1))
    suspects = np.flatnonzero(is_suspect & (entries >= LEAST_ENTRIES))
    limits = np.full((2, X.shape[1]), [[-np.inf], [np.inf]])
    columns = X[:, suspects].tocsc()
    for column, begin, end in zip(suspects, columns.indptr[:-1], columns.indptr[1:], strict=True):
        sizes = np.abs(columns.data[begin:end])
        usual = float(np.quantile(sizes, MIDDLE[1], method="inverted_cdf"))
        if deviation[column] > FLATTENED * usual:
            limits[:, column] = -CLIPPED_AT * usual, CLIPPED_AT * usual
    return (limits[0], limits[1]) if np.isfinite(limits).any() else None


def _clipped(X: Rows, clip: tuple[FloatArray, FloatArray]) -> Rows:
    low, high = (limit.astype(X.dtype) for limit in clip)
    if is_sparse(X):
        clipped = X.copy()
        clipped.data = np.clip(X.data, low[X.indices], high[X.indices])
        return clipped
    return np.clip(X, low, high)


def listed(names: Sequence[Any] | NDArray[Any], at_most: int = 5) -> str:
    """Name columns in a message; only the first few if there are many."""
    shown = ", ".join(str(name) for name in names[:at_most])
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"
