"""Naive exact hard-margin SVM: an active set, with linear algebra on all of it in every step."""

from typing import NamedTuple

import numpy as np


class Optimum(NamedTuple):
    alpha: np.ndarray
    rho: float
    gradient: np.ndarray
    intercept: float  # on the scale of alpha
    gap: float


def hard_margin(K, y, bias=True, tol=1e-11):
    """Minimise alpha' Kt alpha where alpha adds up to 1 or, with bias, to 1/2 in each class.

    Wolfe's method for the point of least norm: add the row that violates most, go to the minimum
    on the rows at hand, and drop rows whose multiplier would turn negative.
    """
    Kt = np.outer(y, y) * K
    groups = np.stack([y < 0, y > 0]) if bias else np.ones((1, len(y)), dtype=bool)
    mass = 1 / len(groups)
    alpha = np.zeros(len(y))
    for group in groups:
        alpha[np.flatnonzero(group)[K.diagonal()[group].argmin()]] = mass
    while True:
        g = Kt @ alpha
        rho = alpha @ g
        levels = groups @ (alpha * g) / mass
        excess = levels @ groups - g
        if rho <= 1e-12 or excess.max() <= tol * rho:
            break
        support = np.union1d(np.flatnonzero(alpha), excess.argmax())
        while True:
            target = _minimum(Kt, groups, mass, support)
            if (target > 0).all():
                break
            falling = target <= 0
            now = alpha[support]
            limit = (now[falling] / (now[falling] - target[falling])).min()
            now += limit * (target - now)
            now[now <= 1e-15] = 0
            alpha[:] = 0
            alpha[support] = now
            support = support[now > 0]
        alpha[:] = 0
        alpha[support] = target
    least = np.array([g[y < 0].min(), g[y > 0].min()])
    margin = least.mean() if bias else least.min()
    lower = max(0.0, margin) ** 2 / rho if rho > 0 else 0.0
    intercept = (least[0] - least[1]) / 2 if bias else 0.0
    return Optimum(alpha, rho, g, intercept, 1 - lower / rho if rho > 0 else 1.0)


def _minimum(Kt, groups, mass, support):
    """The minimum of the objective over these rows, with multipliers of any sign."""
    sums = groups[:, support].astype(float)
    n, m = len(support), len(sums)
    matrix = np.block([[Kt[np.ix_(support, support)], sums.T], [sums, np.zeros((m, m))]])
    right = np.append(np.zeros(n), np.full(m, mass))
    return np.linalg.lstsq(matrix, right, rcond=1e-14)[0][:n]
