"""Scaling the features before the kernel sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from hardmargin.kernels import FloatArray, RowBlocks, Rows, as_blocks, column_ends, is_sparse
from hardmargin.kernels.blocks import ColumnEnds
from hardmargin.warn import warn_caller

#: The middle of a column: the values between these quantiles.
MIDDLE = (0.1, 0.9)

#: The most rows that quantiles are computed from.
ROWS_FOR_QUANTILES = 20_000

#: Numbers that are copied at a time.
NUMBERS_AT_ONCE = 250_000

#: Outliers flatten a column if its standard deviation is this many times the width of its middle.
FLATTENED = 30.0

#: Sparse columns with fewer entries are left as they are.
LEAST_ENTRIES = 10

#: A flattened column is clipped this many widths of its middle away from the middle.
CLIPPED_AT = 10.0

#: Outliers up to the second size, where the middle is within the first, are no typing errors: the
#: column is a rare indicator, such as one of the parts that skrub finds in strings.
NEARLY_ZERO, LARGEST_INDICATOR = 0.1, 100.0

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
        if self.scaler.with_mean:  # shifted rows have no zeros to leave out
            X = X.toarray() if is_sparse(X) else np.ascontiguousarray(X)
        if self.clip is not None:
            X = _clipped(X, self.clip)
        if self.exponents is not None:
            X = _times_powers(X, self.exponents)
        # What the scaler's own methods return depends on how scikit-learn is configured.
        if is_sparse(X):
            return _times_columns(X, 1 / self.scaler.scale_)
        scale = self.scaler.scale_.astype(X.dtype)
        return (X - self.scaler.mean_.astype(X.dtype) if self.scaler.with_mean else X) / scale

    def inverse(self, X: Rows) -> Rows:
        """Rows as they came, except for values that were clipped."""
        if is_sparse(X):
            X = _times_columns(X, self.scaler.scale_)
        else:
            X = X * self.scaler.scale_.astype(X.dtype)
            X = X + self.scaler.mean_.astype(X.dtype) if self.scaler.with_mean else X
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


def find_scaling(
    X: Rows | RowBlocks,
    weights: FloatArray | None,
    feature_names: Callable[[], NDArray[Any]],
    most_bytes: float = math.inf,
) -> Scaling:
    """Find how to scale features to mean 0 and variance 1, sparse ones unshifted.

    Columns that take two values get a step of 1 instead, as indicators have. At variance 1 a rare
    indicator would outweigh all other features, and columns of unequal steps cannot be packed as
    bits. Columns that a few huge values would flatten are clipped, with a warning unless they are
    nearly zero in most rows.

    Parameters
    ----------
    X : rows or RowBlocks
        Dense or CSR.
    weights : (n,) array or None
        Weights of the rows; rows of weight zero are ignored.
    feature_names : callable
        Returns the names of the features, for the warning.
    most_bytes : float
        Dense rows of more bytes are looked at a few at a time.
    """
    blocks = seen = as_blocks(X, most_bytes)
    low, high, has_others = ends = column_ends(blocks, weights)
    # Columns of extreme size are brought to about one first, as their squares would overflow.
    sizes, largest = np.maximum(np.abs(low), np.abs(high)), LARGEST_SIZE[blocks.dtype]
    extreme = (sizes > 0) & ((sizes < 1 / largest) | (sizes > largest))
    exponents = None
    if extreme.any():
        exponents = np.where(extreme, -np.frexp(sizes)[1], 0).astype(np.int64)
        seen = as_blocks(blocks.map(partial(_times_powers, exponents=exponents)), most_bytes)
        low, high = np.ldexp(low, exponents), np.ldexp(high, exponents)
    scalers = seen.each(_scaler, weights, among=weights)
    scaler = scalers[0] if len(scalers) == 1 else _merged(scalers)
    if not np.isfinite(scaler.var_).all():
        raise ValueError(
            "standardize=True cannot add up sample weights as large as these; scale them down, or "
            "use standardize=False."
        )
    # Rounding may make the variance of a constant column negative.
    scaler.var_ = np.maximum(scaler.var_, 0.0)
    has_two = ~has_others & (low < high)
    scaler.scale_[has_two] = (high - low)[has_two]
    scaling = Scaling(None, exponents, scaler)
    if is_sparse(X):
        clip = _sparse_clip(blocks, weights, scaling)
    else:
        clip = _clip(blocks, weights, ends, scaling)
    if clip is None:
        return scaling
    columns = np.flatnonzero(np.isfinite(clip[0]) & ~_are_rare_indicators(clip, sizes))
    if len(columns) > 0:
        warn_caller(
            f"Some values of {listed(feature_names()[columns])} are so large that all others would "
            "look the same once standardised; they are clipped. Are they right? To keep them, "
            "scale the features yourself and set standardize=False.",
            UserWarning,
        )
    del seen
    # Clipped columns deviate by no more than about `CLIPPED_AT`: they are not flattened again.
    clipped = blocks.map(partial(_clipped, clip=clip))
    return replace(find_scaling(clipped, weights, feature_names, most_bytes), clip=clip)


def _scaler(X: Rows, weights: FloatArray | None) -> StandardScaler:
    """Scaler of one block."""
    if not is_sparse(X):
        X = np.ascontiguousarray(X)  # sums in another memory order would round differently
    with np.errstate(over="ignore", invalid="ignore"):
        return StandardScaler(with_mean=not is_sparse(X)).fit(X, sample_weight=weights)


def _merged(scalers: Sequence[StandardScaler]) -> StandardScaler:
    """Merge the scalers of all blocks (Chan, Golub and LeVeque, 1983)."""
    merged = scalers[0]
    sizes = np.array([scaler.n_samples_seen_ for scaler in scalers])
    n = sizes.sum()
    shares = sizes / n
    means, variances = (np.array([getattr(s, a) for s in scalers]) for a in ("mean_", "var_"))
    mean = shares @ means
    variance = shares @ (variances + np.square(means - mean))
    # Rounding alone may cause as much variance: such columns are constant, as in scikit-learn.
    epsilon = np.finfo(np.float64).eps
    is_constant = variance <= n * epsilon * variance + (n * epsilon * mean) ** 2
    merged.n_samples_seen_, merged.mean_, merged.var_ = n, mean, variance
    merged.scale_ = np.where(is_constant, 1.0, np.sqrt(variance))
    return merged


def sampled(blocks: RowBlocks, weights: FloatArray | None) -> tuple[Rows, FloatArray | None]:
    """Evenly spaced rows of positive weight, which quantiles are computed from, and weights."""
    if weights is None:
        return blocks[:: -(-blocks.shape[0] // ROWS_FOR_QUANTILES)], None
    present = np.flatnonzero(weights)
    some = present[:: -(-len(present) // ROWS_FOR_QUANTILES)]
    return blocks[some], weights[some]


def _times_columns(X: Rows, factors: FloatArray) -> Rows:
    """Multiply the columns of sparse rows."""
    scaled = X.copy()
    scaled.data *= factors[X.indices]
    return scaled


def _times_powers(X: Rows, exponents: NDArray[np.int64]) -> Rows:
    if is_sparse(X):
        scaled = X.copy()
        scaled.data = np.ldexp(X.data, exponents[X.indices])
        return scaled
    return np.ldexp(X, exponents)


def _clip(
    blocks: RowBlocks,
    weights: FloatArray | None,
    ends: ColumnEnds,
    scaling: Scaling,
) -> tuple[FloatArray, FloatArray] | None:
    """Limits of the columns that outliers would flatten; infinite for the others."""
    mean, deviation = scaling.moments
    # Outliers, fewer than a fifth of the rows, then cause nearly all of the variance: one of them
    # is this far from the mean.
    with np.errstate(over="ignore"):
        furthest = np.maximum(ends.high - mean, mean - ends.low)
        suspects = np.flatnonzero(furthest > 2 * deviation)
    if len(suspects) == 0:
        return None
    sample, w = sampled(blocks, weights)
    step = max(1, NUMBERS_AT_ONCE // len(sample))
    parts = [suspects[begin : begin + step] for begin in range(0, len(suspects), step)]
    middles = [
        np.quantile(sample[:, part], MIDDLE, axis=0, method="inverted_cdf", weights=w)
        for part in parts
    ]
    below, above = np.hstack(middles).astype(np.float64)
    with np.errstate(over="ignore"):
        width = above - below
        flattened = (width > 0) & (deviation[suspects] > FLATTENED * width)
    if not flattened.any():
        return None
    limits = np.full((2, blocks.n_columns), [[-np.inf], [np.inf]])
    columns = suspects[flattened]
    limits[0, columns] = (below - CLIPPED_AT * width)[flattened]
    limits[1, columns] = (above + CLIPPED_AT * width)[flattened]
    return limits[0], limits[1]


def _are_rare_indicators(
    clip: tuple[FloatArray, FloatArray], sizes: FloatArray
) -> NDArray[np.bool_]:
    """Which clipped columns are nearly zero in most rows, and of ordinary size in the others."""
    low, high = (np.where(np.isfinite(limit), limit, 0.0) for limit in clip)
    middle = np.abs(low + high) / 2 + (high - low) / (2 + 4 * CLIPPED_AT)
    return np.asarray((middle <= NEARLY_ZERO) & (sizes <= LARGEST_INDICATOR))


def _sparse_clip(
    blocks: RowBlocks, weights: FloatArray | None, scaling: Scaling
) -> tuple[FloatArray, FloatArray] | None:
    """Limits of sparse columns that outliers would flatten, from the sizes of other entries."""
    _, deviation = scaling.moments
    entries, logs = np.sum(blocks.each(_entries_and_logs, among=weights), axis=0)
    # A few huge entries hardly move the geometric mean, but raise the deviation above it.
    is_suspect = deviation > np.exp(logs / np.maximum(entries, 1))
    suspects = np.flatnonzero(is_suspect & (entries >= LEAST_ENTRIES))
    limits = np.full((2, blocks.n_columns), [[-np.inf], [np.inf]])
    if len(suspects) == 0:
        return None
    found = blocks.each(partial(_sizes_of_entries, columns=suspects), among=weights)
    for k, column in enumerate(suspects):
        sizes = np.concatenate([of_block[k] for of_block in found])
        usual = float(np.quantile(sizes, MIDDLE[1], method="inverted_cdf"))
        if deviation[column] > FLATTENED * usual:
            limits[:, column] = -CLIPPED_AT * usual, CLIPPED_AT * usual
    return (limits[0], limits[1]) if np.isfinite(limits).any() else None


def _entries_and_logs(X: Rows) -> tuple[FloatArray, FloatArray]:
    """Count the entries of sparse columns, and add up the logarithms of their sizes."""
    with np.errstate(divide="ignore"):
        logs = np.bincount(X.indices, np.log(np.abs(X.data)), minlength=X.shape[1])
    entries = np.bincount(X.indices, minlength=X.shape[1]).astype(np.float64)
    return entries, np.asarray(logs, dtype=np.float64)


def _sizes_of_entries(X: Rows, *, columns: NDArray[np.intp]) -> list[FloatArray]:
    """Sizes of all entries of some sparse columns."""
    some = X[:, columns].tocsc()
    return np.split(np.abs(some.data), some.indptr[1:-1])


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
