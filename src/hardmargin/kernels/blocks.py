"""Rows that live in blocks: in memory, in a file, or on the workers of a cluster.

What is needed of all rows (ranges, moments, hashes) is found block by block, where the blocks are,
and merged. Other steps need some rows only, by their numbers. Files are memory-mapped, so that the
system reads their rows when they are needed.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

if TYPE_CHECKING:  # kernels need some of the rows
    from hardmargin.kernels.kernel import Rows

Result = TypeVar("Result")

#: Smaller files are treated like rows in memory.
LEAST_FILE_BYTES = 2**24

#: Numbers that are compared at a time.
_NUMBERS_AT_ONCE = 1_000_000

#: Memory that a block of a file takes in float64. Temporary files of more bytes are never small.
BLOCK_BYTES = 2**22


class RowBlocks(ABC):
    """Rows in blocks; none of them is empty.

    Attributes
    ----------
    starts : (n_blocks + 1,) int array
        The number of the first row of every block, and the number of all rows.
    n_columns : int
        Number of columns.
    dtype : dtype
        Type of the numbers.
    holds_sparse : bool
        Whether blocks are CSR matrices.
    """

    starts: NDArray[np.intp]
    n_columns: int
    dtype: np.dtype[Any]
    holds_sparse: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self.starts[-1]), self.n_columns

    @abstractmethod
    def each(
        self, function: Callable[..., Result], *per_row: Any, among: NDArray[Any] | None = None
    ) -> list[Result]:
        """Call a function with every block.

        Parameters
        ----------
        function : callable
            Called with a block, and its part of `per_row`.
        *per_row : (n, ...) arrays or None
            With an entry for every row.
        among : (n,) array or None
            Weights or a mask: rows with a zero are left out, and so are blocks of nothing else.
        """

    @abstractmethod
    def map(self, function: Callable[[Any], Any]) -> Rows | RowBlocks:
        """Apply a function to all rows; the result lives where they live."""

    @abstractmethod
    def dense(self, columns: NDArray[np.intp]) -> Rows | RowBlocks:
        """Take some columns, as dense rows; the result lives where the rows live."""

    @abstractmethod
    def mapped(
        self, function: Callable[..., Any], per_row: NDArray[Any], n_columns: int
    ) -> Rows | RowBlocks:
        """Apply a function to all rows and what belongs to them; the result lives where they do.

        Parameters
        ----------
        function : callable
            Called with a block, and its part of `per_row`.
        per_row : (n, ...) array
            With an entry for every row.
        n_columns : int
            How many columns that gives.
        """

    @abstractmethod
    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        """Return some rows, by their numbers, a mask of all rows or a slice."""


class Resident(RowBlocks):
    """Rows in memory: one block.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    """

    #: Whether what `map` makes is in a temporary file.
    _maps_to_file: ClassVar[bool] = False

    def __init__(self, X: Rows) -> None:
        self.X, self.starts = X, np.array([0, X.shape[0]])
        self.n_columns, self.dtype, self.holds_sparse = X.shape[1], X.dtype, sp.issparse(X)

    def each(
        self, function: Callable[..., Result], *per_row: Any, among: NDArray[Any] | None = None
    ) -> list[Result]:
        """Call the function with one block after the other."""
        results = []
        for begin, end in pairwise(self.starts):
            own = slice(begin, end)
            block = self._all() if len(self.starts) == 2 else self.X[own]  # sparse parts copy
            values = [None if array is None else array[own] for array in per_row]
            if among is not None and not among[own].all():
                is_there = among[own] > 0
                if not is_there.any():
                    continue
                block = block[is_there]
                values = [None if array is None else array[is_there] for array in values]
            results.append(function(block, *values))
        return results

    def map(self, function: Callable[[Any], Any]) -> Rows:
        """Return what the function makes of a few rows at a time, whose copies stay in cache."""
        if self.holds_sparse or self.X.nbytes <= BLOCK_BYTES:
            return function(self._all())
        n_rows, step = len(self.X), rows_per_block(self.X)
        first: NDArray[Any] = function(self.X[:step])
        make = temporary_rows if self._maps_to_file else np.empty
        out = make((n_rows, first.shape[1]), first.dtype)
        out[:step] = first
        for begin in range(step, n_rows, step):
            out[begin : begin + step] = function(self.X[begin : begin + step])
        return out

    def dense(self, columns: NDArray[np.intp]) -> Rows:
        """Return some columns, as dense rows."""
        return dense_columns(self.X, columns)

    def mapped(self, function: Callable[..., Any], per_row: NDArray[Any], n_columns: int) -> Rows:
        """Return what the function makes of the rows."""
        return stacked(self.each(function, per_row))

    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        return self.X[rows]

    def _all(self) -> Rows:
        return self.X


class FileRows(Resident):
    """Dense rows, most often in a memory-mapped file, which are looked at a few at a time.

    What `map` makes of them is in a temporary file.

    Parameters
    ----------
    X : (n, d) array
        The rows.
    most_bytes : float
        If some of them take more, they are in a temporary file, too.
    """

    _maps_to_file = True

    def __init__(self, X: NDArray[Any], most_bytes: float = BLOCK_BYTES) -> None:
        super().__init__(X)
        self.starts = np.append(np.arange(0, len(X), rows_per_block(X)), len(X))
        self._most_bytes = most_bytes

    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        if isinstance(rows, slice):
            return self.X[rows]
        chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
        if len(chosen) * self.X[:1].nbytes <= self._most_bytes:
            return self.X[chosen]
        out = temporary_rows((len(chosen), self.n_columns), self.dtype)
        step = rows_per_block(self.X)
        for begin in range(0, len(chosen), step):
            out[begin : begin + step] = self.X[chosen[begin : begin + step]]
        return out


class MadeRows(Resident):
    """Dense rows that are made when they are asked for.

    Parameters
    ----------
    X : object
        Has the shape, type and size of an array, and makes the rows that it is indexed with.
    """

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self.starts = np.append(np.arange(0, len(X), rows_per_block(X)), len(X))

    def _all(self) -> Rows:
        return self.X[:]


def as_blocks(X: Rows | RowBlocks, most_bytes: float = math.inf) -> RowBlocks:
    """Rows in memory as one block, those of a large file as several.

    Dense rows of more than `most_bytes` are several blocks too; what `map` makes of them, and parts
    of them that still take more, are in temporary files.
    """
    if isinstance(X, RowBlocks):
        return X
    if sp.issparse(X):
        return Resident(X)
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    least = min(LEAST_FILE_BYTES, BLOCK_BYTES) if isinstance(base, _Temporary) else LEAST_FILE_BYTES
    if isinstance(base, mmap.mmap) and X.nbytes > least:
        return FileRows(X, BLOCK_BYTES)
    return FileRows(X, most_bytes) if X.nbytes > most_bytes else Resident(X)


class ColumnEnds(NamedTuple):
    """Least and largest values of columns.

    Attributes
    ----------
    low, high : (n_columns,) arrays
        These values.
    has_others : (n_columns,) bool array
        Which columns have other values as well; columns without have two values, or one.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    has_others: NDArray[np.bool_]


def column_ends(X: Rows | RowBlocks, weights: NDArray[Any] | None = None) -> ColumnEnds:
    """Find the least and largest values of the columns, in rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels import column_ends
    >>> column_ends(np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 5.0]]))
    ColumnEnds(low=array([0., 1.]), high=array([1., 5.]), has_others=array([False,  True]))
    """
    found = as_blocks(X).each(_ends_of_block, among=weights)
    if not found:
        raise ValueError("No row has a positive weight.")
    if len(found) == 1:
        return found[0]
    lows, highs, have_others = (np.array(parts) for parts in zip(*found, strict=True))
    low, high = lows.min(axis=0), highs.max(axis=0)
    # An end of one block may be between those of others.
    are_inner = [(ends != low) & (ends != high) for ends in (lows, highs)]
    return ColumnEnds(low, high, (have_others | are_inner[0] | are_inner[1]).any(axis=0))


def _ends_of_block(X: Rows) -> ColumnEnds:
    """Do the same for one block."""
    (n_rows, n_columns), holds_sparse = X.shape, sp.issparse(X)
    low, high = X.min(axis=0), X.max(axis=0)
    if holds_sparse:
        low, high = low.toarray().ravel(), high.toarray().ravel()
        is_other = (X.data != low[X.indices]) & (X.data != high[X.indices])
        has_others = np.bincount(X.indices[is_other], minlength=n_columns) > 0
        has_zeros = np.bincount(X.indices, minlength=n_columns) < n_rows
        has_others |= has_zeros & (low != 0) & (high != 0)
    else:
        has_others = np.zeros(n_columns, dtype=bool)
        step = max(1, _NUMBERS_AT_ONCE // max(n_columns, 1))
        for begin in range(0, n_rows, step):
            open_ones = np.flatnonzero(~has_others & (low != high))  # a NaN differs from itself
            if len(open_ones) == 0:
                break
            part = X[begin : begin + step][:, open_ones]
            is_end = (part == low[open_ones]) | (part == high[open_ones])
            has_others[open_ones] = ~is_end.all(axis=0)
    return ColumnEnds(low.astype(np.float64), high.astype(np.float64), has_others)


def dense_columns(X: Rows, columns: NDArray[np.intp]) -> NDArray[Any]:
    """Take some columns of rows, as a dense array."""
    part = X[:, columns]
    return part if isinstance(part, np.ndarray) else np.asarray(part.toarray())


def stacked(parts: Sequence[Rows]) -> Rows:
    """Put rows below each other: those of several blocks, all dense or all sparse."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def in_blocks(rows: NDArray[Any], starts: NDArray[np.intp]) -> list[tuple[int, NDArray[np.intp]]]:
    """Divide row numbers among the blocks that have them.

    Parameters
    ----------
    rows : (n_some,) int array
        Numbers of rows, in any order.
    starts : (n_blocks + 1,) int array
        The number of the first row of every block, and the number of all rows.

    Returns
    -------
    list of (int, int array)
        Blocks, and which of `rows` they have.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels.blocks import in_blocks
    >>> [(b, at.tolist()) for b, at in in_blocks(np.array([7, 0, 5]), np.array([0, 4, 4, 8]))]
    [(0, [1]), (2, [0, 2])]
    """
    owner = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(owner, kind="stable")
    blocks, begins = np.unique(owner[order], return_index=True)
    return list(zip(blocks.tolist(), np.split(order, begins[1:]), strict=True))


class _Temporary(mmap.mmap):
    """A temporary file that holds rows to save memory."""


def temporary_rows(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make an array in a temporary file, which is gone when nothing refers to the array.

    The file is in the folder for temporary files (``TMPDIR``); an OSError says if it is full.
    """
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(prefix="hardmargin-", dir=folder) as file:
            if hasattr(os, "posix_fallocate"):
                # A write into a hole in the file would kill the process if the disk were full.
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
            return np.ndarray(shape, dtype, buffer=_Temporary(file.fileno(), n_bytes))
    except OSError as error:
        raise no_room(error, folder, n_bytes) from error


def no_room(error: OSError, folder: str, n_bytes: int | None = None) -> OSError:
    """Say in an error which folder has no room for temporary files, and what helps."""
    size = "" if n_bytes is None else f" of {n_bytes / 1e9:.3g} GB"
    return OSError(
        error.errno,
        f"{error.strerror}: rows that memory_limit keeps out of memory, or that came from a file, "
        f"need a temporary file{size}, which this folder cannot hold. Let the environment variable "
        "TMPDIR name another folder, make room in this one, or raise memory_limit",
        folder,
    )


def rows_per_block(X: Any) -> int:
    """Return how many rows of a file are looked at together."""
    return max(1, BLOCK_BYTES // (8 * int(X.shape[1])))
