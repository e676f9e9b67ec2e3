"""Naive numpy version of the vote whose splits find relevance of their own; two classes, one view.

Section by section as ``hardmargin/selection/split_views.py``; kernels are not raced.
"""

import numpy as np
from oracles.staged_vote import held_out_path

WIDTHS = {"rbf": (1 / 16, 1 / 4, 1.0, 4.0, 16.0), "laplacian": (1 / 4, 1.0, 4.0, 16.0)}


def kernel(name, gamma, Z):
    difference = Z[:, None] - Z[None]
    distance = (difference**2 if name == "rbf" else np.abs(difference)).sum(axis=2)
    return np.exp(-gamma * distance)


def unit(name, Z):
    """The gamma of the usual width."""
    if name == "rbf":
        return 1 / ((Z - Z.mean(axis=0)) ** 2).sum(axis=1).mean()
    return 1 / np.abs(Z[:, None] - Z[None]).sum(axis=2).mean()


def mean_squares(name, gamma, Z, coefficients):
    """Derivatives of sum_i c_i k(z, z_i) at every row, along every column."""
    difference = Z[:, None] - Z[None]
    slope = 2 * difference if name == "rbf" else np.sign(difference)
    return -gamma * np.einsum("qi,qid,i->qd", kernel(name, gamma, Z), slope, coefficients)


def honest_vote(X, y, folds, shuffled, n_kept=4, sharpness=0.3):
    """Return scales of all rows and every split, and least losses of plain and kept kernels."""
    n, d = X.shape
    first = [("rbf", 1 / 4), ("rbf", 1.0), ("laplacian", 1.0)]
    gammas = [width * unit(name, X) for name, width in first]
    paths = [
        held_out_path(
            kernel(name, gamma, X), y, folds, max_stages=24, shuffled=shuffled, all_columns=True
        )
        for (name, _), gamma in zip(first, gammas, strict=True)
    ]
    losses = np.array([path[4] for path in paths])
    shares = [path[3] for path in paths] * np.exp(-sharpness * n * (losses - losses.min()))
    shares /= shares.sum()
    shares = np.where(shares < 0.05, 0, shares) / shares[shares >= 0.05].sum()
    squares = []
    for column in range(1 + len(folds) + len(shuffled)):
        slopes = sum(
            share * mean_squares(name, gamma, X, path[0][column])
            for (name, _), gamma, path, share in zip(first, gammas, paths, shares, strict=True)
        )
        squares.append((slopes**2).mean(axis=0))
    own, chance = np.split(np.array(squares), [1 + len(folds)])
    cost = 2 * d / (d + n) * chance.mean() * np.array([1.0] + [1.25] * len(folds))
    fair = np.maximum(own - cost[:, None], 0)
    scales = np.maximum(np.sqrt(fair / fair.max(axis=1, keepdims=True)), 0.02)

    def matrices(name, width):
        return [kernel(name, width * unit(name, X * s), X * s) for s in scales]

    candidates = [(name, width) for name in WIDTHS for width in WIDTHS[name]]
    seen = [held_out_path(matrices(*c)[0], y, folds, max_stages=16)[4] for c in candidates]
    kept = [candidates[k] for k in sorted(np.argsort(seen, kind="stable")[:n_kept])]
    plain = [
        held_out_path(kernel(name, gamma, X), y, folds)[4]
        for (name, _), gamma in zip(first, gammas, strict=True)
    ]
    return scales, plain, kept, [held_out_path(matrices(*c), y, folds)[4] for c in kept]
