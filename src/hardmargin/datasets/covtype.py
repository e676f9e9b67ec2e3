"""Forest cover type, one class against the rest, on the one split that all measurements share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .folder import load_folder

__all__ = ["load_covtype_binary"]

N_TEST = 50_000


def load_covtype_binary(
    data_dir: str | Path, n_train: int, *, scale: bool = False, positive: int = 2
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Read ``covtype``, one class (label 1) against the rest (label -1).

    The rows are permuted by ``numpy.random.default_rng(0)``; the first `n_train` are the training
    rows, the last 50,000 the test rows.

    Parameters
    ----------
    data_dir : str or Path
        The folder that holds ``covtype.npz``.
    n_train : int
        Number of training rows.
    scale : bool, default=False
        Whether to map every column to [0, 1] by its range over all rows.
    positive : int, default=2
        The class to label 1, from 1 to 7; the papers use 2, about half of the rows.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        Features in float64, labels -1 and 1.

    Examples
    --------
    >>> X_train, y_train, X_test, y_test = load_covtype_binary(
    ...     "data", n_train=40_000, scale=True
    ... )  # doctest: +SKIP
    """
    data = load_folder("covtype", data_dir)
    n_rows = len(data.y)
    if not 1 <= n_train <= n_rows - N_TEST:
        raise ValueError(
            f"n_train={n_train} must lie between 1 and {n_rows - N_TEST}: "
            f"{n_rows} rows less the {N_TEST} test rows"
        )
    order = np.random.default_rng(0).permutation(n_rows)
    train, test = order[:n_train], order[-N_TEST:]
    X, y = np.asarray(data.X), np.where(data.y == positive, 1, -1)
    X_train, X_test = X[train].astype(np.float64), X[test].astype(np.float64)
    if scale:
        low = X.min(axis=0)
        width = np.maximum(X.max(axis=0) - low, 1)
        X_train, X_test = (X_train - low) / width, (X_test - low) / width
    return X_train, y[train], X_test, y[test]
