"""Rules for the width of a kernel: gamma as a number, from the rows that the kernel will see."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels.rows import FloatArray, Rows, canonical, is_sparse

GAMMA_RULES = ("scale", "spread", "pairwise")


def resolve_gamma(
    gamma: float | str,
    X: Rows,
    *,
    kernel: str = "rbf",
    sample_weight: FloatArray | None = None,
) -> float:
    """Turn a rule for gamma into a number.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}
        ``"scale"`` is scikit-learn's 1 / (n_features * X.var()); ``"spread"`` 1 / mean squared
        distance to the mean; ``"pairwise"`` 1 / mean squared distance between all ordered pairs of
        rows. For the Laplacian kernel the last two take L1 distances in place of squared ones.
        Where all rows are equal every rule gives 1.
    X : rows
        What the kernel sees; sparse rows stay sparse.
    sample_weight : array, optional
        Weights of the rows in all means.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma not in GAMMA_RULES:
        raise ValueError(f"gamma must be a positive number or one of {GAMMA_RULES}, got {gamma!r}.")
    X = canonical(X)
    w = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    with np.errstate(over="ignore", invalid="ignore"):
        width, rounding = _width(gamma, X, w / w.sum(), kernel)
    if not np.isfinite(width):
        raise ValueError(
            f"gamma={gamma!r} has no value for features so large ({_largest(X):.2g}); scale them, "
            "or give a number."
        )
    # What rounding leaves of the width of equal rows is none.
    return float(min(1.0 / width, 1e308)) if width > X.shape[1] * rounding else 1.0


def _width(gamma: str, X: Rows, w: FloatArray, kernel: str) -> tuple[float, float]:
    """Return what a rule divides by, and what rounding may leave of it."""
    mean = np.asarray(w @ X, dtype=np.float64).ravel()
    rounding = 1e-14 * float(np.abs(mean).max(initial=0.0))
    if gamma == "scale":
        return X.shape[1] * _variance_of_entries(X, w, mean), rounding * rounding
    if kernel == "laplacian":
        measure = _mean_absolute_deviation if gamma == "spread" else _mean_absolute_difference
        return sum(measure(*_column(X, k), w) for k in range(X.shape[1])), rounding
    times = 1 if gamma == "spread" else 2
    return float(_variance_of_columns(X, w, mean).sum()) * times, rounding * rounding


def _largest(X: Rows) -> float:
    values = X.data if is_sparse(X) else X
    return float(np.abs(values).max(initial=0.0))


def _variance_of_columns(X: Rows, w: FloatArray, mean: FloatArray) -> FloatArray:
    if is_sparse(X):
        return _sparse_variance(X, w, mean)
    variance = np.zeros(X.shape[1])
    step = max(1, 1_000_000 // X.shape[1])
    for begin in range(0, X.shape[0], step):
        part = slice(begin, begin + step)
        variance += w[part] @ (X[part] - mean) ** 2
    return variance


def _sparse_variance(X: Rows, w: FloatArray, mean: FloatArray) -> FloatArray:
    n, d = X.shape
    weight = np.repeat(w, np.diff(X.indptr))
    stored = np.bincount(X.indices, weights=weight * (X.data - mean[X.indices]) ** 2, minlength=d)
    is_full = np.bincount(X.indices, minlength=d) == n
    rest = np.where(is_full, 0.0, 1.0 - np.bincount(X.indices, weights=weight, minlength=d))
    return stored + np.maximum(rest, 0.0) * mean**2


def _variance_of_entries(X: Rows, w: FloatArray, mean: FloatArray) -> float:
    between = ((mean - mean.mean()) ** 2).mean()
    return float(_variance_of_columns(X, w, mean).mean() + between)


def _column(X: Rows, k: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Values of a column that are stored, and their rows."""
    if not is_sparse(X):
        return np.asarray(X[:, k], dtype=np.float64), np.arange(X.shape[0])
    column = sp.csc_array(X[:, [k]])
    return np.asarray(column.data, dtype=np.float64), np.asarray(column.indices)


def _mean_absolute_deviation(values: FloatArray, rows: NDArray[np.intp], w: FloatArray) -> float:
    """Weighted mean of |x - mean x|; entries that are not stored are zero."""
    mean = w[rows] @ values
    rest = max(1.0 - w[rows].sum(), 0.0)
    return float(w[rows] @ np.abs(values - mean) + rest * abs(mean))


def _mean_absolute_difference(values: FloatArray, rows: NDArray[np.intp], w: FloatArray) -> float:
    """Weighted mean of |x_i - x_j| over all ordered pairs, from the sorted values."""
    rest = max(1.0 - w[rows].sum(), 0.0)
    x, v = np.append(values, 0.0), np.append(w[rows], rest)
    order = np.argsort(x)
    x, v = x[order], v[order]
    below = np.cumsum(v)[:-1]
    return float(2.0 * (below * (1.0 - below) * np.diff(x)).sum())
