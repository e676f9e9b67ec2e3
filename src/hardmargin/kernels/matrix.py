"""The kernel matrix of a set of rows, as something to multiply by.

Solvers that touch every multiplier at every stage need one product with the whole kernel matrix per
stage, and nothing else. A :class:`StoredMatrix` holds the matrix, a :class:`StreamedMatrix`
evaluates it again for every product where it would not fit into memory; ``low_rank.py`` has a third
kind, which approximates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from hardmargin.kernels import Check, FloatArray, Kernel, KernelRows, Precision, Rows, is_sparse
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.kernel import in_precision
from hardmargin.monitor import Monitor, Stopped
from hardmargin.resources import multiply

#: Smaller multipliers would be subnormal in float32: subnormals are slow and change no sum.
_SMALLEST_FLOAT32 = 1e-30

#: Rows that are copied together, however small the memory.
_LEAST_AT_ONCE = 64


class KernelMatrix(Protocol):
    """What the solvers need from a kernel matrix."""

    @property
    def n_rows(self) -> int:
        """Number of rows, and of columns."""

    @property
    def diagonal(self) -> FloatArray:
        """The values ``k(x, x)``."""

    def product(self, V: FloatArray) -> FloatArray:
        """Multiply with a vector, or with the columns of a matrix; may raise ``Stopped``."""


@dataclass(frozen=True)
class StoredMatrix:
    """A symmetric kernel matrix in memory, in either precision.

    Attributes
    ----------
    values : (n, n) array
        The matrix.
    n_jobs : int or None
        Threads that multiply with several vectors at a time. A product with one vector uses a
        single thread: it reads each value once, for both triangles, and would be slower if split.
    """

    values: NDArray[Any]
    n_jobs: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def diagonal(self) -> FloatArray:
        """The values ``k(x, x)``."""
        return np.asarray(self.values.diagonal(), dtype=np.float64)

    def product(self, V: FloatArray) -> FloatArray:
        """Multiply with a vector (reading one triangle only) or with the columns of a matrix."""
        right = as_precision(V, self.values.dtype)
        if right.ndim == 1 or right.shape[1] == 1:
            symv = blas.ssymv if self.values.dtype == np.float32 else blas.dsymv
            # The transpose of a symmetric matrix in C order is itself in BLAS's order.
            product = symv(1.0, self.values.T, right.ravel()).reshape(right.shape)
        else:
            product = multiply(self.values, right, n_jobs=self.n_jobs)
        return np.asarray(product, dtype=np.float64)


@dataclass(frozen=True)
class DenseKernel:
    """A kernel and its whole matrix, for solvers that read any part of it.

    Attributes
    ----------
    kernel : Kernel
        Any symmetric kernel.
    X : rows
        The rows, or the kernel matrix for a precomputed kernel.
    matrix : StoredMatrix
        The matrix between all of them, in float64.
    """

    kernel: Kernel
    X: Rows
    matrix: StoredMatrix


@dataclass(frozen=True)
class StreamedMatrix:
    """A kernel matrix that is never stored: its tiles are evaluated in every product.

    Attributes
    ----------
    kernel : Kernel
        Any kernel.
    X : rows
        The rows.
    dtype : {"float32", "float64"}
        Precision of the values.
    n_jobs : int or None
        Threads.
    check : callable or None
        Called now and then in every product; it may raise ``Stopped``.
    rows_at_once : int or None
        Columns of the matrix that are evaluated together, as the compiled core copies their rows;
        None for all.
    """

    kernel: Kernel
    X: Rows
    dtype: Precision = "float64"
    n_jobs: int | None = None
    check: Check | None = None
    rows_at_once: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def diagonal(self) -> FloatArray:
        """The values ``k(x, x)``."""
        return self.kernel.diagonal(self.X)

    def product(self, V: FloatArray) -> FloatArray:
        """Multiply with a vector or with the columns of a matrix."""
        step = min(self.rows_at_once or self.n_rows, self.n_rows)
        sums = self._product_with(slice(step), V)
        for begin in range(step, self.n_rows, step):
            sums += self._product_with(slice(begin, begin + step), V)
        return sums

    def _product_with(self, part: slice, V: FloatArray) -> FloatArray:
        """Multiply some columns of the matrix."""
        others = self.X if part == slice(self.n_rows) else self.X[part]
        return self.kernel.product(
            self.X, V[part], others, dtype=self.dtype, n_jobs=self.n_jobs, check=self.check
        )


def kernel_matrix(
    kernel: Kernel,
    X: Rows,
    rows: NDArray[Any] | None = None,
    *,
    dtype: Precision = "float64",
    memory_bytes: int = 2**30,
    n_jobs: int | None = None,
    monitor: Monitor | None = None,
) -> StoredMatrix | StreamedMatrix:
    """Make the kernel matrix of some rows of X, stored if the memory, and the time, allow it.

    Kernels whose values solvers cannot use are refused (``diagonal.py``).

    Parameters
    ----------
    kernel : Kernel
        Any kernel.
    X : rows
        Rows, or the whole kernel matrix for a precomputed kernel.
    rows : array of int, optional
        Indices of the rows; all by default.
    dtype : {"float32", "float64"}
        Precision of the values.
    memory_bytes : int
        Memory that the matrix may take; where it is not stored, half of it may be copies of rows.
        With 0 it is never stored, and there is no limit on copies.
    n_jobs : int, optional
        Threads that evaluate it and multiply with it.
    monitor : Monitor, optional
        If the time is up before the matrix is evaluated, it is not stored, and products with it
        raise ``Stopped``.
    """
    is_precomputed = kernel.name == "precomputed"
    chosen = X if rows is None else X[np.ix_(rows, rows)] if is_precomputed else X[rows]
    check_diagonal(kernel, chosen, dtype=dtype)
    if is_precomputed:
        values = np.asarray(in_precision(chosen, dtype), order="C")
        if not np.array_equal(values, values.T):
            values = (values + values.T) / 2
        return StoredMatrix(values, n_jobs)
    n = int(chosen.shape[0])
    check = None if monitor is None else monitor.check
    at_once = None
    if memory_bytes and not is_sparse(chosen) and kernel.name != "callable":
        row_bytes = int(chosen.shape[1]) * np.dtype(dtype).itemsize
        at_once = max(memory_bytes // 2 // row_bytes, _LEAST_AT_ONCE)
    streamed = StreamedMatrix(kernel, chosen, dtype, n_jobs, check, at_once)
    if n * n * np.dtype(dtype).itemsize > memory_bytes:
        return streamed
    try:
        values = kernel.block(chosen, dtype=dtype, n_jobs=n_jobs, check=check)
    except Stopped:
        return streamed
    return StoredMatrix(np.ascontiguousarray(in_precision(values, dtype)), n_jobs)


def dense_kernel(
    rows: KernelRows, *, n_jobs: int | None = None, monitor: Monitor | None = None
) -> DenseKernel | None:
    """Evaluate the whole matrix of a kernel, whatever the memory; None if there is no time for it.

    Parameters
    ----------
    rows : KernelRows
        The rows and the kernel.
    n_jobs : int, optional
        Threads that evaluate it.
    monitor : Monitor, optional
        Says how much time there is.
    """
    check_diagonal(rows.kernel, rows.X, squared=True, dtype=rows.dtype)
    n_bytes = 8 * int(rows.X.shape[0]) ** 2
    matrix = kernel_matrix(
        rows.kernel, rows.X, dtype=rows.dtype, memory_bytes=n_bytes, n_jobs=n_jobs, monitor=monitor
    )
    if not isinstance(matrix, StoredMatrix):
        return None
    values = np.asarray(matrix.values, dtype=np.float64)
    if not np.isfinite([values.min(), values.max()]).all():
        raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
    return DenseKernel(rows.kernel, rows.X, StoredMatrix(values))


def as_precision(V: FloatArray, dtype: Any) -> NDArray[Any]:
    """Return multipliers in the precision of the kernel values."""
    if dtype != np.float32:
        return V
    return np.where(np.abs(V) < _SMALLEST_FLOAT32, 0.0, V).astype(np.float32)
