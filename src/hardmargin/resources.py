"""What a fit may use besides time: memory and threads.

Results do not depend on the number of threads. How BLAS splits a product over its threads changes
the order of its sums, and so their rounding, which training can amplify. Here BLAS has one thread,
and work is split into blocks whose bounds depend only on the data: however many threads share them,
each block is computed in the same way.
"""

from __future__ import annotations

import ctypes
import math
import mmap
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

#: Share of the free memory that a fit may use by default.
DEFAULT_SHARE = 0.5

#: Share of a given `memory_limit` that a copy of all rows may take.
ROWS_SHARE = 1 / 16

#: Memory of a fit that nothing counts: objects, freed memory between arrays, buffers of libraries.
BESIDE_BYTES = 5_000_000

#: Memory of a row in core sets: multipliers, gradients, norms and orders.
CORE_ROW_BYTES = 150

#: Shares of the memory limit that core sets use: for kernel columns, and for Q between their rows.
COLUMNS_SHARE, CORE_SHARE = 0.5, 0.25


#: Fewer multiplications than this take less time than starting threads.
_LEAST_WORK = 10_000_000

#: The fewest multiplications, and rows, in a block of a product.
_BLOCK_WORK, _BLOCK_ROWS = 2_000_000, 512

#: The fewest queries that are evaluated together, if there are as many.
_LEAST_QUERIES = 1024

#: Smaller arrays are not worth pages of their own.
_LEAST_MAPPED = 2**22

#: Bytes of a large page, which systems have besides small ones. A matrix in large pages is
#: allocated in a tenth of the time.
_LARGE_PAGE = 2**21

#: How to map memory that goes back to the system once nothing refers to it.
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

#: In fits with a memory limit, arrays of more bytes go back to the system when they are freed.
_LEAST_RETURNED = 2**20

#: glibc's numbers of two limits: on memory at the end of the heap, and on arrays on the heap.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

#: The most that glibc itself raises the second limit to. It cannot be asked for the current value.
_MOST_ON_HEAP = 2**25

#: Open blocks of single-threaded BLAS, with the numbers of threads to restore at the end, and of
#: fits with a memory limit.
_OPEN_BLOCKS = SimpleNamespace(lock=Lock(), n=0, before=[], n_limited=0)

# If another thread held the lock during a fork, nobody could release it in the child.
os.register_at_fork(
    before=_OPEN_BLOCKS.lock.acquire,
    after_in_parent=_OPEN_BLOCKS.lock.release,
    after_in_child=_OPEN_BLOCKS.lock.release,
)


def memory_bytes(memory_limit: float | str | None) -> int:
    """Turn ``memory_limit`` into bytes.

    Parameters
    ----------
    memory_limit : str, number or None
        ``"2GB"``, ``"500 MB"``, a number of bytes, or None for half of the memory that is free, on
        the computer or within the limit of the container.

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
    if not 1 <= size < 2**63:
        raise ValueError(
            "memory_limit must be at least one byte, a number or a string such as '2GB', or None; "
            f"got {memory_limit!r}."
        )
    return int(size)


def planned_bytes(memory_limit: float | str | None, known_bytes: int = 0) -> int:
    """Memory that the matrices of a fit may take: a given limit, less what else the fit takes.

    Parameters
    ----------
    memory_limit : str, number or None
        The limit.
    known_bytes : int
        Memory that is known to be taken by something else.

    Examples
    --------
    >>> from hardmargin.resources import planned_bytes
    >>> planned_bytes("50MB")
    45000000
    """
    limit = memory_bytes(memory_limit)
    if memory_limit is None:
        return limit
    return max(limit - BESIDE_BYTES - known_bytes, limit // 4)


def enough_memory(planned: int, known_bytes: int = 0) -> str:
    """Say which limit is enough: one that leaves `planned` bytes, as `planned_bytes` counts.

    Examples
    --------
    >>> from hardmargin.resources import enough_memory
    >>> enough_memory(44_600_000)
    '50 MB are enough'
    """
    n_megabytes = -(-(planned + known_bytes + BESIDE_BYTES) // 1_000_000)
    return f"{n_megabytes:,} MB are enough"


def _bytes_of(match: re.Match[str]) -> float:
    """Read a number with its unit: MB is a million bytes, MiB 2**20."""
    number, unit, is_binary = match.groups()
    power = " KMGT".index(unit.upper() or " ")
    return float(number) * (1024.0 if is_binary else 1000.0) ** power


def new_array(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return an array of any content whose memory goes back to the system when it is freed.

    Otherwise, memory that threads free stays with the process: glibc keeps it for later arrays of
    each thread, so that a process would grow with every fit on threads.

    Examples
    --------
    >>> from hardmargin.resources import new_array
    >>> new_array((2, 3)).shape
    (2, 3)
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < _LEAST_MAPPED:
        return np.empty(shape, dtype)
    # The end of the array has a large page too, unless that would waste a sixteenth of its memory.
    large_bytes = (n_bytes + n_bytes // 16) // _LARGE_PAGE * _LARGE_PAGE
    pages = mmap.mmap(-1, max(n_bytes, large_bytes) + _LARGE_PAGE, flags=_PRIVATE)
    numbers = np.frombuffer(pages, dtype=np.uint8)
    begin = -numbers.ctypes.data % _LARGE_PAGE
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE, begin, large_bytes)
    return np.asarray(numbers[begin : begin + n_bytes].view(dtype).reshape(shape))


def mapped_array(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return zeros in pages of their own, which are only used once they are written to."""
    pages = mmap.mmap(-1, math.prod(shape) * np.dtype(dtype).itemsize, flags=_PRIVATE)
    return np.frombuffer(pages, dtype=dtype).reshape(shape)


def give_back_memory() -> None:
    """Return freed memory to the system; glibc keeps some of it between the parts in use."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def give_back_if_limited() -> None:
    """Return freed memory while some fit has a memory limit; others would use it again soon."""
    if _OPEN_BLOCKS.n_limited:
        give_back_memory()


@contextmanager
def freed_at_once() -> Iterator[None]:
    """Within the block, memory of large arrays goes back to the system when they are freed.

    glibc otherwise keeps the memory of arrays of up to 32 MB for later ones, which need not fit
    into it: freed memory would count on top of what is in use. On other systems this does nothing.
    """
    with _OPEN_BLOCKS.lock:
        _OPEN_BLOCKS.n_limited += 1
        _keep_on_heap(_LEAST_RETURNED)
    try:
        yield
    finally:
        with _OPEN_BLOCKS.lock:
            _OPEN_BLOCKS.n_limited -= 1
            if _OPEN_BLOCKS.n_limited == 0:
                _keep_on_heap(_MOST_ON_HEAP)


def _keep_on_heap(most_bytes: int) -> None:
    """Let glibc put arrays of up to this many bytes on its heap, whose memory it keeps."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, most_bytes)
        set_option(_TRIM_THRESHOLD, 2 * most_bytes)


def tasks_at_once(n_threads: int, n_tasks: int, bytes_each: int, n_bytes: int) -> int:
    """How many tasks may run at once: as many as the memory is enough for, but at least one.

    Examples
    --------
    >>> from hardmargin.resources import tasks_at_once
    >>> tasks_at_once(8, 3, 100, 1_000), tasks_at_once(8, 3, 100, 250), tasks_at_once(8, 3, 100, 9)
    (3, 2, 1)
    """
    return max(1, min(n_threads, n_tasks, n_bytes // max(bytes_each, 1)))


def queries_at_once(n_queries: int, bytes_each: int, memory_limit: float | str | None) -> int:
    """How many queries to evaluate together: at least some, even if they need more memory."""
    if n_queries <= _LEAST_QUERIES:  # finding out how much memory is free would take longer
        return _LEAST_QUERIES
    share = memory_bytes(memory_limit) // 4
    return max(_LEAST_QUERIES, share // bytes_each)


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that can be used before the computer, or a cgroup limit, runs out of memory.

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
    # Where the system does not report it, assume that a quarter of all memory is free.
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
        # In a container the path may be the host's: the group is then at the top of the mount.
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

    BLAS usually has one number of threads per process. Blocks may overlap in several threads: the
    number from before the first is restored at the end of the last. Where BLAS has a number for
    each thread, only that of the calling thread changes.
    """
    shared, own = _blas_libraries()
    own_before = [library.n_threads for library in own]
    for library in own:
        library.n_threads = 1
    with _OPEN_BLOCKS.lock:
        if _OPEN_BLOCKS.n == 0:
            _OPEN_BLOCKS.before = [library.n_threads for library in shared]
        _OPEN_BLOCKS.n += 1
        for library in shared:
            library.n_threads = 1
    try:
        yield
    finally:
        with _OPEN_BLOCKS.lock:
            _OPEN_BLOCKS.n -= 1
            if _OPEN_BLOCKS.n == 0:
                for library, n_threads in zip(shared, _OPEN_BLOCKS.before, strict=True):
                    library.n_threads = n_threads
        for library, n_threads in zip(own, own_before, strict=True):
            library.n_threads = n_threads


@contextmanager
def worker_threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads whose tasks have one BLAS thread each; it is set once, not for every task."""
    with single_threaded_blas(), ThreadPoolExecutor(n_threads, initializer=_limit_own) as pool:
        yield pool


def _limit_own() -> None:
    """Keep BLAS that has a number of threads for each thread on one, until this thread ends."""
    for library in _blas_libraries()[1]:
        library.n_threads = 1


class _Blas:
    """A BLAS library, as threadpoolctl found it."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        #: Whether each thread has a number of threads of its own.
        self.is_own = getattr(controller, "threading_layer", None) == "openmp"

    @property
    def n_threads(self) -> int:
        """Threads that it uses."""
        return int(self._controller.get_num_threads())

    @n_threads.setter
    def n_threads(self, n: int) -> None:
        # Since version 3.7, threadpoolctl lets only the thread that first set a number set it
        # again, until that thread is done; but the fits of all threads must set theirs.
        let_all_set = getattr(self._controller, "clear_controlling_thread", lambda force: None)
        let_all_set(force=True)
        self._controller.set_num_threads(n)
        let_all_set(force=True)


@cache
def _blas_libraries() -> tuple[list[_Blas], list[_Blas]]:
    """Libraries with one number of threads per process, and those with one per thread."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    libraries = [_Blas(controller) for controller in found]
    return [b for b in libraries if not b.is_own], [b for b in libraries if b.is_own]


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
        Called with a slice; it must not read what it writes for another slice.
    n_rows : int
        Rows in all blocks.
    size : int
        Rows in a block.
    n_jobs : int or None
        Threads.
    work : float
        Multiplications in all blocks, if they may be too few for threads.

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
    with worker_threads(n_threads) as pool:
        list(pool.map(function, parts))


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
