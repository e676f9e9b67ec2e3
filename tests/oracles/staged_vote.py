"""Naive numpy version of the paths that judge themselves by held-out rows.

One kernel, one machine. Everything is float64 and written for reading; see
``hardmargin/solvers/staged_vote.py``.
"""

import numpy as np


class LinearKernel:
    """The matrix ``gamma * XX'``, whose products go through one weight per column."""

    def __init__(self, X, gamma=1.0):
        self.X, self.gamma = X, gamma

    def __matmul__(self, A):
        weights = self.X.T @ A
        return self.gamma * (self.X @ weights)


def logistic(z):
    return 1 / (1 + np.exp(np.clip(z, -40, 40)))


def shift(S, v, F, b):
    """One damped Newton step of the bias of every column."""
    p = logistic(2 * S * (F + b))
    w = np.where(S == 0, 0, v[:, None] * p)
    slope, curvature = (S * w).sum(axis=0), (w * (1 - p)).sum(axis=0)
    return np.where(curvature > 0, np.clip(slope / (2 * curvature + 1e-300), -1, 1), 0)


def best_scale(h, v, log_scale):
    for _ in range(8):
        z = 2 * np.exp(log_scale) * h
        p = logistic(z)
        slope, curvature = (v * z * p).sum(), (v * z**2 * p * (1 - p)).sum()
        if not curvature > 0:
            break
        change = np.clip(slope / curvature, -1, 1)
        new = np.clip(log_scale + change, -5, 5)
        settled = abs(new - log_scale) < 1e-5
        log_scale = new
        if settled:
            break
    return log_scale


def multiply(K, A):
    """Products with one matrix, or with one for every column."""
    if isinstance(K, list):
        return np.column_stack([own @ a for own, a in zip(K, A.T, strict=True)])
    return K @ A


def held_out_path(
    K,
    y,
    folds,
    *,
    v=None,
    loss="logistic",
    bias=True,
    n_stages=None,
    max_stages=150,
    sharpness=0.3,
    shuffled=(),
    all_columns=False,
):
    """Return coefficients, intercept, held-out scores, mass, least loss, stages and losses.

    `folds` are pairs of boolean masks (train, test). K may be a list: the matrix of all rows, then
    those of the folds. `shuffled` are labels of more columns; `all_columns` returns coefficients of
    all of them, column by column.
    """
    n = len(y)
    v = np.ones(n) if v is None else v
    S = np.column_stack([y, *(np.where(train, y, 0.0) for train, _ in folds), *shuffled])
    held = [(i, k + 1) for k, (_, test) in enumerate(folds) for i in np.flatnonzero(test)]
    rows, columns = (np.array(part, dtype=int) for part in zip(*held, strict=True))
    F, Fp, c, cp = (np.zeros(S.shape) for _ in range(4))
    b = np.zeros(S.shape[1])
    if bias:
        b = np.array([0.5 * np.log(v[s > 0].sum() / v[s < 0].sum()) for s in S.T])
    tk, log_scale, best, best_t = 1.0, 0.0, np.inf, 0
    mix, mix_b, mix_h, mass = np.zeros(S.shape), 0.0, np.zeros(len(rows)), 0.0
    stages, losses, t = [], [], 0
    limit = n_stages or max_stages
    while t < limit:
        p = logistic(2 * S * (F + b))
        w = np.where(S == 0, 0, v[:, None] * p)
        move = shift(S, v, F, b) if bias else 0.0
        if loss == "exponential":
            # Only ratios of weights within a class matter; without bias, those among all rows.
            top = np.where(S == 0, -np.inf, -S * F)
            if bias:
                top = np.where(
                    S > 0, *(np.where(s * S > 0, top, -np.inf).max(axis=0) for s in (1, -1))
                )
            else:
                top = top.max(axis=0)
            w = np.where(S == 0, 0, v[:, None] * np.exp(np.minimum(-S * F - top, 0)))
        positive = np.where(S > 0, w, 0).sum(axis=0)
        negative = np.where(S < 0, w, 0).sum(axis=0)
        if not bias:
            positive = negative = (positive + negative) / 2
        A = 0.5 * S * w / np.where(S > 0, positive, negative)
        b = b + move
        G = multiply(K, A)
        a, g = A[:, 0], G[:, 0]
        rho = a @ g
        if rho <= 1e-12:
            break
        if loss == "exponential":
            sides = [(y > 0, g), (y < 0, g)] if bias else [(y != 0, y * g)]
            spread = []
            for side, d in sides:
                m = np.abs(a[side]) / np.abs(a[side]).sum()
                spread.append(m @ d[side] ** 2 - (m @ d[side]) ** 2)
            cur, damping = np.mean(spread), 0.1 / 1.1
        else:
            h = np.abs(a) * (1 - p[:, 0])
            cur = 2 * (h @ g**2 - ((h @ g) ** 2 / h.sum() if bias else 0.0))
            damping = 0.2 / 1.2
        eta = min(damping * rho / cur, 1 / rho) if cur > 0 else 1 / rho
        Fn, cn = F + eta * G, c + eta * A
        t1 = (1 + np.sqrt(1 + 4 * tk**2)) / 2
        beta = (tk - 1) / t1
        if a @ (Fn - Fp)[:, 0] < 0:
            beta, t1 = 0.0, 1.0
        F, c = Fn + beta * (Fn - Fp), cn + beta * (cn - cp)
        Fp, cp, tk = Fn, cn, t1
        t += 1
        is_due = t <= 16 or t % (2 if t < 48 else 4) == 0
        judged = t == n_stages if n_stages else is_due
        if not judged:
            if not n_stages and t - best_t >= max(12, best_t // 2):
                break
            continue
        b_now = b.copy()
        for _ in range(3 if bias else 0):
            b_now = b_now + shift(S, v, Fn, b_now)
        h = y[rows] * (Fn[rows, columns] + b_now[columns])
        log_scale = best_scale(h, v[rows], log_scale)
        s = np.exp(log_scale)
        q = (v[rows] * np.logaddexp(0, -2 * s * h)).sum() / v[rows].sum()
        stages.append(t)
        losses.append(q)
        if q < best:
            fade = np.exp(-sharpness * v.sum() * (best - q))
            mix, mix_b, mix_h, mass = mix * fade, mix_b * fade, mix_h * fade, mass * fade
            best, best_t = q, t
        vote = np.exp(-sharpness * v.sum() * (q - best))
        mix = mix + vote * s * cn
        mix_b += vote * s * b_now[0]
        mix_h = mix_h + vote * s * y[rows] * h
        mass += vote
        if not n_stages and t - best_t >= max(12, best_t // 2):
            break
    coefficients = mix.T / mass if all_columns else mix[:, 0] / mass
    return coefficients, mix_b / mass, mix_h / mass, mass, best, stages, losses
