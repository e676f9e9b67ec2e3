"""Cuts: a tree that divides the space into cells of about equally many rows.

A cut halves the rows of a node, either at the median of a column or across a direction.

The column is the one at which a linear model of the classes changes most: on a sample of the node's
rows a ridge regression is fitted to the classes, and the sums of residual times column over the
rows on one side show how unstable it is there (the score-fluctuation test of model-based trees).
The scales of the columns do not matter.

The direction is one of large variance in the columns' original units: cells that are compact in
these units suit data such as coordinates. It is one step of power iteration from a random vector,
so that several such trees differ.

All of this happens on a sample of rows, so that the same cuts are found wherever the rows live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.linalg
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Rows, aligned, as_core_matrix, is_sparse
from hardmargin.monitor import Monitor

#: How cuts are chosen: at a column, or across a direction.
Kind: TypeAlias = Literal["column", "direction"]

KINDS: tuple[Kind, ...] = ("column", "direction")

#: Rows of a node that choose its cut.
NODE_ROWS = 3_000

#: The most columns of the linear model.
MODEL_COLUMNS = 100

#: A cut leaves at least this share of the rows on either side.
LEAST_SIDE = 0.25

#: Trees of a kind differ, as each cut is at one of this many best columns; the first tree takes the
#: very best.
N_BEST = 3

#: Penalty of the ridge regression, per row.
RIDGE = 0.01

#: Standardised values are no further than this from the mean, in the linear model.
LARGEST_VALUE = 4.0

#: Numbers of the sample that are converted at a time.
NUMBERS_AT_ONCE = 1_000_000

#: Each level halves the rows, more or less.
MAX_DEPTH = 64

_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True)
class Cuts:
    """A tree of cuts, as flat arrays.

    Attributes
    ----------
    columns : (n_cuts,) int32 array
        The column that a cut looks at; where negative, ``-1 - columns`` is its direction.
    directions : (n_directions, n_features) float32 array
        Directions: a cut looks at a row's product with its direction.
    thresholds : (n_cuts,) float32 array
        Rows with at most this value go to the first child.
    children : (n_cuts, 2) int32 array
        The next cuts; where negative, ``-1 - children`` is a cell.
    """

    columns: NDArray[np.int32]
    directions: NDArray[np.float32]
    thresholds: NDArray[np.float32]
    children: NDArray[np.int32]

    @property
    def n_cells(self) -> int:
        """Number of cells: one more than cuts."""
        return len(self.columns) + 1

    def route(self, X: Rows, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Find the cell of every row."""
        cells = np.empty(X.shape[0], dtype=np.int32)
        _core.route_cells(
            aligned(self.columns),
            aligned(self.directions),
            aligned(self.thresholds),
            aligned(self.children),
            as_core_matrix(X),
            cells,
            effective_n_jobs(n_jobs),
        )
        return cells


class _Cut(NamedTuple):
    """One cut, and which rows are on its left."""

    column: int
    direction: NDArray[np.float32] | None
    threshold: np.float32
    is_left: NDArray[np.bool_]


def find_cuts(
    X: Rows,
    codes: NDArray[np.int32],
    units: FloatArray,
    *,
    max_rows: float,
    kind: Kind,
    is_first: bool,
    random_state: np.random.RandomState,
    monitor: Monitor | None = None,
) -> Cuts:
    """Cut rows until no part has more than `max_rows`.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        A sample of rows.
    codes : (n,) int array
        Their classes.
    units : (d,) array
        Columns times this have their original units.
    max_rows : float
        Rows of the sample that a cell may have.
    kind : {"column", "direction"}
        What cuts look at.
    is_first : bool
        Whether this is the first tree of its kind: later ones are drawn at random.
    random_state : RandomState
        Draws rows, columns and directions.
    monitor : Monitor, optional
        Raises ``Stopped`` between two cuts when the fit is to end.
    """
    watch = monitor or Monitor()
    columns: list[int] = []
    directions: list[NDArray[np.float32]] = []
    thresholds: list[np.float32] = []
    children: list[list[int]] = []
    n_cells = 0
    todo = [(np.arange(X.shape[0]), -1, 0, 0)]  # rows, their parent, which child, depth
    while todo:
        watch.check()
        rows, parent, side, depth = todo.pop()
        cut = None
        if len(rows) > max_rows and depth < MAX_DEPTH:
            n_best = 1 if is_first else N_BEST
            is_all = len(rows) == X.shape[0]
            own = X if is_all else X[rows]
            cut = _cut(own, codes[rows], units, kind, n_best, random_state)
        if cut is None:
            n_cells += 1
        if parent >= 0:
            children[parent][side] = -n_cells if cut is None else len(columns)
        if cut is None:
            continue
        parts = (rows[cut.is_left], rows[~cut.is_left])
        todo += [(part, len(columns), s, depth + 1) for s, part in enumerate(parts)][::-1]
        if cut.direction is not None:
            directions.append(cut.direction)
        columns.append(cut.column if cut.direction is None else -len(directions))
        thresholds.append(cut.threshold)
        children.append([0, 0])
    return Cuts(
        np.array(columns, dtype=np.int32),
        np.array(directions, dtype=np.float32).reshape(-1, X.shape[1]),
        np.array(thresholds, dtype=np.float32),
        np.array(children, dtype=np.int32).reshape(-1, 2),
    )


def _cut(
    X: Rows,
    codes: NDArray[np.int32],
    units: FloatArray,
    kind: Kind,
    n_best: int,
    random: np.random.RandomState,
) -> _Cut | None:
    """Choose a column or a direction, and a threshold; None if nothing divides the rows."""
    some = random.permutation(X.shape[0])[:NODE_ROWS]
    sample = X[some]
    if kind == "column":
        best = _unstable_columns(sample, codes[some], random)[:n_best]
        if len(best):
            column = int(random.choice(best))
            values = X[:, [column]].toarray().ravel() if is_sparse(X) else X[:, column]
            if (halves := _halves(values.astype(np.float32))) is not None:
                return _Cut(column, None, *halves)
    for direction in (_wide_direction(sample, units, random), random.normal(size=X.shape[1])):
        as_stored = direction.astype(np.float32)
        if (halves := _halves(_along(X, as_stored))) is not None:
            return _Cut(-1, as_stored, *halves)
    return None


def _along(X: Rows, direction: NDArray[np.float32]) -> FloatArray:
    """Products of rows with a direction, in float64."""
    in_float64 = direction.astype(np.float64)
    step = max(1, NUMBERS_AT_ONCE // X.shape[1])  # as the rows are copied
    parts = (X[begin : begin + step] for begin in range(0, X.shape[0], step))
    return np.concatenate([part @ in_float64 for part in parts])


def _halves(values: NDArray[Any]) -> tuple[np.float32, NDArray[np.bool_]] | None:
    """Cut between two values, as near to the median as possible without too few on a side.

    Rows are routed by sums in another order; half-way between two values, that rounding does not
    matter.
    """
    ordered = np.sort(values.astype(np.float32))
    n, middle = len(ordered), ordered[len(ordered) // 2]
    ends = (int(np.searchsorted(ordered, middle, side)) for side in ("left", "right"))
    for at in sorted(ends, key=lambda end: abs(end - n / 2)):
        if not LEAST_SIDE * n <= at <= (1 - LEAST_SIDE) * n:
            continue
        below, above = ordered[at - 1], ordered[at]
        threshold = np.float32((np.float64(below) + np.float64(above)) / 2)
        if threshold == above:  # there is no number between them
            threshold = below
        return threshold, values <= np.float64(threshold)
    return None


def _unstable_columns(
    X: Rows, codes: NDArray[np.int32], random: np.random.RandomState
) -> NDArray[np.intp]:
    """Columns whose medians divide the rows well; first where a linear model changes most."""
    columns = np.arange(X.shape[1])
    if is_sparse(X):  # only columns with many entries can divide the rows
        n_entries = np.bincount(X.indices, minlength=X.shape[1])
        columns = np.argsort(-n_entries, kind="stable")[:MODEL_COLUMNS]
        X = X[:, columns].toarray()
    ordered, n = np.sort(X, axis=0), len(X)  # np.median is slow where values repeat
    middle = ordered[(n - 1) // 2 : n // 2 + 1].mean(axis=0)
    is_left = middle >= X
    is_most = is_left.mean(axis=0) > 1 - LEAST_SIDE
    is_left[:, is_most] = X[:, is_most] < middle[is_most]
    share = is_left.mean(axis=0)
    fits = np.flatnonzero((share >= LEAST_SIDE) & (share <= 1 - LEAST_SIDE))
    if len(fits) == 0 or len(np.unique(codes)) < 2:
        return np.empty(0, dtype=np.intp)
    share = share[fits]
    sides = (is_left[:, fits] - share).astype(np.float32)
    shifts = np.zeros(len(fits))
    Z, residuals = _residuals(X, codes, random)
    for residual in residuals.T:
        scores = Z * residual[:, None]
        scores -= scores.mean(axis=0)
        variance = scores.var(axis=0)
        sums = (sides.T @ scores) ** 2 / np.where(variance > _LEAST_VARIANCE, variance, np.inf)
        shifts += sums.sum(axis=1)
    shifts /= share * (1 - share)
    return np.asarray(columns[fits[np.argsort(-shifts, kind="stable")]])


def _residuals(
    X: NDArray[Any], codes: NDArray[np.int32], random: np.random.RandomState
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Regress the classes on standardised columns and a constant; return columns and residuals."""
    columns = np.arange(X.shape[1])
    if len(columns) > MODEL_COLUMNS:
        columns = np.sort(random.choice(columns, MODEL_COLUMNS, replace=False))
    Z = X[:, columns] - X[:, columns].mean(axis=0)
    deviation = Z.std(axis=0)
    Z = Z[:, deviation > 0] / deviation[deviation > 0]
    Z = np.hstack([np.ones((len(Z), 1), Z.dtype), Z.clip(-LARGEST_VALUE, LARGEST_VALUE)])
    classes = np.unique(codes)
    Y = (codes[:, None] == (classes[1:] if len(classes) == 2 else classes)).astype(Z.dtype)
    Y -= Y.mean(axis=0)
    gram = Z.T @ Z
    gram.flat[:: len(gram) + 1] += RIDGE * len(Z)
    return Z, Y - Z @ scipy.linalg.solve(gram, Z.T @ Y, assume_a="pos")


def _wide_direction(X: Rows, units: FloatArray, random: np.random.RandomState) -> FloatArray:
    """Take one step of power iteration from a random vector, in the units of the columns."""
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    start = units * random.normal(size=X.shape[1])
    along = X @ start - mean @ start
    direction = units**2 * (X.T @ along - mean * along.sum())
    size = np.linalg.norm(direction)
    return np.asarray(direction / size) if size > 0 else direction
