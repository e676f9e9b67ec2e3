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

#: Rows in a batch at most, and the promising candidates considered for each of them.
MAX_BATCH = 32
CANDIDATES_PER_ROW = 4

#: A column whose new part is smaller than this, relative to the column, adds only rounding.
LEAST_NEW_PART = 1e-5

#: The same for inner products, which squares make less precise: in units of rounding.
LEAST_IN_EPS = 100.0


class Selection:
    """Orthogonal least squares: rows chosen one after the other, and their residual.

    Parameters
    ----------
    columns : (n_sample, n_kernels * n_candidates) array
        Columns of the candidates, with those of the first kernel first.
    target : (n_sample, n_machines) array
        The values to explain; every machine's mean square is at most one.
    n_kernels : int
        Every candidate has one column per kernel.
    most : int
        The largest number of candidates to choose.
    """

    def __init__(self, columns: FloatArray, target: FloatArray, n_kernels: int, most: int) -> None:
        self.most = most
        self.chosen = np.empty(0, dtype=np.intp)
        self._columns, self._n_kernels = columns, n_kernels
        self._n_candidates = columns.shape[1] // n_kernels
        self._basis = np.empty((len(target), min(most * n_kernels, len(target))), order="F")
        self._width = 0
        self._residual = target.copy()
        self._products = columns.T @ target
        self._norms = np.einsum("ij,ij->j", columns, columns)
        self._least = LEAST_NEW_PART**2 * self._norms
        self._new_norms = self._norms.copy()  # of the part that the basis does not explain
        self._is_free = np.ones(self._n_candidates, dtype=bool)

    @property
    def basis(self) -> FloatArray:
        """Orthonormal columns that span those of the chosen candidates."""
        return self._basis[:, : self._width]

    @property
    def change(self) -> float:
        """Root mean square of the residual."""
        return float(np.sqrt((self._residual**2).mean())) if self._residual.size else 0.0

    def grow(self, n: int, sought: float = 0.0) -> bool:
        """Choose until there are n, or `change` is at most `sought`; say whether any was chosen."""
        n_before = len(self.chosen)
        while len(self.chosen) < min(n, self.most) and self.change > sought:
            room = (self._basis.shape[1] - self._width) // self._n_kernels
            size = min(1 + len(self.chosen) // 8, MAX_BATCH, n - len(self.chosen), room)
            if size < 1 or not self._add(*self._batch(size), sought):
                break
        return len(self.chosen) > n_before

    def _batch(self, size: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Choose a few of the most promising rows; also return the new part of their columns."""
        # 1. The candidates that gain most; their new parts are evaluated again.
        gains = _gains(self._products, self._new_norms, self._least)
        gains = np.where(self._is_free, gains.reshape(self._n_kernels, -1).sum(axis=0), 0.0)
        n_promising = min(CANDIDATES_PER_ROW * size, len(gains))
        promising = np.argpartition(-gains, n_promising - 1)[:n_promising]
        promising = np.sort(promising[gains[promising] > 0])
        at = columns_of(promising, self._n_candidates, self._columns.shape[1])
        new = self._columns[:, at]
        new -= self.basis @ (self.basis.T @ new)
        inner, products, least = new.T @ new, new.T @ self._residual, self._least[at]
        # 2. One of them after the other.
        picked: list[int] = []
        while len(picked) < min(size, len(promising)):
            gains = _gains(products, inner.diagonal(), least).reshape(self._n_kernels, -1)
            gains = gains.sum(axis=0)
            gains[picked] = 0.0
            best = int(gains.argmax())
            if not gains[best] > 0:
                break
            picked.append(best)
            for column in range(best, len(at), len(promising)):
                if inner[column, column] > least[column]:
                    # Take the column's direction off all others: a step of Cholesky.
                    along = inner[column] / np.sqrt(inner[column, column])
                    products = products - np.outer(along, products[column]) / along[column]
                    inner = inner - np.outer(along, along)
        order = np.array(picked, dtype=np.intp)
        by_row = order[:, None] + len(promising) * np.arange(self._n_kernels)
        return promising[order], new[:, by_row.ravel()]

    def _add(self, picked: NDArray[np.intp], new: FloatArray, sought: float) -> bool:
        """Add chosen rows to the basis, no more of them than it takes to reach `sought`."""
        if len(picked) == 0:
            return False
        new -= self.basis @ (self.basis.T @ new)  # again, against rounding
        directions = scipy.linalg.qr(new, mode="economic", overwrite_a=True)[0]
        explained = directions.T @ self._residual
        by_row = (explained**2).sum(axis=1).reshape(len(picked), -1).sum(axis=1)
        left = self.change**2 - np.cumsum(by_row) / self._residual.size
        n = min(int(np.searchsorted(-left, -(sought**2))) + 1, len(picked))
        directions = directions[:, : n * self._n_kernels]
        explained = explained[: n * self._n_kernels]

        # 3. Their directions join the basis, and leave the residual.
        end = self._width + directions.shape[1]
        self._basis[:, self._width : end] = directions
        self._width = end
        self._residual -= directions @ explained
        along = self._columns.T @ directions
        self._products -= along @ explained
        self._new_norms -= np.einsum("ij,ij->i", along, along)
        self._is_free[picked[:n]] = False
        self.chosen = np.concatenate([self.chosen, picked[:n]])
        return True


def forward_order(gram: FloatArray, products: FloatArray, most: int) -> NDArray[np.intp]:
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
    """
    new_norms = gram.diagonal().copy()
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
