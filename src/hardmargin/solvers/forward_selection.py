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

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.monitor import Monitor

#: Rows in a batch, and the promising candidates considered for each of them and at least.
BATCH_SIZES = (4, 64)
CANDIDATES_PER_ROW = 4
LEAST_PROMISING = 64

#: A column whose new part is smaller than this, relative to the column, adds only rounding.
LEAST_NEW_PART = 1e-5

#: The same for inner products, which squares make less precise: in units of rounding.
LEAST_IN_EPS = 100.0

#: The same where many inner products are subtracted one after the other.
TRUSTED_IN_EPS = 1_000.0

#: Share of what is new that the rest of a batch leaves of a column that is added in it.
LEAST_IN_BATCH = 0.01

#: Up to this many directions are soon taken off all columns.
FEW_DIRECTIONS = 256

#: Rows of a triangular matrix that are solved at once.
BLOCK_SIZE = 256

#: Columns that change at once: few enough for the processor's cache.
COLUMNS_AT_ONCE = 256


class Selection:
    """Orthogonal least squares by inner products: rows chosen one after the other.

    Inner products with the columns of a batch are made when it is chosen, so that time grows with
    the number of rows chosen. Where so little of the columns is new that these are imprecise,
    as happens in float32, the directions chosen are taken off the columns themselves.

    Parameters
    ----------
    columns : (n_sample, n_candidates) array
        Columns of the candidates; the selection is fastest if each is contiguous. They
        may change.
    target : (n_sample, n_machines) array
        The values to explain.
    most : int
        The largest number of candidates to choose.

    Attributes
    ----------
    chosen : int array
        The candidates chosen so far, the first one first.
    """

    def __init__(self, columns: NDArray[Any], target: FloatArray, most: int) -> None:
        self.most = min(most, len(target))
        self.chosen = np.empty(0, dtype=np.intp)
        self._by_candidate = columns.T
        self._n = int(columns.shape[1])
        # A Cholesky factor: its rows are inner products of orthonormal directions and columns.
        self._factor = np.empty((self.most, columns.shape[1]), dtype=columns.dtype)
        self._n_taken_off = 0  # directions that columns no longer contain
        self._new_norms = self._norms()  # that nothing chosen explains
        self._least = LEAST_NEW_PART**2 * self._new_norms
        self._trusted = self._least_precise()
        self.aim_at(target)

    def grow(self, n: int, monitor: Monitor) -> bool:
        """Choose until there are n; say whether any was chosen."""
        n_before = len(self.chosen)
        self._forget_chosen()
        while len(self.chosen) < min(n, self.most):
            monitor.check()
            if self._is_due():
                self._take_off()
            size = int(np.clip(len(self.chosen) // 8, *BATCH_SIZES))
            picked = self._batch(min(size, min(n, self.most) - len(self.chosen)))
            if len(picked) > 0:
                self._add(picked)
            elif self._n_hidden() > 0:
                self._take_off()
            else:
                break
        return len(self.chosen) > n_before

    def aim_at(self, residual: FloatArray) -> None:
        """Go on with what a fit of more columns, which span those chosen, leaves of the target."""
        columns = self._by_candidate
        self._products = columns @ residual.astype(columns.dtype, copy=False)

    def _forget_chosen(self) -> None:
        """Take what the rows chosen explain off the products.

        Rounding leaves them some, and so does a fit on more rows than the columns have.
        """
        latest = self.chosen[self._n_taken_off :]
        if len(latest) > 0:
            along = self._factor[self._n_taken_off : len(self.chosen)]
            self._products -= along.T @ _solved(along[:, latest].T, self._products[latest])
        self._products[self.chosen] = 0.0

    def _batch(self, size: int) -> NDArray[np.intp]:
        """Choose a few of the most promising rows."""
        # 1. The candidates that gain most.
        gains = _gains(self._products, self._new_norms, self._trusted)
        n_promising = min(max(CANDIDATES_PER_ROW * size, LEAST_PROMISING), len(gains))
        promising = np.argpartition(-gains, n_promising - 1)[:n_promising]
        promising = np.sort(promising[gains[promising] > 0])
        if len(promising) == 0:
            return promising
        own = self._by_candidate[promising]
        along = self._factor[self._n_taken_off : len(self.chosen), promising]
        inner = own @ own.T - along.T @ along
        # 2. One of them after the other.
        least = np.maximum(self._trusted, LEAST_IN_BATCH * self._new_norms)[promising]
        order = forward_order(inner, self._products[promising], size, least)
        return promising[order]

    def _add(self, picked: NDArray[np.intp]) -> None:
        """Add rows to those chosen."""
        begin, end = len(self.chosen), len(self.chosen) + len(picked)
        earlier = self._factor[self._n_taken_off : begin]
        inner = self._by_candidate[picked] @ self._by_candidate.T
        inner -= earlier[:, picked].T @ earlier
        root = _lower_root(inner[:, picked], 0.0)
        along = _solved(root, inner)
        # 3. Their directions leave all columns, and the residual.
        self._factor[begin:end] = along
        explained = _solved(root, self._products[picked])
        self._products -= along.T @ explained
        self._new_norms -= np.einsum("ij,ij->j", along, along)
        self._new_norms[picked] = 0.0
        self._trusted[picked] = self._least[picked]
        self.chosen = np.concatenate([self.chosen, picked])

    def _norms(self) -> FloatArray:
        """Return the sums of squares of all columns, added up in float64."""
        norms = np.empty(len(self._by_candidate))
        for part in self._parts():
            own = self._by_candidate[part].astype(np.float64)
            norms[part] = np.einsum("ij,ij->i", own, own)
        return norms

    def _parts(self) -> Iterator[slice]:
        """Yield slices of a few candidates each."""
        for begin in range(0, len(self._by_candidate), COLUMNS_AT_ONCE):
            yield slice(begin, begin + COLUMNS_AT_ONCE)

    def _least_precise(self) -> FloatArray:
        """Return the sums of squares up to which inner products do not say what is new."""
        eps = float(np.finfo(self._by_candidate.dtype).eps)
        least: FloatArray = np.maximum(self._least, TRUSTED_IN_EPS * eps * self._new_norms)
        return least

    def _n_hidden(self) -> int:
        """How many candidates have a new part that inner products do not show."""
        return int(((self._new_norms <= self._trusted) & (self._trusted > self._least)).sum())

    def _is_due(self) -> bool:
        """Whether inner products show little of what is new, or soon will while it costs little."""
        if len(self.chosen) - self._n_taken_off <= FEW_DIRECTIONS:
            is_nearly_hidden = self._new_norms < 100 * self._trusted
            is_nearly_hidden &= self._trusted > self._least
            return int(is_nearly_hidden.sum()) > self._n // 2
        return self._n_hidden() > (self._n - len(self.chosen)) // 4

    def _take_off(self) -> None:
        """Take the directions chosen off the columns, which shows how much of them is new."""
        latest = self._by_candidate[self.chosen[self._n_taken_off :]]
        basis = _orthonormal(latest)
        for part in self._parts():
            own = self._by_candidate[part]
            own -= (own @ basis.T) @ basis
        self._n_taken_off = len(self.chosen)
        self._new_norms = self._norms()
        self._new_norms[self.chosen] = 0.0
        self._trusted = self._least_precise()


class NestedLeastSquares:
    """Least squares with a ridge, for more and more columns: a Cholesky factor that grows.

    Parameters
    ----------
    target : (n_sample, n_machines) array
        The values to explain; every machine's mean square is at most one.
    ridge : float
        Times the squared coefficients, it is added to the squared residual.
    monitor : Monitor or None
        May raise Stopped while columns are added, which are then left out.
    most : int
        Number of columns for which there is room from the start, which takes memory only as it is
        used; the room grows if there are more.
    """

    def __init__(
        self, target: FloatArray, ridge: float, monitor: Monitor | None = None, most: int = 0
    ) -> None:
        self.n_columns = 0
        self._target, self._ridge, self._monitor = target, ridge, monitor or Monitor()
        self._columns: list[FloatArray] = []  # of every addition
        self._factor = np.zeros((most, most), order="F")
        self._explained = np.empty((most, target.shape[1]))

    def add(self, columns: FloatArray) -> None:
        """Add columns after the others; they are kept, not copied."""
        n, more = self.n_columns, columns.shape[1]
        self._make_room(n + more)
        inner = columns.T @ columns
        inner.flat[:: more + 1] += self._ridge
        products = columns.T @ self._target
        if n:
            along = np.empty((n, more))
            for earlier, part in self._first(n):
                self._monitor.check()
                np.matmul(earlier.T, columns, out=along[part])
            along = _solved(self._factor[:n, :n], along)
            inner -= along.T @ along
            products -= along.T @ self._explained[:n]
            self._factor[n : n + more, :n] = along.T
        root = _lower_root(inner, self._ridge)
        self._factor[n : n + more, n : n + more] = root
        self._explained[n : n + more] = _solved(root, products)
        self._columns.append(columns)
        self.n_columns = n + more

    def _make_room(self, n: int) -> None:
        """Make the arrays larger, by more than is needed."""
        if n <= len(self._factor):
            return
        size, last = n + n // 4, self.n_columns
        factor = np.zeros((size, size), order="F")
        explained = np.empty((size, self._target.shape[1]))
        factor[:last, :last] = self._factor[:last, :last]
        explained[:last] = self._explained[:last]
        self._factor, self._explained = factor, explained

    def changes(self) -> FloatArray:
        """Root mean square of the residual with no column, the first, the first two, ..."""
        squares = (self._explained[: self.n_columns] ** 2).sum(axis=1)
        left = (self._target**2).sum() - np.concatenate([[0.0], np.cumsum(squares)])
        changes: FloatArray = np.sqrt(np.maximum(left, 0.0) / max(self._target.size, 1))
        return changes

    def residual(self, step: int = 1) -> FloatArray:
        """Return what all columns leave of the target, on every so many rows of the sample."""
        return self._left(self._first_solution(self.n_columns), step)

    def solution(self, n: int) -> FloatArray:
        """Coefficients of the first n columns."""
        found = self._first_solution(n)
        # Once again for what is left: inner products lose half of the digits.
        left = self._left(found)
        products = np.concatenate([own.T @ left for own, _ in self._first(n)])
        lower = self._factor[:n, :n]
        more = _solved(lower, products - self._ridge * found)
        solution: FloatArray = found + _solved(lower, more, transposed=True)
        return solution

    def _first_solution(self, n: int) -> FloatArray:
        """Coefficients of the first n columns by the factor alone."""
        return _solved(self._factor[:n, :n], self._explained[:n], transposed=True)

    def _left(self, found: FloatArray, step: int = 1) -> FloatArray:
        """Return what the first columns leave of the target, with these coefficients."""
        left = self._target[::step].copy()
        for own, part in self._first(len(found)):
            left -= own[::step] @ found[part]
        return left

    def _first(self, n: int) -> Iterator[tuple[FloatArray, slice]]:
        """Yield the first n columns, as they were added, and which these are."""
        begin = 0
        for columns in self._columns:
            end = min(begin + columns.shape[1], n)
            if end > begin:
                yield columns[:, : end - begin], slice(begin, end)
            begin += columns.shape[1]


def _orthonormal(rows: NDArray[Any]) -> NDArray[Any]:
    """Return an orthonormal basis of what some rows span, row by row."""
    basis: NDArray[Any] = np.linalg.qr(rows.T.astype(np.float64))[0].T
    return np.ascontiguousarray(basis, dtype=rows.dtype)


def _solved(lower: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """Solve equations with a lower triangular matrix, or with its transpose.

    Products of blocks take most of the time, which is several times less than that of LAPACK.
    """
    solved = np.array(right, order="F")
    starts = range(0, len(lower), BLOCK_SIZE)
    for begin in reversed(starts) if transposed else starts:
        part = slice(begin, begin + BLOCK_SIZE)
        others = slice(begin + BLOCK_SIZE, None) if transposed else slice(0, begin)
        factor = lower[others, part].T if transposed else lower[part, others]
        solved[part] = scipy.linalg.solve_triangular(
            lower[part, part],
            solved[part] - factor @ solved[others],
            lower=True,
            trans="T" if transposed else "N",
            check_finite=False,
        )
    return solved


def _lower_root(inner: NDArray[Any], ridge: float) -> NDArray[Any]:
    """Cholesky factor; where rounding leaves none, with a larger ridge."""
    while True:
        try:
            root: NDArray[Any] = np.linalg.cholesky(inner)
            return root
        except np.linalg.LinAlgError:
            least = 10 * float(np.finfo(inner.dtype).eps) * float(inner.diagonal().max(initial=1.0))
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
