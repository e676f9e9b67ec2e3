"""Directions of a linear kernel as vectors of features."""

from __future__ import annotations

import numpy as np

from hardmargin.kernels import FloatArray, Kernel, Rows, is_sparse


class LinearSpan:
    """Directions of a linear kernel as vectors of features.

    There are many more rows than features, so that expansions over the rows have large
    coefficients that cancel; the vectors do not, and lead back to the smallest coefficients.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Rows.
    """

    #: More features are not worth their matrix.
    MAX_FEATURES = 2_000

    #: Eigenvalues below this, relative to the largest, are none.
    _RANK_TOL = 1e-12

    #: What projections leave of a vector that has nothing else, relative to it.
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
            Of the rows on the direction of length one, its coefficients, and its length before.
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
