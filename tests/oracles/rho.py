"""Naive rho-SVM: Algorithm 1 of IJCAI-07 with scalar roots, and the optimum by pairwise steps."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq


class Path(NamedTuple):
    planes: np.ndarray  # multipliers of f_1 .. f_T+1, one row each
    rates: np.ndarray
    biases: np.ndarray
    epsilons: np.ndarray
    rhos: np.ndarray
    ensemble: np.ndarray
    intercept: float
    stop: str


def algorithm_1(
    K, y, weights=None, *, bias=False, eps_start=0.1, eps_stop=0.005, n_stages=None, rate=None
):
    """The whole path; with `rate`, every stage uses that rate and the first rise ends the path."""
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    groups = [y > 0, y < 0] if bias else [np.ones(len(y), dtype=bool)]
    a = np.empty(len(y))
    for group in groups:
        a[group] = w[group] / w[group].sum() / len(groups)
    g = y * (K @ (y * a))
    planes, rhos, stages = [a], [a @ g], []
    e, stop = eps_start, ""
    while not stop:
        if rhos[-1] <= 1e-10 * K.diagonal().mean():
            stop = "rho_zero"
        elif len(stages) == n_stages:
            stop = "n_stages"
        else:
            level = rhos[-1] / (1 + e)
            least = np.mean([g[group].min() for group in groups])
            moved = False
            if rate is not None or least < level:
                eta = root(a, g, level, groups) if rate is None else rate
                a2, b = tilt(a, g, eta, groups)
                g2 = y * (K @ (y * a2))
                moved = a2 @ g2 <= rhos[-1]
            if moved:
                stages.append((eta, b, e))
                a, g = a2, g2
                planes.append(a)
                rhos.append(a @ g)
            elif rate is not None:
                stop = "overshoot"
            else:
                e /= 2
                stop = "eps" if e < eps_stop and n_stages is None else ""
    rates, biases, epsilons = np.array(stages).reshape(-1, 3).T
    ensemble, intercept = planes[0], 0.0
    if len(rates):
        ensemble = sum(r * p for r, p in zip(rates, planes[:-1], strict=True)) / rates.sum()
        if bias:
            first = 0.5 * np.log(w[y > 0].sum() / w[y < 0].sum())
            intercept = (first + rates @ biases) / rates.sum()
    return Path(
        np.array(planes), rates, biases, epsilons, np.array(rhos), ensemble, intercept, stop
    )


def root(a, g, level, groups):
    """The rate after which the mean of the margins is `level`."""

    def excess(eta):
        return tilt(a, g, eta, groups)[0] @ g - level

    high = 1 / np.abs(g).max()
    while excess(high) > 0:
        high *= 2
    return brentq(excess, 0.0, high, xtol=1e-300, rtol=1e-14, maxiter=1000)


def tilt(a, g, eta, groups):
    """Multipliers after a stage at the rate `eta`, and its bias."""
    after, masses = np.empty(len(a)), []
    for group in groups:
        tilted = a[group] * np.exp(-eta * (g[group] - g.min()))
        masses.append(tilted.sum())
        after[group] = tilted / tilted.sum() / len(groups)
    bias = np.log(masses[0] / masses[1]) / (2 * eta) if len(groups) == 2 and eta > 0 else 0.0
    return after, bias


def optimum(K, y, bias=False, tol=1e-12, max_steps=200_000):
    """The least a' Kt a on the simplex (each class on its half, with bias): (rho, multipliers)."""
    Kt = np.outer(y, y) * K
    groups = [np.flatnonzero(y > 0), np.flatnonzero(y < 0)] if bias else [np.arange(len(y))]
    a = np.zeros(len(y))
    for group in groups:
        a[group] = 1 / len(group) / len(groups)
    g = Kt @ a
    for _ in range(max_steps):
        widest, best = 0.0, None
        for group in groups:
            low = group[g[group].argmin()]
            held = group[a[group] > 0]
            high = held[g[held].argmax()]
            if g[high] - g[low] > widest:
                widest, best = g[high] - g[low], (low, high)
        if best is None or widest <= tol * max(a @ g, 0.0):
            break
        i, j = best
        curvature = Kt[i, i] + Kt[j, j] - 2 * Kt[i, j]
        step = min(a[j], widest / curvature) if curvature > 0 else a[j]
        a[j] = 0.0 if step == a[j] else a[j] - step
        a[i] += step
        g = g + step * (Kt[:, i] - Kt[:, j])
    return a @ Kt @ a, a
