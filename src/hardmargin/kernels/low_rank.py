r"""Low-rank kernel matrices: Fine & Scheinberg, JMLR 2001; Williams & Seeger, NIPS 2000.

A few landmark rows S stand for all: with ``W W' = K_SS^-1`` and the factor ``Z = K_nS W``,

.. math:: K \approx Z Z' = K_{nS} K_{SS}^{-1} K_{Sn}.

A product with it takes O(n r), and any expansion over all n rows collapses into one over the
landmarks, so that prediction needs only those.

The landmarks are drawn at random (Nystroem), drawn far from each other (k-means++ in the feature
space of the kernel), or chosen by pivoted incomplete Cholesky: the row that the landmarks so far
explain worst is the next. Pivots leave the smallest part of the trace unexplained; random
landmarks are often better for prediction at small rank, as pivots pick outliers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.matrix import as_precision
from hardmargin.monitor import Monitor
from hardmargin.resources import each_block, multiply

Landmarks = Literal["random", "kmeans++", "cholesky"]

LANDMARKS = ("random", "kmeans++", "cholesky")

#: ``rank="auto"`` grows the rank until this share of the trace is left over, or to this rank.
AUTO_TOLERANCE = 0.01
AUTO_RANK = 1_000

#: The first rank tried where a tolerance is to be met.
_FIRST_RANK = 64

#: Rows that are multiplied at once.
_ROWS_AT_ONCE = 8_192

#: Kernel values against the landmarks that are held at once, and the fewest rows.
_VALUES_AT_ONCE, _LEAST_ROWS_AT_ONCE = 2**19, 1_024


@dataclass(frozen=True)
class LowRankMatrix:
    """A kernel matrix as ``factor @ factor.T``.

    Attributes
    ----------
    factor : (n, rank) array
        In the precision of the kernel values.
    landmarks : (n_landmarks,) int array
        The landmark rows, sorted and numbered as in the X that the factor was made from.
    collapse : (n_landmarks, rank) array
        ``k(., landmarks) @ collapse`` is the factor of any row.
    diagonal : (n,) array
        ``k(x, x)`` of the approximation.
    residual : float
        Share of the trace of K that is left over.
    n_jobs : int or None
        Threads that multiply.
    """

    factor: NDArray[Any]
    landmarks: NDArray[np.int32]
    collapse: FloatArray
    diagonal: FloatArray
    residual: float
    n_jobs: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.factor)

    @property
    def rank(self) -> int:
        """Number of columns of the factor."""
        return int(self.factor.shape[1])

    def product(self, V: FloatArray) -> FloatArray:
        """Multiply with a vector or with the columns of a matrix."""
        right = as_precision(V, self.factor.dtype)
        product = multiply(self.factor, self._inner(right), n_jobs=self.n_jobs)
        return np.asarray(product, dtype=np.float64)

    def coefficients(self, V: FloatArray) -> FloatArray:
        """Collapse expansions over all rows (a vector, or columns) into ones over the landmarks."""
        inner = self._inner(as_precision(V, self.factor.dtype))
        return self.collapse @ np.asarray(inner, dtype=np.float64)

    def restrict(self, rows: NDArray[Any]) -> LowRankMatrix:
        """Keep the approximation between some of the rows."""
        return replace(self, factor=self.factor[rows], diagonal=self.diagonal[rows])

    def _inner(self, right: NDArray[Any]) -> NDArray[Any]:
        """``factor.T @ right``, added up in blocks of rows, always in the same order."""
        n_parts = -(-self.n_rows // _ROWS_AT_ONCE)
        sums = np.empty((n_parts, self.rank, *right.shape[1:]), dtype=right.dtype)

        def add_up(rows: slice) -> None:
            sums[rows.start // _ROWS_AT_ONCE] = self.factor[rows].T @ right[rows]

        work = self.rank * right.size
        each_block(add_up, self.n_rows, _ROWS_AT_ONCE, n_jobs=self.n_jobs, work=work)
        return np.asarray(sums.sum(axis=0))


def low_rank_matrix(
    kernel: Kernel,
    X: Rows,
    rank: int | float | Literal["auto"],
    *,
    landmarks: Landmarks = "random",
    chosen: NDArray[Any] | None = None,
    rows: NDArray[Any] | None = None,
    dtype: Precision = "float64",
    memory_bytes: int = 2**30,
    n_jobs: int | None = None,
    random_state: np.random.RandomState | None = None,
    monitor: Monitor | None = None,
) -> LowRankMatrix:
    """Approximate the kernel matrix of some rows of X.

    Parameters
    ----------
    kernel : Kernel
        A positive semi-definite kernel.
    X : rows
        Rows, or the whole kernel matrix for a precomputed kernel.
    rank : int, float in (0, 1) or "auto"
        Number of landmarks; or the share of the trace that may be left over, for which the rank
        grows as far as the memory allows; "auto" is 1 % with at most 1,000 landmarks.
    landmarks : {"random", "kmeans++", "cholesky"}
        How they are found.
    chosen : int array, optional
        Landmark rows of X, found by other means than `landmarks`.
    rows : int array, optional
        Which rows of X; all by default. `LowRankMatrix.landmarks` are indices into X.
    dtype : {"float32", "float64"}
        Precision of the factor.
    memory_bytes : int
        Memory for the factor, including what is needed to compute it.
    n_jobs : int, optional
        Threads that evaluate kernel values, and multiply.
    random_state : RandomState, optional
        Draws the landmarks.
    monitor : Monitor, optional
        Its ``check`` is called while landmarks are found, and may raise ``Stopped``.
    """
    every = np.arange(X.shape[0]) if rows is None else np.asarray(rows)
    check_diagonal(kernel, X, every, dtype=dtype)
    random = random_state or np.random.RandomState(0)
    # The factor, the values it is made of, and their product while it is being made.
    room = memory_bytes // (3 * len(every) * np.dtype(dtype).itemsize)
    most = min(len(every), room)
    gram = _Gram(kernel, X, every, dtype, n_jobs, monitor or Monitor())
    if isinstance(rank, int):
        if min(rank, len(every)) > most:
            raise ValueError(
                f"rank={rank} for {len(every):,} rows needs about "
                f"{3 * rank * len(every) * np.dtype(dtype).itemsize:,} bytes; raise memory_limit "
                f"(now {memory_bytes:,}) or lower rank to {max(most, 1)}."
            )
        tolerance, most = 0.0, min(rank, len(every))
    else:
        tolerance = AUTO_TOLERANCE if rank == "auto" else float(rank)
        most = max(1, min(most, AUTO_RANK) if rank == "auto" else most)
    if chosen is not None:
        return _nystroem(gram, np.searchsorted(every, np.sort(chosen)))
    if landmarks == "cholesky":
        return _nystroem(gram, _pivots(gram, most, tolerance))
    order = random.permutation(len(every)) if landmarks == "random" else None
    n = most if tolerance == 0 else min(_FIRST_RANK, most)
    while True:
        drawn = order[:n] if order is not None else _far_apart(gram, n, random)
        matrix = _nystroem(gram, drawn)
        if n >= most or matrix.residual <= tolerance:
            return matrix
        n = min(2 * n, most)


@dataclass(frozen=True)
class _Gram:
    """Kernel values between some rows of X, which are indexed by their position among them."""

    kernel: Kernel
    X: Rows
    rows: NDArray[Any]
    dtype: Precision
    n_jobs: int | None
    monitor: Monitor

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def diagonal(self) -> FloatArray:
        of_rows: FloatArray = self.kernel.diagonal(self.X)[self.rows]
        return of_rows

    def columns(
        self,
        indices: NDArray[Any],
        among: NDArray[Any] | None = None,
        dtype: Precision | None = None,
    ) -> NDArray[Any]:
        dtype = dtype or self.dtype
        of = self.rows if among is None else self.rows[among]
        at = self.rows[indices]
        self.monitor.check()
        if self.kernel.name == "precomputed":
            return np.asarray(self.X[np.ix_(of, at)], dtype=dtype)
        is_whole = np.array_equal(of, np.arange(self.X.shape[0]))
        queries = self.X if is_whole else self.X[of]
        values = self.kernel.block(queries, self.X[at], dtype=dtype, n_jobs=self.n_jobs)
        return np.asarray(values, dtype=dtype)


def _nystroem(gram: _Gram, chosen: NDArray[Any]) -> LowRankMatrix:
    """Factor the kernel through the landmarks, leaving out directions lost in rounding."""
    chosen = chosen[np.argsort(gram.rows[chosen])]
    inner = gram.columns(chosen, among=chosen, dtype="float64")
    if not np.isfinite(inner).all():
        raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
    inner = (inner + inner.T) / 2
    eigenvalues, vectors = scipy.linalg.eigh(inner)
    # Leave out directions lost in the rounding of eigenvalues or of predictions: coefficients grow
    # with the inverse root of the least eigenvalue.
    rounding = len(chosen) * np.finfo(np.float64).eps * max(float(eigenvalues[-1]), 0.0)
    in_prediction = 10 * float(np.finfo(gram.dtype).eps) * max(float(np.trace(inner)), 0.0)
    kept = eigenvalues > max(rounding, in_prediction / len(chosen))
    if not kept.any():
        raise ValueError(
            "A low-rank kernel must be positive semi-definite, and not zero on all landmarks; use "
            "rank=None for this kernel."
        )
    collapse = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    factor = np.empty((gram.n_rows, collapse.shape[1]), dtype=gram.dtype)
    step = min(max(_VALUES_AT_ONCE // len(chosen), _LEAST_ROWS_AT_ONCE), _ROWS_AT_ONCE)
    for begin in range(0, gram.n_rows, step):
        part = np.arange(begin, min(begin + step, gram.n_rows))
        values = gram.columns(chosen, among=part, dtype="float64")
        factor[part] = multiply(values, collapse, n_jobs=gram.n_jobs)
    explained = np.einsum("ij,ij->i", factor, factor, dtype=np.float64)
    true = gram.diagonal()
    trace = float(true.sum())
    residual = float(np.maximum(true - explained, 0.0).sum() / trace) if trace > 0 else 0.0
    return LowRankMatrix(
        factor,
        gram.rows[chosen].astype(np.int32),
        collapse,
        explained,
        residual,
        gram.n_jobs,
    )


def _pivots(gram: _Gram, most: int, tolerance: float) -> NDArray[np.intp]:
    """Choose rows by pivoted incomplete Cholesky: always the one explained worst so far."""
    left = gram.diagonal()
    trace = float(left.sum())
    smallest = 1e-12 * float(left.max(initial=0.0))
    factor = np.empty((min(most, 256), gram.n_rows), dtype=gram.dtype)
    chosen: list[int] = []
    while len(chosen) < most:
        pivot = int(left.argmax())
        if left[pivot] <= smallest or left.sum() <= tolerance * trace:
            break
        k = len(chosen)
        if k == len(factor):
            factor = np.resize(factor, (min(most, 2 * k), gram.n_rows))
        column = gram.columns(np.array([pivot]))[:, 0].astype(np.float64)
        column -= factor[:k, pivot] @ factor[:k]
        column /= np.sqrt(left[pivot])
        factor[k] = column
        left = np.maximum(left - column**2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen or [0], dtype=np.intp)


def _far_apart(gram: _Gram, n: int, random: np.random.RandomState) -> NDArray[np.intp]:
    """k-means++ in feature space: the chance of a row is its squared distance from those drawn."""
    diagonal = gram.diagonal()
    chosen = [int(random.randint(gram.n_rows))]
    nearest = np.full(gram.n_rows, np.inf)
    while len(chosen) < n:
        last = chosen[-1]
        column = gram.columns(np.array([last]))[:, 0].astype(np.float64)
        nearest = np.minimum(nearest, np.maximum(diagonal + diagonal[last] - 2 * column, 0.0))
        nearest[chosen] = 0.0
        total = np.cumsum(nearest)
        if not total[-1] > 0:
            break  # all other rows are copies
        chosen.append(int(np.searchsorted(total, random.uniform() * total[-1], side="right")))
    return np.array(chosen, dtype=np.intp)
