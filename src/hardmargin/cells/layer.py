"""A layer: one tree of cuts, and the machines of all its cells in a few flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.cells.cuts import Cuts
from hardmargin.cells.machines import (
    LEAST_PROBABILITY,
    Candidate,
    CellRows,
    CellRules,
    Learned,
    found_among,
    learn,
    log_probabilities,
    seen_rows,
    shares_of_classes,
)
from hardmargin.kernels import FloatArray, Kernel, Rows, aligned, as_blocks, is_sparse
from hardmargin.kernels.kernel import METRICS
from hardmargin.monitor import Monitor
from hardmargin.resources import give_back_memory
from hardmargin.selection.calibration import Calibration, machine_probabilities
from hardmargin.selection.folds import Folds
from hardmargin.selection.vote import COST_OF_VOTE
from hardmargin.solvers.problem import machines_of


@dataclass(frozen=True)
class Layer:
    """Cuts, and the machines of all cells.

    Attributes
    ----------
    cuts : Cuts
        The tree.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes of a cell.
    shares : (n_cells, n_classes) array
        Share of every class in every cell.
    is_learned : (n_cells, n_classes) bool array
        Which classes the machines of a cell tell apart.
    starts : (n_cells + 1,) int64 array
        Where the members of each cell begin, and where the last ones end.
    members : (n_members,) int32 array
        Training rows with coefficients, cell after cell.
    means, scales : (n_cells, n_features) float32 arrays
        Rows x of a cell are seen as ``(x - mean) * scale``.
    kernels : list of str
        Names of the kernels.
    gammas : (n_cells, n_kernels) array
        Their gammas, cell by cell; 0 for those without a vote there.
    coefficient_starts : (n_kernels, n_members + 1) int64 array
        Where the coefficients of each kernel and member begin.
    machines : (n_coefficients,) int16 array
        The machine of the cell that each coefficient belongs to.
    values : (n_coefficients,) float32 array
        The coefficients.
    intercepts, slopes : (n_cells, n_machines) arrays
        Biases of the machines, and slopes of their sigmoids.
    taus : (n_cells,) array
        How sharp the softmax of many classes is.
    """

    cuts: Cuts
    multi_class: str
    shares: FloatArray
    is_learned: NDArray[np.bool_]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    means: NDArray[np.float32]
    scales: NDArray[np.float32]
    kernels: list[str]
    gammas: FloatArray
    coefficient_starts: NDArray[np.int64]
    machines: NDArray[np.int16]
    values: NDArray[np.float32]
    intercepts: FloatArray
    slopes: FloatArray
    taus: FloatArray

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.cuts.n_cells

    def log_probabilities(
        self, X: Rows, support: Rows, n_jobs: int | None = None
    ) -> NDArray[np.float32]:
        """Log-probabilities of all classes.

        Parameters
        ----------
        X : (n, d) float32 array or CSR matrix
            Queries.
        support : rows
            All training rows.
        n_jobs : int, optional
            Threads.
        """
        return self.log_probabilities_in(self.cuts.route(X, n_jobs), X, support, n_jobs)

    def log_probabilities_in(
        self, cells: NDArray[np.int32], X: Rows, support: Rows, n_jobs: int | None = None
    ) -> NDArray[np.float32]:
        """Log-probabilities of rows whose cells are known."""
        margins = self._margins(X, cells, support, n_jobs) + self.intercepts[cells]
        if self.shares.shape[1] == 2:  # all cells at once
            every = self.shares[cells]
            positive = machine_probabilities(margins[:, 0], self.slopes[cells, 0])
            is_learned = self.is_learned[cells, 0]
            every[is_learned] = np.column_stack([1 - positive, positive])[is_learned]
            return np.log(np.maximum(every, LEAST_PROBABILITY)).astype(np.float32)
        logs = np.empty((X.shape[0], self.shares.shape[1]), dtype=np.float32)
        for c, rows in _by_cell(cells, self.n_cells):
            classes = np.flatnonzero(self.is_learned[c])
            found = np.empty((len(rows), 0))
            if len(classes):
                own = slice(len(machines_of(len(classes), self.multi_class)))
                calibration = Calibration(
                    self.slopes[c, own], len(classes), self.multi_class, float(self.taus[c])
                )
                found = calibration.probabilities(margins[rows, own])
            logs[rows] = log_probabilities(classes, found, self.shares[c])
        return logs

    def _margins(
        self, X: Rows, cells: NDArray[np.int32], support: Rows, n_jobs: int | None
    ) -> FloatArray:
        """Scores of the machines of each row's cell, without the biases."""
        margins = np.zeros((X.shape[0], self.intercepts.shape[1]))
        if not self.kernels:
            return margins
        if not is_sparse(X):
            _core.expand_cells(
                [METRICS[name] for name in self.kernels],
                aligned(self.gammas),
                aligned(np.ascontiguousarray(X)),
                cells,
                aligned(support),
                aligned(self.members),
                aligned(self.starts),
                aligned(self.means),
                aligned(self.scales),
                aligned(self.coefficient_starts),
                aligned(self.machines),
                aligned(self.values),
                margins,
                effective_n_jobs(n_jobs),
            )
            return margins
        for c, rows in _by_cell(cells, self.n_cells):
            own = slice(int(self.starts[c]), int(self.starts[c + 1]))
            Q, S = (
                seen_rows(some, self.means[c], self.scales[c])
                for some in (X[rows], support[self.members[own]])
            )
            for k, name in enumerate(self.kernels):
                if self.gammas[c, k] > 0:
                    kernel = Kernel(name, gamma=float(self.gammas[c, k]))
                    found = kernel.expand(
                        Q, S, self.coefficients(k, own), dtype="float32", n_jobs=n_jobs
                    )
                    margins[rows] = margins[rows] + found
        return margins

    def coefficients(self, kernel: int, members: slice) -> sp.csr_array:
        """Coefficients of some members, of shape (n_machines, n_members)."""
        starts = self.coefficient_starts[kernel, members.start : members.stop + 1]
        own = slice(int(starts[0]), int(starts[-1]))
        return sp.csr_array(
            (self.values[own], self.machines[own].astype(np.int32), starts - starts[0]),
            shape=(len(starts) - 1, self.intercepts.shape[1]),
        ).T.tocsr()


class LayerInTraining:
    """A layer whose cells are learned when they are asked for.

    Parameters
    ----------
    cuts : Cuts
        The tree.
    rows : CellRows
        All training rows.
    rules : CellRules
        How cells are learned.
    n_jobs : int, optional
        Threads over cells.

    Attributes
    ----------
    rows_of_cells : list of int arrays
        Training rows of every cell.
    shares : (n_cells, n_classes) array
        Share of every class in every cell.
    skipped : set of int
        Cells that there was no time for.
    """

    def __init__(
        self, cuts: Cuts, rows: CellRows, rules: CellRules, n_jobs: int | None = None
    ) -> None:
        self.cuts, self._rows, self._rules, self._n_jobs = cuts, rows, rules, n_jobs
        self._learned: dict[int, Learned | None] = {}
        self.skipped: set[int] = set()
        self._name = f"tree {crc32(cuts.thresholds.tobytes()):x}"
        routes = as_blocks(rows.X).each(partial(cuts.route, n_jobs=n_jobs))
        self._cells = np.concatenate(routes)
        order = np.argsort(self._cells, kind="stable")
        sizes = np.bincount(self._cells, minlength=cuts.n_cells)
        self.rows_of_cells = np.split(order, sizes.cumsum()[:-1])
        self.shares = shares_of_classes(self._cells, cuts.n_cells, rows, rules.prior)

    def learn(
        self, cells: Sequence[int], candidates: Sequence[Candidate], monitor: Monitor
    ) -> FloatArray | None:
        """Learn cells, unless they are learned already.

        Returns the mean shares of the candidates in the votes of these cells; None if no cell
        could be learned.
        """
        todo = [c for c in cells if c not in self._learned]
        found = self._learn(todo, candidates, monitor.part(n_machines=len(todo), unit="cell"))
        if monitor.seconds_left <= 0:
            self.skipped.update(c for c, own in zip(todo, found, strict=True) if own is None)
        shares = [own for own in found if own is not None]
        return np.asarray(np.mean(shares, axis=0)) if shares else None

    def _learn(
        self, cells: Sequence[int], candidates: Sequence[Candidate], monitor: Monitor
    ) -> list[FloatArray | None]:
        """Learn cells, and return the shares of the candidates in their votes."""

        def learn_one(task: int, part: Monitor) -> Learned | None:
            c = cells[task]
            own, folds = self.rows_of_cells[c], self._rules.folds
            if folds is not None:
                folds = Folds(folds.train[:, own], folds.test[:, own])

            def learned() -> Learned | None:
                return learn(self._rows.some(own), c, candidates, self._rules, folds, part)

            found = part.once(self._step(c), learned)
            if found is not None:
                part.go_on(found.n_stages, found.log_loss)
            if self._rules.is_limited:
                give_back_memory()
            return found

        found = monitor.each(learn_one, len(cells), effective_n_jobs(self._n_jobs))
        self._learned.update(zip(cells, found, strict=True))
        return [None if own is None else own.shares for own in found]

    def _step(self, cell: int) -> str:
        """Name of the step that learns a cell."""
        return f"cell {cell} of {self._name}"

    def rows_of(self, cells: Sequence[int]) -> NDArray[np.intp]:
        """Training rows of some cells."""
        return np.concatenate([self.rows_of_cells[c] for c in cells])

    def held_logs(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Log-probabilities that training rows had when they were held out.

        Rows that were never held out, and rows of cells that are not learned, have the logs of the
        classes' shares.
        """
        logs = np.empty((len(rows), self.shares.shape[1]), dtype=np.float32)
        by_cell = list(_by_cell(self._cells[rows], self.cuts.n_cells))
        places = {c: np.searchsorted(self.rows_of_cells[c], rows[at]) for c, at in by_cell}
        for (_, at), found in zip(by_cell, self._held_logs(places), strict=True):
            logs[at] = found
        return logs

    def optimism(self, rows: NDArray[np.intp]) -> float:
        """By how much the held-out log-loss of rows is too low, as their cells have made choices.

        Every cell that is learned has chosen kernels, stages and slopes.
        """
        sizes = np.bincount(self._cells[self._rows.codes >= 0], minlength=self.cuts.n_cells)
        is_learned = [c in self._learned and c not in self.skipped for c in range(len(sizes))]
        costs = np.where(is_learned, COST_OF_VOTE / np.maximum(sizes, 1), 0.0)
        return float(costs[self._cells[rows]].mean()) if len(rows) else 0.0

    def _held_logs(self, places: Mapping[int, NDArray[np.intp]]) -> list[NDArray[np.float32]]:
        """Log-probabilities of some rows of cells; `places` says which."""
        return [
            held_logs_of_cell(self._learned.get(c), at, self.shares[c]) for c, at in places.items()
        ]

    def finished(self) -> Layer:
        """Put all cells into flat arrays."""
        found = {c: own for c, own in sorted(self._found().items()) if own is not None}
        members = [self.rows_of_cells[c][own.members] for c, own in found.items()]
        multi_class, n_columns = self._rules.multi_class, self._rows.X.shape[1]
        return pack(self.cuts, multi_class, self.shares, found, members, n_columns)

    def _found(self) -> Mapping[int, Learned | None]:
        """Return the cells that were learned."""
        return self._learned


def held_logs_of_cell(
    learned: Learned | None, places: NDArray[np.intp], shares: FloatArray
) -> NDArray[np.float32]:
    """Log-probabilities that rows of a cell had when they were held out.

    Parameters
    ----------
    learned : Learned or None
        The cell, if it is learned.
    places : (n_some,) int array
        Which rows of the cell.
    shares : (n_classes,) array
        Shares of the classes in the cell, for rows that were not held out.
    """
    of_shares = np.log(np.maximum(shares, LEAST_PROBABILITY)).astype(np.float32)
    logs = np.tile(of_shares, (len(places), 1))
    if learned is None:
        return logs
    is_held, at = found_among(places, learned.held_rows)
    held = learned.held_probabilities[at]
    logs[is_held] = log_probabilities(learned.classes, held, shares)
    return logs


def pack(
    cuts: Cuts,
    multi_class: str,
    shares: FloatArray,
    learned: Mapping[int, Learned],
    members: Sequence[NDArray[np.intp]],
    n_columns: int,
) -> Layer:
    """Put learned cells into flat arrays.

    Parameters
    ----------
    cuts : Cuts
        The tree.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes of a cell.
    shares : (n_cells, n_classes) array
        Share of every class in every cell.
    learned : mapping of int to Learned
        What is known of cells, in the order of their numbers.
    members : sequence of int arrays
        Support rows of each of these cells, as `Layer.members` numbers them.
    n_columns : int
        Columns of the rows.
    """
    n_cells, n_classes = shares.shape
    candidates = sorted({candidate for own in learned.values() for candidate in own.gammas})
    most = max((len(own.intercepts) for own in learned.values()), default=1)
    sizes = np.zeros(n_cells, dtype=np.int64)
    is_learned = np.zeros((n_cells, n_classes), dtype=bool)
    means = np.zeros((n_cells, n_columns), dtype=np.float32)
    scales = np.ones_like(means)
    gammas = np.zeros((n_cells, len(candidates)))
    intercepts, slopes = np.zeros((2, n_cells, most))
    taus = np.ones(n_cells)
    for c, own in learned.items():
        sizes[c] = len(own.members)
        is_learned[c, own.classes] = True
        means[c], scales[c], taus[c] = own.mean, own.scale, own.calibration.tau
        intercepts[c, : len(own.intercepts)] = own.intercepts
        slopes[c, : len(own.intercepts)] = own.calibration.slopes
        for candidate, gamma in own.gammas.items():
            gammas[c, candidates.index(candidate)] = gamma
    coefficient_starts, machines, values = packed(
        [
            [
                own.coefficients.get(candidate, np.zeros((1, len(own.members)), np.float32))
                for own in learned.values()
            ]
            for candidate in candidates
        ]
    )
    return Layer(
        cuts,
        multi_class,
        shares,
        is_learned,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        np.concatenate([np.empty(0, np.int32), *members]).astype(np.int32),
        means,
        scales,
        [name for name, _ in candidates],
        gammas,
        coefficient_starts,
        machines,
        values,
        intercepts,
        slopes,
        taus,
    )


def packed(
    coefficients: Sequence[Sequence[NDArray[np.float32]]],
) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.float32]]:
    """Put coefficients into flat arrays: see `coefficient_starts`, `machines` and `values`.

    Parameters
    ----------
    coefficients : sequence of sequences of (n_machines, n_members) arrays
        By kernel, and then by cell.
    """
    n = sum(own.shape[1] for own in coefficients[0]) if coefficients else 0
    starts = np.empty((len(coefficients), n + 1), dtype=np.int64)
    machines, values, n_before = [np.empty(0, np.int16)], [np.empty(0, np.float32)], 0
    for of_kernel, ends in zip(coefficients, starts, strict=True):
        ends[0], end = n_before, 1
        for own in of_kernel:
            member, machine = np.nonzero(own.T)
            begin, end = end, end + own.shape[1]
            ends[begin:end] = np.bincount(member, minlength=own.shape[1])
            machines.append(machine.astype(np.int16))
            values.append(own[machine, member])
        n_before = int(np.cumsum(ends, out=ends)[-1])
    return starts, np.concatenate(machines), np.concatenate(values)


def _by_cell(cells: NDArray[np.int32], n_cells: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Cells that have rows, with their rows."""
    order = np.argsort(cells, kind="stable")
    ends = np.cumsum(np.bincount(cells, minlength=n_cells))
    for c, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            yield c, rows
