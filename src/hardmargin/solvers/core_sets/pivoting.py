r"""Small quadratic problems over non-negative numbers, by block principal pivoting.

.. math:: \min_{\alpha \ge 0} \tfrac{1}{2} \alpha'Q\alpha - \alpha'1

for positive definite Q: Portugal, Judice & Vicente (Mathematics of Computation, 1994). From a guess
A of the rows with a multiplier:

1. Solve :math:`Q_{AA}\alpha_A = 1`; other rows have :math:`\alpha = 0`.
2. Wrong are the rows of A whose multiplier is negative, and others whose :math:`g = Q\alpha` is
   below 1. Stop if there are none.
3. Wrong rows leave A or join it: all at once as long as they become fewer, otherwise only the last
   of them. Go to step 1.

This always terminates. Steps on two multipliers take very long where Q is close to singular; a few
factorisations do not.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.monitor import Monitor

#: Exchanges of all rows at once that may leave no fewer rows wrong than before.
_PATIENCE = 3

#: Limit on the exchanges.
MAX_EXCHANGES = 200


def solve_by_pivoting(
    Q: FloatArray,
    start: NDArray[np.bool_],
    tol: float,
    monitor: Monitor | None = None,
) -> FloatArray | None:
    """Solve the problem.

    Parameters
    ----------
    Q : (n, n) array
        Symmetric, in float64.
    start : (n,) bool array
        The rows to start with.
    tol : float
        How far g of a row without a multiplier may fall short of 1.
    monitor : Monitor, optional
        Asked before every factorisation.

    Returns
    -------
    (n,) array or None
        None if Q is not positive definite, or rounding keeps the rows from settling.

    Raises
    ------
    Stopped
        If the monitor says so.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.solvers.core_sets.pivoting import solve_by_pivoting
    >>> Q = np.array([[2.0, 3.0, 0.0], [3.0, 8.0, 0.0], [0.0, 0.0, 1.0]])
    >>> solve_by_pivoting(Q, np.ones(3, dtype=bool), 1e-9)
    array([0.5, 0. , 1. ])
    """
    active = start.copy()
    fewest, patience = len(Q) + 1, _PATIENCE
    for _ in range(MAX_EXCHANGES):
        if monitor is not None:
            monitor.check()
        # 1. The multipliers of A.
        rows = np.flatnonzero(active)
        alpha = np.zeros(len(Q))
        if len(rows):
            try:
                factor = scipy.linalg.cho_factor(
                    Q[np.ix_(rows, rows)], lower=True, overwrite_a=True, check_finite=False
                )
            except np.linalg.LinAlgError:
                return None
            alpha[rows] = scipy.linalg.cho_solve(factor, np.ones(len(rows)), check_finite=False)
        # 2. The rows that are wrong.
        is_wrong = np.where(active, alpha < 0, Q @ alpha < 1.0 - tol)
        n_wrong = int(is_wrong.sum())
        if n_wrong == 0:
            return alpha
        # 3. All of them, or the last one, change places.
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        elif patience:
            patience -= 1
        else:
            is_wrong[: np.flatnonzero(is_wrong)[-1]] = False
        active ^= is_wrong
    return None
