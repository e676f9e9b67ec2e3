r"""What :class:`~hardmargin.MinimumEnclosingBall` chooses by itself: kernel, slacks and threshold.

Three rules, none of which looks at labels:

*gamma* (``"near"``) is one over the squared distance within which a tenth of the pairs of different
rows lie. A few far rows change it much less than the mean distance. Where the rows form clusters,
this distance is about the width of a cluster, not the distance between clusters.

*C* (``"auto"``) lets rows exceed the ball by a tenth of the variance
:math:`V = \tfrac{1}{2} \sum_{ij} w_i w_j D_{ij} / W^2` in the kernel's space, on average:
:math:`\sum_i w_i \xi_i = 1 / (2C) = V W / 10`, :math:`W = \sum_i w_i`. Most rows are then a little
outside and so determine the centre, which a few outliers cannot move. With less slack, the centre
would be a mean of the outliers.

*The threshold* is a fence like that of a box plot: outliers exceed the median by more than four
times the distance from the median to the upper quartile. This is measured on the squared distance u
from the centre. For a kernel with values in (0, 1], u has an upper bound B, and the measure is
:math:`-\log(1 - u / B)`, minus the log of the similarity to the centre. Outliers cannot move the
fence far as long as they are fewer than a quarter of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import METRICS, FloatArray, Kernel, Rows, is_sparse
from hardmargin.solvers.core_sets.enclosing_ball import HalfDistances

#: The most rows that a ball with ``C="auto"`` is found on; they are drawn at random.
MAX_ROWS = 3_000

#: The most rows between which distances are computed.
MAX_ROWS_IN_PAIRS = 1_000

#: Share of the pairs that are nearer to each other than the kernel's width.
NEAR_SHARE = 0.1

#: How far rows exceed the squared radius on average, relative to the variance.
MEAN_EXCESS = 0.1

#: Outliers exceed the median by more than this many times its distance to the quartile.
FENCE = 4.0

#: Squares of larger features overflow.
_LARGEST_FEATURE = 1e150


def near_gamma(
    X: Rows,
    weights: FloatArray | None,
    random: np.random.RandomState,
    *,
    kernel: str = "rbf",
    n_jobs: int | None = None,
) -> float:
    """One over the (squared) distance within which a tenth of the pairs of different rows lie.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    weights : (n,) array, optional
        Weights; a weight of two equals having the row twice.
    random : RandomState
        Draws the rows to use, where there are many.
    kernel : str
        ``"laplacian"`` uses L1 distances, any other kernel squared Euclidean ones.
    n_jobs : int, optional
        Threads.
    """
    w = np.ones(X.shape[0]) if weights is None else weights
    rows = drawn(w, MAX_ROWS_IN_PAIRS, random)
    some = X[rows]
    largest = float(np.abs(some.data if is_sparse(some) else some).max(initial=0.0))
    if largest > _LARGEST_FEATURE:
        raise ValueError(
            f"gamma='near' cannot be computed for features as large as {largest:.2g}; scale them, "
            "or give a number."
        )
    metric = METRICS["laplacian" if kernel == "laplacian" else "rbf"]
    away = _of_pairs(Kernel(metric).block(some, n_jobs=n_jobs))
    apart = away > 0
    if not apart.any():
        return 1.0
    away, pair_weights = away[apart], _of_pairs(np.outer(w[rows], w[rows]))[apart]
    order = np.argsort(away, kind="stable")
    ends = np.cumsum(pair_weights[order])
    width = away[order[np.searchsorted(ends, NEAR_SHARE * ends[-1])]]
    return 1.0 / max(float(width), 1e-308)


def _of_pairs(matrix: NDArray[Any]) -> FloatArray:
    """Return what is above the diagonal, row after row; indices would take twice the memory."""
    above = [row[i + 1 :] for i, row in enumerate(matrix)]
    return np.concatenate([np.empty(0), *above], dtype=np.float64)


def drawn(weights: FloatArray, most: int, random: np.random.RandomState) -> NDArray[np.intp]:
    """Rows of positive weight, in order: all of them, or `most` of them at random."""
    rows = np.flatnonzero(weights > 0)
    if len(rows) > most:
        rows = np.sort(random.permutation(rows)[:most])
    return rows


def soft_C(columns: HalfDistances, weights: FloatArray | None) -> float:
    """C with which rows exceed the ball by a tenth of their variance on average."""
    w = np.ones(columns.n_rows) if weights is None else weights
    shares = w / w.sum()
    variance = -float(shares @ columns.product(np.arange(columns.n_rows), shares))
    if not variance > np.finfo(columns.dtype).eps:  # if all rows coincide, any C will do
        variance = 1.0
    return float(1.0 / (2.0 * MEAN_EXCESS * variance * w.sum())) / columns.unit


def fence(squares: FloatArray, weights: FloatArray, largest: float) -> float:
    """Squared distance from the centre beyond which rows are outliers.

    Parameters
    ----------
    squares : (n,) array
        Squared distances of the training rows from the centre.
    weights : (n,) array
        Their weights, positive.
    largest : float
        Upper bound on squared distances; infinite where there is none.
    """
    values = squares
    if np.isfinite(largest):
        values = -np.log(np.maximum(1.0 - squares / largest, np.finfo(np.float64).eps))
    median, quartile = (quantile(values, weights, q) for q in (0.5, 0.75))
    step = quartile - median
    if step <= 1e-9 * abs(median):  # the rows from the median to the quartile are equally far
        step = float(np.average(np.abs(values - median), weights=weights))
    value = median + FENCE * step
    return value if np.isinf(largest) else float(-np.expm1(-value)) * largest


def quantile(values: FloatArray, weights: FloatArray, q: float) -> float:
    """Interpolate linearly like ``numpy.quantile``, each value repeated by its weight."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    begins = ends - weights[order]
    places = np.column_stack([begins, np.maximum(ends - 1, begins)]).ravel()
    place = q * max(float(ends[-1]) - 1, 0.0)
    return float(np.interp(place, places, values[order].repeat(2)))
