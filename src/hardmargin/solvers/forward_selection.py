r"""Forward selection by orthogonal least squares: Chen, Cowan & Grant, IEEE TNN 1991.

Columns are chosen one after the other, each the one that explains most of what is left of the
target once the part that those before it explain is taken off:

.. math:: \text{gain} = (k' r)^2 / (\|k\|^2 - \|U'k\|^2),

with orthonormal columns U of those so far, the residual r and a candidate k. Candidates are taken
in batches that grow with their number so far, each by exact selection among the most promising.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray

#: A batch has at most so many rows, chosen among so many times as many.
MAX_BATCH = 32
CANDIDATES_A_ROW = 4

#: A column of which less than this part is new brings only rounding.
LEAST_NEW_PART = 1e-5


class Selection:
    """Orthogonal least squares: rows chosen one after the other, and what they leave over.

    Parameters
    ----------
    columns : (n_sample, n_kernels * n_candidates) array
        Columns of the candidates, those of the first kernel first.
    target : (n_sample, n_machines) array
        What is to be explained, every machine's mean square being one or less.
    n_kernels : int
        A candidate brings a column a kernel.
    most : int
        Candidates that will be chosen at most.
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
        self._new_norms = self._norms.copy()  # of what the basis does not explain
        self._is_free = np.ones(self._n_candidates, dtype=bool)

    @property
    def basis(self) -> FloatArray:
        """Orthonormal columns that span those of the chosen candidates."""
        return self._basis[:, : self._width]

    @property
    def change(self) -> float:
        """Root mean square of what is left over."""
        return float(np.sqrt((self._residual**2).mean())) if self._residual.size else 0.0

    def grow(self, n: int, sought: float = 0.0) -> bool:
        """Choose until there are n, or the change is what is sought; whether any was chosen."""
        n_before = len(self.chosen)
        while len(self.chosen) < min(n, self.most) and self.change > sought:
            room = (self._basis.shape[1] - self._width) // self._n_kernels
            size = min(1 + len(self.chosen) // 8, MAX_BATCH, n - len(self.chosen), room)
            if size < 1 or not self._add(*self._batch(size), sought):
                break
        return len(self.chosen) > n_before

    def _batch(self, size: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Choose a few rows, exactly, among the most promising; and the new part of columns."""
        gains = _gains(self._products, self._new_norms, self._least)
        gains = np.where(self._is_free, gains.reshape(self._n_kernels, -1).sum(axis=0), 0.0)
        n_promising = min(CANDIDATES_A_ROW * size, len(gains))
        promising = np.argpartition(-gains, n_promising - 1)[:n_promising]
        promising = np.sort(promising[gains[promising] > 0])
        at = columns_of(promising, self._n_candidates, self._columns.shape[1])
        new = self._columns[:, at]
        new -= self.basis @ (self.basis.T @ new)
        inner, products, least = new.T @ new, new.T @ self._residual, self._least[at]
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
        """Take chosen rows into the basis, as many of them as it takes to reach what is sought."""
        if len(picked) == 0:
            return False
        new -= self.basis @ (self.basis.T @ new)  # once more: rounding
        directions = scipy.linalg.qr(new, mode="economic", overwrite_a=True)[0]
        explained = directions.T @ self._residual
        by_row = (explained**2).sum(axis=1).reshape(len(picked), -1).sum(axis=1)
        left = self.change**2 - np.cumsum(by_row) / self._residual.size
        n = min(int(np.searchsorted(-left, -(sought**2))) + 1, len(picked))
        directions = directions[:, : n * self._n_kernels]
        explained = explained[: n * self._n_kernels]

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


def columns_of(rows: NDArray[np.intp], n_rows: int, n_columns: int) -> NDArray[np.intp]:
    """Columns of some rows, those of the first kernel first."""
    starts = np.arange(0, n_columns, n_rows)
    at: NDArray[np.intp] = (starts[:, None] + rows).ravel()
    return at


def _gains(products: FloatArray, norms: FloatArray, least: FloatArray) -> FloatArray:
    """How much of the target's squares each column explains; none where it is not new."""
    is_new = norms > least
    squares = np.einsum("ij,ij->i", products, products)
    gains: FloatArray = np.where(is_new, squares / np.where(is_new, norms, 1.0), 0.0)
    return gains
