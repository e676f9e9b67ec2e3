"""Rows and tasks on the workers of a cluster."""

from __future__ import annotations

import asyncio
import operator
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from threading import Event
from typing import Any, TypeVar

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from numpy.typing import NDArray

from hardmargin.dask.partitions import (
    Facts,
    Labels,
    facts_of,
    in_order,
    labels_of,
    merged,
    or_refusal,
    partitions_of_all,
    print_of,
    refuse_other_columns,
    refuse_other_kinds,
    values_of,
)
from hardmargin.kernels import RowBlocks, Rows
from hardmargin.kernels.blocks import Resident, dense_columns, in_blocks, stacked
from hardmargin.monitor import Monitor
from hardmargin.resources import single_threaded_blas

Result = TypeVar("Result")

FLOAT64 = np.dtype(np.float64)

#: Seconds between looks at the clock and at the scheduler.
PATIENCE = 0.1

LOST = (
    "The connection to the Dask scheduler is lost, and what was on the cluster with it. Start a "
    "cluster, connect to it, and fit again."
)

NOT_THERE = (
    "Rows that are needed are not on the cluster ({error}), although its scheduler is. If X or y "
    "was persisted, see whether its own compute() works: persist the whole table instead, and take "
    "columns of that, or do not persist."
)


class Cluster:
    """Runs tasks, and notices if the scheduler is gone."""

    def __init__(self, client: distributed.Client) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *args: Any) -> distributed.Future:
        """Start a task."""
        with self._connected():
            return self._client.submit(function, *args, pure=False)

    def compute(self, tasks: Sequence[Any]) -> list[distributed.Future]:
        """Start tasks, and what they need."""
        with self._connected(), warnings.catch_warnings():
            # Classes of all rows are part of the tasks, so that they survive a worker.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return list(self._client.compute(list(tasks)))

    def wait(
        self,
        tasks: Sequence[distributed.Future],
        monitor: Monitor | None = None,
        on_done: Callable[[list[int]], None] = lambda _: None,
    ) -> bool:
        """Wait for tasks; return False, and cancel those that are left, if time is up.

        Parameters
        ----------
        tasks : sequence of futures
            What to wait for.
        monitor : Monitor, optional
            The clock.
        on_done : callable
            Called with the numbers of tasks that are done, as soon as they are.
        """
        progress = Event()
        for task in tasks:
            task.add_done_callback(lambda _: progress.set())
        left = list(range(len(tasks)))
        while left:
            done = [t for t in left if tasks[t].done()]
            left = [t for t in left if t not in set(done)]
            self.check()
            if done:
                on_done(done)
            if left and monitor is not None:
                may_go_on = monitor.report(len(tasks) - len(left), 0, np.nan)
                if not may_go_on or monitor.seconds_left <= 0:
                    with self._connected():
                        self._client.cancel([tasks[t] for t in left if not tasks[t].done()])
                    return False
            if left:
                progress.wait(PATIENCE)
                progress.clear()
        self.check()
        return True

    def results(self, tasks: Sequence[distributed.Future]) -> Any:
        """Wait for tasks, and return their results; the first error is raised."""
        self.wait(tasks)
        with self._connected():
            return self._client.gather(list(tasks))

    def accepted(self, tasks: Sequence[distributed.Future]) -> Any:
        """Wait for tasks of `or_refusal`, and return their results; raise the first refusal."""
        found = self.results(tasks)
        for own in found:
            if isinstance(own, Exception):
                raise own
        return found

    def check(self) -> None:
        """Refuse to go on without the scheduler."""
        if self._client.status != "running":
            raise ConnectionError(LOST)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Raise one error for all that Dask raises if the scheduler is gone, or has been."""
        self.check()
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, FutureCancelledError) and error.reason == "lost dependencies":
                raise ConnectionError(NOT_THERE.format(error=error)) from error
            is_lost = isinstance(error, CommClosedError | CancelledError | asyncio.CancelledError)
            if is_lost or self._client.status != "running":
                raise ConnectionError(LOST) from error
            raise


class _Held(Mapping[str, Any]):
    """The graph of a future, which says if the cluster is gone when it is computed."""

    def __init__(self, future: distributed.Future, cluster: Cluster) -> None:
        self._future, self._cluster = future, cluster
        self.name = f"held-{future.key}"

    def __getitem__(self, key: str) -> distributed.Future:
        self._cluster.check()
        if key != self.name:
            raise KeyError(key)
        return self._future

    def __reduce__(self) -> Any:
        return dict, ({self.name: self[self.name]},)  # on its way to the scheduler

    def __iter__(self) -> Iterator[str]:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1


def held(future: distributed.Future, cluster: Cluster) -> Delayed:
    """Make a part of graphs of a future, which would otherwise fail without a reason."""
    graph = _Held(future, cluster)
    return Delayed(graph.name, HighLevelGraph.from_collections(graph.name, graph))


@dataclass(frozen=True)
class DaskRows(RowBlocks):
    """Rows on the workers of a cluster.

    Attributes
    ----------
    cluster : Cluster
        Where they are.
    blocks : list of futures
        Blocks as they came.
    starts : (n_blocks + 1,) int array
        The number of the first row of every block, and the number of all rows.
    steps : tuple of callables
        What is done to a block, one after the other, before it is used.
    n_columns, dtype, holds_sparse
        What the steps give, once that is known.
    """

    cluster: Cluster
    blocks: list[distributed.Future]
    starts: NDArray[np.intp]
    steps: tuple[Callable[[Any], Any], ...] = ()
    n_columns: int = 0
    dtype: np.dtype[Any] = FLOAT64
    holds_sparse: bool = False

    def each(
        self, function: Callable[..., Result], *per_row: Any, among: NDArray[Any] | None = None
    ) -> list[Result]:
        """Call the function on the workers that have the blocks."""
        return list(self.cluster.results(self._submit(function, *per_row, among=among)))

    def map(self, function: Callable[[Any], Any]) -> DaskRows:
        """Add a step, which is taken whenever a block is used."""
        return replace(self, steps=(*self.steps, function))

    def dense(self, columns: NDArray[np.intp]) -> DaskRows:
        """Add a step that takes some columns, as dense rows."""
        taken = self.map(partial(dense_columns, columns=columns))
        return replace(taken, n_columns=len(columns), holds_sparse=False)

    def mapped(
        self, function: Callable[..., Any], per_row: NDArray[Any], n_columns: int
    ) -> DaskRows:
        """Apply a function now, and keep the result on the workers."""
        blocks = self._submit(function, per_row)
        return replace(self, blocks=blocks, steps=(), n_columns=n_columns)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        if isinstance(rows, slice):
            rows = np.arange(self.shape[0])[rows]
        elif rows.dtype == bool:
            rows = np.flatnonzero(rows)
        owners = in_blocks(rows, self.starts)
        tasks = [
            self.cluster.submit(
                on_block,
                operator.getitem,
                self.steps,
                self.blocks[b],
                None,
                rows[at] - self.starts[b],
            )
            for b, at in owners
        ]
        found = stacked(self.cluster.results(tasks))
        order = np.empty(len(rows), dtype=np.intp)
        order[np.concatenate([at for _, at in owners])] = np.arange(len(rows))
        return found[order]

    def kept(self) -> DaskRows:
        """Take the steps now, and keep the result on the workers."""
        return replace(self, blocks=self._submit(identity), steps=()) if self.steps else self

    def _submit(
        self, function: Callable[..., Any], *per_row: Any, among: NDArray[Any] | None = None
    ) -> list[distributed.Future]:
        tasks = []
        for block, ends in zip(self.blocks, pairwise(self.starts), strict=True):
            arrays = [None if array is None else array[slice(*ends)] for array in (among, *per_row)]
            if arrays[0] is None or arrays[0].any():
                task = self.cluster.submit(on_block, function, self.steps, block, *arrays)
                tasks.append(task)
        return tasks


def on_block(
    function: Callable[..., Result],
    steps: Sequence[Callable[[Any], Any]],
    block: Any,
    among: NDArray[Any] | None = None,
    *per_row: Any,
) -> Result:
    """Take all steps, and call the function."""
    with single_threaded_blas():
        for step in steps:
            block = step(block)
        if among is None:
            return function(block, *per_row)
        return Resident(block).each(function, *per_row, among=among)[0]


def shipped(value: Any) -> Delayed:
    """Send what many tasks need: pickled, as arrays sent as such may arrive unaligned."""
    return dask.delayed(pickle.dumps(value), traverse=False)


def identity(block: Any) -> Any:
    """Return what was given."""
    return block


def time_limit(seconds: float) -> float | None:
    """Seconds left on a monitor; None if there is no limit."""
    return None if np.isinf(seconds) else seconds


def side_by_side(X: Any, y: Any, cluster: Cluster, **others: Any) -> tuple[Any, ...]:
    """Bring rows and what belongs to them to the cluster; leave out empty partitions.

    Parameters
    ----------
    X : dask array or data frame
        Rows.
    y : dask array or series
        Labels.
    cluster : Cluster
        Where to bring them.
    **others : dask array or series, array, or None
        Values with an entry per row.

    Returns
    -------
    DaskRows, list of Labels, *arrays or None
        The others in the order of `others`, on the client.
    """
    if not isinstance(X, da.Array | dd.DataFrame) or X.ndim != 2:
        raise TypeError(
            "X must be a dask array of two dimensions or a dask data frame, got "
            f"{type(X).__name__}; EnsembleSVC takes rows in memory."
        )
    if not isinstance(y, da.Array | dd.Series | dd.DataFrame):
        raise TypeError(
            f"y must be a dask array or series, got {type(y).__name__}; take it from the frame of "
            "X, or make one with dask.array.from_array."
        )
    is_far = dask.is_dask_collection
    far = {"y": y} | {name: own for name, own in others.items() if is_far(own)}
    blocks, parts = _brought(X, far, cluster)
    facts: list[Facts] = cluster.results([cluster.submit(facts_of, block) for block in blocks])
    n_rows = [own.n_rows for own in facts]
    used = [b for b, n in enumerate(n_rows) if n]
    if not used:
        raise ValueError("X has no rows.")
    same = set[str]()
    if isinstance(X, dd.DataFrame):
        refuse_other_columns(X._meta, [(b, facts[b]) for b in used])
        for name, own in far.items():
            if not isinstance(own, da.Array) and _have_one_index(
                name, blocks, parts[name], cluster
            ):
                same.add(name)
    labels: list[Labels] = cluster.accepted(
        [cluster.submit(or_refusal, labels_of, part, b) for b, part in enumerate(parts["y"])]
    )
    _refuse_other_lengths("y", n_rows, [len(own.codes) for own in labels], "y" in same)
    refuse_other_kinds("y", [(f"in partition {b}", own.kind) for b, own in enumerate(labels)])
    values: list[NDArray[Any] | None] = []
    for name, given in others.items():
        if given is None:
            values.append(None)
        elif is_far(given):
            found = [cluster.submit(or_refusal, values_of, part, name) for part in parts[name]]
            entries = cluster.accepted(found)
            _refuse_other_lengths(name, n_rows, list(map(len, entries)), name in same)
            values.append(np.concatenate(entries))
        else:
            values.append(values_of(given, name))
            _refuse_other_lengths(name, [sum(n_rows)], [len(given)])
    starts = np.concatenate([[0], np.cumsum(np.array(n_rows)[used])])
    rows = DaskRows(cluster, [blocks[b] for b in used], starts)
    return rows, [own for own in labels if len(own.codes)], *values


def _brought(
    X: Any, others: dict[str, Any], cluster: Cluster
) -> tuple[list[distributed.Future], dict[str, list[distributed.Future]]]:
    """Bring the partitions of rows, with their columns in order, and of others to the cluster."""
    others = {name: _divided_like(X, own, name) for name, own in others.items()}
    tables, of_rows = partitions_of_all(X, others)
    futures = iter(cluster.compute([*tables, *chain.from_iterable(of_rows.values())]))
    columns = list(X.columns) if isinstance(X, dd.DataFrame) else None
    blocks = [
        cluster.submit(in_order, part, columns, f"Partition {b} of X")
        for b, part in enumerate(islice(futures, len(tables)))
    ]
    return blocks, {name: list(islice(futures, len(own))) for name, own in of_rows.items()}


def _divided_like(X: Any, other: Any, name: str) -> Any:
    """Divide an array into the chunks of another, if all of them are known."""
    if not (isinstance(X, da.Array) and isinstance(other, da.Array)):
        return other
    if np.isnan(sum(X.chunks[0]) + sum(other.chunks[0])):
        return other
    if X.shape[0] != other.shape[0]:
        _refuse_other_lengths(name, list(X.chunks[0]), list(other.chunks[0]))
    return other.rechunk((X.chunks[0], *other.chunks[1:]))


def _refuse_other_lengths(
    name: str, n_rows: list[int], n_entries: list[int], have_one_index: bool = False
) -> None:
    """Refuse values that are not as many as the rows, or not of the rows of their partitions."""
    entries = "labels" if name == "y" else f"entries of {name}"
    if sum(n_rows) != sum(n_entries):
        raise ValueError(
            f"X has {sum(n_rows):,} rows, but {name} has {sum(n_entries):,}; they must be the same "
            "rows, in the same order."
        )
    if have_one_index or len(n_rows) != len(n_entries):
        return  # by their position
    for b, (own, other) in enumerate(zip(n_rows, n_entries, strict=True)):
        if own != other:
            raise ValueError(
                f"Partition {b} has {own} rows of X, but {other} {entries}; X and {name} must have "
                "the same partitions."
            )


def _have_one_index(
    name: str, blocks: list[distributed.Future], parts: list[distributed.Future], cluster: Cluster
) -> bool:
    """Whether values have the index of X; refuse those that have it in another order."""
    prints = []
    for own in (blocks, parts):
        ends = np.cumsum(cluster.results([cluster.submit(len, part) for part in own]))
        starts = [0, *ends[:-1].tolist()]
        tasks = [cluster.submit(print_of, *each) for each in zip(own, starts, strict=True)]
        prints.append(merged(cluster.results(tasks)))
    of_rows, of_values = prints
    if of_rows.labels == of_values.labels and of_rows != of_values:
        raise ValueError(
            f"X and {name} have the same index in another order, so that rows would get the wrong "
            f"{'labels' if name == 'y' else 'values'}. Take both from one data frame, or drop the "
            "index if it means nothing."
        )
    return bool(of_rows == of_values)
