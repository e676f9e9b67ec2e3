"""Rows that live in blocks: in memory, in a file, or on the workers of a cluster.

What is needed of all rows (ranges, moments, hashes) is found block by block, where the blocks are,
and merged. Other steps need some rows only, by their numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels.files import is_large_file, rows_per_block, some_rows, temporary_rows
from hardmargin.kernels.kernel import Rows, is_sparse

Result = TypeVar("Result")


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
    def each(self, function: Callable[..., Result], *per_row: Any) -> list[Result]:
        """Call a function with every block.

        Parameters
        ----------
        function : callable
            Called with a block, and its part of `per_row`.
        *per_row : (n, ...) arrays or None
            With an entry for every row.
        """

    @abstractmethod
    def map(self, function: Callable[[Any], Any]) -> RowBlocks:
        """Rows that a function makes of each block, when it is needed."""

    @abstractmethod
    def __getitem__(self, rows: NDArray[Any]) -> Rows:
        """Return some rows, by their numbers."""

    def every(self, step: int) -> Rows:
        """Return the first of every so many rows."""
        return self[np.arange(0, self.shape[0], step)]


class Resident(RowBlocks):
    """Rows in memory: one block.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    """

    def __init__(self, X: Rows) -> None:
        self.X, self.starts = X, np.array([0, X.shape[0]])
        self.n_columns, self.dtype, self.holds_sparse = X.shape[1], X.dtype, is_sparse(X)

    def each(self, function: Callable[..., Result], *per_row: Any) -> list[Result]:
        """Call the function once."""
        return [function(self.X, *per_row)]

    def map(self, function: Callable[[Any], Any]) -> Resident:
        """Apply the function at once; to dense rows a few at a time, whose copies stay in cache."""
        if is_sparse(self.X):
            return Resident(function(self.X))
        return Resident(_filled(self.X, function, np.empty))

    def __getitem__(self, rows: NDArray[Any]) -> Rows:
        return self.X[rows]

    def every(self, step: int) -> Rows:
        """Return a view."""
        return self.X[::step]


class FileRows(RowBlocks):
    """Dense rows, most often in a memory-mapped file, which are looked at a few at a time.

    Parameters
    ----------
    X : (n, d) array
        The rows.
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self.X, self.starts = X, np.append(np.arange(0, len(X), rows_per_block(X)), len(X))
        self.n_columns, self.dtype, self.holds_sparse = X.shape[1], X.dtype, False

    def each(self, function: Callable[..., Result], *per_row: Any) -> list[Result]:
        """Call the function with one block after the other."""
        parts = [slice(*ends) for ends in pairwise(self.starts)]
        return [
            function(self.X[part], *(None if a is None else a[part] for a in per_row))
            for part in parts
        ]

    def map(self, function: Callable[[Any], Any]) -> FileRows:
        """Apply the function to one block after the other; the result is in a temporary file."""
        return FileRows(_filled(self.X, function, temporary_rows))

    def __getitem__(self, rows: NDArray[Any]) -> Rows:
        return some_rows(self.X, rows)

    def every(self, step: int) -> Rows:
        """Return a view."""
        return self.X[::step]


def _filled(
    X: NDArray[Any],
    function: Callable[[Any], Any],
    make: Callable[[tuple[int, int], np.dtype[Any]], NDArray[Any]],
) -> NDArray[Any]:
    """Apply a function to a few rows at a time, and put what it returns below each other."""
    step = rows_per_block(X)
    first: NDArray[Any] = function(X[:step])
    if len(first) == len(X):
        return first
    out = make((len(X), first.shape[1]), first.dtype)
    out[:step] = first
    for begin in range(step, len(X), step):
        out[begin : begin + step] = function(X[begin : begin + step])
    return out


def as_blocks(X: Rows | RowBlocks, most_bytes: float = math.inf) -> RowBlocks:
    """Rows in memory as one block, those of a large file as several.

    So are dense rows of more than `most_bytes`; what is made of them is in a temporary file.
    """
    if isinstance(X, RowBlocks):
        return X
    is_large = is_large_file(X) or (not is_sparse(X) and X.nbytes > most_bytes)
    return FileRows(X) if is_large else Resident(X)


def mapped(
    X: Rows | RowBlocks, function: Callable[[Rows], Rows], most_bytes: float = math.inf
) -> Rows | RowBlocks:
    """Apply a function to all rows; the result lives where they live.

    What is made of dense rows of more than `most_bytes` is in a temporary file.
    """
    made = as_blocks(X, most_bytes).map(function)
    return made.X if isinstance(made, Resident | FileRows) else made


def stacked(parts: Sequence[Rows]) -> Rows:
    """Put rows below each other: those of several blocks, all dense or all sparse."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate(parts)


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
