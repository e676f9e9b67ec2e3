r"""Forward selection by orthogonal least squares: Chen, Cowan & Grant, IEEE TNN 1991.

Columns are chosen one after the other. Each is the one that explains most of the residual that
those before it leave of the target:

.. math:: \text{gain} = (k' r)^2 / (\|k\|^2 - \|U'k\|^2),

with an orthonormal basis U of the columns so far, the residual r and a candidate k:

1. Evaluate the gain of every candidate.
2. Choose the largest, and take its direction off the other candidates.
3. Take its direction off the residual, and go to step 1.

:class:`Selection` makes step 2 many times before step 3, for a batch that grows with the number so
far, among the candidates of the largest gains. :func:`forward_order` makes all of it with inner
products.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.monitor import Monitor

#: Rows in a batch at most, and the promising candidates considered for each of them.
MAX_BATCH = 32
CANDIDATES_PER_ROW = 4

#: A column whose new part is smaller than this, relative to the column, adds only rounding.
LEAST_NEW_PART = 1e-5

#: The same for inner products, which squares make less precise: in units of rounding.
LEAST_IN_EPS = 100.0


class Selection:
    """Orthogonal least squares by inner products: rows chosen one after the other.

    Inner products with the columns of a batch are made when it is chosen, so that time grows with
    the number of rows chosen.

    Parameters
    ----------
    columns : (n_sample, n_candidates) array
        Columns of the candidates; the selection is fastest if each is contiguous.
    target : (n_sample, n_machines) array
        The values to explain.
    most : int
        The largest number of candidates to choose.
    """

    def __init__(self, columns: FloatArray, target: FloatArray, most: int) -> None:
        self.most = min(most, len(target))
        self.chosen = np.empty(0, dtype=np.intp)
        self._columns = columns
        # A Cholesky factor: its rows are inner products of orthonormal directions and columns.
        self._factor = np.empty((self.most, columns.shape[1]))
        self._products = columns.T @ target
        self._new_norms = np.einsum("ij,ij->j", columns, columns)  # that nothing chosen explains
        self._least = LEAST_NEW_PART**2 * self._new_norms

    def grow(self, n: int, monitor: Monitor) -> bool:
        """Choose until there are n; say whether any was chosen."""
        n_before = len(self.chosen)
        while len(self.chosen) < min(n, self.most):
            monitor.check()
            size = min(1 + len(self.chosen) // 8, MAX_BATCH, min(n, self.most) - len(self.chosen))
            picked = self._batch(size)
            if len(picked) == 0:
                break
            self._add(picked)
        return len(self.chosen) > n_before

    def aim_at(self, residual: FloatArray) -> None:
        """Go on with what a fit of more columns, which span those chosen, leaves of the target."""
        self._products = self._columns.T @ residual
        self._products[self.chosen] = 0.0

    def _batch(self, size: int) -> NDArray[np.intp]:
        """Choose a few of the most promising rows."""
        # 1. The candidates that gain most.
        gains = _gains(self._products, self._new_norms, self._least)
        n_promising = min(CANDIDATES_PER_ROW * size, len(gains))
        promising = np.argpartition(-gains, n_promising - 1)[:n_promising]
        promising = np.sort(promising[gains[promising] > 0])
        if len(promising) == 0:
            return promising
        own, along = self._columns[:, promising], self._factor[: len(self.chosen), promising]
        inner = own.T @ own - along.T @ along
        # 2. One of them after the other.
        order = forward_order(inner, self._products[promising], size, self._least[promising])
        return promising[order]

    def _add(self, picked: NDArray[np.intp]) -> None:
        """Add rows to those chosen."""
        begin, end = len(self.chosen), len(self.chosen) + len(picked)
        inner = self._columns[:, picked].T @ self._columns
        inner -= self._factor[:begin, picked].T @ self._factor[:begin]
        root = _lower_root(inner[:, picked], 0.0)
        along = scipy.linalg.solve_triangular(root, inner, lower=True)
        # 3. Their directions leave all columns, and the residual.
        self._factor[begin:end] = along
        explained = scipy.linalg.solve_triangular(root, self._products[picked], lower=True)
        self._products -= along.T @ explained
        self._new_norms -= np.einsum("ij,ij->j", along, along)
        self._new_norms[picked] = 0.0
        self.chosen = np.concatenate([self.chosen, picked])


class NestedLeastSquares:
    """Least squares with a ridge, for more and more columns: a Cholesky factor that grows.

    Parameters
    ----------
    target : (n_sample, n_machines) array
        The values to explain; every machine's mean square is at most one.
    ridge : float
        Times the squared coefficients, it is added to the squared residual.
    """

    def __init__(self, target: FloatArray, ridge: float) -> None:
        n, n_machines = target.shape
        self.n_columns = 0
        self._target, self._ridge = target, ridge
        self._columns = np.empty((n, 0), order="F")
        self._factor = np.empty((0, 0), order="F")
        self._explained = np.empty((0, n_machines))

    def add(self, columns: FloatArray) -> None:
        """Add columns after the others."""
        n, more = self.n_columns, columns.shape[1]
        self._make_room(n + more)
        own = self._columns[:, n : n + more]
        own[...] = columns
        inner = own.T @ own
        inner.flat[:: more + 1] += self._ridge
        along = own.T @ self._columns[:, :n]
        products = own.T @ self._target
        if n:
            lower = self._factor[:n, :n]
            along = scipy.linalg.solve_triangular(lower, along.T, lower=True, overwrite_b=True).T
            inner -= along @ along.T
            products -= along @ self._explained[:n]
        root = _lower_root(inner, self._ridge)
        self._factor[n : n + more, :n] = along
        self._factor[n : n + more, n : n + more] = root
        self._explained[n : n + more] = scipy.linalg.solve_triangular(root, products, lower=True)
        self.n_columns = n + more

    def _make_room(self, n: int) -> None:
        """Make the arrays larger, by more than is needed."""
        if n <= len(self._factor):
            return
        size, last = n + n // 4, self.n_columns
        columns = np.empty((len(self._target), size), order="F")
        factor = np.zeros((size, size), order="F")
        explained = np.empty((size, self._target.shape[1]))
        columns[:, :last] = self._columns[:, :last]
        factor[:last, :last] = self._factor[:last, :last]
        explained[:last] = self._explained[:last]
        self._columns, self._factor, self._explained = columns, factor, explained

    def changes(self) -> FloatArray:
        """Root mean square of the residual with no column, the first, the first two, ..."""
        squares = (self._explained[: self.n_columns] ** 2).sum(axis=1)
        left = (self._target**2).sum() - np.concatenate([[0.0], np.cumsum(squares)])
        changes: FloatArray = np.sqrt(np.maximum(left, 0.0) / max(self._target.size, 1))
        return changes

    def residual(self) -> FloatArray:
        """Return what all columns leave of the target."""
        n = self.n_columns
        lower, columns = self._factor[:n, :n], self._columns[:, :n]
        found = scipy.linalg.solve_triangular(lower, self._explained[:n], lower=True, trans="T")
        left: FloatArray = self._target - columns @ found
        return left

    def solution(self, n: int) -> FloatArray:
        """Coefficients of the first n columns."""
        lower, columns = self._factor[:n, :n], self._columns[:, :n]
        found = scipy.linalg.solve_triangular(lower, self._explained[:n], lower=True, trans="T")
        # Once again for what is left: inner products lose half of the digits.
        left = columns.T @ (self._target - columns @ found) - self._ridge * found
        solution: FloatArray = found + scipy.linalg.cho_solve((lower, True), left)
        return solution


def _lower_root(inner: FloatArray, ridge: float) -> FloatArray:
    """Cholesky factor; where rounding leaves none, with a larger ridge."""
    while True:
        try:
            return np.asarray(np.linalg.cholesky(inner), dtype=np.float64)
        except np.linalg.LinAlgError:
            least = 10 * np.finfo(np.float64).eps * float(inner.diagonal().max(initial=1.0))
            ridge = max(10 * ridge, least)
            inner.flat[:: len(inner) + 1] += ridge


def forward_order(
    gram: FloatArray, products: FloatArray, most: int, least: FloatArray | None = None
) -> NDArray[np.intp]:
    """Choose columns one after the other, by their inner products alone.

    It is a Cholesky decomposition whose next pivot is the column that explains most. For a few
    hundred columns this is much faster than :class:`Selection`, and less precise.

    Parameters
    ----------
    gram : (n, n) array
        Inner products of the columns.
    products : (n, n_machines) array
        Inner products of the columns with the target.
    most : int
        The largest number of columns to choose.
    least : (n,) array or None
        A column whose new part has no larger square than this adds only rounding.
    """
    new_norms = gram.diagonal().copy()
    if least is None:
        least = LEAST_IN_EPS * np.finfo(gram.dtype).eps * new_norms
    factor = np.zeros((most, len(gram)), dtype=gram.dtype)
    chosen: list[int] = []
    for i in range(most):
        gains = _gains(products, new_norms, least)  # 1.
        best = int(gains.argmax())  # 2.
        if not gains[best] > 0:
            break
        chosen.append(best)
        root = np.sqrt(new_norms[best])
        factor[i] = (gram[best] - factor[:i, best] @ factor[:i]) / root
        products = products - np.outer(factor[i], products[best] / root)  # 3.
        new_norms -= factor[i] ** 2
        new_norms[best] = 0.0
    return np.array(chosen, dtype=np.intp)


def columns_of(rows: NDArray[np.intp], n_rows: int, n_columns: int) -> NDArray[np.intp]:
    """Return the columns of some rows, with those of the first kernel first."""
    starts = np.arange(0, n_columns, n_rows)
    at: NDArray[np.intp] = (starts[:, None] + rows).ravel()
    return at


def _gains(products: FloatArray, norms: FloatArray, least: FloatArray) -> FloatArray:
    """How much of the target's sum of squares each column explains; 0 where it is not new."""
    is_new = norms > least
    squares = np.einsum("ij,ij->i", products, products)
    gains: FloatArray = np.where(is_new, squares / np.where(is_new, norms, 1.0), 0.0)
    return gains
