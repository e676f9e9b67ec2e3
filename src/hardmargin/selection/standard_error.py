"""How exact a mean over held-out rows is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.selection.sigmoids import as_rows

FloatArray = NDArray[np.float64]


def standard_error(
    values: NDArray[Any], rows: NDArray[np.intp], weights: FloatArray | None = None
) -> float:
    """Return the standard error of the weighted mean of what held-out rows say; NaN below two rows.

    A row that was held out several times is one row, with the mean of its values. Weights count
    rows, as in `as_rows`: a weight of two equals the row twice.

    Parameters
    ----------
    values : (n,) array
        Losses, or whether predictions are wrong.
    rows : (n,) int array
        Which row each is of.
    weights : (n,) array, optional
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.standard_error import standard_error
    >>> is_wrong = np.arange(100) < 20
    >>> round(standard_error(is_wrong, np.arange(100)), 3)
    0.04
    """
    known, first, at, times = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    of_rows = np.bincount(at, weights=values, minlength=len(known)) / times
    mass = np.ones(len(known)) if weights is None else as_rows(weights[first])
    n_rows = float(mass.sum())
    if n_rows <= 1:
        return float("nan")
    mean = np.average(of_rows, weights=mass)
    variance = float(mass @ np.square(of_rows - mean)) / (n_rows - 1)
    return float(np.sqrt(variance / n_rows))
