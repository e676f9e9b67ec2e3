"""Columns of a kernel matrix that several machines share.

Solvers use a few columns again and again, for one class after another. :class:`KernelColumns` keeps
as many of them as its memory holds, and evaluates the others each time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Kernel, Precision, Rows, is_sparse
from hardmargin.kernels.kernel import in_precision
from hardmargin.resources import each_block, mapped_array

#: Columns evaluated at once, so that Ctrl-C can interrupt in between.
_COLUMNS_AT_ONCE = 256

#: The compiled core reads columns in cache lines: of this many bytes, and of this many rows.
_LINE_BYTES, ROWS_PER_CACHE_LINE = 64, 16

#: Rows that a thread adds up at a time.
_ROWS_AT_ONCE = 16_384

#: Rows that a core set may have, however small the memory.
_LEAST_ROOM = 64

#: Rows of this part of the memory are packed at a time.
PACKED_PART = 8


@dataclass
class _Store:
    """What tasks share: columns, where each of them is, and matrices that they use in turn."""

    values: NDArray[Any]
    slots: NDArray[np.int64]
    n_used: int = 0
    spare: list[NDArray[Any]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)


class KernelColumns:
    """Columns of the kernel matrix of X, kept as the memory allows.

    Parameters
    ----------
    kernel : Kernel
        Any symmetric kernel.
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    dtype : {"float32", "float64"}
        Precision of the values; sums are float64.
    memory_bytes : int
        Memory for the columns that are kept.
    n_jobs : int, optional
        Threads that evaluate columns.

    Attributes
    ----------
    diagonal : (n_rows,) array
        The values ``k(x, x)``.
    is_kept : (n_rows,) bool array
        Whether this task has kept each column.
    n_evaluations : int
        Kernel values evaluated, for columns that are kept and for others.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels.columns import KernelColumns
    >>> from hardmargin.kernels import Kernel
    >>> columns = KernelColumns(Kernel("linear"), np.array([[1.0], [2.0], [3.0]]))
    >>> values, slots, places = columns.keep(np.array([2]), np.array([0, 1]))
    >>> values[slots, places]
    array([3., 6.])
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
        # A copy of a row, and as the compiled core packs it.
        number_bytes = np.dtype(dtype).itemsize
        if is_sparse(X):  # every entry has the number of its column
            entry_bytes = X.data.itemsize + number_bytes + 2 * X.indices.itemsize
            self._row_bytes = X.nnz * entry_bytes // max(self.n_rows, 1)
        else:
            self._row_bytes = int(X.shape[1]) * (X.itemsize + number_bytes)
        if kernel.name == "precomputed":
            self._row_bytes = 0
        self._rows_at_once = max(
            memory_bytes // PACKED_PART // max(self._row_bytes, 1), _LEAST_ROOM
        )
        if kernel.name == "callable":  # which packs no rows
            self._rows_at_once = max(self.n_rows, 1)
        stride = -(-self.n_rows // ROWS_PER_CACHE_LINE) * ROWS_PER_CACHE_LINE
        column_bytes = stride * np.dtype(dtype).itemsize
        room = min(memory_bytes // column_bytes, self.n_rows)
        # Columns begin on cache lines. Memory that is not written to is not used.
        raw = np.zeros(room * column_bytes + _LINE_BYTES, dtype=np.uint8)
        raw = raw[-raw.ctypes.data % _LINE_BYTES :][: room * column_bytes]
        self._store = _Store(
            raw.view(dtype).reshape(room, stride), np.full(self.n_rows, -1, dtype=np.int64)
        )
        self.is_kept = np.zeros(self.n_rows, dtype=bool)
        self.n_evaluations = 0

    def for_tasks(self, n_tasks: int, core_bytes: int) -> tuple[list[Self], int]:
        """Return the same columns for several tasks, and how many of these may run at once.

        The tasks share memory, and no kept column is evaluated twice. But a task sees only columns
        that it has kept itself, so that its results do not depend on what others have kept so far.

        Parameters
        ----------
        n_tasks : int
            Number of tasks.
        core_bytes : int
            Memory for their core sets. If it may be too small for core sets of all rows, or not all
            columns can be kept, the memory of one task would depend on the tasks that run at the
            same time, so they run in turn.
        """
        at_once = 1
        if len(self._store.values) == self.n_rows:
            item_bytes = np.dtype(self.dtype).itemsize
            whole = self.n_rows * (self.n_rows + ROWS_PER_CACHE_LINE) * item_bytes
            at_once = max(1, min(effective_n_jobs(self.n_jobs), n_tasks, core_bytes // whole))
        tasks = [copy.copy(self) for _ in range(n_tasks)]
        for task in tasks:
            task.is_kept = np.zeros(self.n_rows, dtype=bool)
            task.n_evaluations = 0
            task.n_jobs = self.n_jobs if at_once == 1 else 1
        return tasks, at_once

    def keep(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Keep the kernel values of some rows, as far as there is room, and look some of them up.

        Returns
        -------
        values, slots, places : arrays
            The kernel of rows[i] and columns[j] is ``values[slots[i], places[j]]``.
        """
        chosen = rows[~self.is_kept[rows]]
        store = self._store
        with store.lock:
            new = chosen[store.slots[chosen] < 0][: len(store.values) - store.n_used]
            for begin in range(0, len(new), _COLUMNS_AT_ONCE):
                part = new[begin : begin + _COLUMNS_AT_ONCE]
                end = store.n_used + len(part)
                out = store.values[store.n_used : end, : self.n_rows]
                if self.kernel.name == "precomputed":
                    out[:] = in_precision(self.X[:, part].T, out.dtype)
                else:
                    queries = self.X[part]
                    # With as many rows at a time as may be packed.
                    for first in range(0, self.n_rows, self._rows_at_once):
                        some = slice(first, first + self._rows_at_once)
                        self.kernel.block(
                            queries, self.X[some], out=out[:, some], n_jobs=self.n_jobs
                        )
                store.slots[part] = np.arange(store.n_used, end)
                store.n_used = end
            kept = chosen[store.slots[chosen] >= 0]
        self.is_kept[kept] = True
        self.n_evaluations += len(kept) * self.n_rows
        if self.is_kept[rows].all():
            return store.values, store.slots[rows], columns
        self.n_evaluations += len(rows) * len(columns)
        if self.kernel.name == "precomputed":
            block = self.X[np.ix_(rows, columns)]
        else:
            block = self.kernel.block(
                self.X[rows], self.X[columns], dtype=self.dtype, n_jobs=self.n_jobs
            )
        values = np.ascontiguousarray(in_precision(block, self.dtype))
        return values, np.arange(len(rows)), np.arange(len(columns))

    @contextmanager
    def workspace(self, n_rows: int, memory_bytes: int) -> Iterator[NDArray[Any]]:
        """Lend a matrix for values between `n_rows` rows, or as many as fit with their copies.

        It has a few more columns, and holds old values. Machines use it in turn, as fresh memory is
        slow; memory is only used where they write.
        """
        # The larger root of item * size**2 + row * size = memory.
        item, row = np.dtype(self.dtype).itemsize, self._row_bytes
        size = int((np.sqrt(row**2 + 4.0 * item * memory_bytes) - row) / (2 * item))
        size = min(max(size, _LEAST_ROOM), n_rows)
        store = self._store
        with store.lock:
            fitting = [i for i, matrix in enumerate(store.spare) if len(matrix) >= size]
            matrix = store.spare.pop(fitting[0]) if fitting else None
        if matrix is None:
            stride = -(-size // ROWS_PER_CACHE_LINE) * ROWS_PER_CACHE_LINE
            matrix = mapped_array((stride, stride), self.dtype)
        try:
            yield matrix[:size]
        finally:
            with store.lock:
                store.spare.append(matrix)

    def bytes_of_core_set(self, n_rows: int) -> int:
        """Memory that a workspace for this many rows takes, with copies of them."""
        values = (n_rows + 1) ** 2 * np.dtype(self.dtype).itemsize
        return int(values + (n_rows + 1) * self._row_bytes)

    def product(
        self, columns: ArrayLike, coef: ArrayLike, rows: NDArray[np.int64] | None = None
    ) -> FloatArray:
        """``K[rows][:, columns] @ coef``; all rows by default."""
        columns = np.asarray(columns, dtype=np.int64)
        right = np.asarray(coef, dtype=np.float64)
        is_kept = self.is_kept[columns]
        sums = np.zeros(self.n_rows if rows is None else len(rows))
        if is_kept.any():
            is_single = self.dtype == "float32"
            add = _core.sum_columns_float32 if is_single else _core.sum_columns_float64
            values, slots = self._store.values, self._store.slots[columns[is_kept]]
            kept_right = right[is_kept]
            if rows is None and self.n_rows > _ROWS_AT_ONCE:
                each_block(
                    lambda part: add(values[:, part], slots, kept_right, None, sums[part]),
                    self.n_rows,
                    _ROWS_AT_ONCE,
                    n_jobs=self.n_jobs,
                    work=len(slots) * self.n_rows,
                )
            else:
                add(values, slots, kept_right, rows, sums)
        if not is_kept.all():
            sums += self._evaluated(columns[~is_kept], right[~is_kept], rows)
        return sums

    def _evaluated(
        self, columns: NDArray[np.int64], coef: FloatArray, rows: NDArray[np.int64] | None
    ) -> FloatArray:
        """Multiply with columns that are not kept."""
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
