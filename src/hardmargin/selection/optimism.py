"""How much too low a held-out error is, where the same rows have made choices.

Choices gain log-likelihood by chance, and that lowers the error of these rows, too. Log-odds of
standard deviation s that are right gain ``s**2 / 8`` per row over a constant, and lower its error
by ``s / sqrt(8 pi)``, as long as s is small. A gain of g per row thus lowers the error by
``sqrt(g / pi)``; what it does without the part that is due to choices is less.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from hardmargin.selection.constant import SHARPNESS, log_odds_of_shares


def error_of_choices(gain: float, cost: float) -> float:
    """By how much an error is too low, if a gain of log-likelihood per row is too large by a cost.

    Examples
    --------
    Two units of log-likelihood, on 200 rows of noise and of a strong signal:

    >>> from hardmargin.selection.optimism import error_of_choices
    >>> round(error_of_choices(0.01, 0.01), 3), round(error_of_choices(0.4, 0.01), 3)
    (0.056, 0.004)
    """
    gain = max(gain, 0.0)
    return (math.sqrt(gain) - math.sqrt(max(gain - cost, 0.0))) / math.sqrt(math.pi)


def honest_error(error: float, too_low_by: float, of_constant: float) -> float:
    """Raise an error by what choices have taken off it, but not above that of a constant.

    The less a model errs, the less its error depends on these choices.

    Examples
    --------
    >>> from hardmargin.selection.optimism import honest_error
    >>> honest_error(0.46, 0.05, 0.5), honest_error(0.0, 0.05, 0.5)
    (0.5, 0.0)
    """
    if not error < of_constant:
        return error
    return min(error + too_low_by * error / of_constant, of_constant)


def errors_of_constant(n_positive: float, n_negative: float) -> tuple[float, float]:
    """Error of the constant that predicts the larger class: on rows counted, and on new ones.

    A majority that may be chance is worth less on new rows: see ``constant.py``.

    Examples
    --------
    >>> from hardmargin.selection.optimism import errors_of_constant
    >>> errors_of_constant(33, 27), errors_of_constant(10, 30)[0]
    ((0.45, 0.5), 0.25)
    """
    counted = min(n_positive, n_negative) / (n_positive + n_negative)
    log_odds = log_odds_of_shares(n_positive, n_negative)
    return counted, max(counted, float(expit(-abs(log_odds))))


def gain_of_trust(trust: ArrayLike, cost: float) -> float:
    """Log-likelihood that a sigmoid has gained, by how far it is trusted: the mean over machines.

    The inverse of :func:`hardmargin.selection.constant.trust`.

    Examples
    --------
    >>> from hardmargin.selection.optimism import gain_of_trust
    >>> round(gain_of_trust([0.5], cost=2.0), 1)
    2.0
    """
    share = np.clip(np.asarray(trust, float), 1e-12, 1 - 1e-12)
    return float(np.mean(cost + logit(share) / SHARPNESS))
