"""What a fit may use beside time: memory and threads.

Results do not depend on the number of threads. How BLAS splits a product over its threads changes
the order of its sums, and so their rounding, which training can make large. Here BLAS has one
thread, and work is split into blocks whose bounds depend on the data alone: however many threads
share them, each block is computed in the same way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

_PATTERN = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)

#: Share of the free memory that a fit may use when nothing else is said.
DEFAULT_SHARE = 0.5

#: Shares of the memory limit that core sets take: for kernel columns, and for Q between their rows.
COLUMNS_SHARE, CORE_SHARE = 0.5, 0.25


#: Fewer multiplications are done before threads have started.
_LEAST_WORK = 10_000_000

#: Multiplications, and rows, that a block of a product has at least.
_BLOCK_WORK, _BLOCK_ROWS = 2_000_000, 512

#: Blocks of single-threaded BLAS that are open, and what they give back at the end.
_OPEN_BLOCKS = SimpleNamespace(lock=Lock(), n=0, before=[])


def memory_bytes(memory_limit: float | str | None) -> int:
    """Turn ``memory_limit`` into bytes.

    Parameters
    ----------
    memory_limit : str, number or None
        ``"2GB"``, ``"500 MB"``, a number of bytes, or None for half of the memory that is free, on
        the machine or within the limit of the container.

    Examples
    --------
    >>> from hardmargin.resources import memory_bytes
    >>> memory_bytes("1.5GB")
    1500000000
    """
    if memory_limit is None:
        return int(DEFAULT_SHARE * free_memory())
    if isinstance(memory_limit, str):
        match = _PATTERN.fullmatch(memory_limit)
        size = _bytes_of(match) if match else 0.0
    else:
        size = float(memory_limit)
    if not 0 < size < 2**63:
        raise ValueError(
            "memory_limit must be a positive number of bytes, a string such as '2GB', or None; "
            f"got {memory_limit!r}."
        )
    return int(size)


def _bytes_of(match: re.Match[str]) -> float:
    """Read a number with its unit: MB is a million bytes, MiB 2**20."""
    number, unit, is_binary = match.groups()
    power = " KMGT".index(unit.upper() or " ")
    return float(number) * (1024.0 if is_binary else 1000.0) ** power


def tasks_at_once(n_threads: int, n_tasks: int, bytes_each: int, n_bytes: int) -> int:
    """How many tasks may run at once: as many as have the memory that each may need, or one.

    Examples
    --------
    >>> from hardmargin.resources import tasks_at_once
    >>> tasks_at_once(8, 3, 100, 1_000), tasks_at_once(8, 3, 100, 250), tasks_at_once(8, 3, 100, 9)
    (3, 2, 1)
    """
    return max(1, min(n_threads, n_tasks, n_bytes // max(bytes_each, 1)))


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that can be used before the machine, or a cgroup limit, runs out of memory.

    Parameters
    ----------
    root : path
        Where ``proc`` and ``sys`` are.
    """
    try:
        text = (root / "proc/meminfo").read_text(encoding="ascii")
    except OSError:
        text = ""
    found = re.search(r"^MemAvailable:\s+(\d+)", text, re.MULTILINE)
    # Where the system does not tell, a quarter of all memory is taken to be free.
    free = int(found[1]) * 1024 if found else _physical() // 4
    return min([free, *(group.free() for group in _limited_groups(root))])


class _Group(NamedTuple):
    """A control group with a limit, and what its files are called."""

    folder: Path
    limit: int
    usage: str
    cache: str

    def free(self) -> int:
        """Limit less usage; file pages that can be dropped are free."""
        used = int(next(_lines(self.folder / self.usage), "0"))
        stat = dict(line.split() for line in _lines(self.folder / "memory.stat"))
        return max(self.limit - used + int(stat.get(self.cache, 0)), 0)


@cache
def _limited_groups(root: Path) -> list[_Group]:
    """Find the groups of this process, and those above them, that limit its memory."""
    found = []
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, controllers, path = line.strip().split(":", 2)
        if hierarchy == "0":  # version 2
            top, names = "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = Path(path.lstrip("/"))
        # In a container the path may be the host's: the top of what is mounted is then the group.
        for folder in {root / top / group, *(root / top / p for p in group.parents)}:
            limit = next(_lines(folder / names[0]), "").strip()
            if limit.isdigit() and int(limit) < _physical():
                found.append(_Group(folder, int(limit), *names[1:]))
    return found


def _physical() -> int:
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _lines(file: Path) -> Iterator[str]:
    try:
        with open(file, encoding="ascii") as lines:
            yield from lines
    except OSError:
        return


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
    with _OPEN_BLOCKS.lock:
        if _OPEN_BLOCKS.n == 0:
            _OPEN_BLOCKS.before = [library.get_num_threads() for library in shared]
        _OPEN_BLOCKS.n += 1
        _set_threads(shared, [1] * len(shared))
    try:
        yield
    finally:
        with _OPEN_BLOCKS.lock:
            _OPEN_BLOCKS.n -= 1
            if _OPEN_BLOCKS.n == 0:
                _set_threads(shared, _OPEN_BLOCKS.before)
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
        let_all_set = getattr(library, "clear_controlling_thread", lambda force: None)
        let_all_set(force=True)
        library.set_num_threads(n)
        let_all_set(force=True)


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
    >>> from hardmargin.resources import each_block
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
    >>> from hardmargin.resources import multiply
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
