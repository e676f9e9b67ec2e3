"""Rows: dense arrays or CSR matrices, and how the compiled core takes them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin import _core

Rows: TypeAlias = Any  # a dense array or a CSR matrix of float32 or float64
Precision: TypeAlias = Literal["float32", "float64"]
FloatArray: TypeAlias = NDArray[np.float64]


def as_core_matrix(X: Rows) -> _core.Matrix:
    """Rows as the compiled core takes them."""
    if not is_sparse(X):
        array: NDArray[Any] = X
        return array
    if X.format != "csr":
        raise TypeError(f"Sparse rows must be in CSR format, got {X.format!r}; use X.tocsr().")
    X = canonical(X)
    indices = X.indices.astype(np.int32, copy=False)
    return X.data, indices, X.indptr.astype(np.int64, copy=False), X.shape[1]


def is_sparse(X: Rows) -> bool:
    """Whether rows are a scipy sparse matrix or array."""
    return bool(sp.issparse(X))


def canonical(X: Rows) -> Rows:
    """Sparse rows with every entry stored once, their indices checked; dense ones as they are."""
    if not is_sparse(X):
        return X
    X.check_format(full_check=True)  # the compiled core relies on it
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def dense(X: Rows) -> NDArray[Any]:
    """Rows, or a block of values, as a dense array."""
    return np.asarray(X.toarray() if is_sparse(X) else X)
