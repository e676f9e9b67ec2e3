"""Columns of a kernel matrix that several machines share.

Solvers that look at a few columns again and again, for one class after another, have them evaluated
once: :class:`KernelColumns` keeps as many as its memory holds, and evaluates the others anew.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from mmap import mmap
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.memory import CORE_SHARE, tasks_at_once
from hardmargin.parallel import each_block

#: Columns evaluated at once, so that Ctrl-C is heard in between.
_COLUMNS_AT_ONCE = 256

#: The compiled core reads columns in multiples of so many rows.
_STRIDE = 16


#: Rows that a thread adds up at a time.
_ROWS_AT_ONCE = 16_384


class _Store:
    """Columns that several tasks share, and matrices that they use in turns."""

    def __init__(self, n_columns: int, n_rows: int, dtype: Precision) -> None:
        # Memory that is not written to is not used.
        self.values = aligned_zeros((n_columns, -(-n_rows // _STRIDE) * _STRIDE), dtype)
        self.slots = np.full(n_rows, -1, dtype=np.int64)
        self.n_used = 0
        self.spare: list[NDArray[Any]] = []
        self.lock = Lock()


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
        What the columns kept may take.
    n_jobs : int, optional
        Threads that evaluate columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels.columns import KernelColumns
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
        stride = -(-self.n_rows // _STRIDE) * _STRIDE
        room = memory_bytes // (stride * np.dtype(dtype).itemsize)
        self._store = _Store(min(room, self.n_rows), self.n_rows, dtype)
        self._begin()

    def _begin(self) -> None:
        #: Columns kept, and kernel values that this took or that were evaluated anew.
        self.n_kept = 0
        self.n_evaluations = 0
        #: The columns that each machine was the first of this task to keep.
        self.first_kept: list[list[NDArray[np.int64]]] = [[]]
        self._is_kept = np.zeros(self.n_rows, dtype=bool)

    def for_task(self) -> Self:
        """Return the same columns for one of several tasks, which may run at the same time.

        They share the memory, and no column is evaluated twice. But a task sees only columns that
        it has kept itself, so that its results do not depend on what others have kept so far.
        """
        task = copy.copy(self)
        task._begin()
        return task

    def begin_machine(self) -> None:
        """Note that the columns to come are another machine's."""
        self.first_kept.append([])

    def keep(self, indices: ArrayLike) -> None:
        """Evaluate columns that will be used more than once, if there is room for them."""
        chosen = np.asarray(indices, dtype=np.int64)
        chosen = chosen[~self._is_kept[chosen]]
        store = self._store
        with store.lock:
            new = chosen[store.slots[chosen] < 0][: len(store.values) - store.n_used]
            for begin in range(0, len(new), _COLUMNS_AT_ONCE):
                part = new[begin : begin + _COLUMNS_AT_ONCE]
                end = store.n_used + len(part)
                self._fill(store.values[store.n_used : end, : self.n_rows], part)
                store.slots[part] = np.arange(store.n_used, end)
                store.n_used = end
            kept = chosen[store.slots[chosen] >= 0]
        self._is_kept[kept] = True
        self.first_kept[-1].append(kept)
        self.n_kept += len(kept)
        self.n_evaluations += len(kept) * self.n_rows

    def located(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Kernel values of some rows against some columns.

        Returns
        -------
        values, slots, places : arrays
            The kernel of rows[i] and columns[j] is ``values[slots[i], places[j]]``.
        """
        if self._is_kept[rows].all():
            return self._store.values, self._store.slots[rows], columns
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
        with self._store.lock:
            for i, matrix in enumerate(self._store.spare):
                if len(matrix) >= size:
                    return self._store.spare.pop(i)
        stride = -(-size // _STRIDE) * _STRIDE
        n_bytes = stride**2 * np.dtype(self.dtype).itemsize
        return np.frombuffer(mmap(-1, n_bytes), dtype=self.dtype).reshape(stride, stride)

    def give_back(self, matrix: NDArray[Any]) -> None:
        """Leave a matrix to the next machine."""
        with self._store.lock:
            self._store.spare.append(matrix)

    def product(
        self, columns: ArrayLike, coef: ArrayLike, rows: NDArray[np.int64] | None = None
    ) -> FloatArray:
        """``K[rows][:, columns] @ coef``; all rows by default."""
        columns = np.asarray(columns, dtype=np.int64)
        right = np.asarray(coef, dtype=np.float64)
        is_kept = self._is_kept[columns]
        sums = np.zeros(self.n_rows if rows is None else len(rows))
        if is_kept.any():
            self._add_kept(columns[is_kept], right[is_kept], rows, sums)
        if not is_kept.all():
            sums += self._evaluated(columns[~is_kept], right[~is_kept], rows)
        return sums

    def _add_kept(
        self,
        columns: NDArray[np.int64],
        coef: FloatArray,
        rows: NDArray[np.int64] | None,
        sums: FloatArray,
    ) -> None:
        add = _core.sum_columns_float64
        if self.dtype == "float32":
            add = _core.sum_columns_float32
        values, slots = self._store.values, self._store.slots[columns]
        if rows is not None:
            add(values, slots, coef, rows, sums)
            return

        def add_up(part: slice) -> None:
            add(values[:, part], slots, coef, None, sums[part])

        work = len(columns) * self.n_rows
        each_block(add_up, self.n_rows, _ROWS_AT_ONCE, n_jobs=self.n_jobs, work=work)

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
        if self.kernel.name == "precomputed":
            out[:] = self.X[:, indices].T
        else:
            self.kernel.block(self.X[indices], self.X, out=out, n_jobs=self.n_jobs)


def core_sets_at_once(
    n_threads: int, n_tasks: int, n_rows: int, dtype: Precision, memory_bytes: int
) -> int:
    """How many core sets may be solved at once, on columns that they share.

    Where the memory might be too short for all columns, or for a core set of all rows, what one
    task has would depend on what the others have at the same time: then they run in turn.
    """
    whole = n_rows * (n_rows + _STRIDE) * np.dtype(dtype).itemsize
    return tasks_at_once(n_threads, n_tasks, whole, int(CORE_SHARE * memory_bytes))


def shared_evaluations(tasks: Sequence[KernelColumns]) -> list[list[int]]:
    """Kernel values that machines had from those of earlier tasks, had these run in turn.

    Parameters
    ----------
    tasks : sequence of KernelColumns
        What `for_task` gave to each task.

    Returns
    -------
    list of list of int
        For each task, how many values each of its machines counts that an earlier task counts too.
    """
    is_there = np.zeros(tasks[0].n_rows, dtype=bool)
    shared = []
    for task in tasks:
        counts = [sum(int(is_there[kept].sum()) for kept in m) for m in task.first_kept[1:]]
        shared.append([n * task.n_rows for n in counts])
        is_there |= task._is_kept
    return shared


def aligned_zeros(shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Make a matrix that begins on a cache line, as the compiled core needs it."""
    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + 64, dtype=np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + n_bytes].view(dtype).reshape(shape)
