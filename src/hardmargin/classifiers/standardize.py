"""Scaling the features before the kernel sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from hardmargin.kernels import FloatArray, Rows, is_sparse


class StandardizeMixin:
    """Features of mean 0 and variance 1 where ``standardize`` asks for it; sparse ones unshifted.

    Columns that take two values get a step of 1 instead, as indicators have. At variance 1 a rare
    indicator would outweigh all other features, and columns of unequal steps can not be packed as
    bits.
    """

    standardize: bool | str
    kernel: Any

    def _standardizes(self) -> bool:
        return bool(self.standardize) and self.kernel != "precomputed"

    def _fit_scaling(self, X: Rows, sample_weight: FloatArray | None) -> Rows:
        self._scaler_ = None
        if not self._standardizes():
            return X
        scaler = StandardScaler(with_mean=not is_sparse(X))
        with np.errstate(over="ignore", invalid="ignore"):
            scaler.fit(X, sample_weight=sample_weight)
        if not np.isfinite(scaler.var_).all():
            raise ValueError(
                "standardize=True can not hold the squares of features, or sample weights, as "
                "large as these; scale them, or use standardize=False."
            )
        seen = X if sample_weight is None else X[sample_weight > 0]
        low, high = _range_of_columns(seen)
        two_valued = _is_two_valued(seen, low, high)
        scaler.scale_[two_valued] = (high - low)[two_valued]
        self._scaler_ = scaler
        return scaler.transform(X)

    def _scaled(self, X: Rows) -> Rows:
        return X if self._scaler_ is None else self._scaler_.transform(X)


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
