"""Naive multiplicative updates with bias (ESANN-99): plain exponentials, one row after another."""

import numpy as np


def start(y, weights=None):
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    return w / np.where(y > 0, w[y > 0].sum(), w[y < 0].sum())


def step(K, y, alpha, rate):
    """One epoch as printed in the paper: the new multipliers and lambda."""
    gamma = margins(K, y, alpha)
    raised = alpha * np.exp(rate * (1 - gamma))
    lam = np.log(raised[y > 0].sum() / raised[y < 0].sum()) / (2 * rate)
    return np.array([a * np.exp(-rate * lam * s) for a, s in zip(raised, y, strict=True)]), lam


def margins(K, y, alpha):
    return np.array([s * sum(alpha * y * row) for s, row in zip(y, K, strict=True)])


def objective(K, y, alpha):
    return alpha.sum() - alpha @ margins(K, y, alpha) / 2


def balanced_bias(K, y, alpha):
    """Balance the least margins if the plane separates the classes, else the means."""
    g = margins(K, y, alpha)
    if g[y > 0].min() + g[y < 0].min() > 0:
        return (g[y < 0].min() - g[y > 0].min()) / 2
    means = [np.average(g[side], weights=alpha[side]) for side in (y > 0, y < 0)]
    return (means[1] - means[0]) / 2


def fixed(K, y, rate, n_planes, weights=None):
    """The planes of a fixed rate."""
    planes = [start(y, weights)]
    while len(planes) < n_planes:
        planes.append(step(K, y, planes[-1], rate)[0])
    return planes


def adaptive(K, y, n_planes, weights=None):
    """The planes and the rates of the backtracked form."""
    p = start(y, weights) / 2
    distances = np.array([K[i, i] - 2 * K[i] @ p + p @ K @ p for i in range(len(y))])
    planes, rates = [2 * p], []
    rate = 1 / max(1, planes[0] @ distances)
    while len(planes) < n_planes:
        following, _ = step(K, y, planes[-1], rate)
        if objective(K, y, following) < objective(K, y, planes[-1]):
            rate /= 2
            continue
        planes.append(following)
        rates.append(rate)
        rate = max(1.1 * rate, 1 / max(1, following @ distances))
    return planes, np.array(rates)
