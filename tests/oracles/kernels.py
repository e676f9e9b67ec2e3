"""Kernels and gamma rules by brute force: every pair of rows, in the widest float at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def wide(X: Any) -> NDArray[np.longdouble]:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.longdouble)


def kernel_matrix(kernel: Any, X: Any, Z: Any = None) -> NDArray[np.float64]:
    """Values of a kernel; only its name and its numbers are used."""
    rows, columns = wide(X), wide(X if Z is None else Z)
    name, gamma, degree, coef0 = kernel.name, kernel.gamma, kernel.degree, kernel.coef0
    values = np.empty((len(rows), len(columns)))
    for i, x in enumerate(rows):
        if name == "rbf":
            values[i] = np.exp(-gamma * ((x - columns) ** 2).sum(axis=1))
        elif name == "laplacian":
            values[i] = np.exp(-gamma * np.abs(x - columns).sum(axis=1))
        elif name in ("matern32", "matern52"):
            nu = 1.5 if name == "matern32" else 2.5
            s = np.sqrt(2 * nu * gamma * ((x - columns) ** 2).sum(axis=1))
            values[i] = (1 + s + (s**2 / 3 if nu == 2.5 else 0)) * np.exp(-s)
        elif name == "cosine":
            lengths = np.sqrt((x**2).sum() * (columns**2).sum(axis=1))
            values[i] = (x * columns).sum(axis=1) / np.where(lengths > 0, lengths, 1)
        elif name == "linear":
            values[i] = (x * columns).sum(axis=1)
        elif name == "poly":
            values[i] = (gamma * (x * columns).sum(axis=1) + coef0) ** degree
        elif name == "sigmoid":
            values[i] = np.tanh(gamma * (x * columns).sum(axis=1) + coef0)
        else:
            raise ValueError(name)
    return values


def gamma_rule(rule: str, X: Any, *, kernel: str = "rbf", sample_weight: Any = None) -> float:
    """1 / the mean width that the rule names, every mean weighted; 1 where the width is zero."""
    rows = wide(X)
    n, d = rows.shape
    if not np.ptp(rows, axis=None if rule == "scale" else 0).any():
        return 1.0
    w = wide(np.ones(n) if sample_weight is None else sample_weight)
    w = w / w.sum()
    power = 1 if kernel == "laplacian" and rule != "scale" else 2
    width = np.longdouble(0)
    for i in range(n):
        if rule == "scale":
            width += w[i] * ((rows[i] - (w @ rows).sum() / d) ** 2).sum()
        elif rule == "spread":
            width += w[i] * (np.abs(rows[i] - w @ rows) ** power).sum()
        else:
            for j in range(n):
                width += w[i] * w[j] * (np.abs(rows[i] - rows[j]) ** power).sum()
    return float(1 / width)
