"""A tree whose cells are learned by tasks, and stay on the workers."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import dask
import distributed
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from hardmargin.cells import CellRows, CellRules, Cuts, Layer, LayerInTraining
from hardmargin.cells.layer import held_logs_of_cell, pack
from hardmargin.cells.machines import Candidate, Learned, learn
from hardmargin.dask.cluster import Cluster, DaskRows, identity, on_block, shipped, time_limit
from hardmargin.kernels import FloatArray, Rows
from hardmargin.kernels.blocks import stacked
from hardmargin.monitor import Monitor
from hardmargin.resources import single_threaded_blas
from hardmargin.selection.folds import Folds


class LayerOnCluster(NamedTuple):
    """A tree whose cells are on workers: which bundle each cell is in, and the bundles."""

    cuts: Cuts
    bundle_of: NDArray[np.int32]
    parts: list[Any]


class _Bundle(NamedTuple):
    """Rows of some cells, or rows of one block on their way to these cells.

    Attributes
    ----------
    rows : CellRows
        The rows.
    cells : (n,) int32 array
        Their cells.
    folds : Folds or None
        Their splits, if splits are given.
    """

    rows: CellRows
    cells: NDArray[np.int32]
    folds: Folds | None


class DaskLayer(LayerInTraining):
    """A layer whose cells are learned by tasks, and stay on the workers."""

    def __init__(self, cuts: Cuts, rows: CellRows, rules: CellRules) -> None:
        super().__init__(cuts, rows, rules)
        self._tasks: dict[int, distributed.Future] = {}
        self._bundles: list[tuple[list[int], distributed.Future]] = []

    def _learn(
        self, cells: Sequence[int], candidates: Sequence[Candidate], monitor: Monitor
    ) -> list[FloatArray | None]:
        blocks: DaskRows = self._rows.X
        rules = replace(self._rules, folds=None)
        groups = self._grouped(cells)
        bundles = self._shuffled(groups)
        seconds = monitor.seconds_left
        options = shipped((candidates, rules, seconds))
        known = {c for c in cells if monitor.knows(self._step(c))}
        learned = {
            c: dask.delayed(pickle.loads)(shipped(monitor.once(self._step(c), dict)))
            if c in known
            else dask.delayed(_learn_cell)(bundle, c, options)
            for group, bundle in zip(groups, bundles, strict=True)
            for c in group
        }
        n = len(bundles)
        tasks = blocks.cluster.compute([*bundles, *learned.values()])

        def keep(numbers: list[int]) -> None:
            """Bring cells to the client, as soon as they are learned, for the checkpoint."""
            steps = {list(learned)[k]: tasks[n:][k] for k in numbers}
            own = {c: t for c, t in steps.items() if c not in known and t.status == "finished"}
            for c, found in zip(own, blocks.cluster.results(list(own.values())), strict=True):
                monitor.once(self._step(c), partial(identity, found))

        may_keep = {} if monitor.checkpoint is None else {"on_done": keep}
        in_time = blocks.cluster.wait(tasks[n:], monitor, **may_keep)
        done = {
            c: task
            for c, task in zip(learned, tasks[n:], strict=True)
            if in_time or task.status == "finished"
        }
        self._learned.update(dict.fromkeys(cells))
        self._tasks.update(done)
        self._bundles += zip(groups, tasks[:n], strict=True)
        summaries = [
            blocks.cluster.submit(_shares, [done.get(c) for c in group]) for group in groups
        ]
        found = chain.from_iterable(blocks.cluster.results(summaries))
        shares = dict(zip(chain.from_iterable(groups), found, strict=True))
        return [shares[c] for c in cells]

    def _grouped(self, cells: Sequence[int]) -> list[list[int]]:
        """Divide cells into bundles that have about as many rows as blocks have."""
        cells = sorted(cells)
        sizes = np.array([len(self.rows_of_cells[c]) for c in cells])
        n_rows, n_blocks = self._rows.X.shape[0], len(self._rows.X.blocks)
        bundle = (np.cumsum(sizes) - sizes) * n_blocks // max(n_rows, 1)
        return [[cells[k] for k in np.flatnonzero(bundle == b)] for b in np.unique(bundle)]

    def _shuffled(self, groups: Sequence[Sequence[int]]) -> list[Delayed]:
        """Bring the rows of cells together, from all blocks."""
        blocks, folds = self._rows.X, self._rules.folds
        plan = shipped((blocks.steps, self.cuts, self._bundle_of(groups)))
        pieces = []
        for b, block in enumerate(blocks.blocks):
            own = slice(blocks.starts[b], blocks.starts[b + 1])
            of_rows = shipped(
                (
                    self._rows.codes[own],
                    self._rows.weights[own],
                    None if folds is None else Folds(folds.train[:, own], folds.test[:, own]),
                )
            )
            pieces.append(dask.delayed(_split, nout=len(groups))(block, of_rows, plan))
        return [dask.delayed(_joined)([piece[g] for piece in pieces]) for g in range(len(groups))]

    def _bundle_of(self, groups: Sequence[Sequence[int]]) -> NDArray[np.int32]:
        """Bundle of every cell; -1 for cells that are in none."""
        bundle_of = np.full(self.cuts.n_cells, -1, dtype=np.int32)
        for g, group in enumerate(groups):
            bundle_of[list(group)] = g
        return bundle_of

    def _held_logs(self, places: Mapping[int, NDArray[np.intp]]) -> list[NDArray[np.float32]]:
        bundles = [[c for c in group if c in places] for group, _ in self._bundles]
        bundles.append([c for c in places if c not in self._learned])
        arguments = [
            ([self._tasks.get(c) for c in own], [places[c] for c in own], self.shares[own])
            for own in bundles
            if own
        ]
        cluster = self._rows.X.cluster
        found = cluster.results([cluster.submit(_held_logs, *each) for each in arguments])
        logs = dict(zip(chain.from_iterable(bundles), chain.from_iterable(found), strict=True))
        return [logs[c] for c in places]

    def _found(self) -> Mapping[int, Learned | None]:
        tasks = list(self._tasks.values())
        return dict(zip(self._tasks, self._rows.X.cluster.results(tasks), strict=True))

    def on_cluster(self) -> LayerOnCluster:
        """Put the cells of each bundle into flat arrays, for predictions."""
        cluster: Cluster = self._rows.X.cluster
        groups = [group for group, _ in self._bundles]
        parts = [
            cluster.submit(
                _packed,
                bundle,
                group,
                [self._tasks.get(c) for c in group],
                self.shares[group],
                self._rules.multi_class,
            )
            for group, bundle in self._bundles
        ]
        cluster.wait(parts)
        return LayerOnCluster(self.cuts, self._bundle_of(groups), parts)


def _split(block: Any, of_rows: bytes, plan: bytes) -> list[_Bundle]:
    """Cut a block up by bundles of cells."""
    (codes, weights, folds), (steps, cuts, bundle_of) = map(pickle.loads, (of_rows, plan))
    X = on_block(identity, steps, block)
    cells = cuts.route(X)
    found = []
    for g in range(int(bundle_of.max()) + 1):
        own = np.flatnonzero(bundle_of[cells] == g)
        split = None if folds is None else Folds(folds.train[:, own], folds.test[:, own])
        found.append(_Bundle(CellRows(X, codes, weights).some(own), cells[own], split))
    return found


def _joined(pieces: Sequence[_Bundle]) -> _Bundle:
    """Put the rows of some cells together: cell by cell, and in their old order in each."""
    cells = np.concatenate([piece.cells for piece in pieces])
    order = np.argsort(cells, kind="stable")
    folds = None
    if pieces[0].folds is not None:
        train, test = (
            np.concatenate([getattr(piece.folds, name) for piece in pieces], axis=1)[:, order]
            for name in ("train", "test")
        )
        folds = Folds(train, test)
    rows = CellRows(
        stacked([piece.rows.X for piece in pieces])[order],
        np.concatenate([piece.rows.codes for piece in pieces])[order],
        np.concatenate([piece.rows.weights for piece in pieces])[order],
    )
    return _Bundle(rows, cells[order], folds)


def _learn_cell(bundle: _Bundle, cell: int, options: bytes) -> Learned | None:
    candidates, rules, seconds = pickle.loads(options)
    own = slice(*np.searchsorted(bundle.cells, [cell, cell + 1]))
    folds = bundle.folds
    if folds is not None:
        folds = Folds(folds.train[:, own], folds.test[:, own])
    with single_threaded_blas():
        rows = CellRows(bundle.rows.X[own], bundle.rows.codes[own], bundle.rows.weights[own])
        return learn(rows, cell, candidates, rules, folds, Monitor(time_limit(seconds)))


def _shares(learned: Sequence[Learned | None]) -> list[FloatArray | None]:
    return [None if own is None else own.shares for own in learned]


def _held_logs(
    learned: Sequence[Learned | None], places: Sequence[NDArray[np.intp]], shares: FloatArray
) -> list[NDArray[np.float32]]:
    return list(map(held_logs_of_cell, learned, places, shares))


def _packed(
    bundle: _Bundle,
    cells: Sequence[int],
    learned: Sequence[Learned | None],
    shares: FloatArray,
    multi_class: str,
) -> tuple[Layer, Rows, NDArray[np.intp]]:
    """Put the cells of a bundle into flat arrays, numbered from zero; also return their numbers."""
    found = {k: own for k, own in enumerate(learned) if own is not None}
    begins = np.searchsorted(bundle.cells, cells)
    members = [begins[k] + own.members for k, own in found.items()]
    none = np.empty(0, dtype=np.int32)
    cuts = Cuts(none, np.empty((0, 0), np.float32), np.empty(0, np.float32), none.reshape(0, 2))
    layer = pack(cuts, multi_class, shares, found, members, bundle.rows.X.shape[1])
    return layer, bundle.rows.X, np.asarray(cells)
