"""The constant as a rival: how far a machine's sigmoid is trusted beside the shares of the classes.

A sigmoid fitted to held-out scores beats the shares a little even where scores are noise, as its
two numbers and all choices before it follow the same rows. Both vote with the evidence of these
rows: the sigmoid's share is ``1 / (1 + exp(-.3 (n (L0 - L) - cost)))``, with n rows, log-losses L0
of the shares and L of the sigmoid, and the cost of a choice in units of log-likelihood.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

FloatArray = NDArray[np.float64]

#: How much a unit of log-likelihood counts: less than one, as the sigmoid was chosen among many.
SHARPNESS = 0.3

#: Slopes are multiplied by trust, and must stay positive.
LEAST_TRUST = 1e-3


def loss_of_shares(n_positive: ArrayLike, n_negative: ArrayLike) -> FloatArray:
    """Log-loss of the shares of the classes, each counted with half a row more.

    Parameters
    ----------
    n_positive, n_negative : (n_machines,) arrays or floats
        Rows of every machine's sides, as weights count them; not both zero.

    Examples
    --------
    >>> from hardmargin.selection.constant import loss_of_shares
    >>> loss_of_shares([50, 10], [50, 90]).round(3)
    array([0.693, 0.325])
    """
    positive, negative = np.asarray(n_positive, float), np.asarray(n_negative, float)
    n_rows = positive + negative
    of_positive, of_negative = (xlogy(n, (n + 0.5) / (n_rows + 1.0)) for n in (positive, negative))
    return np.asarray(-(of_positive + of_negative) / n_rows)


def log_odds_of_shares(n_positive: float, n_negative: float) -> float:
    """Log-odds of the shares of two classes, 0 where their difference may be chance.

    A majority by chance would lower the error of the rows that it was counted on, and of no others.
    Log-odds of less than two standard errors count as 0, those of three or more in full.

    Examples
    --------
    >>> from hardmargin.selection.constant import log_odds_of_shares
    >>> [round(log_odds_of_shares(n, 60 - n), 2) for n in (30, 33, 40, 57)]
    [0.0, 0.0, 0.35, 2.8]
    """
    positive, negative = n_positive + 0.5, n_negative + 0.5
    log_odds = float(np.log(positive / negative))
    standard_errors = abs(log_odds) / float(np.sqrt(1 / positive + 1 / negative))
    return log_odds * min(max(standard_errors - 2.0, 0.0), 1.0)


def trust(
    log_losses: ArrayLike, n_positive: ArrayLike, n_negative: ArrayLike, *, cost: float
) -> FloatArray:
    """Return how far the sigmoid of every machine is trusted, from nearly 0 to 1.

    Parameters
    ----------
    log_losses : (n_machines,) array or float
        Mean log-losses of the sigmoids on the rows held out.
    n_positive, n_negative : (n_machines,) arrays or floats
        Rows of every machine's sides, as weights count them (``sigmoids.as_rows``). A row that was
        held out several times is one row.
    cost : float
        Log-likelihood that the sigmoid must gain to be trusted as much as the shares.

    Examples
    --------
    Scores that gain ten units of log-likelihood over a hundred rows, and none at all:

    >>> from hardmargin.selection.constant import trust
    >>> trust([0.593, 0.693], [50, 50], [50, 50], cost=4.0).round(2)
    array([0.86, 0.23])
    """
    n_rows = np.asarray(n_positive, float) + np.asarray(n_negative, float)
    gain = n_rows * (loss_of_shares(n_positive, n_negative) - np.asarray(log_losses, float))
    return np.asarray(np.maximum(expit(SHARPNESS * (gain - cost)), LEAST_TRUST))
