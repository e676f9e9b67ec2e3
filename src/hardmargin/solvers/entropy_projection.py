"""Entropy projections of multipliers: eqs. (8) and (9) of IJCAI-07, used by ``rho.py``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray

_RATE_TOL = 1e-6
_MAX_RATE_STEPS = 200

#: Rows whose multipliers add up to a fixed sum.
Group: TypeAlias = slice | NDArray[np.intp]


def groups_of(y: FloatArray, fit_intercept: bool) -> list[Group]:
    """Return the groups of rows whose multipliers each add up to a fixed sum."""
    if not fit_intercept:
        return [slice(None)]
    return [np.flatnonzero(y > 0), np.flatnonzero(y < 0)]


def tilt(
    log_alpha: FloatArray,
    margins: FloatArray,
    rate: float,
    groups: list[Group],
) -> tuple[FloatArray, FloatArray, float]:
    """Eq. (8): the multipliers after a stage, as logarithms and as values, and the stage's bias.

    Parameters
    ----------
    log_alpha, margins : (n,) arrays
        Logarithms of the multipliers, and the margins of the plane.
    rate : float
        Eta.
    groups : list of Group
        From `groups_of`.
    """
    tilted = log_alpha - rate * margins
    alpha = np.empty_like(tilted)
    log_masses = []
    for group in groups:
        part = np.empty_like(tilted[group])
        log_mass, _, _ = _core.tilt(log_alpha[group], margins[group], rate, 0.0, part)
        tilted[group] -= log_mass + np.log(len(groups))
        alpha[group] = part / len(groups)
        log_masses.append(log_mass)
    bias = (log_masses[0] - log_masses[1]) / (2 * rate) if len(groups) == 2 else 0.0
    return tilted, alpha, bias


@np.errstate(over="ignore", invalid="ignore")  # a rate that is not finite ends the path
def rate_to_level(
    log_alpha: FloatArray,
    margins: FloatArray,
    level: float,
    groups: list[Group],
    start: float | None = None,
) -> float:
    """Eq. (9): the rate after which the mean margin is `level`.

    As the rate grows, the mean falls from `rho_bar` towards the least margin, at the speed of the
    margins' variance. Newton's method is kept within a bracket that grows until it holds the root.

    Parameters
    ----------
    log_alpha, margins : (n,) arrays
        Logarithms of the multipliers, and the margins of the plane.
    level : float
        Between the least and the mean of the margins.
    groups : list of Group
        From `groups_of`.
    start : float, optional
        A guess, such as the rate of the stage before.
    """
    parts = [(log_alpha[g], margins[g], np.empty_like(margins[g])) for g in groups]

    def mean_and_variance(rate: float) -> tuple[float, float]:
        mean = variance = 0.0
        for logs, values, weights in parts:
            _, mean_of_part, variance_of_part = _core.tilt(logs, values, rate, level, weights)
            mean += mean_of_part / len(parts)
            variance += variance_of_part / len(parts)
        return mean, variance

    low, high = 0.0, np.inf
    if start is None:
        mean, variance = mean_and_variance(0.0)
        start = (mean - level) / variance if variance > 0 else 1.0 / max(abs(level), 1e-300)
    rate = start
    for _ in range(_MAX_RATE_STEPS):
        mean, variance = mean_and_variance(rate)
        if mean == level:
            return float(rate)
        if mean > level:
            low = rate
        else:
            high = rate
        # From the safe side of the root the step may be far too long, or not finite.
        step = (mean - level) / variance if variance > 0 else np.inf
        following = rate + step
        if np.isinf(high):
            following = min(max(following, 1.5 * rate), 16 * rate)
        elif not low < following < high:
            following = (low + high) / 2
        if abs(following - rate) <= _RATE_TOL * rate:
            return float(following)
        rate = following
    return float(rate)
