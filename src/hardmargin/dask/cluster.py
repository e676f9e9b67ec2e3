"""Rows and tasks on the workers of a cluster."""

from __future__ import annotations

import operator
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Event
from typing import Any, NamedTuple, TypeVar

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from distributed.comm.core import CommClosedError
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from hardmargin.estimators._base.estimator import plain_labels
from hardmargin.kernels import RowBlocks, Rows
from hardmargin.kernels.blocks import Resident, in_blocks, stacked
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


class Cluster:
    """Runs tasks, and notices if the scheduler is gone."""

    def __init__(self, client: distributed.Client) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *args: Any) -> distributed.Future:
        """Start a task."""
        return self._client.submit(function, *args, pure=False)

    def compute(self, tasks: Sequence[Delayed]) -> list[distributed.Future]:
        """Start tasks, and what they need."""
        with warnings.catch_warnings():
            # Classes of all rows are part of the tasks, so that they survive a worker.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return list(self._client.compute(list(tasks)))

    def wait(self, tasks: Sequence[distributed.Future], monitor: Monitor | None = None) -> bool:
        """Wait for tasks; return False, and cancel those that are left, if time is up."""
        progress = Event()
        for task in tasks:
            task.add_done_callback(lambda _: progress.set())
        while (n_done := sum(task.done() for task in tasks)) < len(tasks):
            self._check_scheduler()
            if monitor is not None:
                may_go_on = monitor.report(n_done, 0, np.nan)
                if not may_go_on or monitor.seconds_left <= 0:
                    self._client.cancel([task for task in tasks if not task.done()])
                    return False
            progress.wait(PATIENCE)
            progress.clear()
        self._check_scheduler()
        return True

    def results(self, tasks: Sequence[distributed.Future]) -> Any:
        """Wait for tasks, and return their results; the first error is raised."""
        self.wait(tasks)
        try:
            return self._client.gather(list(tasks))
        except CommClosedError as error:  # the scheduler has gone since the last look
            raise ConnectionError(LOST) from error

    def _check_scheduler(self) -> None:
        if self._client.status != "running":
            raise ConnectionError(LOST)


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


def side_by_side(X: Any, y: Any, cluster: Cluster) -> tuple[DaskRows, list[Labels]]:
    """Bring X and y to the cluster, in the same blocks; leave out empty ones."""
    if not isinstance(X, da.Array | dd.DataFrame) or X.ndim != 2:
        raise TypeError(
            "X must be a dask array of two dimensions or a dask data frame, got "
            f"{type(X).__name__}; EnsembleSVC takes rows in memory."
        )
    if not isinstance(y, da.Array | dd.Series | dd.DataFrame):
        raise TypeError(f"y must be a dask array or series, got {type(y).__name__}.")
    if isinstance(X, da.Array) and isinstance(y, da.Array):
        known = not np.isnan(sum(X.chunks[0]) + sum(y.chunks[0]))
        if known and X.shape[0] == y.shape[0]:
            y = y.rechunk((X.chunks[0], *y.chunks[1:]))
    tables, labels = partitions(X), partitions(y)
    if len(tables) != len(labels):
        raise ValueError(
            f"X has {len(tables)} partitions, and y has {len(labels)}; partition them alike."
        )
    blocks, of_y = cluster.compute(tables), cluster.compute(labels)
    n_rows, n_labels = (
        cluster.results([cluster.submit(_n_rows, part) for part in parts])
        for parts in (blocks, of_y)
    )
    if n_rows != n_labels:
        b = int(np.flatnonzero(np.array(n_rows) != n_labels)[0])
        raise ValueError(
            f"Partition {b} has {n_rows[b]} rows of X, but {n_labels[b]} labels; X and y must have "
            "the same partitions."
        )
    used = np.flatnonzero(n_rows)
    if len(used) == 0:
        raise ValueError("X has no rows.")
    starts = np.concatenate([[0], np.cumsum(np.array(n_rows)[used])])
    found = cluster.results([cluster.submit(_labels, of_y[b]) for b in used])
    return DaskRows(cluster, [blocks[b] for b in used], starts), found


class Labels(NamedTuple):
    """Labels of a block: the different labels, and which of them each row has."""

    classes: NDArray[Any]
    codes: NDArray[np.int32]


def _labels(block: Any) -> Labels:
    n_missing = int(np.asarray(pd.isna(block)).sum())
    if n_missing:
        raise ValueError(f"y has {n_missing:,} missing labels in one partition; drop these rows.")
    values = plain_labels(column_or_1d(np.asarray(block), warn=False))
    classes, codes = np.unique(values, return_inverse=True)
    return Labels(classes, codes.astype(np.int32))


def _n_rows(block: Any) -> int:
    return int(block.shape[0])


def partitions(X: Any) -> list[Delayed]:
    """Partitions of a collection, each of all columns."""
    if isinstance(X, da.Array) and X.ndim == 2:
        X = X.rechunk({1: -1})
    parts = X.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)
