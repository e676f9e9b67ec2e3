"""Keeps the planes that a solver passes, as long as they fit in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray

#: The planes of a machine are float64 up to this many bytes, and float32 beyond.
MAX_FLOAT64_BYTES = 2**26

#: Planes that are collapsed into landmarks at once: one pass over the factor serves them all.
_COLLAPSED_AT_ONCE = 16


class DensePlanes:
    """Planes of one machine, each a row of a matrix.

    Parameters
    ----------
    most_bytes : int
        Memory that they may take; if they need more, none is kept.
    collapse : callable, optional
        Turns planes, one per column, into the form in which they are kept.
    """

    def __init__(
        self, most_bytes: int, collapse: Callable[[FloatArray], FloatArray] | None = None
    ) -> None:
        self._most_bytes, self._collapse = most_bytes, collapse
        self._planes: list[NDArray[Any]] = []
        self._waiting: list[FloatArray] = []
        self._is_full = most_bytes <= 0

    def add(self, plane: FloatArray) -> None:
        """Keep a plane, while there is room."""
        if self._is_full:
            return
        self._waiting.append(plane)
        if self._collapse is None or len(self._waiting) == _COLLAPSED_AT_ONCE:
            self._keep()

    def matrix(self) -> NDArray[Any] | None:
        """Return all planes; None if they did not fit."""
        self._keep()
        return None if self._is_full else np.array(self._planes, dtype=self._planes[-1].dtype)

    def _keep(self) -> None:
        planes, self._waiting = self._waiting, []
        if self._collapse is not None and planes:
            planes = list(self._collapse(np.column_stack(planes)).T)
        for plane in planes:
            n_entries = (len(self._planes) + 1) * len(plane)
            dtype = np.dtype(np.float32 if 8 * n_entries > MAX_FLOAT64_BYTES else np.float64)
            if dtype.itemsize * n_entries > self._most_bytes:
                self._is_full = True
                self._planes.clear()
                return
            self._planes.append(plane.astype(dtype))


class SparsePlanes:
    """Planes of one machine without their small coefficients.

    Parameters
    ----------
    most_bytes : int
        Memory that they may take; if they need more, none is kept.
    smallest : float
        Coefficients up to this part of the plane's largest are left out.
    """

    def __init__(self, most_bytes: int, smallest: float) -> None:
        self._most_bytes, self._smallest = most_bytes, smallest
        self._dtype: type[np.floating[Any]] = np.float64
        self._n_entries = self._n_columns = 0
        self._columns: list[NDArray[np.int32]] = []
        self._values: list[NDArray[Any]] = []
        self._is_full = most_bytes <= 0

    def add(self, plane: FloatArray) -> None:
        """Keep a plane, while there is room."""
        if self._is_full:
            return
        kept = support(plane, self._smallest)
        self._n_entries += len(kept)
        self._n_columns = len(plane)
        if self._dtype is np.float64 and 12 * self._n_entries > MAX_FLOAT64_BYTES:
            self._dtype = np.float32
            self._values = [values.astype(np.float32) for values in self._values]
        if (4 + np.dtype(self._dtype).itemsize) * self._n_entries > self._most_bytes:
            self._is_full = True
            self._columns, self._values = [], []
            return
        self._columns.append(kept.astype(np.int32))
        self._values.append(plane[kept].astype(self._dtype))

    def matrix(self, n_planes: int) -> sp.csr_array | None:
        """Return the first planes; None if not all planes fitted."""
        if self._is_full:
            return None
        columns = self._columns[:n_planes]
        return sp.csr_array(
            (
                np.concatenate(self._values[:n_planes]),
                np.concatenate(columns),
                np.cumsum([0, *map(len, columns)]),
            ),
            shape=(n_planes, self._n_columns),
        )


def support(coefficients: FloatArray, smallest: float) -> NDArray[np.intp]:
    """Find the coefficients above `smallest` times the largest, in absolute value."""
    sizes = np.abs(coefficients)
    return np.flatnonzero(sizes > smallest * sizes.max())
