r"""Additive gradient ascent on the hard-margin dual, the rival of section 3.1 of ESANN-99.

.. math:: \max_{\alpha \ge 0,\ y'\alpha = 0} W(\alpha) = 1'\alpha - \tfrac12 \alpha'\tilde K\alpha

1. Start with the multipliers of the multiplicative algorithm.
2. Add the gradient :math:`1 - \tilde K\alpha`, times a rate, and project onto the constraints: the
   result is :math:`\max(0, v - \lambda y)` with the :math:`\lambda` that makes its classes balance.
3. Undo an epoch that lowers W and halve the rate; raise it by a tenth after one that does not.

The rule of step 3 is that of `MultiplicativeSVC`, so that both algorithms are compared at the
largest rates that they tolerate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

__all__ = ["additive_objectives", "project"]

#: After this many halvings in a row, rounding allows no further progress.
MAX_HALVINGS = 60


def additive_objectives(
    K: NDArray[np.float64], y: NDArray[np.float64], n_epochs: int
) -> NDArray[np.float64]:
    """Climb the dual, and return its objective after every epoch.

    Parameters
    ----------
    K : (n, n) array
        The kernel matrix.
    y : (n,) array
        Labels -1 and 1.
    n_epochs : int
        How many.

    Returns
    -------
    (n_epochs,) array

    Examples
    --------
    >>> import numpy as np
    >>> objectives = additive_objectives(np.eye(2), np.array([1.0, -1.0]), 50)
    >>> bool(abs(objectives[-1] - 1.0) < 1e-6)
    True
    """
    Q = np.outer(y, y) * K
    alpha = np.where(y > 0, 1.0 / (y > 0).sum(), 1.0 / (y < 0).sum())
    product = Q @ alpha
    objective = float(alpha.sum() - alpha @ product / 2)
    rate = 1.0 / float(np.abs(Q).sum(axis=1).max())  # at most one over the largest curvature
    objectives: list[float] = []
    n_halvings = 0
    while len(objectives) < n_epochs and n_halvings <= MAX_HALVINGS:
        candidate = project(alpha + rate * (1.0 - product), y)
        candidate_product = Q @ candidate
        value = float(candidate.sum() - candidate @ candidate_product / 2)
        if value < objective:
            rate, n_halvings = rate / 2, n_halvings + 1
            continue
        alpha, product, objective = candidate, candidate_product, value
        rate, n_halvings = 1.1 * rate, 0
        objectives.append(objective)
    return np.array(objectives + [objective] * (n_epochs - len(objectives)))


def project(v: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the nearest multipliers that are not negative and balance the classes.

    Parameters
    ----------
    v : (n,) array
        Any multipliers.
    y : (n,) array
        Labels -1 and 1, of both kinds.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> import numpy as np
    >>> project(np.array([3.0, -1.0, 1.0]), np.array([1.0, 1.0, -1.0])).tolist()
    [2.0, 0.0, 2.0]
    """

    def excess(shift: float) -> float:
        return float(y @ np.maximum(v - shift * y, 0.0))

    reach = float(np.abs(v).max()) + 1.0
    # Beyond the largest value one class is empty, so the excess changes its sign in between.
    shift = brentq(excess, -reach, reach, xtol=1e-15, rtol=1e-14)
    return np.maximum(v - shift * y, 0.0)
