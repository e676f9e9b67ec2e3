"""Columns of a kernel matrix that several machines share.

Solvers that look at a few columns again and again, for one class after another, have them evaluated
once: :class:`KernelColumns` keeps as many as its memory holds, and evaluates the others anew.
"""

from __future__ import annotations

from mmap import mmap
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Kernel, Precision, Rows

#: Columns evaluated at once, so that Ctrl-C is heard in between.
_COLUMNS_AT_ONCE = 256

#: The compiled core reads columns in multiples of so many rows.
_STRIDE = 16


class KernelColumns:
    """Columns of the kernel matrix of X, kept as the memory allows; threads may share one.

    Parameters
    ----------
    kernel : Kernel
        Any symmetric kernel.
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    dtype : {"float32", "float64"}
        Precision of the values; sums are float64.
    memory_bytes : int
        What the columns kept may take.
    n_jobs : int, optional
        Threads that evaluate columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernel_columns import KernelColumns
    >>> from hardmargin.kernels import Kernel
    >>> columns = KernelColumns(Kernel("linear"), np.array([[1.0], [2.0], [3.0]]))
    >>> columns.keep([2])
    >>> columns.product([1, 2], [1.0, 10.0])
    array([32., 64., 96.])
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        *,
        dtype: Precision = "float64",
        memory_bytes: int = 2**30,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.dtype: Precision = dtype
        self.n_jobs = n_jobs
        self.n_rows = int(X.shape[0])
        self.diagonal = kernel.diagonal(X)
        #: Columns kept, and kernel values evaluated so far.
        self.n_kept = 0
        self.n_evaluations = 0
        stride = -(-self.n_rows // _STRIDE) * _STRIDE
        room = memory_bytes // (stride * np.dtype(dtype).itemsize)
        # Memory that is not written to is not used.
        self._values = aligned_zeros((min(room, self.n_rows), stride), dtype)
        self._slots = np.full(self.n_rows, -1, dtype=np.int64)
        self._lock = Lock()
        self._spare: list[NDArray[Any]] = []

    def keep(self, indices: ArrayLike) -> None:
        """Evaluate columns that will be used more than once, if there is room for them."""
        chosen = np.asarray(indices, dtype=np.int64)
        with self._lock:
            new = chosen[self._slots[chosen] < 0][: len(self._values) - self.n_kept]
            for begin in range(0, len(new), _COLUMNS_AT_ONCE):
                part = new[begin : begin + _COLUMNS_AT_ONCE]
                end = self.n_kept + len(part)
                self._fill(self._values[self.n_kept : end, : self.n_rows], part)
                self._slots[part] = np.arange(self.n_kept, end)
                self.n_kept = end

    def located(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Kernel values of some rows against some columns.

        Returns
        -------
        values, slots, places : arrays
            The kernel of rows[i] and columns[j] is ``values[slots[i], places[j]]``.
        """
        slots = self._slots[rows]
        if (slots >= 0).all():
            return self._values, slots, columns
        self.n_evaluations += len(rows) * len(columns)
        if self.kernel.name == "precomputed":
            block = self.X[np.ix_(rows, columns)]
        else:
            block = self.kernel.block(
                self.X[rows], self.X[columns], dtype=self.dtype, n_jobs=self.n_jobs
            )
        values = np.ascontiguousarray(block, dtype=self.dtype)
        return values, np.arange(len(rows)), np.arange(len(columns))

    def borrow(self, size: int) -> NDArray[Any]:
        """Square matrix for a machine's own values, with what was there before.

        Machines use it in turns, as fresh memory is slow, and only what they write to takes any.
        """
        with self._lock:
            for i, matrix in enumerate(self._spare):
                if len(matrix) >= size:
                    return self._spare.pop(i)
        stride = -(-size // _STRIDE) * _STRIDE
        n_bytes = stride**2 * np.dtype(self.dtype).itemsize
        return np.frombuffer(mmap(-1, n_bytes), dtype=self.dtype).reshape(stride, stride)

    def give_back(self, matrix: NDArray[Any]) -> None:
        """Leave a matrix to the next machine."""
        with self._lock:
            self._spare.append(matrix)

    def product(
        self, columns: ArrayLike, coef: ArrayLike, rows: NDArray[np.int64] | None = None
    ) -> FloatArray:
        """``K[rows][:, columns] @ coef``; all rows by default."""
        columns = np.asarray(columns, dtype=np.int64)
        right = np.asarray(coef, dtype=np.float64)
        slots = self._slots[columns]
        is_kept = slots >= 0
        sums = np.zeros(self.n_rows if rows is None else len(rows))
        if is_kept.any():
            add = _core.sum_columns_float32
            if self.dtype == "float64":
                add = _core.sum_columns_float64
            add(self._values, slots[is_kept], right[is_kept], rows, sums)
        if not is_kept.all():
            sums += self._evaluated(columns[~is_kept], right[~is_kept], rows)
        return sums

    def _evaluated(
        self, columns: NDArray[np.int64], coef: FloatArray, rows: NDArray[np.int64] | None
    ) -> FloatArray:
        queries = self.X if rows is None else self.X[rows]
        self.n_evaluations += queries.shape[0] * len(columns)
        support = None
        if self.kernel.name == "precomputed":
            queries = queries[:, columns]
        else:
            support = self.X[columns]
        sums = self.kernel.expand(
            queries, support, coef[np.newaxis], dtype=self.dtype, n_jobs=self.n_jobs
        )
        return sums[:, 0]

    def _fill(self, out: NDArray[Any], indices: NDArray[np.int64]) -> None:
        self.n_evaluations += out.size
        if self.kernel.name == "precomputed":
            out[:] = self.X[:, indices].T
        else:
            self.kernel.block(self.X[indices], self.X, out=out, n_jobs=self.n_jobs)


def aligned_zeros(shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Make a matrix that begins on a cache line, as the compiled core needs it."""
    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + 64, dtype=np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + n_bytes].view(dtype).reshape(shape)
