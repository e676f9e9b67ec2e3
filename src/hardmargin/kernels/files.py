"""Rows in memory-mapped files, which the system reads when they are needed."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Smaller files are treated like rows in memory.
LEAST_FILE_BYTES = 2**24

#: Memory that a block of a file takes in float64. Temporary files of more are never small.
BLOCK_BYTES = 2**22


class _Temporary(mmap.mmap):
    """A temporary file, which rows are in to save memory."""


def is_large_file(X: Any) -> bool:
    """Whether rows are a large array that lives in a memory-mapped file."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2):
        return False
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    least = LEAST_FILE_BYTES
    if isinstance(base, _Temporary):
        least = min(least, BLOCK_BYTES)
    return isinstance(base, mmap.mmap) and X.nbytes > least


def temporary_rows(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make an array in a temporary file, which is gone when nothing refers to the array.

    The file is in the folder for temporary files (``TMPDIR``); an OSError says if it is full.
    """
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    with tempfile.TemporaryFile(prefix="hardmargin-") as file:
        if hasattr(os, "posix_fallocate"):
            # A hole in the file would end the process where the disk has no room for it.
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.truncate(n_bytes)
        return np.ndarray(shape, dtype, buffer=_Temporary(file.fileno(), n_bytes))


def some_rows(X: Any, rows: NDArray[Any], most_bytes: float = math.inf) -> Any:
    """Return some rows, by their numbers or a mask.

    Many rows of a file are in a file again, and so are dense rows of more than `most_bytes`.
    """
    most = BLOCK_BYTES if is_large_file(X) else most_bytes
    if not isinstance(X, np.ndarray) or X.nbytes <= most:
        return X[rows]
    chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
    shape = len(chosen), X.shape[1]
    if shape[0] * shape[1] * X.itemsize <= most:
        return X[chosen]
    out, step = temporary_rows(shape, X.dtype), rows_per_block(X)
    for begin in range(0, shape[0], step):
        out[begin : begin + step] = X[chosen[begin : begin + step]]
    return out


def rows_per_block(X: Any) -> int:
    """Return how many rows of a file are looked at together."""
    return max(1, BLOCK_BYTES // (8 * int(X.shape[1])))
