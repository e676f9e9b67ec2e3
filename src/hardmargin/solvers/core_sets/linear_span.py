"""Directions of a linear kernel as vectors of features."""

from __future__ import annotations

import numpy as np

from hardmargin.kernels import FloatArray, Kernel, Rows, is_sparse


class LinearSpan:
    """Directions of a linear kernel as vectors of features.

    With many more rows than features, expansions over the rows have large coefficients that cancel.
    The vectors avoid that, and lead back to the smallest coefficients.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Rows.
    """

    #: With more features, their matrix is not worth its cost.
    MAX_FEATURES = 2_000

    #: Eigenvalues below this, relative to the largest, count as zero.
    _RANK_TOL = 1e-12

    #: Relative length below which what projections leave of a vector is only rounding.
    _NOTHING = 1e-11

    def __init__(self, X: Rows) -> None:
        self.X = X
        wide = X.astype(np.float64, copy=False)  # squares may be beyond float32
        gram = wide.T @ wide
        gram = np.asarray(gram.toarray() if is_sparse(gram) else gram)
        values, vectors = np.linalg.eigh(gram)
        has_mass = values > self._RANK_TOL * max(float(values[-1]), 0.0)
        self._back = (vectors[:, has_mass] / values[has_mass]) @ vectors[:, has_mass].T

    @classmethod
    def of(cls, kernel: Kernel, X: Rows) -> LinearSpan | None:
        """Return the span of a linear kernel with few features, and None for any other."""
        if kernel.name != "linear" or X.shape[1] > min(X.shape[0], cls.MAX_FEATURES):
            return None
        return cls(X)

    def direction(self, c: FloatArray, U: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Make the expansion c orthogonal to some directions.

        Parameters
        ----------
        c : (n,) array
            Coefficients of the rows.
        U : (n, n_directions) array
            Orthonormal directions as expansions over the rows.

        Returns
        -------
        projections, expansion, norm
            Projections of the rows on the direction of unit length, its coefficients, and the
            length before it was scaled.
        """
        w = np.asarray(self.X.T @ c, dtype=np.float64)
        vectors = np.asarray(self.X.T @ U, dtype=np.float64)
        before = float(np.linalg.norm(w))
        for _ in range(2):  # against rounding
            w -= vectors @ (vectors.T @ w)
        norm = float(np.linalg.norm(w))
        if norm <= self._NOTHING * before:
            nothing = np.zeros(len(c))
            return nothing, nothing, 0.0
        u = w / norm
        return np.asarray(self.X @ u), np.asarray(self.X @ (self._back @ u)), norm
