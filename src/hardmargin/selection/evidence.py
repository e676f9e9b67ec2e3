"""How many rows of evidence sample weights stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def as_rows(weights: FloatArray) -> FloatArray:
    r"""Scale weights so that they add up to the number of rows they stand for.

    That is :math:`\max(\sum w, (\sum w)^2 / \sum w^2)`. Whole numbers count rows and stay as they
    are, so that a weight of two is the row twice. The second term is the effective number of rows,
    which does not depend on the scale of the weights: those that were normalised, to add up to one
    for instance, still count as many rows.

    Parameters
    ----------
    weights : (n,) array
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.evidence import as_rows
    >>> as_rows(np.array([1.0, 2.0, 1.0]))
    array([1., 2., 1.])
    >>> as_rows(np.array([0.25, 0.25, 0.25, 0.25]))
    array([1., 1., 1., 1.])
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return weights
    shares = weights / largest  # their squares neither overflow nor vanish together
    return shares * max(largest, float(shares.sum() / (shares @ shares)))
