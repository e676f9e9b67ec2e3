"""Threads that leave every result as it is on one thread.

How BLAS splits a product over its threads changes the order of its sums, and so their rounding,
which training can make large. Here BLAS has one thread, and work is split into blocks whose bounds
depend on the data alone: however many threads share them, each block is computed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

#: Fewer multiplications are done before threads have started.
_LEAST_WORK = 10_000_000

#: Multiplications, and rows, that a block of a product has at least.
_BLOCK_WORK, _BLOCK_ROWS = 2_000_000, 512


class _SharedLimit:
    """Gives libraries one thread for as long as anyone in the process needs that."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_users = 0
        self._before: list[int] = []

    def take(self, libraries: list[Any]) -> None:
        with self._lock:
            if self._n_users == 0:
                self._before = [library.get_num_threads() for library in libraries]
            self._n_users += 1
            _set_threads(libraries, [1] * len(libraries))

    def give_back(self, libraries: list[Any]) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                _set_threads(libraries, self._before)


_SHARED_LIMIT = _SharedLimit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread within the block.

    The number of its threads is usually the process's. Blocks may overlap in several threads: the
    number from before the first of them returns with the end of the last. Where each thread has a
    number of its own, that of the calling thread is meant.
    """
    shared, own = _blas_libraries()
    own_before = [library.get_num_threads() for library in own]
    _set_threads(own, [1] * len(own))
    _SHARED_LIMIT.take(shared)
    try:
        yield
    finally:
        _SHARED_LIMIT.give_back(shared)
        _set_threads(own, own_before)


@cache
def _blas_libraries() -> tuple[list[Any], list[Any]]:
    """Libraries whose number of threads is the process's, and those where each thread has its."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    is_own = [getattr(library, "threading_layer", None) == "openmp" for library in found]
    return (
        [library for library, own in zip(found, is_own, strict=True) if not own],
        [library for library, own in zip(found, is_own, strict=True) if own],
    )


def _set_threads(libraries: list[Any], n_threads: list[int]) -> None:
    for library, n in zip(libraries, n_threads, strict=True):
        # Since version 3.7 threadpoolctl listens to the first thread that sets a number, and to no
        # other until that one is done; but the fits of all threads need theirs.
        let_all_set = getattr(library, "clear_controlling_thread", _nothing)
        let_all_set(force=True)
        library.set_num_threads(n)
        let_all_set(force=True)


def _nothing(force: bool) -> None:
    pass


def each_block(
    function: Callable[[slice], None],
    n_rows: int,
    size: int,
    *,
    n_jobs: int | None = None,
    work: float = np.inf,
) -> None:
    """Call a function with every block of rows, on `n_jobs` threads with one BLAS thread each.

    Parameters
    ----------
    function : callable
        Takes a slice; it must not read what it writes for another one.
    n_rows : int
        Rows of all blocks.
    size : int
        Rows of a block.
    n_jobs : int or None
        Threads.
    work : float
        Multiplications of all blocks, where threads may not be worth it.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.parallel import each_block
    >>> A, out = np.arange(6.0).reshape(3, 2), np.empty(3)
    >>> def add_up(rows):
    ...     out[rows] = A[rows].sum(axis=1)
    >>> each_block(add_up, 3, 2, n_jobs=2)
    >>> out
    array([1., 5., 9.])
    """
    parts = [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]
    n_threads = min(int(effective_n_jobs(n_jobs)), len(parts))
    if n_threads <= 1 or work < _LEAST_WORK:
        for part in parts:
            function(part)
        return

    def call(part: slice) -> None:
        with single_threaded_blas():
            function(part)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(call, parts))


def multiply(A: NDArray[Any], B: NDArray[Any], *, n_jobs: int | None = None) -> NDArray[Any]:
    """Multiply dense arrays, ``A @ B``, by blocks of rows of A.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.parallel import multiply
    >>> multiply(np.eye(2), np.array([[1.0], [2.0]]), n_jobs=2)
    array([[1.],
           [2.]])
    """
    out = np.empty((len(A), *B.shape[1:]), dtype=np.result_type(A, B))

    def multiply_rows(rows: slice) -> None:
        out[rows] = A[rows] @ B

    size = max(_BLOCK_ROWS, _BLOCK_WORK // max(B.size, 1))
    each_block(multiply_rows, len(A), size, n_jobs=n_jobs, work=len(A) * B.size)
    return out
