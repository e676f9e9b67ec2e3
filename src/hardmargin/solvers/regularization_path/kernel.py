"""The kernel matrix of a regularisation path: scaled and, for SVMs with bias, centred."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.monitor import Monitor
from hardmargin.resources import new_array

#: Kernels of this size, or its inverse, are refused: their products with multipliers overflow.
_LARGEST_SCALE = 1e150

#: Rows of the matrix that are worked on between two looks at the clock.
_ROWS_AT_ONCE = 64

#: Rows whose squared distance is smaller, in units of the kernel, are the same point.
_SAME_POINT = 1e-12


@dataclass(frozen=True)
class ScaledKernel:
    """A kernel matrix, scaled and, for SVMs with bias, which that does not change, centred.

    Attributes
    ----------
    values : (n, n) array
        ``(K_ij - means_i - means_j + constant) / scale``, or ``K_ij / scale``.
    means : (n,) array
        Means of the rows of K; zero without bias.
    scale : float
        Mean of the diagonal after centring.
    diagonal : (n,) array
        Of K itself.
    twins : (n,) int array
        The first row that is the same point in feature space.
    copies : (n,) array or None
        How many rows each row stands for in the leave-one-out bound; None stands for one.
    has_bias : bool
        Whether the SVM has a bias.
    """

    values: FloatArray
    means: FloatArray
    scale: float
    diagonal: FloatArray
    twins: NDArray[np.intp]
    copies: FloatArray | None = None
    has_bias: bool = True

    @classmethod
    def of(
        cls,
        K: FloatArray,
        copies: FloatArray | None = None,
        *,
        has_bias: bool = True,
        monitor: Monitor | None = None,
    ) -> ScaledKernel:
        """Scale a symmetric kernel matrix (into a copy), and centre it for an SVM with bias.

        Raises Stopped if the time of the monitor is up before that is done.
        """
        n, watch = len(K), monitor or Monitor()
        diagonal, means, total = K.diagonal().copy(), np.zeros(n), 0.0
        values = new_array((n, n))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in _blocks(n, watch):
                means[part] = K[part].mean(axis=1)
            total = float(means.mean())  # infinite or NaN if a single value is
            if not has_bias:
                means[:] = 0.0
            for part in _blocks(n, watch):
                if has_bias:
                    np.add.outer(means[part], means, out=values[part])
                    np.subtract(K[part], values[part], out=values[part])
                    values[part] += total
                else:
                    np.add(K[part], 0.0 * total, out=values[part])
            scale = float(values.diagonal().mean())
        if not np.isfinite(scale):  # a single value that is not finite makes it so
            raise ValueError(
                "The kernel's values, and sums of them, must be finite; some are NaN or infinite."
            )
        if scale <= 4 * np.finfo(np.float64).eps * np.abs(diagonal).mean():  # all rows are the same
            first = np.zeros(n, dtype=np.intp)
            return cls(np.zeros_like(values), means, 1.0, diagonal, first, copies, has_bias)
        if not 1.0 / _LARGEST_SCALE <= scale <= _LARGEST_SCALE:
            raise ValueError(
                f"Squared distances in the kernel's space are of size {scale:.2g}, beyond the "
                "precision of a regularisation path; scale the features, or choose another gamma."
            )
        for part in _blocks(n, watch):
            values[part] /= scale
        own = values.diagonal()
        twins = np.empty(n, dtype=np.intp)
        for part in _blocks(n, watch):
            for i in range(part.start, part.stop):
                twins[i] = (own + own[i] - 2 * values[i] <= _SAME_POINT).argmax()
        return cls(values, means, scale, diagonal, twins, copies, has_bias)

    @classmethod
    def unknown(cls, n_rows: int, *, has_bias: bool = True) -> ScaledKernel:
        """Return zeros for a matrix that there was no time for: nothing may follow C = 0."""
        zeros = np.zeros(n_rows)
        nothing = np.broadcast_to(0.0, (n_rows, n_rows))
        return cls(nothing, zeros, 1.0, zeros, np.arange(n_rows), None, has_bias)

    def own_share(self, labels: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the multipliers: what rows contribute to their own scores.

        That is ``alpha_i k(x_i, x_i)``, on average over the copies of a row that have its label.
        """
        # Labels +1, -1 and 0 of one point are three groups.
        groups = np.unique(3 * self.twins + labels.astype(np.intp) % 3, return_inverse=True)[1]
        counts = np.bincount(groups, weights=self.copies)  # weights below one count as one
        share = self.diagonal / np.maximum(counts, 1.0)[groups]
        return lambda alpha: np.asarray(np.bincount(groups, weights=alpha)[groups] * share)


def _blocks(n_rows: int, monitor: Monitor) -> Iterator[slice]:
    """Yield blocks of rows while there is time; raise Stopped when there is none."""
    for begin in range(0, n_rows, _ROWS_AT_ONCE):
        monitor.check()
        yield slice(begin, min(begin + _ROWS_AT_ONCE, n_rows))
