"""How near rows are to each other, as a kernel measures it.

A kernel that has decayed at the distance of the nearest row only looks rows up: its scores of new
rows span hundreds of orders of magnitude, and no sigmoid of them holds for other rows.
"""

from __future__ import annotations

import numpy as np

from hardmargin.kernels import METRICS, FloatArray, Kernel, Rows, as_blocks

#: Rows whose nearest ones are looked for.
MAX_ROWS = 300

#: Distances that are in memory at once.
DISTANCES_AT_ONCE = 3_000_000


def nearest_distance(kernel: str, X: Rows, weights: FloatArray | None = None) -> float | None:
    """Return the median distance to the nearest other row; None without any distance.

    Copies of a row are no other rows.

    Parameters
    ----------
    kernel : str
        The distance is the one that this kernel decays with; other kernels have none.
    X : rows
        The rows, as the kernel sees them.
    weights : (n,) array, optional
        How many rows each stands for; those of weight zero are absent.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.nearest import nearest_distance
    >>> X = np.array([[0.0], [0.0], [2.0], [5.0]])
    >>> nearest_distance("laplacian", X), nearest_distance("rbf", X)
    (2.0, 4.0)
    """
    if kernel not in METRICS:
        return None
    metric, blocks = Kernel(METRICS[kernel]), as_blocks(X)
    mass = np.ones(blocks.shape[0]) if weights is None else weights
    present = np.flatnonzero(mass > 0)
    if len(present) > MAX_ROWS:
        present = present[np.linspace(0, len(present) - 1, MAX_ROWS).astype(np.intp)]
    queries, mass_of_queries = blocks[present], mass[present]
    step = max(1, DISTANCES_AT_ONCE // max(len(present), 1))

    def nearest(part: Rows, of_part: FloatArray) -> FloatArray:
        least = np.full(len(present), np.inf)
        for begin in range(0, part.shape[0], step):
            some = slice(begin, begin + step)
            with np.errstate(over="ignore", invalid="ignore"):
                D = metric.block(queries, part[some])
            D[~(D > 0) | (of_part[some] == 0)] = np.inf
            np.minimum(least, D.min(axis=1), out=least)
        return least

    found = np.min(blocks.each(nearest, mass), axis=0)
    has_other = np.isfinite(found)
    return _median(found[has_other], mass_of_queries[has_other]) if has_other.any() else None


def _median(values: FloatArray, weights: FloatArray) -> float:
    """Median of values that are repeated as their weights say."""
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    half = sums[-1] / 2
    ends = [np.searchsorted(sums, half, side) for side in ("left", "right")]
    return float(values[order[np.minimum(ends, len(order) - 1)]].mean())
