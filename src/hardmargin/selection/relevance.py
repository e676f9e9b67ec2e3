"""Relevance: how much each column moves the log-odds of trained machines.

The relevance of a column is the root of the mean squared derivative of the log-odds along it, over
some training rows and summed over machines. A column of two values, 1 apart, has the difference
between the two instead of a derivative. Columns that are scaled by their relevance set rows apart
as far as they matter. One round is enough: a second one overfits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, View
from hardmargin.selection.vote import Vote

#: Training rows that derivatives are taken at, at most.
MAX_ROWS = 300

#: The machines that relevance rests on: factors of the usual width of their kernels, and splits.
FIRST_WIDTHS = {"rbf": (1 / 4, 1.0), "laplacian": (1.0,)}
FIRST_SPLITS = 2

#: Columns are scaled by no less than this share of the most relevant one.
LEAST_SCALE = 0.02

#: Up to this many rows, derivatives are float64.
MAX_FLOAT64_ROWS = 500

#: A kernel that is narrower than this grows beyond all bounds between two values.
_LARGEST_GAMMA = 80.0


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

    def derivatives(self, q: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        """Take derivatives along a column, with values q of the queries and z of the rows."""
        gamma = self.K.dtype.type(self.kernel.gamma)
        if self.kernel.name == "rbf":
            sums, moments = self.K @ self.C, self.K @ (self.C * z[:, None])
            return np.asarray(-2 * gamma * (q[:, None] * sums - moments))
        return np.asarray(-gamma * ((self.K * np.sign(q[:, None] - z)) @ self.C))

    def differences(self, q: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        """Take the change of the log-odds where queries have the other of a column's two values."""
        gamma = self.K.dtype.type(min(self.kernel.gamma, _LARGEST_GAMMA))
        is_high, at_high = (z == z.max())[:, None], (q == z.max())[:, None]
        of_high, of_low = self.K @ (self.C * is_high), self.K @ (self.C * ~is_high)
        same, other = np.where(at_high, of_high, of_low), np.where(at_high, of_low, of_high)
        # Rows of the same value move away by one, those of the other come nearer by one.
        return np.asarray(np.expm1(-gamma) * same + np.expm1(gamma) * other)


def relevance_of(
    view: View,
    kernels: Sequence[Kernel],
    votes: Sequence[Vote],
    X: NDArray[Any],
    weights: FloatArray,
    random_state: np.random.RandomState,
) -> FloatArray | None:
    """Relevance of every column of a view, the largest of them one.

    Parameters
    ----------
    view : View
        Derivatives are along its columns, of what its kernels say.
    kernels : sequence of Kernel
        RBF and Laplacian kernels.
    votes : sequence of Vote
        What they vote, one per machine.
    X : (n, d) array
        The rows; columns of two values have these 1 apart.
    weights : (n,) array
        Weights of the rows.
    random_state : RandomState
        Draws the direction that rows are chosen along.

    Returns
    -------
    (d,) array, or None where nothing moves the log-odds
    """
    rows, mass = np.flatnonzero(weights > 0), weights[weights > 0]
    if mass.sum() > MAX_ROWS:
        # Every so many rows along a random direction: a weight of two equals the row twice.
        order = np.argsort(X[rows] @ random_state.normal(size=X.shape[1]), kind="stable")
        at = (np.arange(MAX_ROWS) + 0.5) / MAX_ROWS * mass.sum()
        rows = rows[order[np.searchsorted(np.cumsum(mass[order]), at).clip(max=len(order) - 1)]]
        mass = np.ones(MAX_ROWS)
    used = np.unique(np.concatenate([vote.rows for vote in votes]))
    queries, support = X[rows], X[used]
    dtype: Precision = "float64" if len(used) <= MAX_FLOAT64_ROWS else "float32"
    parts = []
    for k, kernel in enumerate(kernels):
        C = np.zeros((len(used), len(votes)), dtype=dtype)
        for m, vote in enumerate(votes):
            C[np.searchsorted(used, vote.rows), m] = vote.slope * vote.coefficients[k]
        if kernel.view is view and C.any():
            parts.append(_Part(kernel, kernel.block(queries, support, dtype=dtype), C))
    if not parts:
        return None
    queries, support = view.of(queries), view.of(support)
    squares = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(X.shape[1]):
            q, z = (values[:, j].astype(dtype) for values in (queries, support))
            low, high = z.min(), z.max()
            if low == high:
                continue
            is_two_valued = bool(((z == low) | (z == high)).all())
            moved = sum(
                part.differences(q, z) if is_two_valued else part.derivatives(q, z)
                for part in parts
            )
            of_rows = np.square(moved, dtype=np.float64).sum(axis=1)
            squares[j] = np.average(of_rows, weights=mass)
    largest = float(squares.max())
    if not (np.isfinite(squares).all() and largest > 0):
        return None
    return np.asarray(np.sqrt(squares / largest))


def column_scales(relevance: FloatArray, X: NDArray[Any]) -> FloatArray:
    """Turn relevance into what columns are multiplied by, which is no less than `LEAST_SCALE`.

    Columns of two values have powers of two: those of equal scale can then be packed as bits, and
    predictions are much faster where most columns are of this kind.
    """
    scales = np.maximum(relevance, LEAST_SCALE)
    two_valued = ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)
    return np.where(two_valued, np.exp2(np.round(np.log2(scales))), scales)
