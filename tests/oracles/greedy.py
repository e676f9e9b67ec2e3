"""Naive greedy stagewise SVM: Algorithm 1 of TNN-08, and its form with revisits."""

from typing import NamedTuple

import numpy as np


class Path(NamedTuple):
    order: np.ndarray
    steps: np.ndarray
    losses: np.ndarray  # after every stage
    squared_norm: float
    gradient: np.ndarray
    open_change: float  # the largest |step| * K_ii still allowed at the end


def algorithm_1(K, y, weights=None, max_stages=None):
    """Choose every row at most once; with weights, as often as it has copies."""
    k = np.where(K.diagonal() > 0, K.diagonal(), np.inf)  # rows without a minimum are skipped

    def choose(g, alpha, left):
        g = np.where(left > 0, np.minimum(g, 0), 0)
        h = g if (k == 1).all() else -(g**2) / (2 * k)
        return -h, -g / k

    return _run(K, y, choose, 1, weights, max_stages)


def with_revisits(K, y, max_visits, step_tol=0.02, weights=None, max_stages=None):
    """Rows may be visited again, and may give back all or part of their multiplier."""
    k = np.where(K.diagonal() > 0, K.diagonal(), np.inf)

    def choose(g, alpha, left):
        step = np.maximum(-g / k, -alpha)
        step[(step > 0) & (left <= 0)] = 0
        finite = np.where(np.isfinite(k), k, 0)
        gain = np.abs(step) if (k == 1).all() else -(step * g + step**2 * finite / 2)
        return np.where(np.abs(step) * finite > step_tol, gain, 0), step

    return _run(K, y, choose, max_visits, weights, max_stages)


def _run(K, y, choose, max_visits, weights, max_stages):
    Kt = np.outer(y, y) * K
    g, alpha = -np.ones(len(y)), np.zeros(len(y))
    left = max_visits * (np.ones(len(y)) if weights is None else np.array(weights, dtype=float))
    stages = []
    while True:
        score, step = choose(g, alpha, left)
        i = int(score.argmax())  # the lowest row of a tie
        if not score[i] > 0 or len(stages) == max_stages:
            break
        s = step[i] * min(1.0, left[i]) if step[i] > 0 else step[i]
        alpha[i], left[i] = alpha[i] + s, left[i] - 1
        g = g + s * Kt[:, i]
        stages.append((i, s, alpha @ (g + 1) / 2 - alpha.sum()))
    order, steps, losses = np.array(stages).reshape(-1, 3).T
    open_change = float(np.abs(step * K.diagonal()).max())
    return Path(order.astype(int), steps, losses, alpha @ Kt @ alpha, g, open_change)
