r"""The elbow of an SVM: the rows on the margin, and the inverse of their bordered kernel matrix.

For the rows E on the margin, every step along the regularisation path solves

.. math:: \begin{pmatrix} 0 & 1' \\ 1 & K_{EE} \end{pmatrix}
          \begin{pmatrix} b \\ c \end{pmatrix} = \begin{pmatrix} s \\ r \end{pmatrix}.

The matrix is invertible as long as no row of E is an affine combination of the others in feature
space. :meth:`Elbow.reach` returns how far a row is from their affine hull; rows in it must
not be added. Rows come and go one at a time, and the inverse follows in :math:`O(|E|^2)`.

Without a bias, b is zero and s is free: the border of the inverse is zero, and the linear span
takes the place of the affine hull.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.resources import new_array

_FIRST_CAPACITY = 64

#: Squared distance of a row from the affine hull of the others, in units of the kernel, below which
#: updates of the inverse lose too many digits.
_NEAR = 1e-8


class Elbow:
    """Rows on the margin, of a kernel matrix K; with a bias or without."""

    def __init__(self, K: FloatArray, has_bias: bool = True) -> None:
        self.K, self.has_bias = K, has_bias
        self.size = 0
        self._rows = np.zeros(_FIRST_CAPACITY, dtype=np.intp)
        self._columns = np.zeros((_FIRST_CAPACITY, len(K)))
        self._inverse = np.zeros((_FIRST_CAPACITY + 1, _FIRST_CAPACITY + 1))

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows, in no particular order."""
        return self._rows[: self.size]

    @classmethod
    def of(cls, K: FloatArray, rows: NDArray[np.intp], has_bias: bool = True) -> Elbow | None:
        """Return the elbow of these rows; None where there is no inverse."""
        elbow = cls(K, has_bias)
        for row in rows:
            elbow._append(int(row))
        return elbow if elbow.refresh() else None

    def solve(self, total: float, values: FloatArray) -> tuple[float, FloatArray]:
        """Return b and c for a sum and for values on the rows."""
        m = self.size + 1
        x = self._inverse[:m, :m] @ np.append(total, values)
        return float(x[0]), x[1:]

    def expand(self, c: FloatArray) -> FloatArray:
        """Return the kernel expansion of coefficients of the rows, on all rows of the matrix."""
        return c @ self._columns[: self.size]

    def reach(self, row: int) -> tuple[FloatArray, float]:
        """Return (b, c) of a row's affine combination of the elbow, and what is left of the row.

        The second is the squared distance from the affine hull of the elbow in feature space.
        """
        if self.size == 0:
            return np.zeros(1), float("inf") if self.has_bias else float(self.K[row, row])
        m = self.size + 1
        border = np.append(1.0, self._columns[: self.size, row])
        z = self._inverse[:m, :m] @ border
        return z, float(self.K[row, row] - border @ z)

    def add(self, row: int, z: FloatArray, distance: float) -> None:
        """Add a row that has this `reach`."""
        self._append(row)
        m, inverse = self.size, self._inverse
        if m == 1 and self.has_bias:
            inverse[:2, :2] = [[-float(self.K[row, row]), 1.0], [1.0, 0.0]]
        elif m == 1:
            inverse[:2, :2] = [[0.0, 0.0], [0.0, 1.0 / distance]]
        else:
            scaled = z / distance
            inverse[:m, :m] += np.outer(z, scaled)
            inverse[m, :m] = inverse[:m, m] = -scaled
            inverse[m, m] = 1.0 / distance
        if distance < _NEAR:
            self.refresh()

    def remove(self, row: int) -> None:
        """Remove a row; the last one takes its place."""
        place, last = int(np.flatnonzero(self.rows == row)[0]), self.size
        inverse = self._inverse
        gone = inverse[: last + 1, place + 1].copy()
        pivot = gone[place + 1]  # one over the squared distance of the row from the others
        if last > 1 and pivot != 0:
            inverse[: last + 1, : last + 1] -= np.outer(gone, gone / pivot)
        if place + 1 != last:
            inverse[place + 1, : last + 1] = inverse[last, : last + 1]
            inverse[: last + 1, place + 1] = inverse[: last + 1, last]
            inverse[place + 1, place + 1] = inverse[last, last]
            self._rows[place] = self._rows[last - 1]
            self._columns[place] = self._columns[last - 1]
        self.size -= 1
        if last > 1 and (pivot * _NEAR > 1 or pivot == 0):
            self.refresh()

    def refresh(self) -> bool:
        """Recompute the inverse, which removes the rounding of updates; False if that fails."""
        m = self.size + 1
        matrix = np.ones((m, m))
        matrix[0, 0] = 0.0
        matrix[1:, 1:] = self._columns[: self.size][:, self.rows]
        first = 0 if self.has_bias else 1
        try:
            inverse = np.linalg.inv(matrix[first:, first:])
        except np.linalg.LinAlgError:
            return False
        if not np.isfinite(inverse).all():
            return False
        self._inverse[0, :m] = self._inverse[:m, 0] = 0.0
        self._inverse[first:m, first:m] = (inverse + inverse.T) / 2
        return True

    def _append(self, row: int) -> None:
        """Add a row, but not to the inverse."""
        capacity = len(self._rows)
        if self.size == capacity:
            more = min(2 * capacity, max(len(self.K), capacity + 1)) - capacity
            self._rows = np.pad(self._rows, (0, more))
            columns = new_array((capacity + more, len(self.K)))
            columns[:capacity] = self._columns
            self._columns = columns
            self._inverse = np.pad(self._inverse, (0, more))
        self._rows[self.size], self._columns[self.size] = row, self.K[row]
        self.size += 1
