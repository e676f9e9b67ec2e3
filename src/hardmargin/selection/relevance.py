"""Relevance: how much each column moves the log-odds of trained machines.

The relevance of a column is the root of the mean squared derivative of the log-odds along it, over
some training rows and summed over machines. A column of two values, 1 apart, has the difference
between the two instead of a derivative. The columns of one feature in one-hot encoding share the
mean of their squares, as those of rare categories alone would be noisy. A column that is scaled by
its relevance separates rows as far as it matters. One round is enough: a second one overfits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, View, column_ends

#: The most training rows at which derivatives are taken.
MAX_ROWS = 150

#: The machines that relevance rests on: factors of the usual width of their kernels, their splits,
#: and the limit on their stages.
FIRST_WIDTHS = {"rbf": (1 / 4, 1.0), "laplacian": (1.0,)}
FIRST_SPLITS = 2
FIRST_STAGES = 24

#: Splits have fewer rows, so that chance moves their log-odds more.
CHANCE_OF_SPLITS = 1.25

#: Columns are scaled by no less than this share of the most relevant one.
LEAST_SCALE = 0.02

#: Fewer columns of which at most one is high may be a coincidence.
LEAST_CATEGORIES = 3

#: Derivatives that are in memory at once.
NUMBERS_AT_ONCE = 10_000_000

#: Up to this many rows, derivatives are float64.
MAX_FLOAT64_RELEVANCE_ROWS = 500

#: Differences between the two values of a column could overflow at larger gammas.
_LARGEST_GAMMA = 80.0


class LogOdds(Protocol):
    """A machine, and the slope that turns its scores into log-odds."""

    @property
    def rows(self) -> NDArray[Any]:
        """Rows with a coefficient."""

    @property
    def coefficients(self) -> FloatArray:
        """Their coefficients, one row per kernel."""

    @property
    def slope(self) -> float:
        """Slope of the machine's sigmoid."""


class Sensed(NamedTuple):
    """A machine of one kernel, as `LogOdds`."""

    rows: NDArray[Any]
    coefficients: FloatArray
    slope: float


class _Part(NamedTuple):
    """What one kernel adds to the log-odds of the machines at some rows.

    Attributes
    ----------
    kernel : Kernel
        RBF or Laplacian.
    K : (n_queries, n) array
        Its values at these rows.
    C : (n, n_machines) array
        Its coefficients, times the slopes of the machines' sigmoids.
    """

    kernel: Kernel
    K: NDArray[Any]
    C: NDArray[Any]

    def derivatives(
        self, Q: NDArray[Any], Z: NDArray[Any], rows: Sequence[NDArray[np.intp]]
    ) -> NDArray[Any]:
        """Take derivatives along columns, with values Q of the queries and Z of the rows.

        The result has shape (n_machines, n_queries, n_columns); `rows` are those of each machine.
        """
        gamma = self.K.dtype.type(self.kernel.gamma)
        moved = np.empty((len(rows), *Q.shape), dtype=self.K.dtype)
        if self.kernel.name == "rbf":
            sums = self.K @ self.C
            for m, of in enumerate(rows):
                moments = self.K[:, of] @ (self.C[of, m, None] * Z[of])
                moved[m] = -2 * gamma * (Q * sums[:, m, None] - moments)
            return moved
        for j in range(Q.shape[1]):
            moved[:, :, j] = -gamma * ((self.K * np.sign(Q[:, j, None] - Z[:, j])) @ self.C).T
        return moved

    def differences(
        self, at_high: NDArray[Any], is_high: NDArray[Any], rows: Sequence[NDArray[np.intp]]
    ) -> NDArray[Any]:
        """Take the changes of the log-odds when queries get the other of a column's two values.

        `at_high` and `is_high` tell which queries and rows have the higher value.
        """
        gamma = self.K.dtype.type(min(self.kernel.gamma, _LARGEST_GAMMA))
        away, nearer = np.expm1(-gamma), np.expm1(gamma)
        moved = np.empty((len(rows), *at_high.shape), dtype=self.K.dtype)
        sums = self.K @ self.C
        for m, of in enumerate(rows):
            of_high = self.K[:, of] @ (self.C[of, m, None] * is_high[of])
            of_low = sums[:, m, None] - of_high
            # Rows of the same value move away by one, those of the other come nearer by one.
            moved[m] = away * np.where(at_high, of_high, of_low)
            moved[m] += nearer * np.where(at_high, of_low, of_high)
        return moved


def relevance_of(
    view: View | None,
    kernels: Sequence[Kernel],
    votes: Sequence[LogOdds],
    X: NDArray[Any],
    weights: FloatArray,
    random_state: np.random.RandomState,
) -> FloatArray | None:
    """Relevance of every column of a view, the largest of them one.

    Parameters
    ----------
    view : View or None
        Its kernels' log-odds are differentiated along its columns; None is the rows as they are.
    kernels : sequence of Kernel
        RBF and Laplacian kernels.
    votes : sequence of LogOdds
        Their votes, one per machine.
    X : (n, d) array
        The rows; where a column has two values, they are 1 apart.
    weights : (n,) array
        Weights of the rows.
    random_state : RandomState
        Draws the direction that rows are chosen along.

    Returns
    -------
    (d,) array, or None where nothing moves the log-odds
    """
    squares = mean_squares(view, kernels, [votes], X, weights, random_state)
    return None if squares is None else relative(squares)[0]


def mean_squares(
    view: View | None,
    kernels: Sequence[Kernel],
    versions: Sequence[Sequence[LogOdds]],
    X: NDArray[Any],
    weights: FloatArray,
    random_state: np.random.RandomState,
) -> FloatArray | None:
    """Mean squared derivative of the log-odds along every column of a view.

    Parameters
    ----------
    view, kernels, X, weights, random_state
        As for `relevance_of`.
    versions : sequence of sequences of LogOdds
        Several versions of the machines, such as those of all rows and of every split.

    Returns
    -------
    (n_versions, d) array, or None where nothing moves the log-odds of the first version
    """
    votes = [vote for version in versions for vote in version]
    rows, mass = np.flatnonzero(weights > 0), weights[weights > 0]
    if mass.sum() > MAX_ROWS:
        # Rows at equal intervals along a random direction: a weight of two equals the row twice.
        order = np.argsort(X[rows] @ random_state.normal(size=X.shape[1]), kind="stable")
        at = (np.arange(MAX_ROWS) + 0.5) / MAX_ROWS * mass.sum()
        rows = rows[order[np.searchsorted(np.cumsum(mass[order]), at).clip(max=len(order) - 1)]]
        mass = np.ones(MAX_ROWS)
    used = np.unique(np.concatenate([vote.rows for vote in votes]))
    of_machines = [np.searchsorted(used, vote.rows) for vote in votes]
    slopes = [vote.slope for vote in votes]
    dtype: Precision = "float64" if len(used) <= MAX_FLOAT64_RELEVANCE_ROWS else "float32"
    parts = []
    for k, kernel in enumerate(kernels):
        C = np.zeros((len(used), len(votes)), dtype=dtype)
        for m, vote in enumerate(votes):
            C[of_machines[m], m] = slopes[m] * vote.coefficients[k]
        if kernel.view is view and C.any():
            parts.append(_Part(kernel, kernel.block(X[rows], X[used], dtype=dtype), C))
    if not parts:
        return None
    seen = (X[some] if view is None else view.of(X[some]) for some in (rows, used))
    Q, Z = (some.astype(dtype) for some in seen)
    low, high, is_many_valued = column_ends(Z)
    two, many = np.flatnonzero((low < high) & ~is_many_valued), np.flatnonzero(is_many_valued)
    squares = np.zeros((len(versions), X.shape[1]))
    step = max(1, NUMBERS_AT_ONCE // (len(rows) * len(votes)))
    with np.errstate(over="ignore", invalid="ignore"):
        for columns, move, q, z in (
            (two, _Part.differences, np.equal(Q, high), np.equal(Z, high)),
            (many, _Part.derivatives, Q, Z),
        ):
            for begin in range(0, len(columns), step):
                some = columns[begin : begin + step]
                moved = sum(move(part, q[:, some], z[:, some], of_machines) for part in parts)
                of_rows = np.square(moved, dtype=np.float64)
                of_rows = of_rows.reshape(len(versions), -1, *of_rows.shape[1:]).sum(axis=1)
                squares[:, some] = np.average(of_rows, axis=1, weights=mass)
    if (~is_many_valued).sum() >= LEAST_CATEGORIES:
        for together in one_hot_columns(X[weights > 0], weights[weights > 0]):
            squares[:, together] = squares[:, together].mean(axis=1, keepdims=True)
    return squares if np.isfinite(squares).all() and squares[0].max() > 0 else None


def relative(squares: FloatArray) -> FloatArray:
    """Turn mean squares into relevance, the largest of each version one; without any, all are one.

    Parameters
    ----------
    squares : (n_versions, d) array
        Mean squares.
    """
    largest = squares.max(axis=1, keepdims=True)
    return np.sqrt(np.where(largest > 0, squares / np.where(largest > 0, largest, 1.0), 1.0))


def without_chance(
    squares: FloatArray,
    of_shuffled: FloatArray,
    varies: NDArray[np.bool_],
    is_many_valued: NDArray[np.bool_],
    n_rows: float,
) -> FloatArray:
    """Subtract from mean squares what chance alone would move.

    That is what shuffled labels moved, on average over columns of a kind; more of it counts where
    there are more columns for every row.

    Parameters
    ----------
    squares : (n_versions, d) array
        Mean squares of the machines of all rows, and of those of splits.
    of_shuffled : (n_shuffles, d) array
        The same for shuffled labels, with all rows.
    varies, is_many_valued : (d,) bool arrays
        Which columns are not constant, and which have more than two values.
    n_rows : float
        Number of rows, as their weights count them.
    """
    n_columns, chance = int(varies.sum()), np.zeros(squares.shape[1])
    for of_kind in (varies & is_many_valued, varies & ~is_many_valued):
        if of_kind.any():
            chance[of_kind] = of_shuffled[:, of_kind].mean()
    factors = np.full((len(squares), 1), 2 * n_columns / (n_columns + n_rows))
    factors[1:] *= CHANCE_OF_SPLITS
    return np.maximum(squares - factors * chance, 0.0)


def column_scales(relevance: FloatArray, is_many_valued: NDArray[np.bool_]) -> FloatArray:
    """Turn relevance into the factors of the columns, which are at least `LEAST_SCALE`.

    For columns of two values they are powers of two. Such columns of equal scale can be packed as
    bits, and predictions are much faster where most columns are of this kind.

    Parameters
    ----------
    relevance : (d,) array
        Relevance of the columns.
    is_many_valued : (d,) bool array
        Which columns have more than two values.
    """
    scales = np.maximum(relevance, LEAST_SCALE)
    return np.where(is_many_valued, scales, np.exp2(np.round(np.log2(scales))))


def one_hot_columns(X: NDArray[Any], weights: FloatArray) -> list[list[int]]:
    """Find the columns of each one-hot encoded feature: at most one of them is high in any row.

    Parameters
    ----------
    X : (n, d) array
        Rows.
    weights : (n,) array
        Their weights.

    Returns
    -------
    list of lists of int
        Three or more neighbouring columns of two values, one of which is high in most rows.
    """
    low, high, has_others = column_ends(X)
    is_two_valued = ~has_others
    if is_two_valued.sum() < LEAST_CATEGORIES:
        return []
    found: list[list[int]] = []
    run: list[int] = []
    is_taken = np.zeros(len(X), dtype=bool)
    for j in [*np.flatnonzero(low < high), None]:
        is_high = X[:, j] == high[j] if j is not None and is_two_valued[j] else None
        if is_high is None or (is_taken & is_high).any():
            if len(run) >= LEAST_CATEGORIES and np.average(is_taken, weights=weights) > 0.5:
                found.append(run)
            run, is_taken = [], np.zeros(len(X), dtype=bool)
        if is_high is not None:
            run.append(int(j))
            is_taken |= is_high
    return found
