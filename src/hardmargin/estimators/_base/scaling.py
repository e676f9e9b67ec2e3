"""Scaling the features before the kernel sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray, Rows, is_sparse

#: The middle of a column: what lies between these quantiles.
MIDDLE = (0.1, 0.9)

#: The most rows that quantiles are taken of.
ROWS_FOR_QUANTILES = 20_000

#: Outliers flatten a column if its standard deviation is this many times the width of its middle.
FLATTENED = 30.0

#: Sparse columns of fewer entries are left as they are.
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
        Powers of two that features are multiplied by then; None where all are zero.
    scaler : StandardScaler
        What shifts and scales the rest.
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
        return self.scaler.transform(_times_powers(X, self.exponents))

    @property
    def is_identity(self) -> bool:
        """Whether distances between rows stay as they are."""
        is_plain = self.exponents is None and self.clip is None
        return is_plain and bool((self.scaler.scale_ == 1).all())


class StandardizeMixin:
    """Features of mean 0 and variance 1 where ``standardize`` asks for it; sparse ones unshifted.

    Columns that take two values get a step of 1 instead, as indicators have. At variance 1 a rare
    indicator would outweigh all other features, and columns of unequal steps can not be packed as
    bits. Columns that a few huge values would flatten are clipped, with a warning.
    """

    standardize: bool | str
    kernel: Any

    def _standardizes(self) -> bool:
        return bool(self.standardize) and self.kernel != "precomputed"

    def _fit_scaling(self, X: Rows, sample_weight: FloatArray | None) -> Rows:
        self._scaling_: Scaling | None = None
        if not self._standardizes():
            return X
        if not is_sparse(X):
            X = np.ascontiguousarray(X)  # sums of columns in another order would round otherwise
        scaling = fit_scaling(X, sample_weight)
        if scaling.clip is not None:
            columns = np.flatnonzero(np.isfinite(scaling.clip[0]))
            names = getattr(self, "feature_names_in_", np.arange(X.shape[1]))[columns]
            warn_caller(
                f"Some values of {_listed(names)} are so large that all others would look the "
                "same once standardised; they are clipped. Are they right? To keep them, scale "
                "the features yourself and set standardize=False.",
                UserWarning,
            )
        self._scaling_ = scaling
        return scaling.transform(X)

    def _scaled(self, X: Rows) -> Rows:
        return X if self._scaling_ is None else self._scaling_.transform(X)


def fit_scaling(X: Rows, sample_weight: FloatArray | None = None) -> Scaling:
    """Settle how features are scaled; rows of weight zero have no say.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    sample_weight : (n,) array, optional
        Weights of the rows.
    """
    seen, weights = X, sample_weight
    if sample_weight is not None and not sample_weight.all():
        seen, weights = X[sample_weight > 0], sample_weight[sample_weight > 0]
    low, high = _range_of_columns(seen)
    exponents = _exponents(low, high, X.dtype)
    scaler = _fit_scaler(_times_powers(seen, exponents), weights)
    mean, deviation = _moments(scaler, exponents)
    if is_sparse(X):
        clip = _sparse_clip(seen, deviation)
    else:
        clip = _clip(seen, weights, low, high, mean, deviation)
    if clip is not None:
        seen = _clipped(seen, clip)
        low, high = np.clip(low, *clip), np.clip(high, *clip)
        exponents = _exponents(low, high, X.dtype)
        scaler = _fit_scaler(_times_powers(seen, exponents), weights)
    two_valued = _is_two_valued(seen, low, high)
    step = high - low if exponents is None else np.ldexp(high, exponents) - np.ldexp(low, exponents)
    scaler.scale_[two_valued] = step[two_valued]
    return Scaling(clip, exponents, scaler)


def _fit_scaler(X: Rows, weights: FloatArray | None) -> StandardScaler:
    scaler = StandardScaler(with_mean=not is_sparse(X))
    with np.errstate(over="ignore", invalid="ignore"):
        scaler.fit(X, sample_weight=weights)
    if not np.isfinite(scaler.var_).all():
        raise ValueError(
            "standardize=True can not hold sums over sample weights as large as these; scale them "
            "down, or use standardize=False."
        )
    return scaler


def _exponents(low: FloatArray, high: FloatArray, dtype: Any) -> NDArray[np.int64] | None:
    """Powers of two that bring columns of extreme size to about one."""
    sizes, largest = np.maximum(np.abs(low), np.abs(high)), LARGEST_SIZE[dtype]
    extreme = (sizes > 0) & ((sizes < 1 / largest) | (sizes > largest))
    if not extreme.any():
        return None
    return np.where(extreme, -np.frexp(sizes)[1], 0).astype(np.int64)


def _moments(
    scaler: StandardScaler, exponents: NDArray[np.int64] | None
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of the features as they came."""
    moments = scaler.mean_, np.sqrt(scaler.var_)
    if exponents is None:
        return moments
    return np.ldexp(moments[0], -exponents), np.ldexp(moments[1], -exponents)


def _times_powers(X: Rows, exponents: NDArray[np.int64] | None) -> Rows:
    if exponents is None:
        return X
    if is_sparse(X):
        scaled = X.copy()
        scaled.data = np.ldexp(X.data, exponents[X.indices])
        return scaled
    return np.ldexp(X, exponents)


def _clip(
    X: Rows,
    weights: FloatArray | None,
    low: FloatArray,
    high: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Limits of the columns that outliers would flatten; infinite for the others."""
    # Less than a fifth of the rows makes nearly all of the variance: one of them is this far off.
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


def _sparse_clip(X: Rows, deviation: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Limits of sparse columns that outliers would flatten, by the size of their other entries."""
    entries = np.bincount(X.indices, minlength=X.shape[1])
    with np.errstate(divide="ignore"):
        logs = np.bincount(X.indices, np.log(np.abs(X.data)), minlength=X.shape[1])
    # A few huge entries move the geometric mean little, and the deviation above it.
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


def _listed(names: NDArray[Any], at_most: int = 5) -> str:
    shown = ", ".join(str(name) for name in names[:at_most])
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"


def _range_of_columns(X: Rows) -> tuple[FloatArray, FloatArray]:
    low, high = X.min(axis=0), X.max(axis=0)
    if is_sparse(X):
        low, high = low.toarray(), high.toarray()
    return np.asarray(low, dtype=np.float64).ravel(), np.asarray(high, dtype=np.float64).ravel()


def _is_two_valued(X: Rows, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    """Which columns hold nothing but their least and their largest value, and these differ."""
    two_valued = low < high
    if is_sparse(X):
        inner = (X.data != low[X.indices]) & (X.data != high[X.indices])
        two_valued[X.indices[inner]] = False
        has_zeros = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
        two_valued[has_zeros & (low != 0) & (high != 0)] = False
        return two_valued
    step = max(1, 1_000_000 // X.shape[1])
    for begin in range(0, X.shape[0], step):
        among = np.flatnonzero(two_valued)
        part = X[begin : begin + step][:, among]
        two_valued[among] = ((part == low[among]) | (part == high[among])).all(axis=0)
    return two_valued
