"""Naive versions of rank views and of relevance."""

import numpy as np
from scipy.stats import norm


def rank_scores(column, queries):
    """Normal scores of the ranks of a column without ties, standardised, at some queries."""
    order = np.sort(column)
    share = (np.arange(len(column)) + 0.5) / len(column)
    score = np.clip(norm.ppf(share), -2.5, 2.5)
    own = np.interp(column, order, score)
    return (np.interp(queries, order, score) - own.mean()) / own.std()


def relevance(log_odds, X, step=1e-5):
    """Root mean square of finite differences along every column, or between its two values.

    `log_odds` returns one column per machine.
    """
    found = []
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        there = X.copy()
        if len(values) == 2:
            there[:, j] = values.sum() - X[:, j]
            change = log_odds(there) - log_odds(X)
        else:
            back = X.copy()
            there[:, j] += step
            back[:, j] -= step
            change = (log_odds(there) - log_odds(back)) / (2 * step)
        found.append(np.sqrt((change**2).sum(axis=1).mean()))
    return np.array(found) / max(found)
